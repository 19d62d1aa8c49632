//! Plans for elementwise operations: `shaders/map`, each invocation four elements.
//!
//! What a kernel is told is a row of words, so that one kernel serves every shape of as many dimensions:
//!
//! ```text
//! elements, number of the first,
//! sizes,
//! for each input: offset, strides, and where it has bounds: the first step and the end of each dimension
//! scalars
//! ```

mod pairs;
mod turned;

use std::sync::Arc;

use super::matmul::fold;
use super::words::Words;
use super::{Binding, Dispatch, Plan, Slot, spread};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::map::{MOST_DIMENSIONS, MOST_INPUTS, Problem, View};

/// Invocations of a workgroup.
pub(super) const THREADS: u32 = 256;
/// Elements of an invocation.
pub(super) const QUAD: u32 = 4;
/// Parts of the result begin at multiples of so many elements, whose bytes are a multiple of every alignment of bindings.
pub(super) const PART_ELEMENTS: u64 = 128;
/// The most elements of a launch, so that the kernel's numbers do not overflow.
const MOST_ELEMENTS: u64 = 1 << 31;
/// The most elements from the first to the last that it reads of an input, for the same reason.
const MOST_SPAN: u64 = 1 << 32;

/// The most threads of a block that interprets, the most such blocks, each of which then takes several turns, and the shared memory that a
/// block has without asking for more.
#[cfg(not(target_arch = "wasm32"))]
const INTERPRETED_THREADS: u32 = 128;
#[cfg(not(target_arch = "wasm32"))]
const INTERPRETED_WORKGROUPS: u32 = 4096;
#[cfg(not(target_arch = "wasm32"))]
const INTERPRETED_BYTES: u32 = 44 << 10;
/// Four words, which a step gives.
#[cfg(not(target_arch = "wasm32"))]
const SLOT_BYTES: u32 = 16;

/// The most steps of a program that is short beside what it reads.
const MOST_SHORT_STEPS: usize = 12;

/// The bindings of the inputs and of the result, which may be told as one more: those of parameters lie between.
pub(super) const INPUT_BINDINGS: [u32; MOST_INPUTS + 1] = [0, 1, 2, 4, 5, 6, OUT_BINDING];
pub(crate) const OUT_BINDING: u32 = 7;
/// Textures of the inputs of a fragment shader.
pub(crate) const MOST_UNITS: u32 = MOST_INPUTS as u32;

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    // As many as keep 64 bytes of each invocation under way, and two at least, if there is little to compute of them: an addition of 256 MiB
    // moved 3.6 TB/s on an NVIDIA H200 with one, and 4.3 with two.
    let read = |input: &View| if input.strides.last() == Some(&0) { 0 } else { input.dtype.bytes() };
    let bytes = u64::from(QUAD) * (problem.inputs.iter().map(read).sum::<u64>() + problem.dtype.bytes());
    let quads = if problem.program.steps.len() > MOST_SHORT_STEPS { 1 } else { (64 / bytes).clamp(2, 4) as u32 };
    turned_or_not(problem, caps, quads)
}

/// A plan for CUDA whose kernels are generated: a thread has several fours under way at once, the fewer the more it computes of them.
#[cfg(not(target_arch = "wasm32"))]
pub fn cuda(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let quads = match problem.program.steps.len() {
        ..=MOST_SHORT_STEPS => 4 / (problem.inputs.len() as u32).clamp(1, 4),
        _ => 1,
    };
    turned_or_not(problem, caps, quads)
}

/// By tiles where inputs are transposed, of words of two where that will do; else one invocation after the other.
fn turned_or_not(problem: &Problem, caps: &Caps, quads: u32) -> Result<Plan> {
    let (parts, mut plan) = (parts(problem, caps), Plan::default());
    if let Ok(parts) = &parts
        && let Some(pairs) = pairs::Pairs::of(problem, parts.len(), caps)
    {
        plan.dispatches = parts.iter().map(|part| pairs.dispatch(problem, *part, caps)).collect::<Result<_>>()?;
        return Ok(plan);
    }
    match turned::Turned::of(problem, parts.is_err(), caps) {
        Some(turned) if turned.launch(&mut turned.whole(), caps, &mut plan)? => Ok(plan),
        _ => launches(problem, caps, quads, true),
    }
}

/// A plan for CUDA without a compiler: a kernel that is there reads the program, step by step.
#[cfg(not(target_arch = "wasm32"))]
pub fn interpreted(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let mut plan = launches(problem, caps, 1, false)?;
    for Dispatch { kernel, grid: [x, y, _], .. } in &mut plan.dispatches {
        let Some(source) = &kernel.source else { continue };
        let slots = crate::kernels::Interpretation::of(source, &kernel.constants)?.slots.max(1);
        // As many threads as there is room for what they keep: a warp at least, which copies the words, since no program keeps more than that.
        let mut threads = INTERPRETED_THREADS;
        while threads * slots * SLOT_BYTES > INTERPRETED_BYTES {
            threads /= 2;
        }
        let workgroups = (*x * *y).saturating_mul(kernel.constant("THREADS") / threads);
        kernel.id = KernelId::MapInterpreted;
        kernel.constants.retain(|(name, _)| *name != "THREADS");
        kernel.constants.extend([("THREADS", threads), ("SHARED_BYTES", threads * slots * SLOT_BYTES)]);
        (*x, *y) = (workgroups.clamp(1, INTERPRETED_WORKGROUPS), 1);
    }
    Ok(plan)
}

fn launches(problem: &Problem, caps: &Caps, quads: u32, bounded: bool) -> Result<Plan> {
    let mut plan = Plan::default();
    for part in parts(problem, caps)? {
        let mut dispatch = dispatch(problem, part, caps, quads, bounded)?;
        dispatch.kernel.variant = problem.program.to_string();
        plan.dispatches.push(dispatch);
    }
    Ok(plan)
}

/// The only launch on a CPU, which has no limits.
pub fn cpu(problem: &Problem, variant: &str) -> Result<Plan> {
    let Some(mut dispatch) = whole(problem)? else { return Ok(Plan::default()) };
    (dispatch.kernel.id, dispatch.grid) = (KernelId::MapCpu, [1; 3]);
    variant.clone_into(&mut dispatch.kernel.variant);
    Ok(Plan::of(dispatch))
}

/// The only drawing of a fragment shader: a texel of the target is four elements of the result.
pub fn fragment(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let Some(mut dispatch) = whole(problem)? else { return Ok(Plan::default()) };
    let (width, height) = fold(problem.elements().div_ceil(QUAD.into()), caps)?;
    (dispatch.kernel.id, dispatch.grid) = (KernelId::MapFragment, [width, height, 1]);
    dispatch.kernel.variant = problem.program.to_string();
    Ok(Plan::of(dispatch))
}

/// A launch for all of the result, where each operand is read from its beginning; None if there is nothing to compute.
fn whole(problem: &Problem) -> Result<Option<Dispatch>> {
    if problem.elements() == 0 {
        return Ok(None);
    }
    let caps = Caps { max_binding_bytes: u64::MAX, binding_alignment_bytes: u64::MAX, ..Caps::UNLIMITED };
    dispatch(problem, [0, problem.shape.first().copied().unwrap_or(1)], &caps, 1, false).map(Some)
}

/// How many words a kernel is told.
pub(crate) fn words(problem: &Problem) -> usize {
    let rank = problem.shape.len();
    let input = |input: &View| 1 + rank + 2 * input.bounds.len();
    2 + rank + problem.inputs.iter().map(input).sum::<usize>() + problem.scalars.len()
}

/// Ranges of the outermost dimension that a launch each can do.
fn parts(problem: &Problem, caps: &Caps) -> Result<Vec<[u32; 2]>> {
    let elements = problem.elements();
    if elements == 0 {
        return Ok(Vec::new());
    }
    let outer = problem.shape.first().copied().unwrap_or(1);
    let row = elements / u64::from(outer);
    // As many rows as come to whole parts.
    let mut step = 1;
    while !(row * step).is_multiple_of(PART_ELEMENTS) {
        step *= 2;
    }
    let out_bytes = |rows: u64| rows.min(outer.into()) * row * problem.dtype.bytes() + 16;
    let fits = |rows: u64| {
        let end = rows.min(outer.into()) as u32;
        let ranges = ranges(problem, [0, end]);
        let out = out_bytes(rows);
        let most = |input: &View| caps.max_binding_bytes.min(MOST_SPAN * input.dtype.bytes());
        u64::from(end) * row <= MOST_ELEMENTS
            && out <= caps.max_binding_bytes
            && problem.inputs.iter().all(|input| bound_bytes(input, &ranges, caps) <= most(input))
    };
    let mut rows = u64::from(outer).next_multiple_of(step);
    while !fits(rows) {
        if rows <= step {
            let rows = rows.min(outer.into());
            let (what, requested, max) = if rows * row > MOST_ELEMENTS {
                ("elements that a kernel computes at once", rows * row, MOST_ELEMENTS)
            } else {
                let ranges = ranges(problem, [0, rows as u32]);
                let seen = problem.inputs.iter().map(|input| bound_bytes(input, &ranges, caps)).max();
                let seen = seen.unwrap_or_default().max(out_bytes(rows));
                ("bytes of a tensor that a kernel sees at once", seen, caps.max_binding_bytes)
            };
            return Err(Box::new(Error::LimitExceeded { what, requested, max }));
        }
        rows = (rows / 2).next_multiple_of(step);
    }
    Ok((0..outer).step_by(rows as usize).map(|first| [first, (u64::from(first) + rows).min(outer.into()) as u32]).collect())
}

/// The most bytes that have to be bound of an input to see of it what lies within ranges as long as those, wherever they begin.
pub(super) fn bound_bytes(input: &View, ranges: &[[u32; 2]], caps: &Caps) -> u64 {
    let span = input.most_span(ranges.iter().map(|[first, end]| end - first));
    (span * input.dtype.bytes()).saturating_add(caps.binding_alignment_bytes.max(16))
}

/// The ranges of all dimensions, of which the first is cut.
fn ranges(problem: &Problem, outer: [u32; 2]) -> Vec<[u32; 2]> {
    let mut ranges: Vec<_> = problem.shape.iter().map(|&size| [0, size]).collect();
    if let Some(first) = ranges.first_mut() {
        *first = outer;
    }
    ranges
}

/// How a kernel reads an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Where in the words its offset is.
    pub at: u32,
    /// Where it is bound.
    pub binding: u32,
    /// What its elements are.
    pub dtype: DType,
    /// Four neighbours of the result read four neighbours that start at a multiple of four.
    pub is_vec4: bool,
    /// Four neighbours of the result read the same element.
    pub is_splat: bool,
    /// Whether there are steps that have no element.
    pub is_bounded: bool,
    /// Fours are neighbours along the last but one dimension instead.
    pub is_turned: bool,
}

/// Tells a kernel of inputs that it reads within those ranges of all dimensions, from the first input's binding on. `quad` if it reads four
/// neighbours along the last dimension at once.
pub(super) fn inputs(
    views: &[View],
    ranges: &[[u32; 2]],
    quad: bool,
    caps: &Caps,
    words: &mut Words,
) -> Result<(Vec<Reading>, Vec<Binding>)> {
    let told = views.iter().enumerate().map(|(number, view)| input(number, view, ranges, quad, caps, words));
    Ok(told.collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

/// The same of one of them.
pub(super) fn input(
    number: usize,
    input: &View,
    ranges: &[[u32; 2]],
    quad: bool,
    caps: &Caps,
    words: &mut Words,
) -> Result<(Reading, Binding)> {
    let binding = INPUT_BINDINGS[number];
    let bytes = input.dtype.bytes();
    let [least, most] = input.reach(ranges);
    // Bound from a multiple of the alignment on, and of a vec4.
    let alignment_bytes = caps.binding_alignment_bytes.max(16);
    let start_bytes = (least.max(0) as u64 * bytes) / alignment_bytes * alignment_bytes;
    let start = (start_bytes / bytes) as i64;
    let moved: i64 = ranges.iter().zip(&input.strides).map(|([first, _], stride)| i64::from(*first) * stride).sum();
    let offset = input.offset + moved - start;
    let inner = input.strides.last().copied().unwrap_or(0);
    let aligned = |stride: &i64| stride % i64::from(QUAD) == 0;
    let outer_strides = input.strides.split_last().map_or(&[][..], |(_, others)| others);
    let reading = Reading {
        at: words.length(),
        binding,
        dtype: input.dtype,
        is_vec4: quad && inner == 1 && aligned(&offset) && outer_strides.iter().all(aligned),
        is_splat: quad && inner == 0,
        is_bounded: !input.bounds.is_empty(),
        is_turned: false,
    };
    words.push(offset as u32)?;
    input.strides.iter().try_for_each(|&stride| words.push(stride as u32))?;
    for edge in 0..2 {
        for (bounds, [first, _]) in input.bounds.iter().zip(ranges) {
            words.push(bounds[edge].saturating_sub(*first))?;
        }
    }
    let size_bytes = (((most.max(0) as u64 + 1) * bytes).next_multiple_of(16)).saturating_sub(start_bytes).max(16);
    Ok((reading, Binding { slot: Slot::Input(number as u8), index: binding, offset_bytes: start_bytes, size_bytes }))
}

/// `bounded` if the kernel reads four neighbours at once of which all have an element or none. Whoever asks names the variant.
fn dispatch(problem: &Problem, [first, end]: [u32; 2], caps: &Caps, quads: u32, bounded: bool) -> Result<Dispatch> {
    let rank = problem.shape.len();
    if rank > MOST_DIMENSIONS || problem.inputs.len() > INPUT_BINDINGS.len() {
        return Err(Error::internal("a kernel of more inputs or dimensions than there are"));
    }
    let outer = problem.shape.first().copied().unwrap_or(1).max(1);
    let row = problem.elements() / u64::from(outer);
    let (count, before) = (u64::from(end - first) * row, u64::from(first) * row);
    let mut shape = problem.shape.clone();
    if let Some(outer) = shape.first_mut() {
        *outer = end - first;
    }
    // Four neighbours of the result lie in one row. The last four of a single row may be less, where what is behind them can be read: memory is
    // given out in fours.
    let ends_in_four = shape.last().copied().unwrap_or(1).is_multiple_of(QUAD);
    let is_padded = |input: &View| match input.strides.last() {
        None | Some(0) => true,
        Some(1) => (input.offset + i64::from(first)) % i64::from(QUAD) == 0,
        _ => false,
    };
    let in_rows = ends_in_four || rank <= 1 && problem.inputs.iter().all(is_padded);
    // What has no element everywhere is read where all four have one, as one vector.
    let in_fours = |input: &View| {
        let (inner, others) = input.strides.split_last().map_or((0, &[][..]), |(inner, others)| (*inner, others));
        let mut starts = others.iter().chain([&input.offset]);
        let is_vector = inner == 0 || inner == 1 && starts.all(|start| start % i64::from(QUAD) == 0);
        let ends = input.bounds.last().is_none_or(|bounds| bounds.iter().all(|edge| edge.is_multiple_of(QUAD)));
        input.bounds.is_empty() || bounded && ends_in_four && is_vector && ends
    };
    let quad = in_rows && problem.inputs.iter().all(in_fours);
    let mut words = Words::default();
    words.push(count as u32)?;
    words.push(before as u32)?;
    shape.iter().try_for_each(|&size| words.push(size))?;
    let (readings, mut bindings) = inputs(&problem.inputs, &ranges(problem, [first, end]), quad, caps, &mut words)?;
    let scalars_at = words.length();
    problem.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
    let bytes = problem.dtype.bytes();
    bindings.push(Binding {
        slot: Slot::Out,
        index: OUT_BINDING,
        offset_bytes: before * bytes,
        size_bytes: (count * bytes).next_multiple_of(16),
    });
    let threads = THREADS.min(caps.max_workgroup_invocations);
    let workgroups = count.div_ceil(u64::from(QUAD * quads * threads)) as u32;
    let [x, y] = spread(workgroups, caps.max_workgroups_per_dimension);
    let constants = vec![
        ("THREADS", threads),
        ("RANK", rank as u32),
        ("INNER", rank.saturating_sub(1) as u32),
        ("QUAD", u32::from(quad)),
        ("QUADS", quads),
        ("SCALARS", scalars_at),
        ("RESULT_F16", u32::from(problem.dtype == DType::F16)),
        ("RESULT_BOOL", u32::from(problem.dtype == DType::Bool)),
    ];
    let source = Source { program: Arc::clone(&problem.program), inputs: readings, beside: Vec::new(), result: problem.dtype, end: None };
    let kernel = Kernel { id: KernelId::Map, variant: String::new(), constants, source: Some(Arc::new(source)) };
    Ok(Dispatch { kernel, params: words.into(), bindings, grid: [x, y, 1] })
}
