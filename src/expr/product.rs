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
    /// a batch and are repeated to one another, and a single dimension is a vector. Both are of f32 or both of f16, sums in f32; or both are of
    /// 8-bit integers, and the product is of i32. What
    /// transposes an operand's last two dimensions is read in place, so is a part of a larger matrix, and a factor, a bias and an activation
    /// after it cost no kernel of their own; nor does on GPUs what else is computed of each element of a product of f32.
    #[must_use]
    pub fn matmul(&self, b: impl Into<Self>) -> Self {
        let b = b.into();
        let make = || {
            let (a, b) = (self.node()?, b.node()?);
            let are_bytes = a.dtype.is_byte() && b.dtype.is_byte();
            if (a.dtype != b.dtype || !a.dtype.is_float()) && !are_bytes {
                let found = format!("of {} beside {}", b.dtype, a.dtype);
                let expected = "of the type of a, f32 or f16, or both of i8 or u8; cast one of them";
                return Err(Box::new(Error::InvalidType { argument: "b".to_owned(), expected, found }));
            }
            let op = Matmul::of(&a.shape, &b.shape)?;
            let shape = op.shape()?;
            shape::check(&shape)?;
            let dtype = if are_bytes { DType::I32 } else { a.dtype };
            // Of batches that are repeated in more ways than a kernel knows there are copies.
            let [a, b] = match op.check([a.dtype, b.dtype], a.elements(), b.elements()) {
                Ok(_) => [Arc::clone(a), Arc::clone(b)],
                // Nothing copies bytes.
                Err(error) if are_bytes => return Err(error),
                Err(_) => [repeated(a, &shape)?, repeated(b, &shape)?],
            };
            Ok(Node::new(shape, dtype, What::Matmul([a, b])))
        };
        Self(make().map(Arc::new))
    }
}

/// An operand of a product of that shape once for each item of its batch.
fn repeated(operand: &Arc<Node>, shape: &[u64]) -> Result<Arc<Node>> {
    let [.., rows, columns] = operand.shape[..] else { return Ok(Arc::clone(operand)) };
    let mut items = shape[..shape.len().saturating_sub(2)].to_vec();
    items.extend([rows, columns]);
    if items == operand.shape {
        return Ok(Arc::clone(operand));
    }
    Expr(Ok(Arc::clone(operand))).broadcast_to(&items).node().cloned()
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
        let [a, b] = product.operands.each_ref().map(stored);
        let [left, right] = product.operands;
        let mut op = Matmul::of(&left.shape, &right.shape)?.transpose_a(a.transposed).transpose_b(b.transposed);
        if left.dtype.is_float() {
            op = op.result(left.dtype);
        }
        if let Some((first, stride)) = a.window {
            op = op.offset_a(first).lda(stride);
        }
        if let Some((first, stride)) = b.window {
            op = op.offset_b(first).ldb(stride);
        }
        let (a, b) = (a.node, b.node);
        let mut problem = op.check([left.dtype, right.dtype], a.elements(), b.elements())?;
        problem.alpha = product.alpha as f32;
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
                    // Of two factors a product of neither may be too large, or too small, while that of one after the other is not.
                    let alpha = product.alpha * factor;
                    (product.alpha == 1.0 || (alpha as f32).is_normal()).then_some(Product { alpha, ..product })
                }
                (Function::Add, [x, y]) => self.sum(node, x, y).or_else(|| self.sum(node, y, x)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same of something that becomes a part of a kernel.
    fn inner<'a>(&self, node: &'a Arc<Node>) -> Option<Product<'a>> {
        // Asked first: what is used twice at each of many levels would be looked at over and over. Nothing is done to sums of integers.
        if node.dtype.is_float() && self.is_used_once(node) { self.found(node) } else { None }
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

/// An operand as a product's kernel reads it where it lies.
struct Lies<'a> {
    node: &'a Arc<Node>,
    transposed: bool,
    /// Elements before the first, and from one stored row to the next, if it is a window of the value.
    window: Option<(u64, u64)>,
}

/// An operand as it lies in memory: transposed perhaps, or a part of a larger matrix, whose rows or columns are without gaps.
fn stored(node: &Arc<Node>) -> Lies<'_> {
    let mut whole = Lies { node, transposed: false, window: None };
    let What::View(input, view) = &node.what else { return whole };
    if let [outer @ .., rows, columns] = &view[..] {
        let rank = node.shape.len();
        let same = outer.iter().enumerate().all(|(dimension, axis)| *axis == Axis::along(dimension));
        // A part from the beginning on is seen by the same axes.
        let mut turned = node.shape.clone();
        turned.swap(rank - 2, rank - 1);
        if same && input.shape == turned && *rows == Axis::along(rank - 1) && *columns == Axis::along(rank - 2) {
            whole = Lies { node: input, transposed: true, window: None };
        }
    }
    let &[rows, columns] = &node.shape[..] else { return whole };
    // Of what would have to be computed first only that part may be needed.
    let is_there = match &input.what {
        What::Reshape(inner) => matches!(inner.what, What::Tensor(_)),
        what => matches!(what, What::Tensor(_)),
    };
    if !is_there || rows == 0 || columns == 0 {
        return whole;
    }
    // From the last dimension of the value to the first.
    let (mut first, mut steps, mut step) = (0, [0; 2], 1);
    for (axis, &size) in view.iter().zip(&input.shape).rev() {
        first += axis.start * step;
        if let Some(dimension) = axis.follows {
            steps[dimension] += axis.step * step;
        }
        step *= size as i64;
    }
    // A single row is as far from the next as one likes.
    let step_of = |dimension: usize, least: u64| {
        let step = if node.shape[dimension] == 1 { Some(least) } else { u64::try_from(steps[dimension]).ok() };
        step.filter(|step| *step >= least && *step <= u32::MAX.into())
    };
    let is_dense = |dimension: usize| node.shape[dimension] == 1 || steps[dimension] == 1;
    let (transposed, stride) = match (step_of(0, columns), step_of(1, rows)) {
        (Some(stride), _) if is_dense(1) => (false, stride),
        (_, Some(stride)) if is_dense(0) => (true, stride),
        _ => return whole,
    };
    u64::try_from(first).map_or(whole, |first| Lies { node: input, transposed, window: Some((first, stride)) })
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::gpu::Gpu;
    use crate::info::BackendId;
    use crate::options::Options;

    /// Operations of a product of two views of one tensor, 6 × 6.
    fn operations(view: impl Fn(&Expr) -> [Expr; 2]) -> usize {
        let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).expect("the CPU is always there");
        let x = gpu.tensor_blocking(&[1.0f32; 36], 6, 6).expect("a tensor");
        let [a, b] = view(&Expr::from(&x));
        Operations::of(a.matmul(b).node().expect("they go together"), None).expect("they can be computed").0.list.len()
    }

    #[test]
    fn a_part_of_a_matrix_is_read_where_it_lies() {
        let part = |x: &Expr| x.slice(0, 1, 5, 1).slice(1, 2, 6, 1);
        assert_eq!(operations(|x| [part(x), part(x).transpose(None)]), 1);
        assert_eq!(operations(|x| [x.slice(0, 0, 6, 2), x.slice(1, 3, 4, 1)]), 1, "every other row, and a column");
        assert_eq!(operations(|x| [x.reshape(&[4, 9]).slice(1, 0, 4, 1), part(x)]), 1);
        assert_eq!(operations(|x| [x.slice(1, 0, 6, 2), part(x).slice(0, 0, 3, 1)]), 2, "every other column is copied");
        assert_eq!(operations(|x| [x.flip(Some(&[0])), x.clone()]), 2, "rows in reverse are copied");
        assert_eq!(operations(|x| [(x + 1.0).slice(0, 0, 2, 1), x.clone()]), 2, "only what is needed is computed");
    }
}
