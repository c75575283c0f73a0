// One recording, three models: their probabilities and the alignment of what was said, over its spectrogram.

import { bars } from "../js/bars.js";
import { html, rich, svg } from "../js/dom.js";

export function defaults({ lanes }) {
  return { recording: lanes.recording.default, tau: lanes.tau.default };
}

const TONES = { twin: "forbidden", alone: "past", trained: "future" };

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t } = lab;
  controls.slider("recording", { label: t("recording"), limits: parameters.lanes.recording });
  controls.choice("tau", {
    label: t("tau"),
    options: parameters.lanes.tau.choices.map((tau) => [tau, t("tau-value", { tau })]),
  });
  const said = html("p", { class: "spoken" });
  const lanes = html("div", { class: "spectra" });
  const table = html("div", {});
  drawing.append(said, lanes, html("h2", { class: "chart-title" }, t("measured-title")), table);

  let sound = await api.get("spectrogram", state.all("recording"));
  // Lanes take the places of those before as they come, so that nothing moves.
  const listen = async () => {
    const [recording, tau] = [state.get("recording"), state.get("tau")];
    let about = null;
    let at = 0;
    for await (const line of api.lines("lanes", state.all("recording", "tau"))) {
      if (recording !== state.get("recording") || tau !== state.get("tau")) return;
      if (line.lane === undefined) {
        about = line;
        said.replaceChildren(...rich(t("said", { text: about.said })));
        continue;
      }
      const drawn = drawLane(lab, about, line, sound);
      if (lanes.children[at]) lanes.children[at].replaceWith(drawn);
      else lanes.append(drawn);
      at += 1;
    }
  };
  state.onChange((changed) => {
    lab.touched();
    lab.attempt(async () => {
      if (changed.includes("recording")) {
        const heard = await api.get("spectrogram", state.all("recording"));
        if (heard === null) return;
        sound = heard;
      }
      await listen();
    });
  });
  await listen();
  table.replaceChildren(...drawMeasured(lab, await api.get("measured")));
}

const [HEIGHT, LETTERS, NARROWEST] = [150, 22, 8.2];

// A model: what it writes, and below, over the sound, how probable each letter is at each frame.
function drawLane(lab, found, lane, sound) {
  const { t, number, state, drawing } = lab;
  const tone = TONES[lane.lane];
  const width = Math.max(drawing.clientWidth - 2, NARROWEST * found.frames);
  const x = (ms) => (width * ms) / found.ms;
  const time = (frame) => found.centre_ms + found.frame_ms * frame;
  const y = (probability) => HEIGHT - probability * (HEIGHT - LETTERS - 8);
  const title = t(`lane-${lane.lane}`, { tau: state.get("tau") });
  const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": t("lane-label", { name: title }) });
  for (const { text, values } of lane.curves) {
    const points = values.map((value, frame) => `${x(time(frame)).toFixed(1)},${y(value).toFixed(1)}`);
    const d = `M${x(time(0))},${HEIGHT}L${points.join("L")}L${x(time(values.length - 1))},${HEIGHT}Z`;
    picture.append(svg("path", { class: `spike ${tone}`, d }, svg("title", {}, text)));
  }
  for (const { text, frame } of lane.letters) {
    const at = x(time(frame));
    picture.append(
      svg("line", { class: "letter-mark", x1: at, x2: at, y1: LETTERS, y2: HEIGHT }),
      svg("text", { class: "aligned", x: at, y: LETTERS - 7, "text-anchor": "middle" }, text),
    );
  }
  const stack = html("div", { class: "spectrum" }, paint(sound, width, found.ms), picture);
  stack.style.setProperty("--width", `${width}px`);
  const words = lane.words.map(({ written, wrong }) => html("span", { class: `word-said ${wrong ? "wrong" : ""}` }, written || "–"));
  const facts = {
    late: t(lane.late_ms < 0 ? "early" : lane.late_ms > 0 ? "late" : "in-time", { ms: Math.abs(lane.late_ms) }),
    nats: number(lane.nats, 2),
    frames: number(lane.frames_a_letter, 1),
    blank: number(100 * lane.blank),
  };
  return html(
    "section",
    { class: `spectrum-lane ${lane.lane}` },
    html("h2", {}, html("span", { class: `key key-${tone}`, "aria-hidden": "true" }), title),
    html("p", { class: "words lane-text" }, ...words.flatMap((word) => [word, " "])),
    html("div", { class: "wide", tabindex: 0, role: "group", "aria-label": title }, stack),
    html("p", { class: "lane-facts" }, ...rich(t(lane.lane === "trained" ? "facts" : "facts-cost", facts))),
  );
}

// The spectrogram, low tones below: as dark as the model hears it loud.
function paint({ shades, hop_ms: hop, centre_ms: centre }, width, ms) {
  const bins = shades[0].length;
  const canvas = html("canvas", { width: shades.length, height: bins, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const image = context.createImageData(shades.length, bins);
  shades.forEach((column, at) =>
    column.forEach((shade, bin) => {
      image.data[4 * (at + (bins - 1 - bin) * shades.length) + 3] = 0.62 * shade;
    }),
  );
  context.putImageData(image, 0, 0);
  canvas.style.setProperty("--from", `${(100 * (centre - hop / 2)) / ms}%`);
  canvas.style.setProperty("--share", `${(100 * hop * shades.length) / ms}%`);
  return canvas;
}

function drawMeasured({ t, number }, { results, commit, processor, command }) {
  const rate = (value) => number(value, 1, 1);
  const rows = results.map(({ model, wer, wer_low: low, wer_high: high }) => {
    const tau = model.match(/τ = (\d+)/)?.[1];
    const name = tau ? "trained" : model === "both directions" ? "twin" : "alone";
    return {
      name: t(`lane-${name}`, { tau }),
      value: t("wer", { rate: rate(wer), low: rate(low), high: rate(high) }),
      parts: [{ size: wer, tone: `flat ${TONES[name]}` }],
    };
  });
  return [
    bars(rows, 100),
    html("p", { class: "axes" }, t("measured-from", { strings: results[0].strings }), " ", html("code", {}, command), ` (${commit}, ${processor})`),
  ];
}
