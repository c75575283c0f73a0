// Sliders, choices and buttons; each shows and changes one value of a page's state.

import { html } from "./dom.js";

export class Controls {
  #root;
  #state;

  constructor(root, state) {
    this.#root = root;
    this.#state = state;
  }

  // A number. `limits` has min, max and step; `show` says how the number is written.
  slider(key, { label, limits, show = String, tone = "", id = `control-${key}` }) {
    const output = html("output", { for: id });
    const input = html("input", { type: "range", id, ...only(limits), class: tone });
    const draw = () => {
      const value = this.#state.get(key);
      input.value = value;
      output.textContent = show(value);
      input.setAttribute("aria-valuetext", show(value));
      const share = (input.value - limits.min) / (limits.max - limits.min || 1);
      input.style.setProperty("--filled", `${100 * share}%`);
    };
    input.addEventListener("input", () => this.#state.set({ [key]: input.valueAsNumber }));
    const name = html("label", { class: "name", for: id }, `${label} `, output);
    return this.#add(html("div", { class: "control" }, name, input), draw);
  }

  // One of a few. `options` are pairs of a value and its label.
  choice(key, { label, options }) {
    const inputs = options.map(([value]) =>
      html("input", {
        type: "radio",
        name: `control-${key}`,
        value,
        onchange: () => this.#state.set({ [key]: value }),
      }),
    );
    const labels = options.map(([, text], at) => html("label", {}, inputs[at], text));
    const draw = () => {
      options.forEach(([value], at) => {
        inputs[at].checked = value === this.#state.get(key);
      });
    };
    const legend = html("legend", {}, label);
    const set = html("div", { class: "options" }, ...labels);
    return this.#add(html("fieldset", { class: "choice" }, legend, set), draw);
  }

  button(label, act) {
    const button = html("button", { type: "button", class: "plain", onclick: act }, label);
    this.#root.append(button);
    return button;
  }

  #add(element, draw) {
    this.#root.append(element);
    this.#state.onChange(draw);
    draw();
    return element;
  }
}

function only({ min, max, step }) {
  return { min, max, step };
}
