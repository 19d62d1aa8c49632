// C = alpha * A * op(B) with sums in f32, of few terms and columns, where A's rows lie behind one another and so do the result's: a workgroup takes
// some through its memory, so that neighbours read and write neighbours however short a row is. A and the result start at multiples of 4 elements.
//
//   K, N       terms and columns
//   ROWS       of a workgroup, and EACH of an invocation
//   COLUMNS    fours of columns, and OF_EACH of an invocation
//   LOADS      fours of A that an invocation reads at most; STORES is the same of the result
//   SINGLE     rows are kept as single elements; as pairs with PAIRS, where both K and N are even, and as fours with FOURS, where they are of fours
//   BY         elements of what they are kept in, and OF_FOUR how many of it a four has
//   OF_A       how many of it one of A's rows has, and how many one of the result's
//   OF_OUT
//   ROOM       and of both the larger of all rows, where each is an odd number of them apart, so that neighbours are in banks of their own
//
//   binding  name    stored as
//   0        a       m x k
//   1        b       k x n (B_SCATTER = 0) or n x k (B_SCATTER = 1)
//            read as load.wgsl tells, and those of store.wgsl

//# if FOURS
alias Kept = vec4<f32>;
fn kept(v: vec4<f32>, part: u32) -> Kept { return v; }
//# else
//# if PAIRS
alias Kept = vec2<f32>;
fn kept(v: vec4<f32>, part: u32) -> Kept { return select(v.xy, v.zw, part > 0u); }
//# else
alias Kept = f32;
fn kept(v: vec4<f32>, part: u32) -> Kept { return v[part]; }
//# end
//# end
var<workgroup> rows: array<Kept, ROOM>;
var<workgroup> columns: array<vec4<f32>, K * COLUMNS>;

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) local: u32
) {
  _ = begin(0u);
  // All that an invocation reads is under way at once. What is behind the last row is not written.
  let last = (a_start() + params.m * K - 1u) / 4u;
  var from_a = (a_start() + group.x * ROWS * K) / 4u + local;
//# for u in LOADS
  var four_$u = a_four(min(from_a + $u * 64u, last));
//# end
  let along = select(params.ldb, 1u, B_SCATTER > 0u);
  let across = select(1u, params.ldb, B_SCATTER > 0u);
  for (var i = local; i < K * COLUMNS; i += 64u) {
    let from_b = b_start() + i / COLUMNS * along;
    let of_b = min(i % COLUMNS * 4u + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(N - 1u)) * across;
    columns[i] = vec4<f32>(b_at(from_b + of_b.x), b_at(from_b + of_b.y), b_at(from_b + of_b.z), b_at(from_b + of_b.w));
  }
  let row = local % (ROWS / EACH);
  let column = local / (ROWS / EACH) * OF_EACH;
  for (var first = group.x * ROWS; first < params.m; first += groups.x * ROWS) {
//# for u in LOADS
    if (local + $u * 64u < ROWS * K / 4u) {
//# for p in OF_FOUR
      let at_$u_$p = (local + $u * 64u) * OF_FOUR + $pu;
      rows[at_$u_$p / OF_A * (OF_A | 1u) + at_$u_$p % OF_A] = kept(four_$u, $pu);
//# end
    }
//# end
    workgroupBarrier();
    // The next ones, while these are computed with.
    from_a += groups.x * ROWS * K / 4u;
//# for u in LOADS
    four_$u = a_four(min(from_a + $u * 64u, last));
//# end
//# for r in EACH
//# for c in OF_EACH
    var sum_$r_$c = vec4<f32>();
//# end
//# end
    for (var t = 0u; t < OF_A; t++) {
//# for r in EACH
      let of_a_$r = rows[($r * ROWS / EACH + row) * (OF_A | 1u) + t];
//# end
//# for e in BY
//# for c in OF_EACH
      let of_b_$e_$c = columns[(t * BY + $eu) * COLUMNS + min(column + $cu, COLUMNS - 1u)];
//# for r in EACH
//# if SINGLE
      sum_$r_$c = fma(vec4<f32>(of_a_$r), of_b_$e_$c, sum_$r_$c);
//# else
      sum_$r_$c = fma(vec4<f32>(of_a_$r[$e]), of_b_$e_$c, sum_$r_$c);
//# end
//# end
//# end
//# end
    }
    workgroupBarrier();
//# for c in OF_EACH
    let column_$c = column + $cu;
//# for r in EACH
    let row_$r_$c = $r * ROWS / EACH + row;
    let v_$r_$c = finished(params.out_start + (first + row_$r_$c) * N + column_$c * 4u, first + row_$r_$c, column_$c * 4u, sum_$r_$c);
//# for p in OF_FOUR
    if (column_$c * OF_FOUR + $pu < OF_OUT) { rows[row_$r_$c * (OF_OUT | 1u) + column_$c * OF_FOUR + $pu] = kept(v_$r_$c, $pu); }
//# end
//# end
//# end
    workgroupBarrier();
    let end = min(params.m - first, ROWS) * N;
//# for u in STORES
    if ((local + $u * 64u) * 4u < end) {
      let at = (local + $u * 64u) * OF_FOUR;
//# for p in OF_FOUR
      let part_$p = rows[(at + $pu) / OF_OUT * (OF_OUT | 1u) + (at + $pu) % OF_OUT];
//# end
      let v = vec4<f32>(
//# for p in OF_FOUR
        part_$p,
//# end
      );
      let to = (params.out_start + first * N) / 4u + local + $u * 64u;
//# if RESULT_F16
      out[to] = pack_four(v);
//# else
      out[to] = v;
//# end
    }
//# end
    workgroupBarrier();
  }
}
