// How a product's sums become its result, for kernels that end in it: the kernel's parameters, what it writes to and `store`.
//
//   binding  name    stored as
//   2        out     m x n
//   3        params
//   4        c       m x n, only if READS_C
//
//   READS_C     beta is not 0: C is read.
//   ACCUMULATES what out holds is added to: a later part of a product split over k for the sake of bindings.
//   BATCHED     z of the grid also counts the products of a batch, params.batch of them. Item i is i / inner in an outer loop and
//               i % inner in an inner one, and operand x of it starts so many x_outer and x_inner further on.
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
}

//# if OUT_VEC4
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
//# else
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
//# end
@group(0) @binding(3) var<uniform> params: Params;
//# if READS_C
@group(0) @binding(4) var<storage, read> c: array<f32>;
//# end

//# if BATCHED
// Where this invocation's A, B and C start.
var<private> starts: vec3<u32>;
//# end

// Takes on what layer z of the grid is to do: an item of a batch, and the part of k that is given.
fn begin(z: u32) -> u32 {
//# if BATCHED
  let item = z % params.batch;
  starts = vec3<u32>(params.a_start, params.b_start, params.c_start)
    + item / params.inner * vec3<u32>(params.a_outer, params.b_outer, params.c_outer)
    + item % params.inner * vec3<u32>(params.a_inner, params.b_inner, params.c_inner);
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

// Puts four elements of a row from a column on into one of the matrices that lie behind one another in out: items, or parts of all of
// them. What lies outside is dropped.
fn store(z: u32, row: u32, column: u32, sum: vec4<f32>) {
  if (row >= params.m || column >= params.n) { return; }
  let o = params.out_start + (z * params.m + row) * params.ldo + column;
  var v = params.alpha * sum;
//# if READS_C
  let i = c_start() + row * params.ldc + column;
  v.x += params.beta * c[i];
  if (column + 1u < params.n) { v.y += params.beta * c[i + 1u]; }
  if (column + 2u < params.n) { v.z += params.beta * c[i + 2u]; }
  if (column + 3u < params.n) { v.w += params.beta * c[i + 3u]; }
//# end
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
}
