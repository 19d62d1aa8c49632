// C = alpha * op(A) * op(B) + beta * C with sums in f32, register-tiled.
//
// A workgroup computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K. Each step's slices of A and B lie in workgroup
// memory with k outermost, so that an invocation reads its 4 rows and 4 columns as one vec4 each. An invocation owns A_GROUPS x
// B_GROUPS blocks of 4 x 4 elements, the blocks THREADS_M * 4 rows and THREADS_N * 4 columns apart: neighbours then read
// neighbouring vec4s. Of each 32 invocations in a row, a warp of most GPUs, 4 lie along m and 8 along n, so that what they read
// together is 4 and 8 vec4s, which one access to workgroup memory gives. The next step's slices are fetched into registers before
// the present one is multiplied, which hides the latency of global memory, and with two STAGES go to the other half of workgroup
// memory, so that a step has one barrier.
//
// A row or a column outside the result repeats the last one, and what comes of it is not stored. At the end of k what is outside
// counts as zero by selection, never by multiplication, so that a NaN there cannot spread; before it all is fetched unchecked.
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
//   LOOPS       the innermost loop has UNROLL steps of k in its body; otherwise there is none, and UNROLL is TILE_K. Two stages
//               want the latter: with a loop they were slower than one.
//   HALF        products are summed up in f16 within a step of k, and steps in f32.
//   *_SCATTER   the operand is stored with k along its rows: its vec4s are turned when they go to workgroup memory, into rows
//               padded by one vec4 against bank conflicts.
//
// The template's lines begin with //#; kernels/template.rs expands them.

const A_STRIDE = TILE_M / 4u + A_SCATTER;
const B_STRIDE = TILE_N / 4u + B_SCATTER;
var<workgroup> a_tile: array<array<array<vec4<Number>, A_STRIDE>, TILE_K>, STAGES>;
var<workgroup> b_tile: array<array<array<vec4<Number>, B_STRIDE>, TILE_K>, STAGES>;

// Four elements of a stored row, k inside; place is where they are along the other side.
fn a_inside(at: u32, place: u32) -> vec4<Number> {
//# if A_VEC4
  return a_four(at / 4u);
//# else
//# if A_SCATTER
  return vec4<Number>(a_at(at), a_at(at + 1u), a_at(at + 2u), a_at(at + 3u));
//# else
  let j = at + min(vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.m - 1u - place));
  return vec4<Number>(a_at(j.x), a_at(j.y), a_at(j.z), a_at(j.w));
//# end
//# end
}

//# if WINDOW
//# else
fn b_inside(at: u32, place: u32) -> vec4<Number> {
//# if B_VEC4
  return b_four(at / 4u);
//# else
//# if B_SCATTER
  return vec4<Number>(b_at(at), b_at(at + 1u), b_at(at + 2u), b_at(at + 3u));
//# else
  let j = at + min(vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u - place));
  return vec4<Number>(b_at(j.x), b_at(j.y), b_at(j.z), b_at(j.w));
//# end
//# end
}
//# end

// The same where k may be outside, from `end` on.
fn a_edge(at: u32, place: u32, k: u32, end: u32) -> vec4<Number> {
  if (k >= end) { return vec4<Number>(); }
//# if A_SCATTER
//# if A_VEC4
  return select(vec4<Number>(), a_four(at / 4u), vec4<u32>(k, k + 1u, k + 2u, k + 3u) < vec4<u32>(end));
//# else
  var v = vec4<Number>(a_at(at), 0.0, 0.0, 0.0);
  if (k + 1u < end) { v.y = a_at(at + 1u); }
  if (k + 2u < end) { v.z = a_at(at + 2u); }
  if (k + 3u < end) { v.w = a_at(at + 3u); }
  return v;
//# end
//# else
  return a_inside(at, place);
//# end
}

//# if WINDOW
//# else
fn b_edge(at: u32, place: u32, k: u32, end: u32) -> vec4<Number> {
  if (k >= end) { return vec4<Number>(); }
//# if B_SCATTER
//# if B_VEC4
  return select(vec4<Number>(), b_four(at / 4u), vec4<u32>(k, k + 1u, k + 2u, k + 3u) < vec4<u32>(end));
//# else
  var v = vec4<Number>(b_at(at), 0.0, 0.0, 0.0);
  if (k + 1u < end) { v.y = b_at(at + 1u); }
  if (k + 2u < end) { v.z = b_at(at + 2u); }
  if (k + 3u < end) { v.w = b_at(at + 3u); }
  return v;
//# end
//# else
  return b_inside(at, place);
//# end
}
//# end

@compute @workgroup_size(THREADS_N, THREADS_M)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let part = begin(group.z);
  let row0 = group.y * TILE_M;
  let column0 = group.x * TILE_N;
  let lane = thread % 32u;
  let warp = thread / 32u;
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
//# for i in A_LOADS
//# if A_SCATTER
  let a_k_$i = (thread + $iu * THREADS) % (TILE_K / 4u) * 4u;
  let a_across_$i = (thread + $iu * THREADS) / (TILE_K / 4u);
  let a_place_$i = min(row0 + a_across_$i, params.m - 1u);
  let a_base_$i = a_start() + a_place_$i * params.lda + a_k_$i;
//# else
  let a_k_$i = (thread + $iu * THREADS) / (TILE_M / 4u);
  let a_across_$i = (thread + $iu * THREADS) % (TILE_M / 4u) * 4u;
  let a_place_$i = min(row0 + a_across_$i, (params.m - 1u) / 4u * 4u);
  let a_base_$i = a_start() + a_k_$i * params.lda + a_place_$i;
//# end
//# end
//# for i in B_LOADS
//# if B_SCATTER
  let b_k_$i = (thread + $iu * THREADS) % (TILE_K / 4u) * 4u;
  let b_across_$i = (thread + $iu * THREADS) / (TILE_K / 4u);
  let b_place_$i = min(column0 + b_across_$i, params.n - 1u);
  let b_base_$i = b_start() + b_place_$i * params.ldb + b_k_$i;
//# else
  let b_k_$i = (thread + $iu * THREADS) / (TILE_N / 4u);
  let b_across_$i = (thread + $iu * THREADS) % (TILE_N / 4u) * 4u;
//# if WINDOW
//# else
  let b_place_$i = min(column0 + b_across_$i, (params.n - 1u) / 4u * 4u);
  let b_base_$i = b_start() + b_k_$i * params.ldb + b_place_$i;
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

//# if PARTS
  let first = part * params.k_part;
  let last = min(params.k, first + params.k_part);
//# else
  let first = 0u;
  let last = params.k;
//# end
  var k0 = first;
//# for i in A_LOADS
  var a_next_$i = a_edge(a_base_$i + k0 * a_step, a_place_$i, k0 + a_k_$i, last);
//# end
//# for i in B_LOADS
//# if WINDOW
  var b_next_$i = seen_edge(corner, k0 + b_k_$i, last);
//# else
  var b_next_$i = b_edge(b_base_$i + k0 * b_step, b_place_$i, k0 + b_k_$i, last);
//# end
//# end
//# for i in A_LOADS
//# if A_SCATTER
//# for r in 4
  a_tile[0][a_k_$i + $ru][a_across_$i / 4u][a_across_$i % 4u] = a_next_$i[$r];
//# end
//# else
  a_tile[0][a_k_$i][a_across_$i / 4u] = a_next_$i;
//# end
//# end
//# for i in B_LOADS
//# if B_SCATTER
//# for r in 4
  b_tile[0][b_k_$i + $ru][b_across_$i / 4u][b_across_$i % 4u] = b_next_$i[$r];
//# end
//# else
  b_tile[0][b_k_$i][b_across_$i / 4u] = b_next_$i;
//# end
//# end
  workgroupBarrier();
  loop {
//# for s in STAGES
    k0 += TILE_K;
    // One branch round all: with one in each fetch, their latencies added up.
    if (k0 + TILE_K <= last) {
//# for i in A_LOADS
      a_next_$i = a_inside(a_base_$i + k0 * a_step, a_place_$i);
//# end
//# for i in B_LOADS
//# if WINDOW
      b_next_$i = seen(corner, k0 + b_k_$i);
//# else
      b_next_$i = b_inside(b_base_$i + k0 * b_step, b_place_$i);
//# end
//# end
    } else if (k0 < last) {
//# for i in A_LOADS
      a_next_$i = a_edge(a_base_$i + k0 * a_step, a_place_$i, k0 + a_k_$i, last);
//# end
//# for i in B_LOADS
//# if WINDOW
      b_next_$i = seen_edge(corner, k0 + b_k_$i, last);
//# else
      b_next_$i = b_edge(b_base_$i + k0 * b_step, b_place_$i, k0 + b_k_$i, last);
//# end
//# end
    }
//# if HALF
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
    var part_$s_$i_$r_$j = vec4<f16>();
//# end
//# end
//# end
//# end
//# if LOOPS
    for (var kk = 0u; kk < TILE_K; kk += UNROLL) {
//# else
    {
      const kk = 0u;
//# end
//# for u in UNROLL
      {
//# for i in A_GROUPS
        let a_$i = a_tile[$s][kk + $uu][$iu * THREADS_M + ty];
//# end
//# for j in B_GROUPS
        let b_$j = b_tile[$s][kk + $uu][$ju * THREADS_N + tx];
//# end
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
//# if HALF
        part_$s_$i_$r_$j = fma(vec4<f16>(a_$i[$r]), b_$j, part_$s_$i_$r_$j);
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
    sum_$i_$r_$j += vec4<f32>(part_$s_$i_$r_$j);
//# end
//# end
//# end
//# end
    if (k0 >= last) { break; }
//# if SINGLE
    workgroupBarrier();
//# end
//# for i in A_LOADS
//# if A_SCATTER
//# for r in 4
    a_tile[($su + 1u) % STAGES][a_k_$i + $ru][a_across_$i / 4u][a_across_$i % 4u] = a_next_$i[$r];
//# end
//# else
    a_tile[($su + 1u) % STAGES][a_k_$i][a_across_$i / 4u] = a_next_$i;
//# end
//# end
//# for i in B_LOADS
//# if B_SCATTER
//# for r in 4
    b_tile[($su + 1u) % STAGES][b_k_$i + $ru][b_across_$i / 4u][b_across_$i % 4u] = b_next_$i[$r];
//# end
//# else
    b_tile[($su + 1u) % STAGES][b_k_$i][b_across_$i / 4u] = b_next_$i;
//# end
//# end
    workgroupBarrier();
//# end
  }
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
  store(group.z, row0 + ($iu * THREADS_M + ty) * 4u + $ru, column0 + ($ju * THREADS_N + tx) * 4u, sum_$i_$r_$j);
//# end
//# end
//# end
}
