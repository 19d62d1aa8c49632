//! From an expression to operations: what can be one kernel becomes one.
//!
//! Views, numbers and functions go into the kernel of whatever is made of them: a view changes how an input is read, and costs nothing. A
//! value is computed by itself only where that cannot be: before an operation that is not elementwise, in another shape than its
//! inputs are stored in, or where a kernel would have more inputs than it can.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::node::{Axis, Node, What};
use super::shape;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::Op;
use crate::ops::elementwise::{Kind, Program, Step};
use crate::ops::map::{MOST_DIMENSIONS, MOST_INPUTS, Problem, View};
use crate::plan::{self, Words};
use crate::tensor::Tensor;

/// The most scalars of a kernel.
const MOST_SCALARS: usize = 16;

/// What an operation reads.
#[derive(Clone)]
pub(crate) enum Source {
    /// A tensor of the caller's.
    Tensor(Tensor),
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
    made: HashMap<*const Node, Source>,
    /// Values that are computed by themselves, since operations apart from one another read them.
    apart: HashSet<*const Node>,
    /// How many others are made of each.
    uses: HashMap<*const Node, usize>,
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

impl Operations {
    /// Those of an expression, and which of them gives its value.
    pub fn of(node: &Arc<Node>) -> Result<(Self, Source)> {
        let mut operations = Self::default();
        operations.look_at(node);
        let source = operations.source(node)?;
        Ok((operations, source))
    }

    /// Where a value is, row by row, once the operations so far are done.
    pub(super) fn source(&mut self, node: &Arc<Node>) -> Result<Source> {
        if let Some(source) = self.made.get(&Arc::as_ptr(node)) {
            return Ok(source.clone());
        }
        let source = match &node.what {
            What::Tensor(tensor) => return Ok(Source::Tensor(tensor.clone())),
            What::Reshape(input) => self.source(input)?,
            What::Whole(op, inputs) => self.whole(op.clone(), inputs)?,
            What::Reduce(input, axes, fold, divisor) => self.reduction(input, axes, (*fold, *divisor))?,
            What::Normalize(input, axes, form, epsilon, beside) => self.normalize(node, input, axes, (*form, *epsilon), beside)?,
            _ => match (self.convolved(node), self.product(node)?) {
                (Some((op, inputs)), _) => self.whole(op, inputs)?,
                (None, Some(product)) => product,
                (None, None) => self.map(node)?,
            },
        };
        self.made.insert(Arc::as_ptr(node), source.clone());
        Ok(source)
    }

    /// Counts what each value is used for, and marks those that have to be computed apart.
    fn look_at(&mut self, node: &Arc<Node>) {
        for input in node.inputs() {
            let uses = self.uses.entry(Arc::as_ptr(input)).or_default();
            *uses += 1;
            let is_first = *uses == 1;
            if !is_first && matches!(node.what, What::Matmul(_) | What::Whole(..)) {
                self.apart.insert(Arc::as_ptr(input));
            }
            if is_first {
                self.look_at(input);
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

    /// An elementwise kernel for a value.
    fn map(&mut self, node: &Arc<Node>) -> Result<Source> {
        let (problem, sources) = match self.fused(node) {
            Err(Refused::Full) => {
                // What it is made of first, and then there is room.
                for input in node.inputs() {
                    if !matches!(input.what, What::Number(_) | What::Index) {
                        self.source(input)?;
                    }
                }
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
        found.map_err(|refused| too_many_dimensions(refused, rank))
    }

    fn fused(&mut self, node: &Arc<Node>) -> Result<(Problem, Vec<Source>), Refused> {
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

/// A kernel in the making.
struct Kernel {
    shape: Vec<u32>,
    program: Program,
    inputs: Vec<View>,
    sources: Vec<Source>,
    /// What it does not read for the values themselves.
    beside: Vec<View>,
    scalars: Vec<u32>,
    /// Values that it has already, by how they are read.
    known: HashMap<(*const Node, Vec<Axis>), u8>,
    /// The same of those that are read in their order.
    in_order: Vec<(*const Node, View, u8)>,
}

impl Kernel {
    fn over(shape: &[u64]) -> Self {
        Self {
            // A shape was checked when its node was made.
            shape: shape.iter().map(|&size| size as u32).collect(),
            program: Program::default(),
            inputs: Vec::new(),
            sources: Vec::new(),
            beside: Vec::new(),
            scalars: Vec::new(),
            known: HashMap::new(),
            in_order: Vec::new(),
        }
    }

    /// Makes a value the last step, which is the result.
    fn end_with(&mut self, value: u8) {
        if value != self.program.last() {
            let kind = self.program.kind(value);
            self.program.steps.push(Step::Cast(value, kind));
        }
    }

    /// The kernel's operation, the first `kept` dimensions apart from the others, of which there is one at least. `more` words are to be
    /// left beside its own.
    fn finish(self, dtype: DType, kept: usize, more: usize) -> Result<Values, Refused> {
        let Self { shape, program, mut inputs, beside, sources, scalars, .. } = self;
        let own = inputs.len();
        inputs.extend(beside);
        let mut problem = Problem { shape, inputs, program: Arc::new(program), scalars, dtype };
        let kept = problem.collapse(kept);
        if problem.shape.len() == kept {
            problem.push(1);
        }
        let fits = problem.shape.len() <= MOST_DIMENSIONS && plan::map::words(&problem) + more <= Words::MOST;
        let beside = problem.inputs.split_off(own);
        if fits { Ok(Values { problem, kept, beside, sources }) } else { Err(Refused::Full) }
    }

    fn add(&mut self, step: Step) -> Result<u8, Refused> {
        let step = self.program.add(step);
        if self.program.steps.len() > Program::MOST_STEPS { Err(Refused::Full) } else { Ok(step) }
    }

    /// The step that gives a value, which is read along those axes of the kernel. `is_result` if it is what the kernel writes.
    fn value(&mut self, operations: &mut Operations, node: &Arc<Node>, axes: &[Axis], is_result: bool) -> Result<u8, Refused> {
        let key = (Arc::as_ptr(node), axes.to_vec());
        if let Some(&step) = self.known.get(&key) {
            return Ok(step);
        }
        let step = self.found(operations, node, axes, is_result)?;
        self.known.insert(key, step);
        Ok(step)
    }

    fn found(&mut self, operations: &mut Operations, node: &Arc<Node>, axes: &[Axis], is_result: bool) -> Result<u8, Refused> {
        let is_apart = matches!(node.what, What::Matmul(_) | What::Whole(..))
            || operations.made.contains_key(&Arc::as_ptr(node))
            || operations.apart.contains(&Arc::as_ptr(node));
        if !is_result && is_apart {
            return self.stored(operations, node, axes);
        }
        match &node.what {
            What::Tensor(_) | What::Whole(..) | What::Reduce(..) => self.stored(operations, node, axes),
            What::Normalize(..) => self.stored(operations, node, axes),
            What::Number(value) => self.scalar(*value, node.dtype),
            What::Index => self.linear(operations, node, &self.lay(&node.shape, axes)),
            What::Apply(function, inputs) => {
                let mut operands = [0; 2];
                for (operand, input) in operands.iter_mut().zip(inputs) {
                    *operand = self.value(operations, input, &repeated(axes, &node.shape, &input.shape), false)?;
                }
                if inputs.len() == 1 {
                    operands[1] = operands[0];
                }
                self.add(Step::Apply(*function, operands))
            }
            What::Select(inputs) => {
                let mut operands = [0; 3];
                for (operand, input) in operands.iter_mut().zip(inputs) {
                    *operand = self.value(operations, input, &repeated(axes, &node.shape, &input.shape), false)?;
                }
                let [condition, yes, no] = operands;
                self.add(Step::Select([condition, no, yes]))
            }
            // It rounds, and so is written.
            What::Cast(_) if node.dtype == DType::F16 && !is_result => self.stored(operations, node, axes),
            What::Cast(input) => {
                let operand = self.value(operations, input, axes, false)?;
                self.cast(operand, node.dtype)
            }
            What::View(input, view) => {
                let axes: Vec<_> = view.iter().map(|axis| axis.of(axes)).collect();
                self.value(operations, input, &axes, false)
            }
            What::Reshape(input) => {
                let place = self.lay(&node.shape, axes);
                self.linear(operations, input, &place)
            }
            What::Matmul(_) => self.stored(operations, node, axes),
            What::Pad(input, before, around) => self.pad(operations, node, [input, around], before, axes),
        }
    }

    fn cast(&mut self, operand: u8, dtype: DType) -> Result<u8, Refused> {
        let kind = Kind::from(dtype);
        if self.program.kind(operand) == kind { Ok(operand) } else { self.add(Step::Cast(operand, kind)) }
    }

    fn scalar(&mut self, value: f64, dtype: DType) -> Result<u8, Refused> {
        let kind = Kind::from(dtype);
        let word = word(value, dtype);
        let known = (0..self.scalars.len())
            .find(|&scalar| self.scalars[scalar] == word && self.program.steps.contains(&Step::Scalar(scalar as u8, kind)));
        let scalar = known.unwrap_or(self.scalars.len());
        if known.is_none() {
            self.scalars.push(word);
        }
        if scalar >= MOST_SCALARS { Err(Refused::Full) } else { self.add(Step::Scalar(scalar as u8, kind)) }
    }

    /// Where the elements of a shape are, row by row, that those axes lead to.
    fn lay(&self, shape: &[u64], axes: &[Axis]) -> View {
        let mut view = View { dtype: DType::U32, offset: 0, strides: vec![0; self.shape.len()], bounds: Vec::new() };
        for (axis, stride) in axes.iter().zip(shape::strides(shape)) {
            view.offset += axis.start * stride;
            if let Some(dimension) = axis.follows {
                view.strides[dimension] += axis.step * stride;
            }
        }
        view
    }

    /// A value that is in memory, or will be.
    fn stored(&mut self, operations: &mut Operations, node: &Arc<Node>, axes: &[Axis]) -> Result<u8, Refused> {
        let source = operations.source(node)?;
        let view = self.lay(&node.shape, axes);
        self.input(source, View { dtype: node.dtype, ..view })
    }

    fn input(&mut self, source: Source, view: View) -> Result<u8, Refused> {
        let is_same = |known: &Source| match (known, &source) {
            (Source::Tensor(known), Source::Tensor(source)) => known.shares_memory_with(source),
            (Source::Made(known), Source::Made(source)) => known == source,
            _ => false,
        };
        let known = (0..self.inputs.len()).find(|&input| self.inputs[input] == view && is_same(&self.sources[input]));
        let input = known.unwrap_or(self.inputs.len());
        if known.is_none() {
            if input == MOST_INPUTS {
                return Err(Refused::Full);
            }
            self.program.inputs.push(view.dtype.into());
            self.inputs.push(view);
            self.sources.push(source);
        }
        self.add(Step::Input(input as u8))
    }

    /// A value whose elements are read at a place in their order, row by row.
    fn linear(&mut self, operations: &mut Operations, node: &Arc<Node>, place: &View) -> Result<u8, Refused> {
        let node_is = Arc::as_ptr(node);
        if let Some((.., step)) = self.in_order.iter().find(|(known, at, _)| *known == node_is && at == place) {
            return Ok(*step);
        }
        let step = self.linear_anew(operations, node, place)?;
        self.in_order.push((node_is, place.clone(), step));
        Ok(step)
    }

    fn linear_anew(&mut self, operations: &mut Operations, node: &Arc<Node>, place: &View) -> Result<u8, Refused> {
        let is_made = operations.made.contains_key(&Arc::as_ptr(node)) || operations.apart.contains(&Arc::as_ptr(node));
        match &node.what {
            What::Number(value) => self.scalar(*value, node.dtype),
            What::Reshape(input) if !is_made => self.linear(operations, input, place),
            What::Index if !is_made && place.offset == 0 && place.strides == self.rows() => self.add(Step::Index),
            // A function of values that are all stored in the same order.
            What::Apply(function, inputs) if !is_made && inputs.iter().all(|input| input.shape == node.shape || input.elements() == 1) => {
                let mut operands = [0; 2];
                for (operand, input) in operands.iter_mut().zip(inputs) {
                    let first = View { offset: 0, strides: vec![0; place.strides.len()], ..place.clone() };
                    *operand = self.linear(operations, input, if input.elements() == 1 { &first } else { place })?;
                }
                if inputs.len() == 1 {
                    operands[1] = operands[0];
                }
                self.add(Step::Apply(*function, operands))
            }
            What::Cast(input) if !is_made && node.dtype != DType::F16 => {
                let operand = self.linear(operations, input, place)?;
                self.cast(operand, node.dtype)
            }
            _ => {
                let source = operations.source(node)?;
                self.input(source, View { dtype: node.dtype, ..place.clone() })
            }
        }
    }

    /// The kernel's own order, row by row.
    fn rows(&self) -> Vec<i64> {
        shape::strides(&self.shape.iter().map(|&size| size.into()).collect::<Vec<_>>())
    }

    /// A value where it is, and what is around it elsewhere.
    fn pad(
        &mut self,
        operations: &mut Operations,
        node: &Arc<Node>,
        [input, around]: [&Arc<Node>; 2],
        before: &[u64],
        axes: &[Axis],
    ) -> Result<u8, Refused> {
        let around = self.value(operations, around, &repeated(axes, &node.shape, &around.shape), false)?;
        let mut bounds: Vec<[u32; 2]> = self.shape.iter().map(|&size| [0, size]).collect();
        let mut inner = Vec::with_capacity(axes.len());
        for ((axis, &before), &size) in axes.iter().zip(before).zip(&input.shape) {
            let (start, size) = (axis.start - before as i64, size as i64);
            inner.push(Axis { start, ..*axis });
            let Some(dimension) = axis.follows.filter(|_| axis.step != 0) else {
                if !(0..size).contains(&start) {
                    return Ok(around);
                }
                continue;
            };
            // The steps i for which 0 ≤ start + step · i < size.
            let [first, end] = if axis.step > 0 {
                [-start, size - start].map(|edge| -(-edge).div_euclid(axis.step))
            } else {
                [start - size + 1, start + 1].map(|edge| -(-edge).div_euclid(-axis.step))
            };
            let bounds = &mut bounds[dimension];
            let within = |step: i64| step.clamp(0, i64::from(self.shape[dimension])) as u32;
            *bounds = [bounds[0].max(within(first)), bounds[1].min(within(end))];
            if bounds[0] >= bounds[1] {
                return Ok(around);
            }
        }
        // Read in place if it is a tensor seen in some way, else computed before.
        let (stored, axes) = in_place(input, inner);
        let source = operations.source(stored)?;
        let view = self.lay(&stored.shape, &axes);
        let value = self.input(source, View { dtype: input.dtype, bounds, ..view })?;
        let inside = match self.program.steps[usize::from(value)] {
            Step::Input(number) => self.add(Step::Inside(number))?,
            _ => value,
        };
        self.add(Step::Select([inside, around, value]))
    }
}

/// What a value is a view of, and the axes along which that is read.
fn in_place(node: &Arc<Node>, axes: Vec<Axis>) -> (&Arc<Node>, Vec<Axis>) {
    match &node.what {
        What::View(input, view) => in_place(input, view.iter().map(|axis| axis.of(&axes)).collect()),
        _ => (node, axes),
    }
}

/// The axes of an operand that is repeated to the shape of what it goes into.
fn repeated(axes: &[Axis], shape: &[u64], operand: &[u64]) -> Vec<Axis> {
    let more = shape.len() - operand.len();
    operand.iter().zip(&axes[more..]).zip(&shape[more..]).map(|((&size, axis), &of)| if size == of { *axis } else { Axis::FIRST }).collect()
}

/// A number as a word of that type.
fn word(value: f64, dtype: DType) -> u32 {
    match Kind::from(dtype) {
        Kind::F32 => (value as f32).to_bits(),
        Kind::I32 => (value as i32).cast_unsigned(),
        Kind::U32 => value as u32,
        Kind::Bool => u32::from(value != 0.0),
    }
}
