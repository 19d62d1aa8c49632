//! Reductions: one element of the result from all elements along some dimensions.
//!
//! ```text
//! out[i₀, i₁, …] = finish(fold over all j₀, j₁, … of program(inputs at [i₀, i₁, …, j₀, j₁, …]))
//! ```
//!
//! The values come from an elementwise program, so that what is computed of each element before goes into the same kernel. Values are
//! folded in an order that depends on nothing but the shape and the device: the result is the same from run to run.

use crate::dtype::DType;
use crate::ops::map;

/// What is made of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// Their sum by the divisor.
    Mean,
    /// Their product.
    Prod,
    /// The largest; NaN if there is one.
    Max,
    /// The smallest; NaN if there is one.
    Min,
    /// Where the largest is, or the first NaN: its number among the values.
    ArgMax,
    /// Where the smallest is, or the first NaN.
    ArgMin,
    /// The sum of squared distances from their mean, by the divisor.
    Var,
    /// The square root of the same.
    Std,
    /// The square root of the sum of squares, which itself may be beyond all numbers.
    Norm,
    /// ln Σ eˣ, whose powers themselves may be beyond all numbers.
    LogSumExp,
    /// The square root of the sum of squares by the divisor, which is a number even where the norm is beyond all numbers.
    Rms,
}

impl Fold {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Sum,
        Self::Mean,
        Self::Prod,
        Self::Max,
        Self::Min,
        Self::ArgMax,
        Self::ArgMin,
        Self::Var,
        Self::Std,
        Self::Norm,
        Self::LogSumExp,
        Self::Rms,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Prod => "prod",
            Self::Max => "max",
            Self::Min => "min",
            Self::ArgMax => "argmax",
            Self::ArgMin => "argmin",
            Self::Var => "var",
            Self::Std => "std",
            Self::Norm => "norm",
            Self::LogSumExp => "log_sum_exp",
            Self::Rms => "rms",
        }
    }

    /// Whether it takes values of a type, which is never f16: that is widened when it is read.
    pub const fn takes(self, dtype: DType) -> bool {
        match dtype {
            DType::F32 => true,
            DType::I32 | DType::U32 => {
                matches!(self, Self::Sum | Self::Prod | Self::Max | Self::Min | Self::ArgMax | Self::ArgMin)
            }
            DType::F16 | DType::Bool | DType::I8 | DType::U8 => false,
        }
    }

    /// What it makes of values of a type.
    pub const fn result(self, dtype: DType) -> DType {
        if matches!(self, Self::ArgMax | Self::ArgMin) { DType::U32 } else { dtype }
    }
}

/// A checked reduction.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The values, along the dimensions that stay and then along those that are reduced, of which there is one at least.
    pub values: map::Problem,
    /// How many dimensions stay.
    pub kept: usize,
    /// What is made of the values.
    pub fold: Fold,
    /// By what a mean, a variance or a root of a mean square divides.
    pub divisor: f32,
}

impl Problem {
    /// Elements of the result.
    pub fn rows(&self) -> u64 {
        product(&self.values.shape[..self.kept])
    }

    /// Values of each of them.
    pub fn count(&self) -> u64 {
        product(&self.values.shape[self.kept..])
    }

    /// What the result's elements are.
    pub fn dtype(&self) -> DType {
        self.fold.result(self.values.dtype)
    }

    /// Whether neighbours in memory are neighbours along a dimension that stays, in more inputs than not.
    pub fn is_in_columns(&self) -> bool {
        let Some(last) = self.kept.checked_sub(1) else { return false };
        let is_near = |input: &map::View, dimension: usize| input.strides.get(dimension).is_some_and(|stride| stride.abs() == 1);
        let in_favour = |input: &map::View| i32::from(is_near(input, last)) - i32::from(is_near(input, self.values.shape.len() - 1));
        self.count() > 1 && self.values.inputs.iter().map(in_favour).sum::<i32>() > 0
    }

    /// Puts the dimension along which the first input has its neighbours behind the others that stay, or behind the others that are reduced, since
    /// kernels read along the last ones. Gives the one that was put elsewhere of those that stay, if one was: that changes the result's order.
    pub fn put_nearest_last(&mut self) -> Option<usize> {
        /// Neighbours that are worth a result in another order.
        const LEAST: u32 = 16;
        let (kept, values) = (self.kept, &mut self.values);
        let nearest = values.inputs.first()?.strides.iter().rposition(|stride| stride.abs() == 1)?;
        let end = if nearest < kept { kept } else { values.shape.len() };
        // Where there are several dimensions, places are counted in their order.
        let is_placed = end > kept && matches!(self.fold, Fold::ArgMax | Fold::ArgMin);
        if nearest + 1 == end || values.shape[nearest] < LEAST || is_placed || values.program.reads_index() {
            return None;
        }
        values.put_behind(nearest, end);
        (end == kept).then_some(nearest)
    }

    /// The least that kernels move: what is read of each input, and the result.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn least_bytes(&self) -> u64 {
        self.values.least_bytes() - self.values.elements() * self.values.dtype.bytes() + self.rows() * self.dtype().bytes()
    }
}

fn product(shape: &[u32]) -> u64 {
    shape.iter().map(|&size| u64::from(size)).product()
}
