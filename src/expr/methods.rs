//! What can be made of expressions: elementwise functions, views, and their operators in Rust.

use std::ops::{Add, Div, Mul, Neg, Sub};
use std::sync::Arc;

use super::node::{Axis, Node, What};
use super::number::{number, number_as};
use super::{Expr, shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::{Function, Kind};
use crate::tensor::joined;

macro_rules! functions {
    (unary $($(#[doc = $doc:literal])+ $method:ident: $function:ident,)+) => {
        impl Expr { $(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $method(&self) -> Self {
                self.apply(Function::$function)
            }
        )+ }
    };
    (binary $($(#[doc = $doc:literal])+ $method:ident: $function:ident,)+) => {
        impl Expr { $(
            $(#[doc = $doc])+
            #[must_use]
            pub fn $method(&self, b: impl Into<Self>) -> Self {
                self.apply_with(Function::$function, &b.into())
            }
        )+ }
    };
}

functions! { unary
    /// −a.
    negative: Neg,
    /// |a|.
    abs: Abs,
    /// −1, 0 or 1, as a is negative, zero or positive; NaN of NaN.
    sign: Sign,
    /// a · a.
    square: Square,
    /// 1 / a.
    reciprocal: Reciprocal,
    /// √a.
    sqrt: Sqrt,
    /// eᵃ.
    exp: Exp,
    /// ln a.
    log: Log,
    /// sin a, a in radians. GPUs may lose accuracy far from zero (WGSL promises it from −π to π).
    sin: Sin,
    /// cos a, a in radians, as [`sin`](Self::sin).
    cos: Cos,
    /// tan a, a in radians, as [`sin`](Self::sin).
    tan: Tan,
    /// arcsin a in radians.
    asin: Asin,
    /// arccos a in radians.
    acos: Acos,
    /// arctan a in radians.
    atan: Atan,
    /// (eᵃ − e⁻ᵃ) / 2.
    sinh: Sinh,
    /// (eᵃ + e⁻ᵃ) / 2.
    cosh: Cosh,
    /// (eᵃ − e⁻ᵃ) / (eᵃ + e⁻ᵃ).
    tanh: Tanh,
    /// ln(a + √(a² + 1)).
    asinh: Asinh,
    /// ln(a + √(a² − 1)).
    acosh: Acosh,
    /// ln((1 + a) / (1 − a)) / 2.
    atanh: Atanh,
    /// 1 / (1 + e⁻ᵃ).
    sigmoid: Sigmoid,
    /// a · σ(a).
    silu: Silu,
    /// a · σ(1.5957691 · (a + 0.044715 · a³)), the GELU by its usual approximation, which is also that of a product's activation.
    gelu_tanh: GeluTanh,
    /// max(a, 0); NaN stays.
    relu: Relu,
    /// ln(1 + eᵃ).
    softplus: Softplus,
    /// (2 / √π) ∫₀ᵃ exp(−t²) dt, within 2·10⁻⁷.
    erf: Erf,
    /// The largest whole number that is not above a.
    floor: Floor,
    /// The smallest whole number that is not below a.
    ceil: Ceil,
    /// The nearest whole number, of two the even one.
    round: Round,
    /// a without its fraction.
    trunc: Trunc,
    /// The nearest number that an f16 can hold, of two the even one; infinite from 65520 on.
    round_to_f16: RoundToF16,
    /// Whether a is not a number.
    is_nan: IsNan,
    /// Whether a is ∞ or −∞.
    is_inf: IsInf,
    /// The opposite of a truth; of integers bit by bit.
    not: Not,
}

functions! { binary
    /// a + b.
    add: Add,
    /// a − b.
    sub: Sub,
    /// a · b, element by element.
    mul: Mul,
    /// a / b; of integers without the fraction, and 0 where b is 0.
    div: Div,
    /// a − b · trunc(a / b), of a's sign; of integers 0 where b is 0.
    rem: Rem,
    /// a − b · floor(a / b), of b's sign; of integers 0 where b is 0.
    modulo: Mod,
    /// aᵇ; of a negative a only for whole b, else NaN. Of integers with a negative b 0, unless a is 1 or −1.
    pow: Pow,
    /// The smaller of both; NaN if one of them is.
    min: Min,
    /// The larger of both; NaN if one of them is.
    max: Max,
    /// Whether a = b.
    equal: Equal,
    /// Whether a ≠ b.
    not_equal: NotEqual,
    /// Whether a < b.
    less: Less,
    /// Whether a ≤ b.
    less_equal: LessEqual,
    /// Whether a > b.
    greater: Greater,
    /// Whether a ≥ b.
    greater_equal: GreaterEqual,
    /// Both truths; of integers bit by bit.
    and: And,
    /// At least one of both truths; of integers bit by bit.
    or: Or,
    /// One of both truths and not the other; of integers bit by bit.
    xor: Xor,
    /// a · 2ᵇ of u32, what is above bit 31 dropped.
    shift_left: ShiftLeft,
    /// a / 2ᵇ of u32, without the fraction.
    shift_right: ShiftRight,
}

impl Expr {
    /// a · (1 + erf(a / √2)) / 2, the GELU as it is defined.
    #[must_use]
    pub fn gelu(&self) -> Self {
        if self.dtype() == Ok(DType::F16) {
            // What is between is no value of f16.
            return self.cast(DType::F32).gelu().cast(DType::F16);
        }
        (self * std::f64::consts::FRAC_1_SQRT_2).erf().add(1.0).mul(0.5).mul(self)
    }

    /// The nearest of what lies between both: min(max(a, least), most).
    #[must_use]
    pub fn clamp(&self, least: impl Into<Self>, most: impl Into<Self>) -> Self {
        self.max(least).min(most)
    }

    /// Where this is true `yes`, else `no`.
    #[must_use]
    pub fn select(&self, yes: impl Into<Self>, no: impl Into<Self>) -> Self {
        let (yes, no) = (yes.into(), no.into());
        let make = || {
            let condition = self.node()?;
            if condition.dtype != DType::Bool {
                return Err(wrong_type("the condition", "of bool", condition.dtype));
            }
            let [yes, no] = alike(yes.node()?, no.node()?)?;
            let shape = shape::broadcast(&condition.shape, &shape::broadcast(&yes.shape, &no.shape)?)?;
            Ok(Node::new(shape, yes.dtype, What::Select([Arc::clone(condition), yes, no])))
        };
        Self(make().map(Arc::new))
    }

    /// The elements as another type. Of a float an integer gets the nearest that it can hold, fractions cut off, and 0 of NaN; between i32 and
    /// u32 the bits stay, so that −1 is 4294967295. What is not 0 is true. f16 is rounded to the nearest, and infinite from 65520 on.
    #[must_use]
    pub fn cast(&self, dtype: DType) -> Self {
        self.then(|node| {
            no_bytes("the operand of cast", node.dtype)?;
            no_bytes("the result of cast", dtype)?;
            let what = match node.what {
                What::Number(value) => What::Number(number_as(value, node.dtype, dtype)),
                _ => What::Cast(Arc::clone(node)),
            };
            Ok(Node::new(node.shape.clone(), dtype, what))
        })
    }

    /// The same elements, row by row, in another shape. One size may be −1: it is what the others leave.
    #[must_use]
    pub fn reshape(&self, shape: &[i64]) -> Self {
        self.then(|node| {
            let shape = resolved(shape, node)?;
            let input = if let What::Reshape(input) = &node.what { input } else { node };
            Ok(Node::new(shape, node.dtype, What::Reshape(Arc::clone(input))))
        })
    }

    /// With its dimensions in another order: the i-th of the result is that which `axes` names at i; without axes they are reversed. More than
    /// six that do not stay behind one another are [`Error::LimitExceeded`] when it is evaluated.
    #[must_use]
    pub fn transpose(&self, axes: Option<&[i64]>) -> Self {
        self.then(|node| {
            let rank = node.shape.len();
            let order: Vec<usize> = match axes {
                None => (0..rank).rev().collect(),
                Some(axes) => axes.iter().map(|&axis| shape::axis(axis, rank)).collect::<Result<_>>()?,
            };
            shape::axes(axes, rank)?;
            if order.len() != rank {
                let (value, expected) = (order.len().to_string(), format!("{rank}, one for each dimension"));
                return Err(Box::new(Error::InvalidDimension { name: "the number of axes", value, expected }));
            }
            let mut view = vec![Axis::FIRST; rank];
            for (to, &from) in order.iter().enumerate() {
                view[from] = Axis::along(to);
            }
            Ok(Node::view(order.iter().map(|&from| node.shape[from]).collect(), node, view))
        })
    }

    /// Repeated to a shape: dimensions of size 1 become as large as there, and others are put in front.
    #[must_use]
    pub fn broadcast_to(&self, shape: &[u64]) -> Self {
        self.then(|node| {
            if shape::broadcast(&node.shape, shape)? != shape {
                let (value, expected) =
                    (format!("[{}]", joined(shape, ", ")), format!("one to which [{}] can be repeated", joined(&node.shape, ", ")));
                return Err(Box::new(Error::InvalidDimension { name: "the shape", value, expected }));
            }
            let more = shape.len() - node.shape.len();
            let along = |(dimension, &size): (usize, &u64)| {
                if size == shape[more + dimension] { Axis::along(more + dimension) } else { Axis::FIRST }
            };
            let view = node.shape.iter().enumerate().map(along).collect();
            Ok(Node::view(shape.to_vec(), node, view))
        })
    }

    /// The elements from `start` up to and without `end`, each `step` further than the last, along an axis; as in NumPy, negative
    /// places count from the end, those outside are moved to the edge, and a negative step goes backwards.
    #[must_use]
    pub fn slice(&self, axis: i64, start: i64, end: i64, step: i64) -> Self {
        self.then(|node| {
            let axis = shape::axis(axis, node.shape.len())?;
            if step == 0 {
                let expected = "any whole number but 0".to_owned();
                return Err(Box::new(Error::InvalidDimension { name: "the step", value: "0".to_owned(), expected }));
            }
            let size = node.shape[axis] as i64;
            let place = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
            let (start, count) = if step > 0 {
                let (start, end) = (place(start).clamp(0, size), place(end).clamp(0, size));
                (start, (end - start).max(0).div_euclid(step) + i64::from((end - start).max(0).rem_euclid(step) > 0))
            } else {
                let (start, end) = (place(start).clamp(-1, size - 1), place(end).clamp(-1, size - 1));
                let (far, back) = ((start - end).max(0), step.saturating_neg());
                (start, far / back + i64::from(far % back > 0))
            };
            // No step is taken to where a first element is all, and a long one might lead past what can be counted.
            let step = if count > 1 { step } else { 1 };
            let mut view: Vec<_> = (0..node.shape.len()).map(Axis::along).collect();
            view[axis] = Axis { follows: Some(axis), start, step };
            let mut shape = node.shape.clone();
            shape[axis] = count as u64;
            Ok(Node::view(shape, node, view))
        })
    }

    /// With the elements along each of those axes in the opposite order; without axes along all.
    #[must_use]
    pub fn flip(&self, axes: Option<&[i64]>) -> Self {
        self.then(|node| {
            let mut view: Vec<_> = (0..node.shape.len()).map(Axis::along).collect();
            for axis in shape::axes(axes, node.shape.len())? {
                view[axis] = Axis { follows: Some(axis), start: node.shape[axis] as i64 - 1, step: -1 };
            }
            Ok(Node::view(node.shape.clone(), node, view))
        })
    }

    /// The values one behind the other along an axis; the sizes along all others, and the types, have to be the same.
    #[must_use]
    pub fn concat(parts: &[Self], axis: i64) -> Self {
        let make = || {
            let Some((first, others)) = parts.split_first() else {
                let expected = "at least one".to_owned();
                return Err(Box::new(Error::InvalidDimension { name: "the number of parts", value: "0".to_owned(), expected }));
            };
            let first = first.node()?;
            let axis = shape::axis(axis, first.shape.len())?;
            let mut all = vec![Arc::clone(first)];
            let mut shape = first.shape.clone();
            for part in others {
                let part = part.node()?;
                if part.dtype != first.dtype {
                    return Err(wrong_type("a part", of(first.dtype), part.dtype));
                }
                let fits = |(dimension, (a, b)): (usize, (&u64, &u64))| dimension == axis || a == b;
                if part.shape.len() != shape.len() || !part.shape.iter().zip(&shape).enumerate().all(fits) {
                    let expected = format!("as [{}] but along axis {axis}", joined(&first.shape, ", "));
                    let value = format!("[{}]", joined(&part.shape, ", "));
                    return Err(Box::new(Error::InvalidDimension { name: "the shape of a part", value, expected }));
                }
                shape[axis] = shape[axis].saturating_add(part.shape[axis]);
                shape::check(&shape)?;
                all.push(Arc::clone(part));
            }
            Ok(joint(&all, axis))
        };
        Self(make())
    }

    pub(crate) fn apply(&self, function: Function) -> Self {
        self.then(|node| {
            let dtype = result(function, node.dtype)?;
            Ok(Node::new(node.shape.clone(), dtype, What::Apply(function, vec![Arc::clone(node)])))
        })
    }

    pub(crate) fn apply_with(&self, function: Function, other: &Self) -> Self {
        let make = || {
            let [a, b] = alike(self.node()?, other.node()?)?;
            let dtype = result(function, a.dtype)?;
            Ok(Node::new(shape::broadcast(&a.shape, &b.shape)?, dtype, What::Apply(function, vec![a, b])))
        };
        Self(make().map(Arc::new))
    }
}

/// Both, where a number has taken the other's type; beside another number one keeps that which it was cast to.
fn alike(a: &Arc<Node>, b: &Arc<Node>) -> Result<[Arc<Node>; 2]> {
    let wrong = || wrong_type("the second operand", of(a.dtype), b.dtype);
    match (&a.what, &b.what) {
        (&What::Number(value), What::Number(_)) if a.dtype == DType::F32 => Ok([number(value, b.dtype)?, Arc::clone(b)]),
        (What::Number(_), What::Number(_)) if ![a.dtype, DType::F32].contains(&b.dtype) => Err(wrong()),
        (_, &What::Number(value)) => Ok([Arc::clone(a), number(value, a.dtype)?]),
        (&What::Number(value), _) => Ok([number(value, b.dtype)?, Arc::clone(b)]),
        _ if a.dtype == b.dtype => Ok([Arc::clone(a), Arc::clone(b)]),
        _ => Err(wrong()),
    }
}

/// Parts behind one another along an axis, by halves: each element is moved as often as there are halvings.
fn joint(parts: &[Arc<Node>], axis: usize) -> Arc<Node> {
    if let [part] = parts {
        return Arc::clone(part);
    }
    let (first, last) = parts.split_at(parts.len() / 2);
    let [first, last] = [first, last].map(|half| joint(half, axis));
    let dtype = first.dtype;
    let mut shape = first.shape.clone();
    let mut before = vec![0; shape.len()];
    before[axis] = shape[axis];
    shape[axis] += last.shape[axis];
    // The first half lies around the last one, where that has elements.
    let zero = Arc::new(Node::new(Vec::new(), dtype, What::Number(0.0)));
    let around = Node::new(shape.clone(), dtype, What::Pad(first, vec![0; shape.len()], zero));
    Arc::new(Node::new(shape, dtype, What::Pad(last, before, Arc::new(around))))
}

/// What a function gives of a type.
fn result(function: Function, dtype: DType) -> Result<DType> {
    no_bytes("an operand of a function", dtype)?;
    match function.of(dtype.into()) {
        Some((Kind::F32, _)) => Ok(dtype),
        Some((Kind::I32, _)) => Ok(DType::I32),
        Some((Kind::U32, _)) => Ok(DType::U32),
        Some((Kind::Bool, _)) => Ok(DType::Bool),
        None => {
            let takes = |dtype: &&DType| function.of((**dtype).into()).is_some();
            let names: Vec<_> = DType::COMPUTED.iter().filter(takes).map(|dtype| dtype.name()).collect();
            let (argument, found) =
                (format!("an operand of {}, which takes {},", function.name(), names.join(", ")), format!("of {dtype}"));
            Err(Box::new(Error::InvalidType { argument, expected: "of one of those", found }))
        }
    }
}

fn of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "of f32, as the first is",
        DType::F16 => "of f16, as the first is",
        DType::I32 => "of i32, as the first is",
        DType::U32 => "of u32, as the first is",
        DType::Bool => "of bool, as the first is",
        DType::I8 => "of i8, as the first is",
        DType::U8 => "of u8, as the first is",
    }
}

/// Refuses integers of 8 bits, with which nothing but products computes.
pub(super) fn no_bytes(argument: &str, dtype: DType) -> Result<()> {
    if !dtype.is_byte() {
        return Ok(());
    }
    Err(wrong_type(argument, "of f32, f16, i32, u32 or bool, since products alone take integers of 8 bits", dtype))
}

pub(super) fn wrong_type(argument: &str, expected: &'static str, found: DType) -> Box<Error> {
    Box::new(Error::InvalidType { argument: argument.to_owned(), expected, found: format!("of {found}") })
}

/// A shape with the one size in it that is left open.
fn resolved(shape: &[i64], node: &Node) -> Result<Vec<u64>> {
    let elements = node.elements();
    let text = || shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let fault = || {
        let open = if elements > 0 { "one size may be -1" } else { "one size may be -1, but not beside a 0" };
        let expected = format!("one of {elements} elements, as [{}] has; {open}", joined(&node.shape, ", "));
        Box::new(Error::InvalidDimension { name: "the shape", value: format!("[{}]", text()), expected })
    };
    let known: u64 = shape.iter().filter(|size| **size >= 0).fold(1, |product, &size| product.saturating_mul(size.cast_unsigned()));
    let open = shape.iter().filter(|size| **size < 0).count();
    if shape.iter().any(|size| *size < -1) || open > 1 || (open == 0 && known != elements) {
        return Err(fault());
    }
    if open == 1 && (known == 0 || !elements.is_multiple_of(known)) {
        return Err(fault());
    }
    let shape: Vec<_> = shape.iter().map(|&size| if size < 0 { elements / known } else { size.cast_unsigned() }).collect();
    shape::check(&shape)?;
    Ok(shape)
}

macro_rules! operators {
    ($($operator:ident $method:ident),+) => { $(
        impl<B: Into<Expr>> $operator<B> for Expr {
            type Output = Self;

            fn $method(self, b: B) -> Self {
                Self::$method(&self, b)
            }
        }

        impl<B: Into<Expr>> $operator<B> for &Expr {
            type Output = Expr;

            fn $method(self, b: B) -> Expr {
                Expr::$method(self, b)
            }
        }
    )+ };
}

operators!(Add add, Sub sub, Mul mul, Div div);

impl Neg for Expr {
    type Output = Self;

    fn neg(self) -> Self {
        self.negative()
    }
}

impl Neg for &Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        self.negative()
    }
}
