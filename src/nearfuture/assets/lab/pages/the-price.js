// Errors against milliseconds, as measured; a budget, and what the bundled model writes within it.

import { html, rich, svg } from "../js/dom.js";

export function defaults({ choice }) {
  return { experiment: choice.experiment.default, budget_ms: choice.budget_ms.default };
}

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t, number } = lab;
  controls.choice("experiment", {
    label: t("experiment"),
    options: parameters.choice.experiment.choices.map((name) => [name, t(`experiment-${name}`)]),
  });
  controls.slider("budget_ms", {
    label: t("budget"),
    limits: parameters.choice.budget_ms,
    tone: "of-future",
    show: (ms) => t("ms", { ms }),
  });
  const chart = html("div", { class: "price-chart" });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const from = html("p", { class: "axes" });
  const score = html("p", { class: "readout", "aria-live": "polite" });
  const sentences = html("div", { class: "sentences" });
  drawing.append(
    chart,
    readout,
    from,
    html("h2", { class: "chart-title" }, t("words-title")),
    score,
    sentences,
  );

  let experiment = await api.get("curve", state.all("experiment"));
  let chosen = await api.get("choice", state.all("experiment", "budget_ms"));
  const spoken = [];
  let heads = {};
  let before = null; // the lookahead that was shown before

  const drawCurve = () => {
    chart.replaceChildren(drawChart(lab, experiment, chosen, state.get("budget_ms")));
    readout.replaceChildren(...rich(said(lab, experiment, chosen)));
    from.replaceChildren(...origin(lab, state.get("experiment"), experiment));
  };
  const drawWords = () => {
    const shown = String(chosen.frames);
    const earlier = before !== null && before !== shown ? before : null;
    sentences.replaceChildren(...spoken.map((each) => sentence(lab, each, shown, earlier)));
    const count = (model) => spoken.flatMap((each) => each.written[model]).filter(({ wrong }) => wrong).length;
    const values = {
      tau: chosen.frames,
      ms: chosen.worst_ms,
      wrong: count(shown),
      twin: count("twin"),
      words: spoken.flatMap(({ said: text }) => text.split(" ")).length,
      all: Object.keys(heads).map((tau) => `τ = ${tau}: ${number(count(tau))}`).join(", "),
    };
    score.replaceChildren(...rich(t("score", values)));
    before = shown;
  };
  state.onChange((changed) => {
    lab.touched();
    lab.attempt(async () => {
      const answer = await api.get("choice", state.all("experiment", "budget_ms"));
      if (answer === null) return;
      if (changed.includes("experiment")) {
        const next = await api.get("curve", state.all("experiment"));
        if (next === null) return;
        experiment = next;
      }
      const other = answer.frames !== chosen.frames;
      chosen = answer;
      drawCurve();
      if (other) drawWords();
    });
  });
  drawCurve();
  score.textContent = t("working");
  for await (const line of api.lines("words")) {
    if (line.heads) heads = line.heads;
    else {
      spoken.push(line);
      sentences.append(sentence(lab, line, String(chosen.frames), null));
    }
  }
  // Sentences with a mistake first: they are what a budget can change.
  const mistakes = ({ written }) => Object.values(written).flat().filter(({ wrong }) => wrong).length;
  spoken.sort((one, other) => mistakes(other) - mistakes(one));
  drawWords();
}

// What keeps the budget, and how many errors it makes.
function said({ t, number }, experiment, chosen) {
  const percent = (value) => number(value, 2);
  const parts = experiment.lines.map(({ name }) => {
    const point = chosen.kept[name];
    if (point === null) return t("none-kept", { model: t(`line-${name}`) });
    return t("kept", {
      model: t(`line-${name}`),
      tau: point.frames,
      ms: point.ms,
      rate: percent(point.value),
      low: percent(point.low),
      high: percent(point.high),
      measure: t(`of-${experiment.measure}`),
    });
  });
  const { value, low, high } = experiment.twin;
  parts.push(t("twin-said", { rate: percent(value), low: percent(low), high: percent(high) }));
  return parts.join(" ");
}

// Where the figures come from.
function origin({ t }, name, experiment) {
  const trained = experiment.trained.map(({ what, commit, processor }) => `${what}: ${commit} (${processor})`);
  return [
    `${t(`about-${name}`)} ${t("from")}`,
    " ",
    html("code", {}, experiment.command),
    " ",
    t("from-trained", { page: experiment.page, trained: trained.join(", ") }),
  ];
}

const [WIDEST, HEIGHT, LEFT, BOTTOM, TOP, COLUMN] = [760, 330, 40, 42, 34, 92];

function drawChart({ t, number, drawing }, experiment, chosen, budget) {
  const width = Math.min(WIDEST, drawing.clientWidth);
  const points = experiment.lines.flatMap((line) => line.points);
  const { ticks, least, most } = scale([...points, experiment.twin]);
  const longest = Math.max(...points.map(({ ms }) => ms));
  const x = (ms) => LEFT + (Math.min(ms, 1.04 * longest) / (1.06 * longest)) * (width - LEFT - COLUMN);
  const y = (rate) => HEIGHT - BOTTOM - ((rate - least) / (most - least)) * (HEIGHT - BOTTOM - TOP);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`,
    width,
    role: "img",
    "aria-label": t("chart-label"),
  });
  const text = (value, place, words) => svg("text", { ...place, class: value }, words);
  for (const tick of ticks) {
    picture.append(
      svg("line", { class: "grid", x1: LEFT, x2: width, y1: y(tick), y2: y(tick) }),
      text("soft", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick)),
    );
  }
  const step = longest > 900 ? 250 : 200;
  for (let ms = 0; ms <= longest; ms += step) {
    picture.append(text("soft", { x: x(ms), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, number(ms)));
  }
  const name = `${t(`axis-${experiment.measure}`)}${least > 0 ? ` ${t("begins", { least })}` : ""}`;
  const last = width - COLUMN / 2;
  picture.append(
    text("soft", { x: 0, y: 12 }, name),
    text("soft", { x: width - COLUMN, y: HEIGHT - 4, "text-anchor": "end" }, t("axis-ms")),
    text("soft", { x: last, y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, t("whole")),
  );
  const { twin } = experiment;
  picture.append(
    svg("rect", { class: "band", x: LEFT, width: width - LEFT, y: y(twin.high), height: y(twin.low) - y(twin.high) }),
    svg("line", { class: "edge edge-forbidden dashed", x1: LEFT, x2: width, y1: y(twin.value), y2: y(twin.value) }),
    svg("line", { class: "budget-line", x1: x(budget), x2: x(budget), y1: TOP - 10, y2: HEIGHT - BOTTOM }),
  );
  const bar = (at, point, tone, kept) => {
    const title = svg("title", {}, `${number(point.value, 2)} % (${number(point.low, 2)}–${number(point.high, 2)})`);
    const radius = kept ? 8 : 5;
    picture.append(
      svg("line", { class: `edge thin edge-${tone}`, x1: at, x2: at, y1: y(point.low), y2: y(point.high) }),
      svg("circle", { class: `point ${tone} ${kept ? "kept" : ""}`, cx: at, cy: y(point.value), r: radius }, title),
    );
  };
  experiment.lines.forEach((line, index) => {
    const tone = ["future", "past"][index];
    const d = line.points.map((point, at) => `${at ? "L" : "M"}${x(point.ms)},${y(point.value)}`).join("");
    picture.append(svg("path", { class: `edge thin edge-${tone}`, d }));
    for (const point of line.points) bar(x(point.ms), point, tone, chosen.kept[line.name]?.ms === point.ms);
    // Its name stands over the interval of the second point, where lines still lie apart.
    const near = line.points[1];
    picture.append(text(`on-line said-${tone}`, { x: x(near.ms) + 12, y: y(near.high) - 2 }, t(`line-${line.name}`)));
  });
  bar(last, twin, "forbidden", false);
  const above = y(twin.high) - 10 > TOP ? y(twin.high) - 10 : y(twin.low) + 18;
  picture.append(text("on-line said-forbidden", { x: last, y: above, "text-anchor": "middle" }, t("twin")));
  return picture;
}

// An axis from 0, or from near the smallest where all values lie far above it.
function scale(rates) {
  const [low, high] = [Math.min(...rates.map((each) => each.low)), Math.max(...rates.map((each) => each.high))];
  const from = low > 0.6 * high ? low : 0;
  const step = [1, 2, 5, 10].find((each) => (high - from) / each <= 7) ?? 20;
  const least = step * Math.floor(from / step);
  const ticks = [];
  for (let tick = least; tick < high + step; tick += step) ticks.push(tick);
  return { ticks, least, most: ticks.at(-1) };
}

// What is said, what the chosen head writes, and what the twin does; words the budget changed are marked.
function sentence({ t }, { said: text, voice, synthetic, written }, shown, earlier) {
  const words = (list, other) =>
    list.map(({ written: word, said: truth, wrong }, at) => {
      const changed = other !== null && other[at]?.written !== word;
      const name = ["word-said", wrong ? "wrong" : "", changed ? "changed" : ""].join(" ").trim();
      return html("span", { class: name, title: wrong ? t("was-said", { word: truth || t("nothing") }) : null }, word || "–");
    });
  const line = (name, label, list, other = null) =>
    html("p", { class: `said-line ${name}` }, html("span", { class: "who" }, label), html("span", { class: "words" }, ...words(list, other)));
  const speaker = t(synthetic ? "synthetic" : "person", { voice });
  return html(
    "section",
    { class: "sentence" },
    html("h3", {}, speaker, html("span", {}, ` ${text}`)),
    line("by-head", `τ = ${shown}`, written[shown], earlier === null ? null : written[earlier]),
    line("by-twin", t("twin"), written.twin),
  );
}
