//! Vector instructions that a compiler does not find by itself; on processors without them the same in plain code.

#[cfg(feature = "simd")]
pub(super) mod power;
pub(super) mod sought;

use bytemuck::Pod;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Copies past the cache: what is written is not read into it before, as other stores have it. For results that are larger than it. Who is done
/// calls [`end_stream`].
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

/// Asks for the line of the cache that a value lies in, which will be read soon.
#[inline(always)]
pub(super) fn prefetch<T: Pod>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instruction does nothing that the program sees, and every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(std::ptr::from_ref(value).cast());
    }
    let _ = value;
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

/// Loops over all eights, which a call for each would take twice as long.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{_MM_FROUND_TO_NEAREST_INT, _mm256_cvtph_ps, _mm256_cvtps_ph};
    #[cfg(feature = "simd")]
    use std::arch::x86_64::{_mm512_cvtph_ps, _mm512_cvtps_ph};

    use half::f16;
    use half::slice::HalfFloatSliceExt;

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
}
