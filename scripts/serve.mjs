#!/usr/bin/env node
// Serves the built demo, and with --headless runs its benchmark in Chrome and prints the rows.
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, extname, join, resolve as absolute, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { flags } from "./chrome.mjs";

const USAGE = `usage: scripts/serve.mjs [options]

  --port N          port on localhost (default 4173; with --headless any free one)
  --folder PATH     what to serve (default demo/dist)
  --headless        open the page in headless Chrome (CHROME names it), print its rows, end
  --gpu             with --headless: this machine's GPU in place of a software one
  --sizes LIST      with --headless: default 128,256,512
  --backends LIST   with --headless: default webgpu,webgl2,simd,scalar
  --repeats N       with --headless: products timed for a row, default 3
  --timeout S       with --headless: seconds until it gives up, default 300

Exit status with --headless: 0 if the page finished, every result was right and every size
has one; 1 if not.`;

const MIME = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};

// Cross-origin isolation gives the page a finer clock and shared memory.
const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-cache",
};

const LARGEST_ROW_BYTES = 1 << 20;

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
        gpu: { type: "boolean", default: false },
        folder: { type: "string", default: join(dirname(fileURLToPath(import.meta.url)), "..", "demo", "dist") },
        port: { type: "string" },
        sizes: { type: "string", default: "128,256,512" },
        backends: { type: "string", default: "webgpu,webgl2,simd,scalar" },
        repeats: { type: "string", default: "3" },
        timeout: { type: "string", default: "300" },
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
  if (!/^\d+(,\d+)*$/.test(values.sizes)) die(`--sizes ${values.sizes} is not a list such as 128,256`, 2);
  if (!/^\w+(,\w+)*$/.test(values.backends)) die(`--backends ${values.backends} is not a list such as webgpu,simd`, 2);
  if (!/^[1-9]\d*$/.test(values.repeats)) die(`--repeats ${values.repeats} is not a whole number above 0`, 2);
  if (!(Number(values.timeout) > 0)) die(`--timeout ${values.timeout} is not a number of seconds`, 2);
  return { ...values, port };
}

async function send_file(folder, request, response) {
  let path;
  try {
    path = join(folder, decodeURIComponent(new URL(request.url, "http://localhost").pathname));
  } catch {
    path = ""; // not an address
  }
  if (path.endsWith(sep)) path = join(path, "index.html");
  const found = path.startsWith(folder + sep) && (await stat(path).catch(() => null));
  if (!found || !found.isFile()) {
    response.writeHead(404, { ...HEADERS, "Content-Type": "text/plain" }).end("not found\n");
    return;
  }
  const type = MIME[extname(path)] ?? "application/octet-stream";
  response.writeHead(200, { ...HEADERS, "Content-Type": type, "Content-Length": found.size });
  if (request.method === "HEAD") response.end();
  else createReadStream(path).on("error", () => response.destroy()).pipe(response);
}

async function body_of(request) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > LARGEST_ROW_BYTES) throw new Error("the row is too large");
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** Serves `folder`; what is posted to /result goes to `on_row`, where there is one. */
async function serve(folder, port, on_row) {
  const server = createServer(async (request, response) => {
    if (request.method === "GET" || request.method === "HEAD") return send_file(folder, request, response);
    const { pathname } = new URL(request.url, "http://localhost");
    if (request.method !== "POST" || pathname !== "/result" || !on_row) {
      return response.writeHead(405, HEADERS).end();
    }
    let row;
    try {
      row = JSON.parse(await body_of(request));
      if (row === null || typeof row !== "object") throw new Error("a row is an object");
      response.writeHead(204, HEADERS).end();
    } catch (error) {
      row = { error: { code: "bad_row", message: error.message } };
      response.writeHead(400, HEADERS).end();
    }
    on_row(row);
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "localhost", resolve)).catch(
    (error) => die(error.code === "EADDRINUSE" ? `port ${port} is in use: name another with --port` : error.message),
  );
  return { server, address: `http://localhost:${server.address().port}/` };
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

/** Chrome with a profile of its own. `log` is the end of what it wrote, page's console included. */
async function open_browser(address, gpu) {
  const profile = await mkdtemp(join(tmpdir(), "lapidary-chrome-"));
  const browser = {
    log: "",
    async close() {
      try {
        // A detached child leads a process group, so its helpers end with it. Nothing in its
        // profile is worth the seconds that a gentler end takes.
        process.kill(-child.pid, "SIGKILL");
      } catch {
        // none of them is left
      }
      await gone;
      await rm(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }).catch(() => {});
    },
  };
  const child = spawn(
    process.env.CHROME,
    [...flags({ gpu }), "--enable-logging=stderr", `--user-data-dir=${profile}`, address],
    { stdio: ["ignore", "ignore", "pipe"], detached: true },
  );
  const gone = new Promise((resolve) => {
    child.once("exit", resolve).once("error", (error) => {
      browser.log += error.message;
      resolve();
    });
  });
  child.stderr.setEncoding("utf8").on("data", (text) => (browser.log = (browser.log + text).slice(-20_000)));
  return { browser, gone };
}

async function headless(options) {
  if (!process.env.CHROME) die("CHROME names no browser: run scripts/setup --test, or set CHROME");
  const sizes = [...new Set(options.sizes.split(",").map(Number))];

  let end;
  const ended = new Promise((resolve) => (end = resolve));
  const table = new Table();
  const { server, address } = await serve(options.folder, options.port, (row) => {
    if (!row.done) return table.add(row);
    table.done(row);
    end("done");
  });

  const { sizes: listed, backends, repeats } = options;
  const query = `?headless=1&sizes=${listed}&backends=${backends}&repeats=${repeats}`;
  const { browser, gone } = await open_browser(address + query, options.gpu);
  gone.then(() => end("exit"));
  const timer = setTimeout(() => end("timeout"), Number(options.timeout) * 1000);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => end(signal));

  const how = await ended;
  clearTimeout(timer);
  await browser.close();
  server.closeAllConnections();
  server.close();

  const faults = table.finish();
  if (how === "done") {
    for (const size of sizes) if (!table.measured.has(size)) faults.push(`size ${size} has no result`);
  } else {
    const console_lines = browser.log.split("\n").filter((text) => text.includes("CONSOLE"));
    const reason = {
      timeout: `the page had not finished after ${options.timeout} s`,
      exit: "Chrome ended before the page had finished",
    }[how];
    faults.unshift(reason ?? `stopped by ${how}`);
    const tail = console_lines.length > 0 ? console_lines : browser.log.split("\n").filter(Boolean);
    for (const text of tail.slice(-10)) console.error(`chrome: ${text}`);
  }
  for (const fault of faults) console.error(`serve: ${fault}`);
  process.exitCode = faults.length > 0 ? 1 : 0;
}

const options = arguments_given();
options.folder = absolute(options.folder);
if (!(await stat(join(options.folder, "index.html")).catch(() => null))) die(`there is no index.html in ${options.folder}`);
if (options.headless) {
  await headless(options);
} else {
  const { address } = await serve(options.folder, options.port);
  console.log(`${address}  (Ctrl-C ends it)`);
}
