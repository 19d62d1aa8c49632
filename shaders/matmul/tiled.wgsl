// C = alpha * op(A) * op(B) + beta * C with sums in f32, register-tiled.
//
// A workgroup computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K. Each step's slices of A and B lie in workgroup
// memory with k outermost, so that an invocation reads its 4 rows and 4 columns as one vec4 each. An invocation owns A_GROUPS x
// B_GROUPS blocks of 4 x 4 elements, the blocks THREADS_M * 4 rows and THREADS_N * 4 columns apart: neighbours then read
// neighbouring vec4s. Of each 32 invocations in a row, a warp of most GPUs, 4 lie along m and 8 along n, so that what they read
// together is 4 and 8 vec4s, which one access to workgroup memory gives. The next step's slices are fetched into registers before
// the present one is multiplied, which hides the latency of global memory, and with two STAGES go to the other half of workgroup
// memory, so that a step has one barrier. In a small tile, so many invocations would own so little that they read more than they multiply:
// there, SLICES of them own the same elements, each takes one of so many terms, and in the end they exchange what they have.
//
// A row or a column outside the result repeats the last one, or is of whatever the operand has, and what comes of it is not stored. At
// the end of k what is outside counts as zero by selection, never by multiplication, so that a NaN there cannot spread; before it all is
// fetched unchecked.
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0)
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//            or, with WINDOW, what a window sees of images: conv/window.wgsl
//            read as load.wgsl tells, and those of store.wgsl
//
//   PARTS       k is split: part p sums the terms from p * k_part on, and sum.wgsl adds the parts up. Of the matrices in out, the first
//               are part 0 of each item of a batch, then come parts 1, and so on.
//   STAGES      how many steps' slices workgroup memory holds, 1 or 2; SINGLE is 1 for one.
//   LOOPS       the innermost loop has UNROLL steps of k in its body; otherwise there is none, and UNROLL is all that a slice takes of
//               TILE_K. Two stages want the latter: with a loop they were slower than one.
//   SLICES      how many share the terms of an element: slice s takes those of k mod SLICES = s. SLICED is 1 for more than one. In the end
//               each adds up SLICE_ROWS of the four rows of a block.
//   HALF        products are summed up in f16 within a step of k, and steps in f32. Each element of A lies twice in a word: where it does,
//               NVIDIA's compiler multiplies two elements of B by it in one instruction, and otherwise one by one.
//   *_SCATTER   the operand is stored with k along its rows: its vec4s are turned when they go to workgroup memory, into rows
//               padded by one vec4 against bank conflicts. Neighbours fetch ROW_FOURS of them from one row and the next ones from
//               other rows: more of one row would go to the same bank, and fewer would leave part of what memory gives at once.
//   *_VEC4      elements are fetched four at a time; B_FOURS is B_VEC4, or 1 with WINDOW. Where rows start anywhere they are fetched
//               one by one, neighbours by neighbouring invocations: so one access brings a whole line, as four do of four apart.
//   EDGES       the last rows of workgroups compute what is past whole tiles instead: edges.wgsl.
//   INSIDE      the last tiles start so far before the end that all of each lies in the result: what two of them share, both compute, alike,
//               and neither tests what it fetches and stores. Where that is quicker: in f16, and beside blocks.
//
// The template's lines begin with //#; kernels/template.rs expands them.

const A_STRIDE = TILE_M / 4u + A_SCATTER;
const B_STRIDE = TILE_N / 4u + B_SCATTER;
//# if HALF
alias Element = vec2<f16>;
alias Four = array<Element, 4>;
//# else
alias Element = f32;
alias Four = vec4<f32>;
//# end
var<workgroup> a_tile: array<array<array<Four, A_STRIDE>, TILE_K>, STAGES>;
var<workgroup> b_tile: array<array<array<vec4<Number>, B_STRIDE>, TILE_K>, STAGES>;
//# if SLICED
const SLICE_THREADS = THREADS / SLICES;

//# if HALF
var<workgroup> sums: array<vec4<f32>, 4u * THREADS>;
fn exchange(i: u32, v: vec4<f32>) { sums[i] = v; }
fn exchanged(i: u32) -> vec4<f32> { return sums[i]; }
//# else
// Four sums of an invocation, in the place of what is done with: there is room for four times as many.
fn exchange(i: u32, v: vec4<f32>) { b_tile[i / B_STRIDE / TILE_K][i / B_STRIDE % TILE_K][i % B_STRIDE] = v; }
fn exchanged(i: u32) -> vec4<f32> { return b_tile[i / B_STRIDE / TILE_K][i / B_STRIDE % TILE_K][i % B_STRIDE]; }
//# end
//# end

// From one element that an invocation fetches to the next, where they are fetched one by one.
//# if A_SCATTER
const A_K_APART = 0u;
const A_ACROSS_APART = THREADS / TILE_K;
//# else
const A_K_APART = THREADS / TILE_M;
const A_ACROSS_APART = 0u;
//# end
//# if B_SCATTER
const B_K_APART = 0u;
const B_ACROSS_APART = THREADS / TILE_K;
//# else
const B_K_APART = THREADS / TILE_N;
const B_ACROSS_APART = 0u;
//# end

// What is fetched at once where k may be outside, from `end` on: four elements of a stored row, or one.
//# if A_VEC4
fn a_edge(at: u32, k: u32, end: u32) -> vec4<Number> {
  if (k >= end) { return vec4<Number>(); }
//# if A_SCATTER
  return select(vec4<Number>(), a_four(at / 4u), vec4<u32>(k, k + 1u, k + 2u, k + 3u) < vec4<u32>(end));
//# else
  return a_four(at / 4u);
//# end
}
//# else
fn a_edge(at: u32, k: u32, end: u32) -> Number {
  if (k >= end) { return Number(); }
  return a_at(at);
}
//# end

//# if WINDOW
//# else
//# if B_VEC4
fn b_edge(at: u32, k: u32, end: u32) -> vec4<Number> {
  if (k >= end) { return vec4<Number>(); }
//# if B_SCATTER
  return select(vec4<Number>(), b_four(at / 4u), vec4<u32>(k, k + 1u, k + 2u, k + 3u) < vec4<u32>(end));
//# else
  return b_four(at / 4u);
//# end
}
//# else
fn b_edge(at: u32, k: u32, end: u32) -> Number {
  if (k >= end) { return Number(); }
  return b_at(at);
}
//# end
//# end

@compute @workgroup_size(THREADS_N, THREADS_M, SLICES)
fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
//# if EDGES
  @builtin(num_workgroups) groups: vec3<u32>,
//# end
) {
  let part = begin(group.z);
//# if PARTS
  let first = part * params.k_part;
  let last = min(params.k, first + params.k_part);
//# else
  let first = 0u;
  let last = params.k;
//# end
//# if EDGES
  let tiles_m = (params.m - EDGE_M * (params.m % TILE_M) + TILE_M - 1u) / TILE_M;
  if (group.y >= tiles_m) {
    edges(group.z, first, last, (group.y - tiles_m) * groups.x + group.x, (groups.y - tiles_m) * groups.x, thread);
    return;
  }
//# end
//# if INSIDE
  let row0 = min(group.y * TILE_M, params.m - TILE_M);
  let column0 = min(group.x * TILE_N, params.n - TILE_N);
//# else
  let row0 = group.y * TILE_M;
  let column0 = group.x * TILE_N;
//# end
//# if SLICED
  let slice = thread / SLICE_THREADS;
  let own = thread % SLICE_THREADS;
//# else
  const slice = 0u;
  let own = thread;
//# end
  let lane = own % 32u;
  let warp = own / 32u;
  let tx = warp / (THREADS_M / 4u) * 8u + lane % 8u;
  let ty = warp % (THREADS_M / 4u) * 4u + lane / 8u;

  // Where this invocation fetches, in k and across it, in a step and as a place in the stored matrix; a step of k moves the base on by
  // so many times what a_step and b_step say.
//# if A_SCATTER
  let a_step = 1u;
//# else
  let a_step = params.lda;
//# end
//# if WINDOW
  // Whatever an invocation fetches is in the same columns.
  let corner = corner_of(column0 + thread % (TILE_N / 4u) * 4u);
//# else
//# if B_SCATTER
  let b_step = 1u;
//# else
  let b_step = params.ldb;
//# end
//# end
//# if A_VEC4
//# else
//# if A_SCATTER
  let a_k = thread % TILE_K;
  let a_across = thread / TILE_K;
  let a_base = a_start() + (row0 + a_across) * params.lda + a_k;
  let a_apart = A_ACROSS_APART * params.lda;
  let a_last = a_start() + (params.m - 1u) * params.lda + params.k - 1u;
//# else
  let a_k = thread / TILE_M;
  let a_across = thread % TILE_M;
  let a_base = a_start() + a_k * params.lda + min(row0 + a_across, params.m - 1u);
  let a_apart = A_K_APART * params.lda;
  const a_last = 0xffffffffu;
//# end
//# end
//# for i in A_LOADS
//# if A_VEC4
//# if A_SCATTER
  let a_k_$i = ((thread + $iu * THREADS) % ROW_FOURS + (thread + $iu * THREADS) / (ROW_FOURS * TILE_M) * ROW_FOURS) * 4u;
  let a_across_$i = (thread + $iu * THREADS) / ROW_FOURS % TILE_M;
//# if INSIDE
  let a_base_$i = a_start() + (row0 + a_across_$i) * params.lda + a_k_$i;
//# else
  let a_base_$i = a_start() + min(row0 + a_across_$i, params.m - 1u) * params.lda + a_k_$i;
//# end
//# else
  let a_k_$i = (thread + $iu * THREADS) / (TILE_M / 4u);
  let a_across_$i = (thread + $iu * THREADS) % (TILE_M / 4u) * 4u;
//# if INSIDE
  let a_base_$i = a_start() + a_k_$i * params.lda + row0 + a_across_$i;
//# else
  let a_base_$i = a_start() + a_k_$i * params.lda + min(row0 + a_across_$i, (params.m - 1u) / 4u * 4u);
//# end
//# end
//# end
//# end
//# if B_FOURS
//# else
//# if B_SCATTER
  let b_k = thread % TILE_K;
  let b_across = thread / TILE_K;
  let b_base = b_start() + (column0 + b_across) * params.ldb + b_k;
  let b_apart = B_ACROSS_APART * params.ldb;
  let b_last = b_start() + (params.n - 1u) * params.ldb + params.k - 1u;
//# else
  let b_k = thread / TILE_N;
  let b_across = thread % TILE_N;
  let b_base = b_start() + b_k * params.ldb + min(column0 + b_across, params.n - 1u);
  let b_apart = B_K_APART * params.ldb;
  const b_last = 0xffffffffu;
//# end
//# end
//# for i in B_LOADS
//# if B_FOURS
//# if B_SCATTER
  let b_k_$i = ((thread + $iu * THREADS) % ROW_FOURS + (thread + $iu * THREADS) / (ROW_FOURS * TILE_N) * ROW_FOURS) * 4u;
  let b_across_$i = (thread + $iu * THREADS) / ROW_FOURS % TILE_N;
//# if INSIDE
  let b_base_$i = b_start() + (column0 + b_across_$i) * params.ldb + b_k_$i;
//# else
  let b_base_$i = b_start() + min(column0 + b_across_$i, params.n - 1u) * params.ldb + b_k_$i;
//# end
//# else
  let b_k_$i = (thread + $iu * THREADS) / (TILE_N / 4u);
  let b_across_$i = (thread + $iu * THREADS) % (TILE_N / 4u) * 4u;
//# if WINDOW
//# else
//# if INSIDE
  let b_base_$i = b_start() + b_k_$i * params.ldb + column0 + b_across_$i;
//# else
  let b_base_$i = b_start() + b_k_$i * params.ldb + min(column0 + b_across_$i, (params.n - 1u) / 4u * 4u);
//# end
//# end
//# end
//# end
//# end
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
  var sum_$i_$r_$j = vec4<f32>();
//# end
//# end
//# end

  var k0 = first;
//# for i in A_LOADS
//# if A_VEC4
  var a_next_$i = a_edge(a_base_$i + k0 * a_step, k0 + a_k_$i, last);
//# else
//# for r in 4
  var a_next_$i_$r = a_edge(min(a_base + ($iu * 4u + $ru) * a_apart + k0 * a_step, a_last), k0 + a_k + ($iu * 4u + $ru) * A_K_APART, last);
//# end
//# end
//# end
//# for i in B_LOADS
//# if B_FOURS
//# if WINDOW
  var b_next_$i = seen_edge(corner, k0 + b_k_$i, last);
//# else
  var b_next_$i = b_edge(b_base_$i + k0 * b_step, k0 + b_k_$i, last);
//# end
//# else
//# for r in 4
  var b_next_$i_$r = b_edge(min(b_base + ($iu * 4u + $ru) * b_apart + k0 * b_step, b_last), k0 + b_k + ($iu * 4u + $ru) * B_K_APART, last);
//# end
//# end
//# end
//# for i in A_LOADS
//# if A_VEC4
//# if A_SCATTER
//# for r in 4
  a_tile[0][a_k_$i + $ru][a_across_$i / 4u][a_across_$i % 4u] = Element(a_next_$i[$r]);
//# end
//# else
//# if HALF
  a_tile[0][a_k_$i][a_across_$i / 4u] = Four(a_next_$i.xx, a_next_$i.yy, a_next_$i.zz, a_next_$i.ww);
//# else
  a_tile[0][a_k_$i][a_across_$i / 4u] = a_next_$i;
//# end
//# end
//# else
//# for r in 4
  {
    let across = a_across + ($iu * 4u + $ru) * A_ACROSS_APART;
    a_tile[0][a_k + ($iu * 4u + $ru) * A_K_APART][across / 4u][across % 4u] = Element(a_next_$i_$r);
  }
//# end
//# end
//# end
//# for i in B_LOADS
//# if B_FOURS
//# if B_SCATTER
//# for r in 4
  b_tile[0][b_k_$i + $ru][b_across_$i / 4u][b_across_$i % 4u] = b_next_$i[$r];
//# end
//# else
  b_tile[0][b_k_$i][b_across_$i / 4u] = b_next_$i;
//# end
//# else
//# for r in 4
  {
    let across = b_across + ($iu * 4u + $ru) * B_ACROSS_APART;
    b_tile[0][b_k + ($iu * 4u + $ru) * B_K_APART][across / 4u][across % 4u] = b_next_$i_$r;
  }
//# end
//# end
//# end
  workgroupBarrier();
  loop {
//# for s in STAGES
    k0 += TILE_K;
    // One branch round all: with one in each fetch, their latencies added up.
    if (k0 + TILE_K <= last) {
//# for i in A_LOADS
//# if A_VEC4
      a_next_$i = a_four((a_base_$i + k0 * a_step) / 4u);
//# else
//# for r in 4
      a_next_$i_$r = a_at(min(a_base + ($iu * 4u + $ru) * a_apart + k0 * a_step, a_last));
//# end
//# end
//# end
//# for i in B_LOADS
//# if B_FOURS
//# if WINDOW
      b_next_$i = seen(corner, k0 + b_k_$i);
//# else
      b_next_$i = b_four((b_base_$i + k0 * b_step) / 4u);
//# end
//# else
//# for r in 4
      b_next_$i_$r = b_at(min(b_base + ($iu * 4u + $ru) * b_apart + k0 * b_step, b_last));
//# end
//# end
//# end
    } else if (k0 < last) {
//# for i in A_LOADS
//# if A_VEC4
      a_next_$i = a_edge(a_base_$i + k0 * a_step, k0 + a_k_$i, last);
//# else
//# for r in 4
      a_next_$i_$r = a_edge(min(a_base + ($iu * 4u + $ru) * a_apart + k0 * a_step, a_last), k0 + a_k + ($iu * 4u + $ru) * A_K_APART, last);
//# end
//# end
//# end
//# for i in B_LOADS
//# if B_FOURS
//# if WINDOW
      b_next_$i = seen_edge(corner, k0 + b_k_$i, last);
//# else
      b_next_$i = b_edge(b_base_$i + k0 * b_step, k0 + b_k_$i, last);
//# end
//# else
//# for r in 4
      b_next_$i_$r = b_edge(min(b_base + ($iu * 4u + $ru) * b_apart + k0 * b_step, b_last), k0 + b_k + ($iu * 4u + $ru) * B_K_APART, last);
//# end
//# end
//# end
    }
//# if HALF
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
//# for h in 2
    var part_$i_$r_$j_$h = vec2<f16>();
//# end
//# end
//# end
//# end
//# end
//# if LOOPS
    for (var kk = 0u; kk < TILE_K / SLICES; kk += UNROLL) {
//# else
    {
      const kk = 0u;
//# end
//# for u in UNROLL
      {
//# for i in A_GROUPS
        let a_$i = a_tile[$s][(kk + $uu) * SLICES + slice][$iu * THREADS_M + ty];
//# end
//# for j in B_GROUPS
        let b_$j = b_tile[$s][(kk + $uu) * SLICES + slice][$ju * THREADS_N + tx];
//# end
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
//# if HALF
        part_$i_$r_$j_0 = fma(a_$i[$r], b_$j.xy, part_$i_$r_$j_0);
        part_$i_$r_$j_1 = fma(a_$i[$r], b_$j.zw, part_$i_$r_$j_1);
//# else
        sum_$i_$r_$j = fma(vec4<f32>(a_$i[$r]), b_$j, sum_$i_$r_$j);
//# end
//# end
//# end
//# end
      }
//# end
    }
//# if HALF
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
    sum_$i_$r_$j += vec4<f32>(vec4<f16>(part_$i_$r_$j_0, part_$i_$r_$j_1));
//# end
//# end
//# end
//# end
    if (k0 >= last) { break; }
//# if SINGLE
    workgroupBarrier();
//# end
//# for i in A_LOADS
//# if A_VEC4
//# if A_SCATTER
//# for r in 4
    a_tile[($su + 1u) % STAGES][a_k_$i + $ru][a_across_$i / 4u][a_across_$i % 4u] = Element(a_next_$i[$r]);
//# end
//# else
//# if HALF
    a_tile[($su + 1u) % STAGES][a_k_$i][a_across_$i / 4u] = Four(a_next_$i.xx, a_next_$i.yy, a_next_$i.zz, a_next_$i.ww);
//# else
    a_tile[($su + 1u) % STAGES][a_k_$i][a_across_$i / 4u] = a_next_$i;
//# end
//# end
//# else
//# for r in 4
    {
      let across = a_across + ($iu * 4u + $ru) * A_ACROSS_APART;
      a_tile[($su + 1u) % STAGES][a_k + ($iu * 4u + $ru) * A_K_APART][across / 4u][across % 4u] = Element(a_next_$i_$r);
    }
//# end
//# end
//# end
//# for i in B_LOADS
//# if B_FOURS
//# if B_SCATTER
//# for r in 4
    b_tile[($su + 1u) % STAGES][b_k_$i + $ru][b_across_$i / 4u][b_across_$i % 4u] = b_next_$i[$r];
//# end
//# else
    b_tile[($su + 1u) % STAGES][b_k_$i][b_across_$i / 4u] = b_next_$i;
//# end
//# else
//# for r in 4
    {
      let across = b_across + ($iu * 4u + $ru) * B_ACROSS_APART;
      b_tile[($su + 1u) % STAGES][b_k + ($iu * 4u + $ru) * B_K_APART][across / 4u][across % 4u] = b_next_$i_$r;
    }
//# end
//# end
//# end
    workgroupBarrier();
//# end
  }
//# if SLICED
  // Each slice adds up, and stores, one row of four or two, and tests for none whether it is its own, which took longer.
//# for i in A_GROUPS
//# for j in B_GROUPS
  workgroupBarrier();
//# for r in 4
  exchange($ru * THREADS + thread, sum_$i_$r_$j);
//# end
  workgroupBarrier();
//# for h in SLICE_ROWS
  {
    let r = slice + $hu * SLICES;
    var sum = exchanged(r * THREADS + own);
    for (var s = 1u; s < SLICES; s++) { sum += exchanged(r * THREADS + s * SLICE_THREADS + own); }
    store(group.z, row0 + ($iu * THREADS_M + ty) * 4u + r, column0 + ($ju * THREADS_N + tx) * 4u, sum);
  }
//# end
//# end
//# end
//# else
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
//# if INSIDE
  store_inside(group.z, row0 + ($iu * THREADS_M + ty) * 4u + $ru, column0 + ($ju * THREADS_N + tx) * 4u, sum_$i_$r_$j);
//# else
  store(group.z, row0 + ($iu * THREADS_M + ty) * 4u + $ru, column0 + ($ju * THREADS_N + tx) * 4u, sum_$i_$r_$j);
//# end
//# end
//# end
//# end
//# end
}
