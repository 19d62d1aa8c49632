// How a product's sums become its result, for kernels that end in it: the kernel's parameters, what it writes to and `store`.
//
//   binding  name    stored as
//   2        out     m x n
//   3        params
//   4        c       m x n, only if READS_C
//
//   READS_C     beta is not 0: C is read.
//   ACCUMULATES what out holds is added to: a later part of a product split over k for the sake of bindings.
//   RESULT_F16  out and c are of f16, two of them a word; rows of out start at multiples of 4 elements and n is one.
//   OUT_VEC4    out's rows start at multiples of 4 elements and n is one, so that vec4s can be stored; otherwise scalars are.

struct Params {
  m: u32, k: u32, n: u32,
  lda: u32, ldb: u32, ldc: u32, ldo: u32,
  a_start: u32, b_start: u32, c_start: u32, out_start: u32,
  alpha: f32, beta: f32,
  k_part: u32,
}

//# if RESULT_F16
@group(0) @binding(2) var<storage, read_write> out: array<vec2<u32>>;
//# else
//# if OUT_VEC4
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
//# else
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
//# end
//# end
@group(0) @binding(3) var<uniform> params: Params;
//# if READS_C
//# if RESULT_F16
@group(0) @binding(4) var<storage, read> c: array<u32>;
fn c_at(i: u32) -> f32 { return unpack2x16float(c[i / 2u])[i % 2u]; }
//# else
@group(0) @binding(4) var<storage, read> c: array<f32>;
fn c_at(i: u32) -> f32 { return c[i]; }
//# end
//# end

// Puts four elements of a row from a column on into one of several matrices. What lies outside is dropped.
fn store(part: u32, row: u32, column: u32, sum: vec4<f32>) {
  if (row >= params.m || column >= params.n) { return; }
  let o = params.out_start + (part * params.m + row) * params.ldo + column;
  var v = params.alpha * sum;
//# if READS_C
  let i = params.c_start + row * params.ldc + column;
  v.x += params.beta * c_at(i);
  if (column + 1u < params.n) { v.y += params.beta * c_at(i + 1u); }
  if (column + 2u < params.n) { v.z += params.beta * c_at(i + 2u); }
  if (column + 3u < params.n) { v.w += params.beta * c_at(i + 3u); }
//# end
//# if RESULT_F16
  out[o / 4u] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
//# else
//# if OUT_VEC4
//# if ACCUMULATES
  v += out[o / 4u];
//# end
  out[o / 4u] = v;
//# else
//# for r in 4
//# if ACCUMULATES
  if (column + $ru < params.n) { out[o + $ru] += v[$r]; }
//# else
  if (column + $ru < params.n) { out[o + $ru] = v[$r]; }
//# end
//# end
//# end
//# end
}
