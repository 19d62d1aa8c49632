//! Rows put into proportion: softmax and the norms of layers, each row read once and written once.
//!
//! ```text
//! softmax      eˣ / Σ eˣ                      layer norm   (x − mean) / √(variance + ε) · scale + bias
//! log softmax  x − ln Σ eˣ                    RMS norm     x / √(mean of x² + ε) · scale
//! ```
//!
//! The values come from an elementwise program, as a reduction's do.

use crate::dtype::DType;
use crate::ops::map::{self, View};

/// What is made of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Powers of e by their sum.
    Softmax,
    /// The logarithms of the same.
    LogSoftmax,
    /// Distances from the mean by the standard deviation.
    LayerNorm,
    /// Values by their root mean square.
    RmsNorm,
}

impl Form {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Softmax, Self::LogSoftmax, Self::LayerNorm, Self::RmsNorm];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::LogSoftmax => "log_softmax",
            Self::LayerNorm => "layer_norm",
            Self::RmsNorm => "rms_norm",
        }
    }
}

/// A checked operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The values, along the dimensions of rows and then along those within a row, of which there is one at least.
    pub values: map::Problem,
    /// How many dimensions are those of rows.
    pub kept: usize,
    /// What is made of them.
    pub form: Form,
    /// What is added to a variance or a mean square.
    pub epsilon: f32,
    /// The scale, then the bias, so far as there are any: inputs behind those of the values.
    pub beside: Vec<View>,
    /// Where elements of the result are, and their type.
    pub out: View,
}

impl Problem {
    /// The most values of a row whose neighbours lie beside one another: what the invocations of a workgroup keep in registers. With 1024 of them some
    /// are kept elsewhere, which on an NVIDIA H200 took less than to read rows twice.
    pub const MOST_IN_ROW: u64 = 256 * 64;
    const MOST_OF_INVOCATION: u64 = 64;
    const MOST_INVOCATIONS: u64 = 1024;
    /// The same of a row whose neighbours are those of other rows, as long as those are few; of more it takes less time to read rows twice.
    pub const MOST_IN_COLUMN: u64 = 32 * 64;
    const MOST_AMONG_MANY: u64 = 16 * 64;
    const MANY: u32 = 16;
    /// Rows of whole fours, however long each of them is.
    pub const TOGETHER: u64 = 4;

    /// Whether no workgroup of so many invocations keeps a row, or none should since long ones are read `twice` and not by several operations.
    pub fn is_long(&self, invocations: u32, twice: bool) -> bool {
        let most_in_row = Self::MOST_IN_ROW.max(Self::MOST_OF_INVOCATION * Self::MOST_INVOCATIONS.min(invocations.into()));
        let are_many = self.kept.checked_sub(1).is_some_and(|last| self.values.shape[last] > Self::MANY);
        let most_in_column = if twice && are_many { Self::MOST_AMONG_MANY } else { Self::MOST_IN_COLUMN };
        self.count() > if self.is_in_columns() { most_in_column } else { most_in_row }
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        self.values.shape[..self.kept].iter().map(|&size| u64::from(size)).product()
    }

    /// Values of each of them.
    pub fn count(&self) -> u64 {
        self.values.shape[self.kept..].iter().map(|&size| u64::from(size)).product()
    }

    /// Whether neighbours of the result are of different rows.
    pub fn is_in_columns(&self) -> bool {
        self.count() > 1 && self.out.strides.last() != Some(&1)
    }

    /// Whether four neighbours of a row are written at once.
    pub fn is_in_fours(&self) -> bool {
        let inner = self.values.shape.last().copied().unwrap_or(1);
        inner.is_multiple_of(4) && self.out.strides.last() == Some(&1) && self.values.inputs.iter().all(|input| input.bounds.is_empty())
    }

    /// Whether fours are written wherever rows begin: those of the values and of the result lie behind one another from a four on, and a workgroup of
    /// so many invocations keeps some, so that its first begins with one.
    pub fn crosses_fours(&self, invocations: u32) -> bool {
        let begins = |view: &View| view.offset % 4 == 0;
        let lies_flat = self.values.lies_flat(self.kept, [&self.out]) && self.values.inputs.iter().chain([&self.out]).all(begins);
        let most = u64::from(invocations) / Self::TOGETHER * Self::MOST_OF_INVOCATION;
        lies_flat && (2..=most).contains(&self.count()) && !self.is_in_fours()
    }

    /// The least that a kernel moves: what is read of each input, and the result.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn least_bytes(&self) -> u64 {
        let elements = self.values.elements();
        let inputs = self.values.inputs.iter().chain(&self.beside).cloned().collect();
        let read = map::Problem { inputs, ..self.values.clone() }.least_bytes() - elements * self.values.dtype.bytes();
        read + elements * self.out.dtype.bytes()
    }

    /// What the result's elements are.
    pub fn dtype(&self) -> DType {
        self.out.dtype
    }
}
