//! Plans for elementwise operations whose inputs are transposed, as `shaders/map/turned.wgsl` and its twin for CUDA have them: read in the result's order, each
//! element of such an input would be another line of the cache.
//!
//! ```text
//! elements, number of the first,
//! sizes, the turned dimension's before the last one's,
//! for each input: offset, strides
//! strides of the result
//! scalars
//! ```

use std::sync::Arc;

use super::{OUT_BINDING, QUAD, inputs, ranges, words};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::map::{MOST_INPUTS, Problem, View};
use crate::plan::{Binding, Dispatch, Slot, Words};

/// Elements of a tile's side, and invocations and bytes of a workgroup.
const SIDE: u32 = 64;
const THREADS: u32 = 256;
const WORKGROUP_BYTES: u32 = SIDE * SIDE * 4;

/// Sizes below which most of a tile would be empty.
const LEAST: u32 = 16;

const NAMES: [&str; MOST_INPUTS] = ["TURNED_0", "TURNED_1", "TURNED_2", "TURNED_3", "TURNED_4", "TURNED_5"];

/// Which dimension takes part beside the last.
pub(super) struct Turned {
    dimension: usize,
}

impl Turned {
    /// That along which most inputs have their neighbours, if there is one, and the kernel can do all else that is asked of it: results of
    /// f16 whose rows are no whole fours are for those that write them one by one.
    pub(super) fn of(problem: &Problem, caps: &Caps, writes_halves: bool) -> Option<Self> {
        let (&last, others) = problem.shape.split_last()?;
        let fits = caps.max_workgroup_invocations >= THREADS && caps.max_workgroup_bytes >= WORKGROUP_BYTES;
        let is_whole = writes_halves || problem.dtype != DType::F16 || last.is_multiple_of(QUAD);
        let is_there = problem.inputs.iter().all(|input| input.bounds.is_empty());
        if !fits || !is_whole || !is_there || last < LEAST || words(problem) + problem.shape.len() > Words::MOST {
            return None;
        }
        let count = |dimension: usize| problem.inputs.iter().filter(|input| is_turned(input, dimension)).count();
        let dimension = (0..others.len()).filter(|&dimension| others[dimension] >= LEAST).max_by_key(|&dimension| count(dimension))?;
        (count(dimension) > 0).then_some(Self { dimension })
    }

    /// The turned dimension before the last.
    fn ordered<T: Clone>(&self, all: &[T]) -> Vec<T> {
        let mut all = all.to_vec();
        let end = all.len().saturating_sub(1);
        all[self.dimension..end].rotate_left(1);
        all
    }

    /// The launch for a part of the outermost dimension.
    pub(super) fn dispatch(&self, problem: &Problem, [first, end]: [u32; 2], caps: &Caps) -> Result<Dispatch> {
        let rank = problem.shape.len();
        let outer = u64::from(problem.shape[0].max(1));
        let row = problem.elements() / outer;
        let (count, before) = (u64::from(end - first) * row, u64::from(first) * row);
        let mut shape = problem.shape.clone();
        shape[0] = end - first;
        let mut strides = vec![1u32; rank];
        for dimension in (1..rank).rev() {
            strides[dimension - 1] = strides[dimension] * shape[dimension];
        }
        let views: Vec<_> = problem.inputs.iter().map(|input| View { strides: self.ordered(&input.strides), ..input.clone() }).collect();
        let (sizes, ranges) = (self.ordered(&shape), self.ordered(&ranges(problem, [first, end])));
        let mut words = Words::default();
        words.push(count as u32)?;
        words.push(before as u32)?;
        sizes.iter().try_for_each(|&size| words.push(size))?;
        let (mut readings, mut bindings) = inputs(&views, &ranges, true, caps, &mut words)?;
        for (reading, view) in readings.iter_mut().zip(&views) {
            if is_turned(view, rank - 2) {
                let offset = words.get()[reading.at as usize].cast_signed();
                let others = view.strides.iter().enumerate().filter(|(dimension, _)| *dimension != rank - 2);
                let is_aligned = others.map(|(_, stride)| *stride).chain([offset.into()]).all(|number| number % i64::from(QUAD) == 0);
                (reading.is_turned, reading.is_vec4) = (true, view.strides[rank - 2] == 1 && is_aligned);
            }
        }
        // Fours are vectors where all of a kind are.
        let is_whole = sizes[rank - 1].is_multiple_of(QUAD);
        let is_aligned = readings.iter().all(|reading| !reading.is_turned || reading.is_vec4);
        for reading in &mut readings {
            reading.is_vec4 &= if reading.is_turned { is_aligned } else { is_whole };
        }
        let is_narrow = readings.iter().all(|reading| !reading.is_turned || reading.dtype == DType::F16);
        let out_at = words.length();
        self.ordered(&strides).iter().try_for_each(|&stride| words.push(stride))?;
        let scalars_at = words.length();
        problem.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
        let bytes = problem.dtype.bytes();
        let size_bytes = (count * bytes).next_multiple_of(16);
        bindings.push(Binding { slot: Slot::Out, index: OUT_BINDING, offset_bytes: before * bytes, size_bytes });
        let mut constants = vec![
            ("THREADS", THREADS),
            ("RANK", rank as u32),
            ("OUTER", rank as u32 - 2),
            ("EDGES", 1),
            ("HALVES", is_narrow.into()),
            ("QUAD", 0),
            ("INPUTS", readings.len() as u32),
            ("OUT_AT", out_at),
            ("SCALARS", scalars_at),
            ("WHOLE", is_whole.into()),
            ("ALIGNED", is_aligned.into()),
            ("RESULT_F16", u32::from(problem.dtype == DType::F16)),
            ("RESULT_BOOL", u32::from(problem.dtype == DType::Bool)),
        ];
        constants.extend(NAMES.into_iter().zip(&readings).map(|(name, reading)| (name, u32::from(reading.is_turned))));
        let source =
            Source { program: Arc::clone(&problem.program), inputs: readings, beside: Vec::new(), result: problem.dtype, end: None };
        let kernel = Kernel { id: KernelId::MapTurned, variant: problem.program.to_string(), constants, source: Some(Arc::new(source)) };
        let [across, down] = [sizes[rank - 1], sizes[rank - 2]].map(|size| size.div_ceil(SIDE));
        let workgroups = sizes[..rank - 2].iter().product::<u32>() * across * down;
        let x = workgroups.min(caps.max_workgroups_per_dimension);
        Ok(Dispatch { kernel, params: words.into(), bindings, grid: [x, workgroups.div_ceil(x.max(1)), 1] })
    }
}

/// Whether an input's neighbours lie along a dimension and not along the last.
fn is_turned(input: &View, dimension: usize) -> bool {
    let is_near = |stride: Option<&i64>| stride.is_some_and(|stride| stride.abs() == 1);
    is_near(input.strides.get(dimension)) && input.strides.last().is_some_and(|stride| stride.unsigned_abs() > 1)
}
