//! Vector instructions that a compiler does not find by itself; on processors without them the same in plain code.

pub(super) mod turned;

use bytemuck::Pod;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Copies past the cache: what is written is not read into it before, as other stores have it. For results that are larger than it. Who is done
/// calls [`end`].
#[cfg(target_arch = "x86_64")]
pub(super) fn stream<T: Pod>(from: &[T], to: &mut [T]) {
    use std::arch::x86_64::{__m128i, _mm_stream_si128};
    let (from, to): (&[u8], &mut [u8]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
    let head = to.as_ptr().align_offset(size_of::<__m128i>()).min(to.len());
    let ((from_head, from), (to_head, to)) = (from.split_at(head), to.split_at_mut(head));
    let ((from, from_tail), (to, to_tail)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
    to_head.copy_from_slice(from_head);
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: the 16 bytes are borrowed alone, and begin at a multiple of 16, as those behind the head do. Every x86-64 has SSE2.
        unsafe { _mm_stream_si128(to.as_mut_ptr().cast(), bytemuck::cast(*from)) };
    }
    to_tail.copy_from_slice(from_tail);
}

/// Makes what was streamed visible to other threads before whatever is written next.
#[cfg(target_arch = "x86_64")]
pub(super) fn end_stream() {
    // SAFETY: the instruction orders stores, and every x86-64 has it.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// The whole number of a number without its fraction, or the nearest that there is; 0 of NaN. As `x as i32`, whose vectors compilers take apart.
#[inline(always)]
pub(super) fn to_i32(x: f32) -> i32 {
    const BEYOND: f32 = 2_147_483_648.0;
    let within = if x >= -BEYOND { x } else { -BEYOND };
    let within = if within < BEYOND { within } else { 0.0 };
    // SAFETY: it is from −2³¹ up to and without 2³¹, and no NaN.
    let whole = unsafe { within.to_int_unchecked::<i32>() };
    let whole = if x >= BEYOND { i32::MAX } else { whole };
    if x.is_nan() { 0 } else { whole }
}

/// Widens numbers, which changes none.
pub(super) fn widen(from: &[f16], to: &mut [f32]) {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("f16c") {
        // SAFETY: the CPU has the instructions.
        return unsafe { x86::widen_wide(from, to) };
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") && std::arch::is_x86_feature_detected!("f16c") {
        // SAFETY: the CPU has the instructions.
        return unsafe { x86::widen(from, to) };
    }
    from.convert_to_f32_slice(to);
}

/// Rounds numbers to the nearest, of two to the even one.
pub(super) fn narrow(from: &[f32], to: &mut [f16]) {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("f16c") {
        // SAFETY: the CPU has the instructions.
        return unsafe { x86::narrow_wide(from, to) };
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx") && std::arch::is_x86_feature_detected!("f16c") {
        // SAFETY: the CPU has the instructions.
        return unsafe { x86::narrow(from, to) };
    }
    to.convert_from_f32_slice(from);
}

/// Words that vectors of the widest kind are searched for: numbers or integers.
pub(super) trait Sought: Copy + PartialEq {
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
                if std::arch::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the CPU has the instructions.
                    return unsafe { x86::$find(bytemuck::cast_slice(values), bytemuck::cast(self)) };
                }
                let _ = values;
                None
            }

            #[inline]
            fn extreme_of(values: &[Self], is_min: bool) -> Option<(Self, bool)> {
                #[cfg(all(feature = "simd", target_arch = "x86_64"))]
                if std::arch::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the CPU has the instructions.
                    return unsafe { if is_min { x86::$smallest(values) } else { x86::$largest(values) } };
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

/// Loops over all eights, which a call for each would take twice as long.
#[cfg(target_arch = "x86_64")]
mod x86 {
    #[cfg(feature = "simd")]
    use std::arch::x86_64::{
        __m512i, _CMP_EQ_OQ, _CMP_UNORD_Q, _mm512_cmp_ps_mask, _mm512_cmpeq_epi32_mask, _mm512_cvtph_ps, _mm512_cvtps_ph, _mm512_max_epi32,
        _mm512_max_epu32, _mm512_max_ps, _mm512_min_epi32, _mm512_min_epu32, _mm512_min_ps, _mm512_reduce_max_epi32,
        _mm512_reduce_max_epu32, _mm512_reduce_max_ps, _mm512_reduce_min_epi32, _mm512_reduce_min_epu32, _mm512_reduce_min_ps,
        _mm512_set1_epi32, _mm512_set1_ps,
    };
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph};

    use half::f16;
    use half::slice::HalfFloatSliceExt;

    macro_rules! first {
        ($($find:ident($word:ty), $all:ident, $is:path;)+) => { $(
            /// Where a word is first: all places of a block are bits at once.
            #[cfg(feature = "simd")]
            #[target_feature(enable = "avx512f")]
            pub(super) fn $find(values: &[$word], of: $word) -> Option<usize> {
                let all = $all(of);
                let (blocks, rest) = values.as_chunks::<64>();
                for (number, block) in blocks.iter().enumerate() {
                    let places = (0u32..).step_by(16).zip(block.as_chunks::<16>().0);
                    let places = places.fold(0u64, |places, (at, &part)| places | u64::from($is(bytemuck::cast(part), all)) << at);
                    if places != 0 {
                        return Some(number * 64 + places.trailing_zeros() as usize);
                    }
                }
                let (parts, few) = rest.as_chunks::<16>();
                for (number, &part) in parts.iter().enumerate() {
                    let places = $is(bytemuck::cast(part), all);
                    if places != 0 {
                        return Some(blocks.len() * 64 + number * 16 + places.trailing_zeros() as usize);
                    }
                }
                few.iter().position(|&word| word == of).map(|place| values.len() - few.len() + place)
            }
        )+ };
    }

    first! {
        first_number(f32), _mm512_set1_ps, _mm512_cmp_ps_mask::<_CMP_EQ_OQ>;
        first_word(i32), _mm512_set1_epi32, _mm512_cmpeq_epi32_mask;
    }

    macro_rules! extreme {
        ($($extreme:ident($word:ty), $of:ident, $reduce:ident, $are_nan:expr;)+) => { $(
            /// The extreme of some, and whether one of them is NaN; none of fewer than a vector has.
            #[cfg(feature = "simd")]
            #[target_feature(enable = "avx512f")]
            pub(super) fn $extreme(values: &[$word]) -> Option<($word, bool)> {
                let are_nan = $are_nan;
                // The last ones with some before them, which change nothing a second time.
                let last = bytemuck::cast(*values.last_chunk::<16>()?);
                let mut nans = are_nan(last, last);
                let [mut a, mut b, mut c, mut d] = [last; 4];
                let (blocks, rest) = values.as_chunks::<128>();
                for block in blocks {
                    let at = |number: usize| bytemuck::cast(block.as_chunks::<16>().0[number]);
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
                for &part in rest.as_chunks::<16>().0 {
                    let part = bytemuck::cast(part);
                    nans |= are_nan(part, part);
                    a = $of(a, part);
                }
                Some(($reduce($of($of(a, b), $of(c, d))), nans != 0))
            }
        )+ };
    }

    extreme! {
        largest_number(f32), _mm512_max_ps, _mm512_reduce_max_ps, |a, b| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b);
        smallest_number(f32), _mm512_min_ps, _mm512_reduce_min_ps, |a, b| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b);
        largest_signed(i32), _mm512_max_epi32, _mm512_reduce_max_epi32, |_: __m512i, _: __m512i| 0;
        smallest_signed(i32), _mm512_min_epi32, _mm512_reduce_min_epi32, |_: __m512i, _: __m512i| 0;
        largest_unsigned(u32), _mm512_max_epu32, _mm512_reduce_max_epu32, |_: __m512i, _: __m512i| 0;
        smallest_unsigned(u32), _mm512_min_epu32, _mm512_reduce_min_epu32, |_: __m512i, _: __m512i| 0;
    }

    #[cfg(feature = "simd")]
    #[target_feature(enable = "avx512f,f16c")]
    pub(super) fn widen_wide(from: &[f16], to: &mut [f32]) {
        let ((from, from_tail), (to, to_tail)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bytemuck::cast(_mm512_cvtph_ps(bytemuck::cast(from)));
        }
        widen(from_tail, to_tail);
    }

    #[cfg(feature = "simd")]
    #[target_feature(enable = "avx512f,f16c")]
    pub(super) fn narrow_wide(from: &[f32], to: &mut [f16]) {
        let ((from, from_tail), (to, to_tail)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bytemuck::cast(_mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(bytemuck::cast(from)));
        }
        narrow(from_tail, to_tail);
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen(from: &[f16], to: &mut [f32]) {
        let ((from, from_tail), (to, to_tail)) = (from.as_chunks::<8>(), to.as_chunks_mut::<8>());
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bytemuck::cast(_mm256_cvtph_ps(bytemuck::cast(from)));
        }
        from_tail.convert_to_f32_slice(to_tail);
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow(from: &[f32], to: &mut [f16]) {
        let ((from, from_tail), (to, to_tail)) = (from.as_chunks::<8>(), to.as_chunks_mut::<8>());
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bytemuck::cast(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(bytemuck::cast(from)));
        }
        to_tail.convert_from_f32_slice(from_tail);
    }
}

/// Asks the system for large pages for memory that nobody has written to yet: with small ones, finding them takes longer than reading them.
#[cfg(all(feature = "simd", target_os = "linux"))]
pub(super) fn in_large_pages(bytes: &mut [u8]) {
    const PAGE_BYTES: usize = 4096;
    /// Less has no room for large pages.
    const LEAST_BYTES: usize = 2 << 20;
    let head = bytes.as_ptr().align_offset(PAGE_BYTES);
    if bytes.len() < LEAST_BYTES || head >= PAGE_BYTES {
        return;
    }
    let whole = &mut bytes[head..];
    // SAFETY: the pages are borrowed alone, and what they hold stays as it is. It is advice: where it fails, nothing changes.
    unsafe { libc::madvise(whole.as_mut_ptr().cast(), whole.len() / PAGE_BYTES * PAGE_BYTES, libc::MADV_HUGEPAGE) };
}

/// Elsewhere the system decides.
#[cfg(not(all(feature = "simd", target_os = "linux")))]
pub(super) fn in_large_pages(_bytes: &mut [u8]) {}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn stream<T: Pod>(from: &[T], to: &mut [T]) {
    to.copy_from_slice(from);
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn end_stream() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_a_copy_wherever_it_begins_and_ends() {
        let from: Vec<u8> = (0..200).collect();
        for (first, count) in [(0, 200), (1, 0), (3, 5), (7, 150), (16, 64)] {
            let mut to = [0; 200];
            stream(&from[first..][..count], &mut to[first..][..count]);
            end_stream();
            assert_eq!(to[first..][..count], from[first..][..count]);
            assert!(to[..first].iter().chain(&to[first + count..]).all(|&byte| byte == 0), "{count} from {first} on");
        }
    }

    #[test]
    fn numbers_become_the_nearest_whole_ones() {
        let special = [
            0.0,
            -0.5,
            1.9,
            -1.9,
            2_147_483_520.0,
            2_147_483_648.0,
            -2_147_483_648.0,
            1e20,
            -1e20,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ];
        for x in special.into_iter().chain((0..100_000u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9)))) {
            assert_eq!(to_i32(x), x as i32, "{x}");
        }
    }

    #[test]
    fn halves_are_widened_and_rounded_as_one_by_one() {
        let halves: Vec<_> = (0..=u16::MAX).map(f16::from_bits).collect();
        for count in [0, 7, 8, 61, halves.len()] {
            let mut wide = vec![0.0; count];
            widen(&halves[..count], &mut wide);
            assert!(wide.iter().zip(&halves).all(|(wide, half)| wide.to_bits() == half.to_f32().to_bits()), "{count} halves");
        }
        // About each half, what is rounded up to it and down to it, and what is in the middle of two.
        let of = |half: &f16| [0, 0xfff, 0x1000, 0x1001].map(|bits| f32::from_bits(half.to_f32().to_bits() ^ bits));
        let wide: Vec<_> = halves.iter().filter(|half| !half.is_nan()).flat_map(of).collect();
        let mut narrowed = vec![f16::ZERO; wide.len()];
        narrow(&wide, &mut narrowed);
        for (narrowed, wide) in narrowed.iter().zip(wide) {
            assert!(narrowed.to_bits() == f16::from_f32(wide).to_bits() || wide.is_nan() && narrowed.is_nan(), "{wide}");
        }
    }

    #[test]
    fn extremes_are_those_of_all() {
        for count in (16usize..300).chain([1000, 4096]) {
            let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1009) as f32 - 500.0).collect();
            let Some(largest) = f32::extreme_of(&values, false) else {
                eprintln!("skipped: this CPU has no AVX-512");
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
        assert_eq!(f32::extreme_of(&[1.0; 15], true), None);
    }

    #[test]
    fn words_are_found_where_they_are_first() {
        if 1.0f32.first_in(&[1.0]).is_none() {
            eprintln!("skipped: this CPU has no AVX-512");
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
