//! Products of a matrix with a vector, natively: each element of the matrix is read once, row by row, so that memory sets the pace.

use super::crew::each_with;
use super::number::Number;
use super::scalar::Matrix;

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
pub(super) struct Product<'a, T> {
    matrix: &'a [T],
    stride: usize,
    vector: &'a [T],
    is_of_rows: bool,
}

impl<'a, T: Number> Product<'a, T> {
    /// A·B of such sizes where one of them is a vector and both lie in order.
    pub(super) fn of([m, k, n]: [usize; 3], [a, b]: [Matrix<'a, T>; 2]) -> Option<Self> {
        let (matrix, [along, across], (vector, step)) = match (m, n) {
            (_, 1) => (a.values, [a.column_stride, a.row_stride], (b.values, b.row_stride)),
            (1, _) => (b.values, [b.row_stride, b.column_stride], (a.values, a.column_stride)),
            _ => return None,
        };
        let (is_of_rows, stride) = match [along, across] {
            [1, stride] => (true, stride),
            [stride, 1] => (false, stride),
            _ => return None,
        };
        // Short rows are as fast elsewhere.
        let is_worth_it = k > 0 && step == 1 && (!is_of_rows || k >= LANES);
        is_worth_it.then(|| Self { matrix, stride, vector: &vector[..k], is_of_rows })
    }

    /// out ← α·A·B + β·out, on so many threads at most. Without β what was there is not read.
    pub(super) fn compute(&self, alpha: f32, beta: f32, out: &mut [f32], threads: usize) {
        let (k, mut room) = (self.vector.len(), Vec::new());
        let [vector] = T::read([self.vector], &mut room);
        // Each thread has a part at least: of rows as many as are a share, of columns as long ones as there can be.
        let threads = if k * out.len() > MANY { threads } else { 1 };
        let of_thread = out.len().div_ceil(threads);
        let share = if self.is_of_rows {
            (SHARE / k).next_multiple_of(ROWS).max(ROWS).min(of_thread)
        } else {
            of_thread.next_multiple_of(LANES).min(COLUMNS)
        };
        each_with(out, share, threads, Vec::new, |room, number, out| {
            let put = |sum: f32, out: &mut f32| *out = alpha * sum + if beta == 0.0 { 0.0 } else { beta * *out };
            pulp::Arch::new().dispatch(Part { product: self, vector, first: number * share, room, out, put });
        });
    }
}

/// Some elements of the result, from one on: by the vector in f32, with room for what is made wide, and how a sum is put into its place.
struct Part<'a, T, P> {
    product: &'a Product<'a, T>,
    vector: &'a [f32],
    first: usize,
    room: &'a mut Vec<f32>,
    out: &'a mut [f32],
    put: P,
}

impl<T: Number, P: Fn(f32, &mut f32)> pulp::WithSimd for Part<'_, T, P> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        if self.product.is_of_rows {
            self.rows(simd);
        } else {
            // Sums that are not there need not be set to 0.
            if self.out.len() <= FEW_COLUMNS { self.columns::<S, FEW_COLUMNS>(simd) } else { self.columns::<S, COLUMNS>(simd) }
        }
    }
}

impl<T: Number, P: Fn(f32, &mut f32)> Part<'_, T, P> {
    #[inline(always)]
    fn rows<S: pulp::Simd>(self, simd: S) {
        let Self { product: &Product { matrix, stride, .. }, vector, first, room, out, put } = self;
        let row = |number: usize| &matrix[number * stride..][..vector.len()];
        let (blocks, rest) = out.as_chunks_mut::<ROWS>();
        let after = first + blocks.len() * ROWS;
        for (at, out) in (first..).step_by(ROWS).zip(blocks) {
            let sums = dots(simd, [row(at), row(at + 1), row(at + 2), row(at + 3)], vector, room);
            sums.iter().zip(out).for_each(|(&sum, out)| put(sum, out));
        }
        for (number, out) in (after..).zip(rest) {
            let [sum] = dots(simd, [row(number)], vector, room);
            put(sum, out);
        }
    }

    #[inline(always)]
    fn columns<S: pulp::Simd, const N: usize>(self, simd: S) {
        let Self { product: &Product { matrix, stride, .. }, vector, first, room, out, put } = self;
        let (mut sums, width) = ([0.0f32; N], out.len());
        let sums = &mut sums[..width];
        let row = |number: usize| &matrix[number * stride + first..][..width];
        let (blocks, rest) = vector.as_chunks::<ADDED>();
        for (number, by) in blocks.iter().enumerate() {
            add(simd, sums, std::array::from_fn::<_, ADDED, _>(|at| row(number * ADDED + at)), by, room);
        }
        for (number, by) in (blocks.len() * ADDED..).zip(rest) {
            add(simd, sums, [row(number)], &[*by], room);
        }
        for (&sum, out) in sums.iter().zip(out) {
            put(sum, out);
        }
    }
}

/// The sums of each row's products with as many numbers, in an order that depends on nothing but how many those are.
#[inline(always)]
fn dots<S: pulp::Simd, T: Number, const N: usize>(simd: S, rows: [&[T]; N], by: &[f32], room: &mut Vec<f32>) -> [f32; N] {
    let mut sums = [[simd.splat_f32s(0.0); SUMS]; N];
    let mut last = [simd.splat_f32s(0.0); N];
    for first in (0..by.len()).step_by(T::AT_ONCE) {
        let count = T::AT_ONCE.min(by.len() - first);
        let rows = T::read(rows.map(|row| &row[first..][..count]), room);
        let (by, by_rest) = S::as_simd_f32s(&by[first..][..count]);
        let (by_blocks, by_few) = by.as_chunks::<SUMS>();
        let blocks = rows.map(|row| &S::as_simd_f32s(row).0.as_chunks::<SUMS>().0[..by_blocks.len()]);
        for (at, by) in by_blocks.iter().enumerate() {
            for (sums, blocks) in sums.iter_mut().zip(blocks) {
                for ((sum, &value), &by) in sums.iter_mut().zip(&blocks[at]).zip(by) {
                    *sum = simd.mul_add_f32s(value, by, *sum);
                }
            }
        }
        if by_few.is_empty() && by_rest.is_empty() {
            continue;
        }
        for (last, row) in last.iter_mut().zip(rows) {
            let (row, rest) = S::as_simd_f32s(row);
            *last = simd.mul_f32s(simd.partial_load_f32s(rest), simd.partial_load_f32s(by_rest));
            for (&value, &by) in row.as_chunks::<SUMS>().1.iter().zip(by_few) {
                *last = simd.mul_add_f32s(value, by, *last);
            }
        }
    }
    let mut all = [0.0; N];
    for ((all, [a, b]), last) in all.iter_mut().zip(sums).zip(last) {
        *all = simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), last));
    }
    all
}

/// sums ← sums + Σ by·row, each row as long as those.
#[inline(always)]
fn add<S: pulp::Simd, T: Number, const N: usize>(simd: S, sums: &mut [f32], rows: [&[T]; N], by: &[f32; N], room: &mut Vec<f32>) {
    for (number, sums) in sums.chunks_mut(T::AT_ONCE).enumerate() {
        let rows = T::read(rows.map(|row| &row[number * T::AT_ONCE..][..sums.len()]), room);
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
}
