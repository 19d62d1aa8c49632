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
    let axes = || if numbers.first() == Some(&0.0) { None } else { whole().get(1..).map(<[i64]>::to_vec) };
    Ok(match (what, inputs, numbers) {
        (0, [], &[tensor]) => find_tensor(tensor as u32)?.into(),
        (1, [], &[number]) => Expr::number(number),
        (2, [], _) => Expr::index(&sizes()),
        (3, [condition, yes, no], []) => condition.select(yes, no),
        (4, [input], &[dtype]) => input.cast(DType::ALL.get(dtype as usize).copied().ok_or_else(unknown)?),
        (5, [input], _) => input.reshape(&whole()),
        (6, [input], _) => input.transpose(axes().as_deref()),
        (7, [input], _) => input.broadcast_to(&sizes()),
        (8, [input], &[axis, start, end, step]) => input.slice(axis as i64, start as i64, end as i64, step as i64),
        (9, [input], _) => input.flip(axes().as_deref()),
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
