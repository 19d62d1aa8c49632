// Convolution where a group has few filters: each invocation computes FILTERS of them, and reads what it needs where it is.
//
//   binding  name    stored as
//   0        a       filters, each a row
//   1        b       images, as window.wgsl has them
//            and those of matmul/store.wgsl
//
//   LINES    of the result an invocation has four neighbours each, in as many rows below one another: what of a channel their windows see,
//            SEEN_Y x SEEN_X elements, is read once. With 0 it has four positions behind one another, whose windows are read one by one.

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
//# if LINES
  let width = (params.out_width + 3u) / 4u;
  let height = params.n / params.out_width;
  let across = width * ((height + LINES - 1u) / LINES);
//# else
  let across = (params.n + 3u) / 4u;
//# end
  let blocks = (params.m + FILTERS - 1u) / FILTERS;
  let i = (group.y * groups.x + group.x) * THREADS + local;
  if (i >= params.batch * blocks * across) { return; }
  let item = i / (blocks * across);
  let row0 = i / across % blocks * FILTERS;
  begin(item);
//# for f in FILTERS
  // A row outside repeats the last one, and is not stored.
  var a_$f = a_start() + min(row0 + $fu, params.m - 1u) * params.lda;
//# end
  var channel = b_start();
//# if LINES
  let column = i % across % width * 4u;
  let line = i % across / width * LINES;
  let left = column * STRIDE_X - params.before_x;
  let top = line * STRIDE_Y - params.before_y;
//# for x in SEEN_X
  let inside_$x = left + $xu < params.width;
  let x_$x = select(0u, left + $xu, inside_$x);
//# end
//# for f in FILTERS
//# for l in LINES
  var sum_$f_$l = vec4<f32>();
//# end
//# end
  for (var c = 0u; c < params.k / TAPS; c++) {
    var seen: array<f32, SEEN_Y * SEEN_X>;
//# for y in SEEN_Y
    let has_$y = top + $yu < params.height;
    let row_$y = channel + select(0u, top + $yu, has_$y) * params.width;
//# for x in SEEN_X
    seen[$yu * SEEN_X + $xu] = select(0.0, b_at(row_$y + x_$x), has_$y && inside_$x);
//# end
//# end
//# for f in FILTERS
//# for i in TAPS_Y
//# for j in TAPS_X
    let a_$f_$i_$j = vec4<f32>(a_at(a_$f + $iu * TAPS_X + $ju));
//# end
//# end
    a_$f += TAPS;
//# end
//# for l in LINES
//# for i in TAPS_Y
//# for j in TAPS_X
    let v_$l_$i_$j = vec4<f32>(
//# for q in 4
      seen[($lu * STRIDE_Y + $iu * DILATION_Y) * SEEN_X + $qu * STRIDE_X + $ju * DILATION_X],
//# end
    );
//# for f in FILTERS
    sum_$f_$l = fma(a_$f_$i_$j, v_$l_$i_$j, sum_$f_$l);
//# end
//# end
//# end
//# end
    channel += params.height * params.width;
  }
//# for l in LINES
  if (line + $lu < height) {
    let first = (line + $lu) * params.out_width;
//# for f in FILTERS
    if (row0 + $fu < params.m) { store_until(first + params.out_width, item, row0 + $fu, first + column, sum_$f_$l); }
//# end
  }
//# end
//# else
  let column = i % across * 4u;
  let corner = corner_of(column);
//# for f in FILTERS
  var sum_$f = vec4<f32>();
//# end
  for (var c = 0u; c < params.k / TAPS; c++) {
    for (var i = 0u; i < TAPS_Y; i++) {
      for (var j = 0u; j < TAPS_X; j++) {
        let v = tap(corner, channel, i, j);
//# for f in FILTERS
        sum_$f = fma(vec4<f32>(a_at(a_$f)), v, sum_$f);
        a_$f++;
//# end
      }
    }
    channel += params.height * params.width;
  }
//# for f in FILTERS
  store(item, row0 + $fu, column, sum_$f);
//# end
//# end
}
