// The result of winograd_product.wgsl: each invocation one tile of one filter.
//
//   binding  name     stored as
//   0        sums     the scratch: those of a filter are a row of COLUMNS at SUMS_AT
//   2        out      images x FILTERS x OUT_HEIGHT x OUT_WIDTH; with OUT_VEC4 rows are fours
//   5        bias     FILTERS, only if READS_BIAS
//
//   END      what follows is computed of the result: map/end.wgsl

@group(0) @binding(0) var<storage, read> sums: array<f32>;
//# if OUT_VEC4
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>;
//# else
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
//# end
//# if READS_BIAS
@group(0) @binding(5) var<storage, read> bias: array<f32>;
//# end

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let i = (group.y * groups.x + group.x) * THREADS + local;
  let count = word(FILTERS) * word(COLUMNS);
  let f = i / word(COLUMNS);
  let tile = i % word(COLUMNS);
  if (i >= count || tile >= word(TILES)) { return; }
  let image = tile / word(TILES_OF_IMAGE);
  let place = tile % word(TILES_OF_IMAGE);
  let y0 = place / word(TILES_OF_ROW) * 4u;
  let x0 = place % word(TILES_OF_ROW) * 4u;
  let at = word(SUMS_AT) + i;
//# for x in 6
  let column_$x = of_sums(Six(
//# for y in 6
    sums[at + ($yu * 6u + $xu) * count],
//# end
  ));
//# end
  let o = word(OUT_START) + ((image * word(FILTERS) + f) * word(OUT_HEIGHT) + y0) * word(OUT_WIDTH) + x0;
//# for y in 4
  if (y0 + $yu < word(OUT_HEIGHT)) {
    let row = of_sums(Six(column_0[$y], column_1[$y], column_2[$y], column_3[$y], column_4[$y], column_5[$y]));
    var v = vec4<f32>(row[0], row[1], row[2], row[3]);
//# if READS_BIAS
    v += bias[f];
//# end
//# if ACTIVATION
    v = activate(v);
//# end
//# if END
    v = ended_four(o + $yu * word(OUT_WIDTH), v);
//# end
//# if OUT_VEC4
    out[(o + $yu * word(OUT_WIDTH)) / 4u] = v;
//# else
//# for x in 4
    if (x0 + $xu < word(OUT_WIDTH)) { out[o + $yu * word(OUT_WIDTH) + $xu] = v[$x]; }
//# end
//# end
  }
//# end
}
