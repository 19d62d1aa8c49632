//! What slides over the last dimensions of an expression: convolutions and pools.

use std::sync::Arc;

use super::lower::Operations;
use super::methods::wrong_type;
use super::node::{Node, What};
use super::product::activation;
use super::{Expr, shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::matmul::Activation;
use crate::ops::window::{Padding, Sliding, Window, padded};
use crate::ops::{Op, conv, pool};
use crate::tensor::{elements, joined};

/// How a convolution goes over its input; as [`Conv::default`] is, without padding, element by element, all channels together.
#[derive(Debug, Clone)]
pub struct Conv {
    sliding: Sliding,
    groups: u64,
    bias: Option<Expr>,
    activation: Option<Activation>,
}

/// How a pool goes over its input: with windows of a size, without padding, element by element unless it is told otherwise.
#[derive(Debug, Clone)]
pub struct Pool {
    sliding: Sliding,
    taps: Vec<u64>,
    counts_padding: bool,
}

macro_rules! sliding {
    ($($name:ident),+) => { $(
        impl $name {
            /// From one window to the next, along each dimension; 1 if nothing is said.
            #[must_use]
            pub fn strides(mut self, strides: &[u64]) -> Self {
                self.sliding.strides = strides.to_vec();
                self
            }

            /// From one element of a window to the next, along each dimension; 1 if nothing is said.
            #[must_use]
            pub fn dilations(mut self, dilations: &[u64]) -> Self {
                self.sliding.dilations = dilations.to_vec();
                self
            }

            /// So much padding before and behind the input along each dimension.
            #[must_use]
            pub fn pads(mut self, pads: &[[u64; 2]]) -> Self {
                self.sliding.padding = Padding::Given(pads.to_vec());
                self
            }

            /// As much padding as makes the result ⌈input / stride⌉ large, what is odd of it behind the input; ONNX's `SAME_UPPER`.
            #[must_use]
            pub fn same_upper(mut self) -> Self {
                self.sliding.padding = Padding::SameUpper;
                self
            }

            /// The same, what is odd of it before the input; ONNX's `SAME_LOWER`.
            #[must_use]
            pub fn same_lower(mut self) -> Self {
                self.sliding.padding = Padding::SameLower;
                self
            }
        }
    )+ };
}

sliding!(Conv, Pool);

impl Default for Conv {
    fn default() -> Self {
        Self { sliding: Sliding::default(), groups: 1, bias: None, activation: None }
    }
}

impl Conv {
    /// The channels and the filters in so many parts, each filter for the channels of its part; with as many as there are channels each
    /// channel has filters of its own.
    #[must_use]
    pub fn groups(mut self, groups: u64) -> Self {
        self.groups = groups;
        self
    }

    /// A number for each filter that is added, of f32 or of the input's type.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<Expr>) -> Self {
        self.bias = Some(bias.into());
        self
    }

    /// What is applied to each element in the end.
    #[must_use]
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = Some(activation);
        self
    }
}

impl Pool {
    /// With windows of that size, a number for each dimension.
    pub fn new(sizes: &[u64]) -> Self {
        Self { sliding: Sliding::default(), taps: sizes.to_vec(), counts_padding: false }
    }

    /// Whether the last window along a dimension may reach behind the input and its padding, if it begins before its end.
    #[must_use]
    pub fn ceil_mode(mut self, yes: bool) -> Self {
        self.sliding.ceil = yes;
        self
    }

    /// Whether padding counts as zeros in a mean; what is behind the padding does in no case.
    #[must_use]
    pub fn count_include_pad(mut self, yes: bool) -> Self {
        self.counts_padding = yes;
        self
    }
}

impl Expr {
    /// The convolution of N × C × W with F × C/groups × w, or of N × C × H × W with F × C/groups × h × w:
    ///
    /// ```text
    /// out[n, f, y, x] = activation(bias[f] + Σ w[f, c, i, j] · in[n, c', y·stride − pad + i·dilation, x·stride − pad + j·dilation])
    /// out's size along each = ⌊(size + pads − (taps − 1)·dilation − 1) / stride⌋ + 1
    /// ```
    ///
    /// The sum is in f32 over all c, i and j, where c' is channel c of the filter's group; what is outside of the input is 0. Filters are
    /// not reversed: this is `Conv` of ONNX, and `conv1d` and `conv2d` of PyTorch. An activation that follows is applied by the same kernel.
    ///
    /// With u = 2⁻²⁴ and n terms a sum is off by at most n · u · Σ|w · in|. On Vulkan and WebGPU many filters of 3 × 3 with a stride of 1 and f32
    /// go by Winograd's method, a quarter of the multiplications: such a sum over C channels is off by at most 2304 · C · (C + 24) · u ·
    /// max|w| · max|in|, and of random numbers by less than 15 · u · 9 · C · max|w| · max|in|, where the largest is that of the results' tile
    /// with what is round it: so one large element costs digits in windows beside it too, and what is no number, or beyond 10³², spreads to
    /// the 4 × 4 results of its tile. In two groups, or with f16, the sum is a direct one.
    ///
    /// # Errors
    /// When it is evaluated: [`Error::InvalidType`] unless both are of f32 or both of f16; [`Error::InvalidDimension`] if the shapes do not go
    /// together, a kernel is larger than its input with the padding, or a size, stride, dilation or pad is past 2³⁰; [`Error::LimitExceeded`] if an
    /// input's size with its padding is.
    #[must_use]
    pub fn conv(&self, filters: impl Into<Self>, how: &Conv) -> Self {
        let filters = filters.into();
        let bias = how.bias.as_ref().map(|bias| (bias, bias.cast(DType::F32)));
        let make = || {
            let (input, filters) = (self.node()?, filters.node()?);
            if let Some((given, _)) = &bias {
                let dtype = given.node()?.dtype;
                if dtype != DType::F32 && dtype != input.dtype {
                    return Err(wrong_type("the bias", "of f32 or of the input's type", dtype));
                }
            }
            let bias = bias.as_ref().map(|(_, bias)| bias.node()).transpose()?;
            let (op, shape) = conv_of(input, filters, bias, how)?;
            let inputs = [Some(input), Some(filters), bias].into_iter().flatten().cloned().collect();
            Ok(Node::new(shape, input.dtype, What::Whole(Op::Conv(op), inputs)))
        };
        Self(make().map(Arc::new))
    }

    /// The largest element of each window, for each channel of N × C × W, N × C × H × W or N × C × D × H × W. Padding is never the
    /// largest; NaN is, wherever there is one.
    ///
    /// # Errors
    /// When it is evaluated, as those of [`conv`](Self::conv); and padding as wide as the window.
    #[must_use]
    pub fn max_pool(&self, how: &Pool) -> Self {
        self.pool(pool::Kind::Max, how)
    }

    /// Where each element of [`max_pool`](Self::max_pool) is in the input, counted row by row over all of it, as u32. Of equal ones it is the
    /// first.
    ///
    /// # Errors
    /// As those of [`max_pool`](Self::max_pool).
    #[must_use]
    pub fn max_pool_indices(&self, how: &Pool) -> Self {
        self.pool(pool::Kind::MaxPlace, how)
    }

    /// The mean of each window, for each channel of N × C × W, N × C × H × W or N × C × D × H × W.
    ///
    /// # Errors
    /// As those of [`max_pool`](Self::max_pool).
    #[must_use]
    pub fn average_pool(&self, how: &Pool) -> Self {
        self.pool(if how.counts_padding { pool::Kind::MeanPadded } else { pool::Kind::Mean }, how)
    }

    /// The largest element of each channel, its dimensions kept with a size of 1.
    ///
    /// # Errors
    /// As those of [`max_pool`](Self::max_pool).
    #[must_use]
    pub fn global_max_pool(&self) -> Self {
        self.globally(Self::amax)
    }

    /// The mean of each channel, its dimensions kept with a size of 1.
    ///
    /// # Errors
    /// As those of [`max_pool`](Self::max_pool).
    #[must_use]
    pub fn global_average_pool(&self) -> Self {
        self.globally(Self::mean)
    }

    /// A reduction of each channel: a single window would leave most of a GPU idle.
    fn globally(&self, fold: impl FnOnce(&Self, Option<&[i64]>, bool) -> Self) -> Self {
        let axes = self.node().and_then(|node| {
            float("the input of a pool", node.dtype)?;
            let (_, sizes) = parts("the input of a pool", &node.shape, 3)?;
            Ok((2..2 + sizes.len() as i64).collect::<Vec<_>>())
        });
        match axes {
            Ok(axes) => fold(self, Some(&axes), true),
            Err(error) => Self(Err(error)),
        }
    }

    fn pool(&self, kind: pool::Kind, how: &Pool) -> Self {
        self.then(|node| {
            float("the input of a pool", node.dtype)?;
            let (&[images, channels], sizes) = parts("the input of a pool", &node.shape, 3)?;
            let windows = how.sliding.windows(sizes, &how.taps)?;
            for window in &windows {
                let extent = (u64::from(window.taps) - 1) * u64::from(window.dilation) + 1;
                let most = u64::from(window.before.max(window.after));
                if most >= extent {
                    let expected = format!("less than the window's extent, which is {extent}");
                    return Err(Box::new(Error::InvalidDimension { name: "a pad of a pool", value: most.to_string(), expected }));
                }
            }
            let shape = shape_of(images, channels, &windows)?;
            // One that sees all there is is a reduction.
            let is_all = |window: &Window| window.steps == 1 && window.before + window.after == 0 && window.taps == window.input;
            if windows.iter().all(is_all) && kind != pool::Kind::MaxPlace {
                let fold: fn(&Self, Option<&[i64]>, bool) -> Self = if kind == pool::Kind::Max { Self::amax } else { Self::mean };
                let whole = self.globally(fold);
                return Ok(Node::new(shape, node.dtype, What::Reshape(Arc::clone(whole.node()?))));
            }
            // As many as a tensor has elements at most, unless it has none.
            let planes = if elements(&shape) == 0 { 0 } else { (images * channels) as u32 };
            let problem = pool::Problem { kind, planes, windows: padded(&windows), dtype: node.dtype };
            Ok(Node::new(shape, problem.result(), What::Whole(Op::Pool(problem), vec![Arc::clone(node)])))
        })
    }
}

impl Operations {
    /// A convolution together with the activation that follows it, if nobody else needs what is between.
    pub(super) fn convolved<'a>(&self, node: &'a Node) -> Option<(Op, &'a [Arc<Node>])> {
        let What::Apply(function, inputs) = &node.what else { return None };
        let ([node], Some(activation)) = (&inputs[..], activation(*function)) else { return None };
        let What::Whole(Op::Conv(problem @ conv::Problem { activation: None, .. }), inputs) = &node.what else { return None };
        self.is_used_once(node).then(|| (Op::Conv(conv::Problem { activation: Some(activation), ..*problem }), &inputs[..]))
    }
}

fn conv_of(input: &Node, filters: &Node, bias: Option<&Arc<Node>>, how: &Conv) -> Result<(conv::Problem, Vec<u64>)> {
    float("the input of a convolution", input.dtype)?;
    if filters.dtype != input.dtype {
        let (argument, found) = ("the filters".to_owned(), format!("of {}", filters.dtype));
        return Err(Box::new(Error::InvalidType { argument, expected: "of the input's type", found }));
    }
    let (&[images, channels], sizes) = parts("the input of a convolution", &input.shape, 2)?;
    let (&[all, of_group], taps) = parts("the filters", &filters.shape, 2)?;
    let groups = how.groups;
    let wrong = |name: &'static str, value: String, expected: String| Err(Box::new(Error::InvalidDimension { name, value, expected }));
    if channels == 0 {
        return wrong("the number of channels", "0".to_owned(), "at least 1".to_owned());
    }
    if groups == 0 || channels % groups != 0 {
        return wrong("the number of groups", groups.to_string(), format!("a divisor of the number of channels, {channels}"));
    }
    if all % groups != 0 {
        return wrong("the number of filters", all.to_string(), format!("a multiple of the number of groups, {groups}"));
    }
    if of_group != channels / groups || taps.len() != sizes.len() {
        let expected = format!(
            "one of {} dimensions, the second of {}, since the input is [{}] in {groups} groups",
            input.shape.len(),
            channels / groups,
            joined(&input.shape, ", ")
        );
        return wrong("the shape of the filters", format!("[{}]", joined(&filters.shape, ", ")), expected);
    }
    if let Some(bias) = bias
        && bias.shape != [all]
    {
        return wrong("the shape of the bias", format!("[{}]", joined(&bias.shape, ", ")), format!("[{all}], a number for each filter"));
    }
    let windows = how.sliding.windows(sizes, taps)?;
    let shape = shape_of(images, all, &windows)?;
    // Sizes of tensors fit, and so do those of parts of them.
    let number = |size: u64| size as u32;
    let problem = conv::Problem {
        batch: number(images),
        groups: number(groups),
        channels: number(of_group),
        filters: number(all / groups),
        windows: padded(&windows),
        dtype: input.dtype,
        bias: bias.is_some(),
        activation: how.activation,
    };
    Ok((problem, shape))
}

/// The first two dimensions, and those that windows slide along, of which there are at most so many.
fn parts<'a>(name: &'static str, shape: &'a [u64], most: usize) -> Result<(&'a [u64; 2], &'a [u64])> {
    match shape.split_first_chunk() {
        Some((first, sizes)) if (1..=most).contains(&sizes.len()) => Ok((first, sizes)),
        _ => {
            let (value, expected) = (format!("[{}]", joined(shape, ", ")), format!("of 3 to {} dimensions", most + 2));
            Err(Box::new(Error::InvalidDimension { name, value, expected }))
        }
    }
}

fn shape_of(images: u64, channels: u64, windows: &[Window]) -> Result<Vec<u64>> {
    let mut shape = vec![images, channels];
    shape.extend(windows.iter().map(|window| u64::from(window.steps)));
    shape::check(&shape)?;
    Ok(shape)
}

fn float(argument: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Box::new(Error::InvalidType { argument: argument.to_owned(), expected: "of f32 or f16", found: format!("of {dtype}") }))
}
