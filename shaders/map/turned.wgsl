// An elementwise operation some of whose inputs are transposed: their neighbours lie along the last but one dimension, the result's along
// the last. A workgroup takes a tile of SIDE x SIDE elements of the two; inputs that are turned are read as they lie, four neighbours at
// once, and change hands in workgroup memory. The words begin as those of map.wgsl do, with the turned dimension put before the last.
//
//   binding  name     stored as
//   0-2, 4-6 input_*  as input.wgsl says
//   3        params
//   7        out      fours of a row if WHOLE, else elements, of f16 if HALF
//
//   INPUTS       how many there are              TURNED_n   the n-th is one of those
//   HALVES       all of those are of f16         ALIGNED    their fours start at multiples of 4 elements
//   NARROW       one of the two dimensions is short, the last if TALL: a tile has all of it, and sides as the words say; elements of the only
//                input that is turned are read, and those of the result written, in the order in which they lie, EACH at once
//
// An invocation's fours along a dimension are neighbours where those are vectors; else a row of invocations has neighbours each time.

const SIDE = 64u;
// Each of FOURS x FOURS invocations has as many elements of either dimension.
const FOURS = 16u;
//# if ALIGNED
const T_NEAR = 4u;
const T_APART = 1u;
//# else
const T_NEAR = 1u;
const T_APART = FOURS;
//# end
//# if WHOLE
const L_NEAR = 4u;
const L_APART = 1u;
//# else
const L_NEAR = 1u;
const L_APART = FOURS;
//# end

//# if NARROW
var<workgroup> tile: array<u32, SIDE * SIDE>;
//# else
// One input: four f of columns in row t at t * FOURS + (f ^ bank(t)), so that what neighbours write, and what they read, is in as many banks
// as there are.
fn bank(t: u32) -> u32 { return (t ^ (t >> 2u)) & 15u; }
//# if HALVES
var<workgroup> tile: array<vec2<u32>, SIDE * FOURS>;
fn lower(a: u32, b: u32) -> u32 { return (a & 0xffffu) | (b << 16u); }
fn upper(a: u32, b: u32) -> u32 { return (a >> 16u) | (b & 0xffff0000u); }
//# else
var<workgroup> tile: array<vec4<u32>, SIDE * FOURS>;
//# end
//# end

//# if PACKED
@group(0) @binding(7) var<storage, read_write> out: array<vec2<u32>>;
//# else
//# if HALF
alias Stored = f16;
// Rounded as words of two are.
fn stored(v: vec4<f32>) -> vec4<f16> {
  let words = pack_four(v);
  return vec4<f16>(vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)));
}
//# else
//# if RESULT_BOOL
alias Stored = u32;
fn stored(v: vec4<Result>) -> vec4<u32> { return select(vec4<u32>(), vec4<u32>(1u), v); }
//# else
alias Stored = Result;
fn stored(v: vec4<Result>) -> vec4<Result> { return v; }
//# end
//# end
//# if WHOLE
@group(0) @binding(7) var<storage, read_write> out: array<vec4<Stored>>;
//# else
@group(0) @binding(7) var<storage, read_write> out: array<Stored>;
//# end
//# end

//# if NARROW
// The next element, whose workgroup has all of the short side.
fn next(at: vec2<u32>, step: vec2<u32>, size: u32) -> vec2<u32> {
  let n = at + step;
  return select(n, vec2<u32>(n.x + THREADS, 0u), n.y == size);
}
fn within(c: array<u32, RANK>, first: u32, length: u32, p: vec2<u32>) -> array<u32, RANK> {
  var at = c;
  at[RANK - 1u - TALL] = first + min(p.x, length - 1u);
  at[RANK - 2u + TALL] = p.y;
  return at;
}
//# else
// Where the r-th of an invocation's rows is, the first of which is there.
fn row(first: u32, r: u32) -> u32 { return (first + r * T_APART * FOURS) ^ (r * (4u / T_NEAR)); }

// The n-th four of row t, or its elements n, n + L_APART and so on.
//# if HALVES
//# if WHOLE
fn taken(t: u32, n: u32) -> vec2<u32> { return tile[t * FOURS + (n ^ bank(t))]; }
//# else
fn half_of(t: u32, l: u32) -> u32 { return (tile[t * FOURS + ((l / 4u) ^ bank(t))][l / 2u % 2u] >> (l % 2u * 16u)) & 0xffffu; }
fn taken(t: u32, n: u32) -> vec2<u32> {
  let first = half_of(t, n) | (half_of(t, n + L_APART) << 16u);
  return vec2<u32>(first, half_of(t, n + 2u * L_APART) | (half_of(t, n + 3u * L_APART) << 16u));
}
//# end
//# else
//# if WHOLE
fn taken(t: u32, n: u32) -> vec4<u32> { return tile[t * FOURS + (n ^ bank(t))]; }
//# else
fn one_of(t: u32, l: u32) -> u32 { return tile[t * FOURS + ((l / 4u) ^ bank(t))][l % 4u]; }
fn taken(t: u32, n: u32) -> vec4<u32> {
  return vec4<u32>(one_of(t, n), one_of(t, n + L_APART), one_of(t, n + 2u * L_APART), one_of(t, n + 3u * L_APART));
}
//# end
//# end

//# end

fn place(c: array<u32, RANK>) -> u32 {
  var at = word(OUT_AT);
//# for d in RANK
  at += c[$d] * word(OUT_AT + 1u + $du);
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
//# if NARROW
  let t_side = word(OUT_AT + RANK + 1u);
  let l_side = word(OUT_AT + RANK + 2u);
//# else
  let t_side = SIDE;
  let l_side = SIDE;
//# end
  let across = (last + l_side - 1u) / l_side;
  let down = (turned + t_side - 1u) / t_side;
  let l0 = rest % across * l_side;
  rest /= across;
  let t0 = rest % down * t_side;
  rest /= down;
  var c: array<u32, RANK>;
//# for d in OUTER
  c[OUTER - 1u - $du] = rest % word(1u + OUTER - $du);
  rest /= word(1u + OUTER - $du);
//# end
  // The same for all invocations, and so no barrier is left out by some.
  if (rest > 0u) { return; }
//# if NARROW
  // What there is of the long side, and where elements are along it and along the short one. Those that lie behind one another there are for
  // neighbours; an invocation that is left over has what is not there.
//# if TALL
  let size = last;
  let first = t0;
  let length = min(t_side, turned - t0);
//# else
  let size = turned;
  let first = l0;
  let length = min(l_side, last - l0);
//# end
  let rows = THREADS / size;
  let by_size = vec2<u32>(select(length, local / size, local < rows * size), local % size);
  let by_length = vec2<u32>(local, 0u);
  // Neighbours along the long side are an odd number of words apart.
  let apart = vec2<u32>(size | 1u, 1u);
//# if TALL
  var reads = by_length;
  var writes = by_size;
  let steps = vec4<u32>(0u, 1u, rows, 0u);
//# else
  var reads = by_size;
  var writes = by_length;
  let steps = vec4<u32>(rows, 0u, 0u, 1u);
//# end
  while (reads.x < length) {
//# for e in EACH
    let p_$e = reads;
//# for i in INPUTS
//# if TURNED_$i
    let seen_$e = words_of_$i(at_$i(within(c, first, length, p_$e)), 0u).x;
//# end
//# end
    reads = next(reads, steps.xy, size);
//# end
//# for e in EACH
    if (p_$e.x < length) { tile[dot(p_$e, apart)] = seen_$e; }
//# end
  }
  workgroupBarrier();
  while (writes.x < length) {
//# for e in EACH
    let p_$e = writes;
    let c_$e = within(c, first, length, p_$e);
//# for i in INPUTS
//# if TURNED_$i
    let in_$i_$e = words_as_$i(vec4<u32>(tile[dot(p_$e, apart)]));
//# else
    let in_$i_$e = some_$i(at_$i(c_$e), 0u);
//# end
//# end
    writes = next(writes, steps.zw, size);
//# end
//# for e in EACH
    if (p_$e.x < length) {
      let o = place(c_$e);
      out[o] = stored(all(word(1u) + o
//# for i in INPUTS
        , in_$i_$e
//# end
      )).x;
    }
//# end
  }
//# else
  let near_t = local % FOURS * T_NEAR;
  let near_l = local % FOURS * L_NEAR;
  let far = local / FOURS * 4u;
  let put = near_t * FOURS + ((local / FOURS) ^ bank(near_t));
  // What is not there is read as the last that is, and not written.
//# for u in 4
  var read_$u = c;
  let read_t_$u = min(t0 + near_t, (turned - 1u) / T_NEAR * T_NEAR);
  read_$u[RANK - 2u] = read_t_$u;
  read_$u[RANK - 1u] = min(l0 + far + $uu, last - 1u);
  var own_$u = c;
  let own_l_$u = min(l0 + near_l, (last - 1u) / L_NEAR * L_NEAR);
  own_$u[RANK - 2u] = min(t0 + far + $uu, turned - 1u);
  own_$u[RANK - 1u] = own_l_$u;
//# end
//# for i in INPUTS
//# if TURNED_$i
//# for u in 4
  let seen_$i_$u = words_of_$i(at_$i(read_$u), turned - 1u - read_t_$u);
//# end
  workgroupBarrier();
//# if HALVES
//# for w in 2
  tile[row(put, 2u * $wu)] = vec2<u32>(lower(seen_$i_0[$w], seen_$i_1[$w]), lower(seen_$i_2[$w], seen_$i_3[$w]));
  tile[row(put, 2u * $wu + 1u)] = vec2<u32>(upper(seen_$i_0[$w], seen_$i_1[$w]), upper(seen_$i_2[$w], seen_$i_3[$w]));
//# end
//# else
//# for r in 4
  tile[row(put, $ru)] = vec4<u32>(seen_$i_0[$r], seen_$i_1[$r], seen_$i_2[$r], seen_$i_3[$r]);
//# end
//# end
  workgroupBarrier();
//# for u in 4
  let in_$i_$u = words_as_$i(taken(far + $uu, local % FOURS));
//# end
//# else
//# for u in 4
  let in_$i_$u = some_$i(at_$i(own_$u), last - 1u - own_l_$u);
//# end
//# end
//# end
//# for u in 4
  let o_$u = place(own_$u);
  if (t0 + far + $uu < turned && l0 + near_l < last) {
    let v = all(word(1u) + o_$u
//# for i in INPUTS
      , in_$i_$u
//# end
    );
//# if PACKED
    out[o_$u / 4u] = pack_four(v);
//# else
    let s = stored(v);
//# if WHOLE
    out[o_$u / 4u] = s;
//# else
//# for r in 4
    if (own_l_$u + $ru * L_APART < last) { out[o_$u + $ru * L_APART] = s[$r]; }
//# end
//# end
//# end
  }
//# end
//# end
}
