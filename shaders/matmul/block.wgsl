// Sums of 4 x 4 elements of a product, straight from memory, by one invocation.
//
//   a, b     as in tiled.wgsl, read as load.wgsl tells
//   A_LINES  A is stored with its columns behind one another, which start at multiples of 4 elements: four of a column are read at once.
//   B_LINES  B's rows are stored as such and start at multiples of 4 elements: four of a row are read at once.
//   A_TERMS  A is stored with k along its rows, which start at multiples of 4 elements, as do the terms, which are one apart: four are read
//            at once, of which k is a multiple; BLOCK_TERMS is 4.
//   B_TERMS  the same of B
//
// A row or a column outside the result repeats the last one, and what comes of it is not stored.

// Of those from a row and a column on; of the terms from first to last each that is so far from the one before.
fn block(row: u32, column: u32, first: u32, last: u32, apart: u32) -> array<vec4<f32>, 4> {
  let rows = min(row + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.m - 1u));
  let columns = min(column + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u));
//# if A_SCATTER
  let a_base = a_start() + rows * params.lda;
  let a_step = 1u;
//# else
  let a_base = a_start() + rows;
  let a_step = params.lda;
//# end
//# if B_SCATTER
  let b_base = b_start() + columns * params.ldb;
  let b_step = 1u;
//# else
  let b_base = b_start() + columns;
  let b_step = params.ldb;
//# end
//# for r in 4
  var sum_$r = vec4<f32>();
//# end
  for (var k = first; k < last; k += BLOCK_TERMS * apart) {
    // All are fetched before the first is needed.
//# if A_TERMS
//# for r in 4
    let a_row_$r = a_four((a_base[$r] + k) / 4u);
//# end
//# end
//# if B_TERMS
//# for r in 4
    let b_row_$r = b_four((b_base[$r] + k) / 4u);
//# end
//# end
//# for u in BLOCK_TERMS
    let k_$u = min(k + $uu * apart, last - 1u);
    let i_$u = a_base + k_$u * a_step;
    let j_$u = b_base + k_$u * b_step;
    let inside_$u = k + $uu * apart < last;
//# if A_TERMS
    let a_$u = vec4<Number>(a_row_0[$u], a_row_1[$u], a_row_2[$u], a_row_3[$u]);
//# else
//# if A_LINES
    let a_$u = select(vec4<Number>(), a_four(i_$u.x / 4u), inside_$u);
//# else
    let a_$u = select(vec4<Number>(), vec4<Number>(a_at(i_$u.x), a_at(i_$u.y), a_at(i_$u.z), a_at(i_$u.w)), inside_$u);
//# end
//# end
//# if B_TERMS
    let b_$u = vec4<Number>(b_row_0[$u], b_row_1[$u], b_row_2[$u], b_row_3[$u]);
//# else
//# if B_LINES
    let b_$u = select(vec4<Number>(), b_four(j_$u.x / 4u), inside_$u);
//# else
    let b_$u = select(vec4<Number>(), vec4<Number>(b_at(j_$u.x), b_at(j_$u.y), b_at(j_$u.z), b_at(j_$u.w)), inside_$u);
//# end
//# end
//# end
//# for u in BLOCK_TERMS
//# for r in 4
    sum_$r = fma(vec4<f32>(f32(a_$u[$r])), vec4<f32>(b_$u), sum_$r);
//# end
//# end
  }
  return array<vec4<f32>, 4>(sum_0, sum_1, sum_2, sum_3);
}
