// The table of scripts/size, which says what it is for.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const pkg = join(root, "pkg");

function die(message) {
  console.error(`size: ${message}`);
  process.exit(1);
}

/** Pages, by what they import and the WebAssembly that this loads. */
const PRODUCTS = ["init_gpu", "device_info", "matmul", "tensor"];
const OPERATIONS = [...PRODUCTS, "lazy", "evaluate"];
const with_parts = (...parts) => ["lapidary_core_bg.wasm", ...parts.map((part) => `lapidary_${part}.wasm`)];
const PAGES = {
  products: { names: PRODUCTS, files: with_parts() },
  "products-cpu": { names: PRODUCTS, files: with_parts("cpu") },
  "products-webgl2": { names: PRODUCTS, files: with_parts("webgl2") },
  operations: { names: OPERATIONS, files: with_parts("operations") },
  "operations-cpu": { names: OPERATIONS, files: with_parts("operations", "cpu", "operations_cpu") },
  "operations-webgl2": { names: OPERATIONS, files: with_parts("operations", "webgl2", "operations_webgl2") },
  everything: { files: with_parts("operations", "cpu", "operations_cpu", "webgl2", "operations_webgl2", "matrix", "int8", "measure") },
};

/** The script that the demo's bundler makes of a page that imports so much of the package. */
async function bundled(names) {
  const { build } = await import(pathToFileURL(createRequire(join(root, "demo", "package.json")).resolve("vite")));
  const entry = "\0page";
  const page = {
    name: "page",
    resolveId: (id) => (id === entry ? id : undefined),
    load: (id) => (id === entry ? `import * as all from ${JSON.stringify(join(pkg, "index.js"))};\nglobalThis.all = ${names ? `[${names.map((name) => `all.${name}`)}]` : "{ ...all }"};` : undefined),
  };
  const options = { root: pkg, configFile: false, logLevel: "error", plugins: [page], build: { write: false, rollupOptions: { input: entry } } };
  const { output } = await build(options);
  return Buffer.from(output.filter(({ type }) => type === "chunk").map(({ code }) => code).join(""));
}

function measured(bytes) {
  const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
  return [bytes.length, gzipSync(bytes, { level: 9 }).length, brotliCompressSync(bytes, brotli).length];
}

const print = (label, ...cells) => console.log(label.padEnd(34) + cells.map((cell) => String(cell).padStart(12)).join(""));

const budgets = new Map(
  readFileSync(join(root, "scripts", "size-budget"), "utf8")
    .split("\n")
    .map((line) => line.match(/^(\d+) ([\w-]+)$/))
    .filter(Boolean)
    .map(([, bytes, page]) => [page, Number(bytes)]),
);
print("bytes", "raw", "gzip -9", "brotli -11", "budget");
const sizes = new Map();
for (const name of PAGES.everything.files) {
  try {
    sizes.set(name, measured(readFileSync(join(pkg, name))));
  } catch {
    die(`there is no pkg/${name}: run scripts/build first`);
  }
  print(name, ...sizes.get(name));
}
let fault;
for (const [page, { names, files }] of Object.entries(PAGES)) {
  const script = measured(await bundled(names));
  print(`script of ${page}`, ...script);
  const total = [0, 1, 2].map((i) => files.reduce((sum, name) => sum + sizes.get(name)[i], script[i]));
  const budget = budgets.get(page) ?? die(`scripts/size-budget has no budget for ${page}`);
  print(`${page}, all together`, ...total, budget);
  if (total[1] > budget) fault ??= `${page}: the gzip total is ${total[1] - budget} bytes above its budget (scripts/size-budget)`;
}
if (fault) die(fault);
