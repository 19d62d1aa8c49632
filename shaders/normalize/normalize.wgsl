// Rows put into proportion: each row is read once, its values kept in registers while its lanes fold them as reductions do
// (shaders/reduce/fold.wgsl), and written once. Rows too long for that are read again here once it is known what they fold to, a part for
// each workgroup.
//
//   binding  name     stored as
//   0-2, 4-6 input_*  as input.wgsl says; the scale and the bias behind those of the values
//   3        params   rows, number of the first value of all, values of a row, divisor, epsilon, sizes, … (src/plan/normalize.rs)
//   7        out      elements, or four of them where QUAD is
//
//   LANES, ROWS, COLUMNS, QUAD   as in reduce.wgsl
//   HELD     fours of values that a lane has       WHOLE   so many of them are for every lane
//   VALUES   where those are not read as fours, how many of them a lane has: those behind are read as the last of these, at no cost
//   LAYER, RMS, LOGARITHMS, POWERS   what is made of them, the last a softmax
//   SCALE, BIAS              there is one
//   STAGED   short rows change hands before they are written, so that neighbours write neighbours: the words that this takes
//   FLAT     and before they are folded, since all of COUNT values lie behind one another, as the result's do
//   CROSSED  rows that do so are read in fours wherever they begin, and of fours that two rows share the second writes what both have
//   OUT_F16  elements are of f16, in fours
//   END      what follows is computed of the result: map/end.wgsl
//   MEASURED what a row's values are told is known: it is bound at MEASURES, and the third of the parameters is the values of all of a row

//# if OUT_F16
@group(0) @binding(7) var<storage, read_write> out: array<vec2<u32>>;
//# else
//# if QUAD
@group(0) @binding(7) var<storage, read_write> out: array<vec4<f32>>;
//# else
@group(0) @binding(7) var<storage, read_write> out: array<f32>;
//# end
//# end

//# if MEASURED
@group(0) @binding($MEASURES) var<storage, read> measures: array<Measure>;
//# end

fn place(c: array<u32, RANK>) -> u32 {
  var at = word(OUT_AT);
//# for d in RANK
  at += c[$d] * word(OUT_AT + 1u + $du);
//# end
  return at;
}

fn made(v: f32, m: Measure) -> f32 {
//# if LAYER
//# if COARSE
  return (v - m.rest) * m.by;
//# else
  return ((v - m.base) - m.rest) * m.by;
//# end
//# else
//# if RMS
  return v * m.base * m.by;
//# else
  return (v - m.base) - m.by;
//# end
//# end
}

//# if OUT_F16
// Four of a row, or of two.
fn packed(v: vec4<f32>, m: Measure, of_two: bool) -> vec2<u32> {
//# if POWERS
  // None is too large, but all may be NaN.
  if (!of_two) { return select(vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)), vec2<u32>(0x7e007e00u), is_nan(m.by)); }
//# end
  return pack_four(v);
}
//# end

//# if QUAD
//# else
fn put(at: array<u32, RANK>, x: f32) {
  var result = x;
//# if SCALE
  result *= scale_one(at);
//# end
//# if BIAS
  result += bias_one(at);
//# end
//# if END
  result = ended(place(at), result);
//# end
  out[place(at)] = result;
}
//# end

//# if CROSSED
// What a row has of the four that the next one begins in.
var<workgroup> shared_fours: array<vec4<f32>, ROWS>;
//# end

//# if STAGED
// Rows begin an odd number of words apart, most of them in banks of their own.
var<workgroup> staged: array<f32, STAGED>;
//# end

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
//# if COLUMNS
  let slot = local % ROWS;
  let lane = local / ROWS;
//# else
  let slot = local / LANES;
  let lane = local % LANES;
//# end
//# if MEASURED
  // From the end on: what was read last is still in the cache.
  let first = (groups.x * groups.y - 1u - (group.y * groups.x + group.x)) * ROWS;
//# else
  let first = (group.y * groups.x + group.x) * ROWS;
//# end
  let row = first + slot;
  // What is not there is read as the last that is, and not written.
  let read = min(row, word(0u) - 1u);
  let c = coordinates(read);
//# if CROSSED
  let count = word(2u);
  let start = read * count;
  let stop = start + count;
//# for u in HELD
  let i_$u = (start & 0xfffffffcu) + ($uu * LANES + lane) * 4u;
  let r_$u = min(i_$u, (stop - 1u) & 0xfffffffcu);
  let at_$u = i_$u + vec4<u32>(0u, 1u, 2u, 3u);
  let is_$u = (vec4<bool>($uu > 0u) | (at_$u >= vec4<u32>(start))) & (vec4<bool>($uu < WHOLE) | (at_$u < vec4<u32>(stop)));
//# if EXPONENTIAL
  let v_$u = select(vec4<f32>(-LARGEST), four(flat(r_$u), word(1u) + r_$u), is_$u);
//# else
  let v_$u = four(flat(r_$u), word(1u) + r_$u);
//# end
//# end
//# else
//# if FLAT
  const count = COUNT;
//# for s in VALUES
  let k_$s = $su * THREADS + local;
  let f_$s = min(first * COUNT + k_$s, word(0u) * COUNT - 1u);
  let x_$s = value(flat(f_$s), word(1u) + f_$s);
//# end
//# for s in VALUES
  if (k_$s < ROWS * COUNT) { staged[k_$s] = x_$s; }
//# end
  workgroupBarrier();
//# else
  let count = word(2u);
//# if MEASURED
  let index = word(1u) + read * word(DIVISOR);
//# else
  let index = word(1u) + read * count;
//# end
//# end
//# if MEASURED
  let begin = (groups.z - 1u - group.z) * LANES * HELD * 4u;
//# else
  const begin = 0u;
//# end
//# for u in HELD
//# if QUAD
  let i_$u = begin + ($uu * LANES + lane) * 4u;
  let r_$u = min(i_$u, count - 4u);
  let v_$u = four(along(c, r_$u), index + r_$u);
//# else
  let i_$u = begin + $uu * LANES * 4u + lane;
//# for l in 4
  let r_$u_$l = min(begin + lane + min($uu * 4u + $lu, VALUES - 1u) * LANES, count - 1u);
//# end
  let v_$u = vec4<f32>(
//# for l in 4
//# if FLAT
    staged[slot * COUNT + r_$u_$l],
//# else
    value(along(c, r_$u_$l), index + r_$u_$l),
//# end
//# end
  );
//# end
//# end
//# end
//# if MEASURED
  let m = measures[read];
//# else
//# if CROSSED
//# else
//# for u in HELD
//# if QUAD
  let is_$u = vec4<bool>($uu < WHOLE || i_$u < count);
//# else
  let is_$u = vec4<bool>($uu < WHOLE) | (i_$u + LANES * vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(count));
//# end
//# end
//# end
//# if EXPONENTIAL
  // All by one pivot, an invocation's own until that of the row is known: a power of each value, which is then in proportion to the others.
  var top = -LARGEST;
  var bits = 0u;
//# for u in HELD
  top = max(top, largest(v_$u));
  bits = max(bits, largest_bits(magnitude(v_$u)));
//# end
  let own = pivot(top);
  var sum = vec4<f32>();
//# for u in HELD
  let p_$u = select(vec4<f32>(), powers_of(v_$u, own), is_$u);
  sum += p_$u;
//# end
  let state = State(top, (sum.x + sum.y) + (sum.z + sum.w), bits);
//# else
//# if LAYER
//# if PIVOT
  // An invocation's own, until that of the row is known.
//# if CROSSED
  pivot = select(v_0.w, v_0.x, is_0.x || lane > 0u);
//# else
  pivot = v_0.x;
//# end
//# end
  let state = moments(
//# for u in HELD
    v_$u,
    is_$u,
//# end
  );
//# else
  var state = empty();
//# for u in HELD
  state = join(state, quad(select(left_out(v_$u), v_$u, is_$u), i_$u, 1u));
//# end
//# end
//# end
  join_lanes(state, local, lane);
  workgroupBarrier();
//# if COLUMNS
  let m = measure(states[slot]);
//# else
  let m = measure(states[slot * LANES]);
//# end
//# end
//# if STAGED
//# if FLAT
  const pitch = COUNT;
//# else
  let pitch = count | 1u;
//# end
//# else
//# if CROSSED
//# else
  if (row >= word(0u)) { return; }
//# end
//# end
//# if POWERS
//# if MEASURED
//# for u in HELD
  let p_$u = powers_of(v_$u, m.base);
//# end
  let by = m.by;
//# else
  let by = power_of(own, m.base) * m.by;
//# end
//# end
//# for u in HELD
//# if POWERS
  let w_$u = p_$u * by;
//# else
  let w_$u = vec4<f32>(made(v_$u.x, m), made(v_$u.y, m), made(v_$u.z, m), made(v_$u.w, m));
//# end
//# if CROSSED
  var result_$u = w_$u;
//# if SCALE
//# for l in 4
  let c_$u_$l = along(c, min(at_$u[$l] - start, count - 1u));
  result_$u[$l] *= scale_one(c_$u_$l);
//# if BIAS
  result_$u[$l] += bias_one(c_$u_$l);
//# end
//# end
//# end
  if ($uu >= WHOLE && i_$u < stop && i_$u + 4u > stop) { shared_fours[slot] = result_$u; }
//# else
//# if QUAD
  if (i_$u < count) {
    let at = along(c, i_$u);
    var result = w_$u;
//# if SCALE
    result *= scale_four(at);
//# end
//# if BIAS
    result += bias_four(at);
//# end
//# if END
    result = ended_four(place(at), result);
//# end
//# if OUT_F16
    out[place(at) / 4u] = packed(result, m, false);
//# else
    out[place(at) / 4u] = result;
//# end
  }
//# else
//# for l in 4
  if (i_$u + $lu * LANES < count) {
//# if STAGED
    staged[slot * pitch + i_$u + $lu * LANES] = w_$u[$l];
//# else
    put(along(c, i_$u + $lu * LANES), w_$u[$l]);
//# end
  }
//# end
//# end
//# end
//# end
//# if CROSSED
  workgroupBarrier();
  // Rows of a workgroup begin with a four, and end with one but for the very last.
  if (i_0 < start) { result_0 = select(shared_fours[slot - 1u], result_0, is_0); }
  let end = select(stop & 0xfffffffcu, stop, row + 1u == word(0u));
//# for u in HELD
  if (row < word(0u) && ($uu < WHOLE || i_$u < end)) {
//# if END
    result_$u = ended_four(word(OUT_AT) + i_$u, result_$u);
//# end
//# if OUT_F16
    out[(word(OUT_AT) + i_$u) / 4u] = packed(result_$u, m, $uu == 0u);
//# else
    out[(word(OUT_AT) + i_$u) / 4u] = result_$u;
//# end
  }
//# end
//# end
//# if STAGED
  workgroupBarrier();
//# if FLAT
  let there = min(ROWS, word(0u) - min(first, word(0u))) * COUNT;
//# for s in VALUES
//# if SCALE
  if (k_$s < there) { put(along(coordinates(first + k_$s / COUNT), k_$s % COUNT), staged[k_$s]); }
//# else
  if (k_$s < there) { put(flat(first * COUNT + k_$s), staged[k_$s]); }
//# end
//# end
//# else
  // An invocation has one place in a row, and some rows; one that is left over has none.
  let apart = THREADS / count;
  let i = local % count;
  for (var r = select(ROWS, local / count, local < apart * count); r < ROWS && first + r < word(0u); r += apart) {
    put(along(coordinates(first + r), i), staged[r * pitch + i]);
  }
//# end
//# end
}
