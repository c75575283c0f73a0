// The states of cells over letters: what the running lab answers, each as one graph.

import { numbers, open } from "./graph.js";

const LETTERS = "abcd";

const read = (text) => ({ type: "int64", data: [...text].map((each) => LETTERS.indexOf(each)), dims: [text.length] });
const written = (letters) => letters.map((each) => LETTERS[each]).join("");

// `recorded` are answers to other letters: what they say about the cell itself stays.
async function states({ text, cell, swap }, { recorded }) {
  const graph = await open(`graphs/unrolled-${cell}.onnx`);
  const swapped = { type: "int64", data: [swap], dims: [] };
  const found = mapped(await graph.run({ text: read(text), swap: swapped }), numbers);
  const { input, state, bias, sum } = found;
  const { parameters, final } = await recorded({ cell });
  return {
    letters: text,
    h: found.h,
    terms: input ? { input, state, bias, sum } : null,
    swapped: written(found.swapped),
    moved: found.moved,
    other: written(found.other),
    left: found.left,
    parameters,
    outputs: [1, found.h.length, found.h[0].length],
    final,
  };
}

async function stack({ text, layers, directions, rows, layout }, { recorded }) {
  const graph = await open(`graphs/stacked-${directions}.onnx`);
  const batch = { type: "int64", data: [...Array(rows).keys()], dims: [rows] };
  const found = await graph.run({ text: read(text), rows: batch });
  const order = layout.replace("-", "_");
  const base = await recorded({ layers, directions });
  return {
    letters: text,
    directions: base.directions,
    layers: base.layers,
    inputs_shape: found[`x_${order}`].dims,
    outputs_shape: found[`outputs_${order}_${layers}`].dims,
    h_n_shape: found[`h_n_${layers}`].dims,
    outputs: numbers(found[`outputs_${layers}`]),
    h_n: numbers(found[`first_h_n_${layers}`]),
    apart: numbers(found[`apart_${layers}`]),
    parameters: base.parameters,
  };
}

const mapped = (tensors, change) =>
  Object.fromEntries(Object.entries(tensors).map(([name, each]) => [name, change(each)]));

export const answers = { states, stack };
