// Operands of products of 8-bit integers by words of four elements, which one instruction multiplies and adds up, and where sums go.
//
//   binding  name    stored as
//   0        a       four elements a word, at any element
//   1        b       the same
//   2        out     m x n of 32 bits, and those of params.wgsl
//
//   SIGNED      both operands are of i8 once they are flipped, or else of u8.
//   *_FLIP      the operand is of u8 and becomes one of i8, whose elements are less by 128.
//   *_ZERO      the operand's zero point is not 0. With z and y for those of A and B, it is
//               sum of (a - z)(b - y) = sum of a b - z * sum of b - y * sum of a + k z y.
//   PACKED      the device multiplies packed words; otherwise they are unpacked.
//   *_VEC4      the operand's lines, and all items of a batch, start at words.
//   ACCUMULATES what out holds is added to: a later part of a product split over k for the sake of bindings.
//   OUT_VEC4    out's rows start at multiples of 4 elements and n is one, so that vec4s can be stored; otherwise scalars are.
//
// Sums are of u32, which wraps in every language.

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
//# if OUT_VEC4
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;
//# else
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
//# end

// Four elements from one on. Words past the end of the buffer have nothing of them, and are not read.
fn a_word(i: u32) -> u32 {
//# if A_VEC4
  return a[i / 4u];
//# else
  let last = arrayLength(&a) - 1u;
  return joined(a[min(i / 4u, last)], a[min(i / 4u + 1u, last)], i);
//# end
}

fn b_word(i: u32) -> u32 {
//# if B_VEC4
  return b[i / 4u];
//# else
  let last = arrayLength(&b) - 1u;
  return joined(b[min(i / 4u, last)], b[min(i / 4u + 1u, last)], i);
//# end
}

fn joined(low: u32, high: u32, i: u32) -> u32 {
  let shift = (i % 4u) * 8u;
  return select((low >> shift) | (high << ((32u - shift) % 32u)), low, shift == 0u);
}

// Of words that begin at element k the elements before the end, and zeros.
fn before(words: vec4<u32>, k: u32, end: u32) -> vec4<u32> {
  let left = max(end, k) - k;
  if (left >= 4u) { return words; }
  return words & vec4<u32>((1u << (left * 8u)) - 1u);
}

// The columns of four by four elements, whose rows these words are.
fn turned(rows: vec4<u32>) -> vec4<u32> {
  let even = vec2<u32>(
    (rows.x & 0x00ff00ffu) | ((rows.y & 0x00ff00ffu) << 8u),
    (rows.z & 0x00ff00ffu) | ((rows.w & 0x00ff00ffu) << 8u),
  );
  let odd = vec2<u32>(
    ((rows.x >> 8u) & 0x00ff00ffu) | (rows.y & 0xff00ff00u),
    ((rows.z >> 8u) & 0x00ff00ffu) | (rows.w & 0xff00ff00u),
  );
  return vec4<u32>(
    (even.x & 0xffffu) | (even.y << 16u),
    (odd.x & 0xffffu) | (odd.y << 16u),
    (even.x >> 16u) | (even.y & 0xffff0000u),
    (odd.x >> 16u) | (odd.y & 0xffff0000u),
  );
}

// The sum of the products of the elements of a word by those of each of four.
fn products(x: u32, y: vec4<u32>) -> vec4<u32> {
//# if PACKED
//# if SIGNED
  return bitcast<vec4<u32>>(vec4<i32>(dot4I8Packed(x, y.x), dot4I8Packed(x, y.y), dot4I8Packed(x, y.z), dot4I8Packed(x, y.w)));
//# else
  return vec4<u32>(dot4U8Packed(x, y.x), dot4U8Packed(x, y.y), dot4U8Packed(x, y.z), dot4U8Packed(x, y.w));
//# end
//# else
//# for r in 4
  let y_$r = unpacked(y[$r]);
//# end
  let x_4 = unpacked(x);
  return bitcast<vec4<u32>>(vec4<i32>(dot(x_4, y_0), dot(x_4, y_1), dot(x_4, y_2), dot(x_4, y_3)));
//# end
}

//# if PACKED
//# else
fn unpacked(word: u32) -> vec4<i32> {
//# if SIGNED
  return bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
//# else
  return bitcast<vec4<i32>>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
//# end
}
//# end

// Puts four elements of a row from a column on into one of the matrices of a batch. What lies outside is dropped.
fn store(z: u32, row: u32, column: u32, sum: vec4<u32>) {
  if (row >= params.m || column >= params.n) { return; }
  let o = params.out_start + (z * params.m + row) * params.ldo + column;
//# if OUT_VEC4
//# if ACCUMULATES
  out[o / 4u] += sum;
//# else
  out[o / 4u] = sum;
//# end
//# else
//# for r in 4
//# if ACCUMULATES
  if (column + $ru < params.n) { out[o + $ru] += sum[$r]; }
//# else
  if (column + $ru < params.n) { out[o + $ru] = sum[$r]; }
//# end
//# end
//# end
}

// The operands' zero points, as far as there are any.
//# if A_ZERO
fn a_zero() -> u32 { return bitcast<u32>(bitcast<i32>(params.zero_points << 16u) >> 16u); }
//# else
fn a_zero() -> u32 { return 0u; }
//# end
//# if B_ZERO
fn b_zero() -> u32 { return bitcast<u32>(bitcast<i32>(params.zero_points) >> 16u); }
//# end
