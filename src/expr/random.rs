//! Random numbers that follow from a seed and from an element's number alone, so that they are the same on every device and in any order.

use super::Expr;
use crate::dtype::DType;

impl Expr {
    /// Random bits of a seed, as u32: the hash `lowbias32` (Wellons, "Prospecting for hash functions", 2018) of the element's number and
    /// the seed's lower half, and again with both halves. Not for secrets.
    pub fn random_bits(shape: &[u64], seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        // Neither of the two alone: seeds whose lower halves differ have the same numbers in another order after the first.
        let both = lowbias32(low) ^ high.wrapping_add(0x85eb_ca6b);
        hash(&hash(&Self::index(shape).xor(low.wrapping_mul(0x9e37_79b9))).xor(both))
    }

    /// Uniform random numbers from 0 up to and without 1, multiples of 2⁻²⁴.
    pub fn random_uniform(shape: &[u64], seed: u64) -> Self {
        Self::random_bits(shape, seed).shift_right(8u32).cast(DType::F32) * (1.0 / f64::from(1u32 << 24))
    }

    /// Normally distributed random numbers of mean 0 and variance 1, by the transformation of Box and Muller ("A note on the generation of random
    /// normal deviates", 1958): √(−2 ln u) · cos 2π(v − ½).
    pub fn random_normal(shape: &[u64], seed: u64) -> Self {
        // From above 0 up to 1, since 0 has no logarithm.
        let u = Self::random_uniform(shape, seed) + 1.0 / f64::from(1u32 << 24);
        let v = Self::random_uniform(shape, seed ^ 0x5851_f42d_4c95_7f2d);
        // Within the half turns where every device's cosine is exact enough.
        (u.log() * -2.0).sqrt() * ((v - 0.5) * std::f64::consts::TAU).cos()
    }
}

fn hash(x: &Expr) -> Expr {
    let x = x.xor(x.shift_right(16u32)) * 0x7feb_352du32;
    let x = x.xor(x.shift_right(15u32)) * 0x846c_a68bu32;
    x.xor(x.shift_right(16u32))
}

/// The same of one number.
fn lowbias32(x: u32) -> u32 {
    let x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    let x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}
