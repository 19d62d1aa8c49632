//! How exactly a product is computed. Only what is asked for by name is less exact than the default.

use crate::dtype::DType;
use crate::error::{Error, Result};

/// How many products are summed up in f16 where [`Precision::F16`] is.
pub(crate) const F16_TERMS: u32 = 32;

/// How products are computed and summed up. With u = 2⁻²⁴, the unit roundoff of f32:
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Precision {
    /// In f32: each element is within γ_k·(|A||B|) of the exact one, γ_k = k·u / (1 − k·u).
    #[default]
    F32,
    /// f32 operands as two terms of f16 each, x = (h + 2⁻¹¹·l)·2ˢ with a power of two for each row of A and column of B, and of their products
    /// the three that count, multiplied by matrix units and summed up in f32. A product of two operands is then within 12·u of itself, unless an
    /// operand is 2²⁹ times smaller than the largest of its row of A or column of B, max(aᵢ) or max(bⱼ). An element is within
    ///
    /// ```text
    /// γ_{2k+12}·(|A||B|)ᵢⱼ + k·2⁻⁴⁸·max(aᵢ)·max(bⱼ)
    /// ```
    ///
    /// of the exact one: matrix units may cut off where f32 rounds, and sums that they make are short and added up in f32. In the mean of squares the
    /// error is smaller than f32's, with terms of both signs and of one. Tests measure that where there are such units:
    /// `cargo test --test conformance two_terms -- --nocapture`, and the package's in a browser. A product that should be as fast or closer in f32, which
    /// may add up k in several parts, is computed in f32. What an infinite operand reaches is infinite or NaN.
    ///
    /// After Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance"
    /// (2022).
    F16x3,
    /// f16 operands in f16, where the device computes in it and has no matrix units, which are faster and sum up in f32: up to 32 products are
    /// summed up in f16, and those sums in f32. It is for GPUs that do two of f16 in the time of one of f32; `scripts/bench-peers --gpu --only
    /// f16_computed` measures what that is worth. With v = 2⁻¹¹, the unit roundoff of f16, an element is within
    /// (γ_k + 32·v / (1 − 32·v))·(|A||B|) + k·2⁻¹⁴ of the exact one. A sum of 32 products past 65,504, the largest number of f16, becomes infinite.
    F16,
}

impl Precision {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::F32, Self::F16x3, Self::F16];

    /// The name that options and reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16x3 => "f16x3",
            Self::F16 => "f16",
        }
    }

    /// The fault of a product that asks for this where it is not to be had, and why it is not.
    pub(crate) fn not_here(self, why: &str) -> Box<Error> {
        // A page has no other backend with such units.
        let native = if cfg!(target_arch = "wasm32") {
            ""
        } else {
            ", Vulkan with VK_KHR_cooperative_matrix, and CUDA from compute capability 8.0 on"
        };
        let expected = format!(
            "{why}; it takes matrix units for f16, which WebGPU has in Chromium with --enable-unsafe-webgpu{native}; leave the option out for plain f32"
        );
        Box::new(Error::InvalidOption { option: "precision".to_owned(), value: self.name().to_owned(), expected })
    }

    /// Refuses what operands of that type cannot be computed with.
    pub(crate) fn check(self, operands: DType) -> Result<()> {
        let wanted = match self {
            Self::F32 => return Ok(()),
            Self::F16x3 => DType::F32,
            Self::F16 => DType::F16,
        };
        if operands == wanted {
            return Ok(());
        }
        let expected = format!("it is for operands of {wanted}, and these are of {operands}; leave the option out");
        Err(Box::new(Error::InvalidOption { option: "precision".to_owned(), value: self.name().to_owned(), expected }))
    }
}
