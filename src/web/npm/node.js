// Node reads WebAssembly from the package's folder; its fetch does not. Its workers differ from the page's in a few names.
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { set_source } from "./source.js";

const PRELUDE = `
const { parentPort } = require("node:worker_threads");
globalThis.self = { postMessage: (data, transfer) => parentPort.postMessage(data, transfer) };
parentPort.on("message", (data) => self.onmessage({ data }));
`;

/** A worker of a script's text. It keeps the process alive only while there is something to wait for. */
function make_worker(text) {
  // Without what the process was started with: the script is no module, and preloads are for the main thread.
  const worker = new Worker(PRELUDE + text, { eval: true, execArgv: [] });
  let awaited = 0;
  const own = {
    postMessage(data, transfer) {
      if (awaited++ === 0) worker.ref();
      worker.postMessage(data, transfer);
    },
    terminate: () => worker.terminate(),
  };
  worker.on("message", (data) => {
    if (--awaited === 0) worker.unref();
    own.onmessage({ data });
  });
  worker.on("error", (error) => own.onerror(error));
  worker.on("messageerror", (error) => own.onmessageerror(error));
  return own;
}

const read = (name) => readFile(new URL(name, import.meta.url));
set_source(read, [make_worker, Math.min(availableParallelism(), 16)]);

export * from "./index.js";
