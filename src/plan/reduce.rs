//! Plans for reductions: `shaders/reduce`. One launch where there are rows enough to keep a device busy; else rows are cut into parts, and
//! a second launch joins what those gave.
//!
//! ```text
//! rows, number of the first value, values of a row in all, here, of a part,
//! parts of a row in all, number of the first part or the place of the first result, place of a row's first value, divisor,
//! sizes, inputs and scalars as a map's
//! ```

mod fold;
mod fragment;
#[cfg(not(target_arch = "wasm32"))]
pub(in crate::plan) mod plain;
mod rows;

use std::sync::Arc;

use super::map::{self, OUT_BINDING, QUAD, THREADS, bound_bytes};
use super::words::Words;
use super::{Binding, Dispatch, Plan, Slot, spread};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::template::Constant;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::map::{MOST_DIMENSIONS, MOST_INPUTS, View};
use crate::ops::reduce::{Fold, Problem};
pub(in crate::plan) use fold::{fold_constants, of_values, state_words};
pub use fragment::fragment;
#[cfg(not(target_arch = "wasm32"))]
pub use plain::plain;
pub(in crate::plan) use rows::{as_one_row, whole_fours};
use rows::{begins_with_fours, is_without_conflicts};

/// Values that an invocation folds at once.
const BLOCK: u32 = 16;
/// The same of short rows where to join what lanes have takes longer than to fold values: on an NVIDIA H200 norms of rows of 33 moved 2.4 TB/s
/// with the former, and so 3.3. In a browser there, where rows are many, lanes have several times as many: with 16 the logarithm of a sum of powers
/// of rows of 257 moved 1.9 TB/s, and so 3.6.
const DEAR_BLOCK: u32 = 24;
/// Values of a short row.
const SHORT: u64 = 256;
/// Lanes that need no workgroup memory on most GPUs.
const WARP: u32 = 32;
/// Values that are in no four of their row alone, at most: three before them and three behind.
const SINGLES: u32 = 6;
/// The longest rows of which an invocation has four, of words and of f16: in a browser on an NVIDIA H200 sums of rows of 3 moved 2.8 TB/s by one each,
/// and so 4.1.
const MOST_TINY: [u64; 2] = [5, 8];
/// The shortest others that are read in fours wherever they begin, and the shortest of words where a value by itself costs as much as four: places of
/// extremes, and powers.
const LEAST_FLAT: u64 = 16;
const LEAST_FLAT_DEAR: u64 = 96;
/// Workgroups that keep any device busy.
pub(super) const BUSY: u64 = 1024;
/// The most values of a row in a launch, so that the kernel's numbers do not overflow.
const MOST_VALUES: u64 = 1 << 31;
/// Where in the words the divisor is, and the sizes.
const DIVISOR: u32 = 8;
const SIZES: u32 = 9;
/// Words of which a map has none.
pub(crate) const MORE_WORDS: usize = 7;

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    launches(problem, caps, Reader::Fours)
}

/// A plan for CUDA with its compiler.
#[cfg(not(target_arch = "wasm32"))]
pub fn cuda(problem: &Problem, caps: &Caps) -> Result<Plan> {
    launches(problem, caps, Reader::Cuda)
}

fn launches(problem: &Problem, caps: &Caps, reader: Reader) -> Result<Plan> {
    if problem.values.shape.len() > MOST_DIMENSIONS || problem.values.inputs.len() > MOST_INPUTS {
        return Err(Error::internal("a kernel of more inputs or dimensions than there are"));
    }
    let mut plan = Plan::default();
    // What follows a reduction may ask for its plan even where there is nothing to compute.
    if problem.rows() == 0 {
        return Ok(plan);
    }
    let cuts = Cuts::of(problem, &[], caps)?;
    for rows in &cuts.rows {
        let shape = Shape::of(problem, *rows, &cuts.steps, caps, reader);
        shape.fold(problem, *rows, &cuts.steps, caps, &mut plan)?;
        if shape.is_partial {
            plan.dispatches.push(shape.merge(problem, *rows, &[("MEASURED", 0)], caps)?);
        }
    }
    Ok(plan)
}

/// What a kernel that reads the values again does after a reduction, for some rows at a time.
pub(super) struct Folded {
    /// The outermost of all rows that these are of.
    pub rows: [u32; 2],
    /// The parts of the outermost dimension within rows that a launch each can do.
    pub steps: Vec<[u32; 2]>,
    /// What joins the states of each row, whose results are to be bound from their first on.
    pub merge: Dispatch,
}

/// The launches of a reduction up to the states of all parts of its rows, which begin the scratch; then what `rest` plans for those rows. Whatever is
/// `seen` as well, in the order of the values, is in the limits of a launch.
pub(super) fn states(problem: &Problem, seen: &[View], caps: &Caps, mut rest: impl FnMut(Folded, &mut Plan) -> Result<()>) -> Result<Plan> {
    let mut plan = Plan::default();
    let Cuts { rows, steps } = Cuts::of(problem, seen, caps)?;
    for rows in rows {
        let shape = Shape { is_partial: true, ..Shape::of(problem, rows, &steps, caps, Reader::Plain) };
        shape.fold(problem, rows, &steps, caps, &mut plan)?;
        let merge = shape.merge(problem, rows, &[], caps)?;
        rest(Folded { rows, steps: steps.clone(), merge }, &mut plan)?;
    }
    Ok(plan)
}

/// The only launch on a CPU, which has no limits.
pub fn cpu(problem: &Problem, variant: &str) -> Result<Plan> {
    if problem.rows() == 0 {
        return Ok(Plan::default());
    }
    let mut values = problem.values.clone();
    // In the order in which they lie in memory, unless their number in the other is asked for.
    let is_in_columns = problem.is_in_columns() && !values.program.reads_index();
    if is_in_columns {
        values.rotate(problem.kept);
    }
    let plan = map::cpu(&values, variant)?;
    let [Dispatch { kernel, params, bindings, grid }] =
        <[_; 1]>::try_from(plan.dispatches).map_err(|_| Error::internal("a plan in parts"))?;
    let mut kernel = Kernel { id: KernelId::ReduceCpu, variant: format!("{} {}", problem.fold.name(), kernel.variant), ..kernel };
    kernel.constants.extend([
        ("ROWS", problem.rows() as u32),
        ("COUNT", problem.count() as u32),
        ("COLUMNS", u32::from(is_in_columns)),
        ("FOLD", problem.fold as u32),
        ("DIVISOR", problem.divisor.to_bits()),
    ]);
    Ok(Plan::of(Dispatch { kernel, params, bindings, grid }))
}

/// The parts of the outermost dimensions, of rows and of their values, that a launch each can do.
struct Cuts {
    rows: Vec<[u32; 2]>,
    steps: Vec<[u32; 2]>,
}

impl Cuts {
    fn of(problem: &Problem, seen: &[View], caps: &Caps) -> Result<Self> {
        let shape = &problem.values.shape;
        let [outer, steps] = [if problem.kept > 0 { shape[0] } else { 1 }, shape[problem.kept]].map(|size| size.max(1));
        let (row_elements, step_values) = (problem.rows() / u64::from(outer), problem.count() / u64::from(steps));
        // Fours of values are not cut.
        let least_steps = if step_values.is_multiple_of(QUAD.into()) { 1 } else { u64::from(QUAD) };
        let (mut some_rows, mut some_steps) = (u64::from(outer), u64::from(steps));
        loop {
            let ranges = ranges(problem, [0, some_rows as u32], [0, some_steps as u32]);
            let span_bytes = |input: &View| bound_bytes(input, &ranges, caps);
            let largest = problem
                .values
                .inputs
                .iter()
                .chain(seen)
                .max_by_key(|input| span_bytes(input))
                .filter(|input| span_bytes(input) > caps.max_binding_bytes);
            let some_parts = u64::from(steps).div_ceil(some_steps);
            let words = if some_parts > 1 { some_parts * state_words(problem.fold, problem.values.dtype) } else { 1 };
            let result_bytes = some_rows * row_elements * 4 * words + 16;
            let result_is = result_bytes.saturating_add(caps.binding_alignment_bytes.max(16)) > caps.max_binding_bytes;
            let values_are = some_steps * step_values > MOST_VALUES;
            let along = |dimension: usize, count: u64| largest.map_or(0, |input| input.strides[dimension].unsigned_abs() * (count - 1));
            let cuts_rows = some_rows > 1
                && (result_is
                    || (largest.is_some() && (along(0, some_rows) >= along(problem.kept, some_steps) || some_steps <= least_steps)));
            if cuts_rows {
                some_rows /= 2;
            } else if some_steps > least_steps && (values_are || largest.is_some()) {
                some_steps = (some_steps / 2).next_multiple_of(least_steps);
            } else if result_is || largest.is_some() {
                let requested = largest.map_or(result_bytes, span_bytes);
                let what = "bytes of a tensor that a kernel sees at once";
                return Err(Box::new(Error::LimitExceeded { what, requested, max: caps.max_binding_bytes }));
            } else {
                break;
            }
        }
        let cut = |size: u32, by: u64| {
            (0..size)
                .step_by(by.min(size.into()) as usize)
                .map(move |first| [first, (u64::from(first) + by).min(size.into()) as u32])
                .collect()
        };
        Ok(Self { rows: cut(outer, some_rows), steps: cut(steps, some_steps) })
    }
}

/// The ranges of all dimensions, of which the outermost ones are cut.
fn ranges(problem: &Problem, rows: [u32; 2], steps: [u32; 2]) -> Vec<[u32; 2]> {
    let mut ranges: Vec<_> = problem.values.shape.iter().map(|&size| [0, size]).collect();
    if problem.kept > 0 {
        ranges[0] = rows;
    }
    ranges[problem.kept] = steps;
    ranges
}

/// How a kernel reads rows that lie behind one another and are not of whole fours: value by value, in fours wherever the rows begin, or as CUDA does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Plain,
    Fours,
    Cuda,
}

/// How rows and their values are shared out.
struct Shape {
    /// Rows of the launch, and of a workgroup.
    rows: u64,
    rows_of_group: u32,
    /// Invocations of a row.
    lanes: u32,
    threads: u32,
    is_in_columns: bool,
    /// Blocks that an invocation has under way at once.
    blocks: u32,
    /// Values of a part, and parts of a row in all launches.
    part: u32,
    parts: u32,
    /// The first part of each launch.
    first_parts: Vec<u32>,
    is_quad: bool,
    /// Whether rows lie behind one another and are read without regard to where they begin, and whether an invocation has four of them.
    is_flat: bool,
    is_tiny: bool,
    /// Whether rows of a block are all there at once, which they are on CUDA alone.
    is_at_once: bool,
    /// Whether states are written.
    is_partial: bool,
}

impl Shape {
    fn of(problem: &Problem, rows: [u32; 2], steps: &[[u32; 2]], caps: &Caps, reader: Reader) -> Self {
        let is_cuda = reader == Reader::Cuda;
        let threads = previous_power_of_two(THREADS.min(caps.max_workgroup_invocations));
        let is_in_columns = problem.is_in_columns();
        let inner = problem.values.shape.last().copied().unwrap_or(1);
        let is_quad = !is_in_columns && inner.is_multiple_of(QUAD) && problem.values.inputs.iter().all(|input| input.bounds.is_empty());
        let outer = if problem.kept > 0 { u64::from(problem.values.shape[0]).max(1) } else { 1 };
        let first_row = u64::from(rows[0]) * (problem.rows() / outer);
        let rows = u64::from(rows[1] - rows[0]) * (problem.rows() / outer);
        let step_values = problem.count() / u64::from(problem.values.shape[problem.kept].max(1));
        let count = |[first, end]: [u32; 2]| u64::from(end - first) * step_values;
        let most = steps.iter().map(|steps| count(*steps)).max().unwrap_or(1);
        // Neighbours in memory for neighbouring invocations, and many of them: rows of odd lengths begin within a line of the cache.
        let beside = if is_in_columns { rows.min(64).next_power_of_two() as u32 } else { 1 };
        let lanes_of = |each: u32| most.div_ceil(each.into()).next_power_of_two().min(u64::from(threads / beside.min(threads))) as u32;
        // Values of f16 are half the bytes, of which enough have to be under way, unless a row is short.
        let are_halves = problem.values.inputs.iter().all(|input| input.dtype == DType::F16);
        let is_short = most <= SHORT;
        let is_cheap = matches!(problem.fold, Fold::Sum | Fold::Mean | Fold::Prod | Fold::Max | Fold::Min);
        let is_moments = matches!(problem.fold, Fold::Var | Fold::Std);
        // What lanes have at once of a row is not joined on CUDA.
        let mut each = if is_moments && is_cuda && (are_halves || !is_short) || are_halves && !is_short {
            2 * BLOCK
        } else if is_short && !is_in_columns && !is_cheap {
            DEAR_BLOCK
        } else {
            BLOCK
        };
        // Elsewhere to join takes longer than to fold values, where there are rows enough without so many lanes.
        let more = match is_short {
            true if is_cheap && !are_halves => DEAR_BLOCK,
            true if most <= 4 * u64::from(BLOCK) => 2 * BLOCK,
            true => 2 * DEAR_BLOCK,
            false => 4 * BLOCK,
        };
        if reader == Reader::Fours && !is_in_columns && rows * u64::from(lanes_of(more)) >= BUSY * u64::from(threads) {
            each = more;
        }
        let mut lanes = lanes_of(each);
        let is_dear = matches!(problem.fold, Fold::ArgMax | Fold::ArgMin | Fold::LogSumExp);
        let least_flat = if is_dear && !are_halves { LEAST_FLAT_DEAR } else { LEAST_FLAT };
        let is_tiny = reader == Reader::Fours
            && most <= MOST_TINY[usize::from(are_halves)]
            && first_row.is_multiple_of(QUAD.into())
            && rows >= u64::from(QUAD) * BUSY * u64::from(threads);
        let is_flat = !is_quad
            && steps.len() == 1
            && match reader {
                Reader::Plain => false,
                Reader::Fours => (is_tiny || most >= least_flat) && begins_with_fours(problem, first_row),
                Reader::Cuda => problem.values.lies_flat(problem.kept, []) && is_without_conflicts(problem, lanes),
            };
        let blocks = most.div_ceil(u64::from(lanes * BLOCK)).clamp(1, each.div_ceil(BLOCK).into()) as u32;
        // To join variances takes longer than to fold values: where rows are longer than that, fewer lanes have as many more of them if that leaves
        // groups enough.
        let is_kept = is_cuda && most <= u64::from(lanes * BLOCK * blocks);
        let fewest = if is_moments && !is_kept { lanes / 4 } else { lanes };
        while lanes > fewest.max(WARP) && rows * u64::from(lanes) / 2 >= BUSY * u64::from(threads) {
            lanes /= 2;
        }
        let is_tiny = is_tiny && is_flat;
        let rows_of_group = if is_tiny { QUAD * threads } else { threads / lanes };
        let groups = rows.div_ceil(rows_of_group.into());
        let block = u64::from(lanes * BLOCK * blocks);
        let part = most.div_ceil((BUSY / groups).max(1)).max(2 * block).next_multiple_of(block);
        let mut parts = 0;
        let first_parts = steps.iter().map(|steps| {
            parts += count(*steps).div_ceil(part) as u32;
            parts - count(*steps).div_ceil(part) as u32
        });
        let first_parts = first_parts.collect();
        let (part, is_partial) = (part as u32, parts > 1);
        Self {
            rows,
            rows_of_group,
            lanes,
            threads,
            is_in_columns,
            blocks,
            part,
            parts,
            first_parts,
            is_quad: is_quad || is_flat && !is_cuda,
            is_flat: is_flat && !(is_cuda && is_partial),
            is_tiny,
            is_at_once: is_cuda,
            is_partial,
        }
    }

    /// Adds what folds the values of some rows.
    fn fold(&self, problem: &Problem, rows: [u32; 2], steps: &[[u32; 2]], caps: &Caps, plan: &mut Plan) -> Result<()> {
        for (steps, first_part) in steps.iter().zip(&self.first_parts) {
            plan.dispatches.push(self.dispatch(problem, [rows, *steps], *first_part, caps)?);
        }
        if self.is_partial {
            plan.scratch_bytes = plan.scratch_bytes.max(self.scratch_bytes(problem, caps)?);
        }
        Ok(())
    }

    fn scratch_bytes(&self, problem: &Problem, caps: &Caps) -> Result<u64> {
        let bytes = (self.rows * u64::from(self.parts) * 4 * state_words(problem.fold, problem.values.dtype)).next_multiple_of(16);
        if bytes <= caps.max_binding_bytes {
            return Ok(bytes);
        }
        let what = "bytes of sums that are not complete";
        Err(Box::new(Error::LimitExceeded { what, requested: bytes, max: caps.max_binding_bytes }))
    }

    /// The words that both kernels have: rows, values of a row, parts of a row and the divisor.
    fn words(&self, problem: &Problem, values: u32, [index, part, place]: [u32; 3]) -> Result<Words> {
        let mut words = Words::default();
        let divisor = problem.divisor.to_bits();
        let head = [self.rows as u32, index, problem.count() as u32, values, self.part, self.parts, part, place, divisor];
        head.into_iter().try_for_each(|word| words.push(word))?;
        Ok(words)
    }

    fn grid(&self, rows_of_group: u32, parts: u32, caps: &Caps) -> [u32; 3] {
        let groups = self.rows.div_ceil(rows_of_group.into()) as u32;
        let [x, y] = spread(groups, caps.max_workgroups_per_dimension);
        [x, y, parts]
    }

    /// Where the launch's results are bound, and the place of the first among them; also its number among all.
    fn out(&self, problem: &Problem, rows: [u32; 2], caps: &Caps) -> (Binding, u32, u64) {
        let outer = if problem.kept > 0 { u64::from(problem.values.shape[0]).max(1) } else { 1 };
        let first = u64::from(rows[0]) * (problem.rows() / outer);
        let alignment_bytes = caps.binding_alignment_bytes.max(16);
        let offset_bytes = first * 4 / alignment_bytes * alignment_bytes;
        let place = first - offset_bytes / 4;
        let size_bytes = ((place + self.rows) * 4).next_multiple_of(16);
        (Binding { slot: Slot::Out, index: OUT_BINDING, offset_bytes, size_bytes }, place as u32, first)
    }

    /// What folds some values of some rows.
    fn dispatch(&self, problem: &Problem, [rows, steps]: [[u32; 2]; 2], part: u32, caps: &Caps) -> Result<Dispatch> {
        let values = &problem.values;
        let (rank, kept) = (values.shape.len() as u32, problem.kept as u32);
        let ranges = ranges(problem, rows, steps);
        let size = |ranges: &[[u32; 2]]| ranges.iter().map(|[first, end]| u64::from(end - first)).product::<u64>();
        let count = size(&ranges[problem.kept..]) as u32;
        let place = u64::from(steps[0]) * (problem.count() / u64::from(values.shape[problem.kept].max(1)));
        let is_partial = self.is_partial;
        let (out, out_place, first_row) = self.out(problem, rows, caps);
        let index = first_row * problem.count() + place;
        let part = if is_partial { part } else { out_place };
        let mut words = self.words(problem, count, [index as u32, part, place as u32])?;
        ranges.iter().try_for_each(|[first, end]| words.push(end - first))?;
        let is_askew = self.is_flat && !self.is_at_once;
        let (readings, mut bindings) = if is_askew {
            // As a single row.
            let inputs: Vec<_> = values.inputs.iter().map(as_one_row).collect();
            let all = if kept == 0 { ranges } else { vec![[0, 1], rows.map(|row| row * values.shape[1])] };
            map::inputs(&inputs, &all, true, caps, &mut words)?
        } else {
            map::inputs(&values.inputs, &ranges, self.is_quad, caps, &mut words)?
        };
        let scalars_at = words.length();
        values.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
        bindings.push(if is_partial {
            Binding { slot: Slot::Scratch, index: OUT_BINDING, offset_bytes: 0, size_bytes: self.scratch_bytes(problem, caps)? }
        } else {
            out
        });
        let block = self.lanes * BLOCK * self.blocks;
        // Of whole fours a row that begins within one has one less.
        let whole = if is_askew { count / QUAD * QUAD } else { count };
        let sure = if is_askew { whole.saturating_sub(QUAD) } else { count };
        let loops = whole > block;
        let fours = if self.is_tiny { count } else { whole }.div_ceil(self.lanes * QUAD).clamp(1, 4 * self.blocks);
        let mut constants = self.constants(problem, self.lanes);
        constants.extend([
            ("RANK", rank),
            ("KEPT", kept),
            ("ROWS_INNER", kept.saturating_sub(1)),
            ("VALUES_INNER", rank - kept - 1),
            ("QUAD", self.is_quad.into()),
            ("BLOCKS", self.blocks),
            ("FOURS", fours),
            ("VALUES", if self.is_quad || loops { fours * QUAD } else { count.div_ceil(self.lanes) }),
            ("LOOPS", loops.into()),
            ("WHOLE", if loops || is_partial { 0 } else { whole_fours(sure.into(), self.lanes, self.is_quad) }),
            ("COLUMNS", self.is_in_columns.into()),
            ("PARTIAL", is_partial.into()),
            ("SCALARS", scalars_at),
        ]);
        constants.extend(of_values(values, problem.fold));
        constants.extend([
            ("FLAT", self.is_flat.into()),
            ("SINGLES", SINGLES.div_ceil(self.lanes)),
            ("TINY", if self.is_tiny { count } else { 0 }),
            ("COUNT", if self.is_flat && self.is_at_once { count } else { 0 }),
        ]);
        let source = Source { program: Arc::clone(&values.program), inputs: readings, beside: Vec::new(), result: values.dtype, end: None };
        let variant = format!("{} {}", problem.fold.name(), values.program);
        let kernel = Kernel { id: KernelId::Reduce, variant, constants, source: Some(Arc::new(source)) };
        let grid = self.grid(self.rows_of_group, count.div_ceil(self.part), caps);
        Ok(Dispatch { kernel, params: words.into(), bindings, grid })
    }

    /// What joins the parts of each row; whoever asks says what is made of them.
    fn merge(&self, problem: &Problem, rows: [u32; 2], made: &[Constant], caps: &Caps) -> Result<Dispatch> {
        let lanes = self.parts.next_power_of_two().min(self.threads);
        let mut constants = self.constants(problem, lanes);
        // The program of the values is not of this kernel.
        constants.extend([("SCALARS", 0), ("COARSE", 0), ("COLUMNS", 0)]);
        constants.extend_from_slice(made);
        let (out, out_place, _) = self.out(problem, rows, caps);
        let parts = Binding { slot: Slot::Scratch, index: 0, offset_bytes: 0, size_bytes: self.scratch_bytes(problem, caps)? };
        let bindings = vec![parts, out];
        let kernel = Kernel { id: KernelId::ReduceMerge, variant: problem.fold.name().to_owned(), constants, source: None };
        let params = self.words(problem, self.parts, [0, out_place, 0])?.into();
        Ok(Dispatch { kernel, params, bindings, grid: self.grid(self.threads / lanes, 1, caps) })
    }

    fn constants(&self, problem: &Problem, lanes: u32) -> Vec<Constant> {
        let mut constants = fold_constants(problem.fold, problem.values.dtype);
        constants.extend([
            ("THREADS", self.threads),
            ("LANES", lanes),
            ("ROWS", self.threads / lanes),
            ("DIVISOR", DIVISOR),
            ("SIZES", SIZES),
        ]);
        constants
    }
}

pub(super) fn previous_power_of_two(number: u32) -> u32 {
    1 << number.max(1).ilog2()
}
