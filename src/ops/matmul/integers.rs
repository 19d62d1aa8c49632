//! Products of 8-bit integers: C = (op(A) − a₀)·(op(B) − b₀) in i32, exact modulo 2³², as ONNX's
//! [`MatMulInteger`](https://onnx.ai/onnx/operators/onnx__MatMulInteger.html) defines them, with one zero point for all of A and one for all of B.

use super::Matmul;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// What a product of 8-bit integers is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Integers {
    /// What A's and B's elements are.
    pub dtypes: [DType; 2],
    /// The numbers of those types that stand for zero.
    pub zero_points: [i32; 2],
}

impl Integers {
    /// What a product is beside its shape; None if it is one of floating-point numbers.
    pub(super) fn of(op: &Matmul<'_>, dtypes: [DType; 2]) -> Result<Option<Self>> {
        let zero_points = op.zero_points;
        if !dtypes.iter().all(|dtype| dtype.is_byte()) {
            if zero_points == [0; 2] {
                return Ok(None);
            }
            let expected = format!("it is for operands of i8 or u8, and these are of {}; leave the option out", dtypes[0]);
            return Err(fault("zero_points", &list(zero_points), expected));
        }
        for (argument, dtype, zero_point) in [("a", dtypes[0], zero_points[0]), ("b", dtypes[1], zero_points[1])] {
            let (least, most) = if dtype == DType::I8 { (-128, 127) } else { (0, 255) };
            if !(least..=most).contains(&zero_point) {
                let expected = format!("{argument} is of {dtype}, whose numbers are {least} to {most}");
                return Err(fault("zero_points", &list(zero_points), expected));
            }
        }
        let ends = [
            ("alpha", op.alpha != 1.0),
            ("beta", op.beta != 0.0),
            ("c", op.c.is_some()),
            ("bias", op.bias.is_some()),
            ("activation", op.activation.is_some()),
        ];
        if let Some((option, _)) = ends.into_iter().find(|(_, is_told)| *is_told) {
            let expected = "a product of 8-bit integers ends in its sums of i32; leave the option out".to_owned();
            return Err(fault(option, "told", expected));
        }
        Ok(Some(Self { dtypes, zero_points }))
    }
}

fn list([a, b]: [i32; 2]) -> String {
    format!("[{a}, {b}]")
}

fn fault(option: &str, value: &str, expected: String) -> Box<Error> {
    Box::new(Error::InvalidOption { option: option.to_owned(), value: value.to_owned(), expected })
}

/// On backends without kernels for them.
#[cfg(any(all(feature = "webgl2", target_arch = "wasm32"), all(feature = "cuda", not(target_arch = "wasm32"))))]
impl Integers {
    /// Refuses a product of them.
    pub(crate) fn refuse_in(problem: &super::Problem) -> Result<()> {
        Self::refuse("a", problem.dtype)
    }

    /// Refuses an operand of them.
    pub(crate) fn refuse(argument: &str, dtype: DType) -> Result<()> {
        if !dtype.is_byte() {
            return Ok(());
        }
        let expected = "of f32 or f16 on this backend, which has no kernel for integers of 8 bits, as Vulkan, WebGPU and the CPU have";
        Err(Box::new(Error::InvalidType { argument: argument.to_owned(), expected, found: format!("of {dtype}") }))
    }
}
