/** The operands: the same for every library, made without any of them. */

/** Fills an array with uniform multiples of 2^-bits in [−1, 1): xorshift32 (Marsaglia, "Xorshift RNGs", 2003). */
export function random_matrix(length, seed, bits) {
  const values = new Float32Array(length);
  let state = (seed * 0x9e3779b9) | 0 || 1;
  for (let i = 0; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    values[i] = (state >> (31 - bits)) / 2 ** bits;
  }
  return values;
}

/** A, `batch` times m × k, and B, `batch` times k × n. Those for a job of f16 are such that f16 holds them; of i8 they are −16 to 15. */
export function operands({ m, k, n, batch, dtype }) {
  const bits = { f16: 11, i8: 4 }[dtype] ?? 23;
  const [a, b] = [random_matrix(batch * m * k, 1, bits), random_matrix(batch * k * n, 2, bits)];
  const scaled = (values) => (dtype === "i8" ? values.map((value) => value * 2 ** bits) : values);
  return { a: scaled(a), b: scaled(b) };
}
