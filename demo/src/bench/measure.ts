/**
 * One row: a warm-up, then samples of the whole way (arrays in, array out), then the kernel alone, then the verdict on
 * the last result. Everything is bounded by time, because a software GPU can be ten thousand times slower than a real one.
 */
import type { Gpu, MatmulReport, Reference } from "lapidary";
import { adapter_name, is_cpu, type Backend, type MeasuredRow } from "./rows";
import { gflops, mad, median } from "./stats";

/** A first product slower than this is the only sample. */
const LONG_PRODUCT_MS = 8_000;
/** No further sample once a row's samples have taken this long. */
const SAMPLES_MS = 12_000;
/** What the measurement of the kernel alone may take, about. */
const KERNEL_MS = 6_000;

export interface Operands {
  a: Float32Array;
  b: Float32Array;
}

export interface Task {
  gpu: Gpu;
  backend: Backend;
  size: number;
  operands: Operands;
  repeats: number;
  /** What is being done, and which share of this row is behind. */
  step: (doing: string, share: number) => void;
  signal: AbortSignal;
  reference: () => Promise<Reference>;
}

interface Sample {
  ms: number;
  report: MatmulReport;
}

export async function measure(task: Task): Promise<MeasuredRow> {
  const { gpu, backend, size, repeats, step } = task;
  const notes: string[] = [];
  const steps = repeats + 3;

  step("warming up", 0);
  const first = await product(task);
  const samples: Sample[] = [];
  if (first.ms > LONG_PRODUCT_MS) {
    samples.push(first);
    notes.push(`One product took ${(first.ms / 1000).toFixed(0)} s, so the first run is the only sample.`);
  } else {
    const began = performance.now();
    while (samples.length < repeats && performance.now() - began < SAMPLES_MS) {
      step(`sample ${samples.length + 1} of ${repeats}`, (samples.length + 1) / steps);
      samples.push(await product(task));
    }
    if (samples.length < repeats) notes.push(`${samples.length} of ${repeats} samples: the time for a row ran out.`);
  }

  const last = (samples.at(-1) as Sample).report;
  const kernel_ms = median(samples.map(({ report }) => report.kernel_ms));
  const resident = is_cpu(backend) ? null : await kernel_alone(task, kernel_ms, notes);

  await breathe(task.signal);
  step("checking every element", (steps - 1) / steps);
  const verdict = (await task.reference()).check(last.data);

  const samples_ms = samples.map(({ ms }) => ms);
  const median_ms = median(samples_ms);
  if (samples.some(({ report }) => report.replayed)) notes.push("The device was lost on the way and a product was computed again.");
  return {
    size,
    m: size,
    k: size,
    n: size,
    backend,
    adapter: last.device || adapter_name(gpu.info()),
    software: last.software,
    kernel: last.kernel,
    repeats: samples.length,
    samples_ms,
    median_ms,
    mad_ms: mad(samples_ms),
    min_ms: Math.min(...samples_ms),
    max_ms: Math.max(...samples_ms),
    gflops: gflops(size, size, size, median_ms),
    upload_ms: median(samples.map(({ report }) => report.upload_ms)),
    kernel_ms,
    download_ms: median(samples.map(({ report }) => report.download_ms)),
    kernel_clock: last.kernel_clock,
    kernel_resident_ms: resident?.median_ms ?? null,
    kernel_gflops: resident?.gflops ?? null,
    speedup: null,
    speedup_over: null,
    verdict: { ...verdict },
    notes,
  };
}

/** Timed from outside the package, so that nothing it does is left out. */
async function product({ gpu, operands, size, signal }: Task): Promise<Sample> {
  await breathe(signal);
  const began = performance.now();
  const report = await gpu.matmul(operands.a, operands.b, { m: size, k: size, n: size, report: true, signal });
  return { ms: performance.now() - began, report };
}

async function kernel_alone(task: Task, kernel_ms: number, notes: string[]) {
  // A sample is a run of d and one of 3 d products, so four at least.
  const affordable = Math.floor(KERNEL_MS / (4 * Math.max(kernel_ms, 0.001)));
  if (affordable < 1) {
    notes.push("The kernel alone was not measured: it is too slow here.");
    return null;
  }
  await breathe(task.signal);
  task.step("the kernel alone", (task.repeats + 1) / (task.repeats + 3));
  const software = task.gpu.info().software;
  const { a, b } = task.operands;
  const { size, signal } = task;
  try {
    return await task.gpu.benchmark(a, b, {
      m: size,
      k: size,
      n: size,
      samples: Math.min(software ? 3 : 5, affordable),
      min_ms: software ? 20 : 50,
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    notes.push(`The kernel alone could not be measured: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
}

/** Lets the worker read its messages, so that a stop is seen between two products; a timer would add its 4 ms. */
function breathe(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    port2.postMessage(null);
  });
}
