//! Products of a matrix with a few vectors, natively: rows of the one with columns of the other where the matrix lies along what is summed, which a
//! packed product would first have to turn. Each of its lines is read once.

use super::crew::each;
use super::product::{self, with_room};
use super::scalar::Matrix;

/// The most vectors with which it is quicker: rows, for which a packed product would turn the other operand, and columns.
const MOST_ROWS: usize = 24;
const MOST_COLUMNS: usize = 12;
/// The least numbers of a line, and of all of them.
const LEAST: usize = 256;
const LEAST_ELEMENTS: usize = 1 << 15;
/// Lines that are taken at once with two vectors and with four.
const LINES: [usize; 2] = [4, 2];
/// Multiplications of the fewest lines that a thread takes at once: few, so that all end together.
const SHARE: usize = 1 << 14;

/// out ← A·B + β·out where one of them is a few vectors and the other lies as it is to; else false, and nothing is done.
pub(super) fn multiplied([m, k, n]: [usize; 3], [a, b]: [Matrix<'_>; 2], beta: Option<f32>, out: &mut [f32], threads: usize) -> bool {
    let is_worth_it = |count: usize, most: usize, lines: usize| {
        (2..=most).contains(&count) && k >= LEAST && lines >= 4 * count && lines * k >= LEAST_ELEMENTS
    };
    // Lines of the matrix; and the vectors by element and by vector. An element of the result is so far from the next line's and the next vector's.
    let (matrix, stride, lines, x, steps, count, places) = if is_worth_it(m, MOST_ROWS, n) && b.row_stride == 1 {
        (b.values, b.column_stride, n, a.values, [a.column_stride, a.row_stride], m, [1, n])
    } else if is_worth_it(n, MOST_COLUMNS, m) && a.column_stride == 1 {
        (a.values, a.row_stride, m, b.values, [b.row_stride, b.column_stride], n, [n, 1])
    } else {
        return false;
    };
    with_room(count * (k + lines), |room| {
        let (vectors, sums) = room.split_at_mut(count * k);
        for (number, vector) in vectors.chunks_exact_mut(k).enumerate() {
            vector.iter_mut().enumerate().for_each(|(at, value)| *value = x[number * steps[1] + at * steps[0]]);
        }
        let few = Few { matrix, stride, vectors, count };
        let share = (SHARE / (count * k)).next_multiple_of(LINES[0]).max(LINES[0]);
        let threads = if m * k * n < product::MANY { 1 } else { threads };
        each(sums, share * count, threads, |number, sums| pulp::Arch::new().dispatch(Part(&few, number * share, sums)));
        let put = |sum: f32, out: &mut f32| *out = sum + beta.map_or(0.0, |beta| beta * *out);
        for (line, sums) in sums.chunks_exact(count).enumerate() {
            sums.iter().enumerate().for_each(|(vector, &sum)| put(sum, &mut out[line * places[0] + vector * places[1]]));
        }
    });
    true
}

/// A matrix line by line, and vectors one behind the other.
struct Few<'a> {
    matrix: &'a [f32],
    stride: usize,
    vectors: &'a [f32],
    count: usize,
}

/// The sums of some lines, from one on, by line and by vector.
struct Part<'a>(&'a Few<'a>, usize, &'a mut [f32]);

impl pulp::WithSimd for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self(few, first, sums) = self;
        let mut line = first;
        for sums in sums.chunks_mut(LINES[0] * few.count) {
            if sums.len() == LINES[0] * few.count {
                few.lines(simd, line, sums);
            } else {
                sums.chunks_exact_mut(few.count).zip(line..).for_each(|(sums, line)| few.sums::<S, 1, 1>(simd, line, 0, few.count, sums));
            }
            line += LINES[0];
        }
    }
}

impl Few<'_> {
    /// Of so many lines: while they are in the first cache, four vectors at a time and what is left.
    #[inline(always)]
    fn lines<S: pulp::Simd>(&self, simd: S, line: usize, sums: &mut [f32]) {
        let of_fours = self.count / 4 * 4;
        for (at, sums) in sums.chunks_exact_mut(LINES[1] * self.count).enumerate() {
            self.sums::<S, 2, 4>(simd, line + at * LINES[1], 0, of_fours, sums);
        }
        let left = self.count - of_fours;
        let of_pairs = of_fours + left / 2 * 2;
        self.sums::<S, 4, 2>(simd, line, of_fours, of_pairs, sums);
        self.sums::<S, 4, 1>(simd, line, of_pairs, self.count, sums);
    }

    /// Those of N lines with the vectors from one to another, M at a time: in an order that depends on nothing but how long a line is.
    #[inline(always)]
    fn sums<S: pulp::Simd, const N: usize, const M: usize>(&self, simd: S, line: usize, from: usize, to: usize, sums: &mut [f32]) {
        let k = self.vectors.len() / self.count;
        let lines: [&[f32]; N] = std::array::from_fn(|at| &self.matrix[(line + at) * self.stride..][..k]);
        for first in (from..to).step_by(M) {
            let vectors: [&[f32]; M] = std::array::from_fn(|at| &self.vectors[(first + at) * k..][..k]);
            let found = dots(simd, lines, vectors);
            for (sums, found) in sums.chunks_exact_mut(self.count).zip(found) {
                sums[first..first + M].copy_from_slice(&found);
            }
        }
    }
}

/// The sums of the products of each of some lines with each of some vectors.
#[inline(always)]
fn dots<S: pulp::Simd, const N: usize, const M: usize>(simd: S, lines: [&[f32]; N], vectors: [&[f32]; M]) -> [[f32; M]; N] {
    let length = S::as_simd_f32s(lines[0]).0.len();
    let blocks = lines.map(|line| &S::as_simd_f32s(line).0[..length]);
    let by = vectors.map(|vector| &S::as_simd_f32s(vector).0[..length]);
    let mut sums = [[simd.splat_f32s(0.0); M]; N];
    for at in 0..length {
        let by = by.map(|by| by[at]);
        for (sums, block) in sums.iter_mut().zip(blocks) {
            for (sum, by) in sums.iter_mut().zip(by) {
                *sum = simd.mul_add_f32s(block[at], by, *sum);
            }
        }
    }
    let by = vectors.map(|vector| simd.partial_load_f32s(S::as_simd_f32s(vector).1));
    let mut all = [[0.0; M]; N];
    for ((all, sums), line) in all.iter_mut().zip(sums).zip(lines) {
        let rest = simd.partial_load_f32s(S::as_simd_f32s(line).1);
        for ((all, sum), by) in all.iter_mut().zip(sums).zip(by) {
            *all = simd.reduce_sum_f32s(simd.mul_add_f32s(rest, by, sum));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_right_and_the_same_bits_on_any_threads() {
        let number = |at: usize| ((at as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 23) as f32 - 1.0;
        let numbers = |count: usize| (0..count).map(number).collect::<Vec<_>>();
        for (case, [m, k, n]) in
            [[2, 260, 131], [3, 301, 997], [7, 2050, 1030], [24, 256, 200], [130, 259, 5], [611, 1024, 12]].into_iter().enumerate()
        {
            let (turns, gap, beta) = (case % 2 == 1, case, (case % 3 == 0).then_some(2.0));
            let is_wide = m < n;
            let (a_stride, b_stride) = (if is_wide && turns { m } else { k } + gap, if is_wide || turns { k } else { n } + gap);
            let (a, b, c) = (numbers((m.max(k)) * a_stride), numbers(n.max(k) * b_stride), numbers(m * n));
            let operands = [Matrix::new(&a, a_stride, is_wide && turns), Matrix::new(&b, b_stride, is_wide || turns)];
            let computed = |threads: usize| {
                let mut out = c.clone();
                assert!(multiplied([m, k, n], operands, beta, &mut out, threads), "{m} x {k} x {n}");
                out
            };
            let found = computed(1);
            assert!([2, 16].iter().all(|&threads| computed(threads) == found), "{m} x {k} x {n}");
            for (at, found) in found.into_iter().enumerate() {
                let [i, j] = [at / n, at % n];
                let term = |p: usize| {
                    let [a, b] = operands;
                    f64::from(a.values[i * a.row_stride + p * a.column_stride])
                        * f64::from(b.values[p * b.row_stride + j * b.column_stride])
                };
                let expected = (0..k).map(term).sum::<f64>() + f64::from(beta.unwrap_or(0.0)) * f64::from(c[at]);
                assert!((f64::from(found) - expected).abs() < 1e-7 * k as f64, "{m} x {k} x {n} at {i}, {j}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn what_lies_otherwise_is_left() {
        let (a, b) = (vec![1.0; 4 * 512], vec![1.0; 512 * 512]);
        let is_taken = |m: usize, turned: bool| {
            multiplied([m, 512, 512], [Matrix::new(&a, 512, false), Matrix::new(&b, 512, turned)], None, &mut vec![0.0; m * 512], 1)
        };
        assert!(is_taken(4, true) && !is_taken(4, false) && !is_taken(1, true));
    }
}
