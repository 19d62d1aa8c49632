// C = alpha * op(A) * op(B) + beta * C with sums in f32, straight from memory: an invocation computes 4 x 4 elements and shares nothing.
//
// It is short, so that it is compiled in a fraction of a tiled kernel's time, and computes what is asked for before that one is there.
// Terms are added in the same order, so that the result is the same.
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0)
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//            read as load.wgsl tells, and those of store.wgsl
//
// A row or a column outside the result repeats the last one, and what comes of it is not stored.

fn a_one(at: u32) -> f32 {
//# if A_VEC4
  return a_four(at / 4u)[at % 4u];
//# else
  return a_at(at);
//# end
}

fn b_one(at: u32) -> f32 {
//# if B_VEC4
  return b_four(at / 4u)[at % 4u];
//# else
  return b_at(at);
//# end
}

@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(global_invocation_id) invocation: vec3<u32>) {
  _ = begin(group.z);
  let row = invocation.y * 4u;
  let column = invocation.x * 4u;
  if (row >= params.m || column >= params.n) { return; }
  let rows = min(row + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.m - 1u));
  let columns = min(column + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u));
//# if A_SCATTER
  let a_base = a_start() + rows * params.lda;
  let a_step = 1u;
//# else
  let a_base = a_start() + rows;
  let a_step = params.lda;
//# end
//# if B_SCATTER
  let b_base = b_start() + columns * params.ldb;
  let b_step = 1u;
//# else
  let b_base = b_start() + columns;
  let b_step = params.ldb;
//# end
//# for r in 4
  var sum_$r = vec4<f32>();
//# end
  for (var k = 0u; k < params.k; k++) {
    let i = a_base + k * a_step;
    let j = b_base + k * b_step;
//# if B_LINES
    let b_k = b_four(j.x / 4u);
//# else
    let b_k = vec4<f32>(b_one(j.x), b_one(j.y), b_one(j.z), b_one(j.w));
//# end
//# for r in 4
    sum_$r = fma(vec4<f32>(a_one(i[$r])), b_k, sum_$r);
//# end
  }
//# for r in 4
  store(group.z, row + $ru, column, sum_$r);
//# end
}
