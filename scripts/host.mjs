// A folder served on localhost, and a headless Chrome that opens a page of it: what the demo and the bench have in common.
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, sep } from "node:path";
import { flags } from "./chrome.mjs";

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

/** A timer that is to take longer goes off at once. */
const LONGEST_MS = 2 ** 31 - 1;

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
export async function serve(folder, port, on_row) {
  const server = createServer(async (request, response) => {
    if (request.method === "GET" || request.method === "HEAD") return send_file(folder, request, response);
    const [pathname] = request.url.split("?");
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
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "localhost", resolve)).catch((error) => {
    throw new Error(error.code === "EADDRINUSE" ? `port ${port} is in use: name another with --port` : error.message);
  });
  return { server, address: `http://localhost:${server.address().port}/` };
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

/**
 * Opens the page of `folder` in headless Chrome and hands what it posts to `hear`, until a record has `done`. Gives a sentence on why that
 * record did not come, after the end of what Chrome wrote, or null.
 */
export async function run_page({ folder, port = 0, query, gpu, timeout_s, hear }) {
  let end;
  const ended = new Promise((resolve) => (end = resolve));
  const { server, address } = await serve(folder, port, (record) => {
    hear(record);
    if (record.done) end("done");
  });
  const { browser, gone } = await open_browser(address + query, gpu);
  gone.then(() => end("exit"));
  const timer = setTimeout(() => end("timeout"), Math.min(timeout_s * 1000, LONGEST_MS));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => end(signal));

  const how = await ended;
  clearTimeout(timer);
  await browser.close();
  server.closeAllConnections();
  server.close();
  if (how === "done") return null;

  const lines = browser.log.split("\n").filter(Boolean);
  const console_lines = lines.filter((text) => text.includes("CONSOLE"));
  for (const text of (console_lines.length > 0 ? console_lines : lines).slice(-10)) console.error(`chrome: ${text}`);
  const reason = {
    timeout: `the page had not finished after ${timeout_s} s`,
    exit: "Chrome ended before the page had finished",
  }[how];
  return reason ?? `stopped by ${how}`;
}
