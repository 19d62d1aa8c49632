// Images as the matrix that filters are multiplied by: column p is what the window at position p sees, row k the tap k % TAPS of channel
// k / TAPS. Nothing of it is stored anywhere: an element is looked up where it is needed, and is 0 in the padding.
//
//   b        images, read as matmul/load.wgsl tells; a channel is height x width
//   TAPS     elements of a window in one channel, TAPS_X of them in a row

// Where the windows of four positions begin; what is before an image wraps round, and so counts as far behind it.
struct Corner { y: vec4<u32>, x: vec4<u32> }

fn corner_of(column: u32) -> Corner {
  let p = min(column + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u));
  return Corner(p / params.out_width * STRIDE_Y - params.before_y, p % params.out_width * STRIDE_X - params.before_x);
}

// What the windows have in row k.
fn seen(corner: Corner, k: u32) -> vec4<f32> {
  return tap(corner, b_start() + k / TAPS * params.height * params.width, k % TAPS / TAPS_X, k % TAPS % TAPS_X);
}

// The same where k may be outside, from `end` on: without a branch, in which the latencies of several would add up.
fn seen_edge(corner: Corner, k: u32, end: u32) -> vec4<f32> {
  return select(vec4<f32>(), seen(corner, min(k, end - 1u)), vec4<bool>(k < end));
}

// What they have of the channel that begins there at a tap.
fn tap(corner: Corner, channel: u32, i: u32, j: u32) -> vec4<f32> {
  let y = corner.y + i * DILATION_Y;
  let x = corner.x + j * DILATION_X;
  let inside = (y < vec4<u32>(params.height)) & (x < vec4<u32>(params.width));
  let at = select(vec4<u32>(), channel + y * params.width + x, inside);
  return select(vec4<f32>(), vec4<f32>(b_at(at.x), b_at(at.y), b_at(at.z), b_at(at.w)), inside);
}
