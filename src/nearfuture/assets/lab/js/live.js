// One live stream: text from the server's own protocol (`/stream`), and beside it, for the same
// sound, what the model sees and thinks.

import { Refused } from "./refused.js";

const PROTOCOL = "nearfuture.stream.v1";

export class LiveStream {
  static rate = undefined; // the server takes any
  #text;
  #frames;
  #over = false;
  #told;

  #promise = null;
  #scale = null;

  // `told` has ready, update, frames, error and end.
  constructor({ rate, budget, told }) {
    this.#told = told;
    const query = new URLSearchParams({ rate, budget_ms: budget });
    this.#text = this.#open("live/stream", PROTOCOL, (message) => this.#onText(message));
    this.#frames = this.#open(`live/frames?${query}`, [], (message) => this.#onFrames(message));
    const hello = { type: "hello", version: 1, rate, encoding: "float32", budget_ms: budget };
    this.#send(this.#text, JSON.stringify(hello));
  }

  // Float32Array, as it comes.
  accept(samples) {
    this.#send(this.#text, samples);
    this.#send(this.#frames, samples);
  }

  // No more sound comes; what waited for its future still does.
  finish() {
    this.#send(this.#text, JSON.stringify({ type: "finish" }));
    this.#send(this.#frames, "finish");
  }

  close() {
    this.#over = true;
    for (const { socket } of [this.#text, this.#frames]) socket.close();
  }

  #open(path, protocols, onMessage) {
    const url = new URL(path, document.baseURI);
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url, protocols);
    const line = { socket, waiting: [] };
    socket.addEventListener("open", () => line.waiting.splice(0).forEach((data) => socket.send(data)));
    socket.addEventListener("message", ({ data }) => this.#over || onMessage(JSON.parse(data)));
    socket.addEventListener("close", ({ code }) => {
      if (code !== 1000) this.#fail(new Refused({ key: "unreachable" }));
    });
    return line;
  }

  #send({ socket, waiting }, data) {
    if (socket.readyState === WebSocket.OPEN) socket.send(data);
    else if (socket.readyState === WebSocket.CONNECTING) waiting.push(data);
  }

  #onText(message) {
    if (message.type === "ready") {
      this.#promise = message;
      this.#ready();
    }
    if (message.type === "update") this.#told.update(message);
    if (message.type === "error") this.#fail(new Refused({ ...message, key: `code-${message.code}` }));
    if (message.ended) this.#told.end();
  }

  #onFrames(message) {
    if (message.error) this.#fail(new Refused(message.error));
    else if (message.symbols) {
      this.#scale = message;
      this.#ready();
    } else this.#told.frames(message);
  }

  #ready() {
    if (this.#promise && this.#scale) this.#told.ready(this.#promise, this.#scale);
  }

  #fail(error) {
    if (this.#over) return;
    this.close();
    this.#told.error(error);
  }
}
