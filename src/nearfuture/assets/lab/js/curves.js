// Learning curves: loss over steps, whose axis is logarithmic, since most happens at the start.

import { svg } from "./dom.js";

const [WIDEST, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [760, 290, 34, 16, 30, 40];

// Of each line, `points` are pairs of a step and a loss; `limit` is a loss to compare with.
export function curvesChart({ label, x, y, steps, most, limit, lines, number, room = WIDEST }) {
  const width = Math.max(280, Math.min(WIDEST, room));
  const last = Math.log(steps);
  const place = (step) => LEFT + (Math.log(step) / last) * (width - LEFT - RIGHT);
  const height = (loss) => HEIGHT - BOTTOM - (Math.min(loss, most) / most) * (HEIGHT - BOTTOM - TOP);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, role: "img", "aria-label": label });
  for (let loss = 0; loss <= most; loss++) {
    picture.append(
      svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: height(loss), y2: height(loss) }),
      svg("text", { class: "soft", x: LEFT - 8, y: height(loss) + 4, "text-anchor": "end" }, number(loss)),
    );
  }
  for (const step of [1, 3, 10, 30, 100, 300, 1000].filter((step) => step <= steps)) {
    picture.append(svg("text", { class: "soft", x: place(step), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, number(step)));
  }
  picture.append(
    svg("text", { class: "soft", x: width - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, x),
    svg("text", { class: "soft", x: 0, y: 12 }, y),
    svg("line", { class: "grid middle", x1: LEFT, x2: width - RIGHT, y1: height(limit.loss), y2: height(limit.loss) }),
    svg("text", { class: "soft", x: width - RIGHT, y: height(limit.loss) - 6, "text-anchor": "end" }, limit.name),
  );
  for (const { tone, points, dashed = false, dotted = false } of lines) {
    const d = points.map(([step, loss], at) => `${at ? "L" : "M"}${place(step)},${height(loss)}`).join("");
    const kind = dotted ? "dotted" : dashed ? "dashed" : "";
    picture.append(svg("path", { class: `edge edge-${tone} ${kind}`, d }));
    if (dotted || !points.length) continue;
    const [step, loss] = points.at(-1);
    picture.append(svg("circle", { class: `point ${tone}`, cx: place(step), cy: height(loss), r: 5 }));
  }
  return picture;
}
