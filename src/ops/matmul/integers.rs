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
        if dtypes[0].is_byte() && dtypes[1].is_byte() {
            return Self::checked(op, dtypes).map(Some);
        }
        if op.zero_points == [0; 2] {
            return Ok(None);
        }
        let expected = "it is for operands of i8 or u8; leave the option out".to_owned();
        Err(Box::new(Error::InvalidOption { option: "zero_points".to_owned(), value: "set".to_owned(), expected }))
    }

    /// The same of 8-bit integers. On the web it leads into a part of the package that who has such operands has loaded.
    #[inline(never)]
    fn checked(op: &Matmul<'_>, dtypes: [DType; 2]) -> Result<Self> {
        let zero_points = op.zero_points;
        for (argument, dtype, zero_point) in [("a", dtypes[0], zero_points[0]), ("b", dtypes[1], zero_points[1])] {
            let (is_right, numbers) = match dtype {
                DType::I8 => (i8::try_from(zero_point).is_ok(), "-128 to 127"),
                _ => (u8::try_from(zero_point).is_ok(), "0 to 255"),
            };
            if !is_right {
                let sign = if zero_point < 0 { "-" } else { "" };
                let option = format!("the zero point of {argument} (zero_points)");
                let (value, expected) =
                    (format!("{sign}{}", zero_point.unsigned_abs()), format!("{argument} is of {dtype}, whose numbers are {numbers}"));
                return Err(Box::new(Error::InvalidOption { option, value, expected }));
            }
        }
        if let Some(result) = op.result.filter(|result| *result != DType::I32) {
            let (argument, expected) = ("the result".to_owned(), "of i32, as that of 8-bit integers is");
            return Err(Box::new(Error::InvalidType { argument, expected, found: format!("of {result}") }));
        }
        let ends = [
            ("alpha", op.alpha != 1.0),
            ("beta", op.beta != 0.0),
            ("c", op.c.is_some()),
            ("bias", op.bias.is_some()),
            ("activation", op.activation.is_some()),
        ];
        if let Some((option, _)) = ends.into_iter().find(|(_, is_set)| *is_set) {
            let expected = "a product of 8-bit integers ends in its sums of i32; leave the option out".to_owned();
            return Err(Box::new(Error::InvalidOption { option: option.to_owned(), value: "set".to_owned(), expected }));
        }
        Ok(Self { dtypes, zero_points })
    }
}

#[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
impl Integers {
    /// Refuses a product of them where CUDA has no kernel for it.
    pub(crate) fn refuse_in(problem: &super::Problem, caps: &crate::info::Caps) -> Result<()> {
        let dtype = problem.dtype;
        if !dtype.is_byte() || caps.packed_dot {
            return Ok(());
        }
        let expected = "of f32 or f16 on this GPU: CUDA multiplies integers of 8 bits from compute capability 6.1 on, and Vulkan, WebGPU and the CPU do";
        Err(Box::new(Error::InvalidType { argument: "a".to_owned(), expected, found: format!("of {dtype}") }))
    }
}
