/// <reference lib="esnext.disposable" />

/**
 * GPU matrix products for the browser: WebGPU, else WebGL2, else SIMD on the CPU, else scalar code.
 *
 * ```js
 * import { init_gpu, matmul } from "lapidary";
 * const device = await init_gpu();                  // picks the best backend and says which
 * const c = await matmul(a, b, { m, k, n });        // Float32Array in, Float32Array out
 * ```
 *
 * Matrices are row-major `Float32Array`s, or `Float16Array`s. Every promise rejects with a {@link LapidaryError}.
 */

/** What computes. `cpu` stands for the faster CPU path that this engine has. */
export type Backend = "webgpu" | "webgl2" | "simd" | "scalar";

/** What a tensor's elements are. Sums are f32 in either case. */
export type DType = "f32" | "f16";

/** `Float16Array`, where TypeScript's library knows it. */
export type Halves = typeof globalThis extends { Float16Array: { prototype: infer T } } ? T : never;

/** What values of a type are in. */
export type ArrayOf<D extends DType> = D extends "f16" ? Halves : Float32Array;

/** A matrix to multiply. A and B are of one type. On WebGL2 and the CPU operands of f16 are widened, which changes none. */
export type Operand = Float32Array | Halves | Tensor | Tensor<"f16">;

/** Stable error codes; the message holds the numbers and the remedy. */
export type ErrorCode =
  | "invalid_type" // an argument is not of the documented type
  | "invalid_dimension" // m, k, n, a stride or a shape is not a whole number in range
  | "length_mismatch" // an array's length is not what the dimensions ask for
  | "invalid_option" // an unknown option, or a value that is not one of those listed
  | "unavailable" // the backend asked for is not there; the message says why
  | "limit_exceeded" // larger than this device or this package can do
  | "out_of_memory" // the device or the page has not enough memory
  | "device_lost" // the GPU went away and the call could not be replayed
  | "disposed" // the tensor or the handle was freed before the call
  | "aborted" // the signal was aborted; `cause` is its reason
  | "internal"; // a fault of this package: please report it

/** Every rejection: a real `Error` with a stable {@link ErrorCode}. */
export interface LapidaryError extends Error {
  readonly code: ErrorCode;
  readonly cause?: unknown;
}

/** How to choose and open a device. */
export interface InitOptions {
  /**
   * `"auto"` (default) takes the first of WebGPU, WebGL2, SIMD, scalar that works. A software GPU is taken only if it
   * beats the CPU in a short measurement. A named backend is used or the call fails with `unavailable`.
   */
  backend?: "auto" | "cpu" | Backend;
  /** Which GPU of several. Default `"high-performance"`. */
  power_preference?: "high-performance" | "low-power";
  /** Bytes of free device buffers kept for reuse. Default 536870912 (512 MiB). Up to a quarter, and 64 MiB, more is for large operands on their way. */
  pool_bytes?: number;
  /**
   * The most threads that the CPU computes on, 1 to 64. Default: as many as there are cores, up to 16. The others are workers, started when
   * the first product is large enough for them and ended when they are idle; 1 starts none. The results are the same bits with any number.
   */
  threads?: number;
  /** Stops the opening; checked between its steps. */
  signal?: AbortSignal;
}

/** Why a backend is not the one in use. */
export interface OtherBackend {
  backend: Backend;
  /** `available`: it works, another was preferred. `off`: it cannot be used here. `untried`: nothing asked for it. */
  state: "available" | "off" | "untried";
  /** A sentence for people: what is missing, or why another was preferred. */
  reason: string;
  /** What would turn it on; empty if nothing would. */
  remedy: string;
}

/** The device in use. */
export interface DeviceInfo {
  backend: Backend;
  /** The adapter's name as far as the browser tells it; `""` if it does not. */
  name: string;
  vendor: string;
  architecture: string;
  /** `software` is a CPU that emulates a GPU (SwiftShader, lavapipe, WARP). */
  kind: "discrete" | "integrated" | "gpu" | "software" | "cpu";
  /** True when `kind` is `software`. */
  software: boolean;
  /** Limits that plans rely on; those that the backend does not have are absent. */
  limits: {
    max_buffer_bytes?: number;
    max_binding_bytes?: number;
    max_workgroups_per_dimension?: number;
    max_workgroup_invocations?: number;
    max_workgroup_bytes?: number;
    max_texture_size?: number;
  };
  /** Features in use: `timestamp-query`, `shader-f16`, `subgroup-matrix`, `simd128`, `relaxed-simd`, … */
  features: string[];
  /** Why this backend was chosen. */
  reason: string;
  /** The other backends, each with the reason why it is not in use. */
  others: OtherBackend[];
  /** Counts the devices this handle has had: 1 at first, one more after each recovery from a loss. */
  generation: number;
}

/**
 * activation(alpha · op(A) · op(B) + beta · C + bias), where op is the identity or the transpose; or a batch of such products, by NumPy's rules: a tensor's
 * dimensions before the last two are its batch, and those of A and B are broadcast. A tensor of one dimension is a vector, a row as A and
 * a column as B, whose dimension the result lacks.
 */
export interface MatmulOptions {
  /** Rows of op(A) and of the result. Not needed if `a` is a {@link Tensor}. */
  m?: number;
  /** Columns of op(A), rows of op(B). Not needed if an operand is a {@link Tensor}. */
  k?: number;
  /** Columns of op(B) and of the result. Not needed if `b` is a {@link Tensor}. */
  n?: number;
  /** How many products, or the batch's dimensions, where an operand is an array: its matrices lie one behind the other. */
  batch?: number | readonly number[];
  /** A is stored k × m. */
  transpose_a?: boolean;
  /** B is stored n × k. */
  transpose_b?: boolean;
  /** Default 1. With 0, A and B are not read. */
  alpha?: number;
  /** Default 0: C is not read. Another value needs `c`. */
  beta?: number;
  /** The m × n matrix that `beta` scales, of the result's type. It is not changed. */
  c?: Operand;
  /** n numbers that are added to each row. */
  bias?: Float32Array | Tensor;
  /**
   * Applied to each element in the end, in the same kernel: ReLU; GELU as x·σ(2u) with u = √(2/π)·(x + 0.044715·x³), its usual approximation;
   * σ(x) = 1 / (1 + e⁻ˣ); the hyperbolic tangent; SiLU as x·σ(x). Default `"none"`.
   */
  activation?: "none" | "relu" | "gelu" | "sigmoid" | "tanh" | "silu";
  /**
   * What the result's elements are. Default `"f32"`, whatever A and B are. One of `"f16"` is rounded once, from sums in f32; only WebGPU gives
   * it, and an array of it takes an engine that has `Float16Array`.
   */
  result?: DType;
  /**
   * How products are computed. Default `"f32"`. `"f16x3"` takes each f32 operand apart into two terms of f16, of whose products it adds three up in
   * f32 on the GPU's matrix units: several times faster, its error no larger than f32's as measured, and within
   * γ₂ₖ₊₁₂·(|A||B|) + k·2⁻⁴⁸·max|row of A|·max|column of B|. What an infinite operand reaches is infinite or NaN. It takes the feature
   * `subgroup-matrix` of {@link DeviceInfo.features}, which is experimental in Chromium; elsewhere it is an `invalid_option`. `"f16"` lets f16
   * operands be multiplied and summed up in f16, sixteen products at a time, where the device has `shader-f16` and no matrix units:
   * faster, within (γₖ + 2⁻⁶)·(|A||B|) + k·2⁻¹⁴, and infinite where sixteen products sum up past 65504.
   */
  precision?: "f32" | "f16x3" | "f16";
  /** Elements from one stored row of A to the next; default: its columns, and then the length must be exact. */
  lda?: number;
  /** The same for B. */
  ldb?: number;
  /** The same for `c`. The result itself is always packed. */
  ldc?: number;
  /** Elements from the start of one A of a batch to the next; 0 if all products share one. Default: packed, and then the length must be exact. */
  stride_a?: number;
  /** The same for B. */
  stride_b?: number;
  /** The same for `c`. The results themselves are packed. */
  stride_c?: number;
  /** Give a {@link MatmulReport} in place of the bare data. */
  report?: boolean;
  /**
   * Keep the result on the device and give a {@link Tensor}. On WebGPU a product of tensors is then only queued: the promise resolves at once,
   * and products that follow one another share a submission, at the latest when a result is read or the page's present task ends. What the
   * GPU finds wrong later (`out_of_memory`, `device_lost`) is an error of what reads the tensor, or computes from it.
   */
  keep?: boolean;
  /** Checked before the upload, before the kernel and before the result is given. Submitted work is not recalled. */
  signal?: AbortSignal;
}

/** A result and how it came about. */
export interface MatmulReport<Data = Float32Array> {
  data: Data;
  backend: Backend;
  /** The adapter's name. */
  device: string;
  /** True if a CPU emulated the GPU. */
  software: boolean;
  /** The kernel that ran, e.g. `matmul/tiled 128x128x16`. */
  kernel: string;
  upload_ms: number;
  kernel_ms: number;
  download_ms: number;
  /** From the call to the result, all included. */
  total_ms: number;
  /** What `kernel_ms` was read from: the GPU's own timestamps, or the clock outside. */
  kernel_clock: "timestamp" | "wall";
  /** True if the device was lost on the way and the product was computed again on a fresh one. */
  replayed: boolean;
}

/** An array on the device, row-major: a matrix, or a batch of them. Free it when done, or declare it with `using`. */
export class Tensor<D extends DType = "f32"> {
  private constructor();
  /** The sizes of all dimensions. */
  readonly shape: readonly number[];
  /** The product of all dimensions but the last. */
  readonly rows: number;
  /** The last dimension. */
  readonly columns: number;
  readonly dtype: D;
  readonly backend: Backend;
  /** The same values in another shape, sharing the memory: a tensor to be disposed of by itself. */
  reshape(shape: readonly number[]): Tensor<D>;
  /** Copies the values back, row-major; `unavailable` for f16 where the engine has no `Float16Array`. */
  toArray(): Promise<ArrayOf<D>>;
  /** Gives the memory back. Calls that already use it finish. Twice is harmless. */
  dispose(): void;
  [Symbol.dispose](): void;
}

/** Times the kernel alone, operands and result staying on the device. */
export interface BenchmarkOptions extends Omit<MatmulOptions, "c" | "beta" | "report" | "keep"> {
  /** How many samples. Default 5. */
  samples?: number;
  /** Shortest time of the shorter of the two runs that give a sample. Default 50. */
  min_ms?: number;
}

/** Each sample is the slope between d and 3 d products in one submission, so what a submission costs drops out. */
export interface Benchmark {
  backend: Backend;
  kernel: string;
  /** Milliseconds a product, one number a sample. */
  samples_ms: number[];
  median_ms: number;
  /** 2 m n k / median, of all products of a batch together, in 10⁹ a second. */
  gflops: number;
  /** d: products in the shorter run. */
  dispatches: number;
}

/** Device memory in use. */
export interface MemoryStats {
  /** Bytes of buffers that calls and tensors hold now. */
  used_bytes: number;
  /** Bytes of free buffers kept for reuse, and of those through which large operands go to the device. */
  pooled_bytes: number;
  /** The most that `used_bytes` has been. */
  peak_bytes: number;
  buffers: number;
  /** Bytes of the WebAssembly module's own memory. */
  wasm_bytes: number;
}

/** How a whole result compares with a product in double precision. */
export interface Verdict {
  /** Every element keeps |C − C_f64| ≤ bound. */
  ok: boolean;
  /** Elements compared: all of them. */
  elements: number;
  /** Elements out of bounds. */
  wrong: number;
  max_abs_error: number;
  /** The largest error as a share of its bound; above 1 is wrong. */
  worst_ratio: number;
  /** Where that is. */
  row: number;
  column: number;
  value: number;
  expected: number;
  bound: number;
}

/** A product in double precision with the bound γ_k·|A||B| of each element, to judge f32 results by. */
export class Reference {
  private constructor();
  /** Judges every element of a packed m × n result. */
  check(result: Float32Array | Halves): Verdict;
  free(): void;
  [Symbol.dispose](): void;
}

/** One device, with options of its own. The functions below use a handle that the whole page shares. */
export class Gpu {
  private constructor();
  static open(options?: InitOptions): Promise<Gpu>;
  info(): DeviceInfo;
  matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true; keep: true; result: "f16" }): Promise<MatmulReport<Tensor<"f16">>>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true; keep: true }): Promise<MatmulReport<Tensor>>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true; result: "f16" }): Promise<MatmulReport<Halves>>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true }): Promise<MatmulReport>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & { keep: true; result: "f16" }): Promise<Tensor<"f16">>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & { keep: true }): Promise<Tensor>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & { result: "f16" }): Promise<Halves>;
  matmul(a: Operand, b: Operand, options: MatmulOptions): Promise<Float32Array>;
  /** Puts a row-major array on the device: `[rows, columns]`, or a batch of such matrices, `[…, rows, columns]`. */
  tensor(data: Float32Array, shape: readonly number[]): Promise<Tensor>;
  tensor(data: Halves, shape: readonly number[]): Promise<Tensor<"f16">>;
  benchmark(a: Operand, b: Operand, options: BenchmarkOptions): Promise<Benchmark>;
  memory(): MemoryStats;
  /** Gives free pooled buffers back to the device. */
  trim(): void;
  /** Closes the handle. Calls under way finish; later ones reject with `disposed`. Twice is harmless. */
  free(): void;
  [Symbol.dispose](): void;
}

/**
 * Opens the shared device, or gives the one that is open. With options, the next calls use a device opened with them.
 * Calls made before it has resolved wait for it.
 */
export function init_gpu(options?: InitOptions): Promise<DeviceInfo>;

/** The shared device; opens it first if nothing has. */
export function device_info(): Promise<DeviceInfo>;

/**
 * C = alpha · op(A) · op(B) + beta · C with sums in f32, row-major, for any m, k, n ≥ 0.
 *
 * On the CPU the product is computed before the call returns: use a worker for large ones. Elsewhere only the operands are read before that,
 * so they may be changed at once; only if the device is lost during the call are they read again, and a change that is noticed then ends the
 * call with `device_lost`.
 *
 * @throws {LapidaryError} `invalid_type`, `invalid_dimension`, `length_mismatch`, `invalid_option`, `limit_exceeded`, …
 */
export function matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true; keep: true; result: "f16" }): Promise<MatmulReport<Tensor<"f16">>>;
export function matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true; keep: true }): Promise<MatmulReport<Tensor>>;
export function matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true; result: "f16" }): Promise<MatmulReport<Halves>>;
export function matmul(a: Operand, b: Operand, options: MatmulOptions & { report: true }): Promise<MatmulReport>;
export function matmul(a: Operand, b: Operand, options: MatmulOptions & { keep: true; result: "f16" }): Promise<Tensor<"f16">>;
export function matmul(a: Operand, b: Operand, options: MatmulOptions & { keep: true }): Promise<Tensor>;
export function matmul(a: Operand, b: Operand, options: MatmulOptions & { result: "f16" }): Promise<Halves>;
export function matmul(a: Operand, b: Operand, options: MatmulOptions): Promise<Float32Array>;

/** Puts a row-major array on the shared device, to be used in many products: `[rows, columns]`, or a batch, `[…, rows, columns]`. */
export function tensor(data: Float32Array, shape: readonly number[]): Promise<Tensor>;
export function tensor(data: Halves, shape: readonly number[]): Promise<Tensor<"f16">>;

/** Times the kernel on the shared device, operands staying there. Leave them unchanged until it resolves. */
export function benchmark(a: Operand, b: Operand, options: BenchmarkOptions): Promise<Benchmark>;

/** Memory of the shared device and of the module. */
export function memory(): Promise<MemoryStats>;

/**
 * Computes the reference by which {@link Reference.check} judges results. On the CPU, in double precision: slow for large sizes. It lets
 * other work in between, so leave the operands unchanged until it resolves.
 */
export function reference(a: Float32Array | Halves, b: Float32Array | Halves, options: Omit<MatmulOptions, "report" | "keep" | "c" | "bias"> & { c?: Float32Array | Halves; bias?: Float32Array }): Promise<Reference>;

/** A matrix of `length` uniform values in [−1, 1) from a seed: the same on every machine. */
export function random_matrix(length: number, seed: number): Promise<Float32Array>;
