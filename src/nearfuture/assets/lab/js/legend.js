// What the colours mean.

import { hatch, html, svg } from "./dom.js";

export function legend(t, times) {
  const entries = times.map((time) => {
    const square = { width: 14, height: 14, rx: 2 };
    const sign = svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" });
    if (time === "forbidden") {
      const { defs, fill } = hatch();
      const rectangle = svg("rect", square);
      rectangle.style.fill = fill;
      sign.append(defs, rectangle);
    } else {
      sign.append(svg("rect", { ...square, class: time }));
    }
    return html("li", {}, sign, t(`legend-${time}`));
  });
  return html("ul", { class: "legend" }, ...entries);
}
