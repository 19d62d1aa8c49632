//! Extremes of words, and where they are first, by the widest vectors that the CPU has: eight or sixteen words at a time.

/// Words that vectors are searched for: numbers or integers.
pub(in crate::backend::cpu) trait Sought: Copy + PartialEq {
    /// The smallest or the largest, and whether one is NaN; none if the CPU has no such vectors, or fewer are given than one has.
    fn extreme_of(values: &[Self], is_min: bool) -> Option<(Self, bool)>;
    /// The smallest or the largest and where it is first, or the first NaN if there is one; none as above.
    fn first_extreme_of(values: &[Self], is_min: bool) -> Option<(Self, usize)>;
    /// The latter's place in each of some rows of so many; none as above.
    fn places_in_rows(rows: &[Self], count: usize, is_min: bool) -> Option<Vec<u32>>;
}

/// What a function of the extreme gives by the widest vectors; none if the CPU has none.
macro_rules! by_vectors {
    ($is_min:ident, $smallest:ident, $largest:ident, $function:ident($($value:expr),+)) => {{
        #[cfg(all(feature = "simd", target_arch = "x86_64"))]
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                // SAFETY: the CPU has the instructions.
                return unsafe { if $is_min { sixteens::$smallest::$function($($value),+) } else { sixteens::$largest::$function($($value),+) } };
            }
            if std::arch::is_x86_feature_detected!("avx2") {
                // SAFETY: the CPU has the instructions.
                return unsafe { if $is_min { eights::$smallest::$function($($value),+) } else { eights::$largest::$function($($value),+) } };
            }
        }
        let _ = ($is_min, $($value),+);
        None
    }};
}

macro_rules! sought {
    ($($word:ty => $smallest:ident, $largest:ident;)+) => { $(
        impl Sought for $word {
            #[inline]
            fn extreme_of(values: &[Self], is_min: bool) -> Option<(Self, bool)> {
                by_vectors!(is_min, $smallest, $largest, extreme(values))
            }

            #[inline]
            fn first_extreme_of(values: &[Self], is_min: bool) -> Option<(Self, usize)> {
                by_vectors!(is_min, $smallest, $largest, first(values))
            }

            fn places_in_rows(rows: &[Self], count: usize, is_min: bool) -> Option<Vec<u32>> {
                by_vectors!(is_min, $smallest, $largest, places(rows, count))
            }
        }
    )+ };
}

sought! {
    f32 => smallest_number, largest_number;
    i32 => smallest_signed, largest_signed;
    u32 => smallest_unsigned, largest_unsigned;
}

/// Searches by vectors of so many words, of which there is a function for each kind of extreme.
#[cfg(all(feature = "simd", target_arch = "x86_64"))]
macro_rules! extremes {
    ($feature:literal, $lanes:literal, $are:expr, $are_nan:expr; $($extreme:ident($word:ty, $join:ty), $of:ident;)+) => { $(
        pub(super) mod $extreme {
            #[allow(clippy::wildcard_imports, reason = "the vocabulary of the expressions")]
            use super::*;

            /// The extreme of the lanes.
            #[inline]
            #[target_feature(enable = $feature)]
            fn of_lanes(mut lanes: [$word; $lanes]) -> $word {
                let mut half = $lanes / 2;
                while half > 0 {
                    for at in 0..half {
                        lanes[at] = <$join as Join<$word>>::join(lanes[at], lanes[at + half]);
                    }
                    half /= 2;
                }
                lanes[0]
            }

            /// The extreme of some, and whether one of them is NaN; none of fewer than a vector has.
            #[target_feature(enable = $feature)]
            pub(in super::super) fn extreme(values: &[$word]) -> Option<($word, bool)> {
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
                Some((of_lanes(bytemuck::cast($of($of(a, b), $of(c, d)))), nans != 0))
            }

            /// The extreme of some and where it is first, or the first NaN; none of fewer than a vector has. A block is looked through once more
            /// if it is the first that has the extreme.
            #[target_feature(enable = $feature)]
            pub(in super::super) fn first(values: &[$word]) -> Option<($word, usize)> {
                const BLOCK: usize = 16 * $lanes;
                let (are, are_nan) = ($are, $are_nan);
                let &last = values.last_chunk::<$lanes>()?;
                let (mut best, mut begin) = (values[0], 0);
                let mut all = bytemuck::cast([best; $lanes]);
                let (blocks, rest) = values.as_chunks::<BLOCK>();
                for (number, block) in blocks.iter().enumerate() {
                    let parts = block.as_chunks::<$lanes>().0;
                    let (mut nans, mut of_block) = (0, all);
                    for &[a, b, c, d] in parts.as_chunks::<4>().0 {
                        let [a, b, c, d] = [bytemuck::cast(a), bytemuck::cast(b), bytemuck::cast(c), bytemuck::cast(d)];
                        nans |= are_nan(a, b) | are_nan(c, d);
                        of_block = $of(of_block, $of($of(a, b), $of(c, d)));
                    }
                    if nans != 0 {
                        return first_nan(values, number * BLOCK);
                    }
                    if !are(of_block, all) != 0 {
                        (best, begin) = (of_lanes(bytemuck::cast(of_block)), number * BLOCK);
                        all = bytemuck::cast([best; $lanes]);
                    }
                }
                // What is left over with some before them, which are no more than the extreme.
                let last = bytemuck::cast(last);
                let (mut nans, mut of_rest) = (are_nan(last, last), last);
                for &part in rest.as_chunks::<$lanes>().0 {
                    let part = bytemuck::cast(part);
                    nans |= are_nan(part, part);
                    of_rest = $of(of_rest, part);
                }
                if nans != 0 {
                    return first_nan(values, values.len() - rest.len());
                }
                if !are($of(of_rest, all), all) != 0 {
                    (best, begin) = (of_lanes(bytemuck::cast(of_rest)), values.len() - rest.len());
                    all = bytemuck::cast([best; $lanes]);
                }
                let behind = &values[begin..];
                let (parts, few) = behind.as_chunks::<$lanes>();
                for (number, &part) in parts.iter().enumerate() {
                    let places = are(bytemuck::cast(part), all);
                    if places != 0 {
                        return Some((best, begin + number * $lanes + places.trailing_zeros() as usize));
                    }
                }
                let place = few.iter().position(|&value| value == best)?;
                Some((best, values.len() - few.len() + place))
            }

            /// Where that is in each row of so many.
            #[target_feature(enable = $feature)]
            pub(in super::super) fn places(rows: &[$word], count: usize) -> Option<Vec<u32>> {
                rows.chunks_exact(count).map(|row| first(row).map(|(_, place)| place as u32)).collect()
            }

            /// The first NaN, of which there is none before that place, and where it is.
            #[cold]
            fn first_nan(values: &[$word], begin: usize) -> Option<($word, usize)> {
                values.iter().copied().zip(0..).skip(begin).find(|&(value, _)| value != value)
            }
        }
    )+ };
}

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod sixteens {
    use std::arch::x86_64::{
        __m512i, _CMP_EQ_OQ, _CMP_UNORD_Q, _mm512_cmp_ps_mask, _mm512_cmpeq_epi32_mask, _mm512_max_epi32, _mm512_max_epu32, _mm512_max_ps,
        _mm512_min_epi32, _mm512_min_epu32, _mm512_min_ps,
    };

    use crate::backend::cpu::lanes::{Join, Largest, Smallest};

    extremes! {
        "avx512f", 16, |a, b| _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b), |a, b| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b);
        largest_number(f32, Largest), _mm512_max_ps;
        smallest_number(f32, Smallest), _mm512_min_ps;
    }

    extremes! {
        "avx512f", 16, |a, b| _mm512_cmpeq_epi32_mask(a, b), |_: __m512i, _: __m512i| 0;
        largest_signed(i32, Largest), _mm512_max_epi32;
        smallest_signed(i32, Smallest), _mm512_min_epi32;
        largest_unsigned(u32, Largest), _mm512_max_epu32;
        smallest_unsigned(u32, Smallest), _mm512_min_epu32;
    }
}

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod eights {
    use std::arch::x86_64::{
        __m256, __m256i, _CMP_EQ_OQ, _CMP_UNORD_Q, _mm256_castsi256_ps, _mm256_cmp_ps, _mm256_cmpeq_epi32, _mm256_max_epi32,
        _mm256_max_epu32, _mm256_max_ps, _mm256_min_epi32, _mm256_min_epu32, _mm256_min_ps, _mm256_movemask_ps,
    };

    use crate::backend::cpu::lanes::{Join, Largest, Smallest};

    /// The lanes that a comparison is true of, as bits.
    #[target_feature(enable = "avx")]
    fn bits(truths: __m256) -> u8 {
        _mm256_movemask_ps(truths) as u8
    }

    extremes! {
        "avx2", 8, |a, b| bits(_mm256_cmp_ps::<_CMP_EQ_OQ>(a, b)), |a, b| bits(_mm256_cmp_ps::<_CMP_UNORD_Q>(a, b));
        largest_number(f32, Largest), _mm256_max_ps;
        smallest_number(f32, Smallest), _mm256_min_ps;
    }

    extremes! {
        "avx2", 8, |a, b| bits(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))), |_: __m256i, _: __m256i| 0;
        largest_signed(i32, Largest), _mm256_max_epi32;
        smallest_signed(i32, Smallest), _mm256_min_epi32;
        largest_unsigned(u32, Largest), _mm256_max_epu32;
        smallest_unsigned(u32, Smallest), _mm256_min_epu32;
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
    fn extremes_are_found_where_they_are_first() {
        if f32::first_extreme_of(&[1.0; 16], true).is_none() {
            eprintln!("skipped: this CPU has no AVX2");
            return;
        }
        let first = |values: &[f32], is_more: fn(f32, f32) -> bool| {
            let mut best = 0;
            for place in 1..values.len() {
                let is_nan = !values[best].is_nan() && values[place].is_nan();
                best = if is_nan || is_more(values[place], values[best]) { place } else { best };
            }
            (values[best].to_bits(), best)
        };
        let found = |values: &[f32]| {
            for (is_min, is_more) in [(true, (|a, b| a < b) as fn(f32, f32) -> bool), (false, |a, b| a > b)] {
                let got = f32::first_extreme_of(values, is_min).map(|(extreme, place)| (extreme.to_bits(), place));
                assert_eq!(got, Some(first(values, is_more)), "of {} values", values.len());
            }
        };
        // Rising and falling, of many alike, and of which each is about as often the first in a block as the last.
        let kinds: [fn(usize) -> f32; 4] = [|i| i as f32, |i| -(i as f32), |i| (i / 37 % 5) as f32, |i| ((i * 7919) % 1009) as f32 - 500.0];
        for count in (16..300).chain([511, 512, 513, 1000, 4096]) {
            for kind in kinds {
                let mut values: Vec<f32> = (0..count).map(kind).collect();
                found(&values);
                let signed: Vec<i32> = values.iter().map(|&value| value as i32 * 500_000).collect();
                let unsigned: Vec<u32> = signed.iter().map(|value| value.cast_unsigned()).collect();
                for is_min in [true, false] {
                    let extreme = |a: i32, b: i32| if is_min { a.min(b) } else { a.max(b) };
                    let of = signed.iter().copied().reduce(extreme).unwrap();
                    let place = signed.iter().position(|&value| value == of).unwrap();
                    assert_eq!(i32::first_extreme_of(&signed, is_min), Some((of, place)), "of {count} values");
                    let extreme = |a: u32, b: u32| if is_min { a.min(b) } else { a.max(b) };
                    let of = unsigned.iter().copied().reduce(extreme).unwrap();
                    let place = unsigned.iter().position(|&value| value == of).unwrap();
                    assert_eq!(u32::first_extreme_of(&unsigned, is_min), Some((of, place)), "of {count} values");
                }
                for at in [0, count / 3, count - 17.min(count), count - 1] {
                    let before = std::mem::replace(&mut values[at], f32::NAN);
                    found(&values);
                    values[at] = f32::INFINITY;
                    found(&values);
                    values[at] = before;
                }
            }
        }
        found(&[-0.0, 0.0, -0.0, 0.0].repeat(9));
        assert_eq!(i32::first_extreme_of(&[1; 7], true), None);
    }
}
