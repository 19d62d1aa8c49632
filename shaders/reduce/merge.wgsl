// The end of a reduction whose rows were cut into parts: joins the states of each row's parts, always in the same order.
//
//   binding  name    stored as
//   0        parts   params[3] states for each row
//   3        params  as those of reduce.wgsl
//   7        out     a result for each row
//
//   LANES    invocations of a row            ROWS     rows of a workgroup
//   MEASURED the results are what the values of a row are told: normalize/measure.wgsl

//# if MEASURED
// Both are of one buffer.
@group(0) @binding(0) var<storage, read_write> parts: array<State>;
@group(0) @binding(7) var<storage, read_write> out: array<Measure>;
//# else
@group(0) @binding(0) var<storage, read> parts: array<State>;
@group(0) @binding(7) var<storage, read_write> out: array<Output>;
//# end

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let lane = local % LANES;
  let row = (group.y * groups.x + group.x) * ROWS + local / LANES;
  let count = word(3u);
  var state = empty();
  if (row < word(0u)) {
    for (var i = lane; i < count; i += LANES) {
      state = join(state, parts[row * count + i]);
    }
  }
  join_lanes(state, local, lane);
  if (lane == 0u && row < word(0u)) {
//# if MEASURED
    out[row] = measure(states[local]);
//# else
    out[row + word(6u)] = finish(states[local]);
//# end
  }
}
