//! Softmax and norms of expressions.

use std::sync::Arc;

use super::lower::{Beside, Operations, Source, Values};
use super::node::{Node, What};
use super::{Expr, shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::map::MOST_INPUTS;
use crate::ops::normalize::{Form, Problem};
use crate::plan::normalize::MORE_WORDS;
use crate::tensor::joined;

impl Expr {
    /// eᵃ / Σ eᵃ along an axis, as if eᵃ were a number for every a. NaN along the axis where there is NaN or ∞, or nothing but −∞.
    #[must_use]
    pub fn softmax(&self, axis: i64) -> Self {
        self.normalized(Form::Softmax, &[axis], &[], 0.0)
    }

    /// a − ln Σ eᵃ along an axis, the logarithm of [`softmax`](Self::softmax), and more exact than that of its result.
    #[must_use]
    pub fn log_softmax(&self, axis: i64) -> Self {
        self.normalized(Form::LogSoftmax, &[axis], &[], 0.0)
    }

    /// (a − mean) / √(variance + epsilon) · scale + bias, mean and variance along the axes; the scale and the bias are repeated to the shape of
    /// a, and those that are not given are 1 and 0.
    #[must_use]
    pub fn layer_norm(&self, axes: &[i64], scale: Option<&Self>, bias: Option<&Self>, epsilon: f64) -> Self {
        let one = Self::number(1.0);
        let beside: Vec<_> = match (scale, bias) {
            (scale, Some(bias)) => vec![scale.unwrap_or(&one), bias],
            (Some(scale), None) => vec![scale],
            (None, None) => Vec::new(),
        };
        self.normalized(Form::LayerNorm, axes, &beside, epsilon)
    }

    /// a / √(mean of a² + epsilon) · scale, the mean along the axes; the scale is repeated to the shape of a, and 1 if there is none given.
    #[must_use]
    pub fn rms_norm(&self, axes: &[i64], scale: Option<&Self>, epsilon: f64) -> Self {
        let beside: Vec<_> = scale.into_iter().collect();
        self.normalized(Form::RmsNorm, axes, &beside, epsilon)
    }

    /// (a − mean) / √(variance + epsilon) · scale + bias with what was found of each channel before: vectors of as many numbers as dimension 1
    /// of a, the channels, has. It goes into one kernel with what is before it and after it.
    #[must_use]
    pub fn batch_norm(&self, scale: &Self, bias: &Self, mean: &Self, variance: &Self, epsilon: f64) -> Self {
        let make = || {
            let node = self.node()?;
            check_epsilon(epsilon)?;
            let Some(&channels) = node.shape.get(1) else {
                let (value, expected) = (node.shape.len().to_string(), "at least 2: items and their channels".to_owned());
                return Err(Box::new(Error::InvalidDimension { name: "the number of dimensions", value, expected }));
            };
            let mut sizes = vec![1; node.shape.len() - 1];
            sizes[0] = channels as i64;
            let of_channels = |vector: &Self| {
                let shape = vector.shape()?;
                if shape == [channels] {
                    return Ok(vector.reshape(&sizes));
                }
                let expected = format!("[{channels}], a number for each channel of [{}]", joined(&node.shape, ", "));
                let value = format!("[{}]", joined(shape, ", "));
                Err(Box::new(Error::InvalidDimension { name: "the shape of a scale, bias, mean or variance", value, expected }))
            };
            let variance = of_channels(variance)?;
            // As a number of f16 epsilon would be another, or none.
            let deviation = match variance.dtype()? {
                DType::F16 => (variance.cast(DType::F32) + epsilon).sqrt().cast(DType::F16),
                _ => (variance + epsilon).sqrt(),
            };
            Ok((self - of_channels(mean)?) / deviation * of_channels(scale)? + of_channels(bias)?)
        };
        make().unwrap_or_else(|error| Self(Err(error)))
    }

    fn normalized(&self, form: Form, axes: &[i64], beside: &[&Self], epsilon: f64) -> Self {
        let make = || {
            let node = self.node()?;
            let along = shape::axes(Some(axes), node.shape.len())?;
            check_epsilon(epsilon)?;
            if !node.dtype.is_float() {
                let argument = format!("the operand of {}", form.name());
                return Err(Box::new(Error::InvalidType { argument, expected: "of f32 or f16", found: format!("of {}", node.dtype) }));
            }
            let mut inputs = Vec::with_capacity(beside.len());
            for input in beside {
                // A number takes the type.
                let input = if let What::Number(_) = input.node()?.what { input.cast(node.dtype) } else { (*input).clone() };
                let input = input.node()?;
                if input.dtype != node.dtype {
                    let (argument, expected) = ("the scale or the bias".to_owned(), "of the type of the values");
                    let found = format!("of {} beside {}", input.dtype, node.dtype);
                    return Err(Box::new(Error::InvalidType { argument, expected, found }));
                }
                if shape::broadcast(&node.shape, &input.shape).ok().as_deref() != Some(&node.shape[..]) {
                    let expected = format!("one that can be repeated to [{}]", joined(&node.shape, ", "));
                    let value = format!("[{}]", joined(&input.shape, ", "));
                    return Err(Box::new(Error::InvalidDimension { name: "the shape of the scale or the bias", value, expected }));
                }
                inputs.push(Arc::clone(input));
            }
            let what = What::Normalize(Arc::clone(node), along, form, epsilon as f32, inputs);
            Ok(Self::new(Node::new(node.shape.clone(), node.dtype, what)))
        };
        make().unwrap_or_else(|error| Self(Err(error)))
    }
}

impl Operations {
    /// A kernel for rows along some dimensions of a value.
    pub(super) fn normalize(
        &mut self,
        node: &Node,
        input: &Arc<Node>,
        axes: &[usize],
        (form, epsilon): (Form, f32),
        inputs: &[Arc<Node>],
    ) -> Result<Source> {
        let seen = Beside { inputs, out: Some(node.dtype) };
        loop {
            let Values { problem: values, kept, mut beside, sources } = self.values(input, axes, &seen, MORE_WORDS)?;
            let Some(out) = beside.pop() else { return Err(Error::internal("a result that is nowhere")) };
            let problem = Problem { values, kept, form, epsilon, beside, out };
            let is_long = problem.is_long(self.invocations(), self.has_workgroups());
            if is_long && !self.has_workgroups() {
                return self.by_reductions(node.dtype, input, axes, (form, epsilon), inputs);
            }
            // What is read here and there cannot be written in whole words, and long rows are told something more; once it is in memory there is room.
            let is_full = is_long && sources.len() == MOST_INPUTS;
            let crosses = self.has_workgroups() && problem.crosses_fours(self.invocations());
            let is_whole = node.dtype == DType::F32 || problem.is_in_fours() || crosses || self.writes_halves();
            if (!is_whole || is_full) && !self.is_stored(input) {
                self.source(input)?;
                continue;
            }
            if !is_whole {
                let what = What::Normalize(Arc::clone(input), axes.to_vec(), form, epsilon, inputs.to_vec());
                let apart = Node::new(node.shape.clone(), DType::F32, what);
                return self.source_of(&Expr(Ok(Arc::new(apart))).cast(DType::F16));
            }
            return Ok(self.add(Op::Normalize(problem), sources.into_iter().map(Some).collect()));
        }
    }

    /// Rows along some dimensions by reductions in f32, and elementwise.
    fn by_reductions(
        &mut self,
        dtype: DType,
        input: &Arc<Node>,
        axes: &[usize],
        (form, epsilon): (Form, f32),
        inputs: &[Arc<Node>],
    ) -> Result<Source> {
        let [a, beside @ ..] =
            &*[input].into_iter().chain(inputs).map(|node| Expr(Ok(Arc::clone(node))).cast(DType::F32)).collect::<Vec<_>>()
        else {
            return Err(Error::internal("rows of nothing"));
        };
        let axes: Vec<_> = axes.iter().map(|&axis| axis as i64).collect();
        let over_root = |values: &Expr| over(values, &values.root_mean_square(Some(&axes), true), epsilon.into());
        let made = match form {
            Form::Softmax | Form::LogSoftmax => {
                let near = a - a.amax(Some(&axes), true);
                let logarithms = &near - near.log_sum_exp(Some(&axes), true);
                if form == Form::Softmax { logarithms.exp() } else { logarithms }
            }
            Form::LayerNorm => {
                // The mean as its distance from about it: where all are far from zero, its own last digits would be theirs.
                let near = a - sampled(a, &axes).mean(Some(&axes), true);
                over_root(&(&near - near.mean(Some(&axes), true)))
            }
            Form::RmsNorm => over_root(a),
        };
        let made = match beside {
            [] => made,
            [scale] => made * scale,
            [scale, bias, ..] => made * scale + bias,
        };
        self.source_of(&made.cast(dtype))
    }
}

/// Values over √(root² + epsilon), as the larger of two roots by what the smaller adds to it: squares may be too large, or nothing.
fn over(values: &Expr, root: &Expr, epsilon: f64) -> Expr {
    let least = Expr::from(epsilon.sqrt());
    let (larger, smaller) = (root.max(&least), root.min(&least));
    // GPUs divide by no number near the largest: what is large is taken by quarters.
    let by = root.greater(1e18).select(0.25, 1.0);
    values * &by / (by * &larger * ((smaller / &larger).square() + 1.0).sqrt())
}

/// Some values of each row along the axes, which are told as they are counted.
fn sampled(a: &Expr, axes: &[i64]) -> Expr {
    const SOME: u64 = 1024;
    let Ok(shape) = a.shape() else { return a.clone() };
    let Ok(along) = shape::axes(Some(axes), shape.len()) else { return a.clone() };
    let (mut some, mut room) = (a.clone(), SOME);
    // The innermost ones lie beside one another.
    for &axis in along.iter().rev() {
        let size = shape[axis].min(room.max(1));
        some = some.slice(axis as i64, 0, size as i64, 1);
        room /= size.max(1);
    }
    some
}

fn check_epsilon(epsilon: f64) -> Result<()> {
    if epsilon.is_finite() && epsilon >= 0.0 {
        return Ok(());
    }
    let (option, expected) = ("epsilon".to_owned(), "it must be a number from 0 on".to_owned());
    Err(Box::new(Error::InvalidOption { option, value: super::number::text(epsilon), expected }))
}
