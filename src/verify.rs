//! When a product counts as right: the one place of its tolerances. Those of the other operations are in `tests/bounds`.
//!
//! A sum of k products in floating point, in any order and with or without fused multiply-add, is within γ_k·Σ|a||b| of the exact sum, where
//! γ_k = k·u / (1 − k·u) and u = 2⁻²⁴ for f32 (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, section
//! 3.5). Scaling by α and adding β·C round three times more, a bias once. A GPU may also flush subnormal numbers to zero, at most the smallest
//! normal number for each term. So an element is right if
//!
//! ```text
//! |c − exact| ≤ γ_{k+r}·(|α|·(|A||B|) + |β·C| + |bias|) + (k + r)·2⁻¹²⁶      r = 0 without α and β, else 3; with a bias 1 more
//! ```
//!
//! An activation f carries that error on by its steepest slope, at most 1.13, and adds its own. WGSL allows an exponential e⁻ᵗ an error of 3 + 2·|t|
//! units in the last place, and the few operations around it make less than 16, so with t what the exponential is taken of
//!
//! ```text
//! |f(c) − f(exact)| ≤ slope·bound + (16 + 4·|t|)·2⁻²³·|f(exact)| + 2⁻¹¹⁸      the last where the exponential overflows; ReLU adds nothing
//! ```
//!
//! With [`Precision::F16x3`] it is γ_{2k+12+r}, as told there: each product is off by up to 12·u, and sums of matrix units may be cut off.
//!
//! And with [`Precision::F16`], n = 32, n·2⁻¹¹ / (1 − n·2⁻¹¹) more, and k·2⁻¹⁴.
//!
//! Operands of f16 count as they are, since f32 holds each of them, and so does each product of two. A result of f16 is rounded once
//! more, which moves it by 2⁻¹⁰ of itself at most, or by the smallest normal number where it is smaller than that: WGSL leaves open which
//! of its two neighbours a number becomes, and whether a subnormal one stays (section 17.9, `pack2x16float`).
//!
//! The exact product is computed in f64, whose own error of about k·2⁻⁵³ does not count beside that. An element whose exact value
//! is infinite or NaN must be the same; one whose bound overflows cannot be judged and passes.

use crate::call::Operand;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::matmul::{Activation, F16_TERMS, Matmul, Precision, Problem};

/// Unit roundoff of f32.
const UNIT: f64 = 1.0 / (1u64 << 24) as f64;

/// γ_k of f32.
pub fn gamma(k: u64) -> f64 {
    let ku = k as f64 * UNIT;
    if ku < 1.0 { ku / (1.0 - ku) } else { f64::INFINITY }
}

/// By how much a sum of k magnitudes in f32 may be short of the exact one, as a factor.
#[cfg(target_arch = "wasm32")]
pub(crate) fn shortfall(k: u64) -> f64 {
    1.0 / (1.0 - gamma(k).min(0.5))
}

/// How far an element may be off: `magnitude` is |α|·(|A||B|) + |β·C| there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tolerance {
    relative: f64,
    absolute: f64,
    activation: Option<Activation>,
    /// What rounding the result may change of itself, and the most that it changes of what is smaller than all normal numbers.
    rounding: f64,
    smallest: f64,
    /// The largest number that the result can hold.
    pub(crate) largest: f64,
}

impl Tolerance {
    pub(crate) fn of(problem: &Problem) -> Self {
        let plain = problem.alpha == 1.0 && problem.c.is_none();
        let k = u64::from(problem.k);
        let sums = match problem.precision {
            Precision::F32 | Precision::F16 => k,
            Precision::F16x3 => 2 * k + 12,
        };
        let roundings = sums + if plain { 0 } else { 3 } + u64::from(problem.bias);
        let absolute = roundings as f64 * f64::from(f32::MIN_POSITIVE);
        // Of the result's type: what rounding changes, the smallest normal number and the largest.
        let (rounding, smallest, largest) = match problem.result {
            DType::F16 => (1.0 / 1024.0, 1.0 / 16384.0, 65504.0),
            _ => (0.0, 0.0, f64::from(f32::MAX)),
        };
        // Sums of so many products in f16, and what of each product is too small for it.
        let (relative, absolute) = match problem.precision {
            Precision::F16 => {
                let terms = f64::from(F16_TERMS);
                (gamma(roundings) + terms / (2048.0 - terms), absolute + k as f64 / 16384.0)
            }
            _ => (gamma(roundings), absolute),
        };
        Self { relative, absolute, activation: problem.activation, rounding, smallest, largest }
    }

    /// An element, and the largest error that counts as right: from the sum of its products and that of their magnitudes, β·C and the bias.
    pub(crate) fn element(&self, problem: &Problem, [sum, magnitude]: [f64; 2], added: f64, bias: f64) -> (f64, f64) {
        let alpha = f64::from(problem.alpha);
        self.finish(alpha * sum + added + bias, (alpha * magnitude).abs() + added.abs() + bias.abs())
    }

    /// The same from what it is before its activation.
    fn finish(&self, before: f64, magnitude: f64) -> (f64, f64) {
        let (value, bound) = self.activated(before, magnitude);
        (value, bound + self.rounding * (value.abs() + bound) + self.smallest)
    }

    /// The same before it is rounded to the result's type.
    fn activated(&self, before: f64, magnitude: f64) -> (f64, f64) {
        let bound = self.relative * magnitude + self.absolute;
        let Some(activation) = self.activation else { return (before, bound) };
        let (slope, units) = match activation {
            Activation::Relu => (1.0, 0.0),
            _ => (1.13, 16.0 + 4.0 * activation.gate(before).abs().min(200.0)),
        };
        let value = activation.apply(before);
        let own = if units > 0.0 { units * 2.0 * UNIT * value.abs() + 2f64.powi(-118) } else { 0.0 };
        (value, slope * bound + own)
    }
}

/// How a whole result compares.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Verdict {
    /// Elements compared: all of them.
    pub elements: u64,
    /// Elements out of bounds.
    pub wrong: u64,
    /// The largest |c − exact|.
    pub max_abs_error: f64,
    /// The largest error as a share of its bound; above 1 is wrong.
    pub worst_ratio: f64,
    /// Where that is, counted by rows.
    pub worst: u64,
    /// What stands there.
    pub value: f32,
    /// What should.
    pub expected: f64,
    /// How far it may be off.
    pub bound: f64,
}

impl Verdict {
    /// Whether every element is right.
    pub fn is_right(&self) -> bool {
        self.wrong == 0
    }

    /// Takes one more element into account.
    pub(crate) fn add(&mut self, value: f32, expected: f64, bound: f64, largest: f64) {
        let error = (f64::from(value) - expected).abs();
        let ratio = if value.is_nan() || expected.is_nan() {
            if value.is_nan() && expected.is_nan() { 0.0 } else { f64::INFINITY }
        } else if error == 0.0 || f64::from(value) == expected {
            0.0
        } else if expected.is_infinite() {
            f64::INFINITY
        } else if !bound.is_finite() {
            0.0
        } else if value.is_infinite() && f64::from(value.signum()) * expected + bound > largest {
            // The exact value is more than the result can hold: overflow is right.
            0.0
        } else {
            error / bound
        };
        if error.is_finite() {
            self.max_abs_error = self.max_abs_error.max(error);
        }
        self.wrong += u64::from(ratio > 1.0);
        if ratio > self.worst_ratio || self.elements == 0 {
            *self = Self { worst_ratio: ratio, worst: self.elements, value, expected, bound, ..*self };
        }
        self.elements += 1;
    }
}

/// A product in double precision, and the bound of each element.
#[derive(Debug, Clone)]
pub struct Reference {
    exact: Vec<f64>,
    bounds: Vec<f64>,
    largest: f64,
}

impl Reference {
    /// Computes it plainly, on one thread: k·m·n steps. Matrices of f16 are given widened, which changes no value; of `op` only what
    /// the result is made of has to be said.
    ///
    /// # Errors
    /// As [`Gpu::matmul`](crate::Gpu::matmul) for what is wrong with the dimensions and lengths; [`Error::OutOfMemory`] on the host.
    pub fn new(a: &[f32], b: &[f32], c: &[f32], op: &Matmul<'_>) -> Result<Self> {
        // The precision says nothing of what matrices are stored in here.
        let plain = op.clone().precision(Precision::default());
        let problem = Problem { precision: op.precision, ..plain.check([DType::F32; 2], a.len() as u64, b.len() as u64)? };
        let (length, expected) = (c.len() as u64, if problem.elements() > 0 { problem.c_span() } else { 0 });
        if length < expected {
            let formula = "at least what the product reads of C".to_owned();
            return Err(Box::new(Error::LengthMismatch { argument: "c", length, expected, formula }));
        }
        let (m, k, n) = (problem.m as usize, problem.k as usize, problem.n as usize);
        let step = |stride: u64, transposed: bool| if transposed { (1, stride as usize) } else { (stride as usize, 1) };
        let (a_row, a_column) = step(problem.a.stride, problem.transpose_a);
        let (b_row, b_column) = step(problem.b.stride, problem.transpose_b);
        let beta = f64::from(problem.beta);
        let tolerance = Tolerance::of(&problem);
        let bias = match &op.bias {
            None => Vec::new(),
            Some(Operand::Host(values)) => values.to_vec(),
            Some(Operand::Tensor(_)) => {
                let (argument, found) = ("bias".to_owned(), "a tensor".to_owned());
                return Err(Box::new(Error::InvalidType { argument, expected: "values on the host, to be judged by", found }));
            }
        };
        let elements = problem.elements() as usize;
        let room = || {
            let mut room: Vec<f64> = Vec::new();
            let bytes = (elements as u64).saturating_mul(size_of::<f64>() as u64);
            room.try_reserve_exact(elements).map_err(|_| Error::OutOfMemory { bytes, place: "the host" })?;
            Ok::<_, Box<Error>>(room)
        };
        let mut reference = Self { exact: room()?, bounds: room()?, largest: tolerance.largest };
        let (sums, magnitudes) = (&mut vec![0.0f64; n][..], &mut vec![0.0f64; n][..]);
        let rows = (0..problem.batch.count()).flat_map(|item| (0..m).map(move |i| (item, i)));
        for (item, i) in rows {
            let [a_start, b_start, c_start] = problem.batch.starts(item).map(|start| start as usize);
            sums.fill(0.0);
            magnitudes.fill(0.0);
            for p in 0..k {
                let x = f64::from(a[a_start + i * a_row + p * a_column]);
                // A bare loop over slices: tests are not optimised, and this is most of what they compute.
                let (mut j, mut at) = (0, b_start + p * b_row);
                while j < n {
                    let term = x * b[at] as f64;
                    sums[j] += term;
                    magnitudes[j] += if term < 0.0 { -term } else { term };
                    (j, at) = (j + 1, at + b_column);
                }
            }
            for j in 0..n {
                let added = match problem.c {
                    Some(stored) => beta * f64::from(c[c_start + i * stored.stride as usize + j]),
                    None => 0.0,
                };
                let bias = bias.get(j).map_or(0.0, |&x| f64::from(x));
                let (exact, bound) = tolerance.element(&problem, [sums[j], magnitudes[j]], added, bias);
                reference.exact.push(exact);
                reference.bounds.push(bound);
            }
        }
        Ok(reference)
    }

    /// Judges every element of a result.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if it has another number of elements.
    pub fn check(&self, result: &[f32]) -> Result<Verdict> {
        let (length, expected) = (result.len() as u64, self.exact.len() as u64);
        if length != expected {
            return Err(Box::new(Error::LengthMismatch {
                argument: "result",
                length,
                expected,
                formula: "the elements of all products".to_owned(),
            }));
        }
        let mut verdict = Verdict::default();
        for ((&value, &exact), &bound) in result.iter().zip(&self.exact).zip(&self.bounds) {
            verdict.add(value, exact, bound, self.largest);
        }
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_infinite_is_nothing_else() {
        let (a, b) = ([f32::INFINITY, 2.0, 1e38, 1e38], [3.0, 1e38, 4.0, 1e38]);
        let reference = Reference::new(&a, &b, &[], &Matmul::new(2, 2, 2)).unwrap();
        let wrong = |result: [f32; 4]| reference.check(&result).unwrap().wrong;
        assert_eq!(wrong([f32::INFINITY; 4]), 0);
        assert_eq!(wrong([5.0, f32::NEG_INFINITY, f32::NAN, 0.0]), 4);
    }

    #[test]
    fn a_reference_is_of_what_is_said_and_given() {
        let (a, b) = ([0.5; 6], [2.0; 6]);
        let halves = Reference::new(&a, &b, &[], &Matmul::new(2, 3, 2).precision(Precision::F16)).unwrap();
        let plain = Reference::new(&a, &b, &[], &Matmul::new(2, 3, 2)).unwrap();
        assert_eq!(halves.exact, plain.exact);
        assert!(halves.bounds[0] > 100.0 * plain.bounds[0], "{:?} beside {:?}", halves.bounds, plain.bounds);
        let c = [1.0; 4];
        let op = Matmul::new(2, 3, 2).plus(1.0, &c);
        assert!(matches!(
            *Reference::new(&a, &b, &c[..3], &op).unwrap_err(),
            Error::LengthMismatch { argument: "c", length: 3, expected: 4, .. }
        ));
        assert_eq!(Reference::new(&a, &b, &c, &op).unwrap().exact, [4.0; 4]);
    }
}
