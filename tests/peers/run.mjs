#!/usr/bin/env node
// Runs the built bench in headless Chrome and prints its rows.
import { open, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { run_page } from "../../scripts/host.mjs";
import { Report } from "./report.mjs";
import { plan } from "./src/plan.js";
import { parse } from "./src/settings.js";

function die(message, status = 1) {
  console.error(`bench-peers: ${message}`);
  process.exit(status);
}

const TEXT = { type: "string" };

function arguments_given() {
  try {
    return parseArgs({
      options: {
        sizes: TEXT,
        shapes: TEXT,
        only: TEXT,
        backends: TEXT,
        samples: TEXT,
        "min-ms": TEXT,
        gpu: { type: "boolean", default: false },
        json: TEXT,
        timeout: { ...TEXT, default: "900" },
        check: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    return die(`${error.message}; see --help`, 2);
  }
}

const options = arguments_given();
if (!(Number(options.timeout) > 0)) die(`--timeout ${options.timeout} is not a number of seconds`, 2);

// A CPU that emulates a GPU takes minutes for what a GPU does in a blink.
const sizes = options.sizes ?? (options.gpu ? "512,1024,2048,4096" : "64,128");
const query = new URLSearchParams({ headless: "1", sizes });
for (const [key, value] of Object.entries({ ...options, min_ms: options["min-ms"] })) {
  if (value !== undefined && ["shapes", "only", "backends", "samples", "min_ms"].includes(key)) query.set(key, value);
}

// By what the page itself makes of them: what it would leave out is not begun.
const { settings, ignored } = parse(`?${query}`);
if (ignored.length > 0) die(ignored.map((text) => `--${text.replace(/^min_ms/, "min-ms")}`).join("; "), 2);
if (plan(settings).frames.length === 0) die("--sizes, --only and --backends leave nothing to measure", 2);
// A file that cannot be written is found out before hours of work, not after.
if (options.json) await open(options.json, "a").then((file) => file.close(), (error) => die(`--json: ${error.message}`, 2));
if (options.check) process.exit();
if (!process.env.CHROME) die("CHROME names no browser: run scripts/setup --browser, or set CHROME");

const report = new Report();
const fault = await run_page({
  folder: fileURLToPath(new URL("dist", import.meta.url)),
  query: `?${query}`,
  gpu: options.gpu,
  timeout_s: Number(options.timeout),
  hear: (record) => report.hear(record),
}).catch((error) => die(error.message));
if (options.json) await writeFile(options.json, `${JSON.stringify(report.records, null, 2)}\n`);
const faults = fault ? [fault, ...report.faults] : report.faults;
for (const text of faults) console.error(`bench-peers: ${text}`);
process.exitCode = faults.length > 0 ? 1 : 0;
