//! What an expression is made of.

use std::sync::Arc;

use crate::dtype::DType;
use crate::ops::Op;
use crate::ops::elementwise::Function;
use crate::ops::normalize::Form;
use crate::ops::reduce::Fold;
use crate::tensor::{Tensor, joined};

/// A value of a shape and a type.
pub(crate) struct Node {
    pub shape: Vec<u64>,
    pub dtype: DType,
    pub what: What,
    /// The most that are made of one another in it.
    pub depth: u32,
    /// How a CPU computes it, once that is known.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) prepared: super::prepared::Known,
}

/// Its parts may be many, and one of them in many places: none is told.
impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of [{}]", self.dtype, joined(&self.shape, ", "))
    }
}

/// Where a value comes from.
#[derive(Debug)]
pub(crate) enum What {
    /// A tensor of the device.
    Tensor(Tensor),
    /// A number for all elements.
    Number(f64),
    /// The element's number, row by row.
    Index,
    /// A function of one or two operands of one type, which are repeated to the node's shape.
    Apply(Function, Vec<Arc<Node>>),
    /// Where the first is true the second, else the third, all repeated to the node's shape.
    Select([Arc<Node>; 3]),
    /// The same in the node's type.
    Cast(Arc<Node>),
    /// Elements of a value that is no view itself: what the node's dimensions say of each of the value's.
    View(Arc<Node>, Vec<Axis>),
    /// The same elements in the node's shape.
    Reshape(Arc<Node>),
    /// The product of the last two dimensions, the others a batch: both are stored row by row, and each may be read transposed.
    Matmul([Arc<Node>; 2]),
    /// A value that begins so far inside of the node along each dimension, and what is around it, repeated to the node's shape.
    Pad(Arc<Node>, Vec<u64>, Arc<Node>),
    /// An operation of whole values.
    Whole(Op, Vec<Arc<Node>>),
    /// A value reduced along those of its dimensions, in order, and by what a mean or a variance divides.
    Reduce(Arc<Node>, Vec<usize>, Fold, f32),
    /// Rows along those dimensions put into proportion, with epsilon, and the scale and the bias so far as there are any.
    Normalize(Arc<Node>, Vec<usize>, Form, f32, Vec<Arc<Node>>),
}

/// Where along a dimension of a value a view is: at start + step · i, where i counts along the dimension of the view that it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Axis {
    /// Which of the view's dimensions; None if it stays at the start.
    pub follows: Option<usize>,
    pub start: i64,
    pub step: i64,
}

impl Node {
    pub fn new(shape: Vec<u64>, dtype: DType, what: What) -> Self {
        let depth = what.inputs().into_iter().map(|input| input.depth).max().map_or(0, |most| most.saturating_add(1));
        Self {
            shape,
            dtype,
            what,
            depth,
            #[cfg(not(target_arch = "wasm32"))]
            prepared: super::prepared::Known::default(),
        }
    }

    /// Elements of a value; of a view those of what it is a view of.
    pub fn view(shape: Vec<u64>, of: &Arc<Self>, axes: Vec<Axis>) -> Self {
        let (input, axes) = match &of.what {
            What::View(input, inner) => (input, inner.iter().map(|axis| axis.of(&axes)).collect()),
            _ => (of, axes),
        };
        Self::new(shape, of.dtype, What::View(Arc::clone(input), axes))
    }

    /// Elements of all of it.
    pub fn elements(&self) -> u64 {
        crate::tensor::elements(&self.shape)
    }

    /// What it is computed of.
    pub fn inputs(&self) -> Vec<&Arc<Self>> {
        self.what.inputs()
    }
}

impl What {
    fn inputs(&self) -> Vec<&Arc<Node>> {
        match self {
            Self::Tensor(_) | Self::Number(_) | Self::Index => Vec::new(),
            Self::Apply(_, inputs) | Self::Whole(_, inputs) => inputs.iter().collect(),
            Self::Select(inputs) => inputs.iter().collect(),
            Self::Matmul(inputs) => inputs.iter().collect(),
            Self::Cast(input) | Self::View(input, _) | Self::Reshape(input) | Self::Reduce(input, ..) => vec![input],
            Self::Pad(input, _, around) => vec![input, around],
            Self::Normalize(input, .., beside) => std::iter::once(input).chain(beside).collect(),
        }
    }
}

/// One that is deep would end by calls within calls, for which a stack has no room.
impl Drop for Node {
    fn drop(&mut self) {
        if self.depth < 64 {
            return;
        }
        let mut left = vec![std::mem::replace(&mut self.what, What::Index)];
        while let Some(what) = left.pop() {
            // What others hold as well does not end here.
            let inputs: Vec<_> = what.inputs().into_iter().map(Arc::clone).collect();
            drop(what);
            left.extend(inputs.into_iter().filter_map(Arc::into_inner).map(|mut node| std::mem::replace(&mut node.what, What::Index)));
        }
    }
}

impl Axis {
    /// Along a dimension of the view, step by step.
    pub fn along(dimension: usize) -> Self {
        Self { follows: Some(dimension), start: 0, step: 1 }
    }

    /// Always the first.
    pub const FIRST: Self = Self { follows: None, start: 0, step: 0 };

    /// Where it is if what it follows is itself at such an axis.
    pub fn of(self, outer: &[Self]) -> Self {
        match self.follows.and_then(|dimension| outer.get(dimension)) {
            None => self,
            Some(outer) => Self { follows: outer.follows, start: self.start + self.step * outer.start, step: self.step * outer.step },
        }
    }
}
