//! From an expression to operations: what can be one kernel becomes one.
//!
//! Views, numbers and functions go into the kernel of whatever is made of them: a view changes how an input is read, and costs nothing. A
//! value is computed by itself only where that cannot be: before an operation that is not elementwise, in another shape than its
//! inputs are stored in, or where a kernel would have more inputs than it can.

mod end;
mod kernel;

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Expr;
use super::methods::no_bytes;
use super::node::{Axis, Node, What};
use crate::backend::device::Opened;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::{BackendId, Caps};
use crate::ops::Op;
use crate::ops::elementwise::Kind;
use crate::ops::map::{MOST_DIMENSIONS, MOST_INPUTS, Problem, View};
use crate::tensor::Tensor;
use kernel::{Kernel, repeated};

/// Levels of an expression from one that is computed by itself to the next.
const LANDING: u32 = 128;

/// What an operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// One of the tensors that the expression is made of.
    Tensor(usize),
    /// The result of an operation before it.
    Made(usize),
}

/// An operation and what it reads.
pub(crate) struct Operation {
    pub op: Op,
    /// One for each of its inputs; None for what it does not read.
    pub sources: Vec<Option<Source>>,
}

/// The operations of an expression, in order.
#[derive(Default)]
pub(crate) struct Operations {
    pub list: Vec<Operation>,
    /// The tensors that they read; what shares memory is one.
    pub tensors: Vec<Tensor>,
    made: FxHashMap<*const Node, Source>,
    /// Values that are computed by themselves, since operations apart from one another read them.
    apart: FxHashSet<*const Node>,
    /// How many others are made of each.
    uses: FxHashMap<*const Node, usize>,
    /// Those that are no part of the expression: what is known of each is known by where it is.
    more: Vec<Arc<Node>>,
    /// A device whose kernels take what follows them: what it is, and what they are planned by.
    fuses: Option<(BackendId, Caps)>,
}

/// Why a value does not go into a kernel.
enum Refused {
    /// The kernel has no room for it.
    Full,
    Wrong(Box<Error>),
}

impl From<Box<Error>> for Refused {
    fn from(error: Box<Error>) -> Self {
        Self::Wrong(error)
    }
}

/// An expression's operations for one device. What they read of the tensors that it is made of is their shapes and types, and which of them
/// share memory: they may be computed of others.
pub(crate) struct Lowered {
    pub list: Vec<Operation>,
    /// What gives the value.
    pub source: Source,
    /// The value's.
    pub shape: Vec<u64>,
    /// Of each operation those whose results nobody reads behind it.
    pub over: Vec<Vec<usize>>,
}

impl Lowered {
    /// And the tensors, in the order of their numbers.
    pub fn of(node: &Arc<Node>, opened: &Opened) -> Result<(Self, Vec<Tensor>)> {
        let fuses = opened.device.fuses(&opened.info).map(|caps| (opened.info.backend, caps));
        let (Operations { list, tensors, .. }, source) = Operations::of(node, fuses)?;
        let mut last: Vec<_> = (0..list.len()).collect();
        for (at, operation) in list.iter().enumerate() {
            for source in operation.sources.iter().flatten() {
                if let Source::Made(number) = *source {
                    last[number] = at;
                }
            }
        }
        let mut over = vec![Vec::new(); list.len()];
        for (number, at) in last.into_iter().enumerate() {
            if source != Source::Made(number) {
                over[at].push(number);
            }
        }
        Ok((Self { list, source, shape: node.shape.clone(), over }, tensors))
    }
}

impl Operations {
    /// Those of an expression, and which of them gives its value; for such a device, if its kernels take what follows them.
    pub fn of(node: &Arc<Node>, fuses: Option<(BackendId, Caps)>) -> Result<(Self, Source)> {
        let mut operations = Self { fuses, ..Self::default() };
        operations.look_at(node);
        operations.prepare_deep(node)?;
        let source = operations.source(node)?;
        Ok((operations, source))
    }

    /// Has every so many levels of a deep expression computed by themselves, from the deepest on: what is found out by calls within calls ends
    /// at them, or they would fill the stack.
    fn prepare_deep(&mut self, node: &Arc<Node>) -> Result<()> {
        if node.depth < LANDING {
            return Ok(());
        }
        // How far each is above what is computed by itself.
        let mut levels = FxHashMap::default();
        // By their depth, since each is made of those below.
        let (mut left, mut deep) = (vec![node], vec![Vec::new(); (node.depth - LANDING) as usize + 1]);
        while let Some(next) = left.pop() {
            // What is not deep itself is made of nothing that is.
            if next.depth >= LANDING && levels.insert(Arc::as_ptr(next), 0).is_none() {
                deep[(next.depth - LANDING) as usize].push(next);
                left.extend(next.inputs());
            }
        }
        for node in deep.into_iter().flatten() {
            let mut level = 0;
            for input in node.inputs() {
                level = level.max(levels.get(&Arc::as_ptr(input)).copied().unwrap_or(input.depth as usize) + 1);
            }
            if level >= LANDING as usize {
                // Of what has both views and reshapes in turns something would have to be copied.
                no_bytes("what is viewed and reshaped", node.dtype)?;
                self.source(node)?;
                level = 0;
            }
            levels.insert(Arc::as_ptr(node), level);
        }
        Ok(())
    }

    /// Where a value is, row by row, once the operations so far are done.
    pub(super) fn source(&mut self, node: &Arc<Node>) -> Result<Source> {
        if let Some(&source) = self.made.get(&Arc::as_ptr(node)) {
            return Ok(source);
        }
        let source = match &node.what {
            What::Tensor(tensor) => self.tensor(tensor),
            What::Reshape(input) => self.source(input)?,
            What::Whole(op, inputs) => self.whole(op.clone(), inputs)?,
            What::Reduce(input, axes, fold, divisor) => self.reduction(input, axes, (*fold, *divisor))?,
            What::Normalize(input, axes, form, epsilon, beside) => self.normalize(node, input, axes, (*form, *epsilon), beside)?,
            _ => match (self.convolved(node), self.product(node)?) {
                (Some((op, inputs)), _) => self.whole(op, inputs)?,
                (None, Some(product)) => product,
                (None, None) => match self.ended(node)? {
                    Some(ended) => ended,
                    None => self.map(node)?,
                },
            },
        };
        self.made.insert(Arc::as_ptr(node), source);
        Ok(source)
    }

    /// The same of a value that is no part of the expression, but computes one.
    pub(super) fn source_of(&mut self, expr: &Expr) -> Result<Source> {
        let node = Arc::clone(expr.node()?);
        self.look_at(&node);
        self.more.push(Arc::clone(&node));
        self.source(&node)
    }

    /// The most invocations of a workgroup of kernels that take what follows them.
    pub(super) fn invocations(&self) -> u32 {
        self.fuses.as_ref().map_or(0, |(_, caps)| caps.max_workgroup_invocations)
    }

    /// Whether kernels that take what follows them are of workgroups.
    pub(super) fn has_workgroups(&self) -> bool {
        self.fuses.as_ref().is_some_and(|(backend, _)| *backend != BackendId::WebGl2)
    }

    /// Whether they write numbers of f16 one by one, two of which are a word.
    pub(super) fn writes_halves(&self) -> bool {
        match self.fuses {
            #[cfg(not(target_arch = "wasm32"))]
            Some((BackendId::Cuda, _)) => true,
            _ => false,
        }
    }

    fn tensor(&mut self, tensor: &Tensor) -> Source {
        let known = self.tensors.iter().position(|known| known.shares_memory_with(tensor));
        Source::Tensor(known.unwrap_or_else(|| {
            self.tensors.push(tensor.clone());
            self.tensors.len() - 1
        }))
    }

    /// Counts what each value is used for, and marks those that have to be computed apart.
    fn look_at(&mut self, node: &Arc<Node>) {
        let mut left = vec![(node, false)];
        while let Some((node, is_read_whole)) = left.pop() {
            let uses = self.uses.entry(Arc::as_ptr(node)).or_default();
            *uses += 1;
            if *uses == 1 {
                let reads_whole = matches!(node.what, What::Matmul(_) | What::Whole(..));
                left.extend(node.inputs().into_iter().rev().map(|input| (input, reads_whole)));
            } else if is_read_whole {
                self.apart.insert(Arc::as_ptr(node));
            }
        }
    }

    pub(super) fn is_used_once(&self, node: &Arc<Node>) -> bool {
        self.uses.get(&Arc::as_ptr(node)).is_none_or(|uses| *uses == 1) && !self.made.contains_key(&Arc::as_ptr(node))
    }

    /// Whether a value is in memory already, or will be.
    pub(super) fn is_stored(&self, node: &Arc<Node>) -> bool {
        matches!(node.what, What::Tensor(_)) || self.made.contains_key(&Arc::as_ptr(node))
    }

    pub(super) fn add(&mut self, op: Op, sources: Vec<Option<Source>>) -> Source {
        self.list.push(Operation { op, sources });
        Source::Made(self.list.len() - 1)
    }

    /// An operation of whole values.
    fn whole(&mut self, op: Op, inputs: &[Arc<Node>]) -> Result<Source> {
        let sources = inputs.iter().map(|input| self.source(input).map(Some)).collect::<Result<_>>()?;
        Ok(self.add(op, sources))
    }

    /// Has what a value is made of computed before it as far as it must be for the rest to fit one kernel.
    fn make_room(&mut self, node: &Arc<Node>) -> Result<()> {
        if self.is_stored(node) {
            return Ok(());
        }
        // On the way back from where it fits each level is asked anew: most of them do once what is below them is stored.
        for input in node.inputs() {
            if let Err(Refused::Full) = self.fused(input) {
                self.make_room(input)?;
            }
        }
        if let Err(Refused::Full) = self.fused(node) {
            for input in node.inputs() {
                if !matches!(input.what, What::Number(_) | What::Index) {
                    self.source(input)?;
                }
            }
        }
        Ok(())
    }

    /// An elementwise kernel for a value.
    fn map(&mut self, node: &Arc<Node>) -> Result<Source> {
        let (problem, sources) = match self.fused(node) {
            Err(Refused::Full) => {
                self.make_room(node)?;
                self.fused(node)
            }
            fused => fused,
        }
        .map_err(|refused| too_many_dimensions(refused, node.shape.len()))?;
        Ok(self.add(Op::Map(problem), sources.into_iter().map(Some).collect()))
    }

    /// What gives the elements of a value along all dimensions but the last ones given, and then along those: fused if there is room beside
    /// so many words more that the operation has to tell of itself.
    pub(super) fn values(&mut self, node: &Arc<Node>, last: &[usize], beside: &Beside<'_>, more: usize) -> Result<Values> {
        let rank = node.shape.len();
        let order: Vec<_> = (0..rank).filter(|dimension| !last.contains(dimension)).chain(last.iter().copied()).collect();
        let shape: Vec<_> = order.iter().map(|&dimension| node.shape[dimension]).collect();
        let mut axes = vec![Axis::FIRST; rank];
        order.iter().enumerate().for_each(|(at, &dimension)| axes[dimension] = Axis::along(at));
        let dtype = if node.dtype == DType::F16 { DType::F32 } else { node.dtype };
        let fused = |operations: &mut Self| {
            let mut kernel = Kernel::over(&shape);
            let value = kernel.value(operations, node, &axes, false)?;
            kernel.end_with(value);
            for input in beside.inputs {
                kernel.sources.push(operations.source(input)?);
                let view = kernel.lay(&input.shape, &repeated(&axes, &node.shape, &input.shape));
                kernel.beside.push(View { dtype: input.dtype, ..view });
            }
            if kernel.inputs.len() + kernel.beside.len() > MOST_INPUTS {
                return Err(Refused::Full);
            }
            if let Some(dtype) = beside.out {
                kernel.beside.push(View { dtype, ..kernel.lay(&node.shape, &axes) });
            }
            kernel.finish(dtype, rank - last.len(), more)
        };
        let mut found = fused(self);
        if matches!(found, Err(Refused::Full)) {
            // By itself first, and then there is one input.
            self.source(node)?;
            found = fused(self);
        }
        // Where none is last, one of size 1 stands for it.
        found.map_err(|refused| too_many_dimensions(refused, rank + usize::from(last.is_empty())))
    }

    fn fused(&mut self, node: &Arc<Node>) -> Result<(Problem, Vec<Source>), Refused> {
        no_bytes("what is copied or computed", node.dtype)?;
        let mut kernel = Kernel::over(&node.shape);
        let axes: Vec<_> = (0..node.shape.len()).map(Axis::along).collect();
        let value = kernel.value(self, node, &axes, true)?;
        kernel.end_with(value);
        debug_assert_eq!(kernel.program.result(), Kind::from(node.dtype), "{}", kernel.program);
        let Values { problem, sources, .. } = kernel.finish(node.dtype, 0, 0)?;
        Ok((problem, sources))
    }
}

/// What is wrong where a kernel has no room for a value that is read from memory alone.
fn too_many_dimensions(refused: Refused, rank: usize) -> Box<Error> {
    match refused {
        Refused::Full => Box::new(Error::LimitExceeded {
            what: "the number of dimensions of an operation",
            requested: rank as u64,
            max: MOST_DIMENSIONS as u64,
        }),
        Refused::Wrong(error) => error,
    }
}

/// What an operation sees beside its values.
#[derive(Default)]
pub(super) struct Beside<'a> {
    /// What is read, repeated to the shape of the values.
    pub inputs: &'a [Arc<Node>],
    /// The type of elements that are written where the values are in their own order.
    pub out: Option<DType>,
}

/// What gives the values of an operation.
pub(super) struct Values {
    pub problem: Problem,
    /// How many dimensions stand apart before the others.
    pub kept: usize,
    /// Where that is what the operation sees beside them.
    pub beside: Vec<View>,
    pub sources: Vec<Source>,
}
