// The dependency matrix of a stack of layers, and the way of each dependency through them.

import { html, rich, svg } from "../js/dom.js";
import { legend } from "../js/legend.js";
import { Matrix } from "../js/matrix.js";
import { Player } from "../js/player.js";

export function defaults({ matrix }) {
  return {
    family: matrix.family.default,
    tau: matrix.tau.default,
    layers: matrix.layers.default,
    output: 7,
    input: 9,
    own: "",
  };
}

const MODEL = ["family", "tau", "layers", "own"];

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t, number } = lab;
  const limits = parameters.matrix;
  controls.choice("family", {
    label: t("family"),
    options: limits.family.choices.map((family) => [family, t(family)]),
  });
  const tau = controls.slider("tau", {
    label: t("tau"),
    limits: limits.tau,
    tone: "of-future",
    show: (value) => t("tau-value", { n: value }),
  });
  controls.slider("layers", { label: t("layers"), limits: limits.layers });

  const ask = () =>
    state.get("own")
      ? api.get("own", { stack: state.get("own") })
      : api.get("matrix", state.all("family", "tau", "layers"));
  let wrong = null; // what is wrong with the layers of the address
  let found = await ask().catch((error) => {
    if (!state.get("own")) throw error;
    wrong = error;
    return api.get("matrix", state.all("family", "tau", "layers"));
  });
  let arrived = found.frames;
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const facts = html("dl", { class: "facts" });
  const matrix = new Matrix(found.frames, {
    label: t("matrix-label"),
    onPoint: (output, input) => {
      state.set({ output: output + 1, input: input + 1 });
      lab.touched();
    },
  });
  const ways = html("div", { class: "way" });
  const player = new Player({
    label: t("play"),
    pause: t("pause"),
    still: lab.still,
    frames: found.frames,
    name: (n) => t("arrived", { n, ms: n * found.frame_ms, exist: found.emitted[n] }),
    onFrame: (n) => {
      arrived = n;
      matrix.advance(n, found.emitted[n]);
      lab.touched();
    },
  });
  drawing.append(
    html(
      "div",
      { class: "beside" },
      html("div", { class: "matrix-part" }, html("p", { class: "axis-name" }, t("axes")), matrix.element, player.element),
      html("div", { class: "way-part" }, facts, readout, ways),
    ),
    legend(t, ["past", "present", "future", "forbidden"]),
    ownLayers(lab, lab.copied ? { torch: false } : await api.get("installed")),
  );

  const point = () => {
    const [output, input] = [state.get("output"), state.get("input")].map((frame) =>
      Math.max(0, Math.min(found.frames - 1, frame - 1)),
    );
    matrix.point(output, input);
    matrix.place(output, input);
    const way = found.ways[output][input];
    readout.replaceChildren(...rich(explain(t, found, way, output, input)));
    ways.replaceChildren(drawWay(t, found, way, output, input));
  };
  const draw = () => {
    tau.hidden = state.get("own") || state.get("family") !== "row-convolution";
    matrix.draw(found);
    matrix.advance(arrived, found.emitted[arrived]);
    facts.replaceChildren(
      fact(t("measured"), lookahead(t, found.lookahead), t(found.agree ? "agrees" : "disagrees")),
      fact(t("first"), t("ms", { ms: first(found) * found.frame_ms }), t("first-note", { n: first(found) })),
    );
    point();
  };
  state.onChange((changed) => {
    if (!changed.some((key) => MODEL.includes(key))) return point();
    lab.touched();
    lab.attempt(async () => {
      if (state.get("own")) readout.textContent = t("measuring"); // torch may have to start first
      const answer = await ask().catch((error) => {
        point();
        throw error;
      });
      if (answer === null) return;
      found = answer;
      draw();
    });
  });
  draw();
  if (wrong) throw wrong;
}

// Where torch is installed, layers can be typed.
function ownLayers({ t, state, parameters }, { torch, words }) {
  const part = html("section", { class: "part-of-figure own-part" }, html("h2", {}, t("own-title")));
  if (!torch) {
    part.append(html("p", { class: "readout" }, t("own-without-torch")));
    return part;
  }
  const { default: example } = parameters.own.stack;
  const field = html("input", {
    id: "own-layers",
    type: "text",
    maxlength: 120,
    placeholder: example,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    value: state.get("own"),
  });
  const leave = () => state.set({ own: "" });
  const back = html("button", { type: "button", class: "plain", onclick: leave }, t("own-back"));
  const form = html(
    "form",
    {
      class: "own-layers",
      onsubmit: (event) => {
        event.preventDefault();
        state.set({ own: field.value.trim() || example });
        field.value = state.get("own");
      },
    },
    html("label", { class: "name", for: "own-layers" }, t("own-label")),
    field,
    html("button", { type: "submit", class: "plain" }, t("own-measure")),
    back,
  );
  const draw = (changed) => {
    const chosen = changed.some((key) => ["family", "tau", "layers"].includes(key));
    if (chosen && state.get("own")) state.set({ own: "" }); // another model was chosen
    back.hidden = !state.get("own");
    if (back.hidden) field.value = "";
  };
  state.onChange(draw);
  draw([]);
  part.append(form, html("p", { class: "readout" }, t("own-words", { words: words.join(", ") })));
  return part;
}

const first = (found) => found.emitted.findIndex((count) => count > 0);

function fact(name, value, note) {
  const small = html("small", {}, ` ${note}`);
  return html("div", {}, html("dt", {}, name), html("dd", {}, value, html("br"), small));
}

function lookahead(t, frames) {
  return frames === null ? t("whole") : t("frames", { n: frames });
}

// What a cell says, and which way the dependency takes, from the input up to the output.
function explain(t, found, way, output, input) {
  const where = t("cell", { output: output + 1, input: input + 1 });
  if (way === null) {
    const why = input > output ? "not-seen-future" : "not-seen";
    return `${where} ${t(why, { n: input - output, output: output + 1, input: input + 1 })}`;
  }
  const steps = [];
  for (let layer = found.layers.length - 1; layer >= 0; layer--) {
    const at = found.layers.length - layer;
    const ahead = way[at] - way[at - 1];
    const name = t(`layer-${found.layers[layer]}`, { number: layerNumber(found, layer) });
    const attention = /attention|^convolution/.test(found.layers[layer]);
    const back = attention ? "back-attention" : "carried";
    const kind = ahead === 0 ? "same" : ahead < 0 ? back : `ahead-${found.layers[layer]}`;
    steps.unshift(t(kind, { layer: name, n: Math.abs(ahead) }));
  }
  return `${where} ${steps.join(" ")}`;
}

function layerNumber(found, layer) {
  return found.layers.slice(0, layer + 1).filter((kind) => kind === found.layers[layer]).length;
}

// The layers unrolled over time, inputs below; the way of the chosen cell through them.
function drawWay(t, found, way, output, input) {
  const levels = found.layers.length + 1;
  const [left, column, line] = [22, 24, levels > 5 ? 32 : 44];
  const [width, height] = [left + found.frames * column, levels * line];
  const x = (frame) => left + (frame + 0.5) * column;
  const y = (level) => height - (level + 0.5) * line;
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    role: "img",
    "aria-label": t("way-label"),
  });
  for (let level = 0; level < levels; level++) {
    const name = level === 0 ? "x" : level === levels - 1 ? "y" : "h";
    picture.append(svg("text", { class: "math soft", x: 4, y: y(level) + 5 }, name));
    for (let frame = 0; frame < found.frames; frame++) {
      picture.append(svg("circle", { class: "node", cx: x(frame), cy: y(level), r: 3 }));
    }
  }
  if (way !== null) {
    for (let at = 0; at + 1 < way.length; at++) {
      const [above, below] = [levels - 1 - at, levels - 2 - at];
      const ahead = way[at + 1] - way[at];
      const time = ahead === 0 ? "present" : ahead < 0 ? "past" : "future";
      // Along the upper layer where a state is carried, straight where a window reaches.
      const reaches = /convolution|attention/.test(found.layers[below]);
      const bend = reaches ? "" : `L${x(way[at + 1])},${y(above)}`;
      const d = `M${x(way[at + 1])},${y(below)}${bend}L${x(way[at])},${y(above)}`;
      picture.append(svg("path", { class: `edge edge-${time}`, d }));
    }
    way.forEach((frame, at) => {
      const level = levels - 1 - at;
      picture.append(svg("circle", { class: "stop", cx: x(frame), cy: y(level), r: 5.5 }));
    });
  } else {
    picture.append(
      svg("circle", { class: "apart", cx: x(output), cy: y(levels - 1), r: 5.5 }),
      svg("circle", { class: "apart", cx: x(input), cy: y(0), r: 5.5 }),
    );
  }
  return picture;
}
