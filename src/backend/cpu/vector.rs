//! Products of a matrix with a vector, natively: each element of the matrix is read once, row by row, so that memory sets the pace.

use super::reduce::each;
use super::scalar::Matrix;
use crate::plan::matmul::Params;

/// Rows that are multiplied at once, by a part of the vector that is loaded once: so many streams of memory are read ahead.
const ROWS: usize = 4;
/// Vectors of sums that are under way of each.
const SUMS: usize = 2;
/// Rows that are added at once: where rows lie apart by a power of two, more would drive one another out of the cache.
const ADDED: usize = 8;
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
    let share = if is_of_rows {
        (SHARE / k).next_multiple_of(ROWS).max(ROWS).min(of_thread)
    } else {
        of_thread.next_multiple_of(LANES).min(COLUMNS)
    };
    each(out, share, threads, |number, out| pulp::Arch::new().dispatch(Part(&product, number * share, out)));
    true
}

/// The sums of each row's products with as many numbers, in an order that depends on nothing but how many those are.
#[inline(always)]
fn dots<S: pulp::Simd, const N: usize>(simd: S, rows: [&[f32]; N], by: &[f32]) -> [f32; N] {
    let (by, by_rest) = S::as_simd_f32s(by);
    let (by_blocks, by_few) = by.as_chunks::<SUMS>();
    let mut sums = [[simd.splat_f32s(0.0); SUMS]; N];
    let blocks = rows.map(|row| &S::as_simd_f32s(row).0.as_chunks::<SUMS>().0[..by_blocks.len()]);
    for (at, by) in by_blocks.iter().enumerate() {
        for (sums, blocks) in sums.iter_mut().zip(blocks) {
            for ((sum, &value), &by) in sums.iter_mut().zip(&blocks[at]).zip(by) {
                *sum = simd.mul_add_f32s(value, by, *sum);
            }
        }
    }
    let mut all = [0.0; N];
    for ((all, [a, b]), row) in all.iter_mut().zip(sums).zip(rows) {
        let (row, rest) = S::as_simd_f32s(row);
        let mut last = simd.mul_f32s(simd.partial_load_f32s(rest), simd.partial_load_f32s(by_rest));
        for (&value, &by) in row.as_chunks::<SUMS>().1.iter().zip(by_few) {
            last = simd.mul_add_f32s(value, by, last);
        }
        *all = simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), last));
    }
    all
}

/// sums ← sums + Σ by·row, each row as long as those.
#[inline(always)]
fn add<S: pulp::Simd, const N: usize>(simd: S, sums: &mut [f32], rows: [&[f32]; N], by: &[f32; N]) {
    let (sums, last) = S::as_mut_simd_f32s(sums);
    let (mut all_by, mut blocks, mut rests) = ([simd.splat_f32s(0.0); N], [&[][..]; N], [&[][..]; N]);
    for number in 0..N {
        let (block, rest) = S::as_simd_f32s(rows[number]);
        (all_by[number], blocks[number], rests[number]) = (simd.splat_f32s(by[number]), &block[..sums.len()], rest);
    }
    for (at, sum) in sums.iter_mut().enumerate() {
        let mut all = *sum;
        for (&by, block) in all_by.iter().zip(blocks) {
            all = simd.mul_add_f32s(block[at], by, all);
        }
        *sum = all;
    }
    let mut all = simd.partial_load_f32s(last);
    for (by, rest) in all_by.into_iter().zip(rests) {
        all = simd.mul_add_f32s(simd.partial_load_f32s(rest), by, all);
    }
    simd.partial_store_f32s(last, all);
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
            if out.len() <= FEW_COLUMNS {
                product.columns::<S, FEW_COLUMNS>(simd, first, out)
            } else {
                product.columns::<S, COLUMNS>(simd, first, out)
            }
        }
    }
}

impl Product<'_> {
    #[inline(always)]
    fn rows<S: pulp::Simd>(&self, simd: S, first: usize, out: &mut [f32]) {
        let row = |number: usize| &self.matrix[number * self.stride..][..self.vector.len()];
        let (blocks, rest) = out.as_chunks_mut::<ROWS>();
        let after = first + blocks.len() * ROWS;
        for (at, out) in (first..).step_by(ROWS).zip(blocks) {
            let sums = dots(simd, [row(at), row(at + 1), row(at + 2), row(at + 3)], self.vector);
            sums.iter().zip(out).for_each(|(&sum, out)| self.put(sum, out));
        }
        for (number, out) in (after..).zip(rest) {
            let [sum] = dots(simd, [row(number)], self.vector);
            self.put(sum, out);
        }
    }

    #[inline(always)]
    fn columns<S: pulp::Simd, const N: usize>(&self, simd: S, first: usize, out: &mut [f32]) {
        let (mut sums, width) = ([0.0f32; N], out.len());
        let sums = &mut sums[..width];
        let row = |number: usize| &self.matrix[number * self.stride + first..][..width];
        let (blocks, rest) = self.vector.as_chunks::<ADDED>();
        for (number, by) in blocks.iter().enumerate() {
            let mut rows: [&[f32]; ADDED] = [&[]; ADDED];
            for (at, rows) in rows.iter_mut().enumerate() {
                *rows = row(number * ADDED + at);
            }
            add(simd, sums, rows, by);
        }
        for (number, by) in (blocks.len() * ADDED..).zip(rest) {
            add(simd, sums, [row(number)], &[*by]);
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
