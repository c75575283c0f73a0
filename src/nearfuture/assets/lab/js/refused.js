// An error that a page says in its own language: a key of its texts, and the values to fill in.

export class Refused extends Error {
  constructor({ key, values = {}, message = key, code = null, param = null }) {
    super(message);
    Object.assign(this, { key, values, code, parameter: param });
  }
}

// The text of an error in the language of the page; one without a text is a fault of the page.
export function inWords(error, text) {
  const key = `error-${error.key ?? "page"}`;
  const values = { message: error.message, ...error.values };
  return text.t(text.has(key) ? key : "error-code-internal", values);
}
