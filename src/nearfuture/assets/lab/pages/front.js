// Three shapes, measured as the page opens.

import { html } from "../js/dom.js";
import { Matrix } from "../js/matrix.js";

export function defaults(parameters) {
  return { tau: parameters.shapes.tau.default };
}

export async function show({ drawing, state, api, t, number }) {
  const { frames, frame_ms, shapes } = await api.get("shapes", state.all("tau"));
  const list = html("div", { class: "shapes" });
  for (const { family, measured, first } of shapes) {
    const matrix = new Matrix(frames, { label: t(`${family}-label`), cell: 20, numbers: false });
    matrix.draw({ measured });
    list.append(
      html(
        "figure",
        {},
        matrix.element,
        html(
          "figcaption",
          {},
          html("strong", {}, t(family)),
          html("span", {}, t("first", { ms: first * frame_ms, total: frames * frame_ms })),
        ),
      ),
    );
  }
  drawing.append(list, html("p", { class: "axes" }, t("axes")));
}
