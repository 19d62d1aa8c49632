// Filters for winograd_product.wgsl: each invocation one filter's taps of one channel.
//
//   binding  name     stored as
//   0        filters  FILTERS x CHANNELS x 3 x 3
//   2        scratch  what they become begins it

@group(0) @binding(0) var<storage, read> filters: array<f32>;
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = (group.y * groups.x + group.x) * THREADS + local;
  let count = word(FILTERS) * word(CHANNELS);
  if (i >= count) { return; }
//# for x in 3
  let column_$x = of_filter(Three(filters[i * 9u + $xu], filters[i * 9u + $xu + 3u], filters[i * 9u + $xu + 6u]));
//# end
//# for y in 6
  let row_$y = of_filter(Three(column_0[$y], column_1[$y], column_2[$y]));
//# for x in 6
  scratch[($yu * 6u + $xu) * count + i] = row_$y[$x];
//# end
//# end
}
