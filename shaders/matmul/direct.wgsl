// C = alpha * op(A) * op(B) + beta * C with sums in f32, straight from memory: an invocation computes 4 x 4 elements and shares nothing.
//
// It is short, so that it is compiled in a fraction of a tiled kernel's time, and computes what is asked for before that one is there.
// Terms are added in the same order, those of each of a tile's slices by themselves, so that the result is the same.
//
//   SLICES   how many there are; 0 if it is told as k_part, or 0 there for one: then one kernel stands in for all tiles
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0)
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//            read as block.wgsl tells, and those of store.wgsl

@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(global_invocation_id) invocation: vec3<u32>) {
  _ = begin(group.z);
  let row = invocation.y * 4u;
  let column = invocation.x * 4u;
  if (row >= params.m || column >= params.n) { return; }
  let slices = select(SLICES, max(params.k_part, 1u), SLICES == 0u);
  var sums: array<vec4<f32>, 4>;
  for (var slice = 0u; slice < slices; slice++) {
    let more = block(row, column, slice, params.k, slices);
//# for r in 4
    sums[$r] = select(sums[$r] + more[$r], more[$r], slice == 0u);
//# end
  }
//# for r in 4
  store(group.z, row + $ru, column, sums[$r]);
//# end
}
