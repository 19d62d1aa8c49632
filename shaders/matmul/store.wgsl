// How a product's sums become its result, for kernels that end in it: the kernel's parameters, what it writes to and `store`.
//
//   binding  name    stored as
//   2        out     m x n
//   3        params
//   4        c       m x n, only if READS_C
//   5        bias    n, only if READS_BIAS
//
//   READS_C     beta is not 0: C is read.
//   ACCUMULATES what out holds is added to: a later part of a product split over k for the sake of bindings.
//   READS_BIAS  bias is added to each row; BIAS_STEP is 0 if it is a single number. With BIAS_ROWS each row has a number of its own instead,
//               bias_inner of them behind those of one item of an inner loop.
//   ACTIVATION  activate.wgsl's, applied in the end.
//   END         what follows is computed of the result: map/end.wgsl.
//   BATCHED     z of the grid also counts the products of a batch, params.batch of them. Item i is i / inner in an outer loop and
//               i % inner in an inner one, and operand x of it starts so many x_outer and x_inner further on.
//   RESULT_F16  out and c are of f16, two of them a word. With WORDS the kernel writes words of out itself, and without it and OUT_VEC4 it
//               has f16, of which out's elements are then.
//   OUT_VEC4    out's rows start at multiples of 4 elements and n is one, so that vec4s can be stored; otherwise scalars are.

struct Params {
  m: u32, k: u32, n: u32,
  lda: u32, ldb: u32, ldc: u32, ldo: u32,
  a_start: u32, b_start: u32, c_start: u32, out_start: u32,
  alpha: f32, beta: f32,
  k_part: u32,
  batch: u32, inner: u32,
  a_outer: u32, b_outer: u32, c_outer: u32,
  a_inner: u32, b_inner: u32, c_inner: u32,
  bias_start: u32, activation: u32,
  result: u32,
  bias_inner: u32,
  height: u32, width: u32, out_width: u32, before_y: u32, before_x: u32,
//# if END
  more: array<vec4<u32>, 8>,
//# end
}
//# if END
fn word(i: u32) -> u32 { return params.more[i / 4u][i % 4u]; }
//# end

//# if RESULT_F16
//# if WORDS
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
//# else
//# if OUT_VEC4
@group(0) @binding(2) var<storage, read_write> out: array<vec2<u32>>;
//# else
@group(0) @binding(2) var<storage, read_write> out: array<f16>;
//# end
//# end
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
//# if READS_BIAS
@group(0) @binding(5) var<storage, read> bias: array<f32>;
//# end

//# if BATCHED
// Where this invocation's A, B and C start.
var<private> starts: vec3<u32>;
//# if BIAS_ROWS
var<private> bias_at: u32;
//# end
//# end

// Takes on what layer z of the grid is to do: an item of a batch, and the part of k that is given.
fn begin(z: u32) -> u32 {
//# if BATCHED
  let item = z % params.batch;
  starts = vec3<u32>(params.a_start, params.b_start, params.c_start)
    + item / params.inner * vec3<u32>(params.a_outer, params.b_outer, params.c_outer)
    + item % params.inner * vec3<u32>(params.a_inner, params.b_inner, params.c_inner);
//# if BIAS_ROWS
  bias_at = params.bias_start + item % params.inner * params.bias_inner;
//# end
  return z / params.batch;
//# else
  return z;
//# end
}

//# if BATCHED
fn a_start() -> u32 { return starts.x; }
fn b_start() -> u32 { return starts.y; }
fn c_start() -> u32 { return starts.z; }
//# else
fn a_start() -> u32 { return params.a_start; }
fn b_start() -> u32 { return params.b_start; }
fn c_start() -> u32 { return params.c_start; }
//# end

// What four elements of a row from a column on are in the result, where the first of them is element o.
fn finished(o: u32, row: u32, column: u32, sum: vec4<f32>) -> vec4<f32> {
  var v = params.alpha * sum;
//# if READS_C
  let i = c_start() + row * params.ldc + column;
  v.x += params.beta * c_at(i);
  if (column + 1u < params.n) { v.y += params.beta * c_at(i + 1u); }
  if (column + 2u < params.n) { v.z += params.beta * c_at(i + 2u); }
  if (column + 3u < params.n) { v.w += params.beta * c_at(i + 3u); }
//# end
//# if ACCUMULATES
//# if OUT_VEC4
  v += out[o / 4u];
//# else
//# for r in 4
  if (column + $ru < params.n) { v[$r] += out[o + $ru]; }
//# end
//# end
//# end
//# if READS_BIAS
//# if BIAS_ROWS
//# if BATCHED
  v += bias[bias_at + row];
//# else
  v += bias[params.bias_start + row];
//# end
//# else
//# for r in 4
  v[$r] += bias[params.bias_start + min(column + $ru, params.n - 1u) * BIAS_STEP];
//# end
//# end
//# end
//# if ACTIVATION
  v = activate(v);
//# end
//# if END
  v = ended_four(o, v);
//# end
  return v;
}

//# if WORDS
//# else
// Puts four elements of a row from a column on into one of the matrices that lie behind one another in out: items, or parts of all of
// them. What lies outside is dropped.
fn store(z: u32, row: u32, column: u32, sum: vec4<f32>) {
  if (row >= params.m || column >= params.n) { return; }
  let o = params.out_start + (z * params.m + row) * params.ldo + column;
  let v = finished(o, row, column, sum);
//# if RESULT_F16
//# if OUT_VEC4
  out[o / 4u] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
//# else
  let rounded = vec4<f16>(v);
//# for r in 4
  if (column + $ru < params.n) { out[o + $ru] = rounded[$r]; }
//# end
//# end
//# else
//# if OUT_VEC4
  out[o / 4u] = v;
//# else
//# for r in 4
  if (column + $ru < params.n) { out[o + $ru] = v[$r]; }
//# end
//# end
//# end
}
//# end
