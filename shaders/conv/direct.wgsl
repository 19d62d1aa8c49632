// Convolution where a group has few filters: each invocation computes ROWS of them at four positions, and reads what it needs where it is.
//
//   binding  name    stored as
//   0        a       filters, each a row
//   1        b       images, as window.wgsl has them
//            and those of matmul/store.wgsl

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let across = (params.n + 3u) / 4u;
  let blocks = (params.m + ROWS - 1u) / ROWS;
  let i = (group.y * groups.x + group.x) * THREADS + local;
  if (i >= params.batch * blocks * across) { return; }
  let item = i / (blocks * across);
  let row0 = i / across % blocks * ROWS;
  let column = i % across * 4u;
  begin(item);
  let corner = corner_of(column);
//# for r in ROWS
  // A row outside repeats the last one, and is not stored.
  var a_$r = a_start() + min(row0 + $ru, params.m - 1u) * params.lda;
  var sum_$r = vec4<f32>();
//# end
  var channel = b_start();
  for (var c = 0u; c < params.k / TAPS; c++) {
    for (var i = 0u; i < TAPS_Y; i++) {
      for (var j = 0u; j < TAPS_X; j++) {
        let v = tap(corner, channel, i, j);
//# for r in ROWS
        sum_$r = fma(vec4<f32>(a_at(a_$r)), v, sum_$r);
        a_$r++;
//# end
      }
    }
    channel += params.height * params.width;
  }
//# for r in ROWS
  store(item, row0 + $ru, column, sum_$r);
//# end
}
