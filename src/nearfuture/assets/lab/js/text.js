// Texts and numbers in the language of the page.

export class Text {
  #texts;
  #numbers;
  #plural;

  constructor(texts, language) {
    this.#texts = texts;
    this.#numbers = (digits, least) =>
      new Intl.NumberFormat(language, {
        minimumFractionDigits: least,
        maximumFractionDigits: digits,
      });
    this.#plural = new Intl.PluralRules(language);
    this.t = this.t.bind(this);
    this.number = this.number.bind(this);
  }

  // A text by its key. `{name}` is filled in; of {one, other}, `n` chooses.
  t(key, values = {}) {
    let text = this.#texts[key];
    if (text === undefined) throw new Error(`there is no text ${key}`);
    if (typeof text === "object") text = text[this.#plural.select(values.n)] ?? text.other;
    return text.replace(/\{(\w+)\}/g, (_, name) => {
      const value = values[name];
      return typeof value === "number" ? this.number(value) : String(value);
    });
  }

  has(key) {
    return key in this.#texts;
  }

  // Of `digits` decimals `least` are shown even when they are 0: 1.0 beside 0.9.
  number(value, digits = 0, least = 0) {
    return this.#numbers(digits, least).format(value);
  }
}
