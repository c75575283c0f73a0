// A recurrent cell over letters: its state at every frame, and what that state is the sum of.

import { Controls } from "../js/controls.js";
import { html, rich, svg } from "../js/dom.js";
import { drawStack } from "../js/stack.js";

export function defaults({ states, stack }) {
  return {
    layers: stack.layers.default,
    directions: stack.directions.default,
    rows: stack.rows.default,
    layout: stack.layout.default,
    answer: "one",
    text: states.text.default,
    cell: states.cell.default,
    swap: states.swap.default,
    frame: 3,
  };
}

const MODEL = ["text", "cell", "swap"];

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t } = lab;
  controls.choice("cell", {
    label: t("cell"),
    options: parameters.states.cell.choices.map((cell) => [cell, t(`cell-${cell}`)]),
  });
  const field = html("input", {
    id: "control-text",
    type: "text",
    maxlength: 12,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    value: state.get("text"),
  });
  field.addEventListener("input", () => {
    const text = field.value.toLowerCase().replace(/[^abcd]/g, "");
    if (field.value !== text) field.value = text;
    if (text) state.set({ text, swap: 0, frame: Math.min(state.get("frame"), text.length) });
  });
  field.addEventListener("change", () => {
    if (!field.value) field.value = state.get("text"); // the field and the figure show one text
  });
  const name = html("label", { class: "name", for: "control-text" }, t("text"));
  document.getElementById("controls").append(html("div", { class: "control" }, name, field));
  controls.button(t("swap"), () => {
    const frame = Math.min(state.get("frame"), state.get("text").length - 1);
    state.set({ swap: state.get("swap") ? 0 : Math.max(0, frame) });
  });

  const chain = html("div", { class: "wide", tabindex: 0, role: "group", "aria-label": t("chain") });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const sums = html("div", { class: "wide" });
  const facts = html("dl", { class: "facts" });
  const part = html("section", { class: "part-of-figure" }, chain, readout, sums, facts);
  const shapes = html("section", { class: "part-of-figure" });
  drawing.append(part, shapes);

  let found = null;
  const draw = () => {
    const frame = Math.max(1, Math.min(found.letters.length, state.get("frame")));
    chain.replaceChildren(drawChain(lab, found, frame));
    readout.replaceChildren(...rich(said(lab, found)));
    sums.replaceChildren(terms(lab, found, frame));
    facts.replaceChildren(...described(lab, found));
  };
  const ask = async () => {
    const answer = await api.get("states", state.all(...MODEL));
    if (answer === null) return;
    found = answer;
    draw();
  };
  await ask();
  state.onChange((changed) => {
    lab.touched();
    if (changed.some((key) => MODEL.includes(key))) lab.attempt(ask);
    else draw();
  });
  await stacks(lab, shapes);
}

const STACK = ["text", "layers", "directions", "rows", "layout"];

// Layers on each other, one way or both: all outputs, the last states, and what a head takes of them.
async function stacks(lab, section) {
  const { state, api, parameters, t, number } = lab;
  const limits = parameters.stack;
  const place = html("div", { class: "controls" });
  const picture = html("div", { class: "wide", tabindex: 0, role: "group", "aria-label": t("stack-label") });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const facts = html("dl", { class: "facts" });
  section.append(html("h2", {}, t("stack-title")), html("p", { class: "axes" }, t("stack-note")), place, picture, readout, facts);
  const controls = new Controls(place, state);
  const choices = (key, values) => controls.choice(key, { label: t(key), options: values.map((value) => [value, t(`${key}-${value}`)]) });
  controls.slider("layers", { label: t("layers"), limits: limits.layers });
  choices("directions", limits.directions.choices);
  controls.slider("rows", { label: t("rows"), limits: limits.rows });
  choices("layout", limits.layout.choices);
  choices("answer", ["one", "each"]);
  let found = null;
  const draw = () => {
    const { answer } = state.all("answer");
    picture.replaceChildren(drawStack(lab, found, answer));
    const end = found.apart.at(-1);
    const key = answer === "each" ? "each-step" : found.directions === 1 ? "same-state" : "other-state";
    readout.replaceChildren(...rich(t(key, { apart: percent(number, end), n: found.letters.length })));
    const shape = (sizes) => `(${sizes.join(", ")})`;
    facts.replaceChildren(
      fact("x", shape(found.inputs_shape), t("inputs-note")),
      fact("outputs", shape(found.outputs_shape), t(`shape-${state.get("layout")}`)),
      fact("h_n", shape(found.h_n_shape), t("shape-h_n")),
      fact(t("parameters"), number(found.parameters), t("stack-parameters")),
    );
  };
  const renew = async () => {
    const answer = await api.get("stack", state.all(...STACK));
    if (answer === null) return;
    found = answer;
    draw();
  };
  await renew();
  state.onChange((changed) => {
    if (changed.some((key) => STACK.includes(key))) lab.attempt(renew);
    else if (changed.includes("answer")) draw();
  });
}

const fact = (name, value, note) =>
  html("div", {}, html("dt", {}, name), html("dd", {}, value, html("br"), html("small", {}, note)));

const percent = (number, share) => `${number(100 * share, share < 0.1 ? 1 : 0)}%`;

function said({ t, number, state }, found) {
  if (state.get("swap") && found.swapped !== found.letters) {
    return t("swapped", { other: found.swapped, moved: percent(number, found.moved) });
  }
  const left = percent(number, found.left.at(-1));
  return t("left", { other: found.other, left, n: found.letters.length });
}

const [COLUMN, CELL, BAR] = [76, 62, 40];

// Letters below, states above them; a state is drawn by its eight values, up or down from 0.
function drawChain(lab, found, frame) {
  const { t, number, state } = lab;
  const frames = found.letters.length;
  const [top, letters, lasting] = [4, 4 + 2 * BAR + 34, 4 + 2 * BAR + 110];
  const width = frames * COLUMN + 8;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${lasting + 50}`, width, class: "chain" });
  const x = (at) => 4 + at * COLUMN;
  const limit = Math.max(1, ...found.h.flat().map(Math.abs));
  found.h.forEach((values, at) => {
    const chosen = at + 1 === frame;
    const group = svg("g", {
      class: `step ${chosen ? "chosen" : ""}`,
      role: "button",
      tabindex: 0,
      "aria-label": t("step", { n: at + 1, letter: found.letters[at] }),
      "aria-pressed": chosen ? "true" : "false",
    });
    const pick = () => {
      state.set({ frame: at + 1 });
      lab.touched();
      document.querySelectorAll(".step")[at]?.focus();
    };
    group.addEventListener("click", pick);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick();
    });
    const middle = top + BAR + 4;
    group.append(svg("rect", { class: "frame", x: x(at), y: top, width: CELL, height: 2 * BAR + 8, rx: 8 }));
    values.forEach((value, unit) => {
      const size = (BAR * Math.abs(value)) / limit;
      const place = { x: x(at) + 5 + unit * 6.6, width: 5, height: Math.max(0.5, size), rx: 1 };
      const bar = svg("rect", { ...place, y: value > 0 ? middle - size : middle, class: "past" });
      bar.append(svg("title", {}, number(value, 3)));
      group.append(bar);
    });
    const letter = { x: x(at) + CELL / 2, "text-anchor": "middle" };
    group.append(
      svg("line", { class: "zero", x1: x(at) + 4, x2: x(at) + CELL - 4, y1: middle, y2: middle }),
      svg("path", { class: "edge edge-present thin", d: `M${letter.x},${letters - 2}V${letters - 18}` }),
      svg("rect", { class: "letter", x: letter.x - 15, y: letters, width: 30, height: 30, rx: 6 }),
      svg("text", { ...letter, y: letters + 20, class: "sign" }, found.letters[at]),
    );
    if (at + 1 < frames) {
      const d = `M${x(at) + CELL + 1},${middle}H${x(at + 1) - 2}`;
      picture.append(svg("path", { class: "edge edge-past thin", d }));
    }
    picture.append(group);
    const share = Math.min(1.5, found.left[at]);
    picture.append(
      svg("rect", { class: "left", x: letter.x - 10, y: lasting + 26 - 24 * share, width: 20, height: 24 * share, rx: 2 }),
      svg("text", { ...letter, y: lasting + 42, class: "small" }, percent(number, found.left[at])),
    );
  });
  return picture;
}

const fixed = (value) => value.toFixed(2).replace("-", "−");

// Each value of one state: what comes from the letter, from the state before, and from the bias.
function terms({ t }, found, frame) {
  if (found.terms === null) return html("p", { class: "axes" }, t("gates"));
  const at = frame - 1;
  const kinds = ["input", "state", "bias", "sum"];
  const cell = (value) => html("td", {}, fixed(value));
  const head = [t("value"), ...kinds.map((kind) => t(`term-${kind}`)), t("term-h")].map((text) =>
    html("th", { scope: "col" }, text),
  );
  const rows = found.h[at].map((h, unit) =>
    html(
      "tr",
      {},
      html("th", { scope: "row" }, String(unit + 1)),
      ...kinds.map((kind) => cell(found.terms[kind][at][unit])),
      html("td", {}, html("strong", {}, fixed(h))),
    ),
  );
  const caption = html("caption", {}, t("terms", { n: frame, letter: found.letters[at] }));
  return html("table", { class: "numbers close" }, caption, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...rows));
}

function described({ t, number }, found) {
  const shape = (sizes) => `(${sizes.join(", ")})`;
  return [
    fact(t("parameters"), number(found.parameters[2]), t("parameters-note", { n: found.parameters[1] })),
    fact("outputs", shape(found.outputs), t("outputs-note")),
    fact("h_n", shape(found.final), t("final-note")),
  ];
}
