//! The loops of `vectors.rs` and `powers.rs`, started in this module's memory when they are first asked for. Each gives None, or false, where the
//! engine has no SIMD: then the caller's own loop does it.

use std::hint::black_box;

use js_sys::{Object, Reflect, Uint8Array, WebAssembly};
use wasm_bindgen::{JsCast, function_table};

use crate::ops::elementwise::{Function, Kind};

const VECTORS_MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vectors.wasm"));
/// With a fused multiply-add, and without.
const POWERS_FMA_MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/powers_fma.wasm"));
const POWERS_MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/powers.wasm"));
/// Bytes from 0 on that the loops take, with room to spare.
const STACK_BYTES: usize = 16 << 10;

/// What a module of loops exports: each has a slot in this module's table of functions, in which something stands in for it until it is put there.
/// So one module calls the other without JavaScript in between, which would take longer than a short loop does.
macro_rules! loops {
    ($loops:ident { $($number:literal $name:ident($($argument:ty),+) $(-> $result:ty)?;)+ }) => {
        struct $loops {
            $($name: unsafe extern "C" fn($($argument),+) $(-> $result)?,)+
        }

        impl $loops {
            /// None if the engine does not know the module's instructions.
            fn start(module: &[u8]) -> Option<Self> {
                let exports = start(module)?;
                $(
                    unsafe extern "C" fn $name($(_: $argument),+) $(-> $result)? {
                        // Of functions that did the same one would be left.
                        black_box($number);
                        Default::default()
                    }
                    let $name: unsafe extern "C" fn($($argument),+) $(-> $result)? = $name;
                    put(&exports, stringify!($name), $name as usize)?;
                )+
                // What is called at these addresses is not what the compiler knows there.
                Some(black_box(Self { $($name),+ }))
            }
        }
    };
}

loops! {
    Vectors {
        1 apply(u32, u32, *const u32, usize, *const u32, usize, *mut u32, usize) -> bool;
        2 sum(*const f32, usize) -> f32;
        3 product(*const f32, usize) -> f64;
        4 squares(*const f32, usize) -> f64;
        5 distances(*const f32, usize, f32, *mut [f64; 2]);
        6 extreme(*const f32, usize, bool) -> f32;
        7 combine(*mut f32, *const f32, usize, bool);
        8 scale(*mut f32, usize, f32, f32, f32);
    }
}

loops! {
    Powers {
        9 softmax(*const f32, usize, *mut f32);
        10 exponentials(*const f32, usize, f32) -> f64;
    }
}

thread_local! {
    static VECTORS: Option<Vectors> = start_vectors();
    static POWERS: Option<Powers> = Powers::start(POWERS_FMA_MODULE).or_else(|| Powers::start(POWERS_MODULE));
}

fn start_vectors() -> Option<Vectors> {
    // The loops' stack is the lowest part of this module's, below which nothing lies: unless that is above what is static, or almost used up.
    let here = 0u8;
    let here = (&raw const here).addr();
    if here < 2 * STACK_BYTES || VECTORS_MODULE.as_ptr().addr() < here {
        return None;
    }
    Vectors::start(VECTORS_MODULE)
}

/// What a module exports that shares this one's memory.
fn start(module: &[u8]) -> Option<Object> {
    let module = WebAssembly::Module::new(&Uint8Array::from(module)).ok()?;
    let (imports, env) = (Object::new(), Object::new());
    Reflect::set(&env, &"memory".into(), &wasm_bindgen::memory()).ok()?;
    Reflect::set(&imports, &"env".into(), &env).ok()?;
    Some(WebAssembly::Instance::new(&module, &imports).ok()?.exports())
}

/// Puts one of the functions of a module into a slot of this module's table.
fn put(exports: &Object, name: &str, slot: usize) -> Option<()> {
    let function = Reflect::get(exports, &name.into()).ok()?;
    function_table().unchecked_into::<WebAssembly::Table>().set(slot as u32, function.unchecked_ref()).ok()
}

/// Calls a function of those; None where the engine has no vectors.
macro_rules! call {
    ($loops:ident.$name:ident($($argument:expr),+)) => {
        // SAFETY: all that is pointed to is borrowed for as long as the call takes, as many elements of it as are named.
        $loops.with(|loops| loops.as_ref().map(|loops| unsafe { (loops.$name)($($argument),+) }))
    };
}

/// Applies a function to as many words of operands of a kind as there are results; whether it is one of those that there are loops for.
pub(in crate::backend::cpu) fn applies(function: Function, kind: Kind, operands: &[&[u32]], out: &mut [u32]) -> bool {
    let (Some(a), b) = (operands.first(), operands.get(1).copied().unwrap_or_default()) else { return false };
    let (function, kind) = (function as u32, kind as u32);
    call!(VECTORS.apply(function, kind, a.as_ptr(), a.len(), b.as_ptr(), b.len(), out.as_mut_ptr(), out.len())) == Some(true)
}

/// The sum of values.
pub(in crate::backend::cpu) fn sum(values: &[f32]) -> Option<f32> {
    call!(VECTORS.sum(values.as_ptr(), values.len()))
}

/// Their product in double precision.
pub(in crate::backend::cpu) fn product(values: &[f32]) -> Option<f64> {
    call!(VECTORS.product(values.as_ptr(), values.len()))
}

/// The sum of their squares.
pub(in crate::backend::cpu) fn squares(values: &[f32]) -> Option<f64> {
    call!(VECTORS.squares(values.as_ptr(), values.len()))
}

/// The sums of distances from a number and of their squares.
pub(in crate::backend::cpu) fn distances(values: &[f32], from: f32) -> Option<[f64; 2]> {
    let mut sums = [0.0; 2];
    call!(VECTORS.distances(values.as_ptr(), values.len(), from, &raw mut sums))?;
    Some(sums)
}

/// The largest or the smallest of values, of which there is one at least; NaN where one of them is.
pub(in crate::backend::cpu) fn extreme(values: &[f32], is_min: bool) -> Option<f32> {
    call!(VECTORS.extreme(values.as_ptr(), values.len(), is_min))
}

/// The softmax of values, as many as there is room for.
pub(in crate::backend::cpu) fn softmax(values: &[f32], out: &mut [f32]) -> Option<()> {
    let count = values.len().min(out.len());
    call!(POWERS.softmax(values.as_ptr(), count, out.as_mut_ptr()))
}

/// The sum of the powers by how far values are above a number, which none is above.
pub(in crate::backend::cpu) fn exponentials(values: &[f32], from: f32) -> Option<f64> {
    call!(POWERS.exponentials(values.as_ptr(), values.len(), from))
}

/// Adds to values as many others, or multiplies them by those.
pub(in crate::backend::cpu) fn combine(values: &mut [f32], others: &[f32], adds: bool) -> Option<()> {
    let count = values.len().min(others.len());
    call!(VECTORS.combine(values.as_mut_ptr(), others.as_ptr(), count, adds))
}

/// Puts in the place of each value how far it is above a number in two parts, times a factor.
pub(in crate::backend::cpu) fn scale(values: &mut [f32], [from, rest]: [f32; 2], by: f32) -> Option<()> {
    call!(VECTORS.scale(values.as_mut_ptr(), values.len(), from, rest, by))
}
