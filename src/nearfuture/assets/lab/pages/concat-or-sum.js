// What a second direction costs, layer by layer, and in all four designs.

import { bars } from "../js/bars.js";
import { html, rich } from "../js/dom.js";

const DESIGNS = ["concat", "concat-shared", "sum", "sum-shared"];
const KEYS = ["cell", "inputs", "hidden", "layers", "merge", "shared"];

export function defaults({ costs }) {
  return Object.fromEntries(KEYS.map((key) => [key, costs[key].default]));
}

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t } = lab;
  const limits = parameters.costs;
  controls.choice("merge", {
    label: t("merge"),
    options: limits.merge.choices.map((merge) => [merge, t(`merge-${merge}`)]),
  });
  controls.choice("shared", {
    label: t("shared"),
    options: [
      [false, t("own")],
      [true, t("common")],
    ],
  });
  controls.choice("cell", {
    label: t("cell"),
    options: limits.cell.choices.map((cell) => [cell, cell.toUpperCase()]),
  });
  controls.slider("inputs", { label: t("inputs"), limits: limits.inputs });
  controls.slider("hidden", { label: t("hidden"), limits: limits.hidden });
  controls.slider("layers", { label: t("layers"), limits: limits.layers });

  const readout = html("p", { class: "readout", "aria-live": "polite" });
  const layers = html("div", {});
  const designs = html("div", { class: "wide", tabindex: 0, role: "group", "aria-label": t("by-design") });
  drawing.append(readout, html("h2", {}, t("by-layer")), layers, legend(t), html("h2", {}, t("by-design")), designs);

  const draw = (found) => {
    readout.replaceChildren(...rich(t("readout", said(lab, found))));
    layers.replaceChildren(layerBars(lab, found));
    designs.replaceChildren(designTable(lab, found));
  };
  draw(await api.get("costs", state.all(...KEYS)));
  state.onChange(() => {
    lab.touched();
    lab.attempt(async () => {
      const found = await api.get("costs", state.all(...KEYS));
      if (found !== null) draw(found);
    });
  });
}

function said({ t, number }, found) {
  const times = found.designs[found.chosen].times;
  return { design: t(`design-${found.chosen}`), times: number(times, 3) };
}

function layerBars({ t, number }, found) {
  const whole = Math.max(...found.layers.flatMap((layer) => [layer.one, layer.both]));
  const rows = found.layers.map((layer, at) => ({
    name: t("layer", { n: at + 1, reads: layer.reads }),
    value: `× ${number(layer.times, 2)}`,
    parts: [
      { size: layer.each, tone: "past", title: t("forward-weights", { n: layer.each }) },
      { size: layer.common, tone: "present", title: t("common-weights", { n: layer.common }) },
      { size: layer.each, tone: "future", title: t("backward-weights", { n: layer.each }) },
    ].filter((part) => part.size > 0),
    note: ruler(t, layer.one, whole),
  }));
  return bars(rows, whole);
}

// Where one direction would end.
function ruler(t, one, whole) {
  const mark = html("span", { class: "one-direction", title: t("one-direction", { n: one }) });
  mark.style.setProperty("--share", `${(100 * one) / whole}%`);
  return mark;
}

function legend(t) {
  const entries = ["past", "present", "future"].map((tone) =>
    html("li", {}, html("span", { class: `key ${tone}`, "aria-hidden": "true" }), t(`tone-${tone}`)),
  );
  const mark = html("span", { class: "key-line", "aria-hidden": "true" });
  return html("ul", { class: "legend" }, ...entries, html("li", {}, mark, t("tone-one")));
}

function designTable({ t, number }, found) {
  const row = (name, cost, times, chosen) =>
    html(
      "tr",
      { class: chosen ? "chosen" : null, "aria-current": chosen ? "true" : null },
      html("th", { scope: "row" }, name),
      html("td", {}, number(cost.parameters)),
      html("td", {}, number(cost.flops_per_second / 1e6, cost.flops_per_second < 1e8 ? 2 : 0)),
      html("td", {}, `× ${number(times, 3)}`),
    );
  const head = ["design", "weights", "operations", "times"].map((key) =>
    html("th", { scope: "col" }, t(`column-${key}`)),
  );
  const body = [row(t("design-one"), found.one, 1, false)];
  for (const name of DESIGNS) {
    const cost = found.designs[name];
    body.push(row(t(`design-${name}`), cost, cost.times, name === found.chosen));
  }
  return html("table", { class: "numbers" }, html("thead", {}, html("tr", {}, ...head)), html("tbody", {}, ...body));
}
