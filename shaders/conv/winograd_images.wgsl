// Images for winograd_product.wgsl: each invocation one tile of one channel, with what is round it.
//
//   binding  name     stored as
//   0        images   a channel is HEIGHT x WIDTH
//   2        scratch  what they become is at IMAGES_AT, a row of COLUMNS tiles for each channel

@group(0) @binding(0) var<storage, read> images: array<f32>;
@group(0) @binding(2) var<storage, read_write> scratch: array<f32>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = (group.y * groups.x + group.x) * THREADS + local;
  let count = word(CHANNELS) * word(COLUMNS);
  if (i >= count) { return; }
  let c = i / word(COLUMNS);
  // What fills a row up is the last tile once more, which nobody reads.
  let tile = min(i % word(COLUMNS), word(TILES) - 1u);
  let channel = word(IMAGES_START) + (tile / word(TILES_OF_IMAGE) * word(CHANNELS) + c) * word(HEIGHT) * word(WIDTH);
  let place = tile % word(TILES_OF_IMAGE);
  // What is before an image wraps round, and so counts as far behind it.
  let y0 = place / word(TILES_OF_ROW) * 4u - word(BEFORE_Y);
  let x0 = place % word(TILES_OF_ROW) * 4u - word(BEFORE_X);
//# for x in 6
  let x_$x = x0 + $xu;
  let is_in_$x = x_$x < word(WIDTH);
  let at_$x = channel + select(0u, x_$x, is_in_$x);
//# end
//# for y in 6
  let y_$y = y0 + $yu;
  let is_in_row_$y = y_$y < word(HEIGHT);
  let row_$y = select(0u, y_$y, is_in_row_$y) * word(WIDTH);
//# for x in 6
  let v_$y_$x = select(0.0, images[at_$x + row_$y], is_in_$x && is_in_row_$y);
//# end
//# end
//# for x in 6
  let column_$x = of_image(Six(v_0_$x, v_1_$x, v_2_$x, v_3_$x, v_4_$x, v_5_$x));
//# end
//# for y in 6
  let made_$y = of_image(Six(column_0[$y], column_1[$y], column_2[$y], column_3[$y], column_4[$y], column_5[$y]));
//# for x in 6
  scratch[word(IMAGES_AT) + ($yu * 6u + $xu) * count + i] = made_$y[$x];
//# end
//# end
}
