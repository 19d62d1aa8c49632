// An elementwise operation some of whose inputs are transposed: their neighbours lie along the last but one dimension, the result's along
// the last. A workgroup takes a tile of SIDE x SIDE elements of the two; inputs that are turned are read as they lie, four neighbours at
// once, and change hands in workgroup memory. The words begin as those of map.wgsl do, with the turned dimension put before the last.
//
//   binding  name     stored as
//   0-2, 4-6 input_*  as input.wgsl says
//   3        params
//   7        out      fours of a row if WHOLE, else elements
//
//   INPUTS       how many there are              TURNED_n   the n-th is one of those

const SIDE = 64u;
// Each of 16 x 16 invocations has four fours.
const EACH = 4u;

// The elements of one input as words: column l of row t at t * SIDE + (l ^ (l >> 5) ^ (t >> 1 & 30) ^ (t & 1) << 1), so that what neighbours
// write, and what they read, is in as many banks as there are.
var<workgroup> tile: array<u32, SIDE * SIDE>;

//# if RESULT_F16
@group(0) @binding(7) var<storage, read_write> out: array<vec2<u32>>;
//# else
//# if RESULT_BOOL
alias Stored = u32;
fn stored(v: vec4<Result>) -> vec4<u32> { return select(vec4<u32>(), vec4<u32>(1u), v); }
//# else
alias Stored = Result;
fn stored(v: vec4<Result>) -> vec4<Result> { return v; }
//# end
//# if WHOLE
@group(0) @binding(7) var<storage, read_write> out: array<vec4<Stored>>;
//# else
@group(0) @binding(7) var<storage, read_write> out: array<Stored>;
//# end
//# end

fn place(c: array<u32, RANK>) -> u32 {
  var at = 0u;
//# for d in RANK
  at += c[$d] * word(OUT_AT + $du);
//# end
  return at;
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let turned = word(RANK);
  let last = word(1u + RANK);
  var rest = group.y * groups.x + group.x;
  let across = (last + SIDE - 1u) / SIDE;
  let down = (turned + SIDE - 1u) / SIDE;
  let l0 = rest % across * SIDE;
  rest /= across;
  let t0 = rest % down * SIDE;
  rest /= down;
  var c: array<u32, RANK>;
//# for d in OUTER
  c[OUTER - 1u - $du] = rest % word(1u + OUTER - $du);
  rest /= word(1u + OUTER - $du);
//# end
  // The same for all invocations, and so no barrier is left out by some.
  if (rest > 0u) { return; }
  let near = local % 16u * 4u;
  let far = local / 16u;
  let written = far ^ ((near >> 1u) & 30u);
  let taken = near ^ (near >> 5u) ^ ((far >> 1u) & 30u) ^ ((far & 1u) << 1u);
  // What is not there is read as the last that is, and not written.
//# for u in 4
  var read_$u = c;
  let read_t_$u = min(t0 + near, (turned - 1u) / 4u * 4u);
  read_$u[RANK - 2u] = read_t_$u;
  read_$u[RANK - 1u] = min(l0 + far + $uu * 16u, last - 1u);
  var own_$u = c;
  let own_l_$u = min(l0 + near, (last - 1u) / 4u * 4u);
  own_$u[RANK - 2u] = min(t0 + far + $uu * 16u, turned - 1u);
  own_$u[RANK - 1u] = own_l_$u;
//# end
//# for i in INPUTS
//# if TURNED_$i
//# for u in 4
  let seen_$i_$u = some_$i(at_$i(read_$u), turned - 1u - read_t_$u);
//# end
  workgroupBarrier();
//# for u in 4
//# for r in 4
  tile[(near + $ru) * SIDE + (written ^ (($uu * 16u) ^ ($uu >> 1u) ^ (($ru & 1u) << 1u)))] = word_of_$i(seen_$i_$u[$r]);
//# end
//# end
  workgroupBarrier();
//# for u in 4
  let in_$i_$u = vec4<Kind$i>(
//# for r in 4
    word_as_$i(tile[(far + $uu * 16u) * SIDE + (taken ^ ($ru ^ ($uu * 8u)))]),
//# end
  );
//# end
//# else
//# for u in 4
  let in_$i_$u = some_$i(at_$i(own_$u), last - 1u - own_l_$u);
//# end
//# end
//# end
//# for u in 4
  let o_$u = place(own_$u);
  if (t0 + far + $uu * 16u < turned && l0 + near < last) {
    let v = all(word(1u) + o_$u
//# for i in INPUTS
      , in_$i_$u
//# end
    );
//# if RESULT_F16
    out[o_$u / 4u] = vec2<u32>(pack(v.xy), pack(v.zw));
//# else
    let s = stored(v);
//# if WHOLE
    out[o_$u / 4u] = s;
//# else
//# for r in 4
    if (own_l_$u + $ru < last) { out[o_$u + $ru] = s[$r]; }
//# end
//# end
//# end
  }
//# end
}
