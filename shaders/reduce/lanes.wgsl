// What the lanes of a row have is joined by fours, for which they meet half as often as by pairs.
//
//   LANES, ROWS, COLUMNS   as in reduce.wgsl

var<workgroup> states: array<State, THREADS>;

// From one lane of a row to the next.
//# if COLUMNS
const APART = ROWS;
//# else
const APART = 1u;
//# end

// Leaves what they have together in the place of the first of them, who may read it at once.
fn join_lanes(state: State, local: u32, lane: u32) {
  states[local] = state;
  var width = LANES;
  for (; width > 2u; width /= 4u) {
    workgroupBarrier();
    let step = width / 4u;
    if (lane < step) {
      let apart = step * APART;
      let first = join(states[local], states[local + apart]);
      states[local] = join(first, join(states[local + 2u * apart], states[local + 3u * apart]));
    }
  }
  if (width == 2u) {
    workgroupBarrier();
    if (lane == 0u) { states[local] = join(states[local], states[local + APART]); }
  }
}
