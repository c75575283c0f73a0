// What a model hears and thinks over the last seconds: a spectrogram, and below it a row of
// probabilities for each symbol. Columns come from the server as light, 0 to 255.

import { html } from "./dom.js";

const SPAN_MS = 8000;

export class Scope {
  element;
  #begin = 0; // of what is shown
  #bands;
  #letters;
  #names = html("div", { class: "scope-names", "aria-hidden": "true" });
  #words = html("div", { class: "scope-words", "aria-hidden": "true" });
  #plot;

  constructor({ spectrogram, probabilities }) {
    this.#bands = new Strip("scope-bands", spectrogram);
    this.#letters = new Strip("scope-letters", probabilities);
    this.#plot = html("div", { class: "scope-plot" }, this.#bands.canvas, this.#words, this.#letters.canvas);
    this.element = html("div", { class: "scope" }, this.#names, this.#plot);
    this.show(0, 0);
  }

  // Another stream will begin.
  clear() {
    this.#words.replaceChildren();
    this.#begin = 0;
    this.show(0, 0);
  }

  // It begins, with rows for these symbols.
  begin(scale) {
    this.#bands.begin(scale.hop_ms, 40, scale.window_ms / 2);
    this.#letters.begin(scale.frame_ms, scale.symbols.length, scale.centre_ms);
    const names = scale.symbols.map((symbol) => ({ "": "–", " ": "␣" })[symbol] ?? symbol);
    this.#names.replaceChildren(...names.map((name) => html("span", {}, name)));
  }

  accept({ bands, probabilities }) {
    // Low pitches below.
    for (const column of bands) this.#bands.push(column.reverse(), this.#begin, SPAN_MS);
    for (const column of probabilities) this.#letters.push(column, this.#begin, SPAN_MS);
  }

  // Sound has come until now, and is settled until then.
  show(now, settled) {
    if (now > this.#begin + SPAN_MS) {
      this.#begin += SPAN_MS / 2;
      this.#bands.shift(SPAN_MS / 2);
      this.#letters.shift(SPAN_MS / 2);
      for (const word of this.#words.children) this.#place(word);
    }
    this.#plot.style.setProperty("--now", this.#share(now));
    this.#plot.style.setProperty("--settled", this.#share(settled));
  }

  // Where a word is spoken.
  word(text, start, end) {
    const word = html("span", { "data-start": start, "data-end": end }, text);
    this.#place(word);
    this.#words.append(word);
    return word;
  }

  #place(word) {
    const [start, end] = [Number(word.dataset.start), Number(word.dataset.end)];
    word.style.setProperty("--start", this.#share(start));
    word.style.setProperty("--width", `${(100 * (end - start)) / SPAN_MS}%`);
    word.hidden = end < this.#begin;
  }

  #share(ms) {
    return `${Math.max(0, (100 * (ms - this.#begin)) / SPAN_MS)}%`;
  }
}

// Columns one behind another, a pixel each; the style sheet makes them as large as they are shown.
class Strip {
  canvas;
  #context;
  #next = 0; // in ms, where the next column begins
  #column = 1; // in ms

  constructor(name, label) {
    this.canvas = html("canvas", { class: name, role: "img", "aria-label": label, width: 1, height: 1 });
    this.#context = this.canvas.getContext("2d", { willReadFrequently: true });
  }

  begin(columnMs, rows, centreMs) {
    this.#column = columnMs;
    this.#next = centreMs - columnMs / 2;
    this.canvas.width = SPAN_MS / columnMs;
    this.canvas.height = rows;
  }

  push(column, begin, span) {
    const x = Math.round((this.#next - begin) / this.#column);
    this.#next += this.#column;
    if (x >= span / this.#column) return;
    const image = this.#context.createImageData(1, column.length);
    column.forEach((light, row) => {
      image.data[4 * row + 3] = light;
    });
    this.#context.putImageData(image, x, 0);
  }

  shift(ms) {
    const columns = ms / this.#column;
    const { width, height } = this.canvas;
    const rest = this.#context.getImageData(columns, 0, width - columns, height);
    this.#context.clearRect(0, 0, width, height);
    this.#context.putImageData(rest, 0, 0);
  }
}
