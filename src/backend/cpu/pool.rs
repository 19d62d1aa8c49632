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
    let steps = (0..z.steps).flat_map(|step_z| (0..y.steps).map(move |step_y| (step_z, step_y)));
    for ((step_z, step_y), row) in steps.zip(out.chunks_exact_mut(x.steps as usize)) {
        let (layers, rows) = (z.inside(step_z), y.inside(step_y));
        let lines = layers.flat_map(|h| rows.clone().map(move |i| (z.place(step_z, h) * height + y.place(step_y, i)) * width));
        for ((step_x, columns), out) in (0..x.steps).zip(&columns).zip(row) {
            let taps = lines.clone().flat_map(|line| columns.clone().map(move |j| line + x.place(step_x, j)));
            *out = match problem.kind {
                Kind::Max | Kind::MaxPlace => {
                    let mut best: Option<(usize, f32)> = None;
                    for at in taps {
                        let value = values[at];
                        if best.is_none_or(|(_, best)| !best.is_nan() && (value.is_nan() || value > best)) {
                            best = Some((at, value));
                        }
                    }
                    let (at, best) = best.unwrap_or((0, f32::NEG_INFINITY));
                    if problem.kind == Kind::Max { best.to_bits() } else { first + at as u32 }
                }
                Kind::Mean | Kind::MeanPadded => {
                    // From +0 on: a mean of nothing but −0 is +0.
                    let sum = taps.fold(0.0, |sum, at| sum + f64::from(values[at]));
                    let count = |window: &Window, step: u32| match problem.kind {
                        Kind::MeanPadded => {
                            Window { before: 0, input: window.before + window.input + window.after, ..*window }.inside(step)
                        }
                        _ => window.inside(step),
                    };
                    let elements = count(&z, step_z).len() * count(&y, step_y).len() * count(&x, step_x).len();
                    ((sum / elements as f64) as f32).to_bits()
                }
            };
        }
    }
}
