//! A kernel in the making: a program, what it reads and how.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::super::methods::no_bytes;
use super::super::node::{Axis, Node, What};
use super::super::shape;
use super::{Operations, Refused, Source, Values};
use crate::dtype::DType;
use crate::ops::elementwise::{Function, Kind, Program, Step};
use crate::ops::map::{MOST_DIMENSIONS, MOST_INPUTS, Problem, View};
use crate::plan::{self, Words};

/// The most scalars of a kernel.
const MOST_SCALARS: usize = 16;

/// The most values of a kernel and ways to read them: many more than it has steps.
const MOST_KNOWN: usize = 4096;

/// A kernel in the making.
pub(super) struct Kernel {
    shape: Vec<u32>,
    pub(super) program: Program,
    pub(super) inputs: Vec<View>,
    pub(super) sources: Vec<Source>,
    /// What it does not read for the values themselves.
    pub(super) beside: Vec<View>,
    scalars: Vec<u32>,
    /// Values that it has already, by how they are read.
    known: FxHashMap<(*const Node, Vec<Axis>), u8>,
    /// The same of those that are read in their order.
    in_order: Vec<(*const Node, View, u8)>,
}

impl Kernel {
    pub(super) fn over(shape: &[u64]) -> Self {
        Self {
            // A shape was checked when its node was made.
            shape: shape.iter().map(|&size| size as u32).collect(),
            program: Program::default(),
            inputs: Vec::new(),
            sources: Vec::new(),
            beside: Vec::new(),
            scalars: Vec::new(),
            known: FxHashMap::default(),
            in_order: Vec::new(),
        }
    }

    /// Makes a value the last step, which is the result.
    pub(super) fn end_with(&mut self, value: u8) {
        if value != self.program.last() {
            let kind = self.program.kind(value);
            self.program.steps.push(Step::Cast(value, kind));
        }
    }

    /// The kernel's operation, the first `kept` dimensions apart from the others, of which there is one at least. `more` words are to be
    /// left beside its own.
    pub(super) fn finish(self, dtype: DType, kept: usize, more: usize) -> Result<Values, Refused> {
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
    pub(super) fn value(&mut self, operations: &mut Operations, node: &Arc<Node>, axes: &[Axis], is_result: bool) -> Result<u8, Refused> {
        let key = (Arc::as_ptr(node), axes.to_vec());
        if let Some(&step) = self.known.get(&key) {
            return Ok(step);
        }
        // The same value along as many axes as there are ways to it takes no step more, but time.
        if self.known.len() >= MOST_KNOWN {
            return Err(Refused::Full);
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
                self.apply(*function, operands, inputs)
            }
            What::Select(inputs) => {
                let mut operands = [0; 3];
                for (operand, input) in operands.iter_mut().zip(inputs) {
                    *operand = self.value(operations, input, &repeated(axes, &node.shape, &input.shape), false)?;
                }
                let [condition, yes, no] = operands;
                self.add(Step::Select([condition, no, yes]))
            }
            What::Cast(input) => {
                let operand = self.value(operations, input, axes, false)?;
                self.cast(operand, input.dtype, node.dtype, is_result)
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

    /// A function of values, of which there is one or two. What tells them apart by more than their sizes sees those that their type has.
    fn apply(&mut self, function: Function, mut operands: [u8; 2], of: &[Arc<Node>]) -> Result<u8, Refused> {
        let is_f16 = of.iter().all(|operand| operand.dtype == DType::F16);
        if of.len() == 1 {
            operands[1] = operands[0];
        }
        if is_f16 && jumps(function) {
            for operand in &mut operands {
                *operand = self.rounded(*operand)?;
            }
        }
        if is_f16 && function == Function::RoundToF16 { Ok(operands[0]) } else { self.add(Step::Apply(function, operands)) }
    }

    /// A value of one type as another. What is written as f16 is rounded there.
    fn cast(&mut self, mut operand: u8, from: DType, to: DType, is_result: bool) -> Result<u8, Refused> {
        if from == DType::F16 && to != DType::F16 {
            operand = self.rounded(operand)?;
        }
        let kind = Kind::from(to);
        if self.program.kind(operand) != kind {
            operand = self.add(Step::Cast(operand, kind))?;
        }
        if to != DType::F16 || is_result || [DType::F16, DType::Bool].contains(&from) {
            return Ok(operand);
        }
        self.add(Step::Apply(Function::RoundToF16, [operand; 2]))
    }

    /// A value of f16, which is computed in f32, as an f16 holds it.
    fn rounded(&mut self, value: u8) -> Result<u8, Refused> {
        // Of each step one bit.
        let mut rounded = 0u128;
        for (number, step) in self.program.steps.iter().enumerate().take(usize::from(value) + 1) {
            let has = |operand: u8| rounded >> operand & 1 == 1;
            let is_rounded = match *step {
                Step::Input(_) | Step::Scalar(..) => true,
                Step::Select([_, no, yes]) => has(no) && has(yes),
                Step::Apply(function, [a, b]) => function == Function::RoundToF16 || has(a) && has(b) && keeps_f16(function),
                Step::Cast(of, _) => self.program.kind(of) == Kind::Bool,
                _ => false,
            };
            rounded |= u128::from(is_rounded) << number;
        }
        if rounded >> value & 1 == 1 { Ok(value) } else { self.add(Step::Apply(Function::RoundToF16, [value; 2])) }
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
    pub(super) fn lay(&self, shape: &[u64], axes: &[Axis]) -> View {
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

    pub(super) fn input(&mut self, source: Source, view: View) -> Result<u8, Refused> {
        no_bytes("what a kernel copies or computes with", view.dtype)?;
        let known = (0..self.inputs.len()).find(|&input| self.inputs[input] == view && self.sources[input] == source);
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
        if let (What::Index, false, Some(step)) = (&node.what, is_made, self.step_of_rows(place)) {
            return self.counted(step, place.offset);
        }
        match &node.what {
            What::Number(value) => self.scalar(*value, node.dtype),
            What::Reshape(input) if !is_made => self.linear(operations, input, place),
            // A function of values that are all stored in the same order.
            What::Apply(function, inputs) if !is_made && inputs.iter().all(|input| input.shape == node.shape || input.elements() == 1) => {
                let mut operands = [0; 2];
                for (operand, input) in operands.iter_mut().zip(inputs) {
                    let first = View { offset: 0, strides: vec![0; place.strides.len()], ..place.clone() };
                    *operand = self.linear(operations, input, if input.elements() == 1 { &first } else { place })?;
                }
                self.apply(*function, operands, inputs)
            }
            What::Cast(input) if !is_made => {
                let operand = self.linear(operations, input, place)?;
                self.cast(operand, input.dtype, node.dtype, false)
            }
            _ => {
                let source = operations.source(node)?;
                self.input(source, View { dtype: node.dtype, ..place.clone() })
            }
        }
    }

    /// How far apart a place's elements are, where that is the same from each to the next.
    fn step_of_rows(&self, place: &View) -> Option<i64> {
        // Of none they are as far apart as one likes.
        if self.shape.contains(&0) {
            return Some(1);
        }
        let (mut row, mut step) = (1, None);
        for (&size, &stride) in self.shape.iter().zip(&place.strides).rev() {
            if size > 1 && stride != row * *step.get_or_insert(stride) {
                return None;
            }
            row *= i64::from(size);
        }
        Some(step.unwrap_or(1))
    }

    /// The number of each element times a step, and an offset; modulo 2³², as all places are.
    fn counted(&mut self, step: i64, offset: i64) -> Result<u8, Refused> {
        let mut value = self.add(Step::Index)?;
        for (function, number, neutral) in [(Function::Mul, step, 1), (Function::Add, offset, 0)] {
            if number != neutral {
                let number = self.scalar(f64::from(number as u32), DType::U32)?;
                value = self.add(Step::Apply(function, [value, number]))?;
            }
        }
        Ok(value)
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
        // All of what is seen is inside.
        if bounds.iter().zip(&self.shape).all(|(bounds, &size)| *bounds == [0, size]) {
            return self.value(operations, input, &inner, false);
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

/// Whether a function of numbers that lie close to one another may give others that do not.
fn jumps(function: Function) -> bool {
    use Function::{Ceil, Floor, IsInf, Mod, Rem, Round, RoundToF16, Sign, Trunc};
    use Function::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    matches!(function, Ceil | Floor | Mod | Rem | Round | RoundToF16 | Sign | Trunc | IsInf)
        || matches!(function, Equal | Greater | GreaterEqual | Less | LessEqual | NotEqual)
}

/// Whether a function of numbers of f16 gives such a number.
fn keeps_f16(function: Function) -> bool {
    use Function::{Abs, Ceil, Floor, Max, Min, Neg, Relu, Round, Sign, Trunc};
    matches!(function, Abs | Ceil | Floor | Max | Min | Neg | Relu | Round | Sign | Trunc)
}

/// What a value is a view of, and the axes along which that is read.
fn in_place(node: &Arc<Node>, axes: Vec<Axis>) -> (&Arc<Node>, Vec<Axis>) {
    match &node.what {
        What::View(input, view) => (input, view.iter().map(|axis| axis.of(&axes)).collect()),
        _ => (node, axes),
    }
}

/// The axes of an operand that is repeated to the shape of what it goes into.
pub(super) fn repeated(axes: &[Axis], shape: &[u64], operand: &[u64]) -> Vec<Axis> {
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
