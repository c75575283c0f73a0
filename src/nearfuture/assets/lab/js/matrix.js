// A dependency matrix: a row an output, a column an input, a cell of the colour of its time.

import { hatch, svg } from "./dom.js";

const EDGE = 26; // room for the numbers of rows and columns

export class Matrix {
  #size;
  #cells = [];
  #cursor;
  #arrived;
  #frames;
  #fill;

  // `label` names the drawing; with `onPoint`, cells can be pointed at: it is given (output, input).
  constructor(frames, { label, cell = 26, numbers = true, onPoint = null }) {
    const edge = numbers ? EDGE : 0;
    this.#frames = frames;
    this.#size = { cell, edge };
    const width = edge + frames * cell + 1;
    const { defs, fill } = hatch();
    this.#fill = fill;
    this.element = svg("svg", {
      class: "matrix",
      viewBox: `0 0 ${width} ${width}`,
      width,
      role: "img",
      "aria-label": label,
      tabindex: onPoint ? 0 : null,
    });
    this.element.append(defs);
    for (let output = 0; output < frames; output++) {
      const row = [];
      for (let input = 0; input < frames; input++) {
        const rectangle = svg("rect", {
          x: edge + input * cell + 1,
          y: edge + output * cell + 1,
          width: cell - 1.5,
          height: cell - 1.5,
          rx: cell / 9,
        });
        row.push(rectangle);
        this.element.append(rectangle);
      }
      this.#cells.push(row);
      if (numbers) this.#number(output);
    }
    this.#arrived = svg("line", { class: "arrived", y1: edge - 4, y2: width, visibility: "hidden" });
    this.#cursor = svg("rect", {
      class: "cursor",
      width: cell + 2,
      height: cell + 2,
      rx: cell / 7,
      visibility: "hidden",
    });
    this.element.append(this.#arrived, this.#cursor);
    if (onPoint) this.#listen(onPoint);
  }

  // Shows what was measured, and as hatched what may not be seen.
  draw({ measured, declared = null }) {
    this.#cells.forEach((row, output) =>
      row.forEach((rectangle, input) => {
        const seen = measured[output][input];
        const allowed = declared === null || declared[output][input];
        const time = input < output ? "past" : input > output ? "future" : "present";
        const leak = seen && !allowed;
        rectangle.setAttribute("class", leak ? "forbidden" : seen ? time : "empty");
        const hatched = !seen && !allowed && input > output;
        if (hatched) rectangle.style.fill = this.#fill;
        else rectangle.style.removeProperty("fill");
      }),
    );
  }

  // A ring around one input of each output, such as the answer it is to guess.
  mark(inputOf) {
    const { cell, edge } = this.#size;
    this.#cells.forEach((_, output) => {
      const input = inputOf(output);
      if (input >= this.#frames) return;
      const [cx, cy] = [edge + (input + 0.5) * cell, edge + (output + 0.5) * cell];
      this.element.append(svg("circle", { class: "ring", cx, cy, r: cell / 4.5 }));
    });
  }

  // Only the inputs that have arrived, and only the outputs that exist by then.
  advance(arrived, exist) {
    const { cell, edge } = this.#size;
    this.#cells.forEach((row, output) =>
      row.forEach((rectangle, input) => {
        rectangle.classList.toggle("waiting", output >= exist);
        rectangle.classList.toggle("unknown", output >= exist && input >= arrived);
      }),
    );
    const all = arrived >= this.#frames;
    this.#arrived.setAttribute("visibility", all ? "hidden" : "visible");
    this.#arrived.setAttribute("x1", edge + arrived * cell);
    this.#arrived.setAttribute("x2", edge + arrived * cell);
  }

  point(output, input) {
    const { cell, edge } = this.#size;
    this.#cursor.setAttribute("x", edge + input * cell - 1.25);
    this.#cursor.setAttribute("y", edge + output * cell - 1.25);
    this.#cursor.setAttribute("visibility", "visible");
  }

  #number(at) {
    const { cell, edge } = this.#size;
    const middle = edge + (at + 0.5) * cell;
    const small = { class: "soft", "text-anchor": "middle", "dominant-baseline": "central" };
    this.element.append(
      svg("text", { ...small, x: middle, y: edge / 2 }, String(at + 1)),
      svg("text", { ...small, x: edge / 2, y: middle }, String(at + 1)),
    );
  }

  #listen(onPoint) {
    const { cell, edge } = this.#size;
    const inside = (value) => Math.max(0, Math.min(this.#frames - 1, value));
    let at = [0, 0];
    const move = (output, input) => {
      at = [inside(output), inside(input)];
      onPoint(...at);
    };
    const find = (event) => {
      const box = this.element.getBoundingClientRect();
      const scale = (edge + this.#frames * cell) / box.width;
      const index = (position) => Math.floor((position * scale - edge) / cell);
      move(index(event.clientY - box.top), index(event.clientX - box.left));
    };
    this.element.addEventListener("pointermove", find);
    this.element.addEventListener("pointerdown", find);
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    this.element.addEventListener("keydown", (event) => {
      const step = steps[event.key];
      if (!step) return;
      event.preventDefault();
      move(at[0] + step[0], at[1] + step[1]);
    });
    this.place = (output, input) => {
      at = [output, input];
    };
  }
}
