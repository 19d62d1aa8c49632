// C = (op(A) - zero of A) * (op(B) - zero of B) of 8-bit integers, in i32 and exact modulo 2^32, register-tiled.
//
// It is tiled.wgsl with words in place of elements: a word has four elements of k, packed, and one instruction multiplies two of them and
// adds up. A workgroup computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K words. What an invocation fetches at once is a block of
// four rows, or four columns, by four elements of k: where k runs along stored rows it is a word of each of four rows, and where it runs across
// them a word of each of four, turned.
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0), four elements a word, at any element
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1), the same
//   2        out     m x n, and those of params.wgsl
//
//   SIGNED      both operands are of i8 once they are in workgroup memory, or else of u8.
//   *_FLIP      the operand is of u8 and becomes one of i8, whose elements are less by 128.
//   *_ZERO      the operand's zero point is not 0. With z and y for those of A and B, it is
//               sum of (a - z)(b - y) = sum of a b - z * sum of b - y * sum of a + k z y.
//   PACKED      the device multiplies packed words; otherwise they are unpacked.
//   *_VEC4      the operand's rows, and all items of a batch, start at words.
//   ACCUMULATES what out holds is added to: a later part of a product split over k for the sake of bindings.
//   OUT_VEC4    out's rows start at multiples of 4 elements and n is one, so that vec4s can be stored; otherwise scalars are.
//
// A row or a column outside the result repeats the last one, and what comes of it is not stored. At the end of k what is outside is zero.
// Sums are of u32, which wraps in every language.
//
// The template's lines begin with //#; kernels/template.rs expands them.

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
//# if OUT_VEC4
@group(0) @binding(2) var<storage, read_write> out: array<vec4<u32>>;
//# else
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
//# end

// Rows padded by one vec4 against bank conflicts where k runs along them.
const A_STRIDE = TILE_M / 4u + A_SCATTER;
const B_STRIDE = TILE_N / 4u + B_SCATTER;
var<workgroup> a_tile: array<array<vec4<u32>, A_STRIDE>, TILE_K>;
var<workgroup> b_tile: array<array<vec4<u32>, B_STRIDE>, TILE_K>;

// Four elements from one on. Words past the end of the buffer have nothing of them, and are not read.
fn a_word(i: u32) -> u32 {
//# if A_VEC4
  return a[i / 4u];
//# else
  let last = arrayLength(&a) - 1u;
  return joined(a[min(i / 4u, last)], a[min(i / 4u + 1u, last)], i);
//# end
}

fn b_word(i: u32) -> u32 {
//# if B_VEC4
  return b[i / 4u];
//# else
  let last = arrayLength(&b) - 1u;
  return joined(b[min(i / 4u, last)], b[min(i / 4u + 1u, last)], i);
//# end
}

fn joined(low: u32, high: u32, i: u32) -> u32 {
  let shift = (i % 4u) * 8u;
  return select((low >> shift) | (high << ((32u - shift) % 32u)), low, shift == 0u);
}

// Of words that begin at element k the elements before the end, and zeros.
fn before(words: vec4<u32>, k: u32, end: u32) -> vec4<u32> {
  if (k + 4u <= end) { return words; }
  return words & vec4<u32>((1u << ((end - k) * 8u)) - 1u);
}

// The columns of four by four elements, whose rows these words are.
fn turned(rows: vec4<u32>) -> vec4<u32> {
  let even = vec2<u32>(
    (rows.x & 0x00ff00ffu) | ((rows.y & 0x00ff00ffu) << 8u),
    (rows.z & 0x00ff00ffu) | ((rows.w & 0x00ff00ffu) << 8u),
  );
  let odd = vec2<u32>(
    ((rows.x >> 8u) & 0x00ff00ffu) | (rows.y & 0xff00ff00u),
    ((rows.z >> 8u) & 0x00ff00ffu) | (rows.w & 0xff00ff00u),
  );
  return vec4<u32>(
    (even.x & 0xffffu) | (even.y << 16u),
    (odd.x & 0xffffu) | (odd.y << 16u),
    (even.x >> 16u) | (even.y & 0xffff0000u),
    (odd.x >> 16u) | (odd.y & 0xffff0000u),
  );
}

// A block: four elements from k on of each of four rows of op(A), from one on.
fn a_block(row: u32, k: u32, end: u32) -> vec4<u32> {
  if (k >= end) { return vec4<u32>(); }
//# if A_SCATTER
  let i = a_start() + min(vec4<u32>(row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.m - 1u)) * params.lda + k;
  var words = vec4<u32>(a_word(i.x), a_word(i.y), a_word(i.z), a_word(i.w));
//# else
  let lines = min(vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(end - 1u));
  let i = a_start() + lines * params.lda + min(row, (params.m - 1u) / 4u * 4u);
  var words = turned(vec4<u32>(a_word(i.x), a_word(i.y), a_word(i.z), a_word(i.w)));
//# end
//# if A_FLIP
  words ^= vec4<u32>(0x80808080u);
//# end
  return before(words, k, end);
}

// The same of four columns of op(B).
fn b_block(column: u32, k: u32, end: u32) -> vec4<u32> {
  if (k >= end) { return vec4<u32>(); }
//# if B_SCATTER
  let i = b_start() + min(vec4<u32>(column) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u)) * params.ldb + k;
  var words = vec4<u32>(b_word(i.x), b_word(i.y), b_word(i.z), b_word(i.w));
//# else
  let lines = min(vec4<u32>(k) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(end - 1u));
  let i = b_start() + lines * params.ldb + min(column, (params.n - 1u) / 4u * 4u);
  var words = turned(vec4<u32>(b_word(i.x), b_word(i.y), b_word(i.z), b_word(i.w)));
//# end
//# if B_FLIP
  words ^= vec4<u32>(0x80808080u);
//# end
  return before(words, k, end);
}

// The sum of the products of the elements of a word by those of each of four.
fn products(x: u32, y: vec4<u32>) -> vec4<u32> {
//# if PACKED
//# if SIGNED
  return bitcast<vec4<u32>>(vec4<i32>(dot4I8Packed(x, y.x), dot4I8Packed(x, y.y), dot4I8Packed(x, y.z), dot4I8Packed(x, y.w)));
//# else
  return vec4<u32>(dot4U8Packed(x, y.x), dot4U8Packed(x, y.y), dot4U8Packed(x, y.z), dot4U8Packed(x, y.w));
//# end
//# else
//# for r in 4
  let y_$r = unpacked(y[$r]);
//# end
  let x_4 = unpacked(x);
  return bitcast<vec4<u32>>(vec4<i32>(dot(x_4, y_0), dot(x_4, y_1), dot(x_4, y_2), dot(x_4, y_3)));
//# end
}

//# if PACKED
//# else
fn unpacked(word: u32) -> vec4<i32> {
//# if SIGNED
  return bitcast<vec4<i32>>(vec4<u32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
//# else
  return bitcast<vec4<i32>>((vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u));
//# end
}
//# end

// Puts four elements of a row from a column on into one of the matrices of a batch. What lies outside is dropped.
fn store(z: u32, row: u32, column: u32, sum: vec4<u32>) {
  if (row >= params.m || column >= params.n) { return; }
  let o = params.out_start + (z * params.m + row) * params.ldo + column;
//# if OUT_VEC4
//# if ACCUMULATES
  out[o / 4u] += sum;
//# else
  out[o / 4u] = sum;
//# end
//# else
//# for r in 4
//# if ACCUMULATES
  if (column + $ru < params.n) { out[o + $ru] += sum[$r]; }
//# else
  if (column + $ru < params.n) { out[o + $ru] = sum[$r]; }
//# end
//# end
//# end
}

@compute @workgroup_size(THREADS_N, THREADS_M)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  begin(group.z);
  let row0 = group.y * TILE_M;
  let column0 = group.x * TILE_N;
  // Of 32 invocations 4 lie along m and 8 along n, as in tiled.wgsl.
  let lane = thread % 32u;
  let warp = thread / 32u;
  let tx = warp / (THREADS_M / 4u) * 8u + lane % 8u;
  let ty = warp % (THREADS_M / 4u) * 4u + lane / 8u;

  // Where in the tiles this invocation's blocks go: neighbours fetch neighbouring words.
//# for i in A_LOADS
//# if A_SCATTER
  let a_k_$i = (thread + $iu * THREADS) % TILE_K;
  let a_across_$i = (thread + $iu * THREADS) / TILE_K;
//# else
  let a_k_$i = (thread + $iu * THREADS) / (TILE_M / 4u);
  let a_across_$i = (thread + $iu * THREADS) % (TILE_M / 4u);
//# end
//# end
//# for i in B_LOADS
//# if B_SCATTER
  let b_k_$i = (thread + $iu * THREADS) % TILE_K;
  let b_across_$i = (thread + $iu * THREADS) / TILE_K;
//# else
  let b_k_$i = (thread + $iu * THREADS) / (TILE_N / 4u);
  let b_across_$i = (thread + $iu * THREADS) % (TILE_N / 4u);
//# end
//# end
//# for i in A_GROUPS
//# if B_ZERO
  var a_sum_$i = vec4<u32>();
//# end
//# for r in 4
//# for j in B_GROUPS
  var sum_$i_$r_$j = vec4<u32>();
//# end
//# end
//# end
//# if A_ZERO
//# for j in B_GROUPS
  var b_sum_$j = vec4<u32>();
//# end
//# end

  // The next step's blocks are fetched into registers before the present one is multiplied.
  let last = params.k;
  var k0 = 0u;
//# for i in A_LOADS
  var a_next_$i = a_block(row0 + a_across_$i * 4u, a_k_$i * 4u, last);
//# end
//# for i in B_LOADS
  var b_next_$i = b_block(column0 + b_across_$i * 4u, b_k_$i * 4u, last);
//# end
  loop {
//# for i in A_LOADS
    a_tile[a_k_$i][a_across_$i] = a_next_$i;
//# end
//# for i in B_LOADS
    b_tile[b_k_$i][b_across_$i] = b_next_$i;
//# end
    workgroupBarrier();
    k0 += TILE_K * 4u;
    if (k0 < last) {
//# for i in A_LOADS
      a_next_$i = a_block(row0 + a_across_$i * 4u, k0 + a_k_$i * 4u, last);
//# end
//# for i in B_LOADS
      b_next_$i = b_block(column0 + b_across_$i * 4u, k0 + b_k_$i * 4u, last);
//# end
    }
    for (var kk = 0u; kk < TILE_K; kk++) {
//# for i in A_GROUPS
      let a_$i = a_tile[kk][$iu * THREADS_M + ty];
//# end
//# for j in B_GROUPS
      let b_$j = b_tile[kk][$ju * THREADS_N + tx];
//# if A_ZERO
      b_sum_$j += products(0x01010101u, b_$j);
//# end
//# end
//# for i in A_GROUPS
//# if B_ZERO
      a_sum_$i += products(0x01010101u, a_$i);
//# end
//# for r in 4
//# for j in B_GROUPS
      sum_$i_$r_$j += products(a_$i[$r], b_$j);
//# end
//# end
//# end
    }
    if (k0 >= last) { break; }
    workgroupBarrier();
  }
//# if A_ZERO
  let a_zero = bitcast<u32>(bitcast<i32>(params.zero_points << 16u) >> 16u);
//# else
  const a_zero = 0u;
//# end
//# if B_ZERO
  let b_zero = bitcast<u32>(bitcast<i32>(params.zero_points) >> 16u);
//# end
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
//# if A_ZERO
  sum_$i_$r_$j -= a_zero * b_sum_$j;
//# end
//# if B_ZERO
  sum_$i_$r_$j -= vec4<u32>(b_zero * (a_sum_$i[$r] - params.k * a_zero));
//# end
  store(group.z, row0 + ($iu * THREADS_M + ty) * 4u + $ru, column0 + ($ju * THREADS_N + tx) * 4u, sum_$i_$r_$j);
//# end
//# end
//# end
}
