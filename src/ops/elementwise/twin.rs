//! The functions of the table in Rust, over words as devices have them: what the CPU computes, and what others are compared with.
//!
//! All of it is inlined into the loop over a block, which is compiled for the instructions that the CPU has (`backend/cpu/map.rs`).

#[cfg(not(of_the_page))]
mod math;

#[cfg(not(of_the_page))]
pub(crate) use math::is_near;
#[cfg(not(of_the_page))]
pub(super) use math::{far, has_plain_exp, is_plain};

use std::num::Wrapping;

pub(super) type F32 = f32;
pub(super) type I32 = Wrapping<i32>;
pub(super) type U32 = Wrapping<u32>;
pub(super) type Bool = bool;

/// A value that lies in a word.
pub(super) trait Word: Copy {
    fn of(word: u32) -> Self;
    fn word(self) -> u32;
}

impl Word for F32 {
    #[inline(always)]
    fn of(word: u32) -> Self {
        Self::from_bits(word)
    }

    #[inline(always)]
    fn word(self) -> u32 {
        self.to_bits()
    }
}

impl Word for I32 {
    #[inline(always)]
    fn of(word: u32) -> Self {
        Self(word.cast_signed())
    }

    #[inline(always)]
    fn word(self) -> u32 {
        self.0.cast_unsigned()
    }
}

impl Word for U32 {
    #[inline(always)]
    fn of(word: u32) -> Self {
        Self(word)
    }

    #[inline(always)]
    fn word(self) -> u32 {
        self.0
    }
}

impl Word for Bool {
    #[inline(always)]
    fn of(word: u32) -> Self {
        word != 0
    }

    #[inline(always)]
    fn word(self) -> u32 {
        self.into()
    }
}

/// A function of some values: a trait, since a closure may be left out of the loop, and then it is compiled for any CPU, one number at a time.
#[cfg(not(of_the_page))]
pub(super) trait Expression<const N: usize> {
    type Operand: Word;
    type Value: Word;
    fn of(operands: [Self::Operand; N]) -> Self::Value;
}

/// What a value is stored as: a word, or a byte of a truth.
#[cfg(not(of_the_page))]
pub(super) trait Stored {
    fn of(word: u32) -> Self;
}

#[cfg(not(of_the_page))]
impl Stored for u32 {
    #[inline(always)]
    fn of(word: u32) -> Self {
        word
    }
}

#[cfg(not(of_the_page))]
impl Stored for u8 {
    #[inline(always)]
    fn of(word: u32) -> Self {
        word as Self
    }
}

/// Each element of the result from the words of the operands at its place, or from the only one. Without optimization the variables of all
/// functions at once would be more than a thread's stack.
#[cfg(not(of_the_page))]
#[cfg_attr(debug_assertions, inline)]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn map<E: Expression<N>, const N: usize, T: Stored>(operands: &[&[u32]], out: &mut [T]) {
    match (N, operands) {
        (1, &[a]) => {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = value::<E, N, T>(a, a);
            }
        }
        (2, &[&[a], b]) => {
            for (out, &b) in out.iter_mut().zip(b) {
                *out = value::<E, N, T>(a, b);
            }
        }
        (2, &[a, &[b]]) => {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = value::<E, N, T>(a, b);
            }
        }
        (2, &[a, b]) => {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = value::<E, N, T>(a, b);
            }
        }
        _ => debug_assert!(false, "{N} operands, but {} are given", operands.len()),
    }
}

/// Whether all numbers are of a kind, without a branch for each.
#[cfg(not(of_the_page))]
#[inline(always)]
pub(crate) fn all(numbers: &[u32], is: impl Fn(f32) -> bool) -> bool {
    let mut all = true;
    for &number in numbers {
        all &= is(f32::from_bits(number));
    }
    all
}

#[cfg(not(of_the_page))]
#[inline(always)]
fn value<E: Expression<N>, const N: usize, T: Stored>(a: u32, b: u32) -> T {
    let mut both = [E::Operand::of(a); N];
    both[N - 1] = E::Operand::of(b);
    T::of(E::of(both).word())
}

/// The operands of a function of one or two.
#[cfg(of_the_page)]
pub(super) fn operands<T: Word, const N: usize>(a: u32, b: u32) -> [T; N] {
    let mut both = [T::of(a); N];
    both[N - 1] = T::of(b);
    both
}

/// What expressions may say.
pub(super) mod vocabulary {
    #[cfg(not(of_the_page))]
    pub(crate) use super::math::{
        acos, asin, atan as arctangent, cos, exp as exponential, log as logarithm, log_1p, plain_exp, plain_log, plain_power, power, sin,
        tan, tanh,
    };
    use super::{I32, U32};

    #[inline(always)]
    pub(crate) fn select<T>(no: T, yes: T, condition: bool) -> T {
        if condition { yes } else { no }
    }

    #[inline(always)]
    pub(crate) fn both(a: bool, b: bool) -> bool {
        a & b
    }

    #[inline(always)]
    pub(crate) fn either(a: bool, b: bool) -> bool {
        a | b
    }

    #[inline(always)]
    pub(crate) fn i32(value: i32) -> I32 {
        std::num::Wrapping(value)
    }

    #[inline(always)]
    pub(crate) fn u32(value: u32) -> U32 {
        std::num::Wrapping(value)
    }

    #[inline(always)]
    pub(crate) fn is_nan(a: f32) -> bool {
        a.is_nan()
    }

    #[inline(always)]
    pub(crate) fn is_finite(a: f32) -> bool {
        a.is_finite()
    }

    #[inline(always)]
    pub(crate) fn is_negative(a: f32) -> bool {
        a.is_sign_negative()
    }

    #[inline(always)]
    pub(crate) fn zero_of(a: f32) -> f32 {
        f32::from_bits(a.to_bits() & 0x8000_0000)
    }

    #[inline(always)]
    pub(crate) fn nan_of(a: f32) -> f32 {
        f32::from_bits(a.to_bits() | 0x7fc0_0000)
    }

    #[inline(always)]
    pub(crate) fn remainder(a: f32, b: f32) -> f32 {
        a % b
    }

    /// The page's `Math` takes 1 to an infinite power for no number.
    #[cfg(of_the_page)]
    pub(crate) fn power(a: f32, b: f32) -> f32 {
        if a == 1.0 { 1.0 } else { js_sys::Math::pow(a.into(), b.into()) as f32 }
    }

    #[inline(always)]
    pub(crate) fn power_i32(a: I32, b: I32) -> I32 {
        // Of a negative exponent only 1 and −1 have a whole power.
        match (a.0, b.0) {
            (1, _) => i32(1),
            (-1, b) => i32(if b % 2 == 0 { 1 } else { -1 }),
            (_, ..0) => i32(0),
            (a, b) => i32(a.wrapping_pow(b.cast_unsigned())),
        }
    }

    /// a / b without the fraction, of any b but 0.
    #[cfg(not(of_the_page))]
    #[inline(always)]
    pub(crate) fn quotient_i32(a: I32, b: I32) -> I32 {
        i32(quotient(a.0.into(), b.0.into()).cast_signed())
    }

    /// The same of unsigned integers.
    #[cfg(not(of_the_page))]
    #[inline(always)]
    pub(crate) fn quotient_u32(a: U32, b: U32) -> U32 {
        u32(quotient(a.0.into(), b.0.into()))
    }

    /// By a division of double precision, of which there are vectors. It is exact: what is not whole is farther from the next whole number
    /// than it is rounded by.
    #[cfg(not(of_the_page))]
    #[inline(always)]
    fn quotient(a: f64, b: f64) -> u32 {
        // With this the whole number is in the lowest bits.
        const MAGIC: f64 = 6_755_399_441_055_744.0;
        ((a / b).trunc() + MAGIC).to_bits() as u32
    }

    #[inline(always)]
    pub(crate) fn power_u32(a: U32, b: U32) -> U32 {
        u32(a.0.wrapping_pow(b.0))
    }

    #[inline(always)]
    pub(crate) fn round_even(a: f32) -> f32 {
        a.round_ties_even()
    }

    #[inline(always)]
    pub(crate) fn nearest_f16(a: f32) -> f32 {
        let bits = a.to_bits();
        let size = bits & 0x7fff_ffff;
        let rounded = f32::from_bits(bits.wrapping_add(0xfff + (bits >> 13 & 1)) & 0xffff_e000);
        // Below the least normal one they are multiples of 2⁻²⁴.
        let tiny = round_even(a * 16_777_216.0) / 16_777_216.0;
        let of_number =
            select(select(rounded, tiny, size < 0x3880_0000), f32::from_bits(bits & 0x8000_0000 | 0x7f80_0000), size >= 0x477f_f000);
        select(of_number, a, size > 0x7f80_0000)
    }

    #[inline(always)]
    pub(crate) fn shift_left(a: U32, b: U32) -> U32 {
        u32(a.0.wrapping_shl(b.0))
    }

    #[inline(always)]
    pub(crate) fn shift_right(a: U32, b: U32) -> U32 {
        u32(a.0.wrapping_shr(b.0))
    }

    macro_rules! methods {
        ($($function:ident = $method:ident),+) => {
            $( #[inline(always)] pub(crate) fn $function(a: f32) -> f32 { a.$method() } )+
        };
    }

    methods!(abs = abs, sqrt = sqrt, floor = floor, ceil = ceil, trunc = trunc);
    /// The page has these in double precision, and the package need not bring them.
    #[cfg(of_the_page)]
    macro_rules! of_the_page {
        ($($function:ident = $theirs:ident),+) => {
            $( pub(crate) fn $function(a: f32) -> f32 { js_sys::Math::$theirs(a.into()) as f32 } )+
        };
    }

    #[cfg(of_the_page)]
    of_the_page!(
        exponential = exp,
        logarithm = log,
        log_1p = log1p,
        sin = sin,
        cos = cos,
        tan = tan,
        asin = asin,
        acos = acos,
        arctangent = atan
    );
}

#[cfg(all(test, not(of_the_page)))]
mod tests {
    use super::vocabulary::{i32, quotient_i32, quotient_u32, u32};

    #[test]
    fn quotients_are_whole() {
        let numbers = (0..2000u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> (i % 32)).chain([0, 1, 2, 3, 1 << 31, u32::MAX - 1, u32::MAX]);
        let numbers: Vec<_> = numbers.collect();
        for (&a, &b) in numbers.iter().flat_map(|a| numbers.iter().map(move |b| (a, b))) {
            if b == 0 {
                continue;
            }
            assert_eq!(quotient_u32(u32(a), u32(b)).0, a / b, "{a} / {b}");
            let [a, b] = [a, b].map(u32::cast_signed);
            assert_eq!(quotient_i32(i32(a), i32(b)).0, a.wrapping_div(b), "{a} / {b}");
        }
    }
}
