//! Products of a matrix of 8-bit integers with one or a few vectors: it is read once as it lies, where a packed product would write it anew.

use super::Lines;
use crate::backend::cpu::crew::each_with;

/// The most vectors with which it is quicker.
const MOST: usize = 8;
/// The least elements of a line that lies along it: shorter ones are as fast elsewhere.
const LEAST: usize = 64;
/// Elements of the matrix from which other threads pay.
const MANY: usize = 1 << 17;
/// Elements of the fewest lines that a thread takes at once: few, so that all end together.
const SHARE: usize = 1 << 14;
/// Lines that are summed beside one another, and those of multiples of which shares are.
const BESIDE: usize = 2048;
const LANES: usize = 64;
/// Elements of each that are added at once.
const ADDED: usize = 4;

/// A matrix by lines, and vectors one behind the other, whose zero points are taken.
struct Product<'a> {
    matrix: Lines<'a>,
    vectors: Vec<i16>,
    k: usize,
    count: usize,
}

/// out ← op(A)·op(B), modulo 2³², where one of them has few lines, on so many threads at most; else false, and nothing is done.
pub(in super::super) fn multiplied([m, k, n]: [usize; 3], [a, b]: [Lines<'_>; 2], out: &mut [i32], threads: usize) -> bool {
    let is_few = |count: usize, lines: usize, matrix: &Lines<'_>| {
        count <= MOST && lines >= 4 * count && k >= if matrix.k_stride == 1 { LEAST } else { 1 }
    };
    // An element of the result is so far from the next line's and the next vector's.
    let (matrix, lines, of, count, places) = if is_few(m, n, &b) {
        (b, n, a, m, [1, n])
    } else if is_few(n, m, &a) {
        (a, m, b, n, [n, 1])
    } else {
        return false;
    };
    let vectors = (0..count * k).map(|at| of.at(at / k, at % k) as i16).collect();
    let product = Product { matrix, vectors, k, count };
    let threads = if lines * k < MANY { 1 } else { threads };
    let share = if matrix.k_stride == 1 { (SHARE / k).max(1) } else { lines.div_ceil(threads).next_multiple_of(LANES).min(BESIDE) };
    let compute = |sums: &mut [i32]| {
        sums.fill(0);
        each_with(sums, share * count, threads, Vec::new, |room, number, sums| {
            pulp::Arch::new().dispatch(Part { product: &product, first: number * share, room, sums });
        });
    };
    if count == 1 {
        compute(out);
        return true;
    }
    let mut sums = vec![0; lines * count];
    compute(&mut sums);
    for (number, sums) in sums.chunks(share * count).enumerate() {
        for (vector, sums) in sums.chunks_exact(sums.len() / count).enumerate() {
            for (line, &sum) in (number * share..).zip(sums) {
                out[line * places[0] + vector * places[1]] = sum;
            }
        }
    }
    true
}

/// The sums of some lines, from one on, vector by vector, with room for a line's numbers.
struct Part<'a> {
    product: &'a Product<'a>,
    first: usize,
    room: &'a mut Vec<i16>,
    sums: &'a mut [i32],
}

impl pulp::WithSimd for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        if self.product.matrix.k_stride == 1 {
            self.along();
        } else {
            self.across();
        }
    }
}

impl Part<'_> {
    /// Line by line.
    #[inline(always)]
    fn along(self) {
        let Self { product: &Product { matrix, ref vectors, k, count }, first, room, sums } = self;
        let width = sums.len() / count;
        room.resize(k, 0);
        for line in 0..width {
            let bytes = &matrix.bytes[(first + line) * matrix.line_stride..][..k];
            room.iter_mut().zip(bytes).for_each(|(number, &byte)| *number = i16::from(byte ^ matrix.flip) - matrix.bias);
            for (vector, sum) in vectors.chunks_exact(k).zip(sums[line..].iter_mut().step_by(width)) {
                let terms = room.iter().zip(vector).map(|(&x, &y)| i32::from(x) * i32::from(y));
                *sum = terms.fold(0, i32::wrapping_add);
            }
        }
    }

    /// Some elements of all lines after one another.
    #[inline(always)]
    fn across(self) {
        let Self { product: &Product { matrix, ref vectors, k, count }, first, sums, .. } = self;
        let width = sums.len() / count;
        for p in (0..k).step_by(ADDED) {
            // What is left is read again, and counts as 0.
            let rows: [&[u8]; ADDED] = std::array::from_fn(|at| &matrix.bytes[(p + at).min(k - 1) * matrix.k_stride + first..][..width]);
            let by = |vector: usize| std::array::from_fn(|at| if p + at < k { i32::from(vectors[vector * k + p + at]) } else { 0 });
            for (vector, sums) in sums.chunks_exact_mut(width).enumerate() {
                add(rows, matrix.flip, by(vector), sums);
            }
        }
        for (sums, vector) in sums.chunks_exact_mut(width).zip(vectors.chunks_exact(k)) {
            let excess = vector.iter().fold(0i32, |sum, &x| sum.wrapping_add(i32::from(x) * i32::from(matrix.bias)));
            sums.iter_mut().for_each(|sum| *sum = sum.wrapping_sub(excess));
        }
    }
}

/// sums ← sums + Σ by·row, each row as long as those.
#[inline(always)]
fn add(rows: [&[u8]; ADDED], flip: u8, by: [i32; ADDED], sums: &mut [i32]) {
    let rows = rows.map(|row| &row[..sums.len()]);
    for (at, sum) in sums.iter_mut().enumerate() {
        *sum = rows.iter().zip(by).fold(*sum, |sum, (row, by)| sum.wrapping_add(i32::from(row[at] ^ flip) * by));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{plain, tests::bytes};
    use super::*;

    #[test]
    fn sums_are_those_of_the_plain_loops_however_both_lie() {
        for ([m, k, n], bits) in [[1, 1, 4], [1, 67, 300], [3, 130, 2100], [8, 1001, 70], [5000, 64, 1], [40, 129, 7]]
            .into_iter()
            .flat_map(|sizes| (0..16).map(move |bits| (sizes, bits)))
        {
            let yes = |bit: u32| bits >> bit & 1 == 1;
            let zero = |signed: bool, other: bool| i16::from(other) * if signed { -128 } else { 255 };
            let (x, y) = (bytes(m * k, 1), bytes(k * n, 2));
            let a = Lines::new(&x, yes(0), zero(yes(0), yes(3)), if yes(2) { [1, m] } else { [k, 1] });
            let b = Lines::new(&y, yes(1), zero(yes(1), yes(2)), if yes(3) { [k, 1] } else { [1, n] });
            let mut expected = vec![7; m * n];
            plain([m, k, n], a, b, &mut expected);
            for threads in [1, 3] {
                let mut found = vec![-1; m * n];
                let is_taken = multiplied([m, k, n], [a, b], &mut found, threads);
                let lies_along = if m < n { yes(3) } else { !yes(2) };
                assert!(is_taken == (k >= LEAST || !lies_along), "{m} x {k} x {n}");
                assert!(!is_taken || found == expected, "{m} x {k} x {n} {bits:04b} on {threads} threads");
            }
        }
    }
}
