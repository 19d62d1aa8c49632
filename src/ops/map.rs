//! Elementwise operations: each element of the result from one element of each input, wherever that lies.
//!
//! ```text
//! out[i₀, i₁, …] = program(in₀[offset₀ + Σ iⱼ·stride₀ⱼ], in₁[offset₁ + Σ iⱼ·stride₁ⱼ], …)
//! ```
//!
//! Broadcasting is a stride of 0, a transposition a change of strides, a slice an offset and a longer stride, a reversal a negative one: so
//! all of them are read in place, whatever is computed of them.

use std::sync::Arc;

use crate::dtype::DType;
use crate::ops::elementwise::Program;

/// The most inputs of a kernel: with the result one less than the storage buffers that every WebGPU device has.
pub const MOST_INPUTS: usize = 6;

/// The most dimensions, once those that lie behind one another are taken together.
pub const MOST_DIMENSIONS: usize = 6;

/// Where an operation finds an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// What the elements are.
    pub dtype: DType,
    /// The element for the result's first, which may lie outside where there are bounds.
    pub offset: i64,
    /// Elements further with each step along each dimension of the result.
    pub strides: Vec<i64>,
    /// For each dimension the first step that has an element, and the first behind them that has none; empty if all have.
    pub bounds: Vec<[u32; 2]>,
}

/// A checked elementwise operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The result's.
    pub shape: Vec<u32>,
    /// One for each input of the program.
    pub inputs: Vec<View>,
    /// What is computed of them.
    pub program: Arc<Program>,
    /// The program's scalars, as words.
    pub scalars: Vec<u32>,
    /// What the result's elements are.
    pub dtype: DType,
}

impl Problem {
    /// Elements of the result.
    pub fn elements(&self) -> u64 {
        self.shape.iter().map(|&size| u64::from(size)).product()
    }

    /// Whether rows of all inputs, and of what is seen beside them, lie behind one another, of which there are `kept` dimensions.
    pub fn lies_flat<'a>(&'a self, kept: usize, beside: impl IntoIterator<Item = &'a View>) -> bool {
        let [_, count] = self.shape[..] else { return false };
        let is_flat = |view: &View| view.bounds.is_empty() && (view.strides == [i64::from(count), 1] || view.strides == [0, 0]);
        kept == 1 && self.inputs.iter().chain(beside).all(is_flat)
    }

    /// Takes dimensions together that lie behind one another in all inputs, and drops those of size 1. The first `kept` dimensions
    /// stay apart from the others; gives how many of them are left.
    pub fn collapse(&mut self, mut kept: usize) -> usize {
        let mut dimension = self.shape.len();
        while dimension > 0 {
            dimension -= 1;
            let size = self.shape[dimension];
            if size == 1 && self.shape.len() > 1 && self.is_unbounded(dimension) {
                self.shape.remove(dimension);
                self.inputs.iter_mut().for_each(|input| input.remove(dimension));
                kept -= usize::from(dimension < kept);
                continue;
            }
            let behind = dimension + 1;
            let joins = |input: &View| input.strides[dimension] == input.strides[behind] * i64::from(self.shape[behind]);
            if behind < self.shape.len()
                && behind != kept
                && self.inputs.iter().all(joins)
                && self.is_unbounded(dimension)
                && self.is_unbounded(behind)
                && let Some(size) = size.checked_mul(self.shape[behind])
            {
                self.shape[behind] = size;
                self.inputs.iter_mut().filter_map(|input| input.bounds.get_mut(behind)).for_each(|bounds| *bounds = [0, size]);
                self.shape.remove(dimension);
                self.inputs.iter_mut().for_each(|input| input.remove(dimension));
                kept -= usize::from(dimension < kept);
            }
        }
        for input in &mut self.inputs {
            let all = |(bounds, &size): (&[u32; 2], &u32)| *bounds == [0, size];
            if input.bounds.iter().zip(&self.shape).all(all) {
                input.bounds.clear();
            }
        }
        kept
    }

    /// Adds a dimension of that size, along which all elements are the same, as the innermost.
    pub fn push(&mut self, size: u32) {
        self.shape.push(size);
        for input in &mut self.inputs {
            input.strides.push(0);
            if !input.bounds.is_empty() {
                input.bounds.push([0, size]);
            }
        }
    }

    /// Puts the first `count` dimensions behind the others.
    pub fn rotate(&mut self, count: usize) {
        self.shape.rotate_left(count);
        for input in &mut self.inputs {
            input.strides.rotate_left(count);
            if !input.bounds.is_empty() {
                input.bounds.rotate_left(count);
            }
        }
    }

    /// Puts a dimension behind those that follow it up to `end`.
    pub fn put_behind(&mut self, dimension: usize, end: usize) {
        self.shape[dimension..end].rotate_left(1);
        for input in &mut self.inputs {
            input.strides[dimension..end].rotate_left(1);
            if !input.bounds.is_empty() {
                input.bounds[dimension..end].rotate_left(1);
            }
        }
    }

    /// Whether every step along a dimension has an element in every input.
    fn is_unbounded(&self, dimension: usize) -> bool {
        let size = self.shape[dimension];
        self.inputs.iter().all(|input| input.bounds.get(dimension).is_none_or(|bounds| *bounds == [0, size]))
    }

    /// The least that a kernel moves: what it reads of each input, and the result. Memory gives whole sectors: of elements that lie apart
    /// comes what is between them, too.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn least_bytes(&self) -> u64 {
        /// What GPUs and CPUs read at least, of those that read little.
        const SECTOR_BYTES: u64 = 32;
        let apart = |input: &View| {
            let steps = self.shape.iter().zip(&input.strides).filter(|(size, stride)| **size > 1 && **stride != 0);
            steps.map(|(_, stride)| stride.unsigned_abs()).min().unwrap_or(1)
        };
        let read = |input: &View| {
            let steps = self.shape.iter().zip(&input.strides).enumerate().map(|(dimension, (&size, &stride))| match stride {
                0 => 1,
                _ => input.bounds.get(dimension).map_or(size, |[first, end]| end - first),
            });
            steps.map(u64::from).product::<u64>() * (apart(input) * input.dtype.bytes()).min(SECTOR_BYTES)
        };
        self.inputs.iter().map(read).sum::<u64>() + self.elements() * self.dtype.bytes()
    }
}

impl View {
    fn remove(&mut self, dimension: usize) {
        self.strides.remove(dimension);
        if !self.bounds.is_empty() {
            self.bounds.remove(dimension);
        }
    }

    /// The first and the last element that steps within those ranges, none of which is empty, lead to; of ranges outside of the view's bounds those
    /// next to them.
    pub fn reach(&self, ranges: &[[u32; 2]]) -> [i64; 2] {
        let mut reach = [self.offset; 2];
        for (dimension, (&[first, end], &stride)) in ranges.iter().zip(&self.strides).enumerate() {
            let [least, behind] = self.bounds.get(dimension).copied().unwrap_or([0, u32::MAX]);
            let ends = [first, end.max(1) - 1].map(|step| i64::from(step.min(behind.max(1) - 1).max(least)) * stride);
            reach = [reach[0] + ends[0].min(ends[1]), reach[1] + ends[0].max(ends[1])];
        }
        reach
    }

    /// The most elements that lie between and at the ends of so many steps along each dimension, wherever those begin.
    pub fn most_span(&self, steps: impl IntoIterator<Item = u32>) -> u64 {
        let along = |((dimension, steps), stride): ((usize, u32), &i64)| {
            let inside = self.bounds.get(dimension).map_or(u32::MAX, |[least, behind]| behind - least);
            u64::from(steps.min(inside).max(1) - 1) * stride.unsigned_abs()
        };
        steps.into_iter().enumerate().zip(&self.strides).map(along).sum::<u64>() + 1
    }
}
