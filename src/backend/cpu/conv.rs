//! Convolution on the CPU: rows of a result one tap at a time, natively all taps of some neighbours at a time (`rows.rs`), or, where many filters
//! read the same, a product with what windows see, some positions of it in memory at once.

#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
mod rows;

use std::ops::Range;

#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
use super::product::Product;
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
use super::scalar::Matrix;
use crate::ops::conv::Problem;
use crate::ops::window::Window;

/// A convolution with what it reads, of f32.
pub(super) struct Conv<'a> {
    pub problem: Problem,
    pub images: &'a [f32],
    pub filters: &'a [f32],
    /// A number for each filter, or none.
    pub bias: &'a [f32],
}

/// Elements of what windows see that are in memory at once: they are to stay in the cache.
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
const SEEN_ELEMENTS: usize = 1 << 16;
/// Positions of a block at least.
#[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
const LEAST_POSITIONS: usize = 64;

/// Filters below which a product does not pay.
#[cfg(any(feature = "simd", target_arch = "wasm32"))]
const FEW: u32 = 4;

impl Conv<'_> {
    /// Elements of the result for one group of one image.
    pub(super) fn item_elements(&self) -> usize {
        self.problem.filters as usize * self.problem.positions() as usize
    }

    /// The image that an item reads, channel by channel.
    fn image(&self, item: usize) -> &[f32] {
        let elements = self.problem.channels as usize * self.problem.pixels() as usize;
        &self.images[item * elements..][..elements]
    }

    /// The same, and its filters.
    fn operands(&self, item: usize) -> (&[f32], &[f32]) {
        let elements = self.problem.filters as usize * self.problem.terms() as usize;
        (self.image(item), &self.filters[item % self.problem.groups as usize * elements..][..elements])
    }

    /// Adds the bias of a filter of an item and applies the activation.
    fn finish(&self, item: usize, filter: usize, out: &mut [f32]) {
        let first = item % self.problem.groups as usize * self.problem.filters as usize;
        if let Some(bias) = self.bias.get(first + filter) {
            out.iter_mut().for_each(|x| *x += bias);
        }
        if let Some(activation) = self.problem.activation {
            out.iter_mut().for_each(|x| *x = activation.apply(f64::from(*x)) as f32);
        }
    }

    /// The same of all of them.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn finish_all(&self, item: usize, out: &mut [f32]) {
        for (filter, out) in out.chunks_exact_mut((self.problem.positions() as usize).max(1)).enumerate() {
            self.finish(item, filter, out);
        }
    }

    /// A filter of an item, row by row.
    fn filter(&self, item: usize, filter: usize, out: &mut [f32]) {
        let Problem { windows: [y, x], .. } = self.problem;
        let ((image, filters), terms) = (self.operands(item), self.problem.terms() as usize);
        let filter_taps = &filters[filter * terms..][..terms];
        let (pixels, taps) = (self.problem.pixels() as usize, (y.taps * x.taps) as usize);
        let inside: Vec<_> = (0..x.taps).map(|tap| steps_inside(&x, tap)).collect();
        out.fill(0.0);
        for (step, row) in (0..y.steps).zip(out.chunks_exact_mut(x.steps as usize)) {
            for (channel, weights) in image.chunks_exact(pixels).zip(filter_taps.chunks_exact(taps)) {
                for i in y.inside(step) {
                    let from = &channel[y.place(step, i) * x.input as usize..][..x.input as usize];
                    for j in 0..x.taps {
                        let steps = inside[j as usize].clone();
                        let weight = weights[(i * x.taps + j) as usize];
                        let (Some(to), Some(first)) =
                            (row.get_mut(steps.start as usize..steps.end as usize), from.get(x_place(&x, &steps, j)..))
                        else {
                            continue;
                        };
                        if x.stride == 1 {
                            to.iter_mut().zip(first).for_each(|(sum, value)| *sum += weight * value);
                        } else {
                            to.iter_mut().zip(first.iter().step_by(x.stride as usize)).for_each(|(sum, value)| *sum += weight * value);
                        }
                    }
                }
            }
        }
        self.finish(item, filter, out);
    }

    /// All filters of an item, in plain code.
    pub(super) fn direct(&self, item: usize, out: &mut [f32]) {
        for (filter, out) in out.chunks_exact_mut((self.problem.positions() as usize).max(1)).enumerate() {
            self.filter(item, filter, out);
        }
    }

    /// Whether products pay: filters, of which there are enough, by what windows see.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn pays_by_products(&self) -> bool {
        self.problem.filters >= FEW
    }

    /// Whether windows see the image as it lies.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn is_plain(&self) -> bool {
        self.problem.windows.iter().all(Window::is_plain)
    }

    /// What windows at some positions see of an item, a row for each term.
    #[cfg(any(feature = "simd", target_arch = "wasm32"))]
    pub(super) fn see(&self, item: usize, positions: Range<usize>, out: &mut [f32]) {
        let image = self.image(item);
        let Problem { windows: [y, x], .. } = self.problem;
        let (pixels, steps) = (self.problem.pixels() as usize, x.steps as usize);
        let begin = ((positions.start / steps) as u32, (positions.start % steps) as u32);
        let mut rows = out.chunks_exact_mut(positions.len());
        for channel in image.chunks_exact(pixels) {
            for (i, j) in (0..y.taps).flat_map(|i| (0..x.taps).map(move |j| (i, j))) {
                let Some(mut rest) = rows.next() else { return };
                let (inside, inside_y) = (steps_inside(&x, j), steps_inside(&y, i));
                let (mut step, mut first) = begin;
                while !rest.is_empty() {
                    let (now, later) = rest.split_at_mut(rest.len().min((x.steps - first) as usize));
                    let seen = inside.start.max(first)..inside.end.min(first + now.len() as u32);
                    if seen.is_empty() || !inside_y.contains(&step) {
                        now.fill(0.0);
                    } else {
                        let from = &channel[y.place(step, i) * x.input as usize..][..x.input as usize];
                        let (before, now) = now.split_at_mut((seen.start - first) as usize);
                        let (now, behind) = now.split_at_mut(seen.len());
                        copy(now, &from[x.place(seen.start, j)..], x.stride as usize);
                        // Most see no padding.
                        if before.len() + behind.len() > 0 {
                            before.fill(0.0);
                            behind.fill(0.0);
                        }
                    }
                    (step, first, rest) = (step + 1, 0, later);
                }
            }
        }
    }

    /// All filters of an item, by products on so many threads.
    #[cfg(all(feature = "simd", not(target_arch = "wasm32")))]
    pub(super) fn by_products(&self, item: usize, out: &mut [f32], threads: usize) {
        let (image, filters) = self.operands(item);
        let Problem { filters: m, .. } = self.problem;
        let (positions, k, m) = (self.problem.positions() as usize, self.problem.terms() as usize, m as usize);
        if !self.pays_by_products() {
            return self.by_rows(item, out, threads);
        }
        let (sizes, filters) = ([m, k, positions], Matrix::new(filters, k, false));
        if self.is_plain() {
            let product = Product { sizes, a: filters, b: Matrix::new(image, positions, false), beta: None };
            product.compute(out, positions, threads);
        } else {
            let block = (SEEN_ELEMENTS / k.max(1)).max(1).next_multiple_of(LEAST_POSITIONS).min(positions);
            let product = Product { sizes, a: filters, b: Matrix::new(&[], 0, false), beta: None };
            product.by_columns(out, positions, block.max(1), 1, threads, |positions, seen| self.see(item, positions, seen));
        }
        self.finish_all(item, out);
    }
}

/// Copies as many elements as are asked for, so far apart.
#[cfg(any(feature = "simd", target_arch = "wasm32"))]
fn copy(to: &mut [f32], from: &[f32], stride: usize) {
    if stride == 1 {
        to.copy_from_slice(&from[..to.len()]);
    } else {
        to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, from)| *to = *from);
    }
}

/// The steps at which a tap is within the input.
fn steps_inside(window: &Window, tap: u32) -> Range<u32> {
    let (offset, stride) = (u64::from(tap) * u64::from(window.dilation), u64::from(window.stride));
    let behind = u64::from(window.before) + u64::from(window.input);
    let step = |place: u64| place.saturating_sub(offset).div_ceil(stride).min(window.steps.into()) as u32;
    let (first, end) = (step(window.before.into()), step(behind));
    first..end.max(first)
}

/// Where a tap of the first of those steps is in the input; without steps anywhere in it.
fn x_place(window: &Window, steps: &Range<u32>, tap: u32) -> usize {
    if steps.is_empty() { 0 } else { window.place(steps.start, tap) }
}
