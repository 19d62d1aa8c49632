/** What the page and its worker say to each other. Matrices never cross: the worker makes them from the seed. */
import type { DeviceInfo, Failure, Row, Settings, Step } from "../bench/rows";

/** Which part failed; each has a screen of its own that says what to do. */
export type Stage = "worker" | "wasm" | "device" | "run";

export type ToWorker =
  /** Open the device that the package would choose, and tell which it is. */
  | { kind: "probe" }
  | { kind: "run"; settings: Settings }
  | { kind: "stop" };

export type FromWorker =
  /** The worker's code runs. */
  | { kind: "ready" }
  | { kind: "chosen"; device: DeviceInfo }
  /** A backend was opened for the run. */
  | { kind: "device"; device: DeviceInfo }
  | { kind: "step"; step: Step }
  | { kind: "row"; row: Row }
  | { kind: "finished"; stopped: boolean; seconds: number }
  | { kind: "failed"; stage: Stage; error: Failure };
