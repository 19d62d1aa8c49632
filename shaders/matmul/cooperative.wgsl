// C = alpha * op(A) * op(B) + beta * C by a GPU's matrix units: A and B in f16, or in two terms of f16 each, and sums in f32.
//
// A workgroup computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K. Each step's slices of A and B lie in workgroup memory
// as they are stored, each line padded by eight elements against bank conflicts; matrix units read them by rows
// or by columns, so that nothing is turned. A subgroup owns FRAGMENTS_M x FRAGMENTS_N matrices of 16 x 16 sums, and what of the slices it
// reads is an array of its own, in which all places are known to the compiler: browsers check those that are not. The next step's slices
// are fetched into registers before the present one is multiplied, which hides the latency of global memory.
//
// With two TERMS the operands are what split.wgsl made of f32: (h + l / 2048) * 2^-s. Of the four products of terms the least is left out.
// h * h is summed apart from the other two, and every FLUSH steps goes on to sums that invocations add up: matrix units cut off what
// f32 would round, and over a long k that adds up.
//
// A row or a column outside the result repeats the last one or is whatever lies there, and what comes of it is not stored. At the end of
// k what is outside counts as zero by selection, so that a NaN there cannot spread.
//
//   binding  name    stored as
//   0        a       m x k (A_TURNED = 0) or k x m (A_TURNED = 1)
//   1        b       k x n (B_TURNED = 0) or n x k (B_TURNED = 1)
//            and those of store.wgsl
//
//   SUBGROUP    written in Chromium's language for matrix units, else in naga's.
//   PARTS       as in tiled.wgsl.
//   *_VEC8      lines start at multiples of 8 elements, so that eight can be loaded at once; otherwise words are, and shifted.
//   DIRECT      tiles that lie inside are stored by the matrix units themselves: the result is f32, and nothing is added to it.

struct Eight { low: vec4<f16>, high: vec4<f16> }

//# if A_VEC8
//# if SUBGROUP
@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;
//# else
@group(0) @binding(0) var<storage, read> a: array<Eight>;
//# end
//# else
@group(0) @binding(0) var<storage, read> a: array<f16>;
//# end
//# if B_VEC8
//# if SUBGROUP
@group(0) @binding(1) var<storage, read> b: array<vec4<u32>>;
//# else
@group(0) @binding(1) var<storage, read> b: array<Eight>;
//# end
//# else
@group(0) @binding(1) var<storage, read> b: array<f16>;
//# end

// Vectors from one line of a slice to the next.
const A_STRIDE = A_OWN_LINE / 4u + 2u;
const B_STRIDE = B_OWN_LINE / 4u + 2u;
// naga gives a matrix the type of what it is loaded from, so that these cannot be words.
//# for t in TERMS
var<workgroup> a_tile_$t: array<array<vec4<f16>, A_OWN_LINES * A_STRIDE>, SUBGROUPS_M>;
var<workgroup> b_tile_$t: array<array<vec4<f16>, B_OWN_LINES * B_STRIDE>, SUBGROUPS_N>;
//# end
// A matrix of sums of each subgroup on its way out.
var<workgroup> sums: array<array<vec4<f32>, 64>, SUBGROUPS>;

// Tiles of so many rows run side by side, so that what they read of B is still in the cache.
const BAND = 8u;

// Eight elements of a stored row, from element i of the binding on.
fn a_inside(i: u32) -> Eight {
//# if A_VEC8
//# if SUBGROUP
  let v = a[i / 8u];
  return Eight(bitcast<vec4<f16>>(v.xy), bitcast<vec4<f16>>(v.zw));
//# else
  return a[i / 8u];
//# end
//# else
  // What lies past the end is not used, whatever it is.
  let last = vec4<u32>(arrayLength(&a) - 1u);
  let j = min(vec4<u32>(i, i + 1u, i + 2u, i + 3u), last);
  let k = min(vec4<u32>(i + 4u, i + 5u, i + 6u, i + 7u), last);
  return Eight(vec4<f16>(a[j.x], a[j.y], a[j.z], a[j.w]), vec4<f16>(a[k.x], a[k.y], a[k.z], a[k.w]));
//# end
}

fn b_inside(i: u32) -> Eight {
//# if B_VEC8
//# if SUBGROUP
  let v = b[i / 8u];
  return Eight(bitcast<vec4<f16>>(v.xy), bitcast<vec4<f16>>(v.zw));
//# else
  return b[i / 8u];
//# end
//# else
  // What lies past the end is not used, whatever it is.
  let last = vec4<u32>(arrayLength(&b) - 1u);
  let j = min(vec4<u32>(i, i + 1u, i + 2u, i + 3u), last);
  let k = min(vec4<u32>(i + 4u, i + 5u, i + 6u, i + 7u), last);
  return Eight(vec4<f16>(b[j.x], b[j.y], b[j.z], b[j.w]), vec4<f16>(b[k.x], b[k.y], b[k.z], b[k.w]));
//# end
}

// The first so many of eight elements, and zeros.
fn first_of(v: Eight, count: i32) -> Eight {
  let low = select(vec4<f16>(), v.low, vec4<i32>(0, 1, 2, 3) < vec4<i32>(count));
  let high = select(vec4<f16>(), v.high, vec4<i32>(4, 5, 6, 7) < vec4<i32>(count));
  return Eight(low, high);
}

// The same at the end of k, where so many are left of it.
fn a_edge(i: u32, left: i32) -> Eight {
  if (left <= 0) { return Eight(); }
//# if A_TURNED
  return a_inside(i);
//# else
  return first_of(a_inside(i), left);
//# end
}

fn b_edge(i: u32, left: i32) -> Eight {
  if (left <= 0) { return Eight(); }
//# if B_TURNED
  return first_of(b_inside(i), left);
//# else
  return b_inside(i);
//# end
}

//# if SPLIT
// 2^e, for e from -126 to 127.
fn power(e: i32) -> f32 { return bitcast<f32>(u32(e + 127) << 23u); }

// Four sums of a row with both powers of two taken out, in two steps, neither of which leaves the range of f32 unless the result does.
// Exponents stand where a_at and b_at say, counted from where the item starts, one to eight elements.
fn unscaled(row: u32, column: u32, sum: vec4<f32>, a_at: u32, b_at: u32) -> vec4<f32> {
  let of_row = i32(a_inside(a_start() + a_at + min(row, params.m - 1u) * 8u).low.x);
  var v = sum;
//# for r in 4
  let e_$r = -of_row - i32(b_inside(b_start() + b_at + min(column + $ru, params.n - 1u) * 8u).low.x);
  v[$r] = v[$r] * power(e_$r / 2) * power(e_$r - e_$r / 2);
//# end
  return v;
}
//# end

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
//# if SUBGROUP
) {
  // All subgroups are of one size and full, and invocations are counted through them.
  let subgroup = thread / LANES_OF_SUBGROUP;
  let lane = thread % LANES_OF_SUBGROUP;
//# else
  @builtin(subgroup_id) subgroup: u32, @builtin(subgroup_invocation_id) lane: u32,
) {
//# end
  let part = begin(group.z);
  let tiles_m = (params.m - 1u) / TILE_M + 1u;
  let tiles_n = (params.n - 1u) / TILE_N + 1u;
  let tile = group.y * tiles_n + group.x;
  let band = tile / (BAND * tiles_n);
  let in_band = tile % (BAND * tiles_n);
  let band_m = min(tiles_m - band * BAND, BAND);
  let row0 = (band * BAND + in_band % band_m) * TILE_M;
  let column0 = in_band / band_m * TILE_N;
  // Where this subgroup's part of the tile is.
  let subgroup_m = subgroup / SUBGROUPS_N;
  let subgroup_n = subgroup % SUBGROUPS_N;
  let own_m = subgroup_m * (16u * FRAGMENTS_M);
  let own_n = subgroup_n * (16u * FRAGMENTS_N);

//# if PARTS
  let first = part * params.k_part;
  let last = min(params.k, first + params.k_part);
//# else
  let first = 0u;
  let last = params.k;
//# end

  // Where this invocation fetches and where it puts it: a_along runs along a line of A's slice, a_across counts them; the same for B.
  // What does not change with k is computed here: a_from is the first element, and k moves all of them on together.
//# for i in A_LOADS
  let a_along_$i = (thread + $iu * THREADS) % (A_LINE / 8u) * 8u;
  let a_across_$i = (thread + $iu * THREADS) / (A_LINE / 8u);
//# if A_TURNED
  let a_of_$i = a_along_$i / A_OWN_LINE;
  let a_to_$i = a_across_$i * A_STRIDE + a_along_$i % A_OWN_LINE / 4u;
  let a_k_$i = a_across_$i;
  let a_from_$i = a_start() + a_across_$i * params.lda + min(row0 + a_along_$i, (params.m - 1u) / 8u * 8u);
//# else
  let a_of_$i = a_across_$i / A_OWN_LINES;
  let a_to_$i = a_across_$i % A_OWN_LINES * A_STRIDE + a_along_$i / 4u;
  let a_k_$i = a_along_$i;
  let a_from_$i = a_start() + min(row0 + a_across_$i, params.m - 1u) * params.lda + a_along_$i;
//# end
//# for t in TERMS
  var a_next_$t_$i: Eight;
//# end
//# end
//# for i in B_LOADS
  let b_along_$i = (thread + $iu * THREADS) % (B_LINE / 8u) * 8u;
  let b_across_$i = (thread + $iu * THREADS) / (B_LINE / 8u);
//# if B_TURNED
  let b_of_$i = b_across_$i / B_OWN_LINES;
  let b_to_$i = b_across_$i % B_OWN_LINES * B_STRIDE + b_along_$i / 4u;
  let b_k_$i = b_along_$i;
  let b_from_$i = b_start() + min(column0 + b_across_$i, params.n - 1u) * params.ldb + b_along_$i;
//# else
  let b_of_$i = b_along_$i / B_OWN_LINE;
  let b_to_$i = b_across_$i * B_STRIDE + b_along_$i % B_OWN_LINE / 4u;
  let b_k_$i = b_across_$i;
  let b_from_$i = b_start() + b_across_$i * params.ldb + min(column0 + b_along_$i, (params.n - 1u) / 8u * 8u);
//# end
//# for t in TERMS
  var b_next_$t_$i: Eight;
//# end
//# end
//# if A_TURNED
  let a_step = params.lda;
//# else
  let a_step = 1u;
//# end
//# if B_TURNED
  let b_step = 1u;
//# else
  let b_step = params.ldb;
//# end

//# if SPLIT
  // Where the second terms are, counted from the first, and the exponents s behind both.
//# if A_TURNED
  let a_term = params.k * params.lda;
//# else
  let a_term = params.m * params.lda;
//# end
//# if B_TURNED
  let b_term = params.n * params.ldb;
//# else
  let b_term = params.k * params.ldb;
//# end
//# else
  const a_term = 0u;
  const b_term = 0u;
//# end

//# for i in FRAGMENTS_M
//# for j in FRAGMENTS_N
//# if SUBGROUP
  var sum_$i_$j = subgroup_matrix_result<f32, 16, 16>();
//# else
  var sum_$i_$j = coop_mat16x16<f32, C>();
//# end
//# if SPLIT
//# if SUBGROUP
  var low_$i_$j = subgroup_matrix_result<f32, 16, 16>();
//# else
  var low_$i_$j = coop_mat16x16<f32, C>();
//# end
//# for r in PIECES
  var total_$i_$j_$r = vec4<f32>();
//# end
//# end
//# end
//# end

  for (var k0 = first; k0 < last + TILE_K; k0 += TILE_K) {
    // What the last turn fetched goes to workgroup memory; the first turn has fetched nothing yet.
    if (k0 > first) {
      workgroupBarrier();
//# for t in TERMS
//# for i in A_LOADS
      a_tile_$t[a_of_$i][a_to_$i] = a_next_$t_$i.low;
      a_tile_$t[a_of_$i][a_to_$i + 1u] = a_next_$t_$i.high;
//# end
//# for i in B_LOADS
      b_tile_$t[b_of_$i][b_to_$i] = b_next_$t_$i.low;
      b_tile_$t[b_of_$i][b_to_$i + 1u] = b_next_$t_$i.high;
//# end
//# end
      workgroupBarrier();
    }
    // One branch round all fetches of a step: within each of them it would cost a fifth of the speed.
    if (k0 + TILE_K <= last) {
      let a_moved = k0 * a_step;
      let b_moved = k0 * b_step;
//# for t in TERMS
//# for i in A_LOADS
      a_next_$t_$i = a_inside(a_from_$i + a_moved + $tu * a_term);
//# end
//# for i in B_LOADS
      b_next_$t_$i = b_inside(b_from_$i + b_moved + $tu * b_term);
//# end
//# end
    } else if (k0 < last) {
      let left = i32(last - k0);
//# for t in TERMS
//# for i in A_LOADS
      a_next_$t_$i = a_edge(a_from_$i + k0 * a_step + $tu * a_term, left - i32(a_k_$i));
//# end
//# for i in B_LOADS
      b_next_$t_$i = b_edge(b_from_$i + k0 * b_step + $tu * b_term, left - i32(b_k_$i));
//# end
//# end
    }
    if (k0 > first) {
//# for p in K_FRAGMENTS
      {
//# for t in TERMS
//# for i in FRAGMENTS_M
//# if SUBGROUP
//# if A_TURNED
        let a_$t_$i = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, col_major>(&a_tile_$t[subgroup_m], $pu * 16u * A_STRIDE + $iu * 4u, A_STRIDE);
//# else
        let a_$t_$i = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&a_tile_$t[subgroup_m], $iu * 16u * A_STRIDE + $pu * 4u, A_STRIDE);
//# end
//# else
//# if A_TURNED
        let a_$t_$i = coopLoad<coop_mat16x16<f16, A>>(&a_tile_$t[subgroup_m][$pu * 16u * A_STRIDE + $iu * 4u], A_STRIDE);
//# else
        let a_$t_$i = coopLoadT<coop_mat16x16<f16, A>>(&a_tile_$t[subgroup_m][$iu * 16u * A_STRIDE + $pu * 4u], A_STRIDE);
//# end
//# end
//# end
//# end
//# for j in FRAGMENTS_N
//# for t in TERMS
//# if SUBGROUP
//# if B_TURNED
        let b_$t_$j = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&b_tile_$t[subgroup_n], $ju * 16u * B_STRIDE + $pu * 4u, B_STRIDE);
//# else
        let b_$t_$j = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, row_major>(&b_tile_$t[subgroup_n], $pu * 16u * B_STRIDE + $ju * 4u, B_STRIDE);
//# end
//# else
//# if B_TURNED
        let b_$t_$j = coopLoad<coop_mat16x16<f16, B>>(&b_tile_$t[subgroup_n][$ju * 16u * B_STRIDE + $pu * 4u], B_STRIDE);
//# else
        let b_$t_$j = coopLoadT<coop_mat16x16<f16, B>>(&b_tile_$t[subgroup_n][$pu * 16u * B_STRIDE + $ju * 4u], B_STRIDE);
//# end
//# end
//# end
//# for i in FRAGMENTS_M
//# if SUBGROUP
        sum_$i_$j = subgroupMatrixMultiplyAccumulate(a_0_$i, b_0_$j, sum_$i_$j);
//# if SPLIT
        low_$i_$j = subgroupMatrixMultiplyAccumulate(a_0_$i, b_1_$j, low_$i_$j);
        low_$i_$j = subgroupMatrixMultiplyAccumulate(a_1_$i, b_0_$j, low_$i_$j);
//# end
//# else
        sum_$i_$j = coopMultiplyAdd(a_0_$i, b_0_$j, sum_$i_$j);
//# if SPLIT
        low_$i_$j = coopMultiplyAdd(a_0_$i, b_1_$j, low_$i_$j);
        low_$i_$j = coopMultiplyAdd(a_1_$i, b_0_$j, low_$i_$j);
//# end
//# end
//# end
//# end
      }
//# end
//# if SPLIT
      if ((k0 - first) % (FLUSH * TILE_K) == 0u || k0 >= last) {
//# for i in FRAGMENTS_M
//# for j in FRAGMENTS_N
        workgroupBarrier();
//# if SUBGROUP
        subgroupMatrixStore<row_major>(&sums[subgroup], 0u, sum_$i_$j, 4u);
        sum_$i_$j = subgroup_matrix_result<f32, 16, 16>();
//# else
        coopStoreT(sum_$i_$j, &sums[subgroup][0], 4u);
        sum_$i_$j = coop_mat16x16<f32, C>();
//# end
        workgroupBarrier();
//# for r in PIECES
        total_$i_$j_$r += sums[subgroup][lane + $ru * LANES_OF_SUBGROUP];
//# end
//# end
//# end
      }
//# end
    }
  }

//# if DIRECT
  if (row0 + TILE_M <= params.m && column0 + TILE_N <= params.n) {
    // naga computes no argument of a store in the call itself.
    let ldo = params.ldo;
    let o = params.out_start + (group.z * params.m + row0 + own_m) * ldo + column0 + own_n;
//# for i in FRAGMENTS_M
//# for j in FRAGMENTS_N
    let o_$i_$j = o + $iu * 16u * ldo + $ju * 16u;
//# if SUBGROUP
    subgroupMatrixStore<row_major>(&out, o_$i_$j, subgroupMatrixScalarMultiply(sum_$i_$j, params.alpha), ldo);
//# else
    let out_$i_$j = params.alpha * sum_$i_$j;
    coopStoreT(out_$i_$j, &out[o_$i_$j], ldo);
//# end
//# end
//# end
    return;
  }
//# end
//# for i in FRAGMENTS_M
//# for j in FRAGMENTS_N
  workgroupBarrier();
//# if SPLIT
  let own_$i_$j = low_$i_$j;
//# else
  let own_$i_$j = sum_$i_$j;
//# end
//# if SUBGROUP
  subgroupMatrixStore<row_major>(&sums[subgroup], 0u, own_$i_$j, 4u);
//# else
  coopStoreT(own_$i_$j, &sums[subgroup][0], 4u);
//# end
  workgroupBarrier();
//# for r in PIECES
  {
    let row = row0 + own_m + $iu * 16u + (lane + $ru * LANES_OF_SUBGROUP) / 4u;
    let column = column0 + own_n + $ju * 16u + (lane + $ru * LANES_OF_SUBGROUP) % 4u * 4u;
    let sum = sums[subgroup][lane + $ru * LANES_OF_SUBGROUP];
//# if SPLIT
    store(group.z, row, column, unscaled(row, column, total_$i_$j_$r + sum / 2048.0, 2u * a_term, 2u * b_term));
//# else
    store(group.z, row, column, sum);
//# end
  }
//# end
//# end
//# end
}
