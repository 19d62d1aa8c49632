/** Shows rows as they come, a table for each measure on each backend. */
import { NAMES } from "./libraries/index.js";
import { LIBRARIES } from "./settings.js";

const results = document.querySelector("#results");
const notes = document.querySelector("#notes");
const progress = document.querySelector("#progress");

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** Three digits that count, no exponent. */
export function digits(value) {
  if (!Number.isFinite(value)) return "–";
  return value >= 100 ? Math.round(value).toLocaleString("en").replaceAll(",", "\u202f") : value.toPrecision(3);
}

const TITLES = {
  first: "First result from a fresh page",
  resident: "Resident products",
  end_to_end: "End to end",
  batch: "Batch",
  vector: "Matrix times vector",
  queue: "A queue of 1,000 products",
  f16: "Resident products of f16, the others' in f32,",
  f16x3: "Resident products in two terms of f16, the others' in f32,",
  operations: "Operations on square matrices",
  conv: "Convolutions, layers of ResNet-50 and MobileNetV2,",
  fft: "Fourier transforms of complex numbers",
  neighbours: "lapidary beside the nearest of the sizes",
  tuned: "lapidary's defaults beside what tune() finds",
  f16_computed: "Products of f16 computed in f16, beside f32,",
  int8: "Products of 8-bit integers, beside f32,",
};

export function clear() {
  results.replaceChildren();
  notes.replaceChildren();
}

export function set_progress(text) {
  progress.textContent = text;
}

export function add_note(text) {
  notes.append(element("li", {}, text));
}

function table_for({ measure, backend, unit }) {
  const id = `${measure}-${backend}`;
  const found = document.getElementById(id);
  if (found) return found.tBodies[0];
  const titles = ["Shape", ...LIBRARIES.map((name) => NAMES[name]), "Ratio"];
  const head = element("tr", {}, ...titles.map((text) => element("th", { scope: "col" }, text)));
  const body = element("tbody");
  const caption = element("caption", {}, `${TITLES[measure]} on ${backend}, ${unit}`);
  results.append(element("div", { className: "wide" }, element("table", { id }, caption, element("thead", {}, head), body)));
  return body;
}

function cell(result) {
  if (!result) return element("td", { className: "muted" }, "–");
  if (result.error) return element("td", { className: "bad" }, element("small", {}, result.error));
  const { figure, min, max, verdict, note } = result;
  const spread = element("small", {}, `${digits(min)}–${digits(max)}`);
  const made = element("td", {}, element("b", {}, digits(figure)), spread);
  const fault = verdict.reason ?? `${verdict.wrong} elements, checked: ${verdict.checked}`;
  const judged = verdict.ok ? `✓ ${verdict.checked}` : `✗ wrong: ${fault}`;
  made.append(element("small", { className: verdict.ok ? "ok" : "bad" }, judged));
  if (note) made.append(element("small", {}, note));
  return made;
}

/** What stands beside lapidary's figure, for a row of this measure. */
function beside({ beside: what, kernel_gflops, copy_gb_s, plain_error, results: [{ figure, verdict }, other] }) {
  if (what) return `${what} ${digits(other.figure)}${other.error ?? (other.verdict.ok ? "" : ", wrong")}`;
  if (plain_error && verdict) return `error ${digits(verdict.max_abs_error / plain_error)} times plain f32's`;
  if (kernel_gflops) return `kernel alone ${digits(kernel_gflops)}`;
  return copy_gb_s && figure ? `${digits((100 * figure) / copy_gb_s)} % of a copy's ${digits(copy_gb_s)} GB/s` : "";
}

export function add_row(row) {
  const cells = LIBRARIES.map((library) => cell(row.results.find((result) => result.library === library)));
  if (beside(row)) cells[0].append(element("small", {}, beside(row)));
  const ratio = element("td", { className: "ratio" }, "–");
  if (row.ratio) {
    ratio.replaceChildren(
      element("b", {}, `${row.ratio.toFixed(2)}×`),
      element("small", {}, `${row.ratio_min.toFixed(2)}–${row.ratio_max.toFixed(2)}`),
      element("small", {}, row.beside ? `of lapidary ${row.beside}` : `${NAMES[row.best_peer]} is the best peer`),
    );
  }
  table_for(row).append(element("tr", {}, element("th", { scope: "row" }, row.shape.replaceAll("x", " × ")), ...cells, ratio));
}
