//! Numbers in expressions, which take the type of what they stand beside.

use std::sync::Arc;

use super::node::{Node, What};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::Kind;

/// A number beside elements of a type, which has to be one of them, or of floating-point numbers is rounded to one.
pub(super) fn number(number: f64, dtype: DType) -> Result<Arc<Node>> {
    let fits = match Kind::from(dtype) {
        Kind::F32 => true,
        Kind::I32 => f64::from(number as i32) == number,
        Kind::U32 => f64::from(number as u32) == number,
        Kind::Bool => number == 0.0 || number == 1.0,
    };
    if fits {
        let number = if dtype == DType::F16 { rounded_to_f16(number) } else { number };
        return Ok(Arc::new(Node::new(Vec::new(), dtype, What::Number(number))));
    }
    let (option, expected) = ("a number".to_owned(), format!("beside a tensor of {dtype} it must be one of {dtype}; cast the tensor"));
    Err(Box::new(Error::InvalidOption { option, value: text(number), expected }))
}

/// A number of a type as another type has it, as the elements of a tensor are cast; but that f32 has all digits of what the caller wrote.
pub(super) fn number_as(number: f64, from: DType, to: DType) -> f64 {
    match (Kind::from(from), Kind::from(to)) {
        (Kind::U32, Kind::I32) => (number as u32).cast_signed().into(),
        (Kind::I32, Kind::U32) => (number as i32).cast_unsigned().into(),
        (_, Kind::I32) => (number as i32).into(),
        (_, Kind::U32) => (number as u32).into(),
        (_, Kind::Bool) => f64::from(u8::from(number != 0.0)),
        (_, Kind::F32) if to == DType::F16 => rounded_to_f16(number),
        (_, Kind::F32) => f64::from(number as f32),
    }
}

/// The nearest number that an f16 can hold, of two the even one.
fn rounded_to_f16(value: f64) -> f64 {
    if value.abs() >= 65520.0 {
        return value * f64::INFINITY;
    }
    // Behind so large a number there is no room for digits that an f16 does not have, down to the last digit of its least normal number.
    let large = f64::from_bits((value.to_bits() & (0x7ff << 52)).max(1009 << 52)) * (1.5 * (1u64 << 42) as f64);
    (value + large - large).copysign(value)
}

/// A number as text.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn text(number: f64) -> String {
    number.to_string()
}

/// The page writes it: how that is done would be a tenth of what the package weighs.
#[cfg(target_arch = "wasm32")]
pub(super) fn text(number: f64) -> String {
    js_sys::Number::from(number).to_string_with_radix(10).map_or_else(|_| String::new(), String::from)
}
