// The probability of one of two answers, step by step: lines between a floor and a ceiling.

import { svg } from "./dom.js";

const [WIDE, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [520, 210, 62, 14, 14, 40];

// `x` are the names of the steps, `answers` the names of 1 and 0; of each line, `values` may be
// fewer than there are steps; `at` is the step that is looked at.
export function probabilityChart({ label, x, name, answers, lines, at = null, room = WIDE, widest = WIDE }) {
  const width = Math.max(260, Math.min(widest, room));
  const column = (width - LEFT - RIGHT) / x.length;
  const place = (step) => LEFT + (step + 0.5) * column;
  const height = (p) => HEIGHT - BOTTOM - p * (HEIGHT - BOTTOM - TOP);
  const picture = svg("svg", {
    viewBox: `0 0 ${width} ${HEIGHT}`,
    width,
    role: "img",
    "aria-label": label,
    class: "probability",
  });
  if (at !== null) {
    picture.append(svg("rect", { class: "empty", x: LEFT + at * column, y: TOP, width: column, height: HEIGHT - BOTTOM - TOP, rx: 4 }));
  }
  for (const p of [0, 0.5, 1]) {
    picture.append(svg("line", { class: p === 0.5 ? "grid middle" : "grid", x1: LEFT, x2: width - RIGHT, y1: height(p), y2: height(p) }));
  }
  answers.forEach((answer, at) => {
    picture.append(svg("text", { class: "answer", x: LEFT - 8, y: height(1 - at) + 4, "text-anchor": "end" }, answer));
  });
  const longest = Math.max(...x.map((step) => String(step).length));
  const every = Math.ceil((longest * 7 + 8) / column); // so that names do not touch
  x.forEach((step, index) => {
    if (index % every) return;
    picture.append(svg("text", { class: "soft", x: place(index), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, String(step)));
  });
  picture.append(svg("text", { class: "soft", x: width - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, name));
  for (const { tone, values, dashed = false } of lines) {
    const d = values.map((p, index) => `${index ? "L" : "M"}${place(index)},${height(p)}`).join("");
    picture.append(svg("path", { class: `edge edge-${tone} ${dashed ? "dashed" : ""}`, d }));
    values.forEach((p, index) => {
      const dot = svg("circle", { class: `point ${tone}`, cx: place(index), cy: height(p), r: index === at ? 6.5 : 4.5 });
      dot.append(svg("title", {}, p.toFixed(3)));
      picture.append(dot);
    });
  }
  return picture;
}
