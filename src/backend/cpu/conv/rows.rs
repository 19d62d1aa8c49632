//! Rows of a result by vectors: the sums of some neighbours stay in registers until all taps are added to them. In the order of plain code, so that
//! the result is the same to the last bit.

use std::ops::Range;

use super::{Conv, steps_inside};
use crate::backend::cpu::crew::each;
use crate::ops::conv::Problem;

/// Products of a share of the work: some tens of microseconds.
const SHARE: usize = 1 << 18;
/// Elements that a share is a multiple of, where it is part of a row.
const LINE: usize = 128;
/// Products from which other threads are worth waking.
const MANY: usize = 1 << 20;
/// Vectors of sums at once: as many as registers hold beside what is added, or fewer where fewer neighbours are left.
const MOST_VECTORS: usize = 8;
const SOME_VECTORS: usize = 4;
const FEW_VECTORS: usize = 2;
/// Elements of a row with all their taps from which vectors pay, where they are most of it.
const LEAST: usize = 32;
/// Lines that the taps of an element see, of which more are too far apart to be in the first cache.
const MOST_LINES: u64 = 32;

impl Conv<'_> {
    /// All filters of an item, on so many threads.
    pub(super) fn by_rows(&self, item: usize, out: &mut [f32], threads: usize) {
        let Problem { windows: [y, x], channels, .. } = self.problem;
        let inside = (0..x.taps).map(|tap| steps_inside(&x, tap));
        let whole = inside.reduce(|whole, steps| whole.start.max(steps.start)..whole.end.min(steps.end)).unwrap_or_default();
        let whole = whole.start as usize..whole.end.max(whole.start) as usize;
        let (row, terms, lines) = (x.steps as usize, self.problem.terms() as usize, u64::from(channels) * u64::from(y.taps));
        let threads = if out.len() * terms > MANY { threads } else { 1 };
        if x.stride > 1 || whole.len() < LEAST.max(row - row / 8) || lines > MOST_LINES {
            let of_filter = (self.problem.positions() as usize).max(1);
            return each(out, of_filter, threads, |filter, out| self.filter(item, filter, out));
        }
        let (image, filters) = self.operands(item);
        let rows = Rows { conv: self, item, image, filters, whole };
        let arch = pulp::Arch::new();
        let share = (SHARE / terms).max(1).next_multiple_of(LINE);
        if row > share {
            for (at, out) in out.chunks_exact_mut(row).enumerate() {
                each(out, share, threads, |number, out| arch.dispatch(Part { rows: &rows, at, first: number * share, out }));
            }
        } else {
            let together = share / row;
            each(out, together * row, threads, |number, out| arch.dispatch(Part { rows: &rows, at: number * together, first: 0, out }));
        }
    }
}

/// The rows of an item.
struct Rows<'a> {
    conv: &'a Conv<'a>,
    item: usize,
    image: &'a [f32],
    filters: &'a [f32],
    /// The steps along a row at which all taps are within the input.
    whole: Range<usize>,
}

/// Rows from that number on, or a part of one, from a step on.
struct Part<'a> {
    rows: &'a Rows<'a>,
    at: usize,
    first: usize,
    out: &'a mut [f32],
}

impl pulp::WithSimd for Part<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self { rows, at, first, out } = self;
        let [y, x] = rows.conv.problem.windows;
        let terms = rows.conv.problem.terms() as usize;
        for (at, out) in (at..).zip(out.chunks_mut(x.steps as usize)) {
            let (filter, step) = (at / y.steps as usize, (at % y.steps as usize) as u32);
            let taps = y.inside(step);
            let line = if taps.is_empty() { 0 } else { y.place(step, taps.start) };
            let row = Row { rows, weights: &rows.filters[filter * terms..][..terms], taps, line };
            row.compute(simd, first, out);
            rows.conv.finish(rows.item, filter, out);
        }
    }
}

/// A row of a filter.
struct Row<'a> {
    rows: &'a Rows<'a>,
    weights: &'a [f32],
    /// The taps down its columns that are within the input, and the line that the first of them is at.
    taps: Range<u32>,
    line: usize,
}

impl Row<'_> {
    /// Its steps from one on.
    #[inline(always)]
    fn compute<S: pulp::Simd>(&self, simd: S, first: usize, out: &mut [f32]) {
        let (x, whole, end) = (self.rows.conv.problem.windows[1], &self.rows.whole, first + out.len());
        let least = FEW_VECTORS * S::F32_LANES;
        let whole = whole.start.clamp(first, end)..whole.end.clamp(first, end);
        let whole = if whole.len() >= least { whole } else { first..first };
        let (before, rest) = out.split_at_mut(whole.start - first);
        let (near, behind) = rest.split_at_mut(whole.len());
        for (first, out) in [(first, before), (whole.end, behind)] {
            out.iter_mut().zip(first as u32..).for_each(|(out, step)| *out = self.single(step));
        }
        let mut begin = 0;
        while begin < near.len() {
            let left = (near.len() - begin) / S::F32_LANES;
            // The last of them once more, where fewer are left.
            begin = begin.min(near.len() - least);
            let (place, near) = (x.place((whole.start + begin) as u32, 0), &mut near[begin..]);
            begin += match left {
                MOST_VECTORS.. => self.near::<S, MOST_VECTORS>(simd, place, near),
                SOME_VECTORS.. => self.near::<S, SOME_VECTORS>(simd, place, near),
                _ => self.near::<S, FEW_VECTORS>(simd, place, near),
            };
        }
    }

    /// Does something with the lines that its taps see, those of each channel, and with the weights along each.
    #[inline(always)]
    fn each_line(&self, mut run: impl FnMut(&[f32], &[f32])) {
        let Problem { windows: [y, x], channels, .. } = self.rows.conv.problem;
        let [columns, along, dilation] = [x.input, x.taps, y.dilation].map(|size| size as usize);
        for channel in 0..channels as usize {
            let mut line = (channel * y.input as usize + self.line) * columns;
            for tap in self.taps.clone() {
                let weights = (channel * y.taps as usize + tap as usize) * along;
                run(&self.rows.image[line..][..columns], &self.weights[weights..][..along]);
                line += dilation * columns;
            }
        }
    }

    /// The first neighbours of some, as many as so many vectors hold, of whose taps the first along the row are from a place on, and none is past an end
    /// of it. Gives how many they are.
    #[inline(always)]
    fn near<S: pulp::Simd, const N: usize>(&self, simd: S, place: usize, out: &mut [f32]) -> usize {
        let dilation = self.rows.conv.problem.windows[1].dilation as usize;
        let mut sums = [simd.splat_f32s(0.0); N];
        self.each_line(|line, weights| {
            for (at, weight) in weights.iter().enumerate() {
                let (near, _) = S::as_simd_f32s(&line[place + at * dilation..]);
                let weight = simd.splat_f32s(*weight);
                for (sum, near) in sums.iter_mut().zip(&near[..N]) {
                    *sum = simd.add_f32s(*sum, simd.mul_f32s(weight, *near));
                }
            }
        });
        S::as_mut_simd_f32s(out).0[..N].copy_from_slice(&sums);
        N * S::F32_LANES
    }

    /// One element, some of whose taps may be past an end of the row.
    #[inline(always)]
    fn single(&self, step: u32) -> f32 {
        let x = self.rows.conv.problem.windows[1];
        let inside = x.inside(step);
        let (mut sum, place) = (0.0, if inside.is_empty() { 0 } else { x.place(step, inside.start) });
        self.each_line(|line, weights| {
            let weights = &weights[inside.start as usize..inside.end as usize];
            for (at, weight) in weights.iter().enumerate() {
                sum += weight * line[place + at * x.dilation as usize];
            }
        });
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::ops::matmul::Activation;
    use crate::ops::window::Window;
    use crate::random;

    fn window(input: u32, taps: u32, [stride, dilation]: [u32; 2], [before, after]: [u32; 2]) -> Window {
        let steps = (before + input + after - (taps - 1) * dilation - 1) / stride + 1;
        Window { input, taps, stride, dilation, before, after, steps }
    }

    #[test]
    fn rows_are_those_of_plain_code_to_the_last_bit() {
        let plain = [1, 1];
        let cases = [
            (1, 1, [Window::ONE, window(300_000, 31, plain, [0, 0])]),
            (1, 1, [Window::ONE, window(262_300, 262_200, plain, [0, 0])]),
            (2, 1, [Window::ONE, window(1000, 7, [1, 5], [9, 15])]),
            (3, 2, [window(57, 3, plain, [1, 1]), window(54, 3, plain, [1, 1])]),
            (1, 3, [window(9, 5, [1, 2], [4, 4]), window(200, 4, [1, 3], [7, 2])]),
            (3, 40, [window(20, 3, plain, [1, 1]), window(70, 3, plain, [1, 1])]),
            (2, 2, [window(30, 3, [2, 1], [1, 1]), window(61, 3, [2, 1], [1, 1])]),
            (1, 1, [window(5, 5, plain, [4, 4]), window(5, 5, plain, [4, 4])]),
        ];
        for (filters, channels, windows) in cases {
            let problem = Problem {
                batch: 1,
                groups: 2,
                channels,
                filters,
                windows,
                dtype: DType::F32,
                bias: true,
                activation: Some(Activation::Relu),
            };
            let [images, weights] =
                [problem.pixels(), u64::from(filters) * windows.iter().map(|window| u64::from(window.taps)).product::<u64>()]
                    .map(|each| random::matrix((2 * u64::from(channels) * each) as usize, each));
            let conv = Conv { problem, images: &images, filters: &weights, bias: &random::matrix(2 * filters as usize, 3) };
            for (item, threads) in [(0, 1), (1, 2), (1, 7)] {
                let [mut plain, mut rows] = [f32::NAN, f32::INFINITY].map(|nothing| vec![nothing; conv.item_elements()]);
                conv.direct(item, &mut plain);
                conv.by_rows(item, &mut rows, threads);
                assert!(plain.iter().map(|x| x.to_bits()).eq(rows.iter().map(|x| x.to_bits())), "{problem:?} on {threads} threads");
            }
        }
    }
}
