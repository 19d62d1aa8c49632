// An elementwise operation: out[i] = program(the inputs' elements for i), each invocation QUADS times four elements, which a workgroup's
// invocations take in turns. The words that a kernel is told begin with the number of elements, the number of the first, and the result's
// sizes (src/plan/map.rs).
//
//   binding  name     stored as
//   0-2, 4-6 input_*  as input.wgsl says
//   3        params
//   7        out      row by row; whole vec4s, for which there is room
//
//   QUAD         the four are in one row of the result, and all inputs have all of them

//# if RESULT_F16
@group(0) @binding(7) var<storage, read_write> out: array<vec2<u32>>;
fn put(i: u32, v: vec4<Result>) { out[i] = vec2<u32>(pack(v.xy), pack(v.zw)); }
//# else
//# if RESULT_BOOL
@group(0) @binding(7) var<storage, read_write> out: array<vec4<u32>>;
fn put(i: u32, v: vec4<Result>) { out[i] = select(vec4<u32>(), vec4<u32>(1u), v); }
//# else
@group(0) @binding(7) var<storage, read_write> out: array<vec4<Result>>;
fn put(i: u32, v: vec4<Result>) { out[i] = v; }
//# end
//# end

fn coordinates(index: u32) -> array<u32, RANK> {
  var c: array<u32, RANK>;
  var rest = index;
//# for d in INNER
  c[RANK - 1u - $du] = rest % word(1u + RANK - $du);
  rest /= word(1u + RANK - $du);
//# end
  c[0] = rest;
  return c;
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let count = word(0u);
  let base = (group.y * groups.x + group.x) * THREADS * QUADS + local;
  // All are read before one is written. What is behind the last is not written, and reads what is there.
//# for q in QUADS
  let first_$q = (base + $qu * THREADS) * 4u;
  let i_$q = select(0u, first_$q, first_$q < count);
  let index_$q = word(1u) + i_$q;
//# if QUAD
  let v_$q = four(coordinates(i_$q), index_$q);
//# else
  let v_$q = vec4<Result>(
    value(coordinates(i_$q), index_$q),
    value(coordinates(min(i_$q + 1u, count - 1u)), index_$q + 1u),
    value(coordinates(min(i_$q + 2u, count - 1u)), index_$q + 2u),
    value(coordinates(min(i_$q + 3u, count - 1u)), index_$q + 3u),
  );
//# end
//# end
//# for q in QUADS
  if (first_$q < count) { put(first_$q / 4u, v_$q); }
//# end
}
