//! Products in expressions, with what follows them in the same kernel: a factor, a bias or a matrix that is added, an activation.

use std::sync::Arc;

use super::lower::{Operations, Source};
use super::node::{Axis, Node, What};
use super::{Expr, shape};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::elementwise::Function;
use crate::ops::matmul::{Activation, Matmul, Stored};

impl Expr {
    /// The matrix product as NumPy's `matmul` has it: … × m × k and … × k × n give … × m × n, the dimensions before the last two are
    /// a batch and are repeated to one another, and a single dimension is a vector. Both are of f32 or both of f16, sums in f32. What
    /// transposes an operand's last two dimensions is read in place, and a factor, a bias and an activation after it cost no kernel
    /// of their own.
    #[must_use]
    pub fn matmul(&self, b: impl Into<Self>) -> Self {
        let b = b.into();
        let make = || {
            let (a, b) = (self.node()?, b.node()?);
            if a.dtype != b.dtype || !a.dtype.is_float() {
                let found = format!("of {} beside {}", b.dtype, a.dtype);
                let expected = "of the type of a, f32 or f16; cast one of them";
                return Err(Box::new(Error::InvalidType { argument: "b".to_owned(), expected, found }));
            }
            let shape = Matmul::of(&a.shape, &b.shape)?.shape()?;
            shape::check(&shape)?;
            Ok(Node { shape, dtype: a.dtype, what: What::Matmul([Arc::clone(a), Arc::clone(b)]) })
        };
        Self(make().map(Arc::new))
    }
}

/// A product and what is done to it.
struct Product<'a> {
    operands: &'a [Arc<Node>; 2],
    alpha: f64,
    bias: Option<&'a Arc<Node>>,
    added: Option<&'a Arc<Node>>,
    activation: Option<Activation>,
}

impl Operations {
    /// One kernel for a value that is a product, or something of one that the product's kernel can do.
    pub(super) fn product(&mut self, node: &Arc<Node>) -> Result<Option<Source>> {
        let Some(product) = self.found(node) else { return Ok(None) };
        let [(a, transpose_a), (b, transpose_b)] = product.operands.each_ref().map(stored);
        let [left, right] = product.operands;
        let op = Matmul::of(&left.shape, &right.shape)?.transpose_a(transpose_a).transpose_b(transpose_b).result(left.dtype);
        let mut problem = op.check(left.dtype, left.elements(), right.elements())?;
        if problem.k > 0 {
            problem.alpha = product.alpha as f32;
        }
        problem.activation = product.activation;
        problem.bias = product.bias.is_some();
        if product.added.is_some() {
            (problem.beta, problem.c) = (1.0, Some(Stored { rows: problem.m, columns: problem.n, stride: problem.n.into() }));
        }
        let reads = problem.reads_operands();
        let mut sources = Vec::new();
        for input in [Some(a).filter(|_| reads), Some(b).filter(|_| reads), product.added, product.bias] {
            sources.push(input.map(|input| self.source(input)).transpose()?);
        }
        Ok(Some(self.add(Op::Matmul(problem), sources)))
    }

    /// The product that a value is made of, if a product's kernel can do all of it and nobody else needs what is between.
    fn found<'a>(&self, node: &'a Arc<Node>) -> Option<Product<'a>> {
        match &node.what {
            What::Matmul(operands) => Some(Product { operands, alpha: 1.0, bias: None, added: None, activation: None }),
            What::Apply(function, inputs) => match (function, &inputs[..]) {
                (function, [x]) => {
                    let activation = activation(*function)?;
                    let product = self.inner(x).filter(|product| product.activation.is_none())?;
                    Some(Product { activation: Some(activation), ..product })
                }
                (Function::Mul, [x, y]) => {
                    let (x, factor) = if let What::Number(factor) = y.what { (x, factor) } else { (y, number(x)?) };
                    let product = self.inner(x).filter(Product::is_plain)?;
                    Some(Product { alpha: product.alpha * factor, ..product })
                }
                (Function::Add, [x, y]) => self.sum(node, x, y).or_else(|| self.sum(node, y, x)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same of something that becomes a part of a kernel.
    fn inner<'a>(&self, node: &'a Arc<Node>) -> Option<Product<'a>> {
        // Asked first: what is used twice at each of many levels would be looked at over and over.
        if self.is_used_once(node) { self.found(node) } else { None }
    }

    /// A product and what is added to it.
    fn sum<'a>(&self, node: &Node, x: &'a Arc<Node>, y: &'a Arc<Node>) -> Option<Product<'a>> {
        let product = self.inner(x).filter(Product::is_plain)?;
        let (n, is_whole) = (*x.shape.last()?, x.shape == node.shape);
        let is_matrix = x.shape.len() == 2 && product.operands.iter().all(|operand| operand.shape.len() == 2);
        if !is_whole || product.operands[1].shape.len() < 2 || matches!(y.what, What::Number(_)) {
            return None;
        }
        if y.shape.last() == Some(&n) && y.elements() == n && y.dtype == DType::F32 {
            return Some(Product { bias: Some(y), ..product });
        }
        (is_matrix && y.shape == x.shape && y.dtype == x.dtype).then_some(Product { added: Some(y), ..product })
    }
}

impl Product<'_> {
    /// Whether nothing has been added to it, and nothing taken of it.
    fn is_plain(&self) -> bool {
        self.bias.is_none() && self.added.is_none() && self.activation.is_none()
    }
}

fn number(node: &Node) -> Option<f64> {
    if let What::Number(number) = node.what { Some(number) } else { None }
}

pub(super) fn activation(function: Function) -> Option<Activation> {
    match function {
        Function::Relu => Some(Activation::Relu),
        Function::Sigmoid => Some(Activation::Sigmoid),
        Function::Tanh => Some(Activation::Tanh),
        Function::Silu => Some(Activation::Silu),
        Function::GeluTanh => Some(Activation::Gelu),
        _ => None,
    }
}

/// An operand as it lies in memory, and whether it is read transposed.
fn stored(node: &Arc<Node>) -> (&Arc<Node>, bool) {
    if let What::View(input, view) = &node.what
        && let [outer @ .., rows, columns] = &view[..]
    {
        let rank = node.shape.len();
        let same = outer.iter().enumerate().all(|(dimension, axis)| *axis == Axis::along(dimension));
        if same && input.shape.len() == rank && *rows == Axis::along(rank - 1) && *columns == Axis::along(rank - 2) {
            return (input, true);
        }
    }
    (node, false)
}
