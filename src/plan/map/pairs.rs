//! Plans for transpositions of f16 whose sizes or places are no multiples of four, as `shaders/map/pairs.wgsl` and its twin for CUDA have them: two
//! elements are a word, and words are what is read and written. Element by element, those of n x 10 moved 36 % of what a copy does on an NVIDIA H200
//! through Vulkan and 27 % through wgpu, and so 73 and 49.
//!
//! ```text
//! elements, number of the first, sizes, offset and strides of the input and of the result, the turned dimension's before the last one's,
//! sides of tiles along the last two
//! scalars
//! ```

use std::sync::Arc;

use super::turned::{LEAST, LEAST_NARROW, SIDE, THREADS, Told, WORKGROUP_BYTES, is_turned, ordered, views};
use super::{QUAD, ranges, words};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::elementwise::Step;
use crate::ops::map::Problem;
use crate::plan::{Dispatch, Words, spread};

/// Elements that a workgroup's memory holds.
const ROOM: u32 = 2 * SIDE * SIDE;

/// Which dimension takes part beside the last, and how.
pub(super) struct Pairs {
    dimension: usize,
    /// One of the two is short: a tile has all of it.
    is_narrow: bool,
}

impl Pairs {
    /// None where there is nothing to turn, where fours do it, and where elements of a short side have gaps between them or are in several parts.
    pub(super) fn of(problem: &Problem, parts: usize, caps: &Caps) -> Option<Self> {
        let [input] = &*problem.inputs else { return None };
        let (&last, others) = problem.shape.split_last()?;
        let fits = caps.max_workgroup_invocations >= THREADS && caps.max_workgroup_bytes >= WORKGROUP_BYTES;
        let are_halves = input.dtype == DType::F16 && problem.dtype == DType::F16;
        if !fits || !are_halves || !input.bounds.is_empty() || last < 2 || words(problem) + problem.shape.len() + 3 > Words::MOST {
            return None;
        }
        let is_behind = |dimension: &usize| others[*dimension] > 1 && input.strides[*dimension] == 1 && is_turned(input, *dimension);
        let dimension = (0..others.len()).find(is_behind)?;
        let (size, stride) = (others[dimension], input.strides[others.len()]);
        let short = size.min(last);
        let mut places =
            input.strides.iter().enumerate().filter(|(at, _)| *at != dimension).map(|(_, stride)| *stride).chain([input.offset]);
        if short >= LEAST && last.is_multiple_of(QUAD) && places.all(|place| place % i64::from(QUAD) == 0) {
            return None;
        }
        let is_narrow = short < SIDE;
        let is_dense = if size <= last {
            stride == i64::from(size)
        } else {
            // Tiles begin with a word of the result.
            dimension + 1 == others.len() && (others.len() == 1 || (size * last).is_multiple_of(2))
        };
        let is_enough = short * (ROOM / 2 / short).min(size.max(last)) >= LEAST_NARROW;
        let is_whole = parts == 1 || dimension > 0;
        (!is_narrow || is_dense && is_enough && is_whole).then_some(Self { dimension, is_narrow })
    }

    /// The launch for a part of the outermost dimension.
    pub(super) fn dispatch(&self, problem: &Problem, [first, end]: [u32; 2], caps: &Caps) -> Result<Dispatch> {
        let rank = problem.shape.len();
        let ranges = ordered(&ranges(problem, [first, end]), self.dimension);
        let Told { mut words, sizes, mut readings, result, bindings } = Told::of(&views(problem, self.dimension), &ranges, caps)?;
        let step_at = readings[0].at + rank as u32;
        readings.iter_mut().for_each(|reading| (reading.is_turned, reading.is_vec4) = (true, false));
        let (turned, last) = (sizes[rank - 2], sizes[rank - 1]);
        let (is_tall, is_odd) = (self.is_narrow && turned > last, !last.is_multiple_of(2));
        let [high, wide] = match self.is_narrow {
            // Rows of the input begin within a word, and end within one more.
            true if is_tall => [side(ROOM / last - 2), last],
            // Two columns before those that are written, one behind, and where the first begins within a word.
            true => [turned, side(ROOM / turned - 4)],
            false => [SIDE, if is_odd { SIDE - 2 } else { SIDE }],
        };
        [high, wide].into_iter().try_for_each(|side| words.push(side))?;
        let scalars_at = words.length();
        problem.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
        let beside = (if is_tall { high } else { wide } / 2).clamp(1, THREADS);
        let constants = vec![
            ("THREADS", THREADS),
            ("RANK", rank as u32),
            ("OUTER", rank as u32 - 2),
            ("EDGES", 1),
            ("NARROW", self.is_narrow.into()),
            ("TALL", is_tall.into()),
            ("ODD", is_odd.into()),
            ("RAW", u32::from(matches!(*problem.program.steps, [Step::Input(0)]))),
            ("WORDS", beside),
            ("BESIDE", THREADS / beside),
            ("EACH", QUAD),
            ("HALVES", 1),
            ("WHOLE", 1),
            ("STEP_AT", step_at),
            ("OUT_AT", result.at + 1),
            ("SCALARS", scalars_at),
        ];
        let source =
            Source { program: Arc::clone(&problem.program), inputs: readings, beside: Vec::new(), result: problem.dtype, end: None };
        let kernel = Kernel { id: KernelId::MapPairs, variant: problem.program.to_string(), constants, source: Some(Arc::new(source)) };
        let workgroups = sizes[..rank - 2].iter().product::<u32>() * last.div_ceil(wide) * turned.div_ceil(high);
        let [x, y] = spread(workgroups, caps.max_workgroups_per_dimension);
        Ok(Dispatch { kernel, params: words.into(), bindings, grid: [x, y, 1] })
    }
}

/// The longest side of no more elements, of as many words as invocations share out.
fn side(most: u32) -> u32 {
    if most < 2 * THREADS { 1 << most.ilog2() } else { most / (2 * THREADS) * (2 * THREADS) }
}
