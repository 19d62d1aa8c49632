//! Extremes of words, and where they are first, by the widest vectors that the CPU has: eight or sixteen words at a time.

/// Words that vectors are searched for: numbers or integers.
pub(in crate::backend::cpu) trait Sought: Copy + PartialEq {
    /// Where it is first; none if it is nowhere, or if the CPU has no such vectors.
    fn first_in(self, values: &[Self]) -> Option<usize>;
    /// The smallest or the largest, and whether one is NaN; none if the CPU has no such vectors, or fewer are given than one has.
    fn extreme_of(values: &[Self], is_min: bool) -> Option<(Self, bool)>;
}

macro_rules! sought {
    ($($word:ty => $find:ident, $smallest:ident, $largest:ident;)+) => { $(
        impl Sought for $word {
            #[inline]
            fn first_in(self, values: &[Self]) -> Option<usize> {
                #[cfg(all(feature = "simd", target_arch = "x86_64"))]
                {
                    let (values, of) = (bytemuck::cast_slice(values), bytemuck::cast(self));
                    if std::arch::is_x86_feature_detected!("avx512f") {
                        // SAFETY: the CPU has the instructions.
                        return unsafe { sixteens::$find(values, of) };
                    }
                    if std::arch::is_x86_feature_detected!("avx2") {
                        // SAFETY: the CPU has the instructions.
                        return unsafe { eights::$find(values, of) };
                    }
                }
                let _ = values;
                None
            }

            #[inline]
            fn extreme_of(values: &[Self], is_min: bool) -> Option<(Self, bool)> {
                #[cfg(all(feature = "simd", target_arch = "x86_64"))]
                {
                    if std::arch::is_x86_feature_detected!("avx512f") {
                        // SAFETY: the CPU has the instructions.
                        return unsafe { if is_min { sixteens::$smallest(values) } else { sixteens::$largest(values) } };
                    }
                    if std::arch::is_x86_feature_detected!("avx2") {
                        // SAFETY: the CPU has the instructions.
                        return unsafe { if is_min { eights::$smallest(values) } else { eights::$largest(values) } };
                    }
                }
                let _ = (values, is_min);
                None
            }
        }
    )+ };
}

sought! {
    f32 => first_number, smallest_number, largest_number;
    i32 => first_word, smallest_signed, largest_signed;
    u32 => first_word, smallest_unsigned, largest_unsigned;
}

/// Searches by vectors of so many words.
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
macro_rules! first {
    ($feature:literal, $lanes:literal; $($find:ident($word:ty), $all:ident, $are:expr;)+) => { $(
        /// Where a word is first: all places of a block are bits at once.
        #[target_feature(enable = $feature)]
        pub(super) fn $find(values: &[$word], of: $word) -> Option<usize> {
            let (all, are) = ($all(of), $are);
            let (blocks, rest) = values.as_chunks::<64>();
            for (number, block) in blocks.iter().enumerate() {
                let parts = (0u32..).step_by($lanes).zip(block.as_chunks::<$lanes>().0);
                let places = parts.fold(0u64, |places, (at, &part)| places | u64::from(are(bytemuck::cast(part), all)) << at);
                if places != 0 {
                    return Some(number * 64 + places.trailing_zeros() as usize);
                }
            }
            let (parts, few) = rest.as_chunks::<$lanes>();
            for (number, &part) in parts.iter().enumerate() {
                let places = are(bytemuck::cast(part), all);
                if places != 0 {
                    return Some(blocks.len() * 64 + number * $lanes + places.trailing_zeros() as usize);
                }
            }
            few.iter().position(|&word| word == of).map(|place| values.len() - few.len() + place)
        }
    )+ };
}

/// Extremes by vectors of so many words.
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
macro_rules! extreme {
    ($feature:literal, $lanes:literal; $($extreme:ident($word:ty, $join:ty), $of:ident, $are_nan:expr;)+) => { $(
        /// The extreme of some, and whether one of them is NaN; none of fewer than a vector has.
        #[target_feature(enable = $feature)]
        pub(super) fn $extreme(values: &[$word]) -> Option<($word, bool)> {
            let are_nan = $are_nan;
            // The last ones with some before them, which change nothing a second time.
            let last = bytemuck::cast(*values.last_chunk::<$lanes>()?);
            let mut nans = are_nan(last, last);
            let [mut a, mut b, mut c, mut d] = [last; 4];
            let (blocks, rest) = values.as_chunks::<{ 8 * $lanes }>();
            for block in blocks {
                let at = |number: usize| bytemuck::cast(block.as_chunks::<$lanes>().0[number]);
                // One comparison tells whether one of two is NaN.
                let mut of_two = |first, second| {
                    nans |= are_nan(first, second);
                    $of(first, second)
                };
                a = $of(a, of_two(at(0), at(1)));
                b = $of(b, of_two(at(2), at(3)));
                c = $of(c, of_two(at(4), at(5)));
                d = $of(d, of_two(at(6), at(7)));
            }
            for &part in rest.as_chunks::<$lanes>().0 {
                let part = bytemuck::cast(part);
                nans |= are_nan(part, part);
                a = $of(a, part);
            }
            let mut lanes: [$word; $lanes] = bytemuck::cast($of($of(a, b), $of(c, d)));
            let mut half = $lanes / 2;
            while half > 0 {
                for at in 0..half {
                    lanes[at] = <$join as Join<$word>>::join(lanes[at], lanes[at + half]);
                }
                half /= 2;
            }
            Some((lanes[0], nans != 0))
        }
    )+ };
}

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod sixteens {
    use std::arch::x86_64::{
        __m512i, _CMP_EQ_OQ, _CMP_UNORD_Q, _mm512_cmp_ps_mask, _mm512_cmpeq_epi32_mask, _mm512_max_epi32, _mm512_max_epu32, _mm512_max_ps,
        _mm512_min_epi32, _mm512_min_epu32, _mm512_min_ps, _mm512_set1_epi32, _mm512_set1_ps,
    };

    use crate::backend::cpu::lanes::{Join, Largest, Smallest};

    first! {
        "avx512f", 16;
        first_number(f32), _mm512_set1_ps, |a, b| _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        first_word(i32), _mm512_set1_epi32, |a, b| _mm512_cmpeq_epi32_mask(a, b);
    }

    extreme! {
        "avx512f", 16;
        largest_number(f32, Largest), _mm512_max_ps, |a, b| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b);
        smallest_number(f32, Smallest), _mm512_min_ps, |a, b| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b);
        largest_signed(i32, Largest), _mm512_max_epi32, |_: __m512i, _: __m512i| 0;
        smallest_signed(i32, Smallest), _mm512_min_epi32, |_: __m512i, _: __m512i| 0;
        largest_unsigned(u32, Largest), _mm512_max_epu32, |_: __m512i, _: __m512i| 0;
        smallest_unsigned(u32, Smallest), _mm512_min_epu32, |_: __m512i, _: __m512i| 0;
    }
}

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod eights {
    use std::arch::x86_64::{
        __m256, __m256i, _CMP_EQ_OQ, _CMP_UNORD_Q, _mm256_castsi256_ps, _mm256_cmp_ps, _mm256_cmpeq_epi32, _mm256_max_epi32,
        _mm256_max_epu32, _mm256_max_ps, _mm256_min_epi32, _mm256_min_epu32, _mm256_min_ps, _mm256_movemask_ps, _mm256_set1_epi32,
        _mm256_set1_ps,
    };

    use crate::backend::cpu::lanes::{Join, Largest, Smallest};

    /// The lanes that a comparison is true of, as bits.
    #[target_feature(enable = "avx")]
    fn bits(truths: __m256) -> u8 {
        _mm256_movemask_ps(truths) as u8
    }

    first! {
        "avx2", 8;
        first_number(f32), _mm256_set1_ps, |a, b| bits(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b));
        first_word(i32), _mm256_set1_epi32, |a, b| bits(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b)));
    }

    extreme! {
        "avx2", 8;
        largest_number(f32, Largest), _mm256_max_ps, |a, b| bits(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
        smallest_number(f32, Smallest), _mm256_min_ps, |a, b| bits(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
        largest_signed(i32, Largest), _mm256_max_epi32, |_: __m256i, _: __m256i| 0;
        smallest_signed(i32, Smallest), _mm256_min_epi32, |_: __m256i, _: __m256i| 0;
        largest_unsigned(u32, Largest), _mm256_max_epu32, |_: __m256i, _: __m256i| 0;
        smallest_unsigned(u32, Smallest), _mm256_min_epu32, |_: __m256i, _: __m256i| 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_those_of_all() {
        for count in (16usize..300).chain([1000, 4096]) {
            let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1009) as f32 - 500.0).collect();
            let Some(largest) = f32::extreme_of(&values, false) else {
                eprintln!("skipped: this CPU has no AVX2");
                return;
            };
            assert_eq!(largest, (values.iter().copied().fold(f32::NEG_INFINITY, f32::max), false), "{count} values");
            assert_eq!(f32::extreme_of(&values, true), Some((values.iter().copied().fold(f32::INFINITY, f32::min), false)));
            for at in [0, count / 3, count / 2, count.saturating_sub(17), count - 1] {
                let mut with_nan = values.clone();
                with_nan[at] = f32::NAN;
                let are_nan = [true, false].map(|is_min| f32::extreme_of(&with_nan, is_min).is_some_and(|(_, is_nan)| is_nan));
                assert_eq!(are_nan, [true; 2], "{count} values with NaN at {at}");
            }
            let signed: Vec<i32> = values.iter().map(|&value| value as i32 * 3_000_000).collect();
            let unsigned: Vec<u32> = signed.iter().map(|value| value.cast_unsigned()).collect();
            for is_min in [true, false] {
                let of = |all: [i32; 2]| (if is_min { all[0] } else { all[1] }, false);
                let expected = [signed.iter().min(), signed.iter().max()].map(|extreme| *extreme.unwrap());
                assert_eq!(i32::extreme_of(&signed, is_min), Some(of(expected)), "{count} values");
                let of = |all: [u32; 2]| (if is_min { all[0] } else { all[1] }, false);
                let expected = [unsigned.iter().min(), unsigned.iter().max()].map(|extreme| *extreme.unwrap());
                assert_eq!(u32::extreme_of(&unsigned, is_min), Some(of(expected)), "{count} values");
            }
        }
        assert_eq!(f32::extreme_of(&[1.0; 7], true), None);
    }

    #[test]
    fn words_are_found_where_they_are_first() {
        if 1.0f32.first_in(&[1.0]).is_none() {
            eprintln!("skipped: this CPU has no AVX2");
            return;
        }
        for count in [0, 1, 15, 16, 17, 63, 64, 65, 200] {
            let values: Vec<f32> = (0..count).map(|place| place as f32).collect();
            let whole: Vec<i32> = (0..count).collect();
            for at in 0..count {
                assert_eq!((at as f32).first_in(&values), Some(at as usize), "{at} of {count}");
                assert_eq!(at.first_in(&whole), Some(at as usize), "{at} of {count}");
                let mut twice = values.clone();
                twice[count as usize - 1] = at as f32;
                assert_eq!((at as f32).first_in(&twice), Some(at as usize), "{at} of {count}");
            }
            assert_eq!((-1.0).first_in(&values), None);
            assert_eq!(f32::NAN.first_in(&values), None);
            assert_eq!((-1).first_in(&whole), None);
        }
        assert_eq!((-0.0f32).first_in(&[1.0, 0.0]), Some(1));
    }
}
