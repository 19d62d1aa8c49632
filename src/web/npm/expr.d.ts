/** Expressions over tensors: what is put together is computed by `evaluate`. */

import type { DType, Tensor } from "./index.js";

/** What an expression is made of. A number takes the type of what it meets; alone it is an f32. */
export type Value<D extends DType = DType> = Values<D> | number;

/** The same where a number by itself has too few dimensions. */
export type Values<D extends DType = DType> = Expr<D> | Tensor<D>;

/** How a window goes over the last dimensions of N × C × W, of N × C × H × W or, in pools, of N × C × D × H × W: a number for each of them. */
export interface WindowOptions {
  /** From one window to the next. Default: 1 each. */
  strides?: readonly number[];
  /** From one element of a window to the next. Default: 1 each. */
  dilations?: readonly number[];
  /** `[before, behind]` each; or as much as makes the result ⌈input / stride⌉ large, what is odd of it behind, or before. Default: none. */
  pads?: readonly (readonly [number, number])[] | "same_upper" | "same_lower";
}

export interface ConvOptions extends WindowOptions {
  /** The channels and the filters in so many parts, each filter for the channels of its part. Default 1. */
  groups?: number;
  /** A vector of a number for each filter that is added, of f32 or of the input's type. */
  bias?: Values;
  /** Applied to each element in the end. Default `"none"`. */
  activation?: "none" | "relu" | "gelu" | "sigmoid" | "tanh" | "silu";
}

export interface PoolOptions extends WindowOptions {
  /** Whether the last window may reach behind the input and its padding, if it begins before its end. Default false. */
  ceil_mode?: boolean;
}

/** What integers and truths are computed as where the result has fractions. */
type Float<D extends DType> = D extends "f16" ? "f16" : "f32";

/** Dimensions by number, negative ones counted from the end. */
export type Axes = number | readonly number[];

/**
 * What is to be computed: a tensor, a number, or something of other expressions. Nothing is computed before it is evaluated, and then
 * as a whole, so that chains of elementwise functions and views become one kernel, which reads each input once and writes the result once.
 * What occurs twice is computed once. There is nothing to free but tensors, and those not before the call of `evaluate`.
 *
 * ```js
 * const y = lazy(a).mul(0.5).add(b).relu(); // a and b are tensors
 * const c = await evaluate(y);              // and so is c
 * ```
 *
 * Shapes follow NumPy: those of two operands are aligned at their last dimensions, and a dimension of size 1, or one that is not there, is
 * repeated. Operands of a function are of one type. What is wrong with shapes and types is an error of `evaluate`; an argument that is
 * none is thrown at once.
 *
 * `D` is the type of the elements, as far as it is known: `never` where all are numbers, of which one takes the type that it meets and what is
 * computed of several is of f32; and {@link DType} of an `Expr` of which
 * nothing is said. Say it where that is too little: `let sum: Expr<"f32"> = lazy(0)`, `evaluate(y as Expr<"f32">)`.
 */
export class Expr<D extends DType = DType> {
  private constructor();
  /** For TypeScript alone. */
  private readonly type: D;
  /** 0, 1, 2, … in a shape, row by row, as u32. */
  static index(shape: readonly number[]): Expr<"u32">;
  /** Random bits of a seed, a whole number, as u32: the same on every device. Not for secrets. */
  static randomBits(shape: readonly number[], seed: number): Expr<"u32">;
  /** Uniform random numbers from 0 up to and without 1. */
  static randomUniform(shape: readonly number[], seed: number): Expr<"f32">;
  /** Normally distributed random numbers of mean 0 and variance 1. */
  static randomNormal(shape: readonly number[], seed: number): Expr<"f32">;
  /** Values one behind the other along an axis, 0 if none is given; the sizes along all others, and the types, have to be the same. */
  static concat<D extends DType>(parts: readonly Values<D>[], axis?: number): Expr<D>;

  /**
   * The matrix product as NumPy's `matmul` has it: … × m × k and … × k × n give … × m × n, the dimensions before the last two are a batch
   * and are repeated to one another, and a single dimension is a vector. Both are of f32 or both of f16, sums in f32; or both are of
   * i8 or u8, and the product is of i32. What transposes an operand's last two dimensions is read in place, and a factor, a bias and an activation after it cost no kernel of their own; nor does on GPUs what else is computed of each element of a product of f32.
   */
  matmul(b: Values): Expr<D extends "i8" | "u8" ? "i32" : D>;

  /** a + b. */
  add<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** a − b. */
  sub<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** a · b, element by element. */
  mul<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** a / b; of integers without the fraction, and 0 where b is 0. */
  div<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** a − b · trunc(a / b), of a's sign; of integers 0 where b is 0. */
  rem<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** a − b · floor(a / b), of b's sign; of integers 0 where b is 0. */
  modulo<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** aᵇ; of a negative a only for whole b, else NaN. Of integers with a negative b 0, unless a is 1 or −1. */
  pow<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** The smaller of both; NaN if one of them is. */
  min<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** The larger of both; NaN if one of them is. */
  max<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** The nearest of what lies between both: min(max(a, least), most). */
  clamp<E extends DType = never>(least: Value<E>, most: Value<E>): Expr<D | E>;

  /** −a. */
  negative(): Expr<D>;
  /** |a|. */
  abs(): Expr<D>;
  /** −1, 0 or 1, as a is negative, zero or positive; NaN of NaN. */
  sign(): Expr<D>;
  /** a · a. */
  square(): Expr<D>;
  /** 1 / a. */
  reciprocal(): Expr<D>;
  /** √a. */
  sqrt(): Expr<D>;
  /** eᵃ. */
  exp(): Expr<D>;
  /** ln a. */
  log(): Expr<D>;
  /** sin a, a in radians. GPUs may lose accuracy far from zero (WGSL promises it from −π to π). */
  sin(): Expr<D>;
  /** cos a, as `sin`. */
  cos(): Expr<D>;
  /** tan a, as `sin`. */
  tan(): Expr<D>;
  /** arcsin a in radians. */
  asin(): Expr<D>;
  /** arccos a in radians. */
  acos(): Expr<D>;
  /** arctan a in radians. */
  atan(): Expr<D>;
  /** (eᵃ − e⁻ᵃ) / 2. */
  sinh(): Expr<D>;
  /** (eᵃ + e⁻ᵃ) / 2. */
  cosh(): Expr<D>;
  /** (eᵃ − e⁻ᵃ) / (eᵃ + e⁻ᵃ). */
  tanh(): Expr<D>;
  /** ln(a + √(a² + 1)). */
  asinh(): Expr<D>;
  /** ln(a + √(a² − 1)). */
  acosh(): Expr<D>;
  /** ln((1 + a) / (1 − a)) / 2. */
  atanh(): Expr<D>;
  /** 1 / (1 + e⁻ᵃ). */
  sigmoid(): Expr<D>;
  /** max(a, 0); NaN stays. */
  relu(): Expr<D>;
  /** a · (1 + erf(a / √2)) / 2, the GELU as it is defined. */
  gelu(): Expr<D>;
  /** a · σ(1.5957691 · (a + 0.044715 · a³)), the GELU by its usual approximation, which is also that of a product's activation. */
  geluTanh(): Expr<D>;
  /** a · σ(a). */
  silu(): Expr<D>;
  /** ln(1 + eᵃ). */
  softplus(): Expr<D>;
  /** (2 / √π) ∫₀ᵃ exp(−t²) dt, within 2·10⁻⁷. */
  erf(): Expr<D>;
  /** The largest whole number that is not above a. */
  floor(): Expr<D>;
  /** The smallest whole number that is not below a. */
  ceil(): Expr<D>;
  /** The nearest whole number, of two the even one. */
  round(): Expr<D>;
  /** a without its fraction. */
  trunc(): Expr<D>;
  /** The nearest number that an f16 can hold, of two the even one; infinite from 65520 on. */
  roundToF16(): Expr<D>;

  /** Whether a = b. */
  equal(b: Value): Expr<"bool">;
  /** Whether a ≠ b. */
  notEqual(b: Value): Expr<"bool">;
  /** Whether a < b. */
  less(b: Value): Expr<"bool">;
  /** Whether a ≤ b. */
  lessEqual(b: Value): Expr<"bool">;
  /** Whether a > b. */
  greater(b: Value): Expr<"bool">;
  /** Whether a ≥ b. */
  greaterEqual(b: Value): Expr<"bool">;
  /** Whether a is not a number. */
  isNan(): Expr<"bool">;
  /** Whether a is ∞ or −∞. */
  isInf(): Expr<"bool">;
  /** Both truths; of integers bit by bit. */
  and<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** At least one of both truths; of integers bit by bit. */
  or<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** One of both truths and not the other; of integers bit by bit. */
  xor<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** The opposite of a truth; of integers bit by bit. */
  not(): Expr<D>;
  /** a · 2ᵇ of u32, what is above bit 31 dropped. */
  shiftLeft<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** a / 2ᵇ of u32, without the fraction. */
  shiftRight<E extends DType = never>(b: Value<E>): Expr<D | E>;
  /** Where this is true `yes`, else `no`. */
  select<E extends DType = never>(yes: Value<E>, no: Value<E>): Expr<E>;
  /**
   * The elements as another type. Of a float an integer gets the nearest that it can hold, fractions cut off, and 0 of NaN; between i32 and
   * u32 the bits stay, so that −1 is 4294967295. What is not 0 is true. f16 is rounded to the nearest, and infinite from 65520 on.
   */
  cast<E extends Exclude<DType, "i8" | "u8">>(dtype: E): Expr<E>;

  /**
   * Σ a along axes, of which negative ones count from the end; along all if there are none given. With `keep` those axes stay, of size 1.
   * Sums of f16 are rounded at the end, those of integers wrap around; of no elements it is 0. This and what follows it is the same from run
   * to run.
   */
  sum(axes?: Axes, keep?: boolean): Expr<D>;
  /** Σ a / n, of integers and truths as f32; of no elements NaN. */
  mean(axes?: Axes, keep?: boolean): Expr<Float<D>>;
  /** The product of all; of no elements 1. */
  prod(axes?: Axes, keep?: boolean): Expr<D>;
  /** The largest; NaN if there is one. */
  amax(axes?: Axes, keep?: boolean): Expr<D>;
  /** The smallest; NaN if there is one. */
  amin(axes?: Axes, keep?: boolean): Expr<D>;
  /** Where the largest is, as u32, or the first NaN: of several the first; along several axes counted row by row. */
  argmax(axes?: Axes, keep?: boolean): Expr<"u32">;
  /** Where the smallest is, as `argmax`. */
  argmin(axes?: Axes, keep?: boolean): Expr<"u32">;
  /** Σ (a − mean)² / max(n − correction, 0); a correction of 1 gives that of a sample. Default 0. */
  var(axes?: Axes, keep?: boolean, correction?: number): Expr<Float<D>>;
  /** The square root of `var`. */
  std(axes?: Axes, keep?: boolean, correction?: number): Expr<Float<D>>;
  /** Σ |a|. */
  normL1(axes?: Axes, keep?: boolean): Expr<Float<D>>;
  /** √Σ a², right wherever the norm is a number. */
  normL2(axes?: Axes, keep?: boolean): Expr<Float<D>>;
  /** ln Σ eᵃ, right wherever the result is a number. */
  logSumExp(axes?: Axes, keep?: boolean): Expr<Float<D>>;
  /** Whether any element is true, or not 0. */
  any(axes?: Axes, keep?: boolean): Expr<"bool">;
  /** Whether all elements are true, or not 0. */
  all(axes?: Axes, keep?: boolean): Expr<"bool">;
  /** How many elements are true, or not 0, as u32. */
  count(axes?: Axes, keep?: boolean): Expr<"u32">;

  /**
   * The convolution of N × C × W with F × C/groups × w, or of N × C × H × W with F × C/groups × h × w, both of f32 or both of f16, sums in f32;
   * filters are not reversed. On WebGPU many 3 × 3 filters go by Winograd's method, where NaN or ∞ spreads over the 4 × 4 results of its tile.
   */
  conv(filters: Values, options?: ConvOptions): Expr<D>;
  /** The largest element of each window of that size. Padding is never the largest; NaN is. */
  maxPool(sizes: readonly number[], options?: PoolOptions): Expr<D>;
  /** Where each element of `maxPool` is in the input, counted row by row over all of it, as u32. */
  maxPoolIndices(sizes: readonly number[], options?: PoolOptions): Expr<"u32">;
  /** The mean of each window; `count_include_pad` has padding count as zeros. */
  averagePool(sizes: readonly number[], options?: PoolOptions & { count_include_pad?: boolean }): Expr<D>;
  /** The largest element of each channel, its dimensions kept with a size of 1. */
  globalMaxPool(): Expr<D>;
  /** The mean of each channel, its dimensions kept with a size of 1. */
  globalAveragePool(): Expr<D>;

  /** eᵃ / Σ eᵃ along an axis, −1 if none is given, right for values of any size. NaN along it where there is NaN or ∞, or nothing but −∞. Of f32 or f16. */
  softmax(axis?: number): Expr<D>;
  /** a − ln Σ eᵃ along an axis: the logarithm of `softmax`, and more exact than that of its result. */
  logSoftmax(axis?: number): Expr<D>;
  /**
   * (a − mean) / √(variance + epsilon) · scale + bias, mean and variance along the axes; scale and bias are of a's type, or numbers, and
   * repeated to its shape. `epsilon` is 1e-5 if none is given.
   */
  layerNorm(axes: Axes, options?: { scale?: Value; bias?: Value; epsilon?: number }): Expr<D>;
  /** a / √(mean of a² + epsilon) · scale, the mean along the axes; the rest as of `layerNorm`. */
  rmsNorm(axes: Axes, options?: { scale?: Value; epsilon?: number }): Expr<D>;
  /**
   * (a − mean) / √(variance + epsilon) · scale + bias with what was found of each channel before: vectors of as many numbers as dimension 1
   * has. It goes into one kernel with what is around it.
   */
  batchNorm(scale: Values, bias: Values, mean: Values, variance: Values, epsilon?: number): Expr<D>;

  /**
   * The Fourier transform X[k] = Σ x[i] · exp(−2πi · i·k / n) along an axis of complex numbers, which are a last dimension of size 2 that is
   * not counted: axis −1, if none is given, is the one before it. Of `length` elements, what lacks being zeros and what is too much cut off.
   * Any length will do; the error is about 10⁻⁷ · log₂ n of the largest result. Of f32; `evaluate` rejects with `invalid_dimension` where the
   * last dimension is not 2, the axis is not there or the length is 0, and with `limit_exceeded` past 2²⁷, on WebGL2 past 2²⁵, or on the CPU with `out_of_memory`.
   */
  fft(axis?: number, length?: number): Expr<"f32">;
  /** The inverse of `fft`: x[i] = (1 / n) · Σ X[k] · exp(2πi · i·k / n). */
  ifft(axis?: number, length?: number): Expr<"f32">;
  /** The transform of real numbers: complex ones for k up to ⌊n / 2⌋, as a new last dimension of size 2. The others are their conjugates. */
  rfft(axis?: number, length?: number): Expr<"f32">;
  /** The inverse of `rfft`, real numbers: without a length there are twice as many as complex ones, less 2. */
  irfft(axis?: number, length?: number): Expr<"f32">;
  /** The transform of real numbers with all of its result, as `fft` gives it. */
  fftOfReal(axis?: number, length?: number): Expr<"f32">;
  /** The transform along the last two axes of complex numbers. */
  fft2(): Expr<"f32">;
  /** The inverse of `fft2`. */
  ifft2(): Expr<"f32">;
  /** The transform along the last two axes of real numbers: of the last one k up to ⌊n / 2⌋, as `rfft`. */
  rfft2(): Expr<"f32">;
  /** The inverse of `rfft2`, whose last axis has that length, as that of `irfft`. */
  irfft2(length?: number): Expr<"f32">;

  /** The same elements, row by row, in another shape. One size may be −1: it is what the others leave. */
  reshape(shape: readonly number[]): Expr<D>;
  /**
   * With its dimensions in another order: the i-th of the result is that which `axes` names at i; without axes they are reversed. More than six
   * that do not stay behind one another are `limit_exceeded`.
   */
  transpose(axes?: Axes): Expr<D>;
  /** Repeated to a shape: dimensions of size 1 become as large as there, and others are put in front. */
  broadcastTo(shape: readonly number[]): Expr<D>;
  /**
   * The elements from `start` up to and without `end`, each `step` (1 if none is given) further than the last, along an axis; as in NumPy,
   * negative places count from the end, those outside are moved to the edge, and a negative step goes backwards.
   */
  slice(axis: number, start: number, end: number, step?: number): Expr<D>;
  /** With the elements along each of those axes in the opposite order; without axes along all. */
  flip(axes?: Axes): Expr<D>;
  /**
   * With something around it, `[before, behind]` so many elements along each dimension: a number of a's type, 0 if none is given; the element at the
   * `"edge"`; the elements `"reflect"`ed at that one; or those from the other end, for `"wrap"`.
   */
  pad(widths: readonly (readonly [number, number])[], value?: number | "edge" | "reflect" | "wrap"): Expr<D>;
}

/** A tensor or a number as the start of an expression. */
export function lazy<D extends DType = never>(value: Value<D>): Expr<D>;
