//! Fourier transforms of expressions. A complex number is a last dimension of size 2, as in ONNX.

use std::sync::Arc;

use super::node::{Node, What};
use super::{Expr, shape};
use crate::dtype::DType;
use crate::error::Error;
use crate::ops::Op;
use crate::ops::fft::{Form, Problem};
use crate::tensor::{elements, joined};

impl Expr {
    /// The Fourier transform along an axis of complex numbers, whose last dimension, of size 2, is not counted: axis −1 is the one before
    /// it.
    ///
    /// ```text
    /// X[k] = Σ x[i] · exp(−2πi · i·k / n)
    /// ```
    ///
    /// Of `length` elements if that is given, what lacks being zeros and what is too much cut off. Any length will do; those without prime
    /// factors above 7 are some three times as fast as others. The error, relative to the largest result, grows as log n: about 10⁻⁷ · log₂ n.
    ///
    /// # Errors
    /// When it is evaluated: [`Error::InvalidType`] unless it is of f32; [`Error::InvalidDimension`] if the last dimension is not 2, for an axis
    /// that is not there and for a length of 0 or above 2³¹ − 2; [`Error::LimitExceeded`] past 2²⁷ on a GPU, on WebGL2 past 2²⁵.
    #[must_use]
    pub fn fft(&self, axis: i64, length: Option<u64>) -> Self {
        self.transformed(axis, length, false, [Form::Complex; 2])
    }

    /// The inverse of [`fft`](Self::fft): x\[i\] = (1 / n) · Σ X\[k\] · exp(2πi · i·k / n).
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn ifft(&self, axis: i64, length: Option<u64>) -> Self {
        self.transformed(axis, length, true, [Form::Complex; 2])
    }

    /// The transform of real numbers along an axis: complex numbers for k up to ⌊n / 2⌋, whose parts are a new last dimension of
    /// size 2. The other half are their conjugates.
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn rfft(&self, axis: i64, length: Option<u64>) -> Self {
        self.transformed(axis, length, false, [Form::Real, Form::Half])
    }

    /// The inverse of [`rfft`](Self::rfft): real numbers. Without a length there are twice as many as complex ones, less 2.
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn irfft(&self, axis: i64, length: Option<u64>) -> Self {
        self.transformed(axis, length, true, [Form::Half, Form::Real])
    }

    /// The transform of real numbers with all of its result, as [`fft`](Self::fft) gives it.
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn fft_of_real(&self, axis: i64, length: Option<u64>) -> Self {
        self.transformed(axis, length, false, [Form::Real, Form::Complex])
    }

    /// The transform along the last two axes of complex numbers.
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn fft2(&self) -> Self {
        self.fft(-1, None).fft(-2, None)
    }

    /// The inverse of [`fft2`](Self::fft2).
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn ifft2(&self) -> Self {
        self.ifft(-1, None).ifft(-2, None)
    }

    /// The transform along the last two axes of real numbers: of the last one k up to ⌊n / 2⌋, as [`rfft`](Self::rfft).
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn rfft2(&self) -> Self {
        self.rfft(-1, None).fft(-2, None)
    }

    /// The inverse of [`rfft2`](Self::rfft2), whose last axis has that length, as that of [`irfft`](Self::irfft).
    ///
    /// # Errors
    /// As those of [`fft`](Self::fft).
    #[must_use]
    pub fn irfft2(&self, length: Option<u64>) -> Self {
        self.ifft(-2, None).irfft(-1, length)
    }

    fn transformed(&self, axis: i64, length: Option<u64>, inverse: bool, [reads, gives]: [Form; 2]) -> Self {
        self.then(|node| {
            if node.dtype != DType::F32 {
                let (argument, found) = ("the input of a transform".to_owned(), format!("of {}", node.dtype));
                return Err(Box::new(Error::InvalidType { argument, expected: "of f32", found }));
            }
            let sizes = match (reads, node.shape.split_last()) {
                (Form::Real, _) => &node.shape[..],
                (_, Some((2, sizes))) => sizes,
                _ => {
                    let (value, expected) = (format!("[{}]", joined(&node.shape, ", ")), "one whose last dimension is 2".to_owned());
                    return Err(Box::new(Error::InvalidDimension { name: "the shape of complex numbers", value, expected }));
                }
            };
            let axis = shape::axis(axis, sizes.len())?;
            let input = sizes[axis];
            let length = length.unwrap_or(if reads == Form::Half { 2 * input.saturating_sub(1) } else { input });
            let Some(n) = u32::try_from(length).ok().filter(|&n| n > 0 && n < u32::MAX / 2) else {
                let expected = format!("a whole number from 1 to {}", u32::MAX / 2 - 1);
                return Err(Box::new(Error::InvalidDimension { name: "the length of a transform", value: length.to_string(), expected }));
            };
            let mut shape = sizes.to_vec();
            shape[axis] = gives.stored(n).into();
            if gives != Form::Real {
                shape.push(2);
            }
            shape::check(&shape)?;
            // One dimension of size 0 leaves the others free, and the result empty.
            let [outer, inner] = [&sizes[..axis], &sizes[axis + 1..]].map(elements);
            let [outer, inner] = if outer.saturating_mul(inner) == 0 { [0, 1] } else { [outer as u32, inner as u32] };
            // Of nothing but the zeros that lack.
            if input == 0 {
                let zero = Arc::new(Node::new(Vec::new(), DType::F32, What::Number(0.0)));
                return Ok(Node::view(shape, &zero, Vec::new()));
            }
            let problem = Problem { outer, length: n, inner, input: input as u32, inverse, reads, gives };
            Ok(Node::new(shape, DType::F32, What::Whole(Op::Fft(problem), vec![Arc::clone(node)])))
        })
    }
}
