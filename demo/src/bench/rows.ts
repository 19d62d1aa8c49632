/**
 * The words of this page: settings in, rows out. Field names of rows are those of the exported files and of machine
 * mode, which is why they are in snake case with their units.
 */
import type { Backend, DeviceInfo, Verdict } from "lapidary";

export type { Backend, DeviceInfo, Verdict };

/** In the order in which the package prefers them; tables keep it. */
export const BACKENDS: readonly Backend[] = ["webgpu", "webgl2", "simd", "scalar"];

export const BACKEND_LABELS: Record<Backend, string> = {
  webgpu: "WebGPU",
  webgl2: "WebGL2",
  simd: "CPU, SIMD",
  scalar: "CPU, scalar",
};

export const is_cpu = (backend: Backend): boolean => backend === "simd" || backend === "scalar";

export const PRESET_SIZES: readonly number[] = [128, 256, 512, 1024, 2048, 4096];
export const MAX_SIZE = 4096;
/** Above this the scalar path takes seconds a product, so it runs only if asked for. */
export const SCALAR_MAX_SIZE = 512;

export interface Settings {
  sizes: number[];
  seed: number;
  repeats: number;
  backends: Backend[];
  /** Run the scalar path above {@link SCALAR_MAX_SIZE} too. */
  scalar_all: boolean;
}

export const DEFAULTS: Settings = {
  sizes: [128, 256, 512, 1024],
  seed: 1,
  repeats: 5,
  backends: ["webgpu", "webgl2", "simd"],
  scalar_all: false,
};

/** What to call a device: its name, else the parts that the browser does tell, else nothing. */
export const adapter_name = ({ name, vendor, architecture }: DeviceInfo): string =>
  name || [vendor, architecture].filter(Boolean).join(" ");

/** An error as it crosses from the worker: the code is the package's, or `internal`. */
export interface Failure {
  code: string;
  message: string;
}

export interface MeasuredRow {
  size: number;
  m: number;
  k: number;
  n: number;
  backend: Backend;
  adapter: string;
  software: boolean;
  kernel: string;
  /** Samples taken: fewer than asked for if the time for this row ran out. */
  repeats: number;
  samples_ms: number[];
  median_ms: number;
  mad_ms: number;
  min_ms: number;
  max_ms: number;
  /** 2 m n k over the median; null if the clock was too coarse to see it. */
  gflops: number | null;
  upload_ms: number;
  kernel_ms: number;
  download_ms: number;
  kernel_clock: "timestamp" | "wall";
  /** The kernel with its operands on the device; null where that was not measured. */
  kernel_resident_ms: number | null;
  kernel_gflops: number | null;
  /** How many times faster than `speedup_over`; null without a correct CPU result to compare with. */
  speedup: number | null;
  speedup_over: Backend | null;
  verdict: Verdict;
  notes: string[];
}

export interface SkippedRow {
  size: number;
  backend: Backend;
  skipped: string;
}

export interface FailedRow {
  size: number;
  backend: Backend;
  error: Failure;
}

export type Row = MeasuredRow | SkippedRow | FailedRow;

export const is_measured = (row: Row): row is MeasuredRow => "samples_ms" in row;
export const is_skipped = (row: Row): row is SkippedRow => "skipped" in row;
export const is_failed = (row: Row): row is FailedRow => "error" in row;

/** Rows come in the order of running; people read them by size, then by backend. */
export function in_reading_order(rows: readonly Row[]): Row[] {
  return [...rows].sort(
    (x, y) => x.size - y.size || BACKENDS.indexOf(x.backend) - BACKENDS.indexOf(y.backend),
  );
}

/** What the run is doing now. */
export interface Step {
  /** Rows finished, and rows in all. */
  done: number;
  total: number;
  /** 0 to 1, of the whole run. */
  fraction: number;
  size: number;
  backend: Backend;
  doing: string;
}

/** Where a run tells what it found. */
export interface Listener {
  device(device: DeviceInfo): void;
  step(step: Step): void;
  row(row: Row): void;
}
