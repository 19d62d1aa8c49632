//! Reductions of expressions along axes.

use std::sync::Arc;

use super::lower::{Beside, Operations, Source, Values};
use super::node::{Node, What};
use super::{Expr, shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::elementwise::{Program, Step};
use crate::ops::map::{self, View};
use crate::ops::reduce::{Fold, Problem};
use crate::plan::reduce::MORE_WORDS;
use crate::tensor::joined;

/// Along `axes`, of which negative ones count from the end; along all if there are none given. With `keep` those axes stay, of size 1.
///
/// Sums of floating-point elements are of f32, those of f16 rounded at the end. They are made in blocks and trees: with u = 2⁻²⁴ a sum of n
/// elements is off by at most (n / 64 + 64) · u · Σ|a|, on a CPU by (n / 2²⁰ + 64) · u · Σ|a|, and the same from run to run. Of integers sums
/// and products wrap around.
impl Expr {
    /// Σ a; of no elements 0.
    #[must_use]
    pub fn sum(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.reduced(Fold::Sum, axes, keep, 0.0)
    }

    /// Σ a / n for n elements, of integers and truths as f32; of no elements NaN.
    #[must_use]
    pub fn mean(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.float().reduced(Fold::Mean, axes, keep, 0.0)
    }

    /// The product of all; of no elements 1.
    #[must_use]
    pub fn prod(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.reduced(Fold::Prod, axes, keep, 0.0)
    }

    /// The largest element; NaN if one is. Of no elements there is none, which is an error. (The larger of two expressions is
    /// [`max`](Self::max).)
    #[must_use]
    pub fn amax(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.reduced(Fold::Max, axes, keep, 0.0)
    }

    /// The smallest element; NaN if one is. Of no elements there is none, which is an error. (The smaller of two expressions is
    /// [`min`](Self::min).)
    #[must_use]
    pub fn amin(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.reduced(Fold::Min, axes, keep, 0.0)
    }

    /// Where along the axes the largest element is, as u32; the first of several, and the first NaN before all numbers. Along more
    /// than one axis elements are counted row by row. Of no elements there is none, which is an error.
    #[must_use]
    pub fn argmax(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.reduced(Fold::ArgMax, axes, keep, 0.0)
    }

    /// Where along the axes the smallest element is, as [`argmax`](Self::argmax).
    #[must_use]
    pub fn argmin(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.reduced(Fold::ArgMin, axes, keep, 0.0)
    }

    /// The variance Σ (a − mean)² / max(n − correction, 0), of integers and truths as f32; NaN where n is 0. It comes from one reading by the
    /// formulas of Chan, Golub and LeVeque (1983), which lose nothing where the mean is large. A correction of 1 gives that of a sample.
    #[must_use]
    pub fn var(&self, axes: Option<&[i64]>, keep: bool, correction: f64) -> Self {
        self.float().reduced(Fold::Var, axes, keep, correction)
    }

    /// The standard deviation √(Σ (a − mean)² / max(n − correction, 0)), as [`var`](Self::var).
    #[must_use]
    pub fn std(&self, axes: Option<&[i64]>, keep: bool, correction: f64) -> Self {
        self.float().reduced(Fold::Std, axes, keep, correction)
    }

    /// Σ |a|, of integers and truths as f32; of no elements 0.
    #[must_use]
    pub fn norm_l1(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.float().abs().sum(axes, keep)
    }

    /// √Σ a², of integers and truths as f32; of no elements 0. It is right wherever the norm is a number, even where the squares are beyond
    /// all numbers or below them (Blue, 1978).
    #[must_use]
    pub fn norm_l2(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.float().reduced(Fold::Norm, axes, keep, 0.0)
    }

    /// √(Σ a² / n) for n elements, which is a number even where the norm is none.
    pub(super) fn root_mean_square(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.float().reduced(Fold::Rms, axes, keep, 0.0)
    }

    /// ln Σ eᵃ, of integers and truths as f32; of no elements −∞. It is right wherever the result is a number, even where eᵃ is none.
    #[must_use]
    pub fn log_sum_exp(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.float().reduced(Fold::LogSumExp, axes, keep, 0.0)
    }

    /// Whether any element is true, or not 0; of none false.
    #[must_use]
    pub fn any(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.count(axes, keep).cast(DType::Bool)
    }

    /// Whether all elements are true, or not 0; of none true.
    #[must_use]
    pub fn all(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.cast(DType::Bool).not().any(axes, keep).not()
    }

    /// How many elements are true, or not 0, as u32.
    #[must_use]
    pub fn count(&self, axes: Option<&[i64]>, keep: bool) -> Self {
        self.cast(DType::Bool).cast(DType::U32).sum(axes, keep)
    }

    /// Integers and truths as f32.
    pub(super) fn float(&self) -> Self {
        match self.dtype() {
            Ok(dtype) if !dtype.is_float() => self.cast(DType::F32),
            _ => self.clone(),
        }
    }

    fn reduced(&self, fold: Fold, axes: Option<&[i64]>, keep: bool, correction: f64) -> Self {
        // Of two that f16 does not tell apart the first is the largest.
        let is_placed = matches!(fold, Fold::ArgMax | Fold::ArgMin) && self.dtype() == Ok(DType::F16);
        let values = if is_placed { &self.round_to_f16() } else { self };
        let Ok(node) = values.node() else { return self.clone() };
        let make = || {
            let axes = shape::axes(axes, node.shape.len())?;
            let dtype = if node.dtype == DType::F16 { DType::F32 } else { node.dtype };
            if !fold.takes(dtype) {
                let argument = format!("the operand of {}", fold.name());
                let expected = "of f32, f16, i32 or u32; of truths there are any, all and count";
                return Err(Box::new(Error::InvalidType { argument, expected, found: format!("of {}", node.dtype) }));
            }
            if !(correction.is_finite() && correction >= 0.0) {
                let (option, expected) = ("the correction".to_owned(), "it must be a number from 0 on".to_owned());
                return Err(Box::new(Error::InvalidOption { option, value: super::number::text(correction), expected }));
            }
            let count: u64 = axes.iter().map(|&axis| node.shape[axis]).product();
            let is_kept = |dimension: &usize| !axes.contains(dimension);
            let kept: Vec<_> = (0..node.shape.len()).filter(is_kept).map(|dimension| node.shape[dimension]).collect();
            let result = fold.result(dtype);
            let made = if count > 0 {
                let divisor = (count as f64 - correction).max(0.0) as f32;
                Self::new(Node::new(kept, result, What::Reduce(Arc::clone(node), axes.clone(), fold, divisor)))
            } else {
                let value = of_nothing(fold).ok_or_else(|| {
                    let value = format!("[{}]", joined(&node.shape, ", "));
                    let expected = format!("one with at least one element to reduce: {} has no value of none", fold.name());
                    Box::new(Error::InvalidDimension { name: "the shape", value, expected })
                })?;
                Self::new(Node::new(Vec::new(), result, What::Number(value))).broadcast_to(&kept)
            };
            let sizes = |(dimension, &size): (usize, &u64)| if axes.contains(&dimension) { 1 } else { size as i64 };
            let whole: Vec<_> = node.shape.iter().enumerate().map(sizes).collect();
            let made = if keep { made.reshape(&whole) } else { made };
            let is_rounded = node.dtype == DType::F16 && result == DType::F32;
            Ok(if is_rounded { made.cast(DType::F16) } else { made })
        };
        make().unwrap_or_else(|error| Self(Err(error)))
    }
}

impl Operations {
    /// A kernel for a value reduced along some of its dimensions. On GPUs neighbours are read together, wherever they are among those that stay,
    /// and what comes of it is put in order.
    pub(super) fn reduction(&mut self, input: &Arc<Node>, axes: &[usize], (fold, divisor): (Fold, f32)) -> Result<Source> {
        let Values { problem: values, kept, sources, .. } = self.values(input, axes, &Beside::default(), MORE_WORDS)?;
        let mut problem = Problem { values, kept, fold, divisor };
        let (shape, dtype) = (problem.values.shape[..kept].to_vec(), problem.dtype());
        let moved = if self.has_workgroups() { problem.put_nearest_last() } else { None };
        let reduced = self.add(Op::Reduce(problem), sources.into_iter().map(Some).collect());
        let Some(moved) = moved else { return Ok(reduced) };
        let (mut strides, mut apart) = (vec![1; kept], i64::from(shape[moved]));
        for dimension in (0..kept).rev().filter(|&dimension| dimension != moved) {
            strides[dimension] = apart;
            apart *= i64::from(shape[dimension]);
        }
        let view = View { dtype, offset: 0, strides, bounds: Vec::new() };
        let program = Program { inputs: vec![dtype.into()], steps: vec![Step::Input(0)] };
        let in_order = map::Problem { shape, inputs: vec![view], program: Arc::new(program), scalars: Vec::new(), dtype };
        Ok(self.add(Op::Map(in_order), vec![Some(reduced)]))
    }
}

/// What there is of no elements.
fn of_nothing(fold: Fold) -> Option<f64> {
    match fold {
        Fold::Sum | Fold::Norm => Some(0.0),
        Fold::Prod => Some(1.0),
        Fold::Mean | Fold::Var | Fold::Std | Fold::Rms => Some(f64::NAN),
        Fold::LogSumExp => Some(f64::NEG_INFINITY),
        Fold::Max | Fold::Min | Fold::ArgMax | Fold::ArgMin => None,
    }
}
