//! Loops over the page's values by vectors: a module of its own for engines that have SIMD, in the memory of the main module, which must run
//! where there is none. `build.rs` compiles it for speed; it has no allocator, and nothing in it panics.
//!
//! The functions are those that the CPU natively computes by (`ops/elementwise`), of which there are the ones that programs consist of: what is
//! not here the main module computes one number at a time. Its stack and its constants lie in the lowest bytes of the main module's stack
//! (`vectorized.rs`).
#![allow(dead_code, unused_imports, reason = "of the sources that it shares it needs a part")]

#[path = "../../../dtype.rs"]
mod dtype;
#[path = "../lanes.rs"]
mod lanes;
#[path = "../../../ops"]
mod ops {
    pub(crate) mod elementwise;
}

use std::slice::{from_raw_parts, from_raw_parts_mut};

use lanes::{Largest, Product, Smallest, Squares, Sum};
use ops::elementwise::{Function, Kind, twin};

/// Applies functions of these kinds where they are those that are asked for; whether it was one of them. Each has a loop that is no part of another
/// function: engines compile what is called often once more, which took them longer for all together than most pages compute.
macro_rules! apply {
    ($function:ident, $kind:ident, $operands:ident, $out:ident; $($of:ident: $($name:ident)+;)+) => {{
        $( const $of: u32 = Kind::$of as u32; )+
        match ($function, $kind) {
            $($(
                (function, $of) if function == Function::$name as u32 => {
                    #[inline(never)]
                    fn run(operands: &[&[u32]], out: &mut [u32]) {
                        Function::$name.apply_near(Kind::$of, operands, out);
                    }
                    run($operands, $out);
                }
            )+)+
            _ => return false,
        }
        true
    }};
}

/// Applies a function to operands of a kind, each as many as there are results, or a single one for all; false where it does not know how.
///
/// # Safety
/// All lie in memory, and the results nowhere among the operands.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "kinds have their names")]
unsafe extern "C" fn apply(function: u32, kind: u32, a: *const u32, a_count: usize, b: *const u32, b_count: usize, out: *mut u32, count: usize) -> bool {
    // SAFETY: as the caller says.
    let (a, b, out) = unsafe { (from_raw_parts(a, a_count), from_raw_parts(b, b_count), from_raw_parts_mut(out, count)) };
    let operands: &[&[u32]] = if b_count == 0 { &[a] } else { &[a, b] };
    let turns = [Function::Sin, Function::Cos].iter().any(|turns| *turns as u32 == function);
    if turns && !twin::all(a, twin::is_near) {
        return false;
    }
    apply! { function, kind, operands, out;
        F32: Add Sub Mul Div Min Max Neg Abs Sign Square Reciprocal Sqrt Exp Log Sin Cos Atan Tanh Sigmoid Silu GeluTanh Relu Softplus Erf
            Floor Ceil Round Trunc RoundToF16 Equal NotEqual Less LessEqual Greater GreaterEqual IsNan;
        I32: Add Sub Mul Min Max Neg Abs Equal Less Greater;
        U32: Add Sub Mul;
        Bool: And Or Not;
    }
}

/// The sum of values.
///
/// # Safety
/// They lie in memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn sum(values: *const f32, count: usize) -> f32 {
    // SAFETY: as the caller says.
    lanes::in_lanes::<Sum, f32>(unsafe { from_raw_parts(values, count) })
}

/// Their product in double precision.
///
/// # Safety
/// They lie in memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn product(values: *const f32, count: usize) -> f64 {
    // SAFETY: as the caller says.
    lanes::in_lanes::<Product, f32>(unsafe { from_raw_parts(values, count) })
}

/// The sum of their squares.
///
/// # Safety
/// They lie in memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn squares(values: *const f32, count: usize) -> f64 {
    // SAFETY: as the caller says.
    lanes::in_lanes::<Squares, f32>(unsafe { from_raw_parts(values, count) })
}

/// The sums of distances from a number and of their squares.
///
/// # Safety
/// They lie in memory, as there is room for the sums.
#[unsafe(no_mangle)]
unsafe extern "C" fn distances(values: *const f32, count: usize, from: f32, sums: *mut [f64; 2]) {
    // SAFETY: as the caller says.
    unsafe { sums.write(lanes::distances(from_raw_parts(values, count), from)) }
}

/// The largest or the smallest of values, of which there is one at least; NaN where one of them is.
///
/// # Safety
/// They lie in memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn extreme(values: *const f32, count: usize, is_min: bool) -> f32 {
    // SAFETY: as the caller says.
    let values = unsafe { from_raw_parts(values, count) };
    let (extreme, has_nan) = if is_min { lanes::extreme::<Smallest, f32>(values) } else { lanes::extreme::<Largest, f32>(values) };
    if has_nan { f32::NAN } else { extreme }
}

/// Adds to values others, or multiplies them by others.
///
/// # Safety
/// All lie in memory, apart from one another.
#[unsafe(no_mangle)]
unsafe extern "C" fn combine(values: *mut f32, others: *const f32, count: usize, adds: bool) {
    // SAFETY: as the caller says.
    let all = unsafe { from_raw_parts_mut(values, count).iter_mut().zip(from_raw_parts(others, count)) };
    if adds {
        all.for_each(|(value, other)| *value += other);
    } else {
        all.for_each(|(value, other)| *value *= other);
    }
}

/// Puts in the place of each value how far it is above a number in two parts, times a factor.
///
/// # Safety
/// They lie in memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn scale(values: *mut f32, count: usize, from: f32, rest: f32, by: f32) {
    // SAFETY: as the caller says.
    for value in unsafe { from_raw_parts_mut(values, count) } {
        *value = ((*value - from) - rest) * by;
    }
}
