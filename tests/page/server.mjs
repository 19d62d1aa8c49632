/**
 * Serves the built page as a host would, with cross-origin isolation, and takes what machine mode posts. To see what
 * the page says when things go wrong: `deny` makes paths that match it answer 404, `policy` adds a content security
 * policy, and `worker` is a script that takes the compute worker's place.
 */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../demo/dist/", import.meta.url));

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

export async function serve({ deny, policy, worker } = {}) {
  const state = { deny };
  const results = [];
  const requests = [];
  let finish;
  const done = new Promise((resolve) => (finish = resolve));

  const server = createServer(async (request, response) => {
    const path = new URL(request.url, "http://localhost").pathname;
    requests.push(path);
    const headers = {
      "Cross-Origin-Opener-Policy": "same-origin",
      "Cross-Origin-Embedder-Policy": "require-corp",
      "Cache-Control": "no-store",
      ...(policy ? { "Content-Security-Policy": policy } : {}),
    };
    if (request.method === "POST" && path === "/result") {
      let body = "";
      for await (const chunk of request) body += chunk;
      const record = JSON.parse(body);
      results.push(record);
      response.writeHead(204, headers).end();
      if (record.done) finish(results);
      return;
    }
    try {
      if (state.deny?.test(path)) throw new Error("denied");
      if (worker && /\/worker-[^/]*\.js$/.test(path)) {
        response.writeHead(200, { ...headers, "Content-Type": TYPES[".js"] }).end(worker);
        return;
      }
      const file = join(ROOT, normalize(path === "/" ? "/index.html" : path));
      const body = await readFile(file);
      response.writeHead(200, { ...headers, "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" }).end(body);
    } catch {
      response.writeHead(404, headers).end("not found");
    }
  });

  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    /** Paths asked for, in order. */
    requests,
    /** What was posted; resolves with the record that has `done`. */
    done,
    /** From now on everything is there. */
    allow_all() {
      state.deny = undefined;
    },
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
