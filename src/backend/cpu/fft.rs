//! Fourier transforms on the CPU, line by line: in plain code in double precision, which says what is meant, or by a library
//! (`native.rs`) that is fast.

use crate::ops::fft::{Form, Problem};

/// A complex number.
pub(super) type Complex = [f64; 2];

/// Prime factors up to which the sum is taken as it is written.
const MOST_PLAIN: usize = 31;

/// Element `at` of a line along the dimension, as if all were complex; what is not there is zero. Conjugated for an inverse, which is the
/// conjugate of the transform of conjugates.
pub(super) fn read(problem: &Problem, values: &[f32], line: usize, at: u32) -> [f32; 2] {
    let is_mirrored = problem.reads == Form::Half && at > problem.length / 2;
    let from = if is_mirrored { problem.length - at } else { at };
    if from >= problem.input {
        return [0.0; 2];
    }
    let place = place(problem, line, problem.input, from);
    let [re, im] = match problem.reads {
        Form::Real => [values[place], 0.0],
        _ => [values[2 * place], values[2 * place + 1]],
    };
    [re, if is_mirrored == problem.inverse { im } else { -im }]
}

/// Where element `at` of a line is in an array of so many along the dimension.
pub(super) fn place(problem: &Problem, line: usize, along: u32, at: u32) -> usize {
    let inner = problem.inner as usize;
    (line / inner * along as usize + at as usize) * inner + line % inner
}

/// All lines in plain code.
pub(super) fn plain(problem: &Problem, values: &[f32], out: &mut [f32]) {
    let scale = if problem.inverse { 1.0 / f64::from(problem.length) } else { 1.0 };
    for line in 0..problem.lines() as usize {
        let elements: Vec<_> = (0..problem.length).map(|at| read(problem, values, line, at).map(f64::from)).collect();
        let result = transform(&elements);
        put(problem, line, out, |at| {
            let [re, im] = result[at];
            [(re * scale) as f32, (im * scale) as f32]
        });
    }
}

/// Writes a line of the result, of which an inverse's is given conjugated.
pub(super) fn put(problem: &Problem, line: usize, out: &mut [f32], value: impl Fn(usize) -> [f32; 2]) {
    let along = problem.gives.stored(problem.length);
    for at in 0..along {
        let ([re, im], place) = (value(at as usize), place(problem, line, along, at));
        if problem.gives == Form::Real {
            out[place] = re;
        } else {
            out[2 * place] = re;
            out[2 * place + 1] = if problem.inverse { -im } else { im };
        }
    }
}

/// exp(−2πi · m / n).
fn root(m: u64, n: u64) -> Complex {
    let angle = -2.0 * std::f64::consts::PI * (m % n) as f64 / n as f64;
    [cos(angle), sin(angle)]
}

fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
    [a * c - b * d, a * d + b * c]
}

/// X[k] = Σ x[i] · exp(−2πi · i·k / n), by the factors of n.
fn transform(x: &[Complex]) -> Vec<Complex> {
    let n = x.len();
    let factor = (2..=MOST_PLAIN).find(|factor| n.is_multiple_of(*factor)).unwrap_or(n);
    match n {
        0 | 1 => x.to_vec(),
        _ if factor > MOST_PLAIN => chirped(x),
        _ => {
            // Parts of every factor-th element, each transformed, and put together.
            let length = n / factor;
            let part = |first: usize| transform(&x.iter().copied().skip(first).step_by(factor).collect::<Vec<_>>());
            let parts: Vec<_> = (0..factor).map(part).collect();
            let sum = |k: usize| {
                parts.iter().enumerate().fold([0.0; 2], |[re, im], (r, part)| {
                    let [a, b] = times(part[k % length], root(r as u64 * k as u64, n as u64));
                    [re + a, im + b]
                })
            };
            (0..n).map(sum).collect()
        }
    }
}

/// The same as a convolution with a chirp (Bluestein 1970), for lengths with large prime factors.
fn chirped(x: &[Complex]) -> Vec<Complex> {
    let n = x.len();
    let padded = (2 * n - 1).next_power_of_two();
    let chirp = |i: usize| root((i as u64 * i as u64) % (2 * n as u64), 2 * n as u64);
    let conjugate = |[re, im]: Complex| [re, -im];
    let mut a = vec![[0.0; 2]; padded];
    let mut b = a.clone();
    for i in 0..n {
        a[i] = times(x[i], chirp(i));
        b[i] = conjugate(chirp(i));
        b[(padded - i) % padded] = b[i];
    }
    let (a, b) = (transform(&a), transform(&b));
    let product: Vec<_> = a.into_iter().zip(b).map(|(a, b)| conjugate(times(a, b))).collect();
    let back = transform(&product);
    (0..n).map(|k| times(conjugate(back[k]), chirp(k)).map(|part| part / padded as f64)).collect()
}

#[cfg(not(target_arch = "wasm32"))]
fn cos(x: f64) -> f64 {
    x.cos()
}

#[cfg(not(target_arch = "wasm32"))]
fn sin(x: f64) -> f64 {
    x.sin()
}

// The page's own: the standard library's would be downloaded.
#[cfg(target_arch = "wasm32")]
use js_sys::Math::{cos, sin};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum() {
        for n in [1, 2, 3, 8, 12, 37, 74] {
            let x: Vec<_> = (0..n).map(|i| [(i * i % 7) as f64 - 3.0, (i % 5) as f64]).collect();
            for (k, got) in transform(&x).into_iter().enumerate() {
                let sum = x.iter().enumerate().fold([0.0; 2], |[re, im], (i, &x)| {
                    let [a, b] = times(x, root((i * k) as u64, n as u64));
                    [re + a, im + b]
                });
                assert!((got[0] - sum[0]).abs() + (got[1] - sum[1]).abs() < 1e-11 * n as f64, "{k} of {n}: {got:?}, not {sum:?}");
            }
        }
    }
}
