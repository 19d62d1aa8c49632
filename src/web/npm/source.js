// Where the WebAssembly module comes from, if not from beside lapidary_core.js.

/** Gives the module's bytes; undefined to have it fetched. */
export let read_module;

export function set_source(read) {
  read_module = read;
}
