// The outputs of a stack of recurrent layers at every step, its last states, and where those stand.

import { svg } from "./dom.js";

const [COLUMN, WIDE, HIGH, GAP] = [62, 54, 58, 8];
const TONES = ["past", "future"]; // forwards, backwards

// `answer` is "one" for the whole text, or "each" for one at every step.
export function drawStack({ t, number }, { letters, directions, layers, outputs, h_n: states }, answer) {
  const left = 78;
  const height = directions * (HIGH + GAP);
  const line = letters.length * COLUMN;
  const width = left + Math.max(line, layers * directions * COLUMN) + 4;
  const below = height + 62;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${below + HIGH + 26}`, width, class: "stack" });
  const limit = Math.max(0.01, ...outputs.flat(2).map(Math.abs), ...states.flat().map(Math.abs));
  const box = (x, y, values, tone, ring) => {
    const group = svg("g", {}, svg("rect", { class: `frame ${ring}`, x, y, width: WIDE, height: HIGH, rx: 7 }));
    values.forEach((value, unit) => {
      const size = ((HIGH / 2 - 4) * Math.abs(value)) / limit;
      const place = { x: x + 4 + unit * 5.9, width: 4.4, height: Math.max(0.5, size), rx: 1 };
      const bar = svg("rect", { ...place, y: value > 0 ? y + HIGH / 2 - size : y + HIGH / 2, class: tone });
      bar.append(svg("title", {}, number(value, 3)));
      group.append(bar);
    });
    return group;
  };
  picture.append(
    svg("text", { class: "answer", x: 0, y: height / 2 + 2 }, "outputs"),
    svg("text", { class: "answer", x: 0, y: below + HIGH / 2 + 4 }, "h_n"),
  );
  const last = letters.length - 1;
  [...letters].forEach((letter, step) => {
    const x = left + step * COLUMN;
    for (let direction = 0; direction < directions; direction++) {
      const ends = step === (direction ? 0 : last); // where this direction has read all
      const naive = step === last && !ends; // what `outputs[:, -1]` takes instead
      const ring = answer === "each" || ends ? "taken" : naive ? "naive" : "";
      picture.append(box(x, direction * (HIGH + GAP) + 2, outputs[step][direction], TONES[direction], ring));
    }
    picture.append(svg("text", { class: "sign", x: x + WIDE / 2, y: height + 22, "text-anchor": "middle" }, letter));
  });
  states.forEach((values, at) => {
    const top = at >= states.length - directions;
    const x = left + at * COLUMN;
    picture.append(
      box(x, below, values, TONES[at % directions], top && answer === "one" ? "taken" : ""),
      svg("text", { class: "soft small", x: x + WIDE / 2, y: below + HIGH + 14, "text-anchor": "middle" }, `[${at}]`),
    );
  });
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", t("stack-label"));
  return picture;
}
