// One sentence in a batch with a longer one: how far each of its frames moves, with lengths and without.

import { html, rich, svg } from "../js/dom.js";

const KEYS = ["words", "padding", "fill"];

export function defaults({ drift }) {
  return Object.fromEntries(KEYS.map((key) => [key, drift[key].default]));
}

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t } = lab;
  const limits = parameters.drift;
  controls.slider("words", { label: t("words"), limits: limits.words });
  controls.slider("padding", { label: t("padding"), limits: limits.padding });
  controls.choice("fill", {
    label: t("fill"),
    options: limits.fill.choices.map((fill) => [fill, t(`fill-${fill}`)]),
  });
  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const lanes = html("div", { class: "read-rows" });
  const others = html("div", { class: "read-rows" });
  drawing.append(readout, lanes, others, legend(t));

  const draw = (found) => {
    const { naive, exact } = found;
    const height = Math.max(0.1, ...naive.forward, ...naive.backward, ...exact.backward, ...found.state);
    readout.replaceChildren(...rich(t("readout", said(lab, found))));
    lanes.replaceChildren(
      lane(lab, found, { name: "naive", height, ...naive, end: found.words + found.padding }),
      lane(lab, found, { name: "exact", height, ...exact, end: found.words }),
      lane(lab, found, { name: "state", height, state: found.state }),
    );
  };
  // Torch takes seconds to start, so what it says comes after the figure.
  const packing = async (found) => {
    const torch = await api.always("torch_packed", state.all(...KEYS));
    if (torch === null) {
      others.replaceChildren(html("p", { class: "axes" }, t("packed-absent")));
      return;
    }
    const height = Math.max(0.1, ...found.naive.forward, ...found.naive.backward, ...found.state);
    others.replaceChildren(
      lane(lab, found, { name: "packed", height, forward: torch.forward, backward: torch.backward, end: found.words }),
      html("p", { class: "readout" }, ...rich(t("packed-said", { drift: tiny(torch.drift), farthest: tiny(torch.farthest) }))),
    );
  };
  const first = await api.get("drift", state.all(...KEYS));
  draw(first);
  lab.attempt(() => packing(first));
  state.onChange(() => {
    lab.touched();
    lab.attempt(async () => {
      const found = await api.get("drift", state.all(...KEYS));
      if (found === null) return;
      draw(found);
      await packing(found);
    });
  });
}

// A number near 0, as one writes it.
function tiny(value) {
  if (value === 0) return "0";
  const [digits, power] = value.toExponential(0).split("e");
  return `${digits}\u00a0·\u00a010${[...power].map((sign) => "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹"["-+0123456789".indexOf(sign)]).join("")}`;
}

const percent = (number, share) => `${number(100 * share, share < 0.01 ? 2 : 0)}%`;

function said({ t, number }, found) {
  return {
    last: percent(number, found.naive.backward.at(-1)),
    first: percent(number, found.naive.backward[0]),
    exact: t(found.same ? "same" : "not-same"),
  };
}

const [COLUMN, BOX, BAR, LEFT] = [40, 26, 58, 4];

// The frames of a row, what its directions read, and above each frame how far it has moved.
function lane(lab, found, { name, height, forward = null, backward = null, state = null, end = 0 }) {
  const { t, number } = lab;
  const frames = found.words + found.padding;
  const width = LEFT + frames * COLUMN;
  const [boxes, bottom] = [BAR + 18, BAR + 18 + BOX + 34];
  const x = (frame) => LEFT + frame * COLUMN;
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${bottom}`,
    width,
    role: "img",
    "aria-label": t(`${name}-label`),
  });
  const bar = (frame, share, tone, at, wide) => {
    const size = (BAR * share) / height;
    const title = svg("title", {}, percent(number, share));
    const place = { x: x(frame) + at, y: boxes - 4 - size, width: wide, height: size, rx: 2 };
    picture.append(svg("rect", { ...place, class: `${tone} drift` }, title));
  };
  const value = (frame, share) => {
    const y = boxes - 9 - (BAR * share) / height;
    picture.append(svg("text", { x: x(frame) + COLUMN / 2 - 2, y, "text-anchor": "middle", class: "small" }, percent(number, share)));
  };
  for (let frame = 0; frame < frames; frame++) {
    const word = frame < found.words;
    const box = svg("rect", { x: x(frame), y: boxes, width: COLUMN - 4, height: BOX, rx: 5, class: word ? "word" : "padded" });
    const middle = { x: x(frame) + COLUMN / 2 - 2, y: boxes + BOX / 2 + 1, "text-anchor": "middle", "dominant-baseline": "central" };
    picture.append(box, svg("text", { ...middle, class: word ? "" : "soft" }, word ? String(frame + 1) : t(`sign-${lab.state.get("fill")}`)));
    if (forward !== null && word) {
      bar(frame, forward[frame], "past", 3, 14);
      bar(frame, backward[frame], "future", 19, 14);
      value(frame, Math.max(forward[frame], backward[frame]));
    }
    if (state !== null && frame >= found.words - 1) {
      const share = state[frame - found.words + 1];
      bar(frame, share, "past", 8, 20);
      value(frame, share);
    }
  }
  const y = boxes + BOX + 12;
  if (forward !== null) {
    picture.append(arrow(x(0), x(end) - 6, y, "past"), arrow(x(end) - 6, x(0), y + 13, "future"));
  } else {
    picture.append(arrow(x(0), x(frames) - 6, y, "past"));
  }
  const scroll = html("div", { class: "wide", tabindex: 0, role: "group", "aria-label": t(`${name}-title`) }, picture);
  return html("section", { class: "read-row" }, html("h2", {}, t(`${name}-title`)), html("p", {}, t(`${name}-note`)), scroll);
}

function arrow(from, to, y, tone) {
  const back = Math.sign(from - to) * 6;
  const d = `M${from},${y}H${to}M${to + back},${y - 4}L${to},${y}L${to + back},${y + 4}`;
  return svg("path", { d, class: `edge edge-${tone} reading` });
}

function legend(t) {
  const entries = ["past", "future"].map((tone) =>
    html("li", {}, html("span", { class: `key ${tone}`, "aria-hidden": "true" }), t(`tone-${tone}`)),
  );
  return html("ul", { class: "legend" }, ...entries);
}
