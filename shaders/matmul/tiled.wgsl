// C = alpha * op(A) * op(B) + beta * C with sums in f32, register-tiled.
//
// A workgroup computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K. Each step's slices of A and B lie in workgroup
// memory with k outermost, so that an invocation reads its 4 rows and 4 columns as one vec4 each. An invocation owns A_GROUPS x
// B_GROUPS blocks of 4 x 4 elements, the blocks THREADS_M * 4 rows and THREADS_N * 4 columns apart: neighbours then read
// neighbouring vec4s. The next step's slices are fetched into registers before the present one is multiplied, which hides the
// latency of global memory; two buffers in workgroup memory were slower.
//
// A row or a column outside the result repeats the last one, and what comes of it is not stored. At the end of k what is outside
// counts as zero by selection, never by multiplication, so that a NaN there cannot spread; before it all is fetched unchecked.
//
//   binding  name    stored as
//   0        a       m x k (A_SCATTER = 1) or k x m (A_SCATTER = 0)
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//            read as load.wgsl tells, and those of store.wgsl
//
//   PARTS       k is split: group z sums the terms from z * k_part on, and its sums are the z-th of the matrices in out, which
//               sum.wgsl adds up.
//   UNROLL      steps of k in the body of the innermost loop.
//   *_SCATTER   the operand is stored with k along its rows: its vec4s are turned when they go to workgroup memory, into rows
//               padded by one vec4 against bank conflicts.
//
// The template's lines begin with //#; kernels/template.rs expands them.

const A_STRIDE = TILE_M / 4u + A_SCATTER;
const B_STRIDE = TILE_N / 4u + B_SCATTER;
var<workgroup> a_tile: array<array<vec4<f32>, A_STRIDE>, TILE_K>;
var<workgroup> b_tile: array<array<vec4<f32>, B_STRIDE>, TILE_K>;

// Four elements of a stored row, k inside.
fn a_inside(row: u32, column: u32) -> vec4<f32> {
  let i = params.a_start + row * params.lda;
//# if A_VEC4
  return a_four((i + column) / 4u);
//# else
//# if A_SCATTER
  let j = i + column;
  return vec4<f32>(a_at(j), a_at(j + 1u), a_at(j + 2u), a_at(j + 3u));
//# else
  let j = min(vec4<u32>(column, column + 1u, column + 2u, column + 3u), vec4<u32>(params.m - 1u));
  return vec4<f32>(a_at(i + j.x), a_at(i + j.y), a_at(i + j.z), a_at(i + j.w));
//# end
//# end
}

fn b_inside(row: u32, column: u32) -> vec4<f32> {
  let i = params.b_start + row * params.ldb;
//# if B_VEC4
  return b_four((i + column) / 4u);
//# else
//# if B_SCATTER
  let j = i + column;
  return vec4<f32>(b_at(j), b_at(j + 1u), b_at(j + 2u), b_at(j + 3u));
//# else
  let j = min(vec4<u32>(column, column + 1u, column + 2u, column + 3u), vec4<u32>(params.n - 1u));
  return vec4<f32>(b_at(i + j.x), b_at(i + j.y), b_at(i + j.z), b_at(i + j.w));
//# end
//# end
}

// The same where k may be outside, from `end` on.
fn a_edge(row: u32, column: u32, end: u32) -> vec4<f32> {
//# if A_SCATTER
  if (column >= end) { return vec4<f32>(); }
//# if A_VEC4
  return select(vec4<f32>(), a_inside(row, column), vec4<u32>(column, column + 1u, column + 2u, column + 3u) < vec4<u32>(end));
//# else
  let i = params.a_start + row * params.lda + column;
  var v = vec4<f32>(a_at(i), 0.0, 0.0, 0.0);
  if (column + 1u < end) { v.y = a_at(i + 1u); }
  if (column + 2u < end) { v.z = a_at(i + 2u); }
  if (column + 3u < end) { v.w = a_at(i + 3u); }
  return v;
//# end
//# else
  if (row >= end) { return vec4<f32>(); }
  return a_inside(row, column);
//# end
}

fn b_edge(row: u32, column: u32, end: u32) -> vec4<f32> {
//# if B_SCATTER
  if (column >= end) { return vec4<f32>(); }
//# if B_VEC4
  return select(vec4<f32>(), b_inside(row, column), vec4<u32>(column, column + 1u, column + 2u, column + 3u) < vec4<u32>(end));
//# else
  let i = params.b_start + row * params.ldb + column;
  var v = vec4<f32>(b_at(i), 0.0, 0.0, 0.0);
  if (column + 1u < end) { v.y = b_at(i + 1u); }
  if (column + 2u < end) { v.z = b_at(i + 2u); }
  if (column + 3u < end) { v.w = b_at(i + 3u); }
  return v;
//# end
//# else
  if (row >= end) { return vec4<f32>(); }
  return b_inside(row, column);
//# end
}

@compute @workgroup_size(THREADS_N, THREADS_M)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row0 = group.y * TILE_M;
  let column0 = group.x * TILE_N;
  let tx = thread % THREADS_N;
  let ty = thread / THREADS_N;

  // Where this invocation fetches: a_along runs along a slice's stored row of A, a_across counts them; the same for B. What does not
  // change with k is also known as a place in the stored matrix.
//# for i in A_LOADS
//# if A_SCATTER
  let a_along_$i = (thread + $iu * THREADS) % (TILE_K / 4u) * 4u;
  let a_across_$i = (thread + $iu * THREADS) / (TILE_K / 4u);
  let a_place_$i = min(row0 + a_across_$i, params.m - 1u);
//# else
  let a_along_$i = (thread + $iu * THREADS) % (TILE_M / 4u) * 4u;
  let a_across_$i = (thread + $iu * THREADS) / (TILE_M / 4u);
  let a_place_$i = min(row0 + a_along_$i, (params.m - 1u) / 4u * 4u);
//# end
  var a_next_$i: vec4<f32>;
//# end
//# for i in B_LOADS
//# if B_SCATTER
  let b_along_$i = (thread + $iu * THREADS) % (TILE_K / 4u) * 4u;
  let b_across_$i = (thread + $iu * THREADS) / (TILE_K / 4u);
  let b_place_$i = min(column0 + b_across_$i, params.n - 1u);
//# else
  let b_along_$i = (thread + $iu * THREADS) % (TILE_N / 4u) * 4u;
  let b_across_$i = (thread + $iu * THREADS) / (TILE_N / 4u);
  let b_place_$i = min(column0 + b_along_$i, (params.n - 1u) / 4u * 4u);
//# end
  var b_next_$i: vec4<f32>;
//# end

//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
  var sum_$i_$r_$j = vec4<f32>();
//# end
//# end
//# end

//# if PARTS
  let first = group.z * params.k_part;
  let last = min(params.k, first + params.k_part);
//# else
  let first = 0u;
  let last = params.k;
//# end
  for (var k0 = first; k0 < last + TILE_K; k0 += TILE_K) {
    // What the last turn fetched goes to workgroup memory; the first turn has fetched nothing yet.
    if (k0 > first) {
      workgroupBarrier();
//# for i in A_LOADS
//# if A_SCATTER
//# for r in 4
      a_tile[a_along_$i + $ru][a_across_$i / 4u][a_across_$i % 4u] = a_next_$i[$r];
//# end
//# else
      a_tile[a_across_$i][a_along_$i / 4u] = a_next_$i;
//# end
//# end
//# for i in B_LOADS
//# if B_SCATTER
//# for r in 4
      b_tile[b_along_$i + $ru][b_across_$i / 4u][b_across_$i % 4u] = b_next_$i[$r];
//# end
//# else
      b_tile[b_across_$i][b_along_$i / 4u] = b_next_$i;
//# end
//# end
      workgroupBarrier();
    }
    if (k0 < last) {
      if (k0 + TILE_K <= last) {
//# for i in A_LOADS
//# if A_SCATTER
        a_next_$i = a_inside(a_place_$i, k0 + a_along_$i);
//# else
        a_next_$i = a_inside(k0 + a_across_$i, a_place_$i);
//# end
//# end
//# for i in B_LOADS
//# if B_SCATTER
        b_next_$i = b_inside(b_place_$i, k0 + b_along_$i);
//# else
        b_next_$i = b_inside(k0 + b_across_$i, b_place_$i);
//# end
//# end
      } else {
//# for i in A_LOADS
//# if A_SCATTER
        a_next_$i = a_edge(a_place_$i, k0 + a_along_$i, last);
//# else
        a_next_$i = a_edge(k0 + a_across_$i, a_place_$i, last);
//# end
//# end
//# for i in B_LOADS
//# if B_SCATTER
        b_next_$i = b_edge(b_place_$i, k0 + b_along_$i, last);
//# else
        b_next_$i = b_edge(k0 + b_across_$i, b_place_$i, last);
//# end
//# end
      }
    }
    if (k0 > first) {
      for (var kk = 0u; kk < TILE_K; kk += UNROLL) {
//# for u in UNROLL
        {
//# for i in A_GROUPS
          let a_$i = a_tile[kk + $uu][$iu * THREADS_M + ty];
//# end
//# for j in B_GROUPS
          let b_$j = b_tile[kk + $uu][$ju * THREADS_N + tx];
//# end
//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
          sum_$i_$r_$j = fma(vec4<f32>(a_$i[$r]), b_$j, sum_$i_$r_$j);
//# end
//# end
//# end
        }
//# end
      }
    }
  }

//# for i in A_GROUPS
//# for r in 4
//# for j in B_GROUPS
  store(group.z, row0 + ($iu * THREADS_M + ty) * 4u + $ru, column0 + ($ju * THREADS_N + tx) * 4u, sum_$i_$r_$j);
//# end
//# end
//# end
}
