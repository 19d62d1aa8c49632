// What of the WebAssembly module is loaded when it is first needed: scripts/split.mjs has cut it out, and it shares the core's memory.

import { fault } from "./options.js";
import { read_file } from "./source.js";

/** Where parts lie: written out, so that bundlers find them. */
const PARTS = {
  operations: () => new URL("./lapidary_operations.wasm", import.meta.url),
  cpu: () => new URL("./lapidary_cpu.wasm", import.meta.url),
  webgl2: () => new URL("./lapidary_webgl2.wasm", import.meta.url),
  matrix: () => new URL("./lapidary_matrix.wasm", import.meta.url),
  int8: () => new URL("./lapidary_int8.wasm", import.meta.url),
  measure: () => new URL("./lapidary_measure.wasm", import.meta.url),
};

/** The core's exports. */
let core;
/** Promises by name; null for parts that are there. */
const loading = {};

export function set_core(exports) {
  core = exports;
}

async function bytes_of(name) {
  if (read_file) return read_file(`lapidary_${name}.wasm`);
  const response = await fetch(PARTS[name]());
  if (!response.ok) throw new Error(`${response.status} for ${response.url}`);
  return response.arrayBuffer();
}

async function load(name) {
  try {
    await WebAssembly.instantiate(await bytes_of(name), { "": core });
    loading[name] = null;
  } catch (cause) {
    // The next call tries anew.
    loading[name] = undefined;
    throw fault("unavailable", `lapidary_${name}.wasm, a part of lapidary, could not be loaded (${cause}); check that the page is online, and ` +
      "that it is served beside lapidary_core_bg.wasm", cause);
  }
}

/** Loads a part: a promise, or undefined if it is there. A module that was built for development has no parts. */
export function load_part(name) {
  if (loading[name] !== null && "$0" in core) return (loading[name] ??= load(name));
}
