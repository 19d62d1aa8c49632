// Y = (M - zero of M) * (X - zero of X) of 8-bit integers, in i32 and exact modulo 2^32, where one side of the product is a few rows or columns,
// TURNS * TURN at most, which are the vectors of X and Y here. M is read once.
//
// It is vector.wgsl with words in place of elements, which int8_words.wgsl tells of: M has a row for each element of a vector of Y, and params.k
// columns. A workgroup is GROUPS groups of LANES invocations. A group has four neighbouring elements of each vector, its lanes share the columns,
// four after one another and AT_ONCE times as many under way, and their sums are added up in workgroup memory, TURN vectors at a time.
//
//   binding  name    stored as
//   0        a       M: by rows (ALONG = 1), neighbours being neighbouring columns, or by columns (ALONG = 0); lines lda apart
//   1        b       X, k elements of each vector: neighbours being of one vector (X_ALONG = 1), the vectors ldb apart, or of one column
//                    of M (X_ALONG = 0), what is for the next ldb further
//
//   TALL        the vectors are columns of the result; otherwise they are rows of it.
//
// Elements outside repeat the last one, and what comes of it is not stored. At the end of k what is outside is zero.

var<workgroup> sums: array<vec4<u32>, THREADS * TURN>;

//# if TALL
fn elements() -> u32 { return params.m; }
fn vectors() -> u32 { return params.n; }
//# else
fn elements() -> u32 { return params.n; }
fn vectors() -> u32 { return params.m; }
//# end

// Four columns of M from one on of four elements from one on.
fn block(element: u32, column: u32) -> vec4<u32> {
//# if ALONG
  let last = params.k - 1u;
  let i = a_start() + min(vec4<u32>(element) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(elements() - 1u)) * params.lda + min(column, last);
  var words = vec4<u32>(a_word(i.x), a_word(i.y), a_word(i.z), a_word(i.w));
//# else
  let lines = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.k - 1u));
  let i = a_start() + lines * params.lda + min(element, (elements() - 1u) / 4u * 4u);
  var words = turned(vec4<u32>(a_word(i.x), a_word(i.y), a_word(i.z), a_word(i.w)));
//# end
//# if A_FLIP
  words ^= vec4<u32>(0x80808080u);
//# end
  return before(words, column, params.k);
}

// What these are multiplied by for four vectors from one on.
fn x_block(vector: u32, column: u32) -> vec4<u32> {
//# if X_ALONG
  let at = b_start() + min(column, params.k - 1u);
  var words = vec4<u32>();
//# for s in TURN
  words[$s] = b_word(at + min(vector + $su, vectors() - 1u) * params.ldb);
//# end
//# else
  let lines = min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.k - 1u));
  let i = b_start() + lines * params.ldb + min(vector, (vectors() - 1u) / 4u * 4u);
  var words = turned(vec4<u32>(b_word(i.x), b_word(i.y), b_word(i.z), b_word(i.w)));
//# end
//# if B_FLIP
  words ^= vec4<u32>(0x80808080u);
//# end
  return before(words, column, params.k);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
//# if ALONG
  let mine = thread / LANES;
  let lane = thread % LANES;
//# else
  let mine = thread % GROUPS;
  let lane = thread / GROUPS;
//# end
  begin(group.z);
  let element = (group.x * GROUPS + mine) * 4u;
//# for t in TURNS
//# for s in TURN
  var sum_$t_$s = vec4<u32>();
//# end
//# if A_ZERO
  var x_sum_$t = vec4<u32>();
//# end
//# end
//# if B_ZERO
  var a_sum = vec4<u32>();
//# end
  for (var column = lane * 4u; column < params.k; column += LANES * 4u * AT_ONCE) {
//# for u in AT_ONCE
    let a_$u = block(element, column + $uu * LANES * 4u);
//# end
//# for u in AT_ONCE
//# if B_ZERO
    a_sum += products(0x01010101u, a_$u);
//# end
//# for t in TURNS
    let x_$u_$t = x_block($tu * TURN, column + $uu * LANES * 4u);
//# if A_ZERO
    x_sum_$t += products(0x01010101u, x_$u_$t);
//# end
//# for s in TURN
    sum_$t_$s += products(x_$u_$t[$s], a_$u);
//# end
//# end
//# end
  }
  let at = mine * LANES + lane;
//# for t in TURNS
  workgroupBarrier();
//# for s in TURN
//# if A_ZERO
  sum_$t_$s -= vec4<u32>(a_zero() * x_sum_$t[$s]);
//# end
//# if B_ZERO
  sum_$t_$s -= b_zero() * a_sum;
//# end
  sums[$su * THREADS + at] = sum_$t_$s;
//# end
  for (var half = LANES / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
//# for s in TURN
      sums[$su * THREADS + at] += sums[$su * THREADS + at + half];
//# end
    }
  }
  if (lane == 0u) {
//# for s in TURN
//# if B_ZERO
    sums[$su * THREADS + at] += vec4<u32>(params.k * a_zero() * b_zero());
//# end
//# end
//# if TALL
    var across: array<vec4<u32>, 4>;
//# for s in TURN
//# for r in 4
    across[$r][$s] = sums[$su * THREADS + at][$r];
//# end
//# end
//# for r in 4
    store(group.z, element + $ru, $tu * TURN, across[$r]);
//# end
//# else
//# for s in TURN
    store(group.z, $tu * TURN + $su, element, sums[$su * THREADS + at]);
//# end
//# end
  }
//# end
}
