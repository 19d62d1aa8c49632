// A transposition of f16 by words of two, whatever sizes are: behind turned.wgsl's words, for one input, whose neighbours lie behind one another
// along the last but one dimension. A tile has words of the input as they are, which for rows that begin within one is an element more before.
//
//   binding  name     stored as
//   0        input_0  words of two
//   3        params
//   7        out      words of two, for all of which there is room
//
//   NARROW       as in turned.wgsl; if not TALL the short side's elements lie behind one another, and those of the long one behind them
//   ODD          rows of the result are of odd length: one that begins within a word is written from the element before on, and the word that
//                ends one row and begins the next by the row that it ends; tiles have two columns more before those that they write
//   RAW          nothing is computed
//   WORDS        invocations for words behind one another along the long side       BESIDE  those for as many rows of them

const SIDE = 64u;
//# if NARROW
var<workgroup> tile: array<u32, SIDE * SIDE>;
//# else
// Words of a column, an odd number of them apart.
const HALF_SIDE = SIDE / 2u;
const PITCH = HALF_SIDE + 1u;
var<workgroup> tile: array<u32, SIDE * PITCH>;
//# end

@group(0) @binding(7) var<storage, read_write> out: array<u32>;

fn half_of(h: u32) -> u32 { return tile[h / 2u] >> (h % 2u * 16u); }
fn pair_of(a: u32, b: u32) -> u32 { return (half_of(a) & 0xffffu) | (half_of(b) << 16u); }

fn place(c: array<u32, RANK>) -> u32 {
  var at = 0u;
//# for d in RANK
  at += c[$d] * word(OUT_AT + $du);
//# end
  return at;
}

// The element of the input for element o of the result.
fn source_of(o: u32) -> u32 {
  var c: array<u32, RANK>;
//# for d in RANK
  c[$d] = o / word(OUT_AT + $du) % word(2u + $du);
//# end
  let e = at_0(c);
  return input_0[e / 2u] >> (e % 2u * 16u);
}

fn put(o: u32, v: u32) {
//# if RAW
  out[o / 2u] = v;
//# else
  out[o / 2u] = pack(all(word(1u) + o, words_as_0(vec2<u32>(v))).xy);
//# end
}

// The word of a row of the result that begins at o with element l of it, which may be the last.
fn put_of_row(o: u32, l: u32, last: u32, v: u32) {
//# if ODD
  if (l + 1u == last && o + 1u < word(0u)) {
    put(o, (v & 0xffffu) | (source_of(o + 1u) << 16u));
    return;
  }
//# end
  put(o, v);
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let turned = word(RANK);
  let last = word(1u + RANK);
  let t_side = word(OUT_AT + RANK);
  let l_side = word(OUT_AT + RANK + 1u);
  var rest = group.y * groups.x + group.x;
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
  c[RANK - 2u] = t0;
//# if TALL
  // Rows of the input, and then all of the result's words in order.
  let length = min(t_side, turned - t0);
  let begin = at_0(c);
  let step = word(STEP_AT);
  let pitch = t_side / 2u + 1u;
  for (var w = local % WORDS; w * 2u < t_side; w += WORDS) {
    for (var y = local / WORDS; y < last; y += EACH * BESIDE) {
//# for e in EACH
      let e_$e = begin + min(y + $eu * BESIDE, last - 1u) * step;
      let seen_$e = input_0[min(e_$e / 2u + w, (e_$e + length - 1u) / 2u)];
//# end
//# for e in EACH
      if (y + $eu * BESIDE < last) { tile[(y + $eu * BESIDE) * pitch + w] = seen_$e; }
//# end
    }
  }
  if (local < last) {
    let e = begin + local * step;
    tile[local * pitch + pitch - 1u] = input_0[min(e / 2u + pitch - 1u, (e + length - 1u) / 2u)];
  }
  workgroupBarrier();
  let o = place(c);
  var t = local * 2u / last;
  var l = local * 2u % last;
  let t_step = THREADS * 2u / last;
  let l_step = THREADS * 2u % last;
  for (var e = local * 2u; e < length * last; e += THREADS * 2u) {
    let ends = l + 1u == last;
    let n_l = select(l + 1u, 0u, ends);
    let n_t = select(t, t + 1u, ends);
    put(o + e, pair_of(l * pitch * 2u + t + ((begin + l * step) & 1u), n_l * pitch * 2u + n_t + ((begin + n_l * step) & 1u)));
    t += t_step;
    l += l_step;
    if (l >= last) {
      l -= last;
      t += 1u;
    }
  }
//# else
//# if ODD
  let first = max(l0, 2u) - 2u;
//# else
  let first = l0;
//# end
//# if NARROW
  // All of the input's words in order, and then rows of the result, a word of each for neighbours.
  let length = min(l0 + l_side, last) - first;
  c[RANK - 1u] = first;
  let begin = at_0(c);
  let words = (begin + length * turned + 1u) / 2u - begin / 2u;
  for (var w = local; w < words; w += THREADS * EACH) {
//# for e in EACH
    let w_$e = w + $eu * THREADS;
    let seen_$e = input_0[begin / 2u + min(w_$e, words - 1u)];
//# end
//# for e in EACH
    if (w_$e < words) { tile[w_$e] = seen_$e; }
//# end
  }
  workgroupBarrier();
  c[RANK - 1u] = l0;
  let o_step = word(OUT_AT + RANK - 2u);
  for (var j = local % WORDS * 2u; j < l_side; j += WORDS * 2u) {
    var o = place(c) + j + local / WORDS * o_step;
    for (var y = local / WORDS; y < turned; y += BESIDE) {
//# if ODD
      let phase = o & 1u;
//# else
      let phase = 0u;
//# end
      // Before the first element of all there is none.
      if (l0 + j >= phase && l0 + j - phase < last) {
        let l = l0 + j - phase;
        let h = (begin & 1u) + (l - first) * turned + y;
        put_of_row(o - phase, l, last, pair_of(h, h + turned));
      }
      o += BESIDE * o_step;
    }
  }
//# else
  let near = local % HALF_SIDE;
  let far = local / HALF_SIDE;
  const FAR = THREADS / HALF_SIDE;
  // A column's words for neighbours; what is not there is read as what is.
//# for u in 8
  c[RANK - 1u] = min(first + $uu * FAR + far, last - 1u);
  let e_$u = at_0(c);
  let seen_$u = input_0[min(e_$u / 2u + near, (e_$u + turned - 1u - t0) / 2u)];
//# end
  c[RANK - 1u] = min(first + local % SIDE, last - 1u);
  let e = at_0(c);
  let behind = input_0[min(e / 2u + HALF_SIDE, (e + turned - 1u - t0) / 2u)];
//# for u in 8
  tile[($uu * FAR + far) * PITCH + near] = seen_$u;
//# end
  if (local < SIDE) { tile[local * PITCH + HALF_SIDE] = behind; }
  workgroupBarrier();
  c[RANK - 1u] = first;
  let begin = at_0(c);
  let step = word(STEP_AT);
  c[RANK - 1u] = l0;
//# for u in 8
  let t_$u = $uu * FAR + far;
  c[RANK - 2u] = t0 + t_$u;
  let o_$u = place(c) + near * 2u;
//# if ODD
  let phase_$u = o_$u & 1u;
  let is_there_$u = near * 2u < l_side && l0 + near * 2u >= phase_$u;
//# else
  const phase_$u = 0u;
  const is_there_$u = true;
//# end
  let l_$u = l0 + near * 2u - phase_$u;
  if (t0 + t_$u < turned && is_there_$u && l_$u < last) {
    let i = l_$u - first;
    let a = i * PITCH * 2u + t_$u + ((begin + i * step) & 1u);
    let b = (i + 1u) * PITCH * 2u + t_$u + ((begin + (i + 1u) * step) & 1u);
    put_of_row(o_$u - phase_$u, l_$u, last, pair_of(a, b));
  }
//# end
//# end
//# end
}
