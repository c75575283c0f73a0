// Families on two axes, future and cost; who looks at whom in one of them; published budgets.

import { bars } from "../js/bars.js";
import { html, rich, svg } from "../js/dom.js";
import { legend } from "../js/legend.js";
import { Matrix } from "../js/matrix.js";

export function defaults({ costs, matrix }) {
  return {
    family: matrix.family.default,
    layers: costs.layers.default,
    seconds: costs.seconds.default,
  };
}

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t } = lab;
  controls.choice("family", {
    label: t("family"),
    options: parameters.matrix.family.choices.map((family) => [family, t(family)]),
  });
  controls.slider("layers", { label: t("layers"), limits: parameters.costs.layers });
  controls.slider("seconds", {
    label: t("utterance"),
    limits: parameters.costs.seconds,
    show: (n) => t("seconds-value", { n }),
  });
  const chart = html("div", { class: "plane" });
  const place = html("div", { class: "matrix-part" });
  const text = html("div", { class: "family-text", "aria-live": "polite" });
  const list = html("div", {});
  drawing.append(
    chart,
    html("p", { class: "axes" }, t("plane-note")),
    html("div", { class: "beside" }, place, text),
    html("h2", { class: "chart-title" }, t("systems-title")),
    list,
  );

  let reach = new Map();
  let costs = null;
  const drawPlane = () => costs && chart.replaceChildren(plane(lab, reach, costs));
  const measure = async () => {
    const found = new Map();
    for await (const line of api.lines("plane", state.all("layers"))) found.set(line.family, line);
    reach = found;
  };
  const weigh = async () => {
    const answer = await api.get("costs", state.all("layers", "seconds"));
    if (answer !== null) costs = answer;
  };
  const look = async () => {
    const found = await api.get("matrix", state.all("family", "layers"));
    if (found === null) return;
    const matrix = new Matrix(found.frames, { label: t("matrix-label"), cell: 22, numbers: false });
    matrix.draw(found);
    place.replaceChildren(html("p", { class: "axis-name" }, t("matrix-axes")), matrix.element, legend(t, ["past", "present", "future", "forbidden"]));
    text.replaceChildren(...describe(lab, found));
  };
  state.onChange((changed) => {
    lab.touched();
    lab.attempt(async () => {
      if (changed.includes("layers")) await measure();
      if (changed.some((key) => key !== "family")) await weigh();
      drawPlane();
      if (changed.some((key) => key !== "seconds")) await look();
    });
  });
  await measure();
  await weigh();
  drawPlane();
  await look();
  list.replaceChildren(...systems(lab, await api.get("systems")));
}

function describe({ t, state }, found) {
  const family = state.get("family");
  const ahead = found.lookahead === null ? t("ahead-whole") : t("ahead", { n: found.lookahead, ms: found.lookahead * found.frame_ms });
  return [
    html("h2", {}, t(family)),
    html("p", { class: "readout" }, ...rich(`${ahead} ${t(found.agree ? "agrees" : "disagrees")}`)),
    html("p", {}, ...rich(t(`about-${family}`))),
  ];
}

const [WIDEST, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [880, 340, 44, 44, 34, 176];
const [ZERO, LEAST, MOST] = [34, 20, 30000]; // where 0 ms stands; from there on a decade is as wide as any

// Where a name stands beside its point, if not to the right of it: points of like costs lie near.
const BESIDE = { "causal-attention": [-8, -16, "start"], "sliding-attention": [-8, 26, "start"] };

// How long each family waits at most, and what a second of sound costs it.
function plane({ t, number, state, drawing }, reach, costs) {
  const width = Math.min(WIDEST, drawing.clientWidth);
  const narrow = width < 560;
  const right = narrow ? 20 : RIGHT;
  const names = [...reach.keys()];
  const most = Math.max(...names.map((name) => costs.flops[name])) / 1e6;
  const step = [10, 20, 25, 50, 100, 200, 250].find((each) => most / each <= 6) ?? 500;
  const top = step * Math.ceil(most / step + 0.2);
  const x = (ms) => {
    const from = LEFT + ZERO;
    const span = width - right - from - 20;
    return ms <= 0 ? from : from + 20 + (span * Math.log(ms / LEAST)) / Math.log(MOST / LEAST);
  };
  const y = (flops) => HEIGHT - BOTTOM - (flops / 1e6 / top) * (HEIGHT - BOTTOM - TOP);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, width, role: "img", "aria-label": t("plane-label") });
  for (let tick = 0; tick <= top; tick += step) {
    const at = y(1e6 * tick);
    picture.append(
      svg("line", { class: "grid", x1: LEFT, x2: width - right, y1: at, y2: at }),
      svg("text", { class: "soft", x: LEFT - 8, y: at + 4, "text-anchor": "end" }, number(tick)),
    );
  }
  for (const ms of narrow ? [0, 100, 1000, 10000] : [0, 40, 100, 400, 1000, 4000, 10000]) {
    const name = ms >= 1000 ? t("s", { s: ms / 1000 }) : t("ms", { ms });
    picture.append(svg("text", { class: "soft", x: x(ms), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, name));
  }
  picture.append(
    svg("text", { class: "soft", x: 0, y: 12 }, t("axis-cost")),
    svg("text", { class: "soft", x: width - right, y: HEIGHT - 4, "text-anchor": "end" }, t("axis-future")),
  );
  for (const [family, { wait_ms: wait }] of reach) {
    const tone = wait === null ? "forbidden" : wait > 0 ? "future" : "past";
    const ms = wait ?? costs.end_ms;
    const chosen = family === state.get("family");
    const [cx, cy] = [x(ms), y(costs.flops[family])];
    const said = `${t(family)}: ${number(ms)} ms, ${number(costs.flops[family] / 1e6, 1)}`;
    const point = svg("g", { class: "family-point" }, svg("circle", { class: `point ${tone} ${chosen ? "kept" : ""}`, cx, cy, r: chosen ? 9 : 7 }, svg("title", {}, said)));
    point.addEventListener("click", () => state.set({ family }));
    if (!narrow || chosen) {
      const [dx, dy, anchor] = narrow && cx > width / 2 ? [-14, 4, "end"] : (BESIDE[family] ?? [14, 4, "start"]);
      point.append(svg("text", { class: `on-line said-${tone}`, x: cx + dx, y: cy + dy, "text-anchor": anchor }, t(family)));
    }
    picture.append(point);
  }
  return picture;
}

// Budgets as they are published, a bar each, on one scale.
function systems({ t, number }, found) {
  const entries = Object.entries(found);
  const whole = Math.max(...entries.flatMap(([, { ms }]) => ms));
  return entries.map(([key, { name, source, ms }]) =>
    html(
      "section",
      { class: "system" },
      html("h3", {}, name),
      bars(
        ms.map((value) => ({ name: "", value: t("ms", { ms: number(value) }), parts: [{ size: value, tone: "future" }] })),
        whole,
      ),
      html("p", {}, t(`system-${key}`), " ", html("span", { class: "source" }, source)),
    ),
  );
}
