/** The worker's end of the protocol. It computes, so that the page never waits; what it computes is bench/run.ts. */
import { Gpu, random_matrix } from "lapidary";
import { run, to_failure } from "../bench/run";
import type { Settings } from "../bench/rows";
import type { FromWorker, Stage, ToWorker } from "./messages";

interface Scope {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}

const scope = self as unknown as Scope;
let running: AbortController | null = null;

scope.onmessage = ({ data }) => {
  if (data.kind === "probe") void guarded(probe);
  else if (data.kind === "run") {
    const stop = (running = new AbortController());
    void guarded(() => measure(data.settings, stop.signal));
  }
  else running?.abort(new DOMException("Stopped by the user", "AbortError"));
};

/** `stage` moves along as parts prove to work, so a failure names the right one. */
async function guarded(task: (at: (stage: Stage) => void) => Promise<void>): Promise<void> {
  let stage: Stage = "wasm";
  try {
    // The smallest call that needs the WebAssembly module and no device.
    await random_matrix(1, 1);
    stage = "run";
    await task((now) => (stage = now));
  } catch (error) {
    scope.postMessage({ kind: "failed", stage, error: to_failure(error) });
  }
}

async function probe(at: (stage: Stage) => void): Promise<void> {
  at("device");
  const gpu = await Gpu.open();
  try {
    scope.postMessage({ kind: "chosen", device: gpu.info() });
  } finally {
    gpu.free();
  }
}

async function measure(settings: Settings, signal: AbortSignal): Promise<void> {
  const began = performance.now();
  let stopped = false;
  try {
    await run(
      settings,
      {
        device: (device) => scope.postMessage({ kind: "device", device }),
        step: (step) => scope.postMessage({ kind: "step", step }),
        row: (row) => scope.postMessage({ kind: "row", row }),
      },
      signal,
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    stopped = true;
  }
  scope.postMessage({ kind: "finished", stopped, seconds: (performance.now() - began) / 1000 });
}

scope.postMessage({ kind: "ready" });
