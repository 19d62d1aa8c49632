//! Softmax of columns, natively: neighbours of the result are of different rows of the operation, so that many of those go through memory
//! beside one another, in the order in which they lie.
//!
//! ```text
//! plane   count x columns   cut into parts of some lines each, which are folded and then joined in order, whatever the threads are
//! ```

use super::super::fold::pivot;
use super::super::lanes::{Largest, exp, extremes};
use super::super::map::Registers;
use super::super::reduce::{SHARE, each};
use super::Normalize;
use crate::ops::normalize::Form;

/// Parts that are enough for any number of threads.
const MANY: usize = 64;
/// Lines whose powers are added up in single precision.
const HEIGHT: usize = 64;

/// Some lines of a plane.
struct Part<'a> {
    /// The values where they lie, if nothing is to be computed of them; else they are in `out` first.
    values: Option<&'a [f32]>,
    out: &'a mut [f32],
    /// What is known of each column.
    largest: Vec<f32>,
    sums: Vec<f64>,
}

/// What is done to a part after what is known of all of them.
enum Pass<'a> {
    Largest,
    /// The powers of distances from these, and their sums.
    Powers(&'a [f32]),
    /// Powers by the inverse of their sums, or distances less the logarithms.
    Scale(&'a [f32], &'a [f32]),
}

impl Normalize<'_> {
    /// Planes, one after the other or beside one another.
    pub(super) fn planes(&self, out: &mut [f32], threads: usize) {
        let plane = self.count * self.columns;
        let of_plane = if plane > 2 * SHARE { threads } else { 1 };
        each(out, plane, threads, |number, out| self.plane(number * plane, out, of_plane));
    }

    fn plane(&self, first: usize, out: &mut [f32], threads: usize) {
        let width = self.columns;
        let lines = (SHARE / width).max(self.count.div_ceil(MANY)).max(1);
        let mut parts = Vec::new();
        for (number, out) in out.chunks_mut(lines * width).enumerate() {
            let values = self.map.stored(first + number * lines * width, out.len()).map(bytemuck::cast_slice);
            parts.push(Part { values, out, largest: Vec::new(), sums: Vec::new() });
        }
        each(&mut parts, 1, threads, |number, parts| {
            let part = &mut parts[0];
            if part.values.is_none() {
                self.map.compute_with(&mut Registers::default(), first + number * lines * width, bytemuck::cast_slice_mut(part.out));
            }
            self.pass(part, &Pass::Largest);
        });
        let mut largest = vec![f32::NEG_INFINITY; width];
        extremes::<Largest>(&mut largest, parts.iter().map(|part| &part.largest[..]));
        let pivots: Vec<f32> = largest.iter().map(|&largest| pivot(largest.into()) as f32).collect();
        each(&mut parts, 1, threads, |_, parts| self.pass(&mut parts[0], &Pass::Powers(&pivots)));
        let mut sums = vec![0.0f64; width];
        for part in &parts {
            sums.iter_mut().zip(&part.sums).for_each(|(sum, of_part)| *sum += of_part);
        }
        // No number is in proportion to an infinity, to NaN, or to zeros alone.
        let by = |(sum, largest): (f64, f32)| match self.form {
            _ if !largest.is_finite() => f32::NAN,
            Form::LogSoftmax => sum.ln() as f32,
            _ => (1.0 / sum) as f32,
        };
        let by: Vec<f32> = sums.into_iter().zip(largest).map(by).collect();
        each(&mut parts, 1, threads, |_, parts| self.pass(&mut parts[0], &Pass::Scale(&pivots, &by)));
    }

    /// By the widest vectors that the CPU has, if that was asked for.
    fn pass(&self, part: &mut Part<'_>, pass: &Pass<'_>) {
        #[cfg(feature = "simd")]
        if self.map.has_vectors() {
            struct Wide<'a, 'b, 'c>(&'a Normalize<'b>, &'a mut Part<'c>, &'a Pass<'a>);

            impl pulp::WithSimd for Wide<'_, '_, '_> {
                type Output = ();

                #[inline(always)]
                fn with_simd<S: pulp::Simd>(self, _: S) {
                    self.0.lines(self.1, self.2);
                }
            }

            return pulp::Arch::new().dispatch(Wide(self, part, pass));
        }
        self.lines(part, pass);
    }

    #[inline(always)]
    fn lines(&self, Part { values, out, largest, sums }: &mut Part<'_>, pass: &Pass<'_>) {
        let (width, is_logarithm) = (self.columns, self.form == Form::LogSoftmax);
        match *pass {
            Pass::Largest => {
                *largest = vec![f32::NEG_INFINITY; width];
                extremes::<Largest>(largest, values.unwrap_or(out).chunks_exact(width));
            }
            Pass::Powers(pivots) => {
                *sums = vec![0.0; width];
                let mut some = vec![0.0f32; width];
                for (number, out) in out.chunks_mut(HEIGHT * width).enumerate() {
                    some.fill(0.0);
                    for (line, out) in out.chunks_exact_mut(width).enumerate() {
                        let at = (number * HEIGHT + line) * width;
                        let values = values.map(|values| &values[at..][..width]);
                        match (values, is_logarithm) {
                            (Some(values), false) => powers(values, pivots, &mut some, out),
                            (Some(values), true) => sums_of_powers(values, pivots, &mut some),
                            (None, false) => powers_in_place(out, pivots, &mut some),
                            (None, true) => sums_of_powers(out, pivots, &mut some),
                        }
                    }
                    sums.iter_mut().zip(&some).for_each(|(sum, &some)| *sum += f64::from(some));
                }
            }
            Pass::Scale(pivots, by) => {
                if let (Some(values), true) = (*values, is_logarithm) {
                    out.copy_from_slice(values);
                }
                for out in out.chunks_exact_mut(width) {
                    if is_logarithm {
                        for ((out, pivot), by) in out.iter_mut().zip(pivots).zip(by) {
                            *out = (*out - pivot) - by;
                        }
                    } else {
                        out.iter_mut().zip(by).for_each(|(out, by)| *out *= by);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn powers(values: &[f32], pivots: &[f32], sums: &mut [f32], out: &mut [f32]) {
    for (((value, pivot), sum), out) in values.iter().zip(pivots).zip(sums).zip(out) {
        *out = exp(value - pivot);
        *sum += *out;
    }
}

#[inline(always)]
fn powers_in_place(values: &mut [f32], pivots: &[f32], sums: &mut [f32]) {
    for ((value, pivot), sum) in values.iter_mut().zip(pivots).zip(sums) {
        *value = exp(*value - pivot);
        *sum += *value;
    }
}

#[inline(always)]
fn sums_of_powers(values: &[f32], pivots: &[f32], sums: &mut [f32]) {
    for ((value, pivot), sum) in values.iter().zip(pivots).zip(sums) {
        *sum += exp(value - pivot);
    }
}
