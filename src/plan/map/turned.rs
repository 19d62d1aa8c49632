//! Plans for elementwise operations whose inputs are transposed, as `shaders/map/turned.wgsl` and its twin for CUDA have them: read in the result's order, each
//! element of such an input would be another line of the cache.
//!
//! ```text
//! elements, number of the first,
//! sizes, the turned dimension's before the last one's,
//! for each input and the result: offset, strides
//! the sides of tiles along the last two if one of those is short
//! scalars
//! ```

use std::sync::Arc;

use super::{OUT_BINDING, QUAD, Reading, bound_bytes, inputs, ranges, words};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::map::{MOST_INPUTS, Problem, View};
use crate::plan::{Binding, Dispatch, Plan, Slot, Words, spread};

/// Elements of a tile's side, and invocations and bytes of a workgroup.
pub(super) const SIDE: u32 = 64;
pub(super) const THREADS: u32 = 256;
pub(super) const WORKGROUP_BYTES: u32 = SIDE * SIDE * 4;

/// Sizes below which most of a square tile would be empty, and elements of a long one with which workgroups are worth their while.
pub(super) const LEAST: u32 = 16;
pub(super) const LEAST_NARROW: u32 = 1024;

const NAMES: [&str; MOST_INPUTS] = ["TURNED_0", "TURNED_1", "TURNED_2", "TURNED_3", "TURNED_4", "TURNED_5"];

/// Which dimension takes part beside the last.
pub(super) struct Turned<'a> {
    problem: &'a Problem,
    dimension: usize,
    /// Elements of a tile's sides along it and along the last, if one of the two is short.
    narrow: Option<[u32; 2]>,
    /// The inputs, and the result as one more, that dimension put before the last.
    views: Vec<View>,
}

impl<'a> Turned<'a> {
    /// That along which most inputs have their neighbours, if there is one, and the kernel can do all else that is asked of it: results of
    /// f16 whose rows are no whole fours are for devices that write them one by one. `any` if another will do, for want of other kernels.
    pub(super) fn of(problem: &'a Problem, any: bool, caps: &Caps) -> Option<Self> {
        let (&last, others) = problem.shape.split_last()?;
        let fits = caps.max_workgroup_invocations >= THREADS && caps.max_workgroup_bytes >= WORKGROUP_BYTES;
        let is_there = problem.inputs.iter().all(|input| input.bounds.is_empty());
        if !fits || !is_there || last < 2 || others.contains(&0) || words(problem) + problem.shape.len() + 3 > Words::MOST {
            return None;
        }
        let count = |dimension: usize| problem.inputs.iter().filter(|input| is_turned(input, dimension)).count();
        let dimension = (0..others.len()).filter(|&dimension| others[dimension] > 1).max_by_key(|&dimension| count(dimension))?;
        let size = others[dimension];
        let narrow = (!any && last.min(size) < LEAST).then(|| sides(size, last));
        let is_full = narrow.is_none_or(|[high, wide]| high.min(size) * wide.min(last) >= LEAST_NARROW && count(dimension) == 1);
        let is_whole = caps.stores_f16 || problem.dtype != DType::F16 || narrow.is_none() && last.is_multiple_of(QUAD);
        if count(dimension) == 0 && !any || !is_full || !is_whole {
            return None;
        }
        Some(Self { problem, dimension, narrow, views: views(problem, dimension) })
    }

    /// All of the result.
    pub(super) fn whole(&self) -> Vec<[u32; 2]> {
        ordered(&ranges(self.problem, [0, self.problem.shape[0]]), self.dimension)
    }

    /// Adds the launch for a box of the result, or those for its halves if what it sees has no room in a binding; false if there are none.
    pub(super) fn launch(&self, ranges: &mut [[u32; 2]], caps: &Caps, plan: &mut Plan) -> Result<bool> {
        let Some(view) = self.views.iter().find(|view| bound_bytes(view, ranges, caps) > caps.max_binding_bytes) else {
            plan.dispatches.push(self.dispatch(ranges, caps)?);
            return Ok(true);
        };
        // Halved is what reaches farthest, in whole tiles if it is longer than one; fours that are written at once are not cut.
        let length = |dimension: usize| ranges[dimension][1] - ranges[dimension][0];
        let half = |dimension: usize| {
            let is_in_fours = dimension + 1 == ranges.len() && self.problem.dtype == DType::F16 && !caps.stores_f16;
            let unit = match length(dimension) {
                length if length > SIDE => SIDE,
                _ if is_in_fours => QUAD,
                _ => 1,
            };
            Some((length(dimension) / 2).next_multiple_of(unit)).filter(|half| (1..length(dimension)).contains(half))
        };
        let reach = |dimension: usize| u64::from(length(dimension) - 1) * view.strides[dimension].unsigned_abs();
        let halves = (0..ranges.len()).filter_map(|dimension| Some((dimension, half(dimension)?)));
        let Some((farthest, half)) = halves.max_by_key(|(dimension, _)| reach(*dimension)) else { return Ok(false) };
        let [first, end] = ranges[farthest];
        for part in [[first, first + half], [first + half, end]] {
            ranges[farthest] = part;
            if !self.launch(ranges, caps, plan)? {
                return Ok(false);
            }
        }
        ranges[farthest] = [first, end];
        Ok(true)
    }

    /// The launch for a box of the result.
    fn dispatch(&self, ranges: &[[u32; 2]], caps: &Caps) -> Result<Dispatch> {
        let problem = self.problem;
        let rank = problem.shape.len();
        let Told { mut words, sizes, mut readings, result, bindings } = Told::of(&self.views, ranges, caps)?;
        for (reading, view) in readings.iter_mut().zip(&self.views) {
            if is_turned(view, rank - 2) {
                let offset = words.get()[reading.at as usize].cast_signed();
                let others = view.strides.iter().enumerate().filter(|(dimension, _)| *dimension != rank - 2);
                let is_aligned = others.map(|(_, stride)| *stride).chain([offset.into()]).all(|number| number % i64::from(QUAD) == 0);
                (reading.is_turned, reading.is_vec4) = (true, view.strides[rank - 2] == 1 && is_aligned);
            }
        }
        // Fours are vectors where all of a kind are.
        let is_whole = self.narrow.is_none() && result.is_vec4 && sizes[rank - 1].is_multiple_of(QUAD);
        let is_aligned = self.narrow.is_none() && readings.iter().all(|reading| !reading.is_turned || reading.is_vec4);
        for reading in &mut readings {
            reading.is_vec4 &= if reading.is_turned { is_aligned } else { is_whole };
        }
        let are_halves = self.narrow.is_none() && readings.iter().all(|reading| !reading.is_turned || reading.dtype == DType::F16);
        self.narrow.iter().flatten().try_for_each(|&side| words.push(side))?;
        let scalars_at = words.length();
        problem.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
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
            ("OUT_AT", result.at),
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
        let [x, y] = spread(workgroups, caps.max_workgroups_per_dimension);
        Ok(Dispatch { kernel, params: words.into(), bindings, grid: [x, y, 1] })
    }
}

/// What a launch for a box of the result is told before all else.
pub(super) struct Told {
    pub words: Words,
    pub sizes: Vec<u32>,
    pub readings: Vec<Reading>,
    pub result: Reading,
    pub bindings: Vec<Binding>,
}

impl Told {
    #[inline(never)]
    pub(super) fn of(views: &[View], ranges: &[[u32; 2]], caps: &Caps) -> Result<Self> {
        let sizes: Vec<_> = ranges.iter().map(|[first, end]| end - first).collect();
        let mut words = Words::default();
        words.push(sizes.iter().product())?;
        words.push(0)?;
        sizes.iter().try_for_each(|&size| words.push(size))?;
        let (mut readings, mut bindings) = inputs(views, ranges, true, caps, &mut words)?;
        let (Some(result), Some(out)) = (readings.pop(), bindings.last_mut()) else {
            return Err(Error::internal("a result that is nowhere"));
        };
        (out.slot, out.index) = (Slot::Out, OUT_BINDING);
        words.set(1, (out.offset_bytes / result.dtype.bytes()) as u32);
        Ok(Self { words, sizes, readings, result, bindings })
    }
}

/// The inputs, and the result as one more, that dimension put before the last.
pub(super) fn views(problem: &Problem, dimension: usize) -> Vec<View> {
    let mut strides = vec![1; problem.shape.len()];
    for dimension in (1..strides.len()).rev() {
        strides[dimension - 1] = strides[dimension] * i64::from(problem.shape[dimension]);
    }
    let mut views = problem.inputs.clone();
    views.push(View { dtype: problem.dtype, offset: 0, strides, bounds: Vec::new() });
    views.iter_mut().for_each(|view| view.strides = ordered(&view.strides, dimension));
    views
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
