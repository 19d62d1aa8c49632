// Where the WebAssembly module comes from, if not from beside lapidary_core.js, and workers, if not from the page's `Worker`.

/** Gives the module's bytes; undefined to have it fetched. */
export let read_module;
/** A function that makes a worker of a script's text, and how many threads there are at most; undefined for the page's own. */
export let workers;

export function set_source(read, own_workers) {
  read_module = read;
  workers = own_workers;
}
