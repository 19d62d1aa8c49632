//! Products of a matrix with a vector, natively: each element of the matrix is read once, row by row, so that memory sets the pace.

use super::reduce::each;
use super::scalar::Matrix;
use crate::plan::matmul::Params;

/// Vectors of sums that are under way at once.
const SUMS: usize = 4;
/// Elements of a row from which it is worth it, and columns of which shares are multiples: some vectors of any width.
const LANES: usize = 64;
/// Numbers from which other threads pay.
const MANY: usize = 1 << 17;
/// Numbers of the fewest rows that a thread takes at once: few, so that all end together.
const SHARE: usize = 1 << 12;
/// Columns that are summed beside one another: as long a row as the system reads ahead.
const COLUMNS: usize = 4096;
/// Columns up to which fewer sums are enough.
const FEW_COLUMNS: usize = 256;
/// Rows that are added at once.
const ROWS: usize = 4;

/// A matrix that lies row by row, a vector, and whether elements of the result are its rows with it or the sum of its rows by it.
struct Product<'a> {
    matrix: &'a [f32],
    stride: usize,
    vector: &'a [f32],
    is_of_rows: bool,
    alpha: f32,
    beta: f32,
}

/// out ← α·op(A)·op(B) + β·out where one of them is a vector and both lie in order; else false, and nothing is done.
pub(super) fn multiplied(params: &Params, [a, b]: [Matrix<'_>; 2], out: &mut [f32], reads_c: bool, threads: usize) -> bool {
    let [m, k, n] = [params.m, params.k, params.n].map(|size| size as usize);
    let (matrix, [along, across], (vector, step)) = match (m, n) {
        (_, 1) => (a.values, [a.column_stride, a.row_stride], (b.values, b.row_stride)),
        (1, _) => (b.values, [b.row_stride, b.column_stride], (a.values, a.column_stride)),
        _ => return false,
    };
    let (is_of_rows, stride) = match [along, across] {
        [1, stride] => (true, stride),
        [stride, 1] => (false, stride),
        _ => return false,
    };
    // Short rows are as fast elsewhere.
    if k == 0 || step != 1 || is_of_rows && k < 4 * LANES {
        return false;
    }
    let beta = if reads_c { params.beta } else { 0.0 };
    let product = Product { matrix, stride, vector: &vector[..k], is_of_rows, alpha: params.alpha, beta };
    // Each thread has a part at least: of rows as many as are a share, of columns as long ones as there can be.
    let threads = if m * k * n > MANY { threads } else { 1 };
    let of_thread = (m * n).div_ceil(threads);
    let share = if is_of_rows { (SHARE / k).clamp(1, of_thread) } else { of_thread.next_multiple_of(LANES).min(COLUMNS) };
    each(out, share, threads, |number, out| pulp::Arch::new().dispatch(Part(&product, number * share, out)));
    true
}

/// The sum of products of as many numbers, in an order that depends on nothing else.
#[inline(always)]
fn dot<S: pulp::Simd>(simd: S, values: &[f32], by: &[f32]) -> f32 {
    let mut sums = [simd.splat_f32s(0.0); SUMS];
    let ((values, rest), (by, by_rest)) = (S::as_simd_f32s(values), S::as_simd_f32s(by));
    let ((blocks, few), (by_blocks, by_few)) = (values.as_chunks::<SUMS>(), by.as_chunks::<SUMS>());
    for (block, by) in blocks.iter().zip(by_blocks) {
        for ((sum, &value), &by) in sums.iter_mut().zip(block).zip(by) {
            *sum = simd.mul_add_f32s(value, by, *sum);
        }
    }
    let mut last = simd.mul_f32s(simd.partial_load_f32s(rest), simd.partial_load_f32s(by_rest));
    for (&value, &by) in few.iter().zip(by_few) {
        last = simd.mul_add_f32s(value, by, last);
    }
    let [a, b, c, d] = sums;
    simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d)), last))
}

/// Some elements of the result, from one on.
struct Part<'a>(&'a Product<'a>, usize, &'a mut [f32]);

impl pulp::WithSimd for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self(product, first, out) = self;
        if product.is_of_rows {
            product.rows(simd, first, out);
        } else {
            // Sums that are not there need not be set to 0.
            if out.len() <= FEW_COLUMNS { product.columns::<FEW_COLUMNS>(first, out) } else { product.columns::<COLUMNS>(first, out) }
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn rows<S: pulp::Simd>(&self, simd: S, first: usize, out: &mut [f32]) {
        let k = self.vector.len();
        for (row, out) in (first..).zip(out) {
            self.put(dot(simd, &self.matrix[row * self.stride..][..k], self.vector), out);
        }
    }

    #[inline(always)]
    fn columns<const N: usize>(&self, first: usize, out: &mut [f32]) {
        let (mut sums, width) = ([0.0f32; N], out.len());
        let sums = &mut sums[..width];
        let row = |number: usize| &self.matrix[number * self.stride + first..][..width];
        let (blocks, rest) = self.vector.as_chunks::<ROWS>();
        for (number, &[x, y, z, w]) in blocks.iter().enumerate() {
            let at = number * ROWS;
            for ((((sum, a), b), c), d) in sums.iter_mut().zip(row(at)).zip(row(at + 1)).zip(row(at + 2)).zip(row(at + 3)) {
                *sum = d.mul_add(w, c.mul_add(z, b.mul_add(y, a.mul_add(x, *sum))));
            }
        }
        for (number, &by) in (blocks.len() * ROWS..).zip(rest) {
            for (sum, value) in sums.iter_mut().zip(row(number)) {
                *sum = value.mul_add(by, *sum);
            }
        }
        for (&sum, out) in sums.iter().zip(out) {
            self.put(sum, out);
        }
    }

    #[inline(always)]
    fn put(&self, sum: f32, out: &mut f32) {
        // What was there is not read unless it counts: it may be no number.
        *out = self.alpha * sum + if self.beta == 0.0 { 0.0 } else { self.beta * *out };
    }
}
