// Names the inputs that the output under the pointer depends on. The page is complete without it.
const rows = JSON.parse(document.getElementById("rows").textContent);
const reader = document.querySelector(".reader");
const slider = reader.querySelector("input");
const label = reader.querySelector("output");
const plot = document.querySelector(".plot");
const mark = plot.querySelector(".row");

function describe(u) {
  const ranges = rows[u].map(([first, end]) =>
    end - first > 1 ? `${first}…${end - 1}` : `${first}`);
  const shown = ranges.slice(0, 8).join(", ");
  const rest = ranges.length > 8 ? ` and ${ranges.length - 8} ranges more` : "";
  const single = ranges.length === 1 ? !shown.includes("…") : false;
  const inputs = ranges.length ? `${single ? "input" : "inputs"} ${shown}${rest}` : "no input";
  label.textContent = `Output ${u} depends on ${inputs}.`;
  slider.value = u;
}

function show(u) {
  describe(u);
  mark.setAttribute("y", u);
  mark.removeAttribute("visibility");
}

slider.addEventListener("input", () => show(Number(slider.value)));
plot.addEventListener("pointermove", (event) => {
  const box = plot.getBoundingClientRect();
  const u = Math.floor((event.clientY - box.top) / box.height * rows.length);
  show(Math.max(0, Math.min(rows.length - 1, u)));
});
describe(Number(slider.value));
reader.hidden = false;
