/**
 * Serves folders as a host would, with cross-origin isolation. All files are read once, at the start. An address that ends in a slash
 * and has no file is an empty page. `deny` makes paths that match it answer 404, `policy` adds a content security policy, `replace`
 * gives paths other contents, and `type` gives extensions other types. Without `isolated` there is no such isolation.
 */
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

export const PACKAGE = fileURLToPath(new URL("../../pkg/", import.meta.url));
const CHECKS = fileURLToPath(new URL("./checks/", import.meta.url));

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };
const EMPTY = '<!doctype html><meta charset="utf-8"><title>test</title><link rel="icon" href="data:,">';

/** Paths of all files below a folder, with `/` between. */
export function list(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)));
  return paths.map((path) => path.replaceAll(sep, "/")).sort();
}

export async function serve({ mounts = { "/package/": PACKAGE, "/checks/": CHECKS }, deny, policy, replace = {}, type = {}, isolated = true } = {}) {
  const files = new Map(Object.entries(replace).map(([path, text]) => [path, Buffer.from(text)]));
  for (const [prefix, folder] of Object.entries(mounts)) {
    for (const name of list(folder)) {
      if (!files.has(prefix + name)) files.set(prefix + name, readFileSync(join(folder, name)));
    }
  }
  const headers = {
    ...(isolated ? { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" } : {}),
    "Cache-Control": "no-store",
    ...(policy ? { "Content-Security-Policy": policy } : {}),
  };
  const server = createServer((request, response) => {
    let { pathname } = new URL(request.url, "http://localhost");
    if (pathname.endsWith("/")) pathname += "index.html";
    const body = files.get(pathname) ?? (pathname.endsWith("/index.html") ? EMPTY : undefined);
    if (body === undefined || deny?.test(pathname)) return response.writeHead(404, headers).end("not found");
    const extension = extname(pathname);
    response.writeHead(200, { ...headers, "Content-Type": type[extension] ?? TYPES[extension] ?? "application/octet-stream" }).end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
