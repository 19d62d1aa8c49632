//! One product, natively: by the kernels of the `gemm` crate, or where they lie if they are small, each thread's blocks of C one after the other.
//!
//! ```text
//!                  B      columns of a block
//!              [ | | | ]
//!   rows [ ]   [0 2 4 6]    blocks beside one another have the same columns of B, which each packs anew:
//!      A [ ]   [1 3 5 7] C  the more rows it has, the less that counts
//! ```
//!
//! The crate adds up each element in an order that depends on k, and on whether the result is very small: blocks are not, and so the results are
//! the same bits however C is cut.

use std::cell::Cell;
use std::ops::Range;

use super::crew::{share, short};
use super::number::Number;
use super::scalar::Matrix;
use super::unpacked;

/// Multiplications for which a thread pays that looks out for work: some microseconds of them.
const EACH: usize = 1 << 17;
/// Multiplications from which it pays to wake them.
const LONG: usize = 1 << 22;
/// Rows and columns of which blocks are multiples: what the crate's kernels compute at once.
const ROWS: usize = 8;
const COLUMNS: usize = 16;
/// Columns of a block at least.
const LEAST_COLUMNS: usize = 48;
/// Above so many rows or columns, or so many elements, the crate computes as it does whatever is larger.
const FEW: usize = 64;
const FEW_ELEMENTS: usize = 256;
/// Elements of k that it adds up at once.
const DEPTH: usize = 512;
/// What it costs to pack an element of B, in multiplications.
const PACK: usize = 2;
/// What it costs to begin with a block, the same.
const BEGIN: usize = 20_000;
/// Columns of B that are made rows for a block, about; and where they lie otherwise, elements of each at once.
const SEEN_COLUMNS: usize = 128;
const TURNED_ROWS: usize = 32;
/// Elements of what a thread keeps for the next product: to ask the system for as many takes long.
const KEPT: usize = 1 << 20;

thread_local! {
    /// What operands are made of before they are multiplied.
    static ROOM: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// Does something with room for so many elements, whatever was in them.
pub(super) fn with_room<R>(elements: usize, run: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut room = ROOM.take();
    if room.len() < elements {
        room.resize(elements, 0.0);
    }
    let result = run(&mut room[..elements]);
    if room.len() <= KEPT {
        ROOM.set(room);
    }
    result
}

/// C ← A·B + β·C of m × k by k × n.
pub(super) struct Product<'a> {
    pub sizes: [usize; 3],
    pub a: Matrix<'a>,
    pub b: Matrix<'a>,
    /// Without it C is not read.
    pub beta: Option<f32>,
}

/// C, of which each thread writes blocks of its own.
struct Out {
    start: *mut f32,
    stride: usize,
}

impl Out {
    fn at(&self, element: usize) -> *mut f32 {
        self.start.wrapping_add(element)
    }
}

// SAFETY: blocks do not overlap, and C is borrowed alone for as long as they are written.
unsafe impl Sync for Out {}

/// How C is cut: its rows and its columns into so many parts.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    rows: usize,
    columns: usize,
}

impl Product<'_> {
    /// Computes C, whose rows are so far apart, on so many threads at most.
    pub(super) fn compute(&self, c: &mut [f32], stride: usize, threads: usize) {
        let [m, k, n] = self.sizes;
        if self.b.row_stride == 1 && m > 1 && k > 1 && n > 1 {
            // The crate would pack one number after the other.
            self.check(c.len(), stride);
            return self.compute_with(self.b, c, stride, threads);
        }
        self.with_threads(threads, |threads| self.compute_cut(c, stride, Cut::of(self.sizes, threads), threads));
    }

    /// The same with a B that `see` gives row by row, so many columns at a time and each time on one thread, whatever B is here. Blocks have all rows, or
    /// so many parts of them.
    pub(super) fn by_columns(
        &self,
        c: &mut [f32],
        stride: usize,
        width: usize,
        rows: usize,
        threads: usize,
        see: impl Fn(Range<usize>, &mut [f32]) + Sync,
    ) {
        let [m, k, n] = self.sizes;
        assert!((m - 1) * stride + n <= c.len(), "a product of {m} x {k} x {n} past its result");
        let threads = threads.min(m * k * n / EACH).max(1);
        let (out, cut) = (Out { start: c.as_mut_ptr(), stride }, Cut { rows, columns: 1 });
        share(threads, n.div_ceil(width) * rows, m * k * n >= LONG, |number| {
            let first = number / rows * width;
            let columns = first..(first + width).min(n);
            with_room(k * columns.len(), |seen| {
                see(columns.clone(), seen);
                let product = Product { sizes: [m, k, columns.len()], b: Matrix::new(seen, columns.len(), false), ..*self };
                product.check((m - 1) * stride + columns.len(), stride);
                // SAFETY: the operands were checked just now, and C with its columns before. No other block has these rows of them.
                unsafe { product.block(&Out { start: out.at(first), stride }, cut, number % rows) };
            });
        });
    }

    /// The same with another B than is here, of any numbers: so many columns at a time are made rows in f32 by whoever multiplies with them, while they
    /// are in the cache. C is cut into rows too where there are few columns for the threads.
    pub(super) fn compute_with<T: Number>(&self, b: Matrix<'_, T>, c: &mut [f32], stride: usize, threads: usize) {
        self.with_threads(threads, |threads| self.compute_wide(b, c, stride, threads));
    }

    fn compute_wide<T: Number>(&self, b: Matrix<'_, T>, c: &mut [f32], stride: usize, threads: usize) {
        let [m, _, n] = self.sizes;
        // Blocks that are as the whole is to the crate, however wide.
        let most = m / (FEW + 2 * ROWS);
        let least = if most > 0 { threads.min(n / LEAST_COLUMNS) } else { 1 };
        let mut width = n.div_ceil(n.div_ceil(SEEN_COLUMNS).max(least)).next_multiple_of(COLUMNS);
        while width < n && (1..COLUMNS).contains(&(n % width)) {
            width += COLUMNS;
        }
        let parts = if threads > 1 { (2 * threads).div_ceil(n.div_ceil(width)).min(most).max(1) } else { 1 };
        self.by_columns(c, stride, width, parts, threads, |columns, rows| {
            let count = columns.len();
            if b.column_stride == 1 {
                for (at, row) in rows.chunks_exact_mut(count).enumerate() {
                    T::widen(&b.values[at * b.row_stride..][columns.clone()], row);
                }
                return;
            }
            let mut room = Vec::new();
            for (at, rows) in rows.chunks_mut(TURNED_ROWS * count).enumerate() {
                let lines = &b.values[columns.start * b.column_stride + at * TURNED_ROWS..];
                let depth = rows.len() / count;
                T::turn(lines, b.column_stride, rows, [count, depth], &mut room);
            }
        });
    }

    /// Runs it with those that pay, of so many threads.
    fn with_threads(&self, threads: usize, run: impl FnOnce(usize)) {
        let [m, k, n] = self.sizes;
        let most = threads.min(m * k * n / EACH).max(1);
        if most > 1 && m * k * n < LONG { short(most, run) } else { run(most) }
    }

    fn compute_cut(&self, c: &mut [f32], stride: usize, cut: Cut, threads: usize) {
        let [m, k, n] = self.sizes;
        self.check(c.len(), stride);
        let out = Out { start: c.as_mut_ptr(), stride };
        // SAFETY: the operands and C reach as far, as was checked just now, and no two blocks have an element of C in common.
        share(threads, cut.rows * cut.columns, m * k * n >= LONG, |number| unsafe { self.block(&out, cut, number) });
    }

    /// Panics unless operands and a C of so many elements reach as far as the sizes and strides say.
    fn check(&self, c_elements: usize, stride: usize) {
        let [m, k, n] = self.sizes;
        let reach = |rows: usize, columns: usize, row_stride: usize, column_stride: usize| match (rows, columns) {
            (0, _) | (_, 0) => 0,
            _ => (rows - 1) * row_stride + (columns - 1) * column_stride + 1,
        };
        let (a, b) = (self.a, self.b);
        assert!(
            reach(m, k, a.row_stride, a.column_stride) <= a.values.len()
                && reach(k, n, b.row_stride, b.column_stride) <= b.values.len()
                && reach(m, n, stride, 1) <= c_elements
                && (m < 2 || stride >= n),
            "a product of {m} x {k} x {n} past its operands"
        );
    }

    /// # Safety
    /// The operands and C reach as far as the sizes and strides say, and nobody else has this block of C.
    unsafe fn block(&self, out: &Out, cut: Cut, number: usize) {
        let [m, k, n] = self.sizes;
        let (a, b) = (self.a, self.b);
        let ([i, i_end], [j, j_end]) = (part(m, cut.rows, number % cut.rows, ROWS), part(n, cut.columns, number / cut.rows, COLUMNS));
        if i == i_end || j == j_end {
            return;
        }
        let [rows, columns] = [i_end - i, j_end - j];
        // SAFETY: the caller's promise, and the block lies within them. Without β C is not read. Strides fit isize because slices do.
        unsafe {
            let start = out.start.add(i * out.stride + j);
            let block = unpacked::Product { sizes: [rows, k, columns], a: a.from(i, 0), b: b.from(0, j), out: start, stride: out.stride };
            if self.beta.is_none() && block.compute() {
                return;
            }
            gemm::gemm(
                rows,
                columns,
                k,
                start,
                1,
                out.stride as isize,
                self.beta.is_some(),
                block.a.values.as_ptr(),
                a.column_stride as isize,
                a.row_stride as isize,
                block.b.values.as_ptr(),
                b.column_stride as isize,
                b.row_stride as isize,
                self.beta.unwrap_or(0.0),
                1.0,
                false,
                false,
                false,
                gemm::Parallelism::None,
            );
        }
    }
}

/// Where a part of a length begins and ends, if it is cut into so many at multiples of some size.
fn part(length: usize, parts: usize, number: usize, size: usize) -> [usize; 2] {
    let edge = |number: usize| if number == parts { length } else { length * number / parts / size * size };
    [edge(number), edge(number + 1)]
}

impl Cut {
    const NONE: Self = Self { rows: 1, columns: 1 };

    /// The one that takes the least time on so many threads.
    fn of([m, k, n]: [usize; 3], threads: usize) -> Self {
        // What has one row or column is added up in another order.
        if threads < 2 || m < 2 || n < 2 {
            return Self::NONE;
        }
        // Blocks that are as the whole is to the crate.
        let is_deep = k > DEPTH && (m > FEW || n > FEW);
        let least_width = LEAST_COLUMNS.max(FEW_ELEMENTS / m + COLUMNS).max(if is_deep && m < FEW + 2 * ROWS { FEW + COLUMNS } else { 0 });
        let mut best = (usize::MAX, Self::NONE);
        for columns in 1..=(n / least_width).clamp(1, 2 * threads) {
            let width = n.div_ceil(columns);
            let least = (FEW_ELEMENTS / width + ROWS).max(if is_deep && n / columns < FEW + COLUMNS { FEW + 2 * ROWS } else { 0 });
            for more in [1, 2, 4] {
                let rows = (more * threads).div_ceil(columns).clamp(1, (m / least).max(1));
                let height = m.div_ceil(rows);
                let each = height * width * k + PACK * width * k + BEGIN;
                let takes = each * (rows * columns).div_ceil(threads);
                if takes < best.0 {
                    best = (takes, Self { rows, columns });
                }
            }
        }
        best.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, factor: u32) -> Vec<f32> {
        (0..count as u32).map(|at| (at.wrapping_mul(factor) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    #[test]
    fn the_bits_are_the_same_however_it_is_cut() {
        let sizes = [2, 7, 63, 65, 129, 200];
        let depths = [2, 100, 700];
        for (at, [m, n]) in sizes.into_iter().flat_map(|m| sizes.map(|n| [m, n])).enumerate() {
            for k in depths {
                let [turn_a, turn_b, reads] = [0, 1, 2].map(|bit| ((at + k) >> bit) & 1 != 0);
                let (a, b) = (numbers(m * k, 2_654_435_761), numbers(k * n, 1_640_531_527));
                let a = Matrix::new(&a, if turn_a { m } else { k }, turn_a);
                let b = Matrix::new(&b, if turn_b { k } else { n }, turn_b);
                let product = Product { sizes: [m, k, n], a, b, beta: reads.then_some(2.0) };
                let computed = |threads: usize| {
                    let mut found = numbers(m * n, 40_503);
                    if turn_b {
                        product.compute_with(b, &mut found, n, threads);
                    } else {
                        product.compute_cut(&mut found, n, Cut::of([m, k, n], threads), threads.min(2));
                    }
                    found
                };
                let whole = computed(1);
                for threads in [2, 16, 61] {
                    assert!(computed(threads) == whole, "{m} x {k} x {n}, turned: {turn_a} and {turn_b}, for {threads} threads");
                }
            }
        }
    }

    #[test]
    fn halves_are_multiplied_as_what_they_are_in_f32() {
        for ([m, k, n], turned) in
            [[2, 100, 300], [130, 67, 129], [7, 33, 16]].into_iter().flat_map(|sizes| [(sizes, false), (sizes, true)])
        {
            let (a, stride) = (numbers(m * k, 40_503), if turned { k + 3 } else { n + 3 });
            let halves: Vec<_> = numbers(k.max(n) * stride, 1_640_531_527).into_iter().map(half::f16::from_f32).collect();
            let wide: Vec<_> = halves.iter().map(|half| half.to_f32()).collect();
            let product = Product { sizes: [m, k, n], a: Matrix::new(&a, k, false), b: Matrix::new(&wide, stride, turned), beta: None };
            let (mut expected, mut found) = (vec![0.0; m * n], vec![0.0; m * n]);
            product.compute_with(product.b, &mut expected, n, 1);
            product.compute_with(Matrix::new(&halves, stride, turned), &mut found, n, 3);
            assert!(found == expected, "{m} x {k} x {n}, turned: {turned}");
            product.compute(&mut expected, n, 1);
            let is_near = |(x, y): (&f32, &f32)| (x - y).abs() <= 1e-6 * k as f32;
            assert!(found.iter().zip(&expected).all(is_near), "{m} x {k} x {n}, turned: {turned}");
        }
    }

    #[test]
    fn parts_are_all_there_is() {
        for (length, parts, size) in [(100, 3, 16), (7, 1, 16), (1000, 20, 48), (64, 8, 8)] {
            let edges: Vec<_> = (0..parts).map(|number| part(length, parts, number, size)).collect();
            assert_eq!([edges[0][0], edges[parts - 1][1]], [0, length]);
            assert!(edges.windows(2).all(|pair| pair[0][1] == pair[1][0]));
        }
    }

    #[test]
    fn threads_have_blocks_enough() {
        for ([m, k, n], threads) in
            [([512, 512, 512], 16), ([500, 500, 500], 16), ([2048, 2048, 64], 16), ([64, 1024, 4096], 16), ([256; 3], 2)]
        {
            let cut = Cut::of([m, k, n], threads);
            assert!(cut.rows * cut.columns >= threads, "{m} x {k} x {n} by {cut:?}");
        }
    }

    #[test]
    #[should_panic(expected = "past its operands")]
    fn operands_that_are_too_short_are_found() {
        let (a, b) = ([0.0; 5], [0.0; 6]);
        let product = Product { sizes: [2, 3, 2], a: Matrix::new(&a, 3, false), b: Matrix::new(&b, 2, false), beta: None };
        product.compute(&mut [0.0; 4], 2, 1);
    }
}
