// What of the WebAssembly module is loaded when it is first needed: scripts/split.mjs has cut it out, and it shares the core's memory.

import { fault } from "./options.js";
import { read_file } from "./source.js";

/** Written out, so that bundlers find them. */
const PARTS = {
  operations: () => new URL("./lapidary_operations.wasm", import.meta.url),
  webgl2: () => new URL("./lapidary_webgl2.wasm", import.meta.url),
  matrix: () => new URL("./lapidary_matrix.wasm", import.meta.url),
  measure: () => new URL("./lapidary_measure.wasm", import.meta.url),
};

async function bytes_of(name) {
  const url = PARTS[name]();
  if (read_file) return read_file(`lapidary_${name}.wasm`);
  const response = await fetch(url);
  if (!response.ok) throw new Error(`status ${response.status} of ${url}`);
  return response.arrayBuffer();
}

/** Has the core, whose exports these are, load its parts from here. One of a development build has none. */
export function load_parts_of(exports, set_loader) {
  if (!("$0" in exports)) return;
  /** By name: a promise, or null once the part is there. */
  const loading = {};
  const load = async (name) => {
    try {
      await WebAssembly.instantiate(await bytes_of(name), { "": exports });
      loading[name] = null;
    } catch (cause) {
      // The next call tries anew.
      loading[name] = undefined;
      throw fault("unavailable", `lapidary_${name}.wasm, a part of lapidary, could not be loaded (${cause}); check that it is served beside ` +
        "lapidary_core_bg.wasm, and that the page is online", cause);
    }
  };
  set_loader((name) => (loading[name] === null ? undefined : (loading[name] ??= load(name))));
}
