// The table of scripts/size, which says what it is for.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const pkg = join(root, "pkg");

/** What a page may load of the package: node.js is for Node alone. */
const downloaded = (name) => name.endsWith(".wasm") || (name.endsWith(".js") && name !== "node.js");

function die(message) {
  console.error(`size: ${message}`);
  process.exit(1);
}

/** Pages minify, so the scripts are measured as the demo's bundler makes them, where it is installed. */
async function minifier() {
  try {
    const vite = createRequire(join(root, "demo", "package.json")).resolve("vite");
    const { minify } = await import(pathToFileURL(vite));
    return async (name, text) => (await minify(name, text, { module: true })).code;
  } catch {
    return null;
  }
}

let names;
try {
  names = readdirSync(pkg, { recursive: true }).filter(downloaded).sort();
} catch {
  die("there is no pkg/: run scripts/build first");
}
const minify = await minifier();

const rows = [];
for (const name of names) {
  let bytes = readFileSync(join(pkg, name));
  let label = basename(name);
  if (minify && name.endsWith(".js")) {
    bytes = Buffer.from(await minify(name, bytes.toString("utf8")));
    label += ", minified";
  }
  const brotli = brotliCompressSync(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
  rows.push([label, bytes.length, gzipSync(bytes, { level: 9 }).length, brotli.length]);
}
const total = [1, 2, 3].map((column) => rows.reduce((sum, row) => sum + row[column], 0));

const print = (label, ...cells) => console.log(label.padEnd(34) + cells.map((cell) => String(cell).padStart(12)).join(""));
print("bytes", "raw", "gzip -9", "brotli -11");
for (const row of rows) print(...row);
print("total", ...total);

const budget = Number(
  readFileSync(join(root, "scripts", "size-budget"), "utf8").split("\n").find((line) => /^\d+$/.test(line.trim())),
);
if (!(budget > 0)) die("scripts/size-budget holds no number of bytes");
const left = budget - total[1];
if (left < 0) die(`the gzip total is ${-left} bytes above the budget of ${budget} (scripts/size-budget)`);
console.log(`${left} bytes of gzip left of the budget of ${budget}`);
