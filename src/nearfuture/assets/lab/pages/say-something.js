// Live captions: what somebody says, or a recording as if somebody said it, through the real server.

import { html, rich } from "../js/dom.js";
import { LiveStream } from "../js/live.js";
import { Refused } from "../js/refused.js";
import { Scope } from "../js/scope.js";
import { microphone, recording } from "../js/sound.js";

const RULER_MS = 1000;

export function defaults({ promises, sound }) {
  return { budget: promises.budget_ms.default, recording: sound.recording.default };
}

export async function show(lab) {
  const { drawing, controls, state, api, parameters, t, number } = lab;
  const { min, max } = parameters.sound.recording;
  controls.slider("budget", {
    label: t("budget"),
    limits: parameters.promises.budget_ms,
    show: (ms) => t("ms", { ms: number(ms) }),
    tone: "of-future",
  });
  controls.choice("recording", {
    label: t("recordings"),
    options: Array.from({ length: max - min + 1 }, (_, at) => [min + at, String(min + at)]),
  });
  const { heads } = await api.get("promises");

  const press = (key, act, tone = "plain") =>
    html("button", { type: "button", class: tone, onclick: () => lab.attempt(act) }, t(key));
  const file = html("input", { type: "file", accept: "audio/*", id: "own-file" });
  const stop = press("stop", () => end());
  const status = html("p", { class: "working", role: "status" });
  const captions = new Captions(lab);
  const scope = new Scope({ spectrogram: t("spectrogram"), probabilities: t("probabilities") });
  const facts = html("dl", { class: "facts" });
  drawing.append(
    html(
      "div",
      { class: "sources-of-sound" },
      press("speak", () => listen(() => microphone(LiveStream.rate)), "button"),
      press("play", () => listen(bundled)),
      html("label", { class: "plain file" }, t("file"), file),
      stop,
    ),
    status,
    captions.element,
    html("p", { class: "readout ruler-key" }, ...rich(t("ruler"))),
    scope.element,
    html("p", { class: "readout" }, ...rich(t("scope"))),
    facts,
  );
  stop.disabled = true;

  const bundled = async () => recording(await api.blob("sound", state.all("recording")));
  file.addEventListener("change", () => {
    const [chosen] = file.files;
    file.value = "";
    const own = async () => recording(await api.blob("own", {}, chosen));
    if (chosen) lab.attempt(() => listen(own));
  });

  let opened = null; // how the sound that runs was opened
  let source = null;
  let live = null;
  let turn = 0;

  // Frees the microphone; what was said is still written to its end.
  function end() {
    opened = null;
    stop.disabled = true;
    source?.stop();
    source = null;
    live?.finish();
  }

  async function listen(open) {
    if (lab.copied && !lab.computes) throw new Refused({ key: "copy-never" });
    const mine = ++turn;
    end();
    live?.close();
    live = null;
    status.textContent = t("opening");
    let sound;
    try {
      sound = await open();
    } catch (error) {
      status.textContent = "";
      throw error;
    }
    if (mine !== turn) return sound.stop();
    [source, opened] = [sound, open];
    stop.disabled = false;
    captions.clear();
    facts.replaceChildren(); // those of the stream before
    scope.clear();
    begin(sound, mine);
  }

  function begin(sound, mine) {
    const budget = state.get("budget");
    let began = null; // on the browser's clock, where the sound begins
    let heard = 0; // in samples
    let settled = 0; // in ms
    const now = () => (1000 * heard) / sound.rate;
    const running = () => mine === turn && opened !== null;
    const stream = new LiveStream({
      rate: sound.rate,
      budget,
      told: {
        // Nothing is said before both are listening.
        ready: (promise, scale) => {
          if (!running()) return;
          captions.promise = promise.budget;
          scope.begin(scale);
          status.textContent = t("listening");
          renew();
          speak();
        },
        update: (message) => {
          if (message.committed) lab.touched(); // before, nothing has been seen
          captions.update(message, performance.now() - began, scope);
          settled = Math.max(0, message.audio_ms - captions.promise.worst_ms);
          scope.show(now(), settled);
          renew();
        },
        frames: (frames) => scope.accept(frames),
        end: () => {
          if (mine !== turn) return;
          scope.show(now(), now()); // all of it is settled
          status.textContent = t("ended");
        },
        error: (error) =>
          lab.attempt(() => {
            if (mine !== turn) return;
            live = null;
            end();
            status.textContent = "";
            const least = heads[0].worst_ms;
            if (error.code !== "out_of_range") throw error;
            throw new Refused({ key: "budget-too-small", values: { budget, least } });
          }),
      },
    });
    live = stream;
    const renew = () => facts.replaceChildren(...captions.facts());
    const speak = () =>
      sound.start(
        (samples) => {
          began ??= performance.now() - (1000 * samples.length) / sound.rate;
          heard += samples.length;
          stream.accept(samples);
          scope.show(now(), settled);
        },
        () => running() && end(),
      );
  }

  // Another budget is another stream of the same sound, from its beginning.
  state.onChange((changed) => {
    const again = changed.includes("recording") && opened === bundled;
    if (opened && (changed.includes("budget") || again)) lab.attempt(() => listen(opened));
  });
  addEventListener("pagehide", () => source?.stop());
}

// Settled and provisional text, and under each settled word how long it was waited for.
class Captions {
  promise = null;
  #lab;
  #words = new Map();
  #before = 0; // ms of sound in the update before
  #settled = html("span", { class: "settled" });
  #provisional = html("span", { class: "provisional" });

  constructor(lab) {
    this.#lab = lab;
    const label = lab.t("captions");
    this.element = html("div", { class: "captions", role: "log", "aria-label": label }, this.#settled, this.#provisional);
  }

  clear() {
    this.#words.clear();
    this.#before = 0;
    this.#settled.replaceChildren();
    this.#provisional.textContent = "";
  }

  // `sinceMs` is how long ago the sound began, on the clock of the browser.
  update(message, sinceMs, scope) {
    for (const word of message.words) {
      const key = `${message.utterance} ${word.start_ms}`;
      const known = this.#words.get(key);
      if (known?.text === word.text) continue;
      known?.element.remove();
      known?.mark.remove();
      const waited = this.#waited(message.audio_ms - word.end_ms, this.#before - word.end_ms);
      const entry = { text: word.text, waited, felt: Math.max(waited, sinceMs - word.end_ms) };
      entry.element = this.#draw(entry);
      entry.mark = scope.word(word.text, word.start_ms, word.end_ms);
      this.#words.set(key, entry);
      this.#settled.append(entry.element, " ");
    }
    this.#before = message.audio_ms;
    this.#provisional.textContent = message.provisional;
    this.element.scrollTop = this.element.scrollHeight;
  }

  // A word was written with so much sound behind its end, and was not with the sound of the update
  // before. A busy server skips updates: what came so late for that reason is no wait for the future.
  #waited(most, least) {
    const { worst_ms: promised } = this.promise;
    return most > promised && least < promised ? promised : most;
  }

  facts() {
    const { t, number } = this.#lab;
    const words = [...this.#words.values()];
    const ms = (value) => t("ms", { ms: number(value) });
    const most = (key) => (words.length ? ms(Math.max(...words.map((word) => word[key]))) : "–");
    const fact = (name, value, note) => html("div", {}, html("dt", {}, name), html("dd", {}, value, " ", html("small", {}, note)));
    const kept = words.every(({ waited }) => waited <= this.promise.worst_ms);
    return [
      fact(t("promised"), ms(this.promise.worst_ms), t("promised-note", { tau: this.promise.frames })),
      fact(t("waited"), most("waited"), t(kept ? "waited-note" : "broken")),
      fact(t("felt"), most("felt"), t("felt-note")),
    ];
  }

  #draw({ text, waited, felt }) {
    const { t, number } = this.#lab;
    const part = (ms, tone) => {
      const element = html("span", { class: `part ${tone}` });
      element.style.setProperty("--share", `${Math.min(100, (100 * ms) / RULER_MS)}%`);
      return element;
    };
    const track = html("span", { class: "track", "aria-hidden": "true" }, part(waited, waited <= this.promise.worst_ms ? "future" : "forbidden"), part(felt - waited, "neutral"));
    const tick = html("span", { class: "tick", "aria-hidden": "true" });
    tick.style.setProperty("--share", `${(100 * this.promise.worst_ms) / RULER_MS}%`);
    const said = html("small", {}, t("ms", { ms: number(felt) }));
    return html("span", { class: "said-word" }, html("span", { class: "word" }, text), html("span", { class: "ruler" }, track, tick), said);
  }
}
