/**
 * The page's end of the protocol. A stop that the worker cannot hear, because it is deep in one long product, ends the
 * worker after a short grace and starts a fresh one: Stop always stops.
 */
import type { Settings } from "../bench/rows";
import type { FromWorker, ToWorker } from "./messages";

const STOP_GRACE_MS = 2_000;

export class ComputeClient {
  readonly #hear: (message: FromWorker) => void;
  #worker: Worker | null = null;
  #began_ms = 0;
  #is_running = false;
  #grace: ReturnType<typeof setTimeout> | undefined;

  constructor(hear: (message: FromWorker) => void) {
    this.#hear = hear;
  }

  /** Starts the worker, or a fresh one in place of one that failed. `ready` follows. */
  start(): void {
    this.dispose();
    let worker: Worker;
    try {
      worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "compute" });
    } catch (error) {
      // Later, so that the caller sees the answer as it sees all others.
      const message = error instanceof Error ? error.message : String(error);
      queueMicrotask(() => this.#fail(message));
      return;
    }
    this.#worker = worker;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (this.#worker !== worker) return;
      if (data.kind === "finished" || data.kind === "failed") this.#end_run();
      this.#hear(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (this.#worker === worker) this.#fail(event.message || "The worker's script could not be loaded or run.");
    };
    worker.onmessageerror = () => {
      if (this.#worker === worker) this.#fail("A message from the worker could not be read.");
    };
  }

  /** A worker that has run is one that did start. */
  #fail(message: string): void {
    const stage = this.#is_running ? "run" : "worker";
    this.dispose();
    this.#hear({ kind: "failed", stage, error: { code: "internal", message } });
  }

  #end_run(): void {
    clearTimeout(this.#grace);
    this.#is_running = false;
  }

  probe(): void {
    this.#send({ kind: "probe" });
  }

  run(settings: Settings): void {
    this.#began_ms = performance.now();
    this.#is_running = true;
    this.#send({ kind: "run", settings });
  }

  stop(): void {
    this.#send({ kind: "stop" });
    clearTimeout(this.#grace);
    this.#grace = setTimeout(() => {
      this.start();
      this.#hear({ kind: "finished", stopped: true, seconds: (performance.now() - this.#began_ms) / 1000 });
    }, STOP_GRACE_MS);
  }

  dispose(): void {
    this.#end_run();
    this.#worker?.terminate();
    this.#worker = null;
  }

  #send(message: ToWorker): void {
    this.#worker?.postMessage(message);
  }
}
