//! Fourier transforms on the CPU, line by line: in plain code in double precision, which says what is meant, or by a library
//! (`transform.rs`) that is fast.

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
        // What is its own mirror image is real, whatever stands there.
        Form::Half if from == 0 || 2 * from == problem.length => [values[2 * place], 0.0],
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
    let transform = Transform::of(problem.length as usize);
    for line in 0..problem.lines() as usize {
        let result = transform.run((0..problem.length).map(|at| read(problem, values, line, at).map(f64::from)).collect());
        put(problem, line, out, |at| {
            let [re, im] = result[at];
            [(re * scale) as f32, (im * scale) as f32]
        });
    }
}

/// Bytes that [`plain`] takes beside its operands.
#[cfg(target_arch = "wasm32")]
pub(super) fn room_bytes(problem: &Problem) -> u64 {
    let n = u64::from(problem.length);
    let is_plain = factors(problem.length as usize).is_some();
    // The roots and two lines; with a chirp it, its transform and its own line.
    let numbers = if is_plain { 3 * n } else { 4 * (2 * n - 1).next_power_of_two() + 2 * n };
    numbers * size_of::<Complex>() as u64
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

fn conjugate([re, im]: Complex) -> Complex {
    [re, -im]
}

/// X[k] = Σ x[i] · exp(−2πi · i·k / n), with what all lines of a length need.
struct Transform {
    /// All roots of the length that is computed.
    roots: Vec<Complex>,
    /// The factors of that length.
    factors: Vec<usize>,
    /// For a length with a large prime factor, which is a convolution with a chirp (Bluestein 1970), the chirp and its transform.
    chirp: Vec<Complex>,
    spectrum: Vec<Complex>,
}

impl Transform {
    fn of(n: usize) -> Self {
        if let Some(factors) = factors(n) {
            let roots = (0..n as u64).map(|m| root(m, n as u64)).collect();
            return Self { roots, factors, chirp: Vec::new(), spectrum: Vec::new() };
        }
        let padded = (2 * n - 1).next_power_of_two();
        let chirp: Vec<_> = (0..n as u64).map(|i| root(i * i % (2 * n as u64), 2 * n as u64)).collect();
        let mut around = vec![[0.0; 2]; padded];
        for (i, &value) in chirp.iter().enumerate() {
            around[i] = conjugate(value);
            around[(padded - i) % padded] = around[i];
        }
        let plain = Self::of(padded);
        Self { spectrum: plain.steps(around), chirp, ..plain }
    }

    fn run(&self, mut x: Vec<Complex>) -> Vec<Complex> {
        if self.chirp.is_empty() {
            return self.steps(x);
        }
        let (n, padded) = (x.len(), self.roots.len());
        x.iter_mut().zip(&self.chirp).for_each(|(x, chirp)| *x = times(*x, *chirp));
        x.resize(padded, [0.0; 2]);
        x = self.steps(x);
        x.iter_mut().zip(&self.spectrum).for_each(|(x, by)| *x = conjugate(times(*x, *by)));
        x = self.steps(x);
        x.truncate(n);
        x.iter_mut().zip(&self.chirp).for_each(|(x, chirp)| *x = times(conjugate(*x), *chirp).map(|part| part / padded as f64));
        x
    }

    /// A factor after the other, from one array to another and back, so that in the end all are in order (Stockham).
    fn steps(&self, x: Vec<Complex>) -> Vec<Complex> {
        let mut to = vec![[0.0; 2]; x.len()];
        let (mut from, mut before) = (x, 1);
        for &factor in &self.factors {
            self.step(&from, &mut to, before, factor);
            std::mem::swap(&mut from, &mut to);
            before *= factor;
        }
        from
    }

    /// The step of a factor behind those of `before` elements together.
    fn step(&self, from: &[Complex], to: &mut [Complex], before: usize, factor: usize) {
        let n = from.len();
        let (parts, apart) = (n / factor, n / factor / before);
        let mut v = [[0.0; 2]; MOST_PLAIN];
        for first in 0..parts {
            let k = first % before;
            for (r, v) in v[..factor].iter_mut().enumerate() {
                *v = times(from[first + r * parts], self.roots[r * k * apart]);
            }
            let at = (first - k) * factor + k;
            if let (4, [a, b, c, d, ..]) = (factor, v) {
                let (even, odd) = ([a[0] + c[0], a[1] + c[1]], [a[0] - c[0], a[1] - c[1]]);
                let (sum, turned) = ([b[0] + d[0], b[1] + d[1]], [b[1] - d[1], d[0] - b[0]]);
                to[at] = [even[0] + sum[0], even[1] + sum[1]];
                to[at + before] = [odd[0] + turned[0], odd[1] + turned[1]];
                to[at + 2 * before] = [even[0] - sum[0], even[1] - sum[1]];
                to[at + 3 * before] = [odd[0] - turned[0], odd[1] - turned[1]];
                continue;
            }
            for q in 0..factor {
                to[at + q * before] = v[..factor].iter().enumerate().fold([0.0; 2], |[re, im], (r, &v)| {
                    let [a, b] = times(v, self.roots[r * q % factor * parts]);
                    [re + a, im + b]
                });
            }
        }
    }
}

/// The factors by which a length is taken apart, None if one would be too large.
fn factors(n: usize) -> Option<Vec<usize>> {
    let (mut factors, mut rest) = (Vec::new(), n);
    for factor in std::iter::once(4).chain(2..=MOST_PLAIN) {
        while rest.is_multiple_of(factor) {
            factors.push(factor);
            rest /= factor;
        }
    }
    (rest == 1).then_some(factors)
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
        for n in [1, 2, 3, 8, 12, 37, 74, 155, 256] {
            let x: Vec<_> = (0..n).map(|i| [(i * i % 7) as f64 - 3.0, (i % 5) as f64]).collect();
            for (k, got) in Transform::of(n).run(x.clone()).into_iter().enumerate() {
                let sum = x.iter().enumerate().fold([0.0; 2], |[re, im], (i, &x)| {
                    let [a, b] = times(x, root((i * k) as u64, n as u64));
                    [re + a, im + b]
                });
                assert!((got[0] - sum[0]).abs() + (got[1] - sum[1]).abs() < 1e-11 * n as f64, "{k} of {n}: {got:?}, not {sum:?}");
            }
        }
    }
}
