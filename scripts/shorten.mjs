// usage: node scripts/shorten.mjs GLUE WAT
//
// wasm-bindgen names each function that WebAssembly imports from its glue after a type and a hash,
// and writes it once for each type: `buffer` of three kinds of array is three functions with one
// body. Here each body is kept once, under a short name, in both files, and modules too have short names. A tenth less to download.
import { readFileSync, writeFileSync } from "node:fs";

const [glue_path, wat_path] = process.argv.slice(2);
const glue = readFileSync(glue_path, "utf8");
const wat = readFileSync(wat_path, "utf8");

/** Short names by the bodies they stand for, and by the names they stand in for. */
const by_body = new Map();
const by_name = new Map();

const imported = /^ {8}(__wb\w+): (function[^]*?^ {8}\}[^\n]*),\n/gm;
let shorter = glue.replace(imported, (_, name, body) => {
  const known = by_body.get(body);
  const short = known ?? `i${by_body.size.toString(36)}`;
  by_body.set(body, short);
  by_name.set(name, short);
  return known ? "" : `        ${short}: ${body},\n`;
});

const exported = /\bwasm_bindgen_[0-9a-f]+___convert__closures\w+/g;
for (const [name] of shorter.matchAll(exported)) {
  if (!by_name.has(name)) by_name.set(name, `e${by_name.size.toString(36)}`);
}
shorter = shorter.replace(exported, (name) => by_name.get(name));

/** Short names of modules, each of which the glue has for every import. */
const modules = new Map();
shorter = shorter.replace(/^ {8}"(\.\/[^"]+)"(?=: import\d+,$)/gm, (_, path) => {
  if (!modules.has(path)) modules.set(path, modules.size.toString(36));
  return `        "${modules.get(path)}"`;
});

const left = new Set();
const named = wat.replace(/(?<=^ \(import )"([^"]*)"/gm, (whole, path) => (modules.has(path) ? `"${modules.get(path)}"` : whole)).replace(/(\((?:import "[^"]*"|export) )"(\w+)"/g, (whole, start, name) => {
  if (!by_name.has(name) && /_h?[0-9a-f]{16}/.test(name)) left.add(name);
  return by_name.has(name) ? `${start}"${by_name.get(name)}"` : whole;
});
if (left.size > 0 || by_body.size === 0 || modules.size === 0) {
  console.error(`shorten: the glue is not laid out as this script knows it: ${[...left].join(", ") || "no imports"}`);
  process.exit(1);
}
writeFileSync(glue_path, shorter);
writeFileSync(wat_path, named);
