// C = alpha * op(A) * op(B) + beta * C with sums in f32, straight from memory: an invocation computes 4 x 4 elements and shares nothing.
//
// It is short, so that it is compiled in a fraction of a tiled kernel's time, and computes what is asked for before that one is there.
// Terms are added in the same order, those of each of a tile's slices by themselves, so that the result is the same.
//
// And it computes batches of products so small that each would leave most of a workgroup idle.
//
//   MANY     invocations, one behind the other, take the blocks of all items of a batch: z of the grid is 1
//   SLICES   how many there are; 0 if it is told as k_part, or 0 there for one: then one kernel stands in for all tiles
//   FLAT     if not 0, A's rows are so long, the result's FLAT_N, and both lie behind one another and start at multiples of 4 elements in fours: an
//            invocation takes four of them
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0)
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//            read as block.wgsl tells, and those of store.wgsl

//# if FLAT
// Four rows by all columns, which are written as they lie.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>) {
  let blocks = (params.m + 3u) / 4u;
  let item = invocation.x / blocks;
  if (item >= params.batch) { return; }
  let row = invocation.x % blocks * 4u;
  _ = begin(item);
  // What is behind the last row is not written.
  let last = (a_start() + params.m * FLAT - 1u) / 4u;
  var rows: array<Number, 4 * FLAT>;
//# for t in FLAT
  let four_$t = a_four(min((a_start() + row * FLAT) / 4u + $tu, last));
//# for q in 4
  rows[4 * $t + $q] = four_$t[$q];
//# end
//# end
  let along = select(params.ldb, 1u, B_SCATTER > 0u);
  let across = select(1u, params.ldb, B_SCATTER > 0u);
  var results: array<f32, 4 * FLAT_N>;
//# for c in FLAT_N
  var sum_$c = vec4<f32>();
//# for t in FLAT
  let four_$c_$t = vec4<f32>(vec4<Number>(rows[$t], rows[FLAT + $t], rows[2 * FLAT + $t], rows[3 * FLAT + $t]));
  sum_$c = fma(four_$c_$t, vec4<f32>(f32(b_at(b_start() + $tu * along + $cu * across))), sum_$c);
//# end
  sum_$c *= params.alpha;
//# if READS_BIAS
  sum_$c += bias[params.bias_start + $cu * BIAS_STEP];
//# end
//# if ACTIVATION
  sum_$c = activate(sum_$c);
//# end
//# for r in 4
  results[$r * FLAT_N + $c] = sum_$c[$r];
//# end
//# end
  let first = (params.out_start + (item * params.m + row) * FLAT_N) / 4u;
  let there = min(params.m - row, 4u) * FLAT_N;
//# for t in FLAT_N
  if ($tu * 4u < there) {
    let v = vec4<f32>(results[4 * $t], results[4 * $t + 1], results[4 * $t + 2], results[4 * $t + 3]);
//# if RESULT_F16
    out[first + $tu] = pack_four(v);
//# else
    out[first + $tu] = v;
//# end
  }
//# end
}
//# else
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
//# end
