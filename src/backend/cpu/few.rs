//! Products of a matrix with a few vectors, natively: rows of the one with columns of the other where the matrix lies along what is summed, which a
//! packed product would first have to turn. Each of its lines is read once.

use super::crew::each_with;
use super::number::Number;
use super::product::with_room;
use super::scalar::Matrix;

/// The most vectors with which it is quicker: rows, for which a packed product would turn the other operand, and columns.
const MOST_ROWS: usize = 24;
const MOST_COLUMNS: usize = 12;
/// The least numbers of a line, and of all of them.
const LEAST: usize = 256;
const LEAST_ELEMENTS: usize = 1 << 15;
/// Multiplications from which other threads pay: to wake one takes some microseconds.
const MANY: usize = 1 << 21;
/// Lines that are taken at once.
const LINES: usize = 4;
/// Numbers of vectors that leave lines some room in the first cache.
const CACHED: usize = 6 << 10;
/// Multiplications of the fewest lines that a thread takes at once: few, so that all end together.
const SHARE: usize = 1 << 14;

/// A matrix line by line, and vectors, of which element and vector are so far apart. An element of the result is so far from the next line's and the next
/// vector's.
pub(super) struct Product<'a, T> {
    matrix: &'a [T],
    stride: usize,
    lines: usize,
    vectors: &'a [T],
    steps: [usize; 2],
    k: usize,
    count: usize,
    places: [usize; 2],
}

impl<'a, T: Number> Product<'a, T> {
    /// A·B of such sizes where one of them is a few vectors and the other lies as it is to.
    pub(super) fn of([m, k, n]: [usize; 3], [a, b]: [Matrix<'a, T>; 2]) -> Option<Self> {
        let is_worth_it = |count: usize, most: usize, lines: usize| {
            (2..=most).contains(&count) && k >= LEAST && lines >= 4 * count && lines * k >= LEAST_ELEMENTS
        };
        if is_worth_it(m, MOST_ROWS, n) && b.row_stride == 1 {
            let steps = [a.column_stride, a.row_stride];
            Some(Self { matrix: b.values, stride: b.column_stride, lines: n, vectors: a.values, steps, k, count: m, places: [1, n] })
        } else if is_worth_it(n, MOST_COLUMNS, m) && a.column_stride == 1 {
            let steps = [b.row_stride, b.column_stride];
            Some(Self { matrix: a.values, stride: a.row_stride, lines: m, vectors: b.values, steps, k, count: n, places: [n, 1] })
        } else {
            None
        }
    }

    /// out ← A·B + β·out, on so many threads at most. Without β what was there is not read.
    pub(super) fn compute(&self, beta: Option<f32>, out: &mut [f32], threads: usize) {
        let &Self { lines, k, count, steps, places, .. } = self;
        with_room(count * (k + lines), |room| {
            let (vectors, sums) = room.split_at_mut(count * k);
            for (number, vector) in vectors.chunks_exact_mut(k).enumerate() {
                vector.iter_mut().enumerate().for_each(|(at, value)| *value = self.vectors[number * steps[1] + at * steps[0]].into());
            }
            let share = (SHARE / (count * k)).next_multiple_of(LINES).max(LINES);
            let threads = if count * k * lines < MANY { 1 } else { threads };
            each_with(sums, share * count, threads, Vec::new, |room, number, sums| {
                pulp::Arch::new().dispatch(Part { product: self, vectors, first: number * share, room, sums });
            });
            let put = |sum: f32, out: &mut f32| *out = sum + beta.map_or(0.0, |beta| beta * *out);
            for (line, sums) in sums.chunks_exact(count).enumerate() {
                sums.iter().enumerate().for_each(|(vector, &sum)| put(sum, &mut out[line * places[0] + vector * places[1]]));
            }
        });
    }
}

/// The sums of some lines, from one on, by line and by vector: vectors lie in f32 one behind the other, and there is room for what is made wide.
struct Part<'a, T> {
    product: &'a Product<'a, T>,
    vectors: &'a [f32],
    first: usize,
    room: &'a mut Vec<f32>,
    sums: &'a mut [f32],
}

impl<T: Number> pulp::WithSimd for Part<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self { product: &Product { matrix, stride, k, count, .. }, vectors, first, room, sums } = self;
        let line = |number: usize| &matrix[number * stride..][..k];
        let vectors = Vectors { all: vectors, k, count };
        for (sums, at) in sums.chunks_mut(LINES * count).zip((first..).step_by(LINES)) {
            if sums.len() == LINES * count {
                let lines = T::read([line(at), line(at + 1), line(at + 2), line(at + 3)], room);
                vectors.by_lines(simd, lines, sums);
            } else {
                for (sums, at) in sums.chunks_exact_mut(count).zip(at..) {
                    vectors.by::<S, 1, 1>(simd, T::read([line(at)], room), [0, count], sums);
                }
            }
        }
    }
}

/// So many vectors, one behind the other.
struct Vectors<'a> {
    all: &'a [f32],
    k: usize,
    count: usize,
}

impl Vectors<'_> {
    /// Their sums with so many lines, while these are in the first cache: by four vectors and two lines where the vectors are in it too, else by three
    /// and four, for which they are read half as often.
    #[inline(always)]
    fn by_lines<S: pulp::Simd>(&self, simd: S, lines: [&[f32]; LINES], sums: &mut [f32]) {
        let of_fours = if self.all.len() <= CACHED { self.count / 4 * 4 } else { 0 };
        for (pair, sums) in lines.as_chunks::<2>().0.iter().zip(sums.chunks_exact_mut(2 * self.count)) {
            self.by::<S, 2, 4>(simd, *pair, [0, of_fours], sums);
        }
        let of_threes = of_fours + (self.count - of_fours) / 3 * 3;
        self.by::<S, LINES, 3>(simd, lines, [of_fours, of_threes], sums);
        let of_pairs = of_threes + (self.count - of_threes) / 2 * 2;
        self.by::<S, LINES, 2>(simd, lines, [of_threes, of_pairs], sums);
        self.by::<S, LINES, 1>(simd, lines, [of_pairs, self.count], sums);
    }

    /// Those of N lines with the vectors from one to another, M at a time: in an order that depends on nothing but how long a line is.
    #[inline(always)]
    fn by<S: pulp::Simd, const N: usize, const M: usize>(&self, simd: S, lines: [&[f32]; N], [from, to]: [usize; 2], sums: &mut [f32]) {
        for first in (from..to).step_by(M) {
            let vectors: [&[f32]; M] = std::array::from_fn(|at| &self.all[(first + at) * self.k..][..self.k]);
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
    use half::f16;

    use super::*;

    fn computed<T: Number>(sizes: [usize; 3], operands: [Matrix<'_, T>; 2], beta: Option<f32>, c: &[f32], threads: usize) -> Vec<f32> {
        let mut out = c.to_vec();
        Product::of(sizes, operands).expect("a product of a few vectors").compute(beta, &mut out, threads);
        out
    }

    #[test]
    fn sums_are_right_and_the_same_bits_on_any_threads_and_from_halves() {
        let numbers = |count: usize| {
            let halves: Vec<_> = (0..count as u64).map(|at| f16::from_f32(crate::random::element(count as u64, at))).collect();
            let wide: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
            (halves, wide)
        };
        for (case, [m, k, n]) in
            [[2, 260, 131], [3, 301, 997], [7, 2050, 1030], [24, 256, 200], [130, 259, 5], [611, 1024, 12]].into_iter().enumerate()
        {
            let (turns, gap, beta) = (case % 2 == 1, case, (case % 3 == 0).then_some(2.0));
            let is_wide = m < n;
            let (a_stride, b_stride) = (if is_wide && turns { m } else { k } + gap, if is_wide || turns { k } else { n } + gap);
            let [(a_halves, a), (b_halves, b), (_, c)] = [m.max(k) * a_stride, n.max(k) * b_stride, m * n].map(numbers);
            let operands = [Matrix::new(&a, a_stride, is_wide && turns), Matrix::new(&b, b_stride, is_wide || turns)];
            let halves = [Matrix::new(&a_halves, a_stride, is_wide && turns), Matrix::new(&b_halves, b_stride, is_wide || turns)];
            let found = computed([m, k, n], operands, beta, &c, 1);
            for threads in [1, 2, 16] {
                assert!(computed([m, k, n], operands, beta, &c, threads) == found, "{m} x {k} x {n}");
                assert!(computed([m, k, n], halves, beta, &c, threads) == found, "{m} x {k} x {n} of halves");
            }
            for (at, found) in found.into_iter().enumerate() {
                let [i, j] = [at / n, at % n];
                let term = |p: usize| {
                    let [a, b] = operands;
                    f64::from(a.values[i * a.row_stride + p * a.column_stride])
                        * f64::from(b.values[p * b.row_stride + j * b.column_stride])
                };
                let expected = (0..k).map(term).sum::<f64>() + f64::from(beta.unwrap_or(0.0)) * f64::from(c[at]);
                // Narrow vectors add more terms one after another.
                let most = 1e-6 * (1.0 + (0..k).map(|p| term(p).abs()).sum::<f64>());
                assert!((f64::from(found) - expected).abs() < most, "{m} x {k} x {n} at {i}, {j}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn what_lies_otherwise_is_left() {
        let (a, b) = (vec![1.0f32; 4 * 512], vec![1.0; 512 * 512]);
        let is_taken =
            |m: usize, turned: bool| Product::of([m, 512, 512], [Matrix::new(&a, 512, false), Matrix::new(&b, 512, turned)]).is_some();
        assert!(is_taken(4, true) && !is_taken(4, false) && !is_taken(1, true));
    }
}
