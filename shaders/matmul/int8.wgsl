// C = (op(A) - zero of A) * (op(B) - zero of B) of 8-bit integers, in i32 and exact modulo 2^32, register-tiled.
//
// It is tiled.wgsl with words in place of elements, which int8_words.wgsl tells of: a word has four elements of k. A workgroup computes a
// TILE_M x TILE_N tile of C, walking k in steps of TILE_K words. What an invocation fetches at once is a block of four rows, or four columns, by
// four elements of k: where k runs along stored rows it is a word of each of four rows, and where it runs across them a word of each of four, turned.
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0)
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//
// A row or a column outside the result repeats the last one, and what comes of it is not stored. At the end of k what is outside is zero.
//
// The template's lines begin with //#; kernels/template.rs expands them.

// Rows padded by one vec4 against bank conflicts where k runs along them.
const A_STRIDE = TILE_M / 4u + A_SCATTER;
const B_STRIDE = TILE_N / 4u + B_SCATTER;
var<workgroup> a_tile: array<array<vec4<u32>, A_STRIDE>, TILE_K>;
var<workgroup> b_tile: array<array<vec4<u32>, B_STRIDE>, TILE_K>;

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
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
//# if A_ZERO
  sum_$i_$r_$j -= a_zero() * b_sum_$j;
//# end
//# if B_ZERO
  sum_$i_$r_$j -= vec4<u32>(b_zero() * (a_sum_$i[$r] - params.k * a_zero()));
//# end
  store(group.z, row0 + ($iu * THREADS_M + ty) * 4u + $ru, column0 + ($ju * THREADS_N + tx) * 4u, sum_$i_$r_$j);
//# end
//# end
//# end
}
