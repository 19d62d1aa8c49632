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
fn put(i: u32, v: vec4<Result>) { out[i] = pack_four(v); }
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

//# if QUAD
//# else
// Those of the next element, if there is one: without a division.
fn next(c: array<u32, RANK>, is_there: bool) -> array<u32, RANK> {
  var n = c;
  n[RANK - 1u] += select(0u, 1u, is_there);
//# for d in INNER
  if (n[RANK - 1u - $du] == word(1u + RANK - $du)) {
    n[RANK - 1u - $du] = 0u;
    n[RANK - 2u - $du] += 1u;
  }
//# end
  return n;
}
//# end

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
  let c_$q_0 = coordinates(i_$q);
  let c_$q_1 = next(c_$q_0, i_$q + 1u < count);
  let c_$q_2 = next(c_$q_1, i_$q + 2u < count);
  let c_$q_3 = next(c_$q_2, i_$q + 3u < count);
  let v_$q = vec4<Result>(
    value(c_$q_0, index_$q),
    value(c_$q_1, index_$q + 1u),
    value(c_$q_2, index_$q + 2u),
    value(c_$q_3, index_$q + 3u),
  );
//# end
//# end
//# for q in QUADS
  if (first_$q < count) { put(first_$q / 4u, v_$q); }
//# end
}
