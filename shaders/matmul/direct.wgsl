// C = alpha * op(A) * op(B) + beta * C with sums in f32, straight from memory: an invocation computes 4 x 4 elements and shares nothing.
//
// It is short, so that it is compiled in a fraction of a tiled kernel's time, and computes what is asked for before that one is there.
// Terms are added in the same order, those of each of a tile's slices by themselves, so that the result is the same.
//
// And it computes batches of products so small that each would leave most of a workgroup idle.
//
//   MANY     invocations, one behind the other, take the blocks of all items of a batch: z of the grid is 1
//   SLICES   how many there are; 0 if it is told as k_part, or 0 there for one: then one kernel stands in for all tiles
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0)
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//            read as block.wgsl tells, and those of store.wgsl

//# if MANY
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>) {
  let across = (params.n + 3u) / 4u;
  let blocks = across * ((params.m + 3u) / 4u);
  let item = invocation.x / blocks;
  if (item >= params.batch) { return; }
  let row = invocation.x % blocks / across * 4u;
  let column = invocation.x % across * 4u;
//# else
@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(global_invocation_id) invocation: vec3<u32>) {
  let item = group.z;
  let row = invocation.y * 4u;
  let column = invocation.x * 4u;
  if (row >= params.m || column >= params.n) { return; }
//# end
  _ = begin(item);
  let slices = select(SLICES, max(params.k_part, 1u), SLICES == 0u);
  var sums: array<vec4<f32>, 4>;
  for (var slice = 0u; slice < slices; slice++) {
    let more = block(row, column, slice, params.k, slices);
//# for r in 4
    sums[$r] = select(sums[$r] + more[$r], more[$r], slice == 0u);
//# end
  }
//# for r in 4
  store(item, row + $ru, column, sums[$r]);
//# end
}
