// Elements of HTML and SVG, made in one expression.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

// A text with **strong** parts, as nodes.
export function rich(text) {
  return text
    .split(/(\*\*[^*]+\*\*)/)
    .map((part) => (part.startsWith("**") ? html("strong", {}, part.slice(2, -2)) : part));
}

// The hatching of future that may not be seen; each drawing has its own.
let hatches = 0;
export function hatch() {
  const id = `hatch-${++hatches}`;
  const pattern = svg(
    "pattern",
    { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("line", { class: "hatch-line", x1: 0, y1: 0, x2: 0, y2: 6 }),
  );
  return { defs: svg("defs", {}, pattern), fill: `url(#${id})` };
}

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
