// A reduction: each row of values is folded by as many lanes as pay, a block of four times four values each at a time, and what the
// lanes have is joined in a tree. Where there are few rows each is cut into parts, whose states merge.wgsl joins.
//
//   binding  name     stored as
//   0-2, 4-6 input_*  as input.wgsl says
//   3        params   rows, number of the first value of all, values of a row in all, values of a row here, values of a part,
//                     parts of a row in all, number of the first part, place of a row's first value, divisor, sizes (src/plan/reduce.rs)
//   7        out      a result for each row, or a state for each part of a row
//
//   LANES    invocations of a row            ROWS     rows of a workgroup
//   COLUMNS  neighbours are of different rows, which lie beside one another in memory
//   QUAD     four neighbours of a row are read at once
//   PARTIAL  writes states

//# if PARTIAL
@group(0) @binding(7) var<storage, read_write> out: array<State>;
//# else
@group(0) @binding(7) var<storage, read_write> out: array<Output>;
//# end

var<workgroup> states: array<State, THREADS>;

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
  let index = word(1u) + read * word(2u);
  let place = word(7u);
  var i = group.z * word(4u);
  let end = min(i + word(4u), word(3u));
//# if MOMENTS
  pivot = value(along(c, i), index + i);
//# end
  var state = empty();
  for (; i + LANES * 16u <= end; i += LANES * 16u) {
//# for u in 4
//# if QUAD
    let i_$u = i + ($uu * LANES + lane) * 4u;
    let v_$u = four(along(c, i_$u), index + i_$u);
//# else
    let i_$u = i + $uu * LANES * 4u + lane;
    let v_$u = vec4<Value>(
      value(along(c, i_$u), index + i_$u),
      value(along(c, i_$u + LANES), index + i_$u + LANES),
      value(along(c, i_$u + 2u * LANES), index + i_$u + 2u * LANES),
      value(along(c, i_$u + 3u * LANES), index + i_$u + 3u * LANES),
    );
//# end
//# end
//# if QUAD
    let first = join(quad(v_0, place + i_0, 1u), quad(v_1, place + i_1, 1u));
    let second = join(quad(v_2, place + i_2, 1u), quad(v_3, place + i_3, 1u));
//# else
    let first = join(quad(v_0, place + i_0, LANES), quad(v_1, place + i_1, LANES));
    let second = join(quad(v_2, place + i_2, LANES), quad(v_3, place + i_3, LANES));
//# end
    state = join(state, join(first, second));
  }
//# if QUAD
  for (i += lane * 4u; i < end; i += LANES * 4u) {
    state = join(state, quad(four(along(c, i), index + i), place + i, 1u));
  }
//# else
  for (i += lane; i < end; i += LANES) {
    state = join(state, lift(value(along(c, i), index + i), place + i));
  }
//# end
  states[local] = state;
  for (var step = LANES / 2u; step > 0u; step /= 2u) {
    workgroupBarrier();
    if (lane < step) {
//# if COLUMNS
      states[local] = join(states[local], states[local + step * ROWS]);
//# else
      states[local] = join(states[local], states[local + step]);
//# end
    }
  }
  if (lane == 0u && row < word(0u)) {
//# if PARTIAL
    out[row * word(5u) + word(6u) + group.z] = states[local];
//# else
    out[row] = finish(states[local]);
//# end
  }
}
