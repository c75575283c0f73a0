// Three models on one recording: what each has written at every moment of the sound.

import { html, rich, svg } from "../js/dom.js";
import { Clock } from "../js/clock.js";
import { linesChart } from "../js/chart.js";
import { microphone, wavFile } from "../js/sound.js";

const LONGEST_MS = 29_500;
const LANES = ["unidirectional", "row-convolution", "twin"];

export function defaults({ run }) {
  return { seconds: run.seconds.default, tau: run.tau.default };
}

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t, number } = lab;
  controls.slider("seconds", {
    label: t("length"),
    limits: parameters.run.seconds,
    show: (s) => t("seconds", { s: number(s) }),
  });
  controls.choice("tau", {
    label: t("tau"),
    options: parameters.run.tau.choices.map((tau) => [tau, t("tau-value", { tau })]),
  });
  const clock = new Clock({
    play: t("play"),
    stop: t("stop"),
    label: t("time"),
    say: (ms) => t("seconds", { s: number(ms / 1000, 1) }),
    onTime: (ms) => moment(ms),
    onPlay: () => lab.touched(),
  });
  let own = null; // a recording of one's own
  const use = (blob) => {
    own = blob;
    lab.touched();
    return lab.attempt(run);
  };
  const wave = html("div", { class: "wave" });
  const status = html("p", { class: "working", role: "status" });
  const lanes = new Map(LANES.map((name) => [name, new Lane(lab, name)]));
  const chart = html("div", { class: "chart" });
  const measured = new Map();
  drawing.append(
    sources(lab, use),
    clock.element,
    status,
    wave,
    ...[...lanes.values()].map((lane) => lane.element),
    html("h2", { class: "chart-title" }, t("waits-title")),
    chart,
    html("p", { class: "readout" }, t("waits-note")),
  );

  const moment = (ms) => {
    wave.style.setProperty("--time", `${(100 * ms) / clock.length}%`);
    for (const lane of lanes.values()) lane.at(ms, clock.length);
  };
  let limits = await api.get("waits", state.all("tau"));
  const redraw = () => chart.replaceChildren(waitsChart(lab, limits, [...measured.values()]));

  let loud; // the address of the sound of one's own
  let turn = 0;
  const run = async () => {
    clock.stop();
    status.textContent = t("working");
    for (const lane of lanes.values()) lane.clear();
    let sound = null;
    let end = 0;
    const heard = own ?? undefined;
    const mine = ++turn;
    for await (const line of api.lines("run", state.all("seconds", "tau"), heard)) {
      if (line.lane === undefined) {
        sound = line;
        if (loud) URL.revokeObjectURL(loud);
        loud = heard && URL.createObjectURL(await api.blob("sound", {}, heard));
        if (mine !== turn) return;
        clock.load(loud ?? api.url("sound", state.all("seconds")), sound.ms);
        wave.replaceChildren(drawWave(sound.loudness));
      } else {
        lanes.get(line.lane).load(line, sound);
        end = Math.max(end, ...line.written_ms);
        clock.extend(Math.max(sound.ms, end) + 300);
        for (const lane of lanes.values()) lane.draw(clock.length);
        const point = { lane: line.lane, x: sound.ms / 1000, y: line.longest_wait_ms / 1000 };
        if (line.longest_wait_ms !== null) measured.set(`${line.tau} ${sound.ms}`, point);
      }
    }
    wave.style.setProperty("--sound", `${(100 * sound.ms) / clock.length}%`);
    status.textContent = "";
    clock.go(clock.length);
    redraw();
  };
  state.onChange((changed) => {
    lab.touched();
    if (changed.includes("seconds")) own = null;
    lab.attempt(async () => {
      if (changed.includes("tau")) limits = await api.get("waits", state.all("tau"));
      await run();
    });
  });
  await run();
}

// A recording of one's own, by file or by microphone; it takes the place of the bundled ones.
function sources({ t, attempt }, use) {
  const file = html("input", { type: "file", accept: "audio/*", id: "own-file" });
  file.addEventListener("change", () => {
    if (file.files.length) use(file.files[0]);
    file.value = "";
  });
  let recorder = null;
  const stop = () => {
    const { source, blocks, timer } = recorder;
    recorder = null;
    clearTimeout(timer);
    source.stop();
    record.textContent = t("record");
    use(wavFile(blocks, source.rate));
  };
  const start = async () => {
    const source = await microphone();
    const blocks = [];
    const timer = setTimeout(stop, LONGEST_MS);
    recorder = { source, blocks, timer };
    source.start((samples) => blocks.push(samples), stop);
    record.textContent = t("stop-recording");
  };
  const record = html("button", { type: "button", class: "plain", onclick: () => (recorder ? stop() : attempt(start)) }, t("record"));
  const back = html("button", { type: "button", class: "plain", onclick: () => use(null) }, t("back"));
  addEventListener("pagehide", () => recorder?.source.stop());
  return html("div", { class: "sources-of-sound" }, html("label", { class: "plain file" }, t("own-file"), file), record, back);
}

// What one model writes, and below it how long each word was waited for.
class Lane {
  #lab;
  #name;
  #line = null;
  #sound = null;
  #letters = [];
  #text = html("p", { class: "lane-text" });
  #facts = html("p", { class: "lane-facts" });
  #track = html("div", { class: "lane-track" });
  #promise = html("span", { class: "promise" });

  constructor(lab, name) {
    this.#lab = lab;
    this.#name = name;
    const title = html("h2", {}, lab.t(`lane-${name}`), " ", this.#promise);
    this.element = html("section", { class: `lane lane-${name}` }, title, this.#text, this.#track, this.#facts);
  }

  clear() {
    this.#line = null;
    this.#letters = [];
    for (const part of [this.#text, this.#facts, this.#track]) part.replaceChildren();
  }

  load(line, sound) {
    const { t, number } = this.#lab;
    this.#line = line;
    this.#sound = sound;
    const { promise_ms: promise, tau } = line;
    this.#promise.textContent =
      promise === null ? t("promise-twin") : t("promise", { tau, ms: number(promise) });
    let word = 0;
    this.#letters = [...line.text].map((letter) => {
      if (letter === " ") word += 1;
      const wrong = letter !== " " && line.wrong[word];
      return html("span", { class: wrong ? "letter wrong" : "letter" }, letter);
    });
    this.#text.replaceChildren(...this.#letters);
    const values = {
      first: line.written_ms.length ? number(line.written_ms[0] / 1000, 1) : "–",
      mean: line.mean_wait_ms === null ? "–" : number(line.mean_wait_ms / 1000, 2),
      errors: line.errors ?? 0,
      words: sound.words.length,
      compute: number(line.compute_ms / 1000, 2),
    };
    const said = tau === null ? "lane-said-twin" : "lane-said";
    const judged = sound.own ? t("unjudged") : t("judged", values);
    this.#facts.replaceChildren(...rich(`${t(said, values)} ${judged}`));
  }

  // The words where they were spoken, and the waits behind them, on the scale of the whole time.
  draw(length) {
    if (this.#line === null) return;
    const x = (ms) => (1000 * ms) / length;
    const picture = svg("svg", { viewBox: "0 0 1000 26", preserveAspectRatio: "none", "aria-hidden": "true" });
    const several = this.#line.tau === null;
    this.#sound.words.forEach((word, at) => {
      const wait = this.#line.waits_ms[at];
      const box = { y: 2, height: 12, rx: 2 };
      picture.append(svg("rect", { class: "past", x: x(word.start_ms), width: x(word.end_ms - word.start_ms), ...box }));
      if (wait === null) return;
      const count = this.#sound.words.length;
      const row = several ? { y: 15 + (10 * at) / count, height: Math.max(1.2, 8 / count) } : { y: 16, height: 6 };
      picture.append(svg("rect", { class: "future", x: x(word.end_ms), width: x(Math.max(0, wait)), ...row }));
    });
    this.#track.replaceChildren(picture, html("span", { class: "head", "aria-hidden": "true" }));
  }

  at(ms, length) {
    this.#letters.forEach((letter, index) => {
      letter.classList.toggle("unwritten", this.#line.written_ms[index] > ms);
    });
    this.#track.style.setProperty("--time", `${(100 * ms) / length}%`);
  }
}

function drawWave(loudness) {
  const step = 1000 / loudness.length;
  const picture = svg("svg", { viewBox: "0 0 1000 60", preserveAspectRatio: "none", "aria-hidden": "true" });
  loudness.forEach((peak, at) => {
    const height = Math.max(1, 56 * peak);
    picture.append(svg("rect", { x: at * step, y: 30 - height / 2, width: step * 0.7, height }));
  });
  return picture;
}

function waitsChart({ t, number, drawing }, limits, measured) {
  return linesChart({
    label: t("waits-label"),
    x: { values: limits.seconds, name: t("waits-x"), ticks: [1, 5, 10, 15, 20, 25, 30] },
    y: { name: t("waits-y"), ticks: [0, 10, 20, 30] },
    number,
    room: drawing.clientWidth,
    lines: [
      { name: t("lane-twin"), tone: "forbidden", values: limits.twin.map((ms) => ms / 1000) },
      { name: t("lane-row-convolution"), tone: "future", values: limits["row-convolution"].map((ms) => ms / 1000) },
    ],
    points: measured.filter(({ lane }) => lane !== "unidirectional").map(({ lane, x, y }) => ({ x, y, tone: lane === "twin" ? "forbidden" : "future" })),
  });
}
