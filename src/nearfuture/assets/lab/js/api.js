// Requests to the endpoints of a page.

import { Refused } from "./refused.js";

export class Api {
  #page;
  #running = new Map();

  constructor(page) {
    this.#page = page;
  }

  url(endpoint, parameters = {}) {
    return `api/${this.#page}/${endpoint}?${new URLSearchParams(parameters)}`;
  }

  // The answer of an endpoint; null where another request has overtaken this one.
  async get(endpoint, parameters = {}, body = undefined) {
    this.#running.get(endpoint)?.abort();
    const controller = new AbortController();
    this.#running.set(endpoint, controller);
    try {
      const response = await this.#ask(endpoint, parameters, body, controller);
      return await response.json();
    } catch (error) {
      if (controller.signal.aborted) return null;
      throw error;
    }
  }

  // What an endpoint answers that is no JSON, such as a sound.
  async blob(endpoint, parameters = {}, body = undefined) {
    const response = await this.#ask(endpoint, parameters, body, new AbortController());
    return response.blob();
  }

  // The answer of an endpoint, whatever else is asked in the meantime.
  async always(endpoint, parameters = {}) {
    const response = await this.#ask(endpoint, parameters, undefined, new AbortController());
    return response.json();
  }

  // The answers of an endpoint that takes its time, one after another.
  async *lines(endpoint, parameters = {}, body = undefined) {
    this.#running.get(endpoint)?.abort();
    const controller = new AbortController();
    this.#running.set(endpoint, controller);
    const response = await this.#ask(endpoint, parameters, body, controller);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      while (true) {
        const { done, value } = await reader.read();
        if (done) return;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) {
          const answer = JSON.parse(line);
          if (answer.error) throw new Refused(answer.error);
          yield answer;
        }
      }
    } finally {
      controller.abort();
    }
  }

  async #ask(endpoint, parameters, body, { signal }) {
    const method = body === undefined ? "GET" : "POST";
    const response = await fetch(this.url(endpoint, parameters), { method, body, signal }).catch(
      (error) => {
        throw signal.aborted ? error : new Refused({ key: "unreachable", message: error.message });
      },
    );
    if (!response.ok) {
      const answer = await response.json().catch(() => null);
      const status = `${response.status} ${response.statusText}`;
      throw new Refused(answer?.error ?? { key: "code-internal", message: status });
    }
    return response;
  }
}
