//! Functions that a compiler can turn into vector instructions, since they have no branches: those of the C library take a number at a time.
//!
//! Reduction and polynomials are those of Moshier, "Cephes mathematical library" (1989), in single precision, the arctangent's those of Shibata,
//! "SLEEF" (2010); each is within 2 units in the last place, tanh within 3, tan and the inverse ones within 4.

use std::f32::consts::{FRAC_1_SQRT_2, LOG2_E};

/// a·b + c, rounded once where there is an instruction for it, which WebAssembly without relaxed SIMD lacks.
trait Fused {
    fn fused(self, b: Self, c: Self) -> Self;
}

impl Fused for f32 {
    #[inline(always)]
    fn fused(self, b: Self, c: Self) -> Self {
        if cfg!(target_arch = "wasm32") { self * b + c } else { self.mul_add(b, c) }
    }
}

/// Added to a number and taken away again, this leaves the nearest whole one, which is also in the lowest bits of the sum.
const MAGIC: f32 = 12_582_912.0;

/// 2 to the power of a whole number from −126 to 127.
#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) << 23).cast_unsigned())
}

/// c₀ + c₁·x + c₂·x² + …, from the last coefficient on.
macro_rules! polynomial {
    ($x:expr, $last:expr $(, $before:expr)*) => {{
        let sum = $last;
        $( let sum = $x.fused(sum, $before); )*
        sum
    }};
}

/// c₀ + c₁·x + c₂·x² + c₃·x³, from the last coefficient on, by pairs of neighbours: half as many steps wait for one another (Estrin's scheme).
macro_rules! cubic {
    ($x:expr, $square:expr, $c3:expr, $c2:expr, $c1:expr, $c0:expr) => {
        $square.fused($x.fused($c3, $c2), $x.fused($c1, $c0))
    };
}

/// eˣ − 1 without the powers of two in eˣ, and how many those are, in the lowest bits.
#[inline(always)]
fn exponential(x: f32) -> (f32, u32) {
    let sum = x.fused(LOG2_E, MAGIC);
    let n = sum - MAGIC;
    // n · ln 2, in two parts of which the first is exact.
    let r = n.fused(2.121_944_4e-4, n.fused(-0.693_359_4, x));
    let square = r * r;
    let high = r.fused(1.987_569_1e-4, 1.398_2e-3);
    let p = (square * square).fused(high, cubic!(r, square, 8.333_452e-3f32, 4.166_58e-2, 1.666_666_5e-1, 0.5));
    (p.fused(square, r), sum.to_bits())
}

/// A number times 2 to the power of a whole number from −252 to 254, in two steps, since the power alone may be out of range.
#[inline(always)]
fn scaled_back(x: f32, exponent: i32) -> f32 {
    let half = exponent >> 1;
    x * power_of_two(half) * power_of_two(exponent - half)
}

#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Beyond these the result is ∞ or 0 in any case; NaN is on neither side.
    let most = if x > 89.0 { 89.0 } else { x };
    let (less, powers) = exponential(if most < -104.0 { -104.0 } else { most });
    let exponent = powers.wrapping_sub(MAGIC.to_bits()).cast_signed();
    // Of NaN the bits are of no power, and it stays one by whatever it is multiplied.
    scaled_back(less + 1.0, exponent)
}

/// The same bits where they are those of a normal number in any case.
#[inline(always)]
pub(crate) fn plain_exp(x: f32) -> f32 {
    let (less, powers) = exponential(x);
    f32::from_bits((less + 1.0).to_bits().wrapping_add(powers << 23))
}

/// Whether [`plain_exp`] may be asked.
#[inline(always)]
pub(in crate::ops::elementwise) fn has_plain_exp(x: f32) -> bool {
    x.abs() < 86.0
}

/// Whether a number is normal and above 0.
#[inline(always)]
pub(in crate::ops::elementwise) fn is_plain(x: f32) -> bool {
    x.to_bits().wrapping_sub(f32::MIN_POSITIVE.to_bits()) < f32::INFINITY.to_bits() - f32::MIN_POSITIVE.to_bits()
}

const TWO_THIRDS: f32 = 2.0 / 3.0;

/// A number that is plain as a power of two by a number from `least` up to and without twice that: that number less 1, and which power.
#[inline(always)]
fn parts(x: f32, least: f32) -> (f32, i32) {
    let bits = x.to_bits();
    // Its bits are above those of the least by less than those of an exponent.
    let above = bits.wrapping_sub(least.to_bits()).cast_signed() >> 23;
    (f32::from_bits(bits.wrapping_sub(above.cast_unsigned() << 23)) - 1.0, above)
}

/// The logarithm of a number with such parts.
#[inline(always)]
fn logarithm((m, e): (f32, i32)) -> f32 {
    let (z, e) = (m * m, e as f32);
    let p = polynomial!(
        m,
        7.037_683_6e-2f32,
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1
    );
    let y = z.fused(-0.5, (p * m).fused(z, -2.121_944_4e-4 * e));
    e.fused(0.693_359_4, m + y)
}

/// A number that has a logarithm as one that is plain, by so many powers of two.
#[inline(always)]
fn scaled(x: f32) -> (f32, i32) {
    if x < f32::MIN_POSITIVE { (x * 8_388_608.0, 23) } else { (x, 0) }
}

#[inline(always)]
pub(crate) fn log(x: f32) -> f32 {
    let (scaled, powers) = scaled(x);
    let (m, e) = parts(scaled, FRAC_1_SQRT_2);
    let y = logarithm((m, e - powers));
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x == f32::INFINITY { x } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// The same bits of what is plain.
#[inline(always)]
pub(crate) fn plain_log(x: f32) -> f32 {
    logarithm(parts(x, FRAC_1_SQRT_2))
}

/// ln(1 + x), for small x by the series of 2 artanh(x / (2 + x)).
#[inline(always)]
pub(crate) fn log_1p(x: f32) -> f32 {
    let z = x / (2.0 + x);
    let q = z * z;
    let series = polynomial!(q, 0.090_909_09f32, 0.111_111_11, 0.142_857_15, 0.2, 0.333_333_34, 1.0);
    if x < 0.5 { 2.0 * z * series } else { log(1.0 + x) }
}

/// h / (1 − h) with h = (1 − e^(−2|a|)) / 2, which is exact near zero too. The exponential is of the rest r = −2·s, by which the coefficients are
/// scaled; they are those of the least error of a polynomial one degree shorter than its own, found by Remez' algorithm.
#[inline(always)]
pub(crate) fn tanh(a: f32) -> f32 {
    // Beyond it the result is 1 in any case; NaN is on neither side.
    let x = if a.abs() > 10.0 { 10.0 } else { a.abs() };
    let sum = x.fused(-2.0 * LOG2_E, MAGIC);
    let n = sum - MAGIC;
    let s = n.fused(-1.060_972_2e-4, n.fused(0.346_679_7, x));
    let square = s * s;
    let low = cubic!(s, square, 0.133_867_07f32, -0.333_337_63, 0.666_661_7, -0.999_999_94);
    let less = (square * square).fused(-0.044_423_964, low).fused(square, s);
    // The same bits as those of 1 with n in its exponent.
    let power = f32::from_bits((sum.to_bits() << 23).wrapping_add(1f32.to_bits()));
    let half = power.fused(less, power.fused(-0.5, 0.5));
    (half / (1.0 - half)).copysign(a)
}

/// log₂ of a number with such parts from ⅔ on, as a sum of two, since an error of an exponent counts as often as it is large. Each step of the
/// scheme (Horner's) but the first ones, whose terms are small, keeps what it rounds off, as Dekker has it; the coefficients are those of the
/// least error, found by Remez' algorithm.
#[inline(always)]
fn binary_logarithm((m, e): (f32, i32)) -> [f32; 2] {
    let (square, e) = (m * m, e as f32);
    let fourth = square * square;
    let highest = m.fused(0.157_541_72, -0.166_105_12);
    let higher = cubic!(m, square, 0.123_562_84f32, -0.137_461_16, 0.160_891_22, -0.180_806_06);
    let high = cubic!(m, square, 0.206_075_98f32, -0.240_433_66, 0.288_539_44, -0.360_673_96);
    let mut sum = [fourth.fused(fourth.fused(highest, higher), high), 0.0];
    for [coefficient, rest] in [[0.480_898_35f32, -6.515_421e-9], [-0.721_347_5, -8.754_67e-9], [LOG2_E, 1.926_299_7e-8]] {
        let high = m.fused(sum[0], coefficient);
        // What is taken away is close enough that nothing is lost.
        sum = [high, m.fused(sum[0], coefficient - high) + m.fused(sum[1], rest)];
    }
    let product = m * sum[0];
    let rest = m.fused(sum[1], m.fused(sum[0], -product));
    let high = e + product;
    [high, (e - high) + product + rest]
}

/// 2ʸ of a sum of two, of which the second is small.
#[inline(always)]
fn binary_power([y, rest]: [f32; 2]) -> f32 {
    let sum = y + MAGIC;
    let r = (y - (sum - MAGIC)) + rest;
    let square = r * r;
    let high = r.fused(1.535_336_2e-4, 1.339_887_4e-3);
    let low = cubic!(r, square, 9.618_437e-3f32, 5.550_332_5e-2, 2.402_264_8e-1, 6.931_472e-1);
    let p = (square * square).fused(high, low).fused(r, 1.0);
    let power = scaled_back(p, sum.to_bits().wrapping_sub(MAGIC.to_bits()).cast_signed());
    // Beyond these what was counted is nothing; NaN is on neither side.
    let power = if y > 130.0 { f32::INFINITY } else { power };
    if y < -160.0 { 0.0 } else { power }
}

/// The product of a number and a sum of two, as such a sum.
#[inline(always)]
fn times(x: f32, [high, rest]: [f32; 2]) -> [f32; 2] {
    let product = x * high;
    [product, x.fused(rest, x.fused(high, -product))]
}

/// aᵇ of a ≥ 0, as 2 to the power of b · log₂ a.
#[inline(always)]
pub(crate) fn power(a: f32, b: f32) -> f32 {
    let (scaled, powers) = scaled(a);
    let (m, e) = parts(scaled, TWO_THIRDS);
    let [high, rest] = binary_logarithm((m, e - powers));
    let high = if a == 0.0 { f32::NEG_INFINITY } else { high };
    let high = if a == f32::INFINITY { a } else { high };
    let y = times(b, [high, rest]);
    let power = if a == 1.0 { 1.0 } else { binary_power(y) };
    if a.is_nan() || y[0].is_nan() && a != 1.0 { f32::NAN } else { power }
}

/// The same bits of a that is plain and b that is finite.
#[inline(always)]
pub(crate) fn plain_power(a: f32, b: f32) -> f32 {
    binary_power(times(b, binary_logarithm(parts(a, TWO_THIRDS))))
}

/// The largest angle whose quarter turns are counted exactly enough; beyond it the C library is asked, one number at a time.
const MOST_ANGLE: f32 = 8192.0;

/// The sine and the cosine of what is left of an angle without its nearest quarter turns, and how many those are, in the lowest bits.
#[inline(always)]
fn reduced(x: f32) -> (f32, f32, u32) {
    let sum = x.fused(std::f32::consts::FRAC_2_PI, MAGIC);
    let n = sum - MAGIC;
    let r = n.fused(-7.549_79e-8, n.fused(-4.837_513e-4, n.fused(-1.570_312_5, x)));
    let z = r * r;
    let sine = (r * z).fused(polynomial!(z, -1.951_529_6e-4f32, 8.332_161e-3, -1.666_665_5e-1), r);
    // Of -0 the sum has lost its sign.
    let sine = if r == 0.0 { r } else { sine };
    let cosine = (z * z).fused(polynomial!(z, 2.443_315_7e-5f32, -1.388_731_6e-3, 4.166_664_6e-2), z.fused(-0.5, 1.0));
    (sine, cosine, sum.to_bits())
}

/// The sine of an angle that so many quarter turns have been added to.
#[inline(always)]
fn turned(x: f32, quarters: u32) -> f32 {
    let (sine, cosine, turns) = reduced(x);
    let quadrant = turns.wrapping_add(quarters);
    let y = if quadrant & 1 == 0 { sine } else { cosine };
    if quadrant & 2 == 0 { y } else { -y }
}

#[inline(always)]
pub(crate) fn sin(x: f32) -> f32 {
    turned(x, 0)
}

#[inline(always)]
pub(crate) fn cos(x: f32) -> f32 {
    turned(x, 1)
}

#[inline(always)]
pub(crate) fn tan(x: f32) -> f32 {
    let (sine, cosine, turns) = reduced(x);
    let is_even = turns & 1 == 0;
    (if is_even { sine } else { -cosine }) / if is_even { cosine } else { sine }
}

/// The arcsine of a number from 0 to ½.
#[inline(always)]
fn small_asin(x: f32) -> f32 {
    let z = x * x;
    let p = polynomial!(z, 4.216_32e-2_f32, 2.418_131e-2, 4.547_002_6e-2, 7.495_300_3e-2, 1.666_675_2e-1);
    (p * z).fused(x, x)
}

#[inline(always)]
pub(crate) fn asin(x: f32) -> f32 {
    let a = x.abs();
    // Near 1 by half the angle. Beyond it there is no root, and the result is NaN.
    let is_large = a > 0.5;
    let y = small_asin(if is_large { (0.5 * (1.0 - a)).sqrt() } else { a });
    (if is_large { y.fused(-2.0, std::f32::consts::FRAC_PI_2) } else { y }).copysign(x)
}

#[inline(always)]
pub(crate) fn acos(x: f32) -> f32 {
    let a = x.abs();
    let is_large = a > 0.5;
    let y = small_asin(if is_large { (0.5 * (1.0 - a)).sqrt() } else { a });
    let near = if x > 0.0 { 2.0 * y } else { y.fused(-2.0, std::f32::consts::PI) };
    if is_large { near } else { std::f32::consts::FRAC_PI_2 - y.copysign(x) }
}

#[inline(always)]
pub(crate) fn atan(x: f32) -> f32 {
    let a = x.abs();
    // Beyond 1 by the inverse.
    let is_large = a > 1.0;
    let r = if is_large { 1.0 / a } else { a };
    let z = r * r;
    let square = z * z;
    let high = cubic!(z, square, 2.823_639e-3f32, -1.595_690_3e-2, 4.250_499e-2, -7.489_009e-2);
    let low = cubic!(z, square, 1.063_479_3e-1f32, -1.420_273_6e-1, 1.999_269_6e-1, -3.333_310_2e-1);
    let y = (square * square).fused(high, low).fused(z * r, r);
    (if is_large { std::f32::consts::FRAC_PI_2 - y } else { y }).copysign(x)
}

/// Whether an angle is small enough for the functions above, or none.
#[inline(always)]
pub(crate) fn is_near(angle: f32) -> bool {
    let is_far = angle.abs() >= MOST_ANGLE;
    !is_far
}

/// A function of the angles that are not, one after the other; the others' stay, so that each is the same whatever is beside it.
#[cold]
#[inline(never)]
pub(in crate::ops::elementwise) fn far(f: fn(f32) -> f32, angles: &[u32], out: &mut [u32]) {
    for (out, &angle) in out.iter_mut().zip(angles) {
        let angle = f32::from_bits(angle);
        if !is_near(angle) {
            *out = f(angle).to_bits();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units in the last place between a result and the exact one.
    fn units(got: f32, exact: f64) -> f64 {
        let nearest = exact as f32;
        if got == nearest || (got.is_nan() && nearest.is_nan()) {
            return 0.0;
        }
        (f64::from(got) - exact).abs()
            / f64::from(f32::from_bits(nearest.abs().to_bits().max(1 << 23) + 1) - nearest.abs().max(f32::MIN_POSITIVE))
    }

    #[test]
    fn functions_are_within_two_units_in_the_last_place() {
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            f32::MIN_POSITIVE,
            1e-42,
            88.7,
            89.5,
            -87.5,
            -103.0,
            -110.0,
        ];
        let numbers = (0..200_000u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9)));
        let from_minus_1_to_1 = (0..20_000u32).map(|i| i as f32 * 1e-4 - 1.0);
        for x in numbers.chain(special).chain(from_minus_1_to_1) {
            let wide = f64::from(x);
            assert!(units(exp(x), wide.exp()) <= 2.0, "exp({x}) is {}", exp(x));
            assert!(units(log(x), wide.ln()) <= 2.0, "log({x}) is {}", log(x));
            assert!(!has_plain_exp(x) || plain_exp(x).to_bits() == exp(x).to_bits(), "exp({x})");
            assert!(!is_plain(x) || plain_log(x).to_bits() == log(x).to_bits(), "log({x})");
            assert!(units(tanh(x), wide.tanh()) <= 3.0 && tanh(x).abs().max(1.0) == 1.0, "tanh({x}) is {}", tanh(x));
            for y in [x, 0.5, -2.0, 3.1, 1.0 / 3.0, 1e-3, f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                // The C library's power is right to a fraction of a unit of double precision.
                let (base, exact) = (x.abs(), f64::from(x.abs()).powf(y.into()));
                // Only a zeroth power is not asked for: the table knows it.
                assert!(y == 0.0 || units(power(base, y), exact) <= 1.5, "{base} to the power of {y} is {}", power(base, y));
                if is_plain(base) && y.is_finite() {
                    assert_eq!(plain_power(base, y).to_bits(), power(base, y).to_bits(), "{base} to the power of {y}");
                }
            }
            for (name, got, exact) in [("asin", asin(x), wide.asin()), ("acos", acos(x), wide.acos()), ("atan", atan(x), wide.atan())] {
                assert!(units(got, exact) <= 4.0, "{name}({x}) is {got}, not {exact}");
            }
            if !is_near(x) {
                continue;
            }
            // Its poles are near no number of f32.
            assert!(
                units(tan(x), wide.tan()) <= 4.0 || (f64::from(tan(x)) - wide.tan()).abs() < 1e-7 * (1.0 + wide.tan().powi(2)),
                "tan({x}) is {}",
                tan(x)
            );
            for (name, got, exact) in [("sin", sin(x), wide.sin()), ("cos", cos(x), wide.cos())] {
                // Near their zeros what was lost in the reduction counts.
                assert!(units(got, exact) <= 2.0 || (f64::from(got) - exact).abs() < 1e-7, "{name}({x}) is {got}, not {exact}");
            }
        }
    }
}
