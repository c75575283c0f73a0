// Horizontal bars, plain or stacked, on one scale.

import { html } from "./dom.js";

// `rows` are {name, value, parts: [{size, tone, title}]}; `whole` is the size of the full width.
export function bars(rows, whole) {
  return html(
    "div",
    { class: "bars" },
    ...rows.map(({ name, value, parts, note = null }) => {
      const track = html("span", { class: "track", "aria-hidden": "true" });
      for (const { size, tone, title = null } of parts) {
        const part = html("span", { class: `part ${tone}`, title });
        part.style.setProperty("--share", `${(100 * size) / whole}%`);
        track.append(part);
      }
      const label = html("span", { class: "bar-name" }, name);
      const number = html("span", { class: "bar-value" }, value);
      return html("div", { class: "bar" }, label, number, track, note);
    }),
  );
}
