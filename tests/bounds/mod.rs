//! How far results of operations may be off: the one place of all bounds that tests have, beside products', which `lapidary::verify` derives.
//!
//! u = 2⁻²⁴ is what an operation on f32 rounds off of its result at most, in parts of it; a unit in the last place is 2·u at most. n roundings
//! one after the other make γ_n = n·u / (1 − n·u) (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., 2002, lemma 3.1). Of what is
//! approximated WGSL says how far off it may be (section 15.7.4): a division and a root by 2.5 and about as many units, an exponential eˣ by
//! 3 + 2·|x|, a logarithm by 3. Sums are taken in parts, which are added pair by pair, so that their bounds hardly grow with what is added.
//!
//! A bound is what an error may be in parts of the exact value, and beside that at all: numbers near zero are differences of others.
#![allow(dead_code, reason = "each test takes what it needs")]

use lapidary::DType;
use lapidary::verify::gamma;

/// Unit roundoff of f32, and of f16.
pub const U: f64 = 1.0 / (1u64 << 24) as f64;
const U_F16: f64 = 1.0 / 2048.0;

/// What an error may be: so much of the exact value, and so much beside it.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub relative: f64,
    pub absolute: f64,
}

impl Bound {
    /// So many u of the value, and of what it is a difference of.
    const fn of(units: f64, beside: f64) -> Self {
        Self { relative: units * U, absolute: units * U * beside }
    }

    /// The same of values that were multiplied by so much at most, some of which may have cancelled out since.
    pub const fn scaled(self, by: f64) -> Self {
        Self { absolute: self.absolute * by, ..self }
    }

    pub fn holds(self, got: f64, expected: f64) -> bool {
        got == expected || (got - expected).abs() <= self.relative * expected.abs() + self.absolute
    }

    /// Panics with the first that is further off.
    pub fn check(self, got: &[f32], expected: &[f64], what: &str) {
        assert_eq!(got.len(), expected.len(), "{what}");
        for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
            let off = (f64::from(got) - expected).abs();
            assert!(self.holds(got.into(), expected), "{what} at {at}: {got} is {off} off {expected}, by {self:?}");
        }
    }
}

pub const EXACT: Bound = Bound::of(0.0, 0.0);
/// A few operations on numbers about 1, a division or a root among them.
pub const FEW: Bound = Bound::of(16.0, 1.0);
/// The same where no digits cancel out.
pub const CLOSE: Bound = Bound::of(16.0, 0.01);
/// The same of numbers about 1 from which some that are small are made.
pub const ABOUT_ONE: Bound = Bound { relative: 0.0, absolute: 16.0 * U };
/// A division, and a rounding before it.
pub const DIVISION: Bound = Bound::of(6.0, 0.0);
/// What was rounded to f16: WGSL leaves open to which of two neighbours.
pub const HALF: Bound = Bound { relative: 2.0 * U_F16, absolute: 0.02 * U_F16 };
/// Chains of functions behind a sum of products or a norm, on a GPU beside the CPU: exponentials carry on an error by what they are taken of, and
/// a dozen functions of slope about 1 add up theirs.
pub const CHAIN: Bound = Bound::of(1600.0, 1.0);

/// Exponentials of distances of up to ten from the largest value, 3 + 2·10 units, over their sum. Shares are small beside 1.
pub const SOFTMAX: Bound = Bound::of(64.0, 0.01);
/// A distance, and a logarithm of a sum that is 1 or more.
pub const LOG_SOFTMAX: Bound = Bound::of(16.0, 1.0);
/// A distance from the mean by the root of a mean of squares: both means in parts, of any lengths.
pub const LAYER_NORM: Bound = Bound::of(32.0, 1.0);
/// The same of rows that are far from zero beside the distances in them, which are exact.
pub const LAYER_NORM_FAR: Bound = Bound::of(16.0, 1.0);
/// A layer norm that was scaled, and of which a bias left a fiftieth or more.
pub const LAYER_NORM_ENDED: Bound = Bound::of(50.0 * 32.0, 0.01);
pub const RMS_NORM: Bound = Bound::of(64.0, 0.01);

/// The sum of terms, as the documentation has it of the CPU: GPUs, which may be further off, are not.
pub fn sum(terms: &[f64]) -> f64 {
    (terms.len() as f64 / f64::from(1 << 20) + 64.0) * U * terms.iter().map(|term| term.abs()).sum::<f64>()
}

/// Their mean: a division more.
pub fn mean(terms: &[f64]) -> f64 {
    (sum(terms) + 4.0 * U * terms.iter().sum::<f64>().abs()) / terms.len() as f64
}

/// The variance of so many values, of that mean and that sum of squared distances: of distances from about the mean, which is off by u of itself.
pub fn variance(count: usize, mean: f64, spread: f64) -> f64 {
    256.0 * U * (spread / count as f64 + (U * mean).powi(2))
}

/// Its root.
pub fn deviation(count: usize, mean: f64, spread: f64) -> f64 {
    256.0 * U * (spread / count as f64).sqrt() + U * mean.abs()
}

/// The variance of values whose mean is 0, or that are all alike: in parts of it alone, since they may be as large or small as numbers are.
pub const VARIANCE: Bound = Bound::of(160.0, 0.0);
/// A root of a sum of few squares, the same.
pub const NORM: Bound = Bound::of(64.0, 0.0);

/// And of as many as there may be.
pub fn norm(values: &[f64]) -> f64 {
    128.0 * U * values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// A logarithm of what is between a half and 1.5: a quotient and eight operations, or where 2⁻²¹ is little beside it what is off by that.
pub const LOG_NEAR_ONE: Bound = Bound::of(24.0, 0.0);

/// The logarithm of a sum of exponentials of values of up to ten.
pub const LOG_SUM_EXP: f64 = 256.0 * U;

/// A product that was rounded so often.
pub fn product(roundings: usize, expected: f64) -> f64 {
    gamma(roundings as u64) * expected.abs()
}

/// A sum of so many products of that magnitude, a bias, and a result of that type.
pub fn convolution(terms: usize, magnitude: f64, dtype: DType, expected: f64) -> f64 {
    let rounding = if dtype == DType::F16 { U_F16 } else { U };
    gamma(terms as u64 + 2) * magnitude + 1.01 * rounding * expected.abs()
}

/// The mean of a window of such lines, each of which is added up by itself, and what is made of the lines.
pub fn pooled([lines, columns]: [usize; 2], magnitude: f64) -> f64 {
    gamma(columns as u64 + 32) * magnitude / (lines * columns) as f64
}

/// A sum of so many products of numbers between −1 and 1 by Winograd's method of tiles of 4 × 4, whose transforms enlarge what is rounded off (Barabasz et al.,
/// "Error analysis and improving the accuracy of Winograd convolution", 2020): by less than 15.
pub fn winograd(terms: usize) -> f64 {
    15.0 * U * terms as f64
}

/// A transform of n numbers, in parts of the result's length: each of log₂ n steps rounds off less than 1.67·u of it (Higham, theorem 24.2, whose
/// errors are taken to be independent); a length with a large prime factor takes three transforms.
pub fn fft(n: usize) -> f64 {
    1.67 * U * (2.0 + (n as f64).log2())
}

/// A function on a GPU beside the CPU's, of numbers up to some tens; and one that WGSL lets a GPU approximate by others' differences: arcsin,
/// arccos and tan.
pub fn function(dtype: DType, is_rough: bool) -> Bound {
    match (is_rough, dtype) {
        (true, _) => Bound { relative: 1e-3, absolute: 1e-3 },
        // Two neighbours, which either side may have chosen.
        (false, DType::F16) => Bound { relative: 4.0 * U_F16, absolute: 1e-7 },
        (false, _) => Bound { relative: 167.0 * U, absolute: FEW.absolute },
    }
}

/// A function on the CPU, of numbers of any size: four units and what a power's exponent is off by.
pub fn function_on_cpu(name: &str) -> Bound {
    match name {
        // x³ in the exponent is off by as many u as it is large, up to 88 · 5.
        "gelu_tanh" => Bound::of(500.0, 0.0),
        // Close to 0 it is a difference from 1.
        "erf" => Bound { relative: 0.0, absolute: 3.3 * U },
        _ => Bound::of(10.0, 0.0),
    }
}

/// ONNX's own of its cases; a transform's result is measured by the largest of its numbers.
pub fn onnx(largest: f64) -> Bound {
    Bound { relative: 1e-3, absolute: 1e-7 * largest }
}
