// Four language models: what each may look at, how its loss falls, and what it writes.

import { Controls } from "../js/controls.js";
import { curvesChart } from "../js/curves.js";
import { html, rich, svg } from "../js/dom.js";
import { legend } from "../js/legend.js";
import { Matrix } from "../js/matrix.js";
import { Player } from "../js/player.js";

const KINDS = [
  { kind: "one_way", tone: "past" },
  { kind: "both_ways", tone: "forbidden" },
  { kind: "masked", tone: "future" },
  { kind: "attention", tone: "past", dashed: true },
];

export function defaults({ audits, write, training }) {
  const korean = document.documentElement.lang === "ko";
  return {
    text: korean ? "ko" : audits.text.default,
    seed: write.seed.default,
    train: training.kind.default,
  };
}

export async function show(lab) {
  const { controls, parameters, t } = lab;
  controls.choice("text", {
    label: t("text"),
    options: parameters.audits.text.choices.map((text) => [text, t(`text-${text}`)]),
  });
  for (const part of [audits, losses, writing]) {
    const section = html("section", { class: "part-of-figure" });
    lab.drawing.append(section);
    await part(lab, section);
  }
}

const name = (t, kind) => t(`kind-${kind}`);

// Before the first step: who looks at what, and whether the answer is in it.
async function audits(lab, section) {
  const { t, api, state } = lab;
  const cards = html("div", { class: "four" });
  section.append(
    html("h2", {}, t("audit-title")),
    html("p", { class: "axes" }, t("audit-note")),
    cards,
    legend(t, ["past", "present", "future"]),
  );
  const ask = async () => {
    const found = await api.get("audits", state.all("text"));
    if (found === null) return;
    cards.replaceChildren(...KINDS.map(({ kind }) => card(t, kind, found[kind])));
  };
  await ask();
  state.onChange((changed) => {
    if (!changed.includes("text")) return;
    lab.touched();
    lab.attempt(ask);
  });
}

function card(t, kind, { matrix, offset }) {
  const frames = matrix.length;
  const picture = new Matrix(frames, { label: t(`matrix-${kind}`), cell: 15, numbers: false });
  picture.draw({ measured: matrix });
  if (kind !== "masked") picture.mark((output) => output + 1);
  const read = matrix.filter((row, output) => row[output + 1]).length;
  const said = offset === null ? t(kind === "masked" ? "clear-masked" : "clear") : t("leaks", { offset, n: read, all: frames });
  return html(
    "figure",
    {},
    picture.element,
    html("figcaption", {}, html("strong", {}, name(t, kind)), html("span", { class: offset === null ? "" : "said-forbidden" }, ...rich(said))),
  );
}

// The recorded curves as they were measured, step by step; a live training where torch is there.
async function losses(lab, section) {
  const { t, api, state, number, parameters } = lab;
  const chart = html("div", { class: "chart-part" });
  const clock = html("div");
  const scores = html("div", { class: "wide", tabindex: 0, role: "group", "aria-label": t("scores") });
  const made = html("p", { class: "axes" });
  const live = html("div", { class: "live" });
  section.append(html("h2", {}, t("losses-title")), html("p", { class: "axes" }, t("losses-note")), chart, keys(t), clock, scores, made, live);
  let found = null;
  let player = null;
  const most = () => Math.ceil(found.guessing);
  const recorded = (upto) =>
    KINDS.flatMap(({ kind, tone, dashed }) => {
      const points = found.curves[kind].slice(0, upto);
      const lines = [{ tone, dashed, points: points.map(({ step, dev }) => [step, dev]) }];
      if (kind === "both_ways") lines.push({ tone, dotted: true, points: points.map(({ step, last_loss: loss }) => [step, loss]) });
      return lines;
    });
  const draw = (lines, steps) =>
    chart.replaceChildren(
      curvesChart({
        label: t("losses-label"),
        x: t("steps"),
        y: t("loss"),
        steps,
        most: most(),
        limit: { loss: found.guessing, name: t("guessing") },
        lines,
        number,
        room: chart.clientWidth || undefined,
      }),
    );
  const ask = async () => {
    const answer = await api.get("curves", state.all("text"));
    if (answer === null) return;
    found = answer;
    const steps = found.curves.one_way.map(({ step }) => step);
    player?.stop();
    player = new Player({
      label: t("play"),
      pause: t("pause"),
      still: lab.still,
      frames: steps.length,
      name: (n) => t("step", { n: n ? steps[n - 1] : 0 }),
      onFrame: (n) => {
        lab.touched();
        draw(recorded(n), steps.at(-1));
      },
    });
    clock.replaceChildren(player.element);
    draw(recorded(steps.length), steps.at(-1));
    scores.replaceChildren(table(lab, found));
    made.textContent = t("made", { ...found.made, steps: found.config.steps, kind: found.made.processor });
    if (!live.hasChildNodes()) live.append(...training(lab, parameters, () => found, draw));
  };
  await ask();
  state.onChange((changed) => {
    if (changed.includes("text")) lab.attempt(ask);
  });
}

function table({ t, number }, { scores, parameters }) {
  const head = ["model", "held-out", "no-future", "right", "weights"].map((key) => html("th", { scope: "col" }, t(`column-${key}`)));
  const rows = KINDS.map(({ kind }) => {
    const { loss, last, right } = scores[kind];
    const values = [loss.toFixed(2), last === null ? "–" : last.toFixed(2), `${number(100 * right)}%`, number(parameters[kind])];
    return html("tr", {}, html("th", { scope: "row" }, name(t, kind)), ...values.map((value) => html("td", {}, value)));
  });
  const caption = html("caption", {}, t("scores"));
  return html("table", { class: "numbers close" }, caption, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows));
}

function training(lab, parameters, found, draw) {
  const { t, api, state, number } = lab;
  if (!found().trains) return [html("p", { class: "axes" }, ...rich(t("no-torch")))];
  const place = html("div", { class: "controls" });
  const said = html("p", { class: "readout", role: "status" });
  const controls = new Controls(place, state);
  controls.choice("train", {
    label: t("train-kind"),
    options: parameters.training.kind.choices.map((kind) => [kind, name(t, kind)]),
  });
  let running = null;
  const run = async () => {
    if (running) {
      running.stopped = true;
      return;
    }
    const mine = { stopped: false };
    running = mine;
    button.textContent = t("train-stop");
    said.textContent = t("train-starting");
    lab.touched();
    const { tone, dashed } = KINDS.find(({ kind }) => kind === state.get("train"));
    const [dev, last] = [[], []];
    let steps = 1;
    let verdict = "";
    try {
      for await (const line of api.lines("training", { kind: state.get("train"), ...state.all("text", "seed") })) {
        if (line.steps) {
          steps = line.steps;
          verdict = t(line.offset === null ? "audit-clear" : "audit-leaks", { offset: line.offset ?? 0 });
          said.replaceChildren(...rich(verdict));
        } else {
          dev.push([line.step, line.dev]);
          if (line.last_loss !== null) last.push([line.step, line.last_loss]);
          draw([{ tone, dashed, points: dev }, { tone, dotted: true, points: last }], steps);
          const end = line.last_loss === null ? "" : t("trained-end", { loss: number(line.last_loss, 2) });
          said.replaceChildren(...rich(`${verdict} ${t("trained", { step: line.step, steps, loss: number(line.dev, 2) })} ${end}`));
        }
        if (mine.stopped) break;
      }
    } finally {
      running = null;
      button.textContent = t("train");
    }
  };
  const button = controls.button(t("train"), () => lab.attempt(run));
  return [html("h3", {}, t("train-title")), place, said];
}

// What each of them writes, a few letters at a time.
async function writing(lab, section) {
  const { t, api, state, number, parameters } = lab;
  const place = html("div", { class: "controls" });
  const lanes = new Map(KINDS.map(({ kind }) => [kind, html("p", { class: "written", lang: state.get("text") })]));
  const blanks = html("div", { class: "blanks" });
  section.append(
    html("h2", {}, t("writing-title")),
    html("p", { class: "axes" }, t("writing-note")),
    place,
    ...KINDS.map(({ kind, tone }) =>
      html("section", { class: "lane" }, html("h3", { class: `said-${tone}` }, name(t, kind)), lanes.get(kind), kind === "masked" ? blanks : null),
    ),
  );
  let run = 0;
  const write = async (seed) => {
    const mine = ++run;
    state.set({ seed });
    lab.touched();
    for (const lane of lanes.values()) lane.textContent = "";
    blanks.replaceChildren();
    for (const { kind } of KINDS) {
      const lane = lanes.get(kind);
      lane.lang = state.get("text");
      for await (const { written } of api.lines("write", { kind, ...state.all("text", "seed") })) {
        if (mine !== run) return;
        lane.textContent = written;
      }
      if (kind === "masked") {
        const filled = await api.get("blanks", state.all("text", "seed"));
        if (filled === null || mine !== run) return;
        blanks.replaceChildren(
          html("p", { class: "axes" }, t("blanks", { right: number(100 * filled.right) })),
          html("p", { class: "written", lang: state.get("text") }, filled.blanks),
          html("p", { class: "written", lang: state.get("text") }, filled.guess),
        );
      }
    }
  };
  const controls = new Controls(place, state);
  controls.button(t("write"), () => lab.attempt(() => write(state.get("seed"))));
  controls.button(t("write-again"), () => lab.attempt(() => write((state.get("seed") + 1) % (parameters.write.seed.max + 1))));
  state.onChange((changed) => {
    if (!changed.includes("text")) return;
    run++; // what is being written is of the other text
    for (const lane of lanes.values()) lane.textContent = "";
    blanks.replaceChildren();
  });
}

function keys(t) {
  const key = (kind, tone, text) => {
    const line = svg("svg", { viewBox: "0 0 26 14", "aria-hidden": "true", class: "line-key" });
    line.append(svg("path", { class: `edge edge-${tone} ${kind}`, d: "M2,7H24" }));
    return html("li", {}, line, text);
  };
  const entries = KINDS.map(({ kind, tone, dashed }) => key(dashed ? "dashed" : "", tone, name(t, kind)));
  entries.splice(2, 0, key("dotted", "forbidden", t("key-end")));
  return html("ul", { class: "legend" }, ...entries);
}
