//! Powers by the vectors of AVX-512, which take a number apart, look into tables and scale by powers of two in an instruction each.

/// aᵇ of numbers as words, as many as `out` has of each, or one for all; false if the CPU has no such vectors.
#[inline]
pub(in crate::backend::cpu) fn powers(bases: &[u32], exponents: &[u32], out: &mut [u32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512dq") {
        // SAFETY: the CPU has the instructions.
        unsafe { sixteens::powers(bases, exponents, out) };
        return true;
    }
    let _ = (bases, exponents, out);
    false
}

#[cfg(target_arch = "x86_64")]
mod sixteens {
    use std::arch::x86_64::{
        __m512, __mmask16, _CMP_EQ_OQ, _CMP_NEQ_OQ, _CMP_NLE_UQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEG_INF, _MM_MANT_NORM_1_2,
        _MM_MANT_SIGN_ZERO, _mm512_abs_ps, _mm512_add_ps, _mm512_castps_si512, _mm512_cmp_ps_mask, _mm512_fmadd_ps, _mm512_fmsub_ps,
        _mm512_fnmadd_ps, _mm512_fpclass_ps_mask, _mm512_getexp_ps, _mm512_getmant_ps, _mm512_mask_blend_ps, _mm512_mask_xor_ps,
        _mm512_movepi32_mask, _mm512_mul_ps, _mm512_permutex2var_ps, _mm512_roundscale_ps, _mm512_scalef_ps, _mm512_set1_ps,
        _mm512_srli_epi32, _mm512_sub_ps,
    };
    use std::f32::consts::LOG2_E;

    use crate::ops::elementwise::{Function, Kind};

    /// Numbers of a vector.
    const LANES: usize = 16;

    /// r · 64 for each 32nd of the numbers from 1 to 2: 1 / r is near its middle, but that of the first is 1 and that of the last 2, so that the
    /// logarithm of what is near 1 loses nothing. m · r − 1 is exact for each number m of it, since r is so short.
    const INVERSES: [u8; 32] =
        [64, 61, 59, 58, 56, 55, 53, 52, 51, 49, 48, 47, 46, 45, 44, 43, 42, 41, 41, 40, 39, 38, 38, 37, 36, 36, 35, 34, 34, 33, 33, 32];
    /// −ln r for each of them: the nearest multiple of 2⁻¹⁷, as that multiple, and what is left.
    const LOGARITHMS: [(u32, f32); 32] = [
        (0, 0.0),
        (6_293, -2.560_599e-6),
        (10_662, 1.034_961_8e-6),
        (12_903, -2.004_823_5e-6),
        (17_502, 1.729_538_6e-6),
        (19_864, -3.948_415_5e-7),
        (24_719, 1.663_895_8e-7),
        (27_216, -2.236_784_2e-6),
        (29_761, -9.600_092e-7),
        (35_004, 3.459_077e-6),
        (37_707, 4.928_619_4e-7),
        (40_467, -3.226_846_5e-6),
        (43_285, 3.344_585_4e-6),
        (46_166, 1.965_659_7e-6),
        (49_112, -1.374_777_3e-6),
        (52_125, 7.777_247e-7),
        (55_209, 2.222_400_6e-6),
        (58_368, -1.483_344_6e-6),
        (58_368, -1.483_344_6e-6),
        (61_604, 2.408_542_5e-6),
        (64_923, -1.743_922_3e-6),
        (68_327, 3.283_496_7e-6),
        (68_327, 3.283_496_7e-6),
        (71_823, -8.327_025_4e-7),
        (75_414, 9.857_239e-7),
        (75_414, 9.857_239e-7),
        (79_107, -3.491_313_2e-6),
        (82_906, -2.426_430_3e-8),
        (82_906, -2.426_430_3e-8),
        (86_819, -8.819_154e-7),
        (86_819, -8.819_154e-7),
        (90_852, 1.428_606_8e-6),
    ];
    /// ln 2 in the same two parts.
    const LN_2: [f32; 2] = [high(31), LOGARITHMS[31].1];

    const fn high(at: usize) -> f32 {
        LOGARITHMS[at].0 as f32 / 131_072.0
    }

    /// 1 / m for 32 kinds of m, and the two parts of its logarithm.
    static TABLES: [[f32; 32]; 3] = {
        let (mut tables, mut at) = ([[0.0; 32]; 3], 0);
        while at < 32 {
            tables[0][at] = INVERSES[at] as f32 / 64.0;
            tables[1][at] = high(at);
            tables[2][at] = LOGARITHMS[at].1;
            at += 1;
        }
        tables
    };

    /// The number of a table for each of sixteen.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn look_up(table: &[f32; 32], at: __m512) -> __m512 {
        let [low, high]: [[f32; LANES]; 2] = bytemuck::cast(*table);
        // Of an index only the lowest five bits count: of a number, the highest ones behind its exponent.
        _mm512_permutex2var_ps(bytemuck::cast(low), _mm512_srli_epi32::<18>(_mm512_castps_si512(at)), bytemuck::cast(high))
    }

    /// The logarithm of a normal number above 0 as a sum of two, of which the second is small: a = 2ᵉ · m, and with r of the table and
    /// t = m · r − 1 it is e · ln 2 − ln r + t − t²/2 + t³ · (a polynomial of least error). Up to the square what is rounded off is kept.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn logarithm(a: __m512) -> [__m512; 2] {
        let c = |number: f32| _mm512_set1_ps(number);
        let m = _mm512_getmant_ps::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_ZERO>(a);
        let e = _mm512_getexp_ps(a);
        let [inverse, high, low] = [0, 1, 2].map(|table| look_up(&TABLES[table], m));
        let t = _mm512_fmsub_ps(m, inverse, c(1.0));
        // Exact, since ln 2 and the logarithms are short.
        let whole = _mm512_fmadd_ps(e, c(LN_2[0]), high);
        let high = _mm512_add_ps(whole, t);
        let low = _mm512_add_ps(_mm512_add_ps(_mm512_sub_ps(whole, high), t), _mm512_fmadd_ps(e, c(LN_2[1]), low));
        let square = _mm512_mul_ps(t, t);
        let square_low = _mm512_fmsub_ps(t, t, square);
        let sum = _mm512_fmadd_ps(square, c(-0.5), high);
        let low = _mm512_add_ps(low, _mm512_fmadd_ps(square, c(-0.5), _mm512_sub_ps(high, sum)));
        let p = _mm512_fmadd_ps(t, c(-0.163_171_99), c(0.200_084_31));
        let p = _mm512_fmadd_ps(t, p, c(-0.250_001_64));
        let p = _mm512_fmadd_ps(t, p, c(0.333_333_3));
        [sum, _mm512_fmadd_ps(_mm512_mul_ps(t, square), p, _mm512_fmadd_ps(square_low, c(-0.5), low))]
    }

    /// e to the power of a sum of two, of which the second is small and the first within ±1000.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn exponential([x, low]: [__m512; 2]) -> __m512 {
        let c = |number: f32| _mm512_set1_ps(number);
        // Added and taken away again, it leaves the nearest whole number.
        let magic = c(12_582_912.0);
        let n = _mm512_sub_ps(_mm512_fmadd_ps(x, c(LOG2_E), magic), magic);
        // n · ln 2, in two parts of which the first is exact.
        let r = _mm512_fmadd_ps(n, c(2.121_944_4e-4), _mm512_fnmadd_ps(n, c(0.693_359_4), x));
        let r = _mm512_add_ps(r, low);
        let p = _mm512_fmadd_ps(r, c(1.394_657e-3), c(8.369_229e-3));
        let p = _mm512_fmadd_ps(r, p, c(4.166_626e-2));
        let p = _mm512_fmadd_ps(r, p, c(0.166_665_15));
        let p = _mm512_fmadd_ps(r, p, c(0.5));
        let p = _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, r);
        _mm512_scalef_ps(_mm512_add_ps(p, c(1.0)), n)
    }

    /// Sixteen powers, and which of them are not known: those of no normal base, and of exponents so large that the result is 0 or ∞, or that
    /// are no numbers.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn of_sixteen(bases: __m512, b: __m512) -> (__m512, __mmask16) {
        /// All but what is normal; the signs are known.
        const NOT_NORMAL: i32 = 0x01 | 0x02 | 0x04 | 0x08 | 0x10 | 0x20 | 0x80;
        let [high, low] = logarithm(_mm512_abs_ps(bases));
        let x = _mm512_mul_ps(b, high);
        let power = exponential([x, _mm512_fmadd_ps(b, low, _mm512_fmsub_ps(b, high, x))]);
        let unknown =
            _mm512_fpclass_ps_mask::<NOT_NORMAL>(bases) | _mm512_cmp_ps_mask::<_CMP_NLE_UQ>(_mm512_abs_ps(x), _mm512_set1_ps(1000.0));
        let negative = _mm512_movepi32_mask(_mm512_castps_si512(bases));
        if negative == 0 {
            return (power, unknown);
        }
        // Of a negative number there are powers of whole exponents only: negative ones if they are odd.
        const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
        let is_whole = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(_mm512_roundscale_ps::<DOWN>(b), b);
        // Rounded to a multiple of two, which is that of half of it rounded.
        let half = _mm512_mul_ps(b, _mm512_set1_ps(0.5));
        let is_odd = is_whole & _mm512_cmp_ps_mask::<_CMP_NEQ_OQ>(_mm512_roundscale_ps::<DOWN>(half), half);
        let signed = _mm512_mask_xor_ps(power, negative & is_odd, power, _mm512_set1_ps(-0.0));
        (_mm512_mask_blend_ps(negative & !is_whole, signed, _mm512_set1_ps(f32::NAN)), unknown)
    }

    /// The same of what the vectors do not know.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512dq,fma")]
    fn of_any(bases: &[u32; LANES], exponents: &[u32; LANES]) -> [u32; LANES] {
        let mut powers = [0; LANES];
        Function::Pow.apply(Kind::F32, &[bases, exponents], &mut powers);
        powers
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn of_some(bases: &[u32; LANES], exponents: &[u32; LANES]) -> [u32; LANES] {
        let (powers, unknown) = of_sixteen(bytemuck::cast(*bases), bytemuck::cast(*exponents));
        if unknown == 0 {
            return bytemuck::cast(powers);
        }
        bytemuck::cast(_mm512_mask_blend_ps(unknown, powers, bytemuck::cast(of_any(bases, exponents))))
    }

    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn powers(bases: &[u32], exponents: &[u32], out: &mut [u32]) {
        // What there is for the last ones: the only number for all, or the ones that are left over before some that change nothing.
        let of_rest = |of: &[u32]| {
            let &[number] = of else {
                let rest = of.as_chunks::<LANES>().1;
                let mut numbers = [1f32.to_bits(); LANES];
                numbers[..rest.len()].copy_from_slice(rest);
                return numbers;
            };
            [number; LANES]
        };
        let (last_base, last_exponent) = (of_rest(bases), of_rest(exponents));
        let (bases, exponents) = (bases.as_chunks().0, exponents.as_chunks().0);
        let (blocks, rest) = out.as_chunks_mut();
        for (number, out) in blocks.iter_mut().enumerate() {
            *out = of_some(bases.get(number).unwrap_or(&last_base), exponents.get(number).unwrap_or(&last_exponent));
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&of_some(&last_base, &last_exponent)[..rest.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::powers;
    use crate::ops::elementwise::{Function, Kind};

    fn of(bases: &[f32], exponents: &[f32]) -> Option<Vec<f32>> {
        let mut out = vec![0; bases.len().max(exponents.len())];
        let are_known = powers(bytemuck::cast_slice(bases), bytemuck::cast_slice(exponents), &mut out);
        are_known.then(|| out.into_iter().map(f32::from_bits).collect())
    }

    #[test]
    fn powers_are_within_a_unit_and_a_half_in_the_last_place() {
        const SPECIAL: [f32; 17] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            -2.0,
            3.0,
            -3.0,
            2.5,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            f32::MAX,
            f32::MIN_POSITIVE,
            1e-42,
            16_777_217.0,
        ];
        let (mut bases, mut exponents) = (Vec::new(), Vec::new());
        for (a, b) in SPECIAL.into_iter().flat_map(|a| SPECIAL.map(|b| (a, b))) {
            bases.push(a);
            exponents.push(b);
        }
        // Of any size, near 1, and few whole ones, each to powers of any size.
        let fractions = |factor: u32| (0..300_000u32).map(move |i| i.wrapping_mul(factor) as f32 * 2f32.powi(-32));
        for ((number, a), b) in (0..).zip(fractions(2_654_435_761)).zip(fractions(1_640_531_527)) {
            let base = match number % 4 {
                0 => f32::from_bits((a * 2_139_095_040.0) as u32),
                1 => (a - 0.5).mul_add(0.1, 1.0),
                2 => -a * 8.0,
                _ => (a * 8.0).round() - 4.0,
            };
            let of_any_size = (b - 0.5) * 210.0 / base.abs().ln();
            bases.push(base);
            exponents.push(if number % 8 < 4 && of_any_size.is_finite() { of_any_size } else { (b * 12.0).round() - 6.0 });
        }
        let Some(got) = of(&bases, &exponents) else {
            eprintln!("skipped: this CPU has no AVX-512");
            return;
        };
        for ((got, &a), &b) in got.into_iter().zip(&bases).zip(&exponents) {
            let mut of_table = [0];
            Function::Pow.apply(Kind::F32, &[&[a.to_bits()], &[b.to_bits()]], &mut of_table);
            let [of_table] = of_table.map(f32::from_bits);
            if !of_table.is_normal() {
                let is_alike = got.to_bits() == of_table.to_bits() || got.is_nan() && of_table.is_nan();
                assert!(is_alike || (got - of_table).abs() <= 3e-45, "{a} to the power of {b} is {got}, not {of_table}");
                continue;
            }
            let exact = f64::from(a).powf(b.into());
            let unit = f64::from(f32::from_bits(of_table.abs().to_bits() + 1) - of_table.abs());
            assert!((f64::from(got) - exact).abs() <= 1.5 * unit, "{a} to the power of {b} is {got}, not {exact}");
        }
    }

    #[test]
    fn powers_are_the_same_wherever_they_stand() {
        let bases: Vec<f32> = (0..100).map(|i| (i as f32 - 20.0) * 0.37).collect();
        for exponent in [2.0, 0.5, -3.0] {
            let Some(all) = of(&bases, &[exponent]) else {
                eprintln!("skipped: this CPU has no AVX-512");
                return;
            };
            for (first, count) in [(0, 1), (3, 15), (7, 40), (99, 1)] {
                let part = of(&bases[first..][..count], &vec![exponent; count]).unwrap();
                let are_alike = part.iter().zip(&all[first..]).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(are_alike, "{count} from {first} on to the power of {exponent}: {part:?}");
            }
            let of_two = of(&[2.0], &[exponent; 3]).unwrap();
            assert_eq!(of_two, [2f32.powf(exponent); 3]);
        }
    }
}
