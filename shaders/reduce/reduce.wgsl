// A reduction: each row of values is folded by as many lanes as pay, blocks of four times four values each at a time, and what the
// lanes have is joined in a tree. Where there are few rows each is cut into parts, whose states merge.wgsl joins.
//
//   binding  name     stored as
//   0-2, 4-6 input_*  as input.wgsl says
//   3        params   rows, number of the first value of all, values of a row in all, values of a row here, values of a part,
//                     parts of a row in all, number of the first part, else place of the first result, place of a row's first
//                     value, divisor, sizes (src/plan/reduce.rs)
//   7        out      a result for each row, or a state for each part of a row
//
//   LANES    invocations of a row            ROWS     rows of a workgroup
//   COLUMNS  neighbours are of different rows, which lie beside one another in memory
//   QUAD     four neighbours of a row are read at once      BLOCKS  as many are under way
//   FLAT     rows lie behind one another, and the fours of which they are read begin before them: of those that are not all theirs each lane has
//            SINGLES values at most
//   TINY     rows that do so have so many values: an invocation has four of them, which are as many fours
//   LOOPS    rows may have blocks of them                   FOURS   what is left of a row, at most
//   WHOLE    of these that all lanes have
//   VALUES   the same of a lane: those behind are read as the last of these, at no cost
//   PARTIAL  writes states                   END   what follows is computed of the result: map/end.wgsl

//# if PARTIAL
@group(0) @binding(7) var<storage, read_write> out: array<State>;
//# else
//# if TINY
@group(0) @binding(7) var<storage, read_write> out: array<vec4<Output>>;
//# else
@group(0) @binding(7) var<storage, read_write> out: array<Output>;
//# end
//# end

// From one value of four to the next.
//# if QUAD
const STEP = 1u;
//# else
const STEP = LANES;
//# end

//# if TINY
@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let row = ((group.y * groups.x + group.x) * THREADS + local) * 4u;
  // Rows that are not there are read as the last that are, and not written.
  let last = (word(0u) * TINY - 1u) & 0xfffffffcu;
  var v: array<vec4<Value>, TINY>;
//# for s in TINY
  let f_$s = min(row * TINY + $su * 4u, last);
  v[$s] = four(flat(f_$s), word(1u) + f_$s);
//# end
//# for r in 4
//# for u in FOURS
//# for l in 4
  const at_$r_$u_$l = $ru * TINY + min($uu * 4u + $lu, TINY - 1u);
//# end
  let v_$r_$u = vec4<Value>(
//# for l in 4
    v[at_$r_$u_$l / 4u][at_$r_$u_$l % 4u],
//# end
  );
  const is_$r_$u = vec4<bool>($uu * 4u < TINY, $uu * 4u + 1u < TINY, $uu * 4u + 2u < TINY, $uu * 4u + 3u < TINY);
//# end
//# if PIVOT
  pivot = v_$r_0.x;
//# end
//# if MOMENTS
  let s_$r = moments(
//# for u in FOURS
    v_$r_$u,
    is_$r_$u,
//# end
  );
//# else
  var s_$r = empty();
//# for u in FOURS
  s_$r = join(s_$r, quad(select(left_out(v_$r_$u), v_$r_$u, is_$r_$u), $uu * 4u, 1u));
//# end
//# end
//# if END
  let o_$r = ended(row + $ru + word(6u), finish(s_$r));
//# else
  let o_$r = finish(s_$r);
//# end
//# end
  // Behind the last row is room for those that are not there.
  if (row < word(0u)) { out[(row + word(6u)) / 4u] = vec4<Output>(o_0, o_1, o_2, o_3); }
}
//# else
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
  let row = (group.y * groups.x + group.x) * ROWS + slot;
  // A row that is not there is read as the last one, and not written.
  let read = min(row, word(0u) - 1u);
  let c = coordinates(read);
//# if FLAT
  let index = word(1u);
  let first = read * word(2u);
  let start = first + group.z * word(4u);
  let stop = first + min(group.z * word(4u) + word(4u), word(3u));
  let place = word(7u) - first;
  var i = min((start + 3u) & 0xfffffffcu, stop);
  let end = i + ((stop - i) & 0xfffffffcu);
//# for s in SINGLES
  let n_$s = $su * LANES + lane;
  let single_$s = select(end + n_$s - 3u, start + n_$s, n_$s < 3u);
  let is_single_$s = n_$s < 6u && single_$s < select(stop, i, n_$s < 3u);
  let read_$s = min(single_$s, stop - 1u);
  let value_$s = value(flat(read_$s), index + read_$s);
//# end
//# else
  let index = word(1u) + read * word(2u);
  let place = word(7u);
  var i = group.z * word(4u);
  let end = min(i + word(4u), word(3u));
//# end
//# if PIVOT
  // The middle one of three, so that it is none that stands out.
//# for s in 3
//# if FLAT
  let at_$s = min(start + lane + $su * LANES, stop - 1u);
  let s_$s = value(flat(at_$s), index + at_$s);
//# else
  let at_$s = min(i + lane + $su * LANES, end - 1u);
  let s_$s = value(along(c, at_$s), index + at_$s);
//# end
//# end
  pivot = max(min(s_0, s_1), min(max(s_0, s_1), s_2));
//# end
  var state = empty();
//# if LOOPS
  for (; i + LANES * BLOCKS * 16u <= end; i += LANES * BLOCKS * 16u) {
//# for b in BLOCKS
//# for u in 4
//# if QUAD
    let i_$b_$u = i + (($bu * 4u + $uu) * LANES + lane) * 4u;
//# if FLAT
    let v_$b_$u = four(flat(i_$b_$u), index + i_$b_$u);
//# else
    let v_$b_$u = four(along(c, i_$b_$u), index + i_$b_$u);
//# end
//# else
    let i_$b_$u = i + ($bu * 4u + $uu) * LANES * 4u + lane;
    let v_$b_$u = vec4<Value>(
      value(along(c, i_$b_$u), index + i_$b_$u),
      value(along(c, i_$b_$u + LANES), index + i_$b_$u + LANES),
      value(along(c, i_$b_$u + 2u * LANES), index + i_$b_$u + 2u * LANES),
      value(along(c, i_$b_$u + 3u * LANES), index + i_$b_$u + 3u * LANES),
    );
//# end
//# end
//# end
//# for b in BLOCKS
    state = join(state, block(v_$b_0, v_$b_1, v_$b_2, v_$b_3, place + vec4<u32>(i_$b_0, i_$b_1, i_$b_2, i_$b_3), STEP));
//# end
  }
//# end
  // What is left is read at once as well; what is not there is read as the last that is, and left out.
  if (i < end) {
//# for u in FOURS
//# if QUAD
    let i_$u = i + ($uu * LANES + lane) * 4u;
    let r_$u = min(i_$u, end - 4u);
//# if FLAT
    let v_$u = four(flat(r_$u), index + r_$u);
//# else
    let v_$u = four(along(c, r_$u), index + r_$u);
//# end
//# else
    let i_$u = i + $uu * LANES * 4u + lane;
//# for l in 4
    let r_$u_$l = min(i + lane + min($uu * 4u + $lu, VALUES - 1u) * LANES, end - 1u);
//# end
    let v_$u = vec4<Value>(
//# for l in 4
      value(along(c, r_$u_$l), index + r_$u_$l),
//# end
    );
//# end
//# end
//# for u in FOURS
    let is_$u = vec4<bool>($uu < WHOLE) | (i_$u + STEP * vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(end));
//# end
//# if MOMENTS
    state = join(
      state,
      moments(
//# for u in FOURS
        v_$u,
        is_$u,
//# end
      ),
    );
//# else
//# for u in FOURS
//# if QUAD
    if (is_$u.x) { state = join(state, quad(v_$u, place + i_$u, STEP)); }
//# else
    state = join(state, quad(select(left_out(v_$u), v_$u, is_$u), place + i_$u, STEP));
//# end
//# end
//# end
  }
//# if FLAT
//# for s in SINGLES
  if (is_single_$s) { state = join(state, lift(value_$s, place + single_$s)); }
//# end
//# end
  join_lanes(state, local, lane);
  if (lane == 0u && row < word(0u)) {
//# if PARTIAL
    out[row * word(5u) + word(6u) + group.z] = states[local];
//# else
//# if END
    out[row + word(6u)] = ended(row + word(6u), finish(states[local]));
//# else
    out[row + word(6u)] = finish(states[local]);
//# end
//# end
  }
}
//# end
