//! Lazy expressions of tensors: what is to be computed, told first and computed as a whole, so that chains of elementwise work become one
//! kernel and nothing between them goes through memory.
//!
//! ```
//! # fn main() -> lapidary::Result<()> {
//! use lapidary::{Expr, Gpu, Options};
//! let gpu = Gpu::open_blocking(Options::default())?;
//! let a = gpu.tensor_blocking(&[1.0f32, -2.0, 3.0, -4.0], 2, 2)?;
//! let b = gpu.tensor_blocking(&[10.0f32, 20.0], 1, 2)?;
//! let y = (Expr::from(&a) * 0.5 + &b).relu(); // nothing is computed yet
//! let y = gpu.evaluate_blocking(&y)?;         // one kernel, which reads a and b once and writes y once
//! assert_eq!(y.to_vec_blocking()?, [10.5, 19.0, 11.5, 18.0]);
//! # Ok(()) }
//! ```
//!
//! Shapes follow NumPy: those of two operands are aligned at their last dimensions, and a dimension of size 1, or one that is not there, is
//! repeated. What is wrong with an expression is said when it is evaluated, or by [`Expr::shape`].
//!
//! A tensor may have any number of dimensions, but a kernel walks six at most, where those that lie behind one another in all that it reads
//! count as one: evaluating what needs more, as a transposition of seven does, is [`LimitExceeded`](crate::Error::LimitExceeded).

mod fft;
mod lower;
mod methods;
mod node;
mod normalize;
mod number;
mod pad;
#[cfg(not(target_arch = "wasm32"))]
mod prepared;
mod product;
mod random;
mod reduce;
mod run;
mod shape;
mod window;

#[cfg(target_arch = "wasm32")]
pub(crate) use lower::Lowered;
pub(crate) use node::{Node, What};
pub use pad::Padding;
pub use window::{Conv, Pool};

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::tensor::Tensor;

/// A value that is computed when it is [evaluated](crate::Gpu::evaluate): a tensor, a number, or something of other expressions. Clones share it, and
/// what occurs twice in an expression is computed once.
#[derive(Debug, Clone)]
pub struct Expr(Result<Arc<Node>>);

impl Expr {
    /// A number, which takes the type of what it meets: of a floating-point tensor a floating-point number, of integers one without its
    /// fraction. Alone it is an f32.
    pub fn number(value: f64) -> Self {
        Self::new(Node::new(Vec::new(), DType::F32, What::Number(value)))
    }

    /// 0, 1, 2, … in a shape, row by row, as u32.
    pub fn index(shape: &[u64]) -> Self {
        Self(shape::check(shape).map(|()| Arc::new(Node::new(shape.to_vec(), DType::U32, What::Index))))
    }

    /// The sizes of all dimensions.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn shape(&self) -> Result<&[u64]> {
        self.node().map(|node| &node.shape[..])
    }

    /// What the elements are.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn dtype(&self) -> Result<DType> {
        self.node().map(|node| node.dtype)
    }

    pub(crate) fn new(node: Node) -> Self {
        Self(Ok(Arc::new(node)))
    }

    pub(crate) fn node(&self) -> Result<&Arc<Node>> {
        self.0.as_ref().map_err(Clone::clone)
    }

    /// One that is made of this one's node, or wrong as this one is.
    pub(crate) fn then(&self, make: impl FnOnce(&Arc<Node>) -> Result<Node>) -> Self {
        Self(self.node().and_then(|node| make(node).map(Arc::new)))
    }
}

impl From<&Tensor> for Expr {
    fn from(tensor: &Tensor) -> Self {
        let make = |()| Arc::new(Node::new(tensor.shape().to_vec(), tensor.dtype(), What::Tensor(tensor.clone())));
        Self(shape::check(tensor.shape()).map(make))
    }
}

impl From<Tensor> for Expr {
    fn from(tensor: Tensor) -> Self {
        Self::from(&tensor)
    }
}

impl From<&Self> for Expr {
    fn from(expr: &Self) -> Self {
        expr.clone()
    }
}

macro_rules! numbers {
    ($($number:ty),+) => { $(
        impl From<$number> for Expr {
            fn from(value: $number) -> Self {
                Self::number(value.into())
            }
        }
    )+ };
}

numbers!(f32, f64, i32, u32);
