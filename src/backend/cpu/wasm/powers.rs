//! Softmax of a row, and sums of powers of e: modules of their own for engines that have SIMD, in the memory of the main module. `build.rs` compiles
//! this file with and without relaxed SIMD's fused multiply-add, by which powers take two thirds of the time. It has no static data, and needs
//! no stack.
//!
//! softmax(x)ᵢ = exp(xᵢ − max x) / Σ exp(xⱼ − max x)
#![no_std]

use core::arch::wasm32::*;

/// Values whose powers are added up in single precision.
const BLOCK: usize = 1024;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    unreachable()
}

/// Writes the softmax of values; NaN everywhere if one of them is NaN or ∞, or all are −∞.
///
/// # Safety
/// All lie in memory, apart from one another.
#[unsafe(no_mangle)]
unsafe extern "C" fn softmax(values: *const f32, count: usize, out: *mut f32) {
    // SAFETY: as the caller says; blocks are parts of the whole.
    unsafe {
        let largest = largest(values, count);
        let from = f32x4_splat(largest);
        let mut all = 0.0;
        for first in (0..count).step_by(BLOCK) {
            let mut sums = f32x4_splat(0.0);
            let out = out.add(first);
            each(values.add(first), BLOCK.min(count - first), |place, value| {
                let power = exp(f32x4_sub(value, from));
                sums = f32x4_add(sums, power);
                put(power, out, place);
            });
            all += f64::from(across(sums, |a, b| a + b));
        }
        let by = f32x4_splat(if largest.is_finite() { (1.0 / all) as f32 } else { f32::NAN });
        each(out, count, |place, power| put(f32x4_mul(power, by), out, place));
    }
}

/// The largest of values, if none of them is NaN, of which the sum of powers tells.
///
/// # Safety
/// They lie in memory.
#[inline(always)]
unsafe fn largest(values: *const f32, count: usize) -> f32 {
    /// Values of four vectors: one after the other each would wait for the last.
    const AT_ONCE: usize = 16;
    let (mut largest, whole) = (f32x4_splat(f32::NEG_INFINITY), count / AT_ONCE * AT_ONCE);
    // SAFETY: as the caller says.
    unsafe {
        for first in (0..whole).step_by(AT_ONCE) {
            let vector = |number: usize| v128_load(values.add(first + 4 * number).cast());
            let of_pairs = [f32x4_pmax(vector(0), vector(1)), f32x4_pmax(vector(2), vector(3))];
            largest = f32x4_pmax(largest, f32x4_pmax(of_pairs[0], of_pairs[1]));
        }
        each(values.add(whole), count - whole, |_, value| largest = f32x4_pmax(largest, value));
    }
    across(largest, |a, b| if b > a { b } else { a })
}

/// The sum of the powers by how far values are above a number, which none is above.
///
/// # Safety
/// They lie in memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn exponentials(values: *const f32, count: usize, from: f32) -> f64 {
    let from = f32x4_splat(from);
    let mut sums = f64x2_splat(0.0);
    // SAFETY: as the caller says.
    unsafe {
        each(values, count, |_, value| {
            let power = exp(f32x4_sub(value, from));
            let upper = i64x2_shuffle::<1, 1>(power, power);
            sums = f64x2_add(sums, f64x2_add(f64x2_promote_low_f32x4(power), f64x2_promote_low_f32x4(upper)));
        });
    }
    f64x2_extract_lane::<0>(sums) + f64x2_extract_lane::<1>(sums)
}

/// Where a vector's elements are, and how many of them are meant.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    count: usize,
}

/// Does something with each vector of values, the last one filled up with −∞, given where it is.
///
/// # Safety
/// So many values lie in memory.
#[inline(always)]
unsafe fn each(values: *const f32, count: usize, mut act: impl FnMut(Place, v128)) {
    let whole = count / 4 * 4;
    // SAFETY: as the caller says.
    unsafe {
        for first in (0..whole).step_by(4) {
            act(Place { first, count: 4 }, v128_load(values.add(first).cast()));
        }
        if whole < count {
            let place = Place { first: whole, count: count - whole };
            act(place, some(values.add(whole), place.count));
        }
    }
}

/// One value to three, and −∞ behind them.
///
/// # Safety
/// They lie in memory.
#[inline(always)]
unsafe fn some(values: *const f32, count: usize) -> v128 {
    // SAFETY: as the caller says.
    unsafe {
        let mut all = v128_load32_lane::<0>(f32x4_splat(f32::NEG_INFINITY), values.cast());
        if count > 1 {
            all = v128_load32_lane::<1>(all, values.add(1).cast());
        }
        if count > 2 {
            all = v128_load32_lane::<2>(all, values.add(2).cast());
        }
        all
    }
}

/// Writes those of a vector's elements that are meant to their place.
///
/// # Safety
/// There is room for them.
#[inline(always)]
unsafe fn put(all: v128, out: *mut f32, Place { first, count }: Place) {
    // SAFETY: as the caller says.
    unsafe {
        let out = out.add(first);
        if count == 4 {
            return v128_store(out.cast(), all);
        }
        v128_store32_lane::<0>(all, out.cast());
        if count > 1 {
            v128_store32_lane::<1>(all, out.add(1).cast());
        }
        if count > 2 {
            v128_store32_lane::<2>(all, out.add(2).cast());
        }
    }
}

/// All elements of a vector joined.
#[inline(always)]
fn across(all: v128, join: impl Fn(f32, f32) -> f32) -> f32 {
    let lower = join(f32x4_extract_lane::<0>(all), f32x4_extract_lane::<1>(all));
    join(lower, join(f32x4_extract_lane::<2>(all), f32x4_extract_lane::<3>(all)))
}

#[inline(always)]
fn multiply_add(a: v128, b: v128, c: v128) -> v128 {
    #[cfg(target_feature = "relaxed-simd")]
    return f32x4_relaxed_madd(a, b, c);
    #[cfg(not(target_feature = "relaxed-simd"))]
    f32x4_add(f32x4_mul(a, b), c)
}

/// The same as `lanes.rs` has.
#[inline(always)]
fn exp(x: v128) -> v128 {
    const MAGIC: f32 = 12_583_039.0;
    let shifted = multiply_add(x, f32x4_splat(core::f32::consts::LOG2_E), f32x4_splat(MAGIC));
    let whole = f32x4_sub(shifted, f32x4_splat(MAGIC));
    let rest = multiply_add(whole, f32x4_splat(2.121_944_4e-4), multiply_add(whole, f32x4_splat(-0.693_359_4), x));
    let mut series = f32x4_splat(1.987_569_1e-4);
    for factor in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        series = multiply_add(series, rest, f32x4_splat(factor));
    }
    let near = f32x4_add(multiply_add(f32x4_mul(series, rest), rest, rest), f32x4_splat(1.0));
    v128_andnot(f32x4_mul(near, i32x4_shl(shifted, 23)), f32x4_lt(x, f32x4_splat(-87.3)))
}
