//! Plans for elementwise operations whose inputs are transposed, as `shaders/map/turned.wgsl` and its twin for CUDA have them: read in the result's order, each
//! element of such an input would be another line of the cache.
//!
//! ```text
//! elements, number of the first,
//! sizes, the turned dimension's before the last one's,
//! for each input: offset, strides
//! strides of the result, and the sides of tiles along the last two if one of those is short
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
pub(super) const SIDE: u32 = 64;
pub(super) const THREADS: u32 = 256;
pub(super) const WORKGROUP_BYTES: u32 = SIDE * SIDE * 4;

/// Sizes below which most of a square tile would be empty, and elements of a long one with which workgroups are worth their while.
pub(super) const LEAST: u32 = 16;
pub(super) const LEAST_NARROW: u32 = 1024;

const NAMES: [&str; MOST_INPUTS] = ["TURNED_0", "TURNED_1", "TURNED_2", "TURNED_3", "TURNED_4", "TURNED_5"];

/// Which dimension takes part beside the last.
pub(super) struct Turned {
    dimension: usize,
    /// Elements of a tile's sides along it and along the last, if one of the two is short.
    narrow: Option<[u32; 2]>,
}

impl Turned {
    /// That along which most inputs have their neighbours, if there is one, and the kernel can do all else that is asked of it: results of
    /// f16 whose rows are no whole fours are for devices that write them one by one.
    pub(super) fn of(problem: &Problem, caps: &Caps) -> Option<Self> {
        let (&last, others) = problem.shape.split_last()?;
        let fits = caps.max_workgroup_invocations >= THREADS && caps.max_workgroup_bytes >= WORKGROUP_BYTES;
        let is_there = problem.inputs.iter().all(|input| input.bounds.is_empty());
        if !fits || !is_there || last < 2 || words(problem) + problem.shape.len() + 2 > Words::MOST {
            return None;
        }
        let count = |dimension: usize| problem.inputs.iter().filter(|input| is_turned(input, dimension)).count();
        let dimension = (0..others.len()).filter(|&dimension| others[dimension] > 1).max_by_key(|&dimension| count(dimension))?;
        let size = others[dimension];
        let narrow = (last.min(size) < LEAST).then(|| sides(size, last));
        let is_full = narrow.is_none_or(|[high, wide]| high.min(size) * wide.min(last) >= LEAST_NARROW && count(dimension) == 1);
        let is_whole = caps.stores_f16 || problem.dtype != DType::F16 || narrow.is_none() && last.is_multiple_of(QUAD);
        (count(dimension) > 0 && is_full && is_whole).then_some(Self { dimension, narrow })
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
        let views: Vec<_> =
            problem.inputs.iter().map(|input| View { strides: ordered(&input.strides, self.dimension), ..input.clone() }).collect();
        let (sizes, ranges) = (ordered(&shape, self.dimension), ordered(&ranges(problem, [first, end]), self.dimension));
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
        let is_whole = self.narrow.is_none() && sizes[rank - 1].is_multiple_of(QUAD);
        let is_aligned = self.narrow.is_none() && readings.iter().all(|reading| !reading.is_turned || reading.is_vec4);
        for reading in &mut readings {
            reading.is_vec4 &= if reading.is_turned { is_aligned } else { is_whole };
        }
        let are_halves = self.narrow.is_none() && readings.iter().all(|reading| !reading.is_turned || reading.dtype == DType::F16);
        let out_at = words.length();
        ordered(&strides, self.dimension).iter().chain(self.narrow.iter().flatten()).try_for_each(|&word| words.push(word))?;
        let scalars_at = words.length();
        problem.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
        let bytes = problem.dtype.bytes();
        let size_bytes = (count * bytes).next_multiple_of(16);
        bindings.push(Binding { slot: Slot::Out, index: OUT_BINDING, offset_bytes: before * bytes, size_bytes });
        let is_half = problem.dtype == DType::F16;
        let mut constants = vec![
            ("THREADS", THREADS),
            ("RANK", rank as u32),
            ("OUTER", rank as u32 - 2),
            ("EDGES", 1),
            ("NARROW", self.narrow.is_some().into()),
            ("TALL", self.narrow.is_some_and(|[high, wide]| high > wide).into()),
            ("EACH", QUAD),
            ("HALVES", are_halves.into()),
            ("QUAD", 0),
            ("INPUTS", readings.len() as u32),
            ("OUT_AT", out_at),
            ("SCALARS", scalars_at),
            ("WHOLE", is_whole.into()),
            ("ALIGNED", is_aligned.into()),
            ("RESULT_F16", is_half.into()),
            ("PACKED", u32::from(is_half && is_whole)),
            ("HALF", u32::from(is_half && !is_whole)),
            ("RESULT_BOOL", u32::from(problem.dtype == DType::Bool)),
        ];
        constants.extend(NAMES.into_iter().zip(&readings).map(|(name, reading)| (name, u32::from(reading.is_turned))));
        let source =
            Source { program: Arc::clone(&problem.program), inputs: readings, beside: Vec::new(), result: problem.dtype, end: None };
        let kernel = Kernel { id: KernelId::MapTurned, variant: problem.program.to_string(), constants, source: Some(Arc::new(source)) };
        let [high, wide] = self.narrow.unwrap_or([SIDE; 2]);
        let (across, down) = (sizes[rank - 1].div_ceil(wide), sizes[rank - 2].div_ceil(high));
        let workgroups = sizes[..rank - 2].iter().product::<u32>() * across * down;
        let x = workgroups.min(caps.max_workgroups_per_dimension);
        Ok(Dispatch { kernel, params: words.into(), bindings, grid: [x, workgroups.div_ceil(x.max(1)), 1] })
    }
}

/// The sides of a tile that has all of the shorter dimension, and of the other so many times a workgroup's elements that there is room for them
/// an odd number of words apart.
fn sides(size: u32, last: u32) -> [u32; 2] {
    let long = |short: u32| SIDE * SIDE / THREADS / (short | 1) * THREADS;
    if size < last { [size, long(size)] } else { [long(last), last] }
}

/// The turned dimension before the last.
pub(super) fn ordered<T: Clone>(all: &[T], dimension: usize) -> Vec<T> {
    let mut all = all.to_vec();
    let end = all.len().saturating_sub(1);
    all[dimension..end].rotate_left(1);
    all
}

/// Whether an input's neighbours lie along a dimension and not along the last.
pub(super) fn is_turned(input: &View, dimension: usize) -> bool {
    let is_near = |stride: Option<&i64>| stride.is_some_and(|stride| stride.abs() == 1);
    is_near(input.strides.get(dimension)) && input.strides.last().is_some_and(|stride| stride.unsigned_abs() > 1)
}
