//! ONNX's operators as expressions of this crate.

use std::collections::HashMap;

use lapidary::{Conv, DType, Expr, Gpu, HostVec, Padding, Pool};

use crate::format::{Attribute, Data, Node, dtype_of};

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
    node: &'a Node,
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

    fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.node.attributes.iter().find(|attribute| attribute.name == name)
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.int)
    }

    fn float(&self, name: &str, default: f32) -> f64 {
        self.attribute(name).map_or(default, |attribute| attribute.float).into()
    }

    fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.attribute(name).map(|attribute| attribute.ints.clone())
    }

    fn string(&self, name: &str, default: &str) -> String {
        self.attribute(name).map_or_else(|| default.to_owned(), |attribute| String::from_utf8_lossy(&attribute.string).into_owned())
    }

    fn has(&self, input: usize) -> bool {
        matches!(self.inputs.get(input), Some(Some(_)))
    }

    fn expr(&self, input: usize) -> Result<Expr, Refused> {
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
    fn int64s(&self, name: &str, input: usize) -> Result<Option<Vec<i64>>, Refused> {
        match self.inputs.get(input) {
            Some(Some(Value::Int64(_, values))) => Ok(Some(values.clone())),
            Some(Some(Value::Expr(_))) => Err(Refused::Unsupported("places that are not int64".to_owned())),
            _ => Ok(self.ints(name)),
        }
    }

    fn rank(&self, input: usize) -> Result<i64, Refused> {
        Ok(self.expr(input)?.shape()?.len() as i64)
    }

    fn sizes(&self, input: usize) -> Result<Vec<i64>, Refused> {
        Ok(self.expr(input)?.shape()?.iter().map(|&size| size as i64).collect())
    }

    /// The node's results.
    pub fn run(&self) -> Result<Vec<Value>, Refused> {
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
            "BatchNormalization" => self.batch_norm()?,
            "LayerNormalization" | "RMSNormalization" => self.layer_norm()?,
            _ => vec![self.one()?],
        };
        Ok(several.into_iter().map(Value::Expr).collect())
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
            "Constant" => self.constant(),
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

    /// An attribute of a number for each dimension that a window slides along.
    fn sizes_of(&self, name: &str) -> Vec<u64> {
        self.ints(name).unwrap_or_default().into_iter().map(i64::cast_unsigned).collect()
    }

    /// What is before and behind each dimension.
    fn pads(&self) -> Vec<[u64; 2]> {
        let pads = self.sizes_of("pads");
        let (before, behind) = pads.split_at(pads.len() / 2);
        before.iter().zip(behind).map(|(&before, &behind)| [before, behind]).collect()
    }

    /// Real numbers have a last dimension of 1.
    fn dft(&self) -> Result<Expr, Refused> {
        let (x, sizes) = (self.expr(0)?, self.sizes(0)?);
        let axis = self
            .int64s("axis", 2)?
            .and_then(|axis| axis.first().copied())
            .unwrap_or_else(|| self.int("axis", if self.node.inputs.len() > 2 { -2 } else { 1 }));
        // Ours does not count that dimension.
        let axis = if axis < 0 { axis + 1 } else { axis };
        let length = self.int64s("dft_length", 1)?.and_then(|length| length.first().map(|length| length.cast_unsigned()));
        let is_real = sizes.last() == Some(&1);
        let real = || x.reshape(&sizes[..sizes.len() - 1]);
        Ok(match (is_real, self.int("inverse", 0) != 0, self.int("onesided", 0) != 0) {
            (true, false, true) => real().rfft(axis, length),
            (true, false, false) => real().fft_of_real(axis, length),
            (false, false, false) => x.fft(axis, length),
            (false, true, false) => x.ifft(axis, length),
            (false, true, true) => {
                let x = x.irfft(axis, length);
                let mut sizes: Vec<_> = x.shape()?.iter().map(|&size| size as i64).collect();
                sizes.push(1);
                x.reshape(&sizes)
            }
            _ => return Err(Refused::Unsupported("such a transform".to_owned())),
        })
    }

    fn conv(&self) -> Result<Expr, Refused> {
        let mut conv = Conv::default().strides(&self.sizes_of("strides")).dilations(&self.sizes_of("dilations"));
        conv = match self.string("auto_pad", "NOTSET").as_str() {
            "SAME_UPPER" => conv.same_upper(),
            "SAME_LOWER" => conv.same_lower(),
            _ => conv.pads(&self.pads()),
        };
        if self.has(2) {
            conv = conv.bias(self.expr(2)?);
        }
        Ok(self.expr(0)?.conv(self.expr(1)?, &conv.groups(self.int("group", 1).cast_unsigned())))
    }

    fn pool(&self) -> Result<Pool, Refused> {
        let dtype = self.expr(0)?.dtype()?;
        if !dtype.is_float() {
            return Err(Refused::Unsupported(format!("pools of {dtype}")));
        }
        let pool = Pool::new(&self.sizes_of("kernel_shape")).strides(&self.sizes_of("strides")).dilations(&self.sizes_of("dilations"));
        let pool = pool.ceil_mode(self.int("ceil_mode", 0) != 0).count_include_pad(self.int("count_include_pad", 0) != 0);
        Ok(match self.string("auto_pad", "NOTSET").as_str() {
            "SAME_UPPER" => pool.same_upper(),
            "SAME_LOWER" => pool.same_lower(),
            _ => pool.pads(&self.pads()),
        })
    }

    /// Where the largest elements are; with `storage_order` counted column by column in each channel.
    fn indices(&self, pool: &Pool) -> Result<Expr, Refused> {
        let (places, sizes) = (self.expr(0)?.max_pool_indices(pool), self.sizes(0)?);
        let (&[.., height, width], 1) = (&sizes[..], self.int("storage_order", 0)) else { return Ok(places) };
        let [height, width] = [height, width].map(|size| size as u32);
        let (row, column) = (places.div(width).modulo(height), places.modulo(width));
        Ok(places.div(width * height).mul(width * height) + column.mul(height) + row)
    }

    fn place(&self) -> Result<Expr, Refused> {
        let (x, axis, keep) = (self.expr(0)?, self.int("axis", 0), self.int("keepdims", 1) != 0);
        let find = |x: &Expr| if self.node.operator == "ArgMax" { x.argmax(Some(&[axis]), keep) } else { x.argmin(Some(&[axis]), keep) };
        if self.int("select_last_index", 0) == 0 {
            return Ok(find(&x));
        }
        let last = x.shape()?[axis.rem_euclid(self.rank(0)?) as usize] - 1;
        Ok(Expr::from(last as u32) - find(&x.flip(Some(&[axis]))))
    }

    fn reduce(&self) -> Result<Expr, Refused> {
        let (x, keep) = (self.expr(0)?, self.int("keepdims", 1) != 0);
        let axes = self.int64s("axes", 1)?.filter(|axes| !axes.is_empty());
        // Nothing is reduced then, and only what is done to each element remains.
        let none = axes.is_none() && self.int("noop_with_empty_axes", 0) != 0;
        let axes = if none { Some(&[][..]) } else { axes.as_deref() };
        let is_bool = x.dtype()? == DType::Bool;
        Ok(match self.node.operator.as_str() {
            "ReduceL1" => x.norm_l1(axes, keep),
            "ReduceL2" => x.norm_l2(axes, keep),
            "ReduceLogSum" => x.sum(axes, keep).log(),
            "ReduceLogSumExp" => x.log_sum_exp(axes, keep),
            "ReduceMax" if is_bool => x.any(axes, keep),
            "ReduceMin" if is_bool => x.all(axes, keep),
            "ReduceMax" => x.amax(axes, keep),
            "ReduceMin" => x.amin(axes, keep),
            "ReduceMean" => x.mean(axes, keep),
            "ReduceProd" => x.prod(axes, keep),
            "ReduceSum" => x.sum(axes, keep),
            "ReduceSumSquare" => x.square().sum(axes, keep),
            operator => return Err(Refused::Unsupported(format!("the operator {operator}"))),
        })
    }

    fn batch_norm(&self) -> Result<Vec<Expr>, Refused> {
        let [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map(|input| self.expr(input));
        let (x, scale, bias, mean, variance) = (x?, scale?, bias?, mean?, variance?);
        let epsilon = self.float("epsilon", 1e-5);
        if self.int("training_mode", 0) == 0 {
            return Ok(vec![x.batch_norm(&scale, &bias, &mean, &variance, epsilon)]);
        }
        let axes: Vec<i64> = (0..self.rank(0)?).filter(|&axis| axis != 1).collect();
        let (own_mean, own_variance) = (x.mean(Some(&axes), false), x.var(Some(&axes), false, 0.0));
        let momentum = self.float("momentum", 0.9);
        let moved = |old: &Expr, new: &Expr| old * momentum + new * (1.0 - momentum);
        let normalized = x.batch_norm(&scale, &bias, &own_mean, &own_variance, epsilon);
        Ok(vec![normalized, moved(&mean, &own_mean), moved(&variance, &own_variance)])
    }

    fn layer_norm(&self) -> Result<Vec<Expr>, Refused> {
        let (x, scale, rank, epsilon) = (self.expr(0)?, self.expr(1)?, self.rank(0)?, self.float("epsilon", 1e-5));
        let axes: Vec<i64> = (self.int("axis", -1).rem_euclid(rank)..rank).collect();
        if self.node.operator == "RMSNormalization" {
            return Ok(vec![x.rms_norm(&axes, Some(&scale), epsilon)]);
        }
        let bias = if self.has(2) { Some(self.expr(2)?) } else { None };
        let deviation = (x.var(Some(&axes), true, 0.0) + epsilon).sqrt().reciprocal();
        Ok(vec![x.layer_norm(&axes, Some(&scale), bias.as_ref(), epsilon), x.mean(Some(&axes), true), deviation])
    }

    fn constant(&self) -> Result<Expr, Refused> {
        let (shape, values): (_, HostVec) = match (self.attribute("value"), self.attribute("value_float"), self.attribute("value_floats")) {
            (Some(Attribute { tensor: Some(tensor), .. }), ..) => match tensor.data().map_err(Refused::Unsupported)? {
                Data::Values(values) => (tensor.shape(), values),
                Data::Int64(_) => return Err(Refused::Unsupported("values of int64".to_owned())),
            },
            (_, Some(one), _) => (Vec::new(), vec![one.float].into()),
            (.., Some(some)) => (vec![some.floats.len() as u64], some.floats.clone().into()),
            _ => return Err(Refused::Unsupported("a constant that is no tensor".to_owned())),
        };
        Ok(Expr::from(&self.gpu.tensor_blocking(&values, 1, values.len())?.reshape(&shape)?))
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
