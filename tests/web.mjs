#!/usr/bin/env node
// usage: tests/web.mjs WASM [wasm-bindgen-test-runner's options]
//
// Cargo's runner for the tests on wasm32: opens the page that wasm-bindgen-test-runner serves in headless Chrome,
// prints what it says as it comes, and ends as it ends.
//
// The runner would drive Chrome by itself. But its server reads from four connections at a time, each kept for
// good, and Chrome opens six when a page has many modules: what comes on the last two may wait for ever.
// Here one request is under way at a time, on a connection that is closed after it.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { request } from "node:http";
import { join, relative, sep } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { launch } from "./page/browser.mjs";

const LIMIT_MS = 900_000;
const SERVED = /available at (http:\S+)/;
/** Where scripts/onnx puts ONNX's cases. */
const CASES = fileURLToPath(new URL("../target/onnx-cases-1.22.0", import.meta.url));

const [wasm, ...options] = process.argv.slice(2);
if (!wasm || wasm.startsWith("-")) {
  const help = wasm === "--help" || wasm === "-h";
  console[help ? "log" : "error"]("usage: tests/web.mjs WASM [wasm-bindgen-test-runner's options]");
  process.exit(help ? 0 : 2);
}

const server = spawn("wasm-bindgen-test-runner", [wasm, ...options], {
  env: { ...process.env, NO_HEADLESS: "1", WASM_BINDGEN_TEST_ADDRESS: "127.0.0.1:0" },
  stdio: ["ignore", "pipe", "inherit"],
});
const ended = new Promise((resolve) => {
  server.on("error", (error) => resolve(`wasm-bindgen-test-runner: ${error.message}`));
  server.on("exit", (code, signal) => resolve(`wasm-bindgen-test-runner ended: ${signal ?? code}`));
});

/** Where the page is; the server prints it before anything else that is of use. */
async function address() {
  for await (const line of createInterface({ input: server.stdout })) {
    const served = SERVED.exec(line);
    if (served) return served[1];
  }
  throw new Error(await ended);
}

function get(url) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { agent: false, headers: { connection: "close" } }, async (response) => {
      const chunks = [];
      try {
        for await (const chunk of response) chunks.push(chunk);
      } catch (error) {
        return reject(error);
      }
      const { connection, "transfer-encoding": _, "content-length": __, ...headers } = response.headers;
      resolve({ status: response.statusCode, headers, body: Buffer.concat(chunks) });
    });
    sent.on("error", reject).end();
  });
}

/** ONNX's cases as web.rs reads them. Where there are none, it may pass them over unless they are required. */
function cases() {
  if (!existsSync(CASES)) return { status: process.env.LAPIDARY_REQUIRE?.split(",").includes("onnx") ? 500 : 404 };
  const files = readdirSync(CASES, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const with_length = (bytes) => {
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return [length, bytes];
  };
  const parts = files.flatMap(({ parentPath, name }) => {
    const path = join(parentPath, name);
    return [...with_length(Buffer.from(relative(CASES, path).replaceAll(sep, "/"))), ...with_length(readFileSync(path))];
  });
  return { status: 200, body: Buffer.concat(parts) };
}

/** Prints what the tests say until they are done. */
async function run(page, url) {
  await page.goto(url);
  for (let said = ""; ; await delay(200)) {
    const now = await text(page, "output");
    process.stdout.write(now.startsWith(said) ? now.slice(said.length) : now);
    said = now;
    if (said.includes("test result: ")) return said.includes("test result: ok");
  }
}

const text = (page, id) => page.evaluate((id) => document.getElementById(id)?.textContent ?? "", id);

/** Never right: says `why` once `event` has come. */
const fails = (event, why) => event.then((what) => Promise.reject(new Error(why ?? what)));

async function main() {
  const url = await address();
  server.stdout.resume();
  const browser = await launch();
  try {
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.log(String(error)));
    page.on("console", (message) => message.text().startsWith("ONNX's cases ") && console.log(message.text()));
    let last = Promise.resolve();
    await page.route(`${url}/**`, (route) => {
      last = last.then(async () => route.fulfill(await get(route.request().url()))).catch(() => route.abort());
      return last;
    });
    // What is routed last is looked at first.
    await page.route(`${url}/onnx-cases`, (route) => route.fulfill(cases()));
    const crashed = new Promise((resolve) => page.on("crash", resolve));
    const late = delay(LIMIT_MS, undefined, { ref: false });
    const passed = await Promise.race([
      run(page, url),
      fails(ended),
      fails(crashed, "The page crashed."),
      fails(late, `The tests did not end within ${LIMIT_MS / 1000} s.`),
    ]).catch((error) => console.log(error.message));
    // A page that is stuck says nothing more.
    if (!passed) console.log(await Promise.race([text(page, "console_output").catch(String), delay(5000, "")]));
    return passed;
  } finally {
    await browser.close();
  }
}

const passed = await main().catch((error) => console.log(error.message));
server.kill();
process.exit(passed ? 0 : 1);
