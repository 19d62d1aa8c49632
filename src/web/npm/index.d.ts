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

import type { Expr, Value } from "./expr.js";

export * from "./expr.js";

/** What computes. */
export type Backend = "webgpu" | "webgl2" | "simd" | "scalar";

/**
 * What a tensor's elements are. Sums of floating-point numbers are f32. Products take f32 and f16, and i8 and u8, which nothing else computes with.
 */
export type DType = "f32" | "f16" | "i32" | "u32" | "bool" | "i8" | "u8";

type Known<Name extends string, Otherwise> = typeof globalThis extends Record<Name, { prototype: infer T }> ? T : Otherwise;

/** `Float16Array`; where TypeScript's library does not know it, what can be read of one. */
export type Halves = Known<"Float16Array", ArrayBufferView & ArrayLike<number> & { readonly [Symbol.toStringTag]: "Float16Array" }>;

/** WebGPU's `GPUDevice`, where TypeScript's library or `@webgpu/types` knows it. */
export type Device = Known<"GPUDevice", object>;

/** WebGPU's `GPUBuffer`, where they know it. */
export type DeviceBuffer = Known<"GPUBuffer", { readonly size: number; readonly usage: number }>;

/** What an array's class makes: from TypeScript 5.7 on one that is known to be over an `ArrayBuffer`, as results are. */
type Made<Class extends { of(...values: number[]): unknown }> = ReturnType<Class["of"]>;

/** What values of a type are in; truths are 0 or 1. */
export type ArrayOf<D extends DType> = {
  f32: Made<Float32ArrayConstructor>;
  f16: Halves;
  i32: Made<Int32ArrayConstructor>;
  u32: Made<Uint32ArrayConstructor>;
  bool: Made<Uint8ArrayConstructor>;
  i8: Made<Int8ArrayConstructor>;
  u8: Made<Uint8ArrayConstructor>;
}[D];

/**
 * A matrix to multiply. A and B are of one type. WebGL2 keeps those of f16 that come from arrays in textures of f16 (RGBA16F), at half the memory, and
 * computes in f32; the CPU widens them. Neither changes a value, but that GPUs may take f16 below 2⁻¹⁴ for zero.
 */
export type Operand = Float32Array | Halves | Tensor<"f32" | "f16">;

/**
 * A matrix of 8-bit integers to multiply by another, which may be of the other sign: their sums are of i32, exact modulo 2³², and nothing is done to
 * them in the end (no `alpha`, `beta`, `c`, `bias`, `activation` or `precision`).
 */
export type Bytes = Int8Array | Uint8Array | Tensor<"i8" | "u8">;

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
   * beats the CPU in a short measurement. `"cpu"` is the faster path on the CPU that this engine has. A named backend is used or the call fails with `unavailable`.
   */
  backend?: "auto" | "cpu" | Backend;
  /** Which GPU of several. Default `"high-performance"`. */
  power_preference?: "high-performance" | "low-power";
  /**
   * Bytes of free device buffers kept for reuse. Default 1342177280 (1.25 GiB). Up to a quarter, and 64 MiB, more is for large operands on their
   * way, and half as much as is said may hold the forms in which WebGPU keeps tensors that are multiplied again and again.
   */
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
  /**
   * How many products, or the batch's dimensions, where an operand is an array: its matrices lie one behind the other. Dimensions beside one another
   * that A and B repeat alike are a group, and there may be two of them; an {@link Expr} of other than 8-bit integers has as many as one likes.
   */
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
   * What the result's elements are. Default `"f32"`, whether A and B are of f32 or f16. One of `"f16"` is rounded once, from sums in f32; an array
   * of it takes an engine that has `Float16Array`. That of {@link Bytes} is of `"i32"`, and of nothing else.
   */
  result?: "f32" | "f16" | "i32";
  /** Of {@link Bytes}: the numbers of A's and B's types that stand for zero, (A − a)·(B − b). Default `[0, 0]`. */
  zero_points?: readonly [number, number];
  /**
   * How products are computed. Default `"f32"`. `"f16x3"` takes each f32 operand apart into two terms of f16, of whose products it adds three up in
   * f32 on the GPU's matrix units: faster for large products, its mean error smaller than f32's where terms have both signs, and within
   * γ₂ₖ₊₁₂·(|A||B|) + k·2⁻⁴⁸·max|row of A|·max|column of B|. What an infinite operand reaches is infinite or NaN. It takes the feature
   * `subgroup-matrix` of {@link DeviceInfo.features}, which is experimental in Chromium; elsewhere it is an `invalid_option`. `"f16"` lets f16
   * operands be multiplied and summed up in f16, 32 products at a time, where the device has `shader-f16` and no matrix units:
   * faster on GPUs that do two of f16 in the time of one of f32, within (γₖ + 2⁻⁵)·(|A||B|) + k·2⁻¹⁴, and infinite where 32 products sum up past 65504.
   */
  precision?: "f32" | "f16x3" | "f16";
  /** Elements from one stored row of A to the next; default: its columns, and then the length must be exact. */
  lda?: number;
  /** The same for B. */
  ldb?: number;
  /** The same for `c`. The result itself is always packed. */
  ldc?: number;
  /** Elements from the start of one A of a batch to the next; 0 if all products share one. Default: packed, and then the length must be exact; where a batch has several dimensions, 0 or packed. */
  stride_a?: number;
  /** The same for B. */
  stride_b?: number;
  /** The same for `c`. The results themselves are packed. */
  stride_c?: number;
  /**
   * Elements before the first of A, which is a window of something larger and read where it lies. Of a {@link Tensor} whatever its shape, so that
   * `m` and `k` have to be told; `lda` is then the tensor's last dimension unless told: `{ m: 10, k: 20, n, offset_a: i * columns + j }` multiplies
   * the 10 × 20 elements of it that begin in row i and column j.
   */
  offset_a?: number;
  /** The same for B, with `k`, `n` and `ldb`. */
  offset_b?: number;
  /** The same for `c`, with `ldc`. */
  offset_c?: number;
  /** Give a {@link MatmulReport} in place of the bare data. */
  report?: boolean;
  /**
   * Keep the result on the device and give a {@link Tensor}. On a GPU a product of tensors is then only queued: the promise resolves at once
   * (on WebGPU one of 64 MiB or more is waited for while as much memory lies idle, which it may need), and products that follow one
   * another share a submission, at the latest when a result is read or the page's present task ends. What the GPU finds wrong later (`out_of_memory`, `device_lost`) is an error of what reads the tensor, or computes from it.
   */
  keep?: boolean;
  /** Checked before the upload, before the kernel and before the result is given. Submitted work is not recalled. */
  signal?: AbortSignal;
}

/** A result and how it came about. */
export interface MatmulReport<Data = ArrayOf<"f32">> {
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

/** How a product's result is wanted. Options whose type leaves that open, such as `report: boolean`, give a {@link Product}. */
type Bare = { report?: false; keep?: false };
type Kept = { report?: false; keep: true };
type Reported = { report: true; keep?: false };
type KeptAndReported = { report: true; keep: true };

/** What a product gives, by its options: an array, a tensor, or a report of one of them. */
export type Product<D extends DType = DType> = ArrayOf<D> | Tensor<D> | MatmulReport<ArrayOf<D> | Tensor<D>>;

/**
 * An array on the device, row-major: a matrix, or a batch of them. Free it when done, or declare it with `using`. Calls on another handle's device
 * refuse it (`invalid_type`), those on the shared one too where `init_gpu` has opened another meanwhile; its values can still be read.
 */
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
  /**
   * Copies the values into a buffer of the same {@link Gpu.device}, on the GPU, after all that was called before; bools are words, 0 or 1, and an
   * odd number of f16 takes two bytes more. What is submitted to the device's queue after this call sees them; the promise tells that all went
   * well. Rejects as {@link Gpu.tensor} of a buffer does; the buffer needs the usage `COPY_DST`.
   */
  copyTo(buffer: DeviceBuffer, options?: { offset_bytes?: number }): Promise<void>;
  /** Gives the memory back. Calls that were given it finish. Twice is harmless. */
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

/** What measuring the shapes of the tiled kernel found. */
export interface Tuning {
  trials: {
    /** Side of the square matrices that were multiplied. */
    size: number;
    kernel: string;
    /** Milliseconds a product, operands and result on the device. */
    ms: number;
    /** What is taken without tuning; the others are one shape each. */
    is_default: boolean;
    /** Faster than the default by more than noise, and taken from now on for results of about that size. */
    is_tuned: boolean;
  }[];
  /** Whether it is kept for later visits: false where the browser has no cache storage for the page, denies it or has no room. */
  kept: boolean;
}

/** Device memory in use. */
export interface MemoryStats {
  /** Bytes of buffers that calls and tensors hold now. */
  used_bytes: number;
  /**
   * Bytes of free buffers kept for reuse, of what is free in those that small tensors share, of those through which large operands go to the
   * device, and of the forms in which tensors that are multiplied again and again are kept beside them.
   */
  pooled_bytes: number;
  /** The most that `used_bytes` has been. */
  peak_bytes: number;
  buffers: number;
  /** Bytes of the WebAssembly module's own memory, in which tensors of 32 bits lie on the CPU unless threads share them, up to 1 GiB. It only grows. */
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

/** A product of arrays to judge results by; `result` and `precision` are those of what is judged. */
export interface ReferenceOptions
  extends Omit<MatmulOptions, "m" | "k" | "n" | "c" | "bias" | "result" | "zero_points" | "report" | "keep"> {
  m: number;
  k: number;
  n: number;
  c?: Float32Array | Halves;
  bias?: Float32Array;
  result?: "f32" | "f16";
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
  /**
   * The device that computes, for buffers of one's own; undefined unless the backend is WebGPU. From the first call after a loss on it is another
   * one. Once it was asked for, it is the page's too, and does not end with the handle.
   */
  readonly device: Device | undefined;
  matmul(a: Operand, b: Operand, options: MatmulOptions & Bare & { result?: "f32" }): Promise<ArrayOf<"f32">>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & Bare & { result: "f16" }): Promise<Halves>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & Kept & { result?: "f32" }): Promise<Tensor>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & Kept & { result: "f16" }): Promise<Tensor<"f16">>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & Reported & { result?: "f32" }): Promise<MatmulReport>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & Reported & { result: "f16" }): Promise<MatmulReport<Halves>>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & KeptAndReported & { result?: "f32" }): Promise<MatmulReport<Tensor>>;
  matmul(a: Operand, b: Operand, options: MatmulOptions & KeptAndReported & { result: "f16" }): Promise<MatmulReport<Tensor<"f16">>>;
  matmul(a: Tensor<"f32" | "f16">, b: Tensor<"f32" | "f16">, options?: undefined): Promise<ArrayOf<"f32">>;
  matmul(a: Tensor<"i8" | "u8">, b: Tensor<"i8" | "u8">, options?: undefined): Promise<ArrayOf<"i32">>;
  matmul(a: Bytes, b: Bytes, options: MatmulOptions & Bare & { result?: "i32" }): Promise<ArrayOf<"i32">>;
  matmul(a: Bytes, b: Bytes, options: MatmulOptions & Kept & { result?: "i32" }): Promise<Tensor<"i32">>;
  matmul(a: Bytes, b: Bytes, options: MatmulOptions & Reported & { result?: "i32" }): Promise<MatmulReport<ArrayOf<"i32">>>;
  matmul(a: Bytes, b: Bytes, options: MatmulOptions & KeptAndReported & { result?: "i32" }): Promise<MatmulReport<Tensor<"i32">>>;
  matmul(a: Bytes, b: Bytes, options: MatmulOptions): Promise<Product<"i32">>;
  matmul(a: Operand, b: Operand, options: MatmulOptions): Promise<Product<"f32" | "f16">>;
  /**
   * Puts a row-major array on the device: `[rows, columns]`, or a batch of such matrices, `[…, rows, columns]`. With `dtype: "bool"` what is
   * not 0 is true; with `dtype: "f16"` a `Uint16Array` holds the bits.
   */
  tensor(data: Float32Array, shape: readonly number[], options?: { dtype?: "f32" }): Promise<Tensor>;
  tensor(data: Halves, shape: readonly number[], options?: { dtype?: "f16" }): Promise<Tensor<"f16">>;
  tensor(data: Uint16Array, shape: readonly number[], options: { dtype: "f16" }): Promise<Tensor<"f16">>;
  tensor(data: Int32Array, shape: readonly number[], options?: { dtype?: "i32" }): Promise<Tensor<"i32">>;
  tensor(data: Uint32Array, shape: readonly number[], options?: { dtype?: "u32" }): Promise<Tensor<"u32">>;
  tensor(data: Uint8Array | readonly boolean[], shape: readonly number[], options: { dtype: "bool" }): Promise<Tensor<"bool">>;
  tensor(data: Int8Array, shape: readonly number[], options?: { dtype?: "i8" }): Promise<Tensor<"i8">>;
  tensor(data: Uint8Array, shape: readonly number[], options?: { dtype?: "u8" }): Promise<Tensor<"u8">>;
  /**
   * The same from a buffer of {@link Gpu.device}, from a byte on that is a multiple of 4: a copy on the GPU of what the queue has written there by
   * this call. Rejects with `invalid_type` if the buffer is mapped, of another device, or without the usage `COPY_SRC`, with `length_mismatch`
   * if it is too small, with `disposed` if it is destroyed, and with `unavailable` on other backends.
   */
  tensor(buffer: DeviceBuffer, shape: readonly number[], options?: { dtype?: "f32"; offset_bytes?: number }): Promise<Tensor>;
  tensor<D extends Exclude<DType, "bool">>(
    buffer: DeviceBuffer,
    shape: readonly number[],
    options: { dtype: D; offset_bytes?: number },
  ): Promise<Tensor<D>>;
  /** Of numbers alone: their value is an f32. */
  evaluate(expr: Expr<never> | number): Promise<Tensor>;
  /** Computes an expression; its value stays on the device. What can be one kernel is one: see {@link Expr}. */
  evaluate<D extends DType>(expr: Value<D>): Promise<Tensor<D>>;
  benchmark(a: Operand, b: Operand, options: BenchmarkOptions): Promise<Benchmark>;
  benchmark(a: Bytes, b: Bytes, options: BenchmarkOptions): Promise<Benchmark>;
  benchmark(a: Tensor<"i8" | "u8">, b: Tensor<"i8" | "u8">, options?: BenchmarkOptions): Promise<Benchmark>;
  benchmark(a: Tensor<"f32" | "f16">, b: Tensor<"f32" | "f16">, options?: BenchmarkOptions): Promise<Benchmark>;
  /**
   * Measures which shape of kernel is fastest on this GPU, for some seconds, and takes it from now on; the defaults are good enough never to need
   * it. On WebGPU; elsewhere `unavailable`. The result is kept in the browser's cache storage by adapter and version, and taken by whatever
   * handle is opened on that adapter; what is kept there and is no such result is passed over.
   */
  tune(options?: { signal?: AbortSignal }): Promise<Tuning>;
  /** Goes back to the defaults, and forgets what is kept; whether that is known to be gone: false without WebGPU, or without cache storage. */
  clear_tuning(): Promise<boolean>;
  memory(): MemoryStats;
  /** Gives free pooled buffers back to the device. */
  trim(): void;
  /** Closes the handle. Calls under way finish; later ones reject with `disposed`. Twice is harmless. */
  free(): void;
  [Symbol.dispose](): void;
}

/**
 * Opens the shared device, or gives the one that is open. With options, the next calls use a device opened with them, and know no tensors of the one
 * before: whoever shares the page does better with {@link Gpu.open}. Calls made before it has resolved wait for it.
 */
export function init_gpu(options?: InitOptions): Promise<DeviceInfo>;

/** The shared device; opens it first if nothing has. */
export function device_info(): Promise<DeviceInfo>;

/** WebGPU's device, for buffers of one's own: see {@link Gpu.device}. */
export function gpu_device(): Promise<Device | undefined>;

/**
 * C = alpha · op(A) · op(B) + beta · C with sums in f32, row-major, for any m, k, n ≥ 0.
 *
 * On the CPU one thread computes the product before the call returns, and with several the page's own share is computed in its thread: use a
 * worker for large ones. Elsewhere only the operands are read before that. They may be changed at once; only if the device is lost during the
 * call, or has no memory before what lies idle is given back, are they read again, and a change that is noticed then ends the call with
 * `device_lost` or `out_of_memory`.
 *
 * @throws {LapidaryError} `invalid_type`, `invalid_dimension`, `length_mismatch`, `invalid_option`, `limit_exceeded`, …
 */
export const matmul: Gpu["matmul"];

/** Puts a row-major array on the shared device: `[rows, columns]`, or a batch, `[…, rows, columns]`; see {@link Gpu.tensor}. */
export const tensor: Gpu["tensor"];

/** Computes an expression on the shared device; its value stays there. */
export const evaluate: Gpu["evaluate"];

/** Times the kernel on the shared device, operands staying there. */
export const benchmark: Gpu["benchmark"];

/** Memory of the shared device and of the module. */
export function memory(): Promise<MemoryStats>;

/** {@link Gpu.tune} of the shared handle. */
export const tune: Gpu["tune"];

/** {@link Gpu.clear_tuning} of the shared handle. */
export const clear_tuning: Gpu["clear_tuning"];

/**
 * Computes the reference by which {@link Reference.check} judges results. On the CPU, in double precision: slow for large sizes. It lets
 * other work in between.
 */
export function reference(a: Float32Array | Halves, b: Float32Array | Halves, options: ReferenceOptions): Promise<Reference>;

/** A matrix of `length` uniform values in [−1, 1) from a seed: the same on every machine. */
export function random_matrix(length: number, seed: number): Promise<ArrayOf<"f32">>;
