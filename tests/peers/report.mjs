// The rows of a run as text of at most 80 columns: what stands where is in src/rows.js.

const LIBRARIES = ["lapidary", "tfjs", "ort", "jax"];

const TITLES = {
  first: "first result from a fresh page",
  resident: "resident products",
  end_to_end: "end to end",
  batch: "batch",
  vector: "matrix times vector",
  queue: "1,000 products queued",
  f16: "products of f16, the others' in f32",
  f16x3: "products in two terms of f16, the others' in f32",
  operations: "operations on square matrices",
  conv: "convolutions",
  fft: "Fourier transforms",
  neighbours: "lapidary beside the nearest of the sizes",
  tuned: "lapidary's defaults beside what tune() finds",
  f16_computed: "f16 computed in f16, beside f32",
  int8: "8-bit integers, beside f32",
};

const figures = (value) => (value >= 1000 ? value.toFixed(0) : value.toPrecision(3));

/** `text` after `start`, broken into lines of at most 80 columns. */
function wrapped(start, text) {
  const lines = text.match(new RegExp(`\\S.{0,${79 - start.length}}(?=\\s|$)|\\S+`, "g")) ?? [""];
  return start + lines.join(`\n${" ".repeat(start.length)}`);
}

function line(shape, cells, ratio, spread) {
  return [shape.padEnd(15), ...cells.map((cell) => cell.padStart(10)), ratio.padStart(8), spread.padStart(14)].join("").trimEnd();
}

function cell(result) {
  if (!result) return "-";
  if (result.error) return "error";
  return result.verdict.ok ? figures(result.figure) : "WRONG";
}

/** Where lapidary has no call of its own for what is measured. */
const mark = ({ measure }, result) => (result?.library === "lapidary" && measure !== "first" && result.note ? "*" : "");

/** Prints each record as it comes; `faults` gathers what makes the run a failure: all that is not right with lapidary or the page. */
export class Report {
  #group = "";
  #rows = 0;
  #checked = new Map();
  faults = [];
  records = [];

  hear(record) {
    this.records.push(record);
    if (record.environment) this.#environment(record.environment);
    else if (record.measure) this.#row(record);
    else if (record.note) console.log(wrapped("note: ", record.note));
    else if (record.fault) this.faults.push(`${record.backend} ended early: ${record.fault}`);
    else if (record.done) this.#done(record);
    else if (record.library) this.#library(record);
    else if (record.error) this.faults.push(`a record was refused: ${record.error.message}`);
  }

  #environment({ versions, adapter, user_agent }) {
    const { lapidary, tfjs, ort, jax } = versions;
    const peers = `tfjs: TensorFlow.js ${tfjs}; ort: onnxruntime-web ${ort}; jax: jax-js ${jax}`;
    console.log(wrapped("versions: ", `lapidary ${lapidary}; ${peers}`));
    console.log(wrapped("browser: ", user_agent));
    console.log(wrapped("adapter: ", adapter || "none for WebGPU"));
  }

  #library({ library, backend, device, error }) {
    console.log(wrapped(`${backend}, ${library}: `, error ? `does not open: ${error}` : device));
  }

  #row(row) {
    const group = `${row.backend}, ${TITLES[row.measure]}, ${row.unit}`;
    if (group !== this.#group) {
      console.log(`\n${group}`);
      console.log(line("", LIBRARIES, "ratio", "range"));
      this.#group = group;
    }
    const found = LIBRARIES.map((library) => row.results.find((result) => result.library === library));
    const ratio = row.ratio ? [`${row.ratio.toFixed(2)}x`, `${row.ratio_min.toFixed(2)}-${row.ratio_max.toFixed(2)}`] : ["-", ""];
    console.log(line(row.shape, found.map((result) => cell(result) + mark(row, result)), ...ratio));
    if (row.kernel_gflops) console.log(`  lapidary's kernel alone: ${figures(row.kernel_gflops)}`);
    if (row.copy_gb_s && found[0].figure) {
      const share = ((100 * found[0].figure) / row.copy_gb_s).toFixed(0);
      console.log(`  lapidary: ${share} % of the device's copy rate, ${figures(row.copy_gb_s)} GB/s read and written`);
    }
    if (row.beside) this.#beside(row);
    if (row.plain_error !== undefined && found[0].verdict) this.#compare(row, found[0].verdict.max_abs_error);
    for (const result of found.filter(Boolean)) this.#remark(row, result);
    this.#rows += 1;
  }

  /** lapidary beside itself. */
  #beside({ results, beside, ratio, least }) {
    const other = results.find(({ library }) => library === "beside");
    const verdict = least && ratio ? `: ${ratio < least ? "not " : ""}within ${(100 - 100 * least).toFixed(0)} %` : "";
    console.log(`  ${beside}: ${cell(other)}${verdict}`);
    if (other.error || !other.verdict.ok) this.faults.push(`lapidary ${beside}: ${other.error ?? "wrong"}`);
  }

  /** What is offered as no less exact than f32 has to be, but for the chance of one element. */
  #compare({ measure, shape, plain_error }, error) {
    console.log(`  lapidary: error up to ${error.toExponential(2)}, in plain f32 ${plain_error.toExponential(2)}`);
    if (error > 1.25 * plain_error) this.faults.push(`${measure} ${shape}: an error of ${error}, but only ${plain_error} in plain f32`);
  }

  #remark(row, { library, error, verdict, note }) {
    const where = `${row.backend} ${row.measure} ${row.shape}`;
    if (error) {
      console.log(wrapped(`  ${library}: `, error));
      if (library === "lapidary") this.faults.push(`${where}: lapidary ended with ${error}`);
      return;
    }
    if (!verdict.ok) {
      const why = verdict.reason ?? `error up to ${verdict.max_abs_error}, ${verdict.worst_ratio} times its bound`;
      console.log(wrapped(`  ${library}: `, `wrong: ${why}`));
      if (library === "lapidary") this.faults.push(`${where}: lapidary is wrong: ${why}`);
    } else if (library === "lapidary") {
      this.#checked.set(verdict.checked, (this.#checked.get(verdict.checked) ?? 0) + 1);
    }
    if (note) console.log(wrapped(`  ${mark(row, { library, note }) && "* "}${library}: `, note));
  }

  #done({ rows, lost, ignored, seconds }) {
    const checks = [...this.#checked].map(([checked, count]) => `${checked} of ${count}`).join(", ");
    console.log(`\n${rows} rows in ${seconds.toFixed(0)} s. lapidary's results are right in ${checks || "none"}.`);
    console.log("A ratio is lapidary's speed over that of the best peer with a right result;");
    console.log("its range is over the rounds, in which the libraries take turns. Where lapidary is");
    console.log("beside itself, it is over its other speed, which stands below.");
    for (const text of ignored) this.faults.push(`the page left out a setting: ${text}`);
    if (lost > 0) this.faults.push(`${lost} records did not arrive`);
    if (this.#rows === 0) this.faults.push("nothing was measured");
  }
}
