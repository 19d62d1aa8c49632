//! Expressions as JavaScript tells them: `encode` in `npm/expr.js` writes each part once, behind those that it is made of.
//!
//! ```text
//! code, number of inputs, their places among the parts before, number of numbers, the numbers
//! ```

mod known;

use super::find_tensor;
use crate::backend::BoxFuture;
use crate::dtype::DType;
use crate::error::Error;
use crate::expr::{Conv, Expr, Padding, Pool};
use crate::gpu::Gpu;
use crate::ops::elementwise::Function;
use crate::ops::matmul::Activation;
use crate::tensor::Tensor;
use wasm_bindgen::JsValue;

/// The first code of a function; those before are in the order of `PARTS` in `npm/expr.js`.
const FIRST_FUNCTION: usize = 64;

/// The tensors that an expression is made of, in the order of its parts: its caller may free them while there is something to wait for.
pub(super) fn tensors(mut code: &[f64]) -> Result<Vec<Tensor>, JsValue> {
    let mut tensors = Vec::new();
    while let Some((part, rest)) = next(code)? {
        if let Part { what: 0, numbers: &[tensor], .. } = part {
            tensors.push(find_tensor(tensor as u32)?);
        }
        code = rest;
    }
    Ok(tensors)
}

/// Leads into the part of the package: the value of an expression, which is that of its last part.
#[inline(never)]
pub(super) fn evaluate(gpu: Gpu, code: Vec<f64>, tensors: Vec<Tensor>) -> BoxFuture<'static, Result<Tensor, JsValue>> {
    Box::pin(async move {
        let opened = gpu.current()?;
        if let Some((lowered, tensors)) = known::lowered(&code, &tensors, &opened)
            && let Ok(tensor) = gpu.run(&lowered, &tensors, &opened).await
        {
            return Ok(tensor);
        }
        // What is wrong is found out step by step, and what can be done about it is done.
        Ok(gpu.evaluate(&decode(&code, tensors)?).await?)
    })
}

fn decode(mut code: &[f64], tensors: Vec<Tensor>) -> Result<Expr, JsValue> {
    let mut tensors = tensors.into_iter();
    let mut parts: Vec<Expr> = Vec::new();
    while let Some((Part { what, places, numbers }, rest)) = next(code)? {
        let inputs = places.iter().map(|&place| parts.get(place as usize).cloned());
        let inputs: Vec<_> = inputs.collect::<Option<_>>().ok_or_else(unknown)?;
        parts.push(match what {
            0 => tensors.next().ok_or_else(unknown)?.into(),
            _ => part(what, &inputs, numbers)?,
        });
        code = rest;
    }
    parts.pop().ok_or_else(unknown)
}

/// A part as it is told.
struct Part<'a> {
    what: usize,
    places: &'a [f64],
    numbers: &'a [f64],
}

/// The first part, and what is behind it.
fn next(code: &[f64]) -> Result<Option<(Part<'_>, &[f64])>, JsValue> {
    let Some((&what, rest)) = code.split_first() else { return Ok(None) };
    let (places, rest) = counted(rest)?;
    let (numbers, rest) = counted(rest)?;
    Ok(Some((Part { what: what as usize, places, numbers }, rest)))
}

/// So many as the first number says, and what is behind them.
fn counted(code: &[f64]) -> Result<(&[f64], &[f64]), JsValue> {
    code.split_first().and_then(|(&count, rest)| rest.split_at_checked(count as usize)).ok_or_else(unknown)
}

fn unknown() -> JsValue {
    Error::internal("an expression of other numbers").into()
}

fn part(what: usize, inputs: &[Expr], numbers: &[f64]) -> Result<Expr, JsValue> {
    let sizes = || super::sizes(numbers);
    Ok(match (what, inputs, numbers) {
        (1, [], &[number]) => Expr::number(number),
        (2, [], _) => Expr::index(&sizes()),
        (3, [condition, yes, no], []) => condition.select(yes, no),
        (4, [input], &[dtype]) => input.cast(DType::ALL.get(dtype as usize).copied().ok_or_else(unknown)?),
        (5, [input], _) => input.reshape(&wholes(numbers)),
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
        (33, [input, filters, bias @ ..], &[groups, activation, ref told @ ..]) => {
            let mut how = Conv::default().groups(groups as u64);
            (how, _) = windows(how, told).ok_or_else(unknown)?;
            how = bias.iter().fold(how, |how, bias| how.bias(bias));
            how = Activation::of_number(activation as u32).into_iter().fold(how, Conv::activation);
            input.conv(filters, &how)
        }
        (34..=36, [input], &[counts, ref told @ ..]) => {
            let (sizes, told) = counted(told)?;
            let (how, _) = windows(Pool::new(&super::sizes(sizes)), told).ok_or_else(unknown)?;
            let how = how.count_include_pad(counts != 0.0);
            let make = [Expr::max_pool, Expr::max_pool_indices, Expr::average_pool][what - 34];
            make(input, &how)
        }
        (37, [input], []) => input.global_max_pool(),
        (38, [input], []) => input.global_average_pool(),
        (39, [input], &[axis]) => input.softmax(axis as i64),
        (40, [input], &[axis]) => input.log_softmax(axis as i64),
        (41, [input, beside @ ..], &[epsilon, scale, bias, ref axes @ ..]) => {
            let mut beside = beside.iter();
            let [scale, bias] = [scale, bias].map(|is_told| if is_told != 0.0 { beside.next() } else { None });
            input.layer_norm(&wholes(axes), scale, bias, epsilon)
        }
        (42, [input, beside @ ..], &[epsilon, _, ref axes @ ..]) => input.rms_norm(&wholes(axes), beside.first(), epsilon),
        (43, [input, scale, bias, mean, variance], &[epsilon]) => input.batch_norm(scale, bias, mean, variance, epsilon),
        (44..=48, [input], &[axis, ref length @ ..]) => {
            let make = [Expr::fft, Expr::ifft, Expr::rfft, Expr::irfft, Expr::fft_of_real][what - 44];
            make(input, axis as i64, length.first().map(|&length| length as u64))
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

fn wholes(numbers: &[f64]) -> Vec<i64> {
    numbers.iter().map(|&number| number as i64).collect()
}

/// Axes behind a 1; none are told by a 0.
fn axes(told: &[f64]) -> Option<Vec<i64>> {
    told.split_first().filter(|(is_told, _)| **is_told != 0.0).map(|(_, axes)| wholes(axes))
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

/// What slides, as it is told: what the padding is, strides, dilations, pads, whether it may reach over the edge; and what is behind that.
fn windows<T: Slides>(how: T, told: &[f64]) -> Option<(T, &[f64])> {
    let list = |told| counted(told).ok().map(|(list, rest)| (super::sizes(list), rest));
    let (&padding, told) = told.split_first()?;
    let (strides, told) = list(told)?;
    let (dilations, told) = list(told)?;
    let (pads, told) = list(told)?;
    let (&ceil, rest) = told.split_first()?;
    Some((how.told(padding as u32, [&strides, &dilations, &pads], ceil != 0.0), rest))
}

/// A convolution or a pool.
trait Slides: Sized {
    fn told(self, padding: u32, lists: [&[u64]; 3], ceil: bool) -> Self;
}

macro_rules! slides {
    ($($name:ident |$how:ident, $ceil:ident| $reaches:expr),+) => { $(
        impl Slides for $name {
            fn told(self, padding: u32, [strides, dilations, pads]: [&[u64]; 3], $ceil: bool) -> Self {
                let mut $how = self;
                if !strides.is_empty() {
                    $how = $how.strides(strides);
                }
                if !dilations.is_empty() {
                    $how = $how.dilations(dilations);
                }
                let pads: Vec<_> = pads.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
                $how = match padding {
                    1 => $how.same_upper(),
                    2 => $how.same_lower(),
                    _ if pads.is_empty() => $how,
                    _ => $how.pads(&pads),
                };
                $reaches
            }
        }
    )+ };
}

slides!(Conv | how, _ceil | how, Pool | how, ceil | how.ceil_mode(ceil));
