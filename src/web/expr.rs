//! Expressions as JavaScript tells them: `encode` in `npm/expr.js` writes each part once, behind those that it is made of.
//!
//! ```text
//! code, number of inputs, their places among the parts before, number of numbers, the numbers
//! ```

use super::find_tensor;
use crate::dtype::DType;
use crate::error::Error;
use crate::expr::{Expr, Padding};
use crate::ops::elementwise::Function;
use wasm_bindgen::JsValue;

/// The first code of a function; those before are in the order of `PARTS` in `npm/expr.js`.
const FIRST_FUNCTION: usize = 64;

/// The expression whose last part is its value.
pub(super) fn decode(mut code: &[f64]) -> Result<Expr, JsValue> {
    let mut parts: Vec<Expr> = Vec::new();
    while let Some((&what, rest)) = code.split_first() {
        let (places, rest) = counted(rest)?;
        let (numbers, rest) = counted(rest)?;
        let inputs = places.iter().map(|&place| parts.get(place as usize).cloned());
        let inputs: Vec<_> = inputs.collect::<Option<_>>().ok_or_else(unknown)?;
        parts.push(part(what as usize, &inputs, numbers)?);
        code = rest;
    }
    parts.pop().ok_or_else(unknown)
}

/// So many as the first number says, and what is behind them.
fn counted(code: &[f64]) -> Result<(&[f64], &[f64]), JsValue> {
    code.split_first().and_then(|(&count, rest)| rest.split_at_checked(count as usize)).ok_or_else(unknown)
}

fn unknown() -> JsValue {
    Error::internal("an expression of other numbers").into()
}

fn part(what: usize, inputs: &[Expr], numbers: &[f64]) -> Result<Expr, JsValue> {
    let whole = || -> Vec<i64> { numbers.iter().map(|&number| number as i64).collect() };
    let sizes = || super::sizes(numbers);
    Ok(match (what, inputs, numbers) {
        (0, [], &[tensor]) => find_tensor(tensor as u32)?.into(),
        (1, [], &[number]) => Expr::number(number),
        (2, [], _) => Expr::index(&sizes()),
        (3, [condition, yes, no], []) => condition.select(yes, no),
        (4, [input], &[dtype]) => input.cast(DType::ALL.get(dtype as usize).copied().ok_or_else(unknown)?),
        (5, [input], _) => input.reshape(&whole()),
        (6, [input], _) => input.transpose(axes(numbers).as_deref()),
        (7, [input], _) => input.broadcast_to(&sizes()),
        (8, [input], &[axis, start, end, step]) => input.slice(axis as i64, start as i64, end as i64, step as i64),
        (9, [input], _) => input.flip(axes(numbers).as_deref()),
        (10, [input], &[mode, value, ref widths @ ..]) => {
            let widths: Vec<_> = widths.chunks_exact(2).map(|pair| [pair[0] as u64, pair[1] as u64]).collect();
            let padding = match mode as u32 {
                0 => Padding::Constant(value),
                1 => Padding::Edge,
                2 => Padding::Reflect,
                _ => Padding::Wrap,
            };
            input.pad(&widths, padding)
        }
        (11, parts, &[axis]) => Expr::concat(parts, axis as i64),
        (12, [input], []) => input.gelu(),
        (13, [input, least, most], []) => input.clamp(least, most),
        (14, [a, b], []) => a.matmul(b),
        (15..18, [], &[seed, ref shape @ ..]) => {
            let make = [Expr::random_bits, Expr::random_uniform, Expr::random_normal][what - 15];
            make(&super::sizes(shape), seed as u64)
        }
        (18..=32, [input], &[correction, keep, ref told @ ..]) => reduced(input, what - 18, axes(told), keep != 0.0, correction)?,
        (FIRST_FUNCTION.., _, []) => {
            let function = *Function::ALL.get(what - FIRST_FUNCTION).ok_or_else(unknown)?;
            match inputs {
                [a] if function.arity() == 1 => a.apply(function),
                [a, b] if function.arity() == 2 => a.apply_with(function, b),
                _ => return Err(unknown()),
            }
        }
        _ => return Err(unknown()),
    })
}

/// Axes behind a 1; none are told by a 0.
fn axes(told: &[f64]) -> Option<Vec<i64>> {
    told.split_first().filter(|(is_told, _)| **is_told != 0.0).map(|(_, axes)| axes.iter().map(|&axis| axis as i64).collect())
}

/// What makes a reduction along axes, which it may keep.
type Reduction = fn(&Expr, Option<&[i64]>, bool) -> Expr;

/// A reduction by its number behind the first of them.
fn reduced(input: &Expr, which: usize, axes: Option<Vec<i64>>, keep: bool, correction: f64) -> Result<Expr, JsValue> {
    const OTHERS: [Reduction; 13] = [
        Expr::sum,
        Expr::mean,
        Expr::prod,
        Expr::amax,
        Expr::amin,
        Expr::argmax,
        Expr::argmin,
        Expr::norm_l1,
        Expr::norm_l2,
        Expr::log_sum_exp,
        Expr::any,
        Expr::all,
        Expr::count,
    ];
    let axes = axes.as_deref();
    match which {
        0 => Ok(input.var(axes, keep, correction)),
        1 => Ok(input.std(axes, keep, correction)),
        _ => OTHERS.get(which - 2).map(|reduce| reduce(input, axes, keep)).ok_or_else(unknown),
    }
}
