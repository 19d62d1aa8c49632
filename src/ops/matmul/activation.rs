//! What can follow a product in the same kernel.

/// A function of each element of a result, the last thing that is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// max(x, 0); a NaN stays one.
    Relu,
    /// x·σ(2u) = ½·x·(1 + tanh u) with u = √(2/π)·(x + 0.044715·x³): the approximation of Hendrycks and Gimpel, "Gaussian error linear units"
    /// (2016).
    Gelu,
    /// σ(x) = 1 / (1 + e⁻ˣ).
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// x·σ(x).
    Silu,
}

impl Activation {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Relu, Self::Gelu, Self::Sigmoid, Self::Tanh, Self::Silu];

    /// The number by which kernels know it; 0 is none.
    pub(crate) const fn number(this: Option<Self>) -> u32 {
        match this {
            None => 0,
            Some(activation) => activation as u32 + 1,
        }
    }

    /// The number's activation; None for 0 and for one that is unknown.
    pub(crate) fn of_number(number: u32) -> Option<Self> {
        Self::ALL.get((number as usize).checked_sub(1)?).copied()
    }

    /// What σ is taken of.
    pub(crate) fn gate(self, x: f64) -> f64 {
        match self {
            Self::Relu => 0.0,
            Self::Gelu => x * (1.595_769_121_605_730_7 + 0.071_354_816_272_600_25 * x * x),
            Self::Sigmoid | Self::Silu => x,
            Self::Tanh => 2.0 * x,
        }
    }

    /// The function's value.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Self::Relu if x < 0.0 => 0.0,
            Self::Relu => x,
            Self::Tanh => tanh(x),
            Self::Sigmoid => 1.0 / (1.0 + exp(-x)),
            Self::Gelu | Self::Silu => x / (1.0 + exp(-self.gate(x))),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn exp(x: f64) -> f64 {
    x.exp()
}

#[cfg(not(target_arch = "wasm32"))]
fn tanh(x: f64) -> f64 {
    x.tanh()
}

// The page's own: the standard library's would be downloaded.
#[cfg(target_arch = "wasm32")]
use js_sys::Math::{exp, tanh};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_definitions() {
        for x in [-30.0f64, -3.0, -0.1, 0.0, 1e-9, 0.7, 2.0, 40.0] {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
            let sigmoid = 1.0 / (1.0 + (-x).exp());
            let expected = [x.max(0.0), 0.5 * x * (1.0 + u.tanh()), sigmoid, x.tanh(), x * sigmoid];
            for (activation, expected) in Activation::ALL.iter().copied().zip(expected) {
                assert!((activation.apply(x) - expected).abs() <= 1e-14 * (1.0 + expected.abs()), "{activation:?} of {x}");
            }
        }
        for (number, activation) in (1..).zip(Activation::ALL.iter().copied()) {
            assert_eq!((Activation::of_number(number), Activation::number(Some(activation))), (Some(activation), number));
            assert!(activation.apply(f64::NAN).is_nan());
        }
        assert_eq!((Activation::of_number(0), Activation::of_number(6)), (None, None));
    }
}
