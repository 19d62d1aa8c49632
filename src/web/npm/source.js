// Where WebAssembly comes from, if not from beside these files, and workers, if not from the page's `Worker`.

/** Gives the bytes of a file of the package; undefined to have it fetched. */
export let read_file;
/** A function that makes a worker of a script's text, and how many threads there are at most; undefined for the page's own. */
export let workers;

export function set_source(read, own_workers) {
  read_file = read;
  workers = own_workers;
}
