//! Pools on the CPU, plane by plane.

use crate::ops::pool::{Kind, Problem};
use crate::ops::window::Window;

/// What [`plane`] needs beside values and result.
#[cfg(target_arch = "wasm32")]
pub(super) fn room_bytes(problem: &Problem) -> u64 {
    u64::from(problem.windows[2].steps) * size_of::<std::ops::Range<u32>>() as u64
}

/// One plane of the result as words, from its plane of the input, whose first element has that number.
pub(super) fn plane(problem: &Problem, values: &[f32], first: u32, out: &mut [u32]) {
    let [z, y, x] = problem.windows;
    let (height, width) = (y.input as usize, x.input as usize);
    let columns: Vec<_> = (0..x.steps).map(|step| x.inside(step)).collect();
    let mut lines = Vec::new();
    let mut rows = out.chunks_exact_mut(x.steps as usize);
    for step_z in 0..z.steps {
        let layers = z.inside(step_z);
        for (step_y, row) in (0..y.steps).zip(&mut rows) {
            let inside = y.inside(step_y);
            lines.clear();
            for layer in layers.clone() {
                let layer = z.place(step_z, layer) * height;
                lines.extend(inside.clone().map(|line| (layer + y.place(step_y, line)) * width));
            }
            let counted = |window: &Window, step: u32, inside: usize| match problem.kind {
                Kind::MeanPadded => {
                    let padded = window.before + window.input + window.after;
                    Window { before: 0, input: padded, ..*window }.inside(step).len()
                }
                _ => inside,
            };
            let of_lines = counted(&z, step_z, layers.len()) * counted(&y, step_y, inside.len());
            for ((step_x, columns), out) in (0..x.steps).zip(&columns).zip(row) {
                let taps = Taps {
                    values,
                    lines: &lines,
                    first: if columns.is_empty() { 0 } else { x.place(step_x, columns.start) },
                    count: columns.len(),
                    apart: x.dilation,
                };
                *out = match problem.kind {
                    Kind::Max | Kind::MaxPlace => {
                        let mut best: Option<(usize, f32)> = None;
                        taps.each(|at, value| {
                            if best.is_none_or(|(_, best)| !best.is_nan() && (value.is_nan() || value > best)) {
                                best = Some((at, value));
                            }
                        });
                        let (at, best) = best.unwrap_or((0, f32::NEG_INFINITY));
                        if problem.kind == Kind::Max { best.to_bits() } else { first + at as u32 }
                    }
                    Kind::Mean | Kind::MeanPadded => {
                        // From +0 on: a mean of nothing but −0 is +0.
                        let mut sum = 0.0;
                        taps.each(|_, value| sum += f64::from(value));
                        let elements = of_lines * counted(&x, step_x, columns.len());
                        ((sum / elements as f64) as f32).to_bits()
                    }
                };
            }
        }
    }
}

/// What a window sees of a plane: of each line so many elements, so far apart.
struct Taps<'a> {
    values: &'a [f32],
    lines: &'a [usize],
    first: usize,
    count: usize,
    apart: u32,
}

impl Taps<'_> {
    /// Does something with each, and where it is.
    #[inline(always)]
    fn each(&self, mut run: impl FnMut(usize, f32)) {
        for line in self.lines {
            let mut at = line + self.first;
            for _ in 0..self.count {
                run(at, self.values[at]);
                at += self.apart as usize;
            }
        }
    }
}
