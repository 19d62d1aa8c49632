/** Robust statistics: one slow sample (a garbage collection, another tab) must not move the result. */

export function median(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((x, y) => x - y);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Median absolute deviation from the median, not scaled. */
export function mad(values: readonly number[]): number {
  const centre = median(values);
  return median(values.map((value) => Math.abs(value - centre)));
}

/** 10⁹ floating-point operations a second of an m × k by k × n product; null if no time was seen to pass. */
export function gflops(m: number, k: number, n: number, time_ms: number): number | null {
  return time_ms > 0 ? (2 * m * k * n) / (time_ms * 1e6) : null;
}
