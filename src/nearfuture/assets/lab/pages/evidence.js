// When the evidence arrives: made up, in the sound of a consonant, and in a sentence.

import { Controls } from "../js/controls.js";
import { html, rich, svg } from "../js/dom.js";
import { Player } from "../js/player.js";
import { probabilityChart } from "../js/probability.js";

export function defaults({ adding, voicing }) {
  const korean = document.documentElement.lang === "ko";
  return {
    schedule: adding.schedule.default,
    tau: adding.tau.default,
    onset: voicing.onset.default,
    heard: voicing.tau.default,
    word: korean ? "gamsa" : "bank",
    text: "",
  };
}

export async function show(lab) {
  for (const part of [construction, consonant, sentence]) {
    const section = html("section", { class: "part-of-figure" });
    lab.drawing.append(section);
    await part(lab, section);
  }
}

// Asks again whenever one of the keys changes.
function follow(lab, keys, ask) {
  lab.state.onChange((changed) => {
    if (!changed.some((key) => keys.includes(key))) return;
    lab.touched();
    lab.attempt(ask);
  });
}

const room = (element) => element.clientWidth || undefined;
const percent = (number, p) => `${number(100 * p, p > 0.01 && p < 0.99 ? 0 : 1)}%`;

async function construction(lab, section) {
  const { t, state, api, parameters, number } = lab;
  const place = html("div", { class: "controls" });
  const picture = html("div", { class: "wide", tabindex: 0, role: "group", "aria-label": t("evidence-label") });
  const chart = html("div", { class: "chart-part" });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  section.append(
    html("h2", {}, t("construction-title")),
    html("p", { class: "axes" }, t("construction-note")),
    place,
    html("div", { class: "beside halves" }, picture, chart),
    readout,
  );
  const controls = new Controls(place, state);
  controls.choice("schedule", {
    label: t("schedule"),
    options: parameters.adding.schedule.choices.map((name) => [name, t(`schedule-${name}`)]),
  });
  controls.slider("tau", {
    label: t("tau"),
    limits: parameters.adding.tau,
    tone: "of-future",
    show: (n) => t("tau-value", { n, ms: 40 * n }),
  });
  const ask = async () => {
    const found = await api.get("adding", state.all("schedule", "tau"));
    if (found === null) return;
    const tau = state.get("tau");
    picture.replaceChildren(drawEvidence(t, found));
    chart.replaceChildren(
      probabilityChart({
        label: t("by-tau-label"),
        x: found.t.map((_, at) => at),
        name: t("by-tau"),
        answers: ["/t/", "/d/"],
        lines: [{ tone: "future", values: found.t }],
        at: tau,
        room: room(chart),
      }),
    );
    const sides = [0, 1].map((side) => found.evidence.filter((_, at) => found.reads[at]).map((pair) => pair[side]));
    const right = found.t[tau] < 0.5;
    readout.replaceChildren(
      ...rich(
        t(right ? "construction-right" : "construction-wrong", {
          t: sides[0].join(" + "),
          d: sides[1].join(" + "),
          p: percent(number, found.t[tau]),
          ms: found.waited_ms,
        }),
      ),
    );
  };
  await ask();
  follow(lab, ["schedule", "tau"], ask);
}

const [COLUMN, UNIT, MIDDLE] = [54, 8, 78];

// Evidence for /t/ upwards, for /d/ downwards, frame by frame; in colour what the answer reads.
function drawEvidence(t, { evidence, reads }) {
  const left = 36;
  const width = left + evidence.length * COLUMN + 2;
  const picture = svg("svg", { viewBox: `0 0 ${width} 196`, width, class: "evidence" });
  for (const [sound, y] of [["/t/", MIDDLE - 30], ["/d/", MIDDLE + 62]]) {
    picture.append(svg("text", { class: "answer", x: 0, y }, sound));
  }
  evidence.forEach((sides, frame) => {
    const x = left + frame * COLUMN;
    const tone = !reads[frame] ? "unread" : frame ? "future" : "present";
    picture.append(svg("rect", { class: reads[frame] ? "frame read" : "frame", x, y: 2, width: COLUMN - 6, height: 170, rx: 8 }));
    sides.forEach((value, side) => {
      const size = value * UNIT;
      const y = side ? MIDDLE + 1 : MIDDLE - 1 - size;
      picture.append(
        svg("rect", { class: `bar-of ${tone}`, x: x + 12, y, width: COLUMN - 30, height: Math.max(1, size), rx: 2 }),
        svg("text", { class: "small", x: x + (COLUMN - 6) / 2, y: side ? y + size + 13 : y - 4, "text-anchor": "middle" }, String(value)),
      );
    });
    picture.append(
      svg("line", { class: "zero", x1: x + 6, x2: x + COLUMN - 12, y1: MIDDLE, y2: MIDDLE }),
      svg("text", { class: "soft", x: x + (COLUMN - 6) / 2, y: 190, "text-anchor": "middle" }, frame ? `+${frame}` : t("now")),
    );
  });
  return picture;
}

async function consonant(lab, section) {
  const { t, state, api, parameters, number } = lab;
  const place = html("div", { class: "controls" });
  const wave = html("div", { class: "sound-part" });
  const chart = html("div", { class: "chart-part" });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const audio = html("audio", { preload: "none" });
  section.append(
    html("h2", {}, t("consonant-title")),
    html("p", { class: "axes" }, t("consonant-note")),
    place,
    html("div", { class: "beside halves" }, wave, chart),
    readout,
    audio,
  );
  const controls = new Controls(place, state);
  controls.slider("onset", {
    label: t("onset"),
    limits: parameters.voicing.onset,
    show: (ms) => t("ms", { ms }),
  });
  controls.slider("heard", {
    label: t("tau"),
    limits: parameters.voicing.tau,
    tone: "of-future",
    show: (n) => t("tau-value", { n, ms: 10 * n }),
  });
  controls.button(t("listen"), () => {
    lab.touched();
    audio.src = api.url("sound", state.all("onset"));
    audio.play().catch(() => null); // no loudspeaker
  });
  const ask = async () => {
    const { onset, heard: tau } = state.all("onset", "heard");
    const found = await api.get("voicing", { onset, tau });
    if (found === null) return;
    wave.replaceChildren(drawSound(t, found, room(wave)));
    chart.replaceChildren(
      probabilityChart({
        label: t("by-tau-label"),
        x: found.t.map((_, at) => at),
        name: t("by-tau"),
        answers: ["/t/", "/d/"],
        lines: [{ tone: "future", values: found.t }],
        at: tau,
        room: room(chart),
      }),
    );
    const heard = found.onset_ms < found.burst_ms + found.heard_ms;
    const answer = found.t[tau] > 0.5 ? "/t/" : "/d/";
    readout.replaceChildren(
      ...rich(t(heard ? "voice-heard" : "voice-unheard", { ms: found.heard_ms, answer, p: percent(number, found.t[tau]) })),
    );
  };
  await ask();
  follow(lab, ["onset", "heard"], ask);
}

// The sound around its burst: what the model has heard, where the voice sets in.
function drawSound(t, found, space = 445) {
  const [width, height, middle] = [Math.max(260, Math.min(445, space)), 210, 96];
  const [begin, end] = found.shown_ms;
  const x = (ms) => ((ms - begin) / (end - begin)) * width;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": t("sound-label"), class: "plosive" });
  const heard = found.burst_ms + found.heard_ms;
  picture.append(
    svg("rect", { class: "window", x: x(found.burst_ms), y: 26, width: x(heard) - x(found.burst_ms), height: 140, rx: 4 }),
    svg("text", { class: "said-future on-line", x: x(found.burst_ms) + 4, y: 18 }, t("heard", { ms: found.heard_ms })),
  );
  const step = width / found.wave.length;
  found.wave.forEach(([low, high], at) => {
    const ms = begin + ((at + 0.5) / found.wave.length) * (end - begin);
    const tone = ms < found.burst_ms ? "past" : ms < heard ? "future" : "unheard";
    const y = middle - 62 * high;
    picture.append(svg("rect", { class: tone, x: at * step, y, width: step * 0.75, height: Math.max(1, 62 * (high - low)) }));
  });
  // Their names in two lines: they may lie on each other.
  for (const [ms, name, y] of [[found.burst_ms, "burst", 186], [found.onset_ms, "voice", 204]]) {
    picture.append(
      svg("line", { class: "moment", x1: x(ms), x2: x(ms), y1: 26, y2: y - 12 }),
      svg("text", { x: x(ms), y, "text-anchor": x(ms) > 0.7 * width ? "end" : "start" }, t(name)),
    );
  }
  return picture;
}

const KINDS = [
  { kind: "one way", key: "one-way", tone: "past" },
  { kind: "lookahead 2", key: "lookahead-2", tone: "future", dashed: true },
  { kind: "lookahead 4", key: "lookahead-4", tone: "future" },
  { kind: "both ways", key: "both-ways", tone: "forbidden" },
];

async function sentence(lab, section) {
  const { t, state, api, parameters } = lab;
  const place = html("div", { class: "controls" });
  const field = html("input", { id: "control-sentence", type: "text", maxlength: 200, autocomplete: "off", spellcheck: "false" });
  const words = html("p", { class: "arriving" });
  const clock = html("div");
  const chart = html("div", { class: "chart-part" });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  section.append(html("h2", {}, t("sentence-title")), html("p", { class: "axes" }, t("sentence-note")), place, words, clock, chart, legend(t), readout);
  const controls = new Controls(place, state);
  controls.choice("word", {
    label: t("word"),
    options: parameters.sentence.word.choices.map((word) => [word, t(`word-${word}`)]),
  });
  place.append(html("div", { class: "control" }, html("label", { class: "name", for: field.id }, t("text")), field));
  let found = null;
  let player = null;
  let next = 0;
  controls.button(t("other-end"), () => example(written() === found.examples[0].text ? 1 : 0));
  controls.button(t("other-sentence"), () => example(2 + (next++ % (found.examples.length - 2))));
  const written = () => state.get("text") || found.examples[0].text;
  const example = (at) => state.set({ text: at ? found.examples[at].text : "" });

  const draw = (arrived) => {
    const behind = arrived; // words behind the word of two senses
    words.replaceChildren(
      ...found.words.flatMap((word, at) => {
        const kind = at === found.target ? "target" : at > found.target + behind ? "coming" : "";
        return [html("span", { class: `${kind} ${found.known[at] ? "" : "unknown"}`, title: found.known[at] ? null : t("unknown") }, word), " "];
      }),
    );
    chart.replaceChildren(
      probabilityChart({
        label: t("sentence-label"),
        x: found.words.slice(found.target),
        name: "",
        answers: [t(`sense-${found.senses[1]}`), t(`sense-${found.senses[0]}`)],
        lines: KINDS.map(({ kind, tone, dashed }) => ({ tone, dashed, values: found.probabilities[kind].slice(0, behind + 1) })),
        room: room(chart),
        widest: 860,
      }),
    );
  };
  const ask = async () => {
    const answer = await api.get("sentence", state.all("word", "text"));
    if (answer === null) return;
    found = answer;
    if (document.activeElement !== field) field.value = written();
    player?.stop();
    player = new Player({
      label: t("play"),
      pause: t("pause"),
      still: lab.still,
      frames: found.words.length - 1 - found.target,
      name: (n) => t("arrived", { n, word: found.words[found.target] }),
      onFrame: (n) => {
        draw(n);
        lab.touched();
      },
    });
    clock.replaceChildren(player.element);
    draw(found.words.length - 1 - found.target);
    const settled = (kind) => found.settled[kind];
    readout.replaceChildren(
      ...rich(t("settled", { word: found.words[found.target], one: settled("one way"), two: settled("lookahead 2"), four: settled("lookahead 4"), both: settled("both ways"), all: found.words.length - 1 - found.target })),
    );
  };
  field.addEventListener("input", () => {
    const text = field.value.trim().replace(/\s+/g, " ");
    const has = text.toLowerCase().split(" ").includes(found.word);
    field.setAttribute("aria-invalid", has ? "false" : "true");
    if (has) state.set({ text });
    else readout.textContent = t("needs", { word: found.word });
  });
  await ask();
  state.onChange((changed) => {
    if (changed.includes("word") && state.get("text")) state.set({ text: "" });
  });
  follow(lab, ["word", "text"], ask);
}

function legend(t) {
  const entries = KINDS.map(({ key, tone, dashed }) => {
    const line = svg("svg", { viewBox: "0 0 26 14", "aria-hidden": "true", class: "line-key" });
    line.append(svg("path", { class: `edge edge-${tone} ${dashed ? "dashed" : ""}`, d: "M2,7H24" }));
    return html("li", {}, line, t(`kind-${key}`));
  });
  return html("ul", { class: "legend" }, ...entries);
}
