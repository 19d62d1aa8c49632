//! The loops of `vectors.rs`, started in this module's memory when they are first asked for. Each gives None, or false, where the engine has no
//! SIMD: then the caller's own loop does it.

use js_sys::{Object, Reflect, Uint8Array, WebAssembly};
use wasm_bindgen::prelude::*;

use crate::ops::elementwise::{Function, Kind};

const MODULE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vectors.wasm"));
/// Bytes from 0 on that the loops take, with room to spare.
const STACK_BYTES: usize = 16 << 10;

#[wasm_bindgen]
extern "C" {
    /// What the module exports.
    #[derive(Clone)]
    type Vectors;
    #[wasm_bindgen(method)]
    #[allow(clippy::too_many_arguments, reason = "of three slices")]
    fn apply(
        this: &Vectors,
        function: u32,
        kind: u32,
        a: *const u32,
        a_count: usize,
        b: *const u32,
        b_count: usize,
        out: *mut u32,
        count: usize,
    ) -> u32;
    #[wasm_bindgen(method)]
    fn sum(this: &Vectors, values: *const f32, count: usize) -> f32;
    #[wasm_bindgen(method)]
    fn product(this: &Vectors, values: *const f32, count: usize) -> f64;
    #[wasm_bindgen(method)]
    fn squares(this: &Vectors, values: *const f32, count: usize) -> f64;
    #[wasm_bindgen(method)]
    fn distances(this: &Vectors, values: *const f32, count: usize, from: f32, sums: *mut f64);
    #[wasm_bindgen(method)]
    fn extreme(this: &Vectors, values: *const f32, count: usize, is_min: u32) -> f32;
    #[wasm_bindgen(method)]
    fn exponentials(this: &Vectors, values: *const f32, count: usize, from: f32) -> f64;
    #[wasm_bindgen(method)]
    fn combine(this: &Vectors, values: *mut f32, others: *const f32, count: usize, adds: u32);
    #[wasm_bindgen(method)]
    fn powers(this: &Vectors, values: *mut f32, count: usize, from: f32);
    #[wasm_bindgen(method)]
    fn scale(this: &Vectors, values: *mut f32, count: usize, from: f32, rest: f32, by: f32);
}

thread_local! {
    static VECTORS: Option<Vectors> = start();
}

fn start() -> Option<Vectors> {
    // The loops' stack is the lowest part of this module's, below which nothing lies: unless that is above what is static, or almost used up.
    let here = 0u8;
    let here = (&raw const here).addr();
    if here < 2 * STACK_BYTES || MODULE.as_ptr().addr() < here {
        return None;
    }
    let module = WebAssembly::Module::new(&Uint8Array::from(MODULE)).ok()?;
    let (imports, env) = (Object::new(), Object::new());
    Reflect::set(&env, &"memory".into(), &wasm_bindgen::memory()).ok()?;
    Reflect::set(&imports, &"env".into(), &env).ok()?;
    Some(WebAssembly::Instance::new(&module, &imports).ok()?.exports().unchecked_into())
}

fn with<T>(act: impl FnOnce(&Vectors) -> T) -> Option<T> {
    VECTORS.with(|vectors| vectors.as_ref().map(act))
}

/// Applies a function to as many words of operands of a kind as there are results; whether it is one of those that there are loops for.
pub(in crate::backend::cpu) fn applies(function: Function, kind: Kind, operands: &[&[u32]], out: &mut [u32]) -> bool {
    let (Some(a), b) = (operands.first(), operands.get(1).copied().unwrap_or_default()) else { return false };
    let (function, kind) = (function as u32, kind as u32);
    with(|vectors| vectors.apply(function, kind, a.as_ptr(), a.len(), b.as_ptr(), b.len(), out.as_mut_ptr(), out.len()) != 0) == Some(true)
}

/// The sum of values.
pub(in crate::backend::cpu) fn sum(values: &[f32]) -> Option<f32> {
    with(|vectors| vectors.sum(values.as_ptr(), values.len()))
}

/// Their product in double precision.
pub(in crate::backend::cpu) fn product(values: &[f32]) -> Option<f64> {
    with(|vectors| vectors.product(values.as_ptr(), values.len()))
}

/// The sum of their squares.
pub(in crate::backend::cpu) fn squares(values: &[f32]) -> Option<f64> {
    with(|vectors| vectors.squares(values.as_ptr(), values.len()))
}

/// The sums of distances from a number and of their squares.
pub(in crate::backend::cpu) fn distances(values: &[f32], from: f32) -> Option<[f64; 2]> {
    let mut sums = [0.0; 2];
    with(|vectors| vectors.distances(values.as_ptr(), values.len(), from, sums.as_mut_ptr()))?;
    Some(sums)
}

/// The largest or the smallest of values, of which there is one at least; NaN where one of them is.
pub(in crate::backend::cpu) fn extreme(values: &[f32], is_min: bool) -> Option<f32> {
    with(|vectors| vectors.extreme(values.as_ptr(), values.len(), is_min.into()))
}

/// The sum of the powers by how far values are above a number.
pub(in crate::backend::cpu) fn exponentials(values: &[f32], from: f32) -> Option<f64> {
    with(|vectors| vectors.exponentials(values.as_ptr(), values.len(), from))
}

/// Adds to values as many others, or multiplies them by those.
pub(in crate::backend::cpu) fn combine(values: &mut [f32], others: &[f32], adds: bool) -> Option<()> {
    let count = values.len().min(others.len());
    with(|vectors| vectors.combine(values.as_mut_ptr(), others.as_ptr(), count, adds.into()))
}

/// Puts such a power in the place of each value.
pub(in crate::backend::cpu) fn powers(values: &mut [f32], from: f32) -> Option<()> {
    with(|vectors| vectors.powers(values.as_mut_ptr(), values.len(), from))
}

/// Puts in the place of each value how far it is above a number in two parts, times a factor.
pub(in crate::backend::cpu) fn scale(values: &mut [f32], [from, rest]: [f32; 2], by: f32) -> Option<()> {
    with(|vectors| vectors.scale(values.as_mut_ptr(), values.len(), from, rest, by))
}
