// What of a result is past the whole tiles of tiled.wgsl, a few rows or columns: blocks of 4 x 4 elements, first those beside the tiles, then
// those below. A workgroup computes EDGE_BLOCKS of them at a time: its invocations share the terms of each, and one adds up what they found.
//
//   EDGES    the last rows of workgroups are these; otherwise tiles cover the result.
//   EDGE_M   the tiles leave rows; EDGE_N: they leave columns.

//# if EDGES
var<workgroup> edge_sums: array<vec4<f32>, THREADS>;

// The blocks of the workgroup with that number, of so many, of the terms from first to last.
fn edges(z: u32, first: u32, last: u32, group: u32, groups: u32, thread: u32) {
  let rows = params.m - EDGE_M * (params.m % TILE_M);
  let columns = params.n - EDGE_N * (params.n % TILE_N);
  let down = (rows + 3u) / 4u;
  let across = (params.n + 3u) / 4u;
  let beside = down * ((params.n - columns + 3u) / 4u);
  let all = beside + (params.m - rows + 3u) / 4u * across;
  for (var start = group * EDGE_BLOCKS; start < all; start += groups * EDGE_BLOCKS) {
    let i = start + thread % EDGE_BLOCKS;
    var row = i % down * 4u;
    var column = columns + i / down * 4u;
    if (i >= beside) {
      row = rows + (i - beside) / across * 4u;
      column = (i - beside) % across * 4u;
    }
    let sums = block(row, column, first + thread / EDGE_BLOCKS, last, THREADS / EDGE_BLOCKS);
//# for r in 4
    workgroupBarrier();
    edge_sums[thread] = sums[$r];
    workgroupBarrier();
    if (thread < EDGE_BLOCKS) {
      var sum = sums[$r];
      for (var at = thread + EDGE_BLOCKS; at < THREADS; at += EDGE_BLOCKS) { sum += edge_sums[at]; }
      store(z, row + $ru, column, sum);
    }
//# end
  }
}
//# end
