/**
 * The order of a run: sizes from small to large, and at each size the CPU first, because the others' speed-up is
 * measured against it. A backend that is not there or that fails gets its row and the run goes on.
 */
import { Gpu, random_matrix, reference, type Reference } from "lapidary";
import { measure, type Operands } from "./measure";
import {
  SCALAR_MAX_SIZE,
  is_cpu,
  is_measured,
  type Backend,
  type Failure,
  type Listener,
  type MeasuredRow,
  type Row,
  type Settings,
} from "./rows";

/** SIMD before scalar before the GPUs: the first correct CPU row of a size is its baseline. */
const RUNNING_ORDER: readonly Backend[] = ["simd", "scalar", "webgl2", "webgpu"];

export function to_failure(error: unknown): Failure {
  if (error instanceof Error) {
    const code = (error as { code?: unknown }).code;
    return { code: typeof code === "string" ? code : "internal", message: error.message || error.name };
  }
  return { code: "internal", message: String(error) };
}

export async function run(settings: Settings, listener: Listener, signal: AbortSignal): Promise<void> {
  const backends = RUNNING_ORDER.filter((backend) => settings.backends.includes(backend));
  const total = settings.sizes.length * backends.length;
  const handles = new Handles(listener, signal);
  let done = 0;

  try {
    for (const size of settings.sizes) {
      const inputs = new Inputs(size, settings.seed, signal);
      let baseline: MeasuredRow | null = null;
      try {
        for (const backend of backends) {
          signal.throwIfAborted();
          const step = (doing: string, share: number) =>
            listener.step({ done, total, fraction: (done + share) / total, size, backend, doing });
          const row = await one(size, backend, settings, handles, inputs, step, signal);
          if (is_measured(row)) {
            if (is_cpu(backend) && row.verdict.ok) baseline ??= row;
            set_speedup(row, baseline);
          }
          done += 1;
          listener.row(row);
        }
      } finally {
        inputs.free();
      }
    }
  } finally {
    await handles.free();
  }
}

async function one(
  size: number,
  backend: Backend,
  settings: Settings,
  handles: Handles,
  inputs: Inputs,
  step: (doing: string, share: number) => void,
  signal: AbortSignal,
): Promise<Row> {
  if (backend === "scalar" && size > SCALAR_MAX_SIZE && !settings.scalar_all) {
    return { size, backend, skipped: `Scalar code is off above ${SCALAR_MAX_SIZE}: it takes seconds a product. The settings can turn it on.` };
  }
  try {
    step("opening the device", 0);
    const gpu = await handles.open(backend);
    step("making the matrices", 0);
    const operands = await inputs.operands();
    return await measure({ gpu, backend, size, operands, repeats: settings.repeats, step, signal, reference: () => inputs.reference() });
  } catch (error) {
    signal.throwIfAborted();
    const failure = to_failure(error);
    if (failure.code === "unavailable") return { size, backend, skipped: failure.message };
    return { size, backend, error: failure };
  }
}

function set_speedup(row: MeasuredRow, baseline: MeasuredRow | null): void {
  if (!baseline || !row.verdict.ok || !(row.median_ms > 0)) return;
  row.speedup = baseline.median_ms / row.median_ms;
  row.speedup_over = baseline.backend;
}

/** One handle a backend, opened when first needed; a refusal is remembered, so that each size gets the same answer. */
class Handles {
  readonly #opened = new Map<Backend, Promise<Gpu>>();
  readonly #listener: Listener;
  readonly #signal: AbortSignal;

  constructor(listener: Listener, signal: AbortSignal) {
    this.#listener = listener;
    this.#signal = signal;
  }

  open(backend: Backend): Promise<Gpu> {
    let handle = this.#opened.get(backend);
    if (!handle) {
      handle = Gpu.open({ backend, signal: this.#signal }).then((gpu) => {
        this.#listener.device(gpu.info());
        return gpu;
      });
      this.#opened.set(backend, handle);
    }
    return handle;
  }

  async free(): Promise<void> {
    for (const handle of this.#opened.values()) await handle.then((gpu) => gpu.free(), () => undefined);
  }
}

/** The matrices of one size and the double-precision product they are judged by, each made once and only if needed. */
class Inputs {
  readonly #size: number;
  readonly #seed: number;
  readonly #signal: AbortSignal;
  #operands: Promise<Operands> | null = null;
  #reference: Promise<Reference> | null = null;

  constructor(size: number, seed: number, signal: AbortSignal) {
    this.#size = size;
    this.#seed = seed;
    this.#signal = signal;
  }

  operands(): Promise<Operands> {
    return (this.#operands ??= this.#make());
  }

  async #make(): Promise<Operands> {
    const length = this.#size * this.#size;
    return { a: await random_matrix(length, this.#seed), b: await random_matrix(length, (this.#seed + 1) >>> 0) };
  }

  reference(): Promise<Reference> {
    return (this.#reference ??= this.operands().then(({ a, b }) =>
      reference(a, b, { m: this.#size, k: this.#size, n: this.#size, signal: this.#signal }),
    ));
  }

  free(): void {
    void this.#reference?.then((made) => made.free(), () => undefined);
  }
}
