// One live stream in a copy, as `js/live.js` is one from the server: the recogniser runs in this
// browser. What comes behind the settled text is what the fastest head wrote in later frames.

import { Stream, recognizer } from "./in-browser/recognizer.js";

export class LiveStream {
  static rate = 8000; // of the recogniser: the browser resamples for it
  #told;
  #work;
  #stream = null;
  #over = false;
  #about = null;
  #words = [];
  #preview = [];
  #settled = 0; // frames
  #samples = 0;

  // `told` has ready, update, scale, frames, error and end.
  constructor({ budget, told }) {
    this.#told = told;
    this.#work = this.#begin(budget).catch((error) => this.#fail(error));
  }

  accept(samples) {
    this.#then(async () => this.#tell(await this.#stream.accept(samples)));
  }

  finish() {
    this.#then(async () => {
      await this.#tell(await this.#stream.finish(), true);
      if (!this.#over) this.#told.end();
    });
  }

  close() {
    this.#over = true;
  }

  async #begin(budget) {
    const model = await recognizer();
    const { about } = model;
    const kept = about.heads.filter((head) => head.worst_ms <= budget);
    if (!kept.length) throw { code: "out_of_range" };
    const head = kept.reduce((one, other) => (other.worst_ms > one.worst_ms ? other : one));
    this.#about = about;
    this.#stream = new Stream(model, head.frames);
    if (this.#over) return;
    const { hop_ms, window_ms } = about.architecture.features;
    const { frame_ms, centre_ms } = about;
    const scale = { tau: head.frames, frame_ms, centre_ms, hop_ms, window_ms, symbols: ["", ...about.symbols] };
    this.#told.ready({ budget: head }, scale);
  }

  #then(work) {
    this.#work = this.#work.then(() => (this.#over ? null : work())).catch((error) => this.#fail(error));
  }

  async #tell(quanta, ended = false) {
    for (const { samples, settled, preview } of quanta) {
      this.#samples += samples;
      for (const each of settled) this.#write(this.#words, each);
      this.#settled += settled.length;
      this.#preview = [...this.#preview, ...preview].filter(({ frame }) => frame >= this.#settled);
      if (this.#over) return;
      this.#told.frames({ bands: [], probabilities: settled.map(({ light }) => light) });
    }
    if (!quanta.length || this.#over) return;
    this.#told.update({
      words: this.#words.filter(({ text }) => text).map(({ text, start_ms, end_ms }) => ({ text, start_ms, end_ms })),
      provisional: ended ? "" : this.#provisional(),
      audio_ms: (1000 * this.#samples) / this.#about.rate,
      utterance: 0,
    });
  }

  // A symbol at the end of words: a space, or a pause, begins another one.
  #write(words, { symbol, pause, start, end }) {
    if (!symbol) return;
    const written = this.#about.symbols[symbol - 1];
    const space = !written.trim();
    if (space || pause || !words.length) words.push({ text: "", start_ms: start, end_ms: end });
    if (space) return;
    const word = words.at(-1);
    if (!word.text) word.start_ms = start;
    word.text += written;
    word.end_ms = end;
  }

  #provisional() {
    const words = [{ text: "", start_ms: 0, end_ms: 0 }];
    for (const each of this.#preview) this.#write(words, each);
    return words.map(({ text }) => text).join(" ");
  }

  #fail(error) {
    if (this.#over) return;
    this.close();
    this.#told.error(error);
  }
}
