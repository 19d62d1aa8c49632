#!/usr/bin/env node
// Serves the built demo, and with --headless runs its benchmark in Chrome and prints the rows.
import { stat } from "node:fs/promises";
import { dirname, join, resolve as absolute } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { run_page, serve } from "./host.mjs";

const USAGE = `usage: scripts/serve.mjs [options]

  --port N          port on localhost (default 4173; with --headless any free one)
  --folder PATH     what to serve (default demo/dist)
  --headless        open the page in headless Chrome (CHROME names it), print its rows, end
  --gpu             with --headless: this machine's GPU in place of a software one
  --sizes LIST      with --headless: default 128,256,512
  --backends LIST   with --headless: default webgpu,webgl2,simd,scalar
  --repeats N       with --headless: products timed for a row, default 3
  --timeout S       with --headless: seconds until it gives up, default 300
  --check           only looks at the other options

Exit status with --headless: 0 if the page finished, every result was right and every size
has one; 1 if not.`;

/** What only --headless takes, as it is by default. */
const OF_HEADLESS = { sizes: "128,256,512", backends: "webgpu,webgl2,simd,scalar", repeats: "3", timeout: "300" };

// What the page takes, in demo/src/bench: it is in TypeScript, and may not be built yet. A test compares them.
const BACKENDS = ["webgpu", "webgl2", "simd", "scalar"];
const [MAX_SIZE, MAX_SIZES, MAX_REPEATS] = [4096, 16, 100];

const is_whole = (text, most) => /^\d{1,10}$/.test(text) && Number(text) >= 1 && Number(text) <= most;

function die(message, status = 1) {
  console.error(`serve: ${message}`);
  process.exit(status);
}

function arguments_given() {
  let values;
  try {
    values = parseArgs({
      options: {
        help: { type: "boolean", short: "h", default: false },
        headless: { type: "boolean", default: false },
        gpu: { type: "boolean" },
        folder: { type: "string", default: join(dirname(fileURLToPath(import.meta.url)), "..", "demo", "dist") },
        port: { type: "string" },
        ...Object.fromEntries(Object.keys(OF_HEADLESS).map((name) => [name, { type: "string" }])),
        check: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    die(`${error.message}\n\n${USAGE}`, 2);
  }
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const port = Number(values.port ?? (values.headless ? 0 : 4173));
  if (!Number.isInteger(port) || port < 0 || port > 65535) die(`--port ${values.port} is not a port`, 2);
  const lost = values.headless ? undefined : ["gpu", ...Object.keys(OF_HEADLESS)].find((name) => values[name] !== undefined);
  if (lost) die(`--${lost} does nothing without --headless`, 2);
  const options = { ...OF_HEADLESS, ...values, port };
  const { sizes, backends, repeats, timeout } = options;
  const listed = sizes.split(",");
  if (!listed.every((size) => is_whole(size, MAX_SIZE))) die(`--sizes ${sizes} is not a list such as 128,256, of sizes from 1 to ${MAX_SIZE}`, 2);
  if (new Set(listed.map(Number)).size > MAX_SIZES) die(`--sizes are more than ${MAX_SIZES}`, 2);
  const unknown = backends.split(",").find((backend) => !BACKENDS.includes(backend));
  if (unknown !== undefined) die(`--backends: “${unknown}” is none of ${BACKENDS.join(", ")}`, 2);
  if (!is_whole(repeats, MAX_REPEATS)) die(`--repeats ${repeats} is not a whole number from 1 to ${MAX_REPEATS}`, 2);
  if (!(Number(timeout) > 0)) die(`--timeout ${timeout} is not a number of seconds`, 2);
  return options;
}

const figures = (value) => {
  if (typeof value !== "number" || !Number.isFinite(value)) return "-";
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(3);
};

/** One line of at most 80 columns, two spaces between columns. */
function line(size, backend, median, gflops, kernel, speedup, verdict) {
  return [
    String(size).padStart(5),
    String(backend).padEnd(8),
    median.padStart(10),
    gflops.padStart(8),
    kernel.padStart(14),
    speedup.padStart(8),
    verdict,
  ].join("  ");
}

/** `text` after `start`, broken into lines of at most 80 columns. */
function wrapped(start, text) {
  const lines = text.match(new RegExp(`\\S.{0,${79 - start.length}}(?=\\s|$)|\\S+`, "g")) ?? [""];
  return start + lines.join(`\n${" ".repeat(start.length)}`);
}

const HEADING = line("size", "backend", "median ms", "GFLOP/s", "kernel GFLOP/s", "speed-up", "verdict");

/** The rows of one run: prints each as it comes, and judges all of them at the end. */
class Table {
  constructor() {
    this.faults = [];
    this.warnings = [];
    this.measured = new Set();
    this.adapters = new Map();
    console.log(HEADING);
  }

  add(row) {
    if (row.device) return; // each row says which device it ran on
    const size = row.size ?? "-";
    const backend = row.backend ?? "-";
    const start = `${String(size).padStart(5)}  ${String(backend).padEnd(8)}  `;
    if (row.error) {
      const { code, message } = row.error;
      console.log(wrapped(start, `error ${code}: ${message}`));
      this.faults.push(`${row.backend ? `size ${size} on ${backend}` : "the run"} ended with ${code}: ${message}`);
    } else if (row.skipped !== undefined) {
      console.log(wrapped(start, `skipped: ${row.skipped}`));
    } else {
      const right = row.verdict?.ok === true;
      const speedup = figures(row.speedup);
      console.log(
        line(size, backend, figures(row.median_ms), figures(row.gflops), figures(row.kernel_gflops),
          speedup === "-" ? speedup : `${speedup}x`, right ? "ok" : "WRONG"),
      );
      this.measured.add(Number(size));
      this.adapters.set(backend, `${row.adapter || "not named"}${row.software ? " (software)" : ""}`);
      if (!right) {
        const { max_abs_error, worst_ratio } = row.verdict ?? {};
        this.faults.push(`size ${size} on ${backend} is wrong: error up to ${max_abs_error}, ${worst_ratio} times its bound`);
      }
    }
  }

  /** The last record counts what the page itself knows of. */
  done({ stopped, lost, ignored = [], warnings = [] }) {
    if (stopped) this.faults.push("the page stopped before the end");
    if (lost > 0) this.faults.push(`${lost} records did not arrive`);
    for (const text of ignored) this.faults.push(`the page ignored a setting: ${text}`);
    this.warnings = warnings.map(({ what, remedy }) => `${what} ${remedy}`);
  }

  finish() {
    for (const [backend, adapter] of this.adapters) console.log(wrapped(`${backend}: `, adapter));
    for (const text of this.warnings) console.log(wrapped("note: ", text));
    return this.faults;
  }
}

async function headless(options) {
  if (!process.env.CHROME) die("CHROME names no browser: run scripts/setup --browser, or set CHROME");
  const sizes = [...new Set(options.sizes.split(",").map(Number))];

  const table = new Table();
  const { sizes: listed, backends, repeats } = options;
  const fault = await run_page({
    folder: options.folder,
    port: options.port,
    query: `?headless=1&sizes=${listed}&backends=${backends}&repeats=${repeats}`,
    gpu: options.gpu,
    timeout_s: Number(options.timeout),
    hear: (row) => (row.done ? table.done(row) : table.add(row)),
  }).catch((error) => die(error.message));

  const faults = table.finish();
  if (fault) faults.unshift(fault);
  else for (const size of sizes) if (!table.measured.has(size)) faults.push(`size ${size} has no result`);
  for (const fault of faults) console.error(`serve: ${fault}`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}

const options = arguments_given();
if (options.check) process.exit();
options.folder = absolute(options.folder);
if (!(await stat(join(options.folder, "index.html")).catch(() => null))) die(`there is no index.html in ${options.folder}`);
if (options.headless) {
  await headless(options);
} else {
  const { address } = await serve(options.folder, options.port).catch((error) => die(error.message));
  console.log(`${address}  (Ctrl-C ends it)`);
}
