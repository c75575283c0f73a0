// Every page: its figure, and what stands around it.

import { Controls } from "./controls.js";
import { still } from "./dom.js";
import { inWords } from "./refused.js";
import { State } from "./state.js";
import { Text } from "./text.js";

const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);

async function figure() {
  const page = await import(`../pages/${data.page}.js`);
  const { Api } = await import(data.recorded ? "./recorded.js" : "./api.js");
  const state = new State(page.defaults(data.parameters));
  const text = new Text(data.texts, data.language);
  const api = new Api(data.page, data.recorded, text.t);
  if (data.recorded) api.compute(data.live);
  const trouble = element("trouble");
  const lab = {
    drawing: element("drawing"),
    controls: new Controls(element("controls"), state),
    state,
    api,
    parameters: data.parameters,
    language: data.language,
    copied: Boolean(data.recorded), // a copy, without a server
    computes: Boolean(data.live?.length), // in this browser
    t: text.t,
    number: text.number,
    still,
    // The figure was touched: say what was seen.
    touched: () => element("seen")?.removeAttribute("hidden"),
    // Runs work of the figure; its failure is said in the figure.
    attempt: async (work) => {
      try {
        await work();
        if (trouble) trouble.hidden = true;
      } catch (error) {
        if (error.name === "AbortError") return; // overtaken by the next touch
        console.error(error);
        if (!trouble) return;
        trouble.textContent = text.t("trouble", { reason: inWords(error, text) });
        trouble.hidden = false;
      }
    },
  };
  await lab.attempt(() => page.show(lab));
  document.documentElement.dataset.ready = "true";
}

// The link to the other language keeps what the page shows.
function links() {
  const other = document.querySelector("[data-language]");
  const renew = () => {
    const query = new URLSearchParams(location.search);
    if (!data.recorded) query.set("lang", other.dataset.language);
    other.search = `?${query}`;
  };
  other.addEventListener("click", renew);
  other.addEventListener("auxclick", renew);
  document.querySelector(".story [aria-current]")?.scrollIntoView({ block: "nearest" });
}

function theme() {
  element("theme").addEventListener("click", () => {
    const chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // Storage is forbidden: the choice lasts as long as the page.
    }
  });
}

function glossary() {
  const dialog = element("glossary");
  const card = element("term");
  element("open-glossary").addEventListener("click", () => dialog.showModal());
  element("close-glossary").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.addEventListener("click", (event) => {
    const term = event.target.closest(".term");
    if (!term) return;
    const title = element(`term-${term.dataset.term}`);
    const name = document.createElement("strong");
    name.textContent = title.textContent;
    card.replaceChildren(name, title.nextElementSibling.textContent);
    card.showPopover();
    const at = term.getBoundingClientRect();
    const below = at.bottom + 8 + card.offsetHeight < innerHeight;
    const left = Math.min(at.left, innerWidth - card.offsetWidth - 16);
    card.style.left = `${Math.max(16, left)}px`;
    card.style.top = `${below ? at.bottom + 8 : at.top - 8 - card.offsetHeight}px`;
  });
}

function copying() {
  const button = element("copy");
  button?.addEventListener("click", async () => {
    await navigator.clipboard.writeText(element("code").textContent);
    const before = button.textContent;
    button.textContent = data.texts.copied;
    setTimeout(() => {
      button.textContent = before;
    }, 1500);
  });
}

links();
theme();
glossary();
copying();
await figure();
