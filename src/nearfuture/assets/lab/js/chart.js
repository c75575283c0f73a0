// Lines and points over two axes.

import { svg } from "./dom.js";

const [WIDEST, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [640, 270, 36, 40, 32, 12];

// Values are in the units of the axes; `tone` is a class of a time; `room` is how wide it may be.
export function linesChart({ label, x, y, lines, points = [], number, room = WIDEST }) {
  const WIDTH = Math.min(WIDEST, room);
  const [least, most] = [x.values[0], x.values.at(-1)];
  const top = Math.max(...y.ticks);
  const place = (value) => LEFT + ((value - least) / (most - least)) * (WIDTH - LEFT - RIGHT);
  const height = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, role: "img", "aria-label": label });
  for (const tick of y.ticks) {
    picture.append(
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: height(tick), y2: height(tick) }),
      svg("text", { class: "soft", x: LEFT - 8, y: height(tick) + 4, "text-anchor": "end" }, number(tick)),
    );
  }
  for (const tick of x.ticks) {
    picture.append(svg("text", { class: "soft", x: place(tick), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, number(tick)));
  }
  picture.append(
    svg("text", { class: "soft", x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, x.name),
    svg("text", { class: "soft", x: 0, y: 12 }, y.name),
  );
  for (const { name, tone, values } of lines) {
    const d = values.map((value, at) => `${at ? "L" : "M"}${place(x.values[at])},${height(value)}`).join("");
    const near = Math.floor(0.8 * values.length); // its name stands there, above the line
    picture.append(
      svg("path", { class: `edge edge-${tone}`, d }),
      svg("text", { class: `on-line said-${tone}`, x: place(x.values[near]) - 10, y: height(values[near]) - 10, "text-anchor": "end" }, name),
    );
  }
  for (const { x: at, y: value, tone } of points) {
    picture.append(svg("circle", { class: `point ${tone}`, cx: place(at), cy: height(Math.min(top, value)), r: 5.5 }));
  }
  return picture;
}
