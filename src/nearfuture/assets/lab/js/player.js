// Time that runs, stops and can be moved: a button and a slider over frames.

import { html } from "./dom.js";

const FRAME_MS = 250;

export class Player {
  #at;
  #timer = null;
  #button;
  #slider;
  #said;
  #options;

  // `name` says what a moment is called; `onFrame` shows it. It begins at the end, all arrived.
  constructor(options) {
    this.#options = options;
    const { label, frames, name } = options;
    this.#at = frames;
    this.#button = html("button", { type: "button", class: "plain", onclick: () => this.toggle() }, label);
    this.#slider = html("input", { type: "range", min: 0, max: frames, step: 1, "aria-label": label });
    this.#slider.addEventListener("input", () => {
      this.stop();
      this.#go(this.#slider.valueAsNumber);
    });
    this.#said = html("span", { class: "player-said" });
    this.element = html("div", { class: "player" }, this.#button, this.#slider, this.#said);
    this.#draw(name(frames));
  }

  toggle() {
    if (this.#timer !== null) return this.stop();
    const { frames, pause } = this.#options;
    if (this.#at >= frames) this.#go(0);
    this.#button.textContent = pause;
    this.#timer = setInterval(() => {
      this.#go(this.#at + 1);
      if (this.#at >= frames) this.stop();
    }, FRAME_MS);
  }

  stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.#button.textContent = this.#options.label;
  }

  // Says again where time is, after the figure has changed.
  renew() {
    this.#draw(this.#options.name(this.#at));
  }

  #go(at) {
    this.#at = at;
    this.#options.onFrame(at);
    this.renew();
  }

  #draw(text) {
    this.#slider.value = this.#at;
    this.#slider.style.setProperty("--filled", `${(100 * this.#at) / this.#options.frames}%`);
    this.#slider.setAttribute("aria-valuetext", text);
    this.#said.textContent = text;
  }
}
