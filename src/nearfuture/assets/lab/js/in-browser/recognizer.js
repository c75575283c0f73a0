// The bundled recogniser in this browser, a quantum at a time: its graphs go from samples to
// log-probabilities, and another one decodes them.

import { open } from "./graph.js";

const FOLDER = "models/digits/";

export async function recognizer() {
  const about = await (await fetch(new URL(`../../onnxruntime/${FOLDER}model.json`, import.meta.url))).json();
  const [step, finish, greedy] = await Promise.all([
    open(`${FOLDER}step.onnx`, "weights.bin"),
    open(`${FOLDER}finish.onnx`, "weights.bin"),
    open("graphs/greedy.onnx"),
  ]);
  return { about, step, finish, greedy };
}

// A stream of it: `accept` and `finish` answer with what each quantum makes final.
export class Stream {
  #model;
  #state;
  #rest = [];
  #size;
  #heads;

  // `head` is the lookahead that commits; that of the least one previews.
  constructor(model, head) {
    this.#model = model;
    this.#state = model.step.zeros();
    this.#size = model.about.first_quantum_samples;
    const least = Math.min(...model.about.heads.map(({ frames }) => frames));
    const begin = () => ({ last: 0, silence: 0, frame: 0 });
    this.#heads = { settled: { frames: head, ...begin() }, preview: { frames: least, ...begin() } };
  }

  async accept(samples) {
    this.#rest.push(...samples);
    const found = [];
    while (this.#rest.length >= this.#size) {
      found.push(await this.#step(this.#rest.splice(0, this.#size)));
      this.#size = this.#model.about.quantum_samples;
    }
    return found;
  }

  async finish() {
    const found = this.#rest.length ? [await this.#step(this.#rest.splice(0))] : [];
    const wanted = Object.keys(this.#model.finish.zeros());
    const state = Object.fromEntries(wanted.map((name) => [name, this.#state[name]]));
    const outputs = await this.#model.finish.run(state);
    return [...found, { samples: 0, ...(await this.#decoded(outputs)) }];
  }

  async #step(quantum) {
    const { quantum_samples: size } = this.#model.about;
    const pcm = { data: [...quantum, ...Array(size - quantum.length).fill(0)], dims: [1, size, 1] };
    const lengths = { type: "int64", data: [quantum.length], dims: [1] };
    const outputs = await this.#model.step.run({ ...this.#state, pcm, lengths });
    for (const name of Object.keys(this.#state)) this.#state[name] = outputs[`${name}.next`] ?? this.#state[name];
    return { samples: quantum.length, ...(await this.#decoded(outputs)) };
  }

  async #decoded(outputs) {
    const found = {};
    for (const [name, head] of Object.entries(this.#heads)) found[name] = await this.#decode(outputs, head);
    return found;
  }

  // The new frames of a head: {symbol, pause, start, end, frame, light}.
  async #decode(outputs, head) {
    const { data, dims } = outputs[`log_probs_${head.frames}`];
    const count = Number(outputs[`frames_${head.frames}`].data[0]);
    const width = dims[2];
    const decoded = [];
    for (let at = 0; at < count; at++) {
      const scalar = (value) => ({ type: "int64", data: [value], dims: [] });
      const answer = await this.#model.greedy.run({
        log_probs: { data: data.slice(at * width, (at + 1) * width), dims: [width] },
        last: scalar(head.last),
        silence: scalar(head.silence),
        frame: scalar(head.frame),
      });
      const value = (name) => Number(answer[name].data[0]);
      decoded.push({
        symbol: value("symbol"),
        pause: Boolean(value("pause")),
        start: value("start_ms"),
        end: value("end_ms"),
        frame: head.frame,
        light: Array.from(answer.light.data),
      });
      head.last = value("last_next");
      head.silence = value("silence_next");
      head.frame += 1;
    }
    return decoded;
  }
}
