// The answers of a copy: recorded when it was made, or computed in this browser.

import { Refused } from "./refused.js";

export class Api {
  #page;
  #recorded;
  #text;
  #turns = new Map();
  #computed = null;

  constructor(page, recorded, text) {
    this.#page = page;
    this.#recorded = recorded;
    this.#text = text;
  }

  // Computes these endpoints in the browser, by the module of the page.
  compute(endpoints) {
    if (!endpoints.length) return;
    const module = import(`./in-browser/${this.#page}.js`).catch((error) => {
      console.warn(error); // what was recorded is there
      return null;
    });
    this.#computed = { endpoints, module };
  }

  url(endpoint, parameters = {}) {
    const recorded = this.#recorded[endpoint];
    if (!recorded) throw new Refused({ key: "copy-never" });
    const { axes, start, groups, suffix } = recorded;
    const places = Object.entries(axes).map(([name, values], at) =>
      name in parameters ? place(values, parameters[name]) : start[at],
    );
    const moved = Object.keys(axes).filter((_, at) => places[at] !== start[at]);
    if (places.includes(-1) || !groups.some((group) => moved.every((name) => group.includes(name)))) {
      const names = groups.map((group) => group.map((name) => this.#name(name)).join(" × "));
      throw new Refused({ key: "copy-missing", values: { recorded: names.join(", ") } });
    }
    return `../recorded/${this.#page}/${endpoint}/${places.join("-") || "0"}.${suffix}`;
  }

  // The answer of an endpoint; null where another request has overtaken this one.
  async get(endpoint, parameters = {}, body = undefined) {
    const turn = {};
    this.#turns.set(endpoint, turn);
    try {
      const answer = await this.#answer(endpoint, parameters, body);
      return this.#turns.get(endpoint) === turn ? answer : null;
    } catch (error) {
      if (this.#turns.get(endpoint) !== turn) return null;
      throw error;
    }
  }

  // The answer of an endpoint, whatever else is asked in the meantime.
  always(endpoint, parameters = {}) {
    return this.#answer(endpoint, parameters);
  }

  // The answers of an endpoint that takes its time, one after another.
  async *lines(endpoint, parameters = {}, body = undefined) {
    const text = await (await this.#file(endpoint, parameters, body)).text();
    for (const line of text.split("\n").filter((each) => each)) yield checked(JSON.parse(line));
  }

  async blob(endpoint, parameters = {}, body = undefined) {
    const compute = await this.#computes(endpoint);
    if (compute) return compute(parameters, body);
    return (await this.#file(endpoint, parameters, body)).blob();
  }

  async #answer(endpoint, parameters, body) {
    const compute = await this.#computes(endpoint);
    if (compute) return compute(this.#filled(endpoint, parameters), body);
    return checked(await (await this.#file(endpoint, parameters, body)).json());
  }

  // What computes an endpoint in the browser, of its parameters and a body; null where nothing does.
  async #computes(endpoint) {
    if (!this.#computed?.endpoints.includes(endpoint)) return null;
    const module = await this.#computed.module;
    const recorded = async (some) => checked(await (await this.#file(endpoint, some)).json());
    return module && ((parameters, body) => module.answers[endpoint](parameters, { recorded, body }));
  }

  // With what a request leaves out, as the endpoint begins.
  #filled(endpoint, parameters) {
    const { axes, start } = this.#recorded[endpoint] ?? { axes: {}, start: [] };
    const begin = Object.entries(axes).map(([name, values], at) => [name, values[start[at]]]);
    return { ...Object.fromEntries(begin), ...parameters };
  }

  async #file(endpoint, parameters, body) {
    if (body !== undefined) throw new Refused({ key: "copy-never" });
    const response = await fetch(this.url(endpoint, parameters));
    if (!response.ok) throw new Refused({ key: "unreachable" });
    return response;
  }

  // A parameter as its control is called, where the page has that word.
  #name(parameter) {
    try {
      return this.#text(parameter);
    } catch {
      return parameter;
    }
  }
}

// Where a value is among those that were recorded, -1 for none.
function place(values, value) {
  if (typeof values[0] !== "number") return values.findIndex((each) => String(each) === String(value));
  return values.findIndex((each) => Math.abs(each - Number(value)) < 1e-6);
}

function checked(answer) {
  if (answer?.error) throw new Refused(answer.error);
  return answer;
}
