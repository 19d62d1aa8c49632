// What a product's kernel is told at run time: `Params` of plan/matmul.rs, and where its operands start.
//
//   binding  name
//   3        params
//
//   BATCHED     z of the grid also counts the products of a batch, params.batch of them. Item i is i / inner in an outer loop and
//               i % inner in an inner one, and operand x of it starts so many x_outer and x_inner further on.
//   GROUPED     BATCHED, but z counts products that are alike, so many at most: a, b, c and out of each start so many elements further on as
//               its place tells.
//   BIAS_ROWS   as in store.wgsl, which reads the bias.
//   END         what follows is computed of the result: map/end.wgsl. Its words are counted from the first of these on, of which there are 32.

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
  zero_points: u32,
//# if END
  more: array<vec4<u32>, 8>,
//# end
//# if GROUPED
  places: array<vec4<u32>, GROUPED>,
//# end
}
//# if END
fn word(i: u32) -> u32 { return params.more[i / 4u - 8u][i % 4u]; }
//# end
@group(0) @binding(3) var<uniform> params: Params;

//# if BATCHED
// Where this invocation's A, B and C start.
var<private> starts: vec3<u32>;
//# if BIAS_ROWS
var<private> bias_at: u32;
//# end
//# end

// Takes on what layer z of the grid is to do: an item of a batch, and the part of k that is given.
fn begin(z: u32) -> u32 {
//# if GROUPED
  starts = vec3<u32>(params.a_start, params.b_start, params.c_start) + params.places[z].xyz;
  return 0u;
//# else
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
