// What a page shows, kept in its address, so that it can be sent to somebody else.

export class State {
  #values = {};
  #defaults;
  #listeners = [];

  constructor(defaults) {
    this.#defaults = defaults;
    const query = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(defaults)) {
      this.#values[key] = query.has(key) ? like(value, query.get(key)) : value;
    }
  }

  get(key) {
    return this.#values[key];
  }

  all(...keys) {
    return Object.fromEntries(keys.map((key) => [key, this.#values[key]]));
  }

  // Changes values, keeps them in the address, and tells who listens which have changed.
  set(changes) {
    const changed = Object.keys(changes).filter((key) => this.#values[key] !== changes[key]);
    if (!changed.length) return;
    Object.assign(this.#values, changes);
    const query = new URLSearchParams(location.search);
    for (const [key, value] of Object.entries(this.#values)) {
      if (value === this.#defaults[key]) query.delete(key);
      else query.set(key, value);
    }
    const text = query.toString();
    history.replaceState(null, "", text ? `?${text}${location.hash}` : location.pathname);
    for (const listener of this.#listeners) listener(changed);
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }
}

// A text of the address as a value of the same kind; the default where it is none.
function like(value, text) {
  if (typeof value === "number") {
    const number = Number(text);
    return Number.isFinite(number) ? number : value;
  }
  if (typeof value === "boolean") return text === "true";
  return text;
}
