// What of the WebAssembly module is loaded when it is first needed: scripts/split.mjs has cut it out, and it shares the core's memory.

import { fault } from "./options.js";
import { read_file } from "./source.js";

/** Where parts lie: written out, so that bundlers find them. */
const PARTS = {
  operations: () => new URL("./lapidary_operations.wasm", import.meta.url),
  cpu: () => new URL("./lapidary_cpu.wasm", import.meta.url),
  operations_cpu: () => new URL("./lapidary_operations_cpu.wasm", import.meta.url),
  webgl2: () => new URL("./lapidary_webgl2.wasm", import.meta.url),
  operations_webgl2: () => new URL("./lapidary_operations_webgl2.wasm", import.meta.url),
  matrix: () => new URL("./lapidary_matrix.wasm", import.meta.url),
  int8: () => new URL("./lapidary_int8.wasm", import.meta.url),
  measure: () => new URL("./lapidary_measure.wasm", import.meta.url),
};

/** What goes with operations on a backend, which is loaded once both have been asked for. */
const WITH_OPERATIONS = ["cpu", "webgl2"];

/** The core's exports. */
let core;
/** The names of those that somebody needs. */
const asked = new Set();
let is_prepared = false;
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
    // The next call that needs it tries anew, and others do without.
    loading[name] = undefined;
    asked.delete(name);
    throw fault("unavailable", `lapidary_${name}.wasm, a part of lapidary, could not be loaded (${cause}); check that the page is online, and ` +
      "that it is served beside lapidary_core_bg.wasm, both of the same build: one of before is still there in a page that was not loaded again", cause);
  }
}

/** Loads a part: a promise, or undefined if it is there. A module that was built for development has no parts. */
export function load_part(name) {
  if (!("$0" in core)) return;
  asked.add(name);
  // A backend's share of the operations is for who asks for one of the two.
  const is_of = (backend) => asked.has(backend) && (name === "operations" || name === backend);
  const both = asked.has("operations") ? WITH_OPERATIONS.filter(is_of) : [];
  const found = all_of([name, ...both.map((backend) => `operations_${backend}`)]);
  if (is_prepared) prepare_for_loss();
  return found;
}

function all_of(names) {
  const missing = names.filter((name) => loading[name] !== null);
  if (missing.length > 0) return Promise.all(missing.map((name) => (loading[name] ??= load(name))));
}

/** Loads what takes the place of a lost GPU, so that it is there when the network is not. Who needs it will hear of a failure. */
export function prepare_for_loss() {
  if (!("$0" in core)) return;
  is_prepared = true;
  all_of(asked.has("operations") ? ["cpu", "operations_cpu"] : ["cpu"])?.catch(() => {});
}
