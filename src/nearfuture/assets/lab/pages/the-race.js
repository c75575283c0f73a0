// Three models on one recording: what each has written at every moment of the sound.

import { html, rich, svg } from "../js/dom.js";
import { Clock } from "../js/clock.js";
import { linesChart } from "../js/chart.js";

const LANES = ["unidirectional", "row-convolution", "twin"];

export function defaults({ run }) {
  return { recordings: run.recordings.default, tau: run.tau.default };
}

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t, number } = lab;
  controls.slider("recordings", { label: t("recordings"), limits: parameters.run.recordings });
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
  const wave = html("div", { class: "wave" });
  const status = html("p", { class: "working", role: "status" });
  const lanes = new Map(LANES.map((name) => [name, new Lane(lab, name)]));
  const chart = html("div", { class: "chart" });
  const measured = new Map();
  drawing.append(
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

  const run = async () => {
    clock.stop();
    status.textContent = t("working");
    for (const lane of lanes.values()) lane.clear();
    let sound = null;
    let end = 0;
    for await (const line of api.lines("run", state.all("recordings", "tau"))) {
      if (line.lane === undefined) {
        sound = line;
        clock.load(api.url("sound", state.all("recordings")), sound.ms);
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
    lab.attempt(async () => {
      if (changed.includes("tau")) limits = await api.get("waits", state.all("tau"));
      await run();
    });
  });
  await run();
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
      first: number(line.written_ms[0] / 1000, 1),
      mean: line.mean_wait_ms === null ? "–" : number(line.mean_wait_ms / 1000, 2),
      errors: line.errors,
      words: sound.words.length,
      compute: number(line.compute_ms / 1000, 2),
    };
    this.#facts.replaceChildren(...rich(t(tau === null ? "lane-said-twin" : "lane-said", values)));
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
      picture.append(svg("rect", { class: "future", x: x(word.end_ms), width: x(wait), ...row }));
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
