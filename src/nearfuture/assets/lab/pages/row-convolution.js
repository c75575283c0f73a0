// Equation (11) by its cells; what it costs in weights; what it costs in time.

import { bars } from "../js/bars.js";
import { Controls } from "../js/controls.js";
import { html, rich, svg } from "../js/dom.js";

export function defaults({ cells, sizes, latency }) {
  return {
    tau: cells.tau.default,
    frame: 3,
    channel: 2,
    width: sizes.width.default,
    frames: sizes.frames.default,
    model: latency.model.default,
    layers: latency.layers.default,
    seconds: latency.seconds.default,
  };
}

export async function show(lab) {
  const { drawing } = lab;
  const parts = [equation, weights, budget].map((part) => {
    const section = html("section", { class: "part-of-figure" });
    drawing.append(section);
    return part(lab, section);
  });
  await Promise.all(parts);
}

// Asks again whenever one of the keys changes, and shows the answer.
async function follow(lab, endpoint, keys, show, others = []) {
  const { state, api } = lab;
  let answer = await api.get(endpoint, state.all(...keys));
  show(answer);
  state.onChange((changed) => {
    if (changed.some((key) => keys.includes(key))) {
      lab.touched();
      lab.attempt(async () => {
        const next = await api.get(endpoint, state.all(...keys));
        if (next === null) return;
        answer = next;
        show(answer);
      });
    } else if (changed.some((key) => others.includes(key))) {
      lab.touched();
      show(answer);
    }
  });
}

async function equation(lab, section) {
  const { t, state, parameters } = lab;
  const place = html("div", { class: "controls" });
  const picture = html("div", { class: "cells" });
  const lines = html("div", { class: "terms", "aria-live": "polite" });
  section.append(
    html("h2", {}, t("equation-title")),
    html("p", { class: "formula" }, ...formula()),
    place,
    html("div", { class: "beside" }, picture, lines),
  );
  new Controls(place, state).slider("tau", {
    label: t("tau"),
    limits: parameters.cells.tau,
    tone: "of-future",
    show: (n) => t("frames-value", { n }),
  });
  const show = (found) => {
    const frame = Math.max(0, Math.min(found.frames, state.get("frame")) - 1);
    const channel = Math.max(0, Math.min(found.inputs.length, state.get("channel")) - 1);
    const focused = picture.contains(document.activeElement);
    picture.replaceChildren(drawCells(lab, found, frame, channel));
    if (focused) picture.firstChild.focus();
    lines.replaceChildren(...termTable(lab, found, frame, channel));
  };
  await follow(lab, "cells", ["tau"], show, ["frame", "channel"]);
}

const italic = (text) => html("var", {}, text);
const sub = (...parts) => html("sub", {}, ...parts);

function formula() {
  const sum = html("span", { class: "sum" }, "Σ", sub(italic("j"), " = 1 … τ + 1"));
  return [
    italic("r"), sub(italic("t"), ",", italic("i")), " = ", sum, " ",
    html("span", { class: "said-future" }, italic("W"), sub(italic("i"), ",", italic("j"))), " ",
    italic("h"), sub(italic("t"), " + ", italic("j"), " − 1,", italic("i")),
  ];
}

const [CELL, LINE, LEFT] = [46, 30, 40];

function drawCells(lab, found, frame, channel) {
  const { t, number, state } = lab;
  const { frames, inputs, outputs, terms } = found;
  const channels = inputs.length;
  const gap = 64;
  const [top, bottom] = [24, 24 + channels * LINE + gap];
  const [width, height] = [LEFT + frames * CELL + 1, bottom + channels * LINE + 1];
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width: width * 1.15,
    role: "img",
    tabindex: 0,
    "aria-label": t("cells-label"),
    class: "cell-grid",
  });
  const chosen = terms[channel][frame];
  const x = (s) => LEFT + s * CELL;
  const reads = new Map(chosen.map((term) => [`${term.frame},${term.channel}`, term]));
  for (let s = 0; s < frames; s++) {
    picture.append(svg("text", { class: "soft", x: x(s) + CELL / 2, y: 12, "text-anchor": "middle" }, String(s + 1)));
  }
  for (const [rows, y0, name] of [[inputs, top, "h"], [outputs, bottom, "r"]]) {
    for (let i = 0; i < channels; i++) {
      const label = svg("text", { x: LEFT - 10, y: y0 + (i + 0.5) * LINE, class: "math soft" }, name);
      label.append(svg("tspan", { class: "index", dy: 4 }, String(i + 1)));
      picture.append(label);
      for (let s = 0; s < frames; s++) {
        const term = name === "h" ? reads.get(`${s},${i}`) : null;
        const picked = name === "r" && s === frame && i === channel;
        const time = term ? (s === frame ? "present" : s > frame ? "future" : "forbidden") : picked ? "picked" : "empty";
        const box = svg("g", { class: `value ${name === "r" ? "output" : ""}` });
        box.append(
          svg("rect", { class: time, x: x(s) + 1, y: y0 + i * LINE + 1, width: CELL - 2, height: LINE - 2, rx: 4 }),
          svg("text", { x: x(s) + CELL / 2, y: y0 + (i + 0.5) * LINE, class: term ? "on" : "" }, number(rows[i][s], name === "h" ? 1 : 2)),
        );
        if (name === "r") {
          box.addEventListener("click", () => {
            state.set({ frame: s + 1, channel: i + 1 });
            lab.touched();
          });
        }
        picture.append(box);
      }
    }
  }
  for (const term of chosen) {
    const [from, to] = [x(term.frame) + CELL / 2, x(frame) + CELL / 2];
    const [y1, y2] = [top + (term.channel + 1) * LINE, bottom + channel * LINE];
    const tone = term.frame === frame ? "present" : term.frame > frame ? "future" : "forbidden";
    const middle = (y1 + y2) / 2;
    picture.prepend(svg("path", { class: `edge edge-${tone} thin`, d: `M${from},${y1}C${from},${middle} ${to},${middle} ${to},${y2}` }));
  }
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  picture.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const inside = (value, most) => Math.max(1, Math.min(most, value));
    state.set({
      channel: inside(channel + 1 + step[0], channels),
      frame: inside(frame + 1 + step[1], frames),
    });
    lab.touched();
  });
  return picture;
}

// The terms of the chosen output, one a line, and their sum.
function termTable({ t, number }, found, frame, channel) {
  const chosen = found.terms[channel][frame];
  const rows = chosen.map((term) => {
    const tone = term.frame > frame ? "said-future" : "";
    const j = term.frame - frame + 1;
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, `j = ${j}`),
      html("td", { class: tone }, number(term.weight, 2)),
      html("td", {}, "×"),
      html("td", {}, number(found.inputs[term.channel][term.frame], 1)),
      html("td", {}, "="),
      html("td", {}, number(term.product, 2)),
    );
  });
  const total = html(
    "tr",
    { class: "total" },
    html("th", { scope: "row", colspan: 5 }, italic("r"), sub(`${frame + 1},${channel + 1}`)),
    html("td", {}, number(found.outputs[channel][frame], 2)),
  );
  const head = html(
    "tr",
    {},
    html("th", {}),
    html("th", { scope: "col" }, italic("W")),
    html("td", {}),
    html("th", { scope: "col" }, italic("h")),
    html("td", {}),
    html("td", {}),
  );
  const waits = Math.max(...chosen.map((term) => term.frame)) - frame;
  const channels = new Set(chosen.map((term) => term.channel));
  const own = channels.size === 1 && channels.has(channel);
  const said = [
    t("waits", { output: frame + 1, n: waits, last: frame + 1 + waits }),
    t(own ? "own-channel" : "other-channels", { channel: channel + 1 }),
  ];
  return [
    html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows, total)),
    html("p", { class: "readout" }, ...rich(said.join(" "))),
  ];
}

async function weights(lab, section) {
  const { t, number, state, parameters } = lab;
  const place = html("div", { class: "controls" });
  const chart = html("div", {});
  const said = html("p", { class: "readout", "aria-live": "polite" });
  section.append(html("h2", {}, t("weights-title")), place, chart, said);
  const controls = new Controls(place, state);
  controls.slider("width", { label: t("width"), limits: parameters.sizes.width, show: number });
  controls.slider("frames", {
    label: t("tau"),
    limits: parameters.sizes.frames,
    tone: "of-future",
    show: (n) => t("frames-value", { n }),
  });
  await follow(lab, "sizes", ["width", "frames"], (found) => {
    const names = ["depthwise", "mixing", "rnn", "gru"];
    const whole = Math.max(...names.map((name) => found[name]));
    const rows = names.map((name) => ({
      name: t(`weights-${name}`),
      value: number(found[name]),
      parts: [{ size: found[name], tone: { depthwise: "future", mixing: "future" }[name] ?? "neutral" }],
    }));
    chart.replaceChildren(bars(rows, whole));
    const heavier = found.mixing > found.gru ? "heavier-both" : found.mixing > found.rnn ? "heavier-rnn" : "heavier-none";
    said.replaceChildren(...rich(`${t("times", { n: found.times })} ${t(heavier)}`));
  });
}

async function budget(lab, section) {
  const { t, number, state, parameters } = lab;
  const place = html("div", { class: "controls" });
  const chart = html("div", {});
  const said = html("p", { class: "readout", "aria-live": "polite" });
  section.append(html("h2", {}, t("budget-title")), place, chart, said);
  const controls = new Controls(place, state);
  controls.choice("model", {
    label: t("model"),
    options: parameters.latency.model.choices.map((model) => [model, t(model)]),
  });
  controls.slider("frames", {
    label: t("tau"),
    limits: parameters.latency.frames,
    tone: "of-future",
    show: (n) => t("frames-value", { n }),
    id: "budget-frames",
  });
  controls.slider("layers", { label: t("layers"), limits: parameters.latency.layers, tone: "of-future" });
  controls.slider("seconds", {
    label: t("utterance"),
    limits: parameters.latency.seconds,
    show: (n) => t("seconds-value", { n }),
  });
  await follow(lab, "latency", ["model", "frames", "layers", "seconds"], (found) => {
    const whole = Math.max(found.sum_ms, found.bidirectional_ms);
    const ms = (value) => t("ms", { ms: value });
    const tone = ({ name }, at) => (name.startsWith("lookahead") ? `future ${at % 2 ? "" : "other"}` : `wait-${at}`);
    const parts = found.items.map((item, at) => ({
      size: item.ms,
      tone: tone(item, at),
      title: `${itemName(t, item.name)}: ${ms(item.ms)}`,
    }));
    const list = html(
      "ul",
      { class: "items" },
      ...found.items.map((item, at) =>
        html("li", {}, html("span", { class: `key ${tone(item, at)}` }), `${itemName(t, item.name)} `, html("strong", {}, ms(item.ms))),
      ),
    );
    chart.replaceChildren(
      bars(
        [
          { name: t("row"), value: ms(found.sum_ms), parts, note: list },
          {
            name: t("both-ways"),
            value: ms(found.bidirectional_ms),
            parts: [{ size: found.bidirectional_ms, tone: "forbidden" }],
          },
        ],
        whole,
      ),
    );
    const key = found.worst_ms < found.sum_ms ? "spent-short" : "spent";
    const values = {
      n: found.lookahead_frames,
      layers: state.get("layers"),
      tau: state.get("frames"),
      lookahead: found.lookahead_ms,
      frame: found.frame_ms,
      rest: found.sum_ms - found.lookahead_ms,
      sum: found.sum_ms,
      worst: found.worst_ms,
    };
    said.replaceChildren(...rich(t(key, values)));
  });
}

// "lookahead 2" and "convolution 1" are numbered, "window" is not.
function itemName(t, name) {
  const [kind, number = ""] = name.split(" ");
  return t(`item-${kind}`, { number });
}
