// How a product's sums become its result, for kernels that end in it: what they write to and `store`.
//
//   binding  name    stored as
//   2        out     m x n, and those of params.wgsl
//   4        c       m x n, only if READS_C
//   5        bias    n, only if READS_BIAS
//
//   READS_C     beta is not 0: C is read.
//   ACCUMULATES what out holds is added to: a later part of a product split over k for the sake of bindings.
//   READS_BIAS  bias is added to each row; BIAS_STEP is 0 if it is a single number. With BIAS_ROWS each row has a number of its own instead,
//               bias_inner of them behind those of one item of an inner loop.
//   ACTIVATION  activate.wgsl's, applied in the end.
//   END         what follows is computed of the result: map/end.wgsl.
//   RESULT_F16  out and c are of f16, two of them a word. With WORDS the kernel writes words of out itself, and without it and OUT_VEC4 it
//               has f16, of which out's elements are then.
//   GROUPED     as in params.wgsl.
//   OUT_VEC4    out's rows start at multiples of 4 elements and n is one, so that vec4s can be stored; otherwise scalars are.

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
  store_inside(z, row, column, sum);
}

// The same of four elements the first of which lies inside.
fn store_inside(z: u32, row: u32, column: u32, sum: vec4<f32>) { store_until(params.n, z, row, column, sum); }

// The same of those before the column `end`, which is a multiple of 4 where vec4s are stored.
fn store_until(end: u32, z: u32, row: u32, column: u32, sum: vec4<f32>) {
//# if GROUPED
  let o = params.out_start + params.places[z].w + row * params.ldo + column;
//# else
  let o = params.out_start + (z * params.m + row) * params.ldo + column;
//# end
  let v = finished(o, row, column, sum);
//# if RESULT_F16
//# if OUT_VEC4
  out[o / 4u] = pack_four(v);
//# else
  let rounded = vec4<f16>(v);
//# for r in 4
  if (column + $ru < end) { out[o + $ru] = rounded[$r]; }
//# end
//# end
//# else
//# if OUT_VEC4
  out[o / 4u] = v;
//# else
//# for r in 4
  if (column + $ru < end) { out[o + $ru] = v[$r]; }
//# end
//# end
//# end
}
//# end
