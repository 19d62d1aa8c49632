//! ONNX's operators as expressions of this crate.

use std::collections::HashMap;

use lapidary::{DType, Expr, Gpu, HostVec, Matmul, Padding};

use super::format::{Attribute, Data, Node, dtype_of};

/// A value of a graph.
#[derive(Clone)]
pub enum Value {
    Expr(Expr),
    /// 64-bit integers: axes, sizes, places.
    Int64(Vec<u64>, Vec<i64>),
}

/// Why a case is not run.
pub enum Refused {
    /// This crate does not have it: a type, or an operator.
    Unsupported(String),
    Failed(String),
}

impl From<Box<lapidary::Error>> for Refused {
    fn from(error: Box<lapidary::Error>) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A node with what it is given.
pub struct Call<'a> {
    pub node: &'a Node,
    gpu: &'a Gpu,
    inputs: Vec<Option<Value>>,
}

impl<'a> Call<'a> {
    pub fn new(gpu: &'a Gpu, node: &'a Node, values: &HashMap<String, Value>) -> Result<Self, Refused> {
        let find = |name: &String| match name.as_str() {
            "" => Ok(None),
            name => values.get(name).cloned().map(Some).ok_or_else(|| Refused::Failed(format!("{name} is not there"))),
        };
        Ok(Self { node, gpu, inputs: node.inputs.iter().map(find).collect::<Result<_, _>>()? })
    }

    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.node.attributes.iter().find(|attribute| attribute.name == name)
    }

    pub fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.int)
    }

    pub fn float(&self, name: &str, default: f32) -> f64 {
        self.attribute(name).map_or(default, |attribute| attribute.float).into()
    }

    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.attribute(name).map(|attribute| attribute.ints.clone())
    }

    pub fn string(&self, name: &str, default: &str) -> String {
        self.attribute(name).map_or_else(|| default.to_owned(), |attribute| String::from_utf8_lossy(&attribute.string).into_owned())
    }

    pub fn has(&self, input: usize) -> bool {
        matches!(self.inputs.get(input), Some(Some(_)))
    }

    pub fn expr(&self, input: usize) -> Result<Expr, Refused> {
        match self.inputs.get(input) {
            Some(Some(Value::Expr(expr))) => Ok(expr.clone()),
            Some(Some(Value::Int64(..))) => Err(Refused::Unsupported("values of int64".to_owned())),
            _ => Err(Refused::Failed(format!("input {input} is missing"))),
        }
    }

    fn exprs(&self) -> Result<Vec<Expr>, Refused> {
        (0..self.inputs.len()).map(|input| self.expr(input)).collect()
    }

    /// Axes or places: an attribute in older operators, an input in newer ones.
    pub fn int64s(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>, Refused> {
        match self.inputs.get(input) {
            Some(Some(Value::Int64(_, values))) => Ok(Some(values.clone())),
            Some(Some(Value::Expr(_))) => Err(Refused::Unsupported("places that are not int64".to_owned())),
            _ => Ok(self.ints(name)),
        }
    }

    pub fn rank(&self, input: usize) -> Result<i64, Refused> {
        Ok(self.expr(input)?.shape()?.len() as i64)
    }

    pub fn sizes(&self, input: usize) -> Result<Vec<i64>, Refused> {
        Ok(self.expr(input)?.shape()?.iter().map(|&size| size as i64).collect())
    }

    /// The node's results.
    pub async fn run(&self) -> Result<Vec<Value>, Refused> {
        if let Some(values) = self.places()? {
            return Ok(vec![values]);
        }
        if self.node.operator == "Split" {
            return self.split();
        }
        if self.node.operator == "MaxPool" {
            let pool = self.pool()?;
            return Ok(vec![Value::Expr(self.expr(0)?.max_pool(&pool)), Value::Expr(self.indices(&pool)?)]);
        }
        let several = match self.node.operator.as_str() {
            "MatMulInteger" => vec![self.integers().await?],
            "Constant" => vec![self.constant().await?],
            "BatchNormalization" => self.batch_norm()?,
            "LayerNormalization" | "RMSNormalization" => self.layer_norm()?,
            _ => vec![self.one()?],
        };
        Ok(several.into_iter().map(Value::Expr).collect())
    }

    /// A product of 8-bit integers, whose zero points are numbers of their own.
    async fn integers(&self) -> Result<Expr, Refused> {
        let (a, b) = (self.gpu.evaluate(&self.expr(0)?).await?, self.gpu.evaluate(&self.expr(1)?).await?);
        let mut zero_points = [0; 2];
        for (at, zero_point) in zero_points.iter_mut().enumerate().filter(|(at, _)| self.has(2 + at)) {
            let values = self.gpu.evaluate(&self.expr(2 + at)?).await?.to_host().await?.into_vec();
            let [value] = values[..] else { return Err(Refused::Unsupported("a zero point for each row or column".to_owned())) };
            *zero_point = value as i32;
        }
        let op = Matmul::of(a.shape(), b.shape())?.zero_points(zero_points[0], zero_points[1]);
        match self.gpu.matmul_tensor(&a, &b, &op).await {
            Err(error) if !self.gpu.info()?.caps.packed_dot && error.code() == "invalid_type" => {
                Err(Refused::Unsupported(error.to_string()))
            }
            product => Ok(Expr::from(&product?)),
        }
    }

    /// What gives or moves places instead of values.
    fn places(&self) -> Result<Option<Value>, Refused> {
        let first = || match self.inputs.first() {
            Some(Some(Value::Int64(shape, values))) => Some((shape.clone(), values.clone())),
            _ => None,
        };
        Ok(match self.node.operator.as_str() {
            "Constant" => {
                if let Some(ints) = self.ints("value_ints") {
                    return Ok(Some(Value::Int64(vec![ints.len() as u64], ints)));
                }
                if let Some(attribute) = self.attribute("value_int") {
                    return Ok(Some(Value::Int64(Vec::new(), vec![attribute.int])));
                }
                let Some(tensor) = self.attribute("value").and_then(|attribute| attribute.tensor.as_ref()) else { return Ok(None) };
                match tensor.data().map_err(Refused::Unsupported)? {
                    Data::Int64(values) => Some(Value::Int64(tensor.shape(), values)),
                    Data::Values(_) => None,
                }
            }
            "Shape" => {
                let sizes = self.sizes(0)?;
                let rank = sizes.len() as i64;
                let place = |at: i64| (if at < 0 { at + rank } else { at }).clamp(0, rank);
                let (start, end) = (place(self.int("start", 0)), place(self.int("end", rank)));
                let part: Vec<_> = (start..end.max(start)).map(|at| sizes[at as usize]).collect();
                Some(Value::Int64(vec![part.len() as u64], part))
            }
            "Size" => Some(Value::Int64(Vec::new(), vec![self.sizes(0)?.iter().product()])),
            "Identity" | "Unsqueeze" | "Squeeze" | "Reshape" => first().map(|(_, values)| Value::Int64(vec![values.len() as u64], values)),
            _ => None,
        })
    }

    fn split(&self) -> Result<Vec<Value>, Refused> {
        let x = self.expr(0)?;
        let (axis, sizes) = (self.int("axis", 0), self.sizes(0)?);
        let size = sizes[axis.rem_euclid(sizes.len() as i64) as usize];
        let parts = match self.int64s("split", 1)? {
            Some(parts) => parts,
            None => {
                let count = self.int("num_outputs", self.node.outputs.len() as i64);
                let each = (size + count - 1) / count;
                (0..count).map(|part| each.min(size - part * each)).collect()
            }
        };
        let mut start = 0;
        let part = |length: i64| {
            let part = x.slice(axis, start, start + length, 1);
            start += length;
            Value::Expr(part)
        };
        Ok(parts.into_iter().map(part).collect())
    }

    fn one(&self) -> Result<Expr, Refused> {
        let x = || self.expr(0);
        let folded = |f: fn(&Expr, Expr) -> Expr| -> Result<Expr, Refused> {
            let mut all = self.exprs()?.into_iter();
            let first = all.next().ok_or_else(|| Refused::Failed("no operands".to_owned()))?;
            Ok(all.fold(first, |sum, x| f(&sum, x)))
        };
        let with = |f: fn(&Expr, Expr) -> Expr| -> Result<Expr, Refused> { Ok(f(&self.expr(0)?, self.expr(1)?)) };
        let plain = |f: fn(&Expr) -> Expr| -> Result<Expr, Refused> { Ok(f(&self.expr(0)?)) };
        let shape = |sizes: Vec<i64>| Ok::<_, Refused>(x()?.reshape(&sizes));
        match self.node.operator.as_str() {
            "Identity" => x(),
            "Abs" => plain(Expr::abs),
            "Acos" => plain(Expr::acos),
            "Acosh" => plain(Expr::acosh),
            "Asin" => plain(Expr::asin),
            "Asinh" => plain(Expr::asinh),
            "Atan" => plain(Expr::atan),
            "Atanh" => plain(Expr::atanh),
            "Ceil" => plain(Expr::ceil),
            "Cos" => plain(Expr::cos),
            "Cosh" => plain(Expr::cosh),
            "Erf" => plain(Expr::erf),
            "Exp" => plain(Expr::exp),
            "Floor" => plain(Expr::floor),
            "Log" => plain(Expr::log),
            "Neg" => plain(Expr::negative),
            "Reciprocal" => plain(Expr::reciprocal),
            "Relu" => plain(Expr::relu),
            "Round" => plain(Expr::round),
            "Sigmoid" => plain(Expr::sigmoid),
            "Sign" => plain(Expr::sign),
            "Sin" => plain(Expr::sin),
            "Sinh" => plain(Expr::sinh),
            "Softplus" => plain(Expr::softplus),
            "Sqrt" => plain(Expr::sqrt),
            "Tan" => plain(Expr::tan),
            "Tanh" => plain(Expr::tanh),
            "Not" | "BitwiseNot" => plain(Expr::not),
            "IsNaN" => plain(Expr::is_nan),
            "IsInf" => {
                let x = x()?;
                let sides = (self.int("detect_negative", 1) != 0, self.int("detect_positive", 1) != 0);
                Ok(match sides {
                    (true, true) => x.is_inf(),
                    (true, false) => x.is_inf().and(x.less(0.0)),
                    (false, true) => x.is_inf().and(x.greater(0.0)),
                    (false, false) => x.is_inf().and(x.is_nan()),
                })
            }
            "Add" => with(Expr::add),
            "Sub" => with(Expr::sub),
            "Mul" => with(Expr::mul),
            "Div" => with(Expr::div),
            "Pow" => {
                let (x, y) = (x()?, self.expr(1)?);
                let (own, other) = (x.dtype()?, y.dtype()?);
                // The base says the result's type.
                if own == other { Ok(x.pow(y)) } else { Ok(x.cast(DType::F32).pow(y.cast(DType::F32)).cast(own)) }
            }
            "Mod" if self.int("fmod", 0) != 0 => with(Expr::rem),
            "Mod" => with(Expr::modulo),
            "Equal" => with(Expr::equal),
            "Less" => with(Expr::less),
            "LessOrEqual" => with(Expr::less_equal),
            "Greater" => with(Expr::greater),
            "GreaterOrEqual" => with(Expr::greater_equal),
            "And" | "BitwiseAnd" => with(Expr::and),
            "Or" | "BitwiseOr" => with(Expr::or),
            "Xor" | "BitwiseXor" => with(Expr::xor),
            "BitShift" if self.string("direction", "") == "LEFT" => with(Expr::shift_left),
            "BitShift" => with(Expr::shift_right),
            "Max" => folded(Expr::max),
            "Min" => folded(Expr::min),
            "Sum" => folded(Expr::add),
            "Mean" => Ok(folded(Expr::add)? / (self.inputs.len() as f64)),
            "Where" => Ok(x()?.select(self.expr(1)?, self.expr(2)?)),
            "Clip" => {
                let mut x = x()?;
                if self.has(1) {
                    x = x.max(self.expr(1)?);
                } else if self.attribute("min").is_some() {
                    x = x.max(self.float("min", 0.0));
                }
                if self.has(2) {
                    x = x.min(self.expr(2)?);
                } else if self.attribute("max").is_some() {
                    x = x.min(self.float("max", 0.0));
                }
                Ok(x)
            }
            "Elu" => {
                let (x, alpha) = (x()?, self.float("alpha", 1.0));
                Ok(x.less(0.0).select((x.exp() - 1.0) * alpha, &x))
            }
            "Celu" => {
                let (x, alpha) = (x()?, self.float("alpha", 1.0));
                Ok(x.max(0.0) + (((&x / alpha).exp() - 1.0) * alpha).min(0.0))
            }
            "Selu" => {
                let x = x()?;
                let (alpha, gamma) = (self.float("alpha", 1.673_263_2), self.float("gamma", 1.050_701));
                Ok(x.greater(0.0).select(&x, (x.exp() - 1.0) * alpha) * gamma)
            }
            "LeakyRelu" => {
                let (x, alpha) = (x()?, self.float("alpha", 0.01));
                Ok(x.less(0.0).select(&x * alpha, &x))
            }
            "PRelu" => {
                let (x, slope) = (x()?, self.expr(1)?);
                Ok(x.less(0.0).select(&x * slope, &x))
            }
            "ThresholdedRelu" => {
                let (x, alpha) = (x()?, self.float("alpha", 1.0));
                Ok(x.greater(alpha).select(&x, 0.0))
            }
            "HardSigmoid" => Ok((x()? * self.float("alpha", 0.2) + self.float("beta", 0.5)).clamp(0.0, 1.0)),
            "HardSwish" => {
                let x = x()?;
                Ok((&x / 6.0 + 0.5).clamp(0.0, 1.0) * &x)
            }
            "Swish" => {
                let x = x()?;
                Ok((&x * self.float("alpha", 1.0)).sigmoid() * &x)
            }
            "Mish" => {
                let x = x()?;
                Ok(x.softplus().tanh() * &x)
            }
            "Softsign" => {
                let x = x()?;
                Ok(&x / (x.abs() + 1.0))
            }
            "Shrink" => {
                let (x, lambda, bias) = (x()?, self.float("lambd", 0.5), self.float("bias", 0.0));
                Ok(x.less(-lambda).select(&x + bias, x.greater(lambda).select(&x - bias, 0.0)))
            }
            "Gelu" if self.string("approximate", "none") == "tanh" => plain(Expr::gelu_tanh),
            "Gelu" => plain(Expr::gelu),
            "Cast" => Ok(x()?.cast(dtype_of(self.int("to", 0)).map_err(Refused::Unsupported)?)),
            "CastLike" => Ok(x()?.cast(self.expr(1)?.dtype()?)),
            "Transpose" => Ok(x()?.transpose(self.ints("perm").as_deref())),
            "Concat" => Ok(Expr::concat(&self.exprs()?, self.int("axis", 0))),
            "Slice" => {
                let mut x = x()?;
                let starts = self.int64s("starts", 1)?.unwrap_or_default();
                let ends = self.int64s("ends", 2)?.unwrap_or_default();
                let axes = self.int64s("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
                let steps = self.int64s("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
                for (((axis, start), end), step) in axes.into_iter().zip(starts).zip(ends).zip(steps) {
                    x = x.slice(axis, start, end, step);
                }
                Ok(x)
            }
            "Pad" => self.pad(),
            "Reshape" => {
                let sizes = self.int64s("shape", 1)?.unwrap_or_default();
                let (own, keeps) = (self.sizes(0)?, self.int("allowzero", 0) == 0);
                let size = |(at, size): (usize, i64)| if size == 0 && keeps { own.get(at).copied().unwrap_or(0) } else { size };
                shape(sizes.into_iter().enumerate().map(size).collect())
            }
            "Flatten" => {
                let (own, axis) = (self.sizes(0)?, self.int("axis", 1));
                let at = axis.rem_euclid(own.len().max(1) as i64) as usize;
                let at = if axis == own.len() as i64 { own.len() } else { at };
                shape(vec![own[..at].iter().product(), own[at..].iter().product()])
            }
            "Squeeze" => {
                let (own, rank) = (self.sizes(0)?, self.rank(0)?);
                let axes = self.int64s("axes", 1)?.map(|axes| axes.iter().map(|axis| axis.rem_euclid(rank)).collect::<Vec<_>>());
                let stays = |(at, size): (usize, i64)| axes.as_ref().map_or(size != 1, |axes| !axes.contains(&(at as i64))).then_some(size);
                shape(own.into_iter().enumerate().filter_map(stays).collect())
            }
            "Unsqueeze" => {
                let mut own = self.sizes(0)?;
                let axes = self.int64s("axes", 1)?.unwrap_or_default();
                let rank = own.len() as i64 + axes.len() as i64;
                let mut axes: Vec<_> = axes.into_iter().map(|axis| axis.rem_euclid(rank)).collect();
                axes.sort_unstable();
                axes.iter().for_each(|&axis| own.insert(axis as usize, 1));
                shape(own)
            }
            "Expand" => {
                let wanted: Vec<u64> = self.int64s("shape", 1)?.unwrap_or_default().into_iter().map(i64::cast_unsigned).collect();
                let own = self.expr(0)?.shape()?.to_vec();
                let rank = own.len().max(wanted.len());
                let at = |shape: &[u64], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
                let both: Vec<_> = (0..rank).map(|axis| if at(&own, axis) == 1 { at(&wanted, axis) } else { at(&own, axis) }).collect();
                Ok(x()?.broadcast_to(&both))
            }
            "Softmax" => Ok(x()?.softmax(self.int("axis", -1))),
            "LogSoftmax" => Ok(x()?.log_softmax(self.int("axis", -1))),
            "ArgMax" | "ArgMin" => self.place(),
            operator if operator.starts_with("Reduce") => self.reduce(),
            "MatMul" => with(Expr::matmul),
            "Gemm" => {
                let transposed = |x: Expr, name: &str| if self.int(name, 0) == 0 { x } else { x.transpose(None) };
                let product = transposed(x()?, "transA").matmul(transposed(self.expr(1)?, "transB")) * self.float("alpha", 1.0);
                Ok(if self.has(2) { product + self.expr(2)? * self.float("beta", 1.0) } else { product })
            }
            "Conv" => self.conv(),
            "DFT" => self.dft(),
            "AveragePool" => Ok(x()?.average_pool(&self.pool()?)),
            "GlobalAveragePool" => plain(Expr::global_average_pool),
            "GlobalMaxPool" => plain(Expr::global_max_pool),
            operator => Err(Refused::Unsupported(format!("the operator {operator}"))),
        }
    }

    async fn constant(&self) -> Result<Expr, Refused> {
        let (shape, values): (_, HostVec) = match (self.attribute("value"), self.attribute("value_float"), self.attribute("value_floats")) {
            (Some(Attribute { tensor: Some(tensor), .. }), ..) => match tensor.data().map_err(Refused::Unsupported)? {
                Data::Values(values) => (tensor.shape(), values),
                Data::Int64(_) => return Err(Refused::Unsupported("values of int64".to_owned())),
            },
            (_, Some(one), _) => (Vec::new(), vec![one.float].into()),
            (.., Some(some)) => (vec![some.floats.len() as u64], some.floats.clone().into()),
            _ => return Err(Refused::Unsupported("a constant that is no tensor".to_owned())),
        };
        Ok(Expr::from(&self.gpu.tensor(&values, 1, values.len()).await?.reshape(&shape)?))
    }

    fn pad(&self) -> Result<Expr, Refused> {
        let mut x = self.expr(0)?;
        let rank = self.rank(0)?;
        let pads = self.int64s("pads", 1)?.unwrap_or_default();
        let axes = self.int64s("axes", 3)?.unwrap_or_else(|| (0..rank).collect());
        let axes: Vec<_> = axes.into_iter().map(|axis| axis.rem_euclid(rank)).collect();
        let mode = self.string("mode", "constant");
        let mut widths = vec![[0i64; 2]; rank as usize];
        for (at, &axis) in axes.iter().enumerate() {
            widths[axis as usize] = [pads[at], pads[axes.len() + at]];
        }
        // What is cut off first.
        for (axis, [before, behind]) in widths.iter_mut().enumerate() {
            let size = x.shape()?[axis] as i64;
            x = x.slice(axis as i64, (-*before).max(0), size - (-*behind).max(0), 1);
            [*before, *behind] = [(*before).max(0), (*behind).max(0)];
        }
        let padding = match mode.as_str() {
            "edge" => Padding::Edge,
            "reflect" => Padding::Reflect,
            "wrap" => Padding::Wrap,
            _ => Padding::Constant(self.float("value", 0.0)),
        };
        if mode != "constant" || !self.has(2) {
            let widths: Vec<_> = widths.iter().map(|width| width.map(i64::cast_unsigned)).collect();
            return Ok(x.pad(&widths, padding));
        }
        // A value that is known when the case runs: laid around as tensors.
        let value = self.expr(2)?;
        for (axis, [before, behind]) in widths.into_iter().enumerate() {
            let mut parts = Vec::new();
            for (width, is_before) in [(before, true), (behind, false)] {
                let mut shape = x.shape()?.to_vec();
                shape[axis] = width.cast_unsigned();
                if !is_before {
                    parts.push(x.clone());
                }
                parts.push(value.reshape(&[]).broadcast_to(&shape));
            }
            x = Expr::concat(&parts, axis as i64);
        }
        Ok(x)
    }
}
