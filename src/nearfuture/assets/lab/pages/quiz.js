// Ten questions; each answer comes with the measurement that shows why.

import { bars } from "../js/bars.js";
import { linesChart } from "../js/chart.js";
import { html, rich } from "../js/dom.js";
import { Matrix } from "../js/matrix.js";

const OPTIONS = ["a", "b", "c"];

export function defaults() {
  return {};
}

export async function show(lab) {
  const { drawing, api, t } = lab;
  const questions = await api.get("questions");
  const answers = new Map();
  const score = html("p", { class: "score", role: "status" });
  const renew = () => {
    const right = [...answers.values()].filter((each) => each).length;
    const key = answers.size === questions.length ? "score-all" : "score";
    score.replaceChildren(...rich(t(key, { right, answered: answers.size, all: questions.length })));
  };
  renew();
  const list = html("ol", { class: "questions" });
  questions.forEach((question, at) => {
    const onAnswer = (right) => {
      answers.set(question, right);
      renew();
    };
    list.append(card(lab, question, at + 1, onAnswer));
  });
  drawing.append(score, list);
}

function card(lab, question, number, onAnswer) {
  const { api, t } = lab;
  const why = html("div", { class: "why", "aria-live": "polite" });
  const labels = OPTIONS.map((option) => {
    const input = html("input", { type: "radio", name: question, value: option, onchange: () => answer(option) });
    return html("label", {}, input, html("span", {}, t(`${question}-${option}`)));
  });
  const answer = (option) =>
    lab.attempt(async () => {
      for (const label of labels) label.querySelector("input").disabled = true;
      const found = await api.always("figure", { question });
      const right = found.right === option;
      labels.forEach((label, at) => {
        if (OPTIONS[at] === found.right) label.classList.add("right");
        else if (OPTIONS[at] === option) label.classList.add("wrong");
      });
      why.append(
        html("p", {}, html("strong", {}, t(right ? "right" : "wrong")), " ", ...rich(t(`${question}-why`))),
        draw(lab, question, found),
      );
      lab.touched();
      onAnswer(right);
    });
  const legend = html("legend", {}, html("span", { class: "number" }, `${number}`), " ", t(question));
  return html("li", { "data-question": question }, html("fieldset", { class: "question" }, legend, ...labels), why);
}

function draw(lab, question, found) {
  return { matrices, bars: drawBars, curve }[found.kind](lab, question, found);
}

function matrices({ t }, question, found) {
  const list = html("div", { class: "shapes" });
  for (const { name, measured } of found.matrices) {
    const matrix = new Matrix(found.frames, { label: t(name), cell: 20, numbers: false });
    matrix.draw({ measured });
    if (found.marks) matrix.mark((output) => output + 1);
    list.append(html("figure", {}, matrix.element, html("figcaption", {}, html("strong", {}, t(name)))));
  }
  return list;
}

function drawBars({ t, number }, question, found) {
  const whole = Math.max(...found.bars.map(({ value }) => value));
  const rows = found.bars.map(({ name, value }) => ({
    name: t(`bar-${name}`),
    value: t(`unit-${found.unit}`, { value: number(value, found.digits) }),
    parts: [{ size: value, tone: /lookahead|row|sum$|concat/.test(name) ? "future" : /twin/.test(name) ? "forbidden" : "neutral" }],
  }));
  return bars(rows, whole);
}

function curve({ t, number, drawing }, question, found) {
  const frames = found.curves[0].values.map((_, at) => at + 1);
  const most = Math.max(...found.curves.flatMap(({ values }) => values));
  const tones = ["future", "past", "present"];
  const chart = linesChart({
    label: t(`${question}-label`),
    x: { values: frames, name: t(`${question}-x`), ticks: frames },
    y: { name: t(`${question}-y`), ticks: [0, most / 2, most] },
    number: (value) => number(value, 2),
    room: Math.min(520, drawing.clientWidth),
    lines: found.curves.map(({ values }, at) => ({ name: "", tone: tones[at], values })),
    points: found.curves.flatMap(({ values }, at) => values.map((y, frame) => ({ x: frame + 1, y, tone: tones[at] }))),
  });
  const names = found.curves.map(({ name }, at) =>
    html("li", {}, html("span", { class: `key key-${tones[at]}` }), t(`curve-${name}`)),
  );
  return html("div", {}, chart, html("ul", { class: "items" }, ...names));
}
