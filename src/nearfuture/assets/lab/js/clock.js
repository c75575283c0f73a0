// The time of a sound, and of what comes after it: a button, a slider, and the sound itself.

import { html } from "./dom.js";

export class Clock {
  length = 0;
  #sound = 0; // its length in ms
  #at = 0;
  #began = null; // on the browser's clock, as if it had begun at 0
  #audio = html("audio", { preload: "auto" });
  #button;
  #slider;
  #said = html("span", { class: "player-said" });
  #options;

  // `onTime` is given the time in ms whenever it changes.
  constructor(options) {
    this.#options = options;
    this.#button = html("button", { type: "button", class: "button", onclick: () => this.#toggle() }, options.play);
    this.#slider = html("input", { type: "range", min: 0, max: 1000, "aria-label": options.label });
    this.#slider.addEventListener("input", () => {
      this.stop();
      this.go((this.#slider.valueAsNumber * this.length) / 1000);
    });
    this.element = html("div", { class: "player clock" }, this.#button, this.#slider, this.#said, this.#audio);
  }

  load(url, sound) {
    this.#audio.src = url;
    this.#sound = this.length = sound;
    this.go(0);
  }

  extend(length) {
    this.length = Math.max(this.length, length);
  }

  go(ms) {
    this.#at = Math.max(0, Math.min(this.length, ms));
    this.#slider.value = (1000 * this.#at) / this.length;
    this.#slider.style.setProperty("--filled", `${(100 * this.#at) / this.length}%`);
    const said = this.#options.say(this.#at);
    this.#slider.setAttribute("aria-valuetext", said);
    this.#said.textContent = said;
    this.#options.onTime(this.#at);
  }

  stop() {
    this.#began = null;
    this.#audio.pause();
    this.#button.textContent = this.#options.play;
  }

  async #toggle() {
    if (this.#began !== null) return this.stop();
    if (this.#at >= this.length - 1) this.go(0);
    this.#button.textContent = this.#options.stop;
    this.#options.onPlay();
    const from = this.#at;
    this.#began = performance.now() - from;
    if (from < this.#sound) {
      this.#audio.currentTime = from / 1000;
      // Where there is no loudspeaker, the race goes on in silence.
      await this.#audio.play().catch(() => null);
      if (this.#began === null) return;
      this.#began = performance.now() - from;
    }
    requestAnimationFrame(() => this.#tick());
  }

  #tick() {
    if (this.#began === null) return;
    // While it sounds, the sound is the clock.
    const { paused, ended, currentTime } = this.#audio;
    const now = performance.now() - this.#began;
    const heard = 1000 * currentTime;
    if (!paused && !ended && heard > 0 && Math.abs(heard - now) > 40) this.#began += now - heard;
    this.go(performance.now() - this.#began);
    if (this.#at >= this.length) return this.stop();
    requestAnimationFrame(() => this.#tick());
  }
}
