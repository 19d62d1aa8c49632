//! Plans for softmax and the norms: `shaders/normalize`, a row for as many lanes as hold it, on CUDA those of several workgroups if need be. Longer
//! ones are folded first, as a reduction folds them, and read again.
//!
//! ```text
//! rows, number of the first value, values of a row, divisor or values of all of it, epsilon, sizes, inputs, scale and bias as a map's inputs,
//! the result as they are, scalars
//!
//! long rows:  reduce/reduce ─► states of parts ─ reduce/merge ─► what values are told ─ normalize/normalize ─► result
//! ```

mod fragment;
#[cfg(not(target_arch = "wasm32"))]
mod plain;

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::map::{self, INPUT_BINDINGS, OUT_BINDING, QUAD, THREADS, bound_bytes};
use super::reduce::{BUSY, Folded, as_one_row, fold_constants, of_values, previous_power_of_two, state_words, states, whole_fours};
use super::words::Words;
use super::{Binding, Dispatch, Params, Plan, Slot, spread};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::template::Constant;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::map::{MOST_DIMENSIONS, MOST_INPUTS, View};
use crate::ops::normalize::{Form, Problem};
use crate::ops::reduce::{self, Fold};
pub use fragment::fragment;
#[cfg(not(target_arch = "wasm32"))]
pub use plain::plain;

/// Values that a lane has, where there are lanes enough.
const BLOCK: u64 = 16;
/// The same in short rows, which change hands before they are written: written by their own lanes, softmax of rows of 10 moved 0.8 TB/s on an
/// NVIDIA H200, and so 3.5.
const SHORT: u64 = 24;
/// The longest rows of whole fours, of f32 and of f16, whose lanes are as few as [`Shares::few_lanes`] says.
const MOST_OF_FEW: [u64; 2] = [24, 128];
/// Lanes that write vectors beside one another: with one alone, softmax of rows of 16 moved 2.6 TB/s on the same GPU, and with four 4.0.
const LEAST_LANES: u64 = 4;
/// The longest rows that a workgroup keeps by itself though clusters could, values that each of their lanes has, and the threads of a workgroup of
/// one. On an NVIDIA H200 softmax of rows of 65536 moved 2.6 TB/s with a workgroup for a row, and with four 3.6.
const ALONE: u64 = 1 << 15;
const OF_CLUSTER: u64 = 64;
const CLUSTER_THREADS: [u32; 2] = [256, 512];
/// So many rows are whole fours.
const TOGETHER: u32 = Problem::TOGETHER as u32;
/// Where in the words the divisor is, epsilon, and the sizes.
const DIVISOR: u32 = 3;
const EPSILON: u32 = 4;
const SIZES: u32 = 5;
/// Words of which a map has none, the result's among them.
pub(crate) const MORE_WORDS: usize = 3 + 1 + MOST_DIMENSIONS;

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    launches(problem, caps, false)
}

/// A plan for CUDA with its compiler, whose lanes meet at no barriers, and which writes numbers of f16 one by one.
#[cfg(not(target_arch = "wasm32"))]
pub fn cuda(problem: &Problem, caps: &Caps) -> Result<Plan> {
    launches(problem, caps, true)
}

fn launches(problem: &Problem, caps: &Caps, is_cuda: bool) -> Result<Plan> {
    let inputs = problem.values.inputs.len() + problem.beside.len();
    let is_long = problem.is_long(caps.max_workgroup_invocations, true) && cluster(problem, caps).is_none();
    if problem.values.shape.len() > MOST_DIMENSIONS || inputs > MOST_INPUTS - usize::from(is_long) {
        return Err(Error::internal("a kernel of more inputs or dimensions than there are"));
    }
    if is_long && problem.rows() > 0 {
        return long(problem, caps);
    }
    let outer = if problem.kept > 0 { problem.values.shape[0] } else { 1 };
    let mut some = outer;
    while let Some(bytes) = largest(problem, some, caps).filter(|bytes| *bytes > caps.max_binding_bytes) {
        // Long rows are taken in pieces.
        if some <= 1 && inputs < MOST_INPUTS {
            return long(problem, caps);
        }
        if some <= 1 {
            let what = "bytes of a tensor that a kernel sees at once";
            return Err(Box::new(Error::LimitExceeded { what, requested: bytes, max: caps.max_binding_bytes }));
        }
        some = some.div_ceil(2);
        // What the others begin with is no part of a four then.
        if problem.crosses_fours(caps.max_workgroup_invocations) && some > TOGETHER {
            some -= some % TOGETHER;
        }
    }
    let mut plan = Plan::default();
    for first in (0..outer).step_by(some.max(1) as usize) {
        let rows = [first, (first + some).min(outer)];
        let shares = Shares::of(problem, rows, caps, is_cuda)?;
        plan.dispatches.push(dispatch(problem, [rows, steps(problem)], &shares, None, caps)?);
    }
    Ok(plan)
}

/// A plan for rows that no workgroup keeps.
fn long(problem: &Problem, caps: &Caps) -> Result<Plan> {
    /// Words that each value of a row is told.
    const MEASURE_WORDS: u64 = 3;
    let seen: Vec<_> = problem.beside.iter().chain([&problem.out]).cloned().collect();
    states(&as_reduction(problem), &seen, caps, |Folded { rows, steps, mut merge }, plan| {
        let count = rows_of(problem, rows);
        let (Some(states), Params::Words(mut words)) = (merge.bindings.first().copied(), merge.params) else {
            return Err(Error::internal("a reduction without states"));
        };
        let offset_bytes = states.size_bytes.next_multiple_of(caps.binding_alignment_bytes.max(16));
        let size_bytes = (count * 4 * MEASURE_WORDS).next_multiple_of(16);
        let measures = Binding { slot: Slot::Scratch, index: OUT_BINDING, offset_bytes, size_bytes };
        plan.scratch_bytes = plan.scratch_bytes.max(offset_bytes + size_bytes);
        merge.kernel.id = KernelId::NormalizeMerge;
        merge.kernel.variant = problem.form.name().to_owned();
        merge.kernel.constants.extend(is_of_form(problem));
        merge.kernel.constants.extend([("MEASURED", 1), ("EPSILON", words.length())]);
        words.push(problem.epsilon.to_bits())?;
        merge.params = words.into();
        merge.bindings = vec![states, measures];
        plan.dispatches.push(merge);
        for steps in steps {
            let shares = Shares::of_long(problem, [rows, steps], caps);
            plan.dispatches.push(dispatch(problem, [rows, steps], &shares, Some(measures), caps)?);
        }
        Ok(())
    })
}

/// The only launch on a CPU.
pub fn cpu(problem: &Problem, variant: &str) -> Result<Plan> {
    if problem.values.elements() == 0 {
        return Ok(Plan::default());
    }
    // The scale, the bias and the places of the result are told as inputs that the program does not ask for.
    let mut values = problem.values.clone();
    let own = values.inputs.len();
    values.inputs.extend(problem.beside.iter().chain([&problem.out]).cloned());
    #[cfg(not(target_arch = "wasm32"))]
    let columns = columns(problem);
    #[cfg(not(target_arch = "wasm32"))]
    if columns > 0 {
        values.put_behind(problem.kept - 1, values.shape.len());
    }
    let plan = map::cpu(&values, variant)?;
    let [Dispatch { kernel, params, mut bindings, grid }] =
        <[_; 1]>::try_from(plan.dispatches).map_err(|_| Error::internal("a plan in parts"))?;
    bindings.retain(|binding| binding.slot != Slot::Input((own + problem.beside.len()) as u8));
    let mut kernel = Kernel { id: KernelId::NormalizeCpu, variant: format!("{} {}", problem.form.name(), kernel.variant), ..kernel };
    kernel.constants.extend([
        ("COUNT", problem.count() as u32),
        ("FORM", problem.form as u32),
        ("EPSILON", problem.epsilon.to_bits()),
        ("INPUTS", own as u32),
        ("BESIDE", problem.beside.len() as u32),
        #[cfg(not(target_arch = "wasm32"))]
        ("COLUMNS", columns),
    ]);
    Ok(Plan::of(Dispatch { kernel, params, bindings, grid }))
}

/// Rows whose neighbours lie beside one another in the result, which has no gaps then: the CPU takes all of them at once. 0 if rows are to be
/// taken one by one.
#[cfg(not(target_arch = "wasm32"))]
fn columns(problem: &Problem) -> u32 {
    /// Fewer fill no vector.
    const LEAST: u32 = 16;
    let (shape, kept, out) = (&problem.values.shape, problem.kept, &problem.out);
    let is_softmax = matches!(problem.form, Form::Softmax | Form::LogSoftmax) && out.dtype == DType::F32;
    if kept == 0 || !is_softmax || !problem.is_in_columns() || problem.values.program.reads_index() || shape[kept - 1] < LEAST {
        return 0;
    }
    let mut apart = 1i64;
    let in_order = (0..kept - 1).chain(kept..shape.len()).chain([kept - 1]).rev().all(|dimension| {
        let expected = apart;
        apart *= i64::from(shape[dimension]);
        shape[dimension] == 1 || out.strides[dimension] == expected
    });
    if in_order && out.offset == 0 && out.bounds.is_empty() { shape[kept - 1] } else { 0 }
}

/// What is folded of a row.
fn folded(form: Form) -> Fold {
    match form {
        Form::Softmax | Form::LogSoftmax => Fold::LogSumExp,
        Form::LayerNorm => Fold::Var,
        Form::RmsNorm => Fold::Rms,
    }
}

/// The same as a reduction by itself.
fn as_reduction(problem: &Problem) -> reduce::Problem {
    let (values, fold) = (problem.values.clone(), folded(problem.form));
    reduce::Problem { values, kept: problem.kept, fold, divisor: problem.count() as f32 }
}

/// What is made of rows.
fn is_of_form(problem: &Problem) -> [Constant; 4] {
    let is = |form: Form| u32::from(problem.form == form);
    [("LAYER", is(Form::LayerNorm)), ("RMS", is(Form::RmsNorm)), ("LOGARITHMS", is(Form::LogSoftmax)), ("POWERS", is(Form::Softmax))]
}

/// The most bytes that a launch of some of the outermost rows sees of anything.
fn largest(problem: &Problem, some: u32, caps: &Caps) -> Option<u64> {
    let ranges = ranges(problem, [[0, some], steps(problem)]);
    let bytes = |view: &View| bound_bytes(view, &ranges, caps);
    problem.values.inputs.iter().chain(&problem.beside).chain([&problem.out]).map(bytes).max()
}

/// All of the outermost dimension within rows.
fn steps(problem: &Problem) -> [u32; 2] {
    [0, problem.values.shape[problem.kept]]
}

/// The ranges of all dimensions, of which the first of those of rows is cut, and the first of those within them.
fn ranges(problem: &Problem, [rows, steps]: [[u32; 2]; 2]) -> Vec<[u32; 2]> {
    let mut ranges: Vec<_> = problem.values.shape.iter().map(|&size| [0, size]).collect();
    if problem.kept > 0 {
        ranges[0] = rows;
    }
    ranges[problem.kept] = steps;
    ranges
}

/// How many rows those of the outermost dimension are.
fn rows_of(problem: &Problem, [first, end]: [u32; 2]) -> u64 {
    let outer = if problem.kept > 0 { u64::from(problem.values.shape[0]).max(1) } else { 1 };
    u64::from(end - first) * (problem.rows() / outer)
}

/// Threads and workgroups of a cluster that keeps a row, where there are such; None for shorter rows and for longer ones.
fn cluster(problem: &Problem, caps: &Caps) -> Option<[u32; 2]> {
    // No shading language has any.
    if cfg!(target_arch = "wasm32") || problem.is_in_columns() || problem.count() <= ALONE {
        return None;
    }
    let cluster = |threads: u32| [threads, problem.count().div_ceil(u64::from(threads) * OF_CLUSTER).next_power_of_two() as u32];
    let fits = |[threads, workgroups]: &[u32; 2]| {
        *threads <= caps.max_workgroup_invocations && (2..=caps.max_cluster_workgroups).contains(workgroups)
    };
    CLUSTER_THREADS.into_iter().map(cluster).find(fits)
}

/// Values that a lane has, where there are lanes enough: those of f16 are half the bytes, of which enough have to be under way.
fn block(problem: &Problem) -> u64 {
    let is_narrow = problem.values.inputs.iter().all(|input| input.dtype == DType::F16);
    if is_narrow { 2 * BLOCK } else { BLOCK }
}

/// How rows and their values are shared out.
struct Shares {
    threads: u32,
    lanes: u32,
    /// Fours that a lane has, and values.
    held: u32,
    each: u32,
    is_quad: bool,
    /// The words of workgroup memory in which rows change hands, if they do; `is_flat` if they do so before they are folded as well.
    staged: u32,
    is_flat: bool,
    /// Whether fours are of two rows.
    is_crossed: bool,
    is_exact: bool,
    /// Workgroups of a row.
    cluster: u32,
}

impl Shares {
    /// Of rows that workgroups keep.
    fn of(problem: &Problem, rows: [u32; 2], caps: &Caps, is_cuda: bool) -> Result<Self> {
        let values = &problem.values;
        let ([first, _], rows, count) = (rows, rows_of(problem, rows), problem.count());
        if let Some([threads, cluster]) = self::cluster(problem, caps) {
            let held = count.div_ceil(u64::from(threads * cluster * QUAD)) as u32;
            let is_exact = u64::from(held * threads * cluster * QUAD) == count;
            let is_quad = problem.is_in_fours();
            let each = if is_quad { held * QUAD } else { count.div_ceil(u64::from(threads * cluster)) as u32 };
            return Ok(Self {
                threads,
                lanes: threads,
                held,
                each,
                is_quad,
                staged: 0,
                is_flat: false,
                is_crossed: false,
                is_exact,
                cluster,
            });
        }
        if first.is_multiple_of(TOGETHER) && Self::crosses(problem, caps, is_cuda) {
            return Ok(Self::crossing(problem, rows, caps, is_cuda));
        }
        if problem.out.dtype == DType::F16 && !problem.is_in_fours() && !is_cuda {
            return Err(Error::internal("rows of f16 that are not in fours"));
        }
        let is_in_columns = problem.is_in_columns();
        // More invocations than usual hold long rows, and long columns, so that enough neighbours are beside one another.
        let is_long = count > if is_in_columns { Problem::MOST_IN_COLUMN / 4 } else { Problem::MOST_IN_ROW };
        let threads = previous_power_of_two((if is_long { 4 * THREADS } else { THREADS }).min(caps.max_workgroup_invocations));
        // Neighbours in memory for neighbouring invocations, as long as the others hold a row.
        let most_beside = if is_long { 8 } else { 32 };
        let beside = if is_in_columns { rows.min(most_beside).next_power_of_two() as u32 } else { 1 };
        let lanes = |block: u64| count.div_ceil(block).next_power_of_two().min(u64::from(threads / beside.min(threads))) as u32;
        // Short rows change hands in workgroup memory, if there is room for them.
        let is_short = !is_in_columns && !problem.is_in_fours() && count <= u64::from(threads / 2);
        let staged = threads / lanes(SHORT) * ((count as u32).next_multiple_of(lanes(SHORT)) | 1);
        let workgroup_words = u64::from(staged) + u64::from(threads) * state_words(folded(problem.form), DType::F32);
        let is_staged = is_short && (problem.out.dtype == DType::F32 || is_cuda) && 4 * workgroup_words <= caps.max_workgroup_bytes.into();
        let is_quad = problem.is_in_fours();
        let most = block(problem);
        // Vectors of f16 are half as long: on CUDA layer norms of rows of 100 moved 2.6 TB/s there with four of them beside one another, and with eight
        // 3.4, but through wgpu 2.7 and 2.1.
        let least_lanes = if is_cuda && most > BLOCK && count > 64 { 2 * LEAST_LANES } else { LEAST_LANES };
        let lanes = lanes(match (is_staged, is_quad) {
            (true, _) => SHORT,
            (_, true) => (count.next_power_of_two() / least_lanes).clamp(QUAD.into(), most),
            // Where there are rows enough without so many lanes, what those have is joined sooner. Neighbours read neighbours, for which some have to
            // be beside one another.
            _ if !is_cuda && lanes(2 * BLOCK) >= 16 && rows * u64::from(lanes(2 * BLOCK)) >= BUSY * u64::from(threads) => 2 * BLOCK,
            _ => most,
        });
        let (threads, lanes) = match !is_cuda && is_quad && count <= MOST_OF_FEW[usize::from(most > BLOCK)] {
            true => (threads.min(THREADS / 2), Self::few_lanes(count as u32 / QUAD, 1, most > BLOCK)),
            false => (threads, lanes),
        };
        // They do so before they are folded as well, where all of them lie behind one another: read by their own lanes, softmax of rows of 33 moved
        // 45 % of what a copy does through wgpu on an NVIDIA H200, and so 63.
        let is_flat = is_staged && values.lies_flat(problem.kept, [&problem.out]);
        // Fewer of them have room for more workgroups on a multiprocessor: with 256 in each, softmax of rows of 50 moved 54 % in a browser there, and
        // so 70.
        let (threads, staged) = if is_flat && !is_cuda { (threads / 2, staged / 2) } else { (threads, staged) };
        let held = count.div_ceil(u64::from(lanes * QUAD)) as u32;
        let each = if is_quad { held * QUAD } else { count.div_ceil(lanes.into()) as u32 };
        let is_exact = u64::from(held * lanes * QUAD) == count;
        let staged = if is_staged { staged } else { 0 };
        Ok(Self { threads, lanes, held, each, is_quad, staged, is_flat, is_crossed: false, is_exact, cluster: 1 })
    }

    /// Whether those that lie behind one another are read in fours wherever they begin. With single values softmax of rows of 101 of f32 moved 71 % of
    /// what a copy does in a browser on an NVIDIA H200, and so 101; on CUDA the single ones change hands as fast.
    fn crosses(problem: &Problem, caps: &Caps, is_cuda: bool) -> bool {
        /// Shorter ones change hands, and longer ones leave their lanes no room.
        const F32: RangeInclusive<u64> = 16..=4096;
        let of_f32 = !is_cuda && F32.contains(&problem.count());
        problem.crosses_fours(caps.max_workgroup_invocations) && (of_f32 || problem.out.dtype == DType::F16)
    }

    /// Of those.
    fn crossing(problem: &Problem, rows: u64, caps: &Caps, is_cuda: bool) -> Self {
        let most_threads = previous_power_of_two(caps.max_workgroup_invocations);
        // Of the first and the last others may have a part: of those of an even number of values two at most.
        let count = problem.count() as u32;
        let fours = (count + if count.is_multiple_of(2) { 4 } else { 6 }) / QUAD;
        let few = Self::few_lanes(fours, 3, !is_cuda && block(problem) > BLOCK);
        // Of few rows there are hardly lanes enough.
        let are_many = rows * u64::from(few) >= BUSY * u64::from(THREADS / 4);
        let lanes = if are_many { few } else { few.max(fours.div_ceil(4).next_power_of_two()) }.min(most_threads / TOGETHER);
        let (threads, held) = ((THREADS / 2).min(most_threads).max(lanes * TOGETHER), fours.div_ceil(lanes));
        Self {
            threads,
            lanes,
            held,
            each: held * QUAD,
            is_quad: true,
            staged: 0,
            is_flat: true,
            is_crossed: true,
            is_exact: false,
            cluster: 1,
        }
    }

    /// Lanes of a row of so many fours. A few of those for each lane leave it enough to wait for, and are more once there are lanes enough, which have
    /// to join what they fold. In a browser on an NVIDIA H200 softmax of rows of 33 moved with 3, 5 and 9 fours for each 93, 80 and 40 % of what a copy
    /// does, and layer norms of rows of 257 with 3, 5 and 9 of them 62, 95 and 95. Up to `alone` of them are for one lane, which has no neighbour then.
    fn few_lanes(fours: u32, alone: u32, is_narrow: bool) -> u32 {
        const MOST: u32 = 16;
        // Those of f16, half as long, are for fewer lanes in a browser.
        let (some, few) = if is_narrow { (5, 4) } else { (4, 8) };
        let lanes = |most: u32| fours.div_ceil(most).next_power_of_two();
        lanes(MOST).max(lanes(some).min(few)).max(if fours > alone { 2 } else { 1 })
    }

    /// Of longer ones, of which a workgroup has a part.
    fn of_long(problem: &Problem, [rows, steps]: [[u32; 2]; 2], caps: &Caps) -> Self {
        let threads = previous_power_of_two(THREADS.min(caps.max_workgroup_invocations));
        let beside = if problem.is_in_columns() { rows_of(problem, rows).min(256).next_power_of_two() as u32 } else { 1 };
        let lanes = threads / beside.min(threads);
        let count = problem.count() / u64::from(problem.values.shape[problem.kept]) * u64::from(steps[1] - steps[0]);
        let mut each = block(problem);
        while count.div_ceil(u64::from(lanes) * each) > caps.max_workgroups_per_dimension.into() {
            each *= 2;
        }
        let (each, held) = (each as u32, each as u32 / QUAD);
        let is_exact = count.is_multiple_of((held * lanes * QUAD).into());
        Self {
            threads,
            lanes,
            held,
            each,
            is_quad: problem.is_in_fours(),
            staged: 0,
            is_flat: false,
            is_crossed: false,
            is_exact,
            cluster: 1,
        }
    }
}

/// A launch for some rows; where `measures` has what their values are told, for some of their values.
fn dispatch(problem: &Problem, [rows, steps]: [[u32; 2]; 2], shares: &Shares, measures: Option<Binding>, caps: &Caps) -> Result<Dispatch> {
    let values = &problem.values;
    let Shares { threads, lanes, held, is_quad, is_flat, is_crossed, .. } = *shares;
    let (rank, kept) = (values.shape.len() as u32, problem.kept as u32);
    let ranges = ranges(problem, [rows, steps]);
    let (all, step_values) = (problem.count(), problem.count() / u64::from(values.shape[problem.kept].max(1)));
    let count = u64::from(steps[1] - steps[0]) * step_values;
    let before = rows_of(problem, [0, rows[0]]) * all + u64::from(steps[0]) * step_values;
    let rows = rows_of(problem, rows);
    let mut words = Words::default();
    let divisor = if measures.is_some() { all as u32 } else { (count as f32).to_bits() };
    let head = [rows as u32, before as u32, count as u32, divisor, problem.epsilon.to_bits()];
    head.into_iter().try_for_each(|word| words.push(word))?;
    ranges.iter().try_for_each(|[first, end]| words.push(end - first))?;
    let views: Vec<_> = values.inputs.iter().chain(&problem.beside).chain([&problem.out]).collect();
    let all = if is_crossed { vec![[0, 1], ranges[0].map(|row| row * count as u32)] } else { Vec::new() };
    let behind_inputs = values.inputs.len()..values.inputs.len() + problem.beside.len();
    let told = views.iter().enumerate().map(|(number, view)| match is_crossed && !behind_inputs.contains(&number) {
        true => map::input(number, &as_one_row(view), &all, true, caps, &mut words),
        false => map::input(number, view, &ranges, is_quad, caps, &mut words),
    });
    let (mut readings, mut bindings): (Vec<_>, Vec<_>) = told.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let scalars_at = words.length();
    values.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
    let (Some(out), Some(binding)) = (readings.pop(), bindings.last_mut()) else { return Err(Error::internal("a result that is nowhere")) };
    *binding = Binding { slot: Slot::Out, index: OUT_BINDING, ..*binding };
    // Where one input more would be.
    let measures_at = INPUT_BINDINGS[views.len() - 1];
    bindings.extend(measures.map(|measures| Binding { index: measures_at, ..measures }));
    let beside = ["scale", "bias"].into_iter().zip(readings.split_off(values.inputs.len())).collect();
    let mut constants = fold_constants(folded(problem.form), DType::F32);
    constants.extend([
        ("THREADS", threads),
        ("LANES", lanes),
        ("ROWS", threads / lanes),
        ("DIVISOR", DIVISOR),
        ("EPSILON", EPSILON),
        ("SIZES", SIZES),
        ("RANK", rank),
        ("KEPT", kept),
        ("ROWS_INNER", kept.saturating_sub(1)),
        ("VALUES_INNER", rank - kept - 1),
        ("QUAD", is_quad.into()),
        ("COLUMNS", problem.is_in_columns().into()),
        ("HELD", held),
        ("FOURS", held),
        ("WHOLE", whole_fours(count, lanes, is_quad)),
        ("VALUES", shares.each),
        ("STAGED", shares.staged),
        ("FLAT", is_flat.into()),
        ("COUNT", if is_flat && !is_crossed { count as u32 } else { 0 }),
        ("CROSSED", is_crossed.into()),
        ("EXACT", shares.is_exact.into()),
        ("MEASURED", measures.is_some().into()),
        ("MEASURES", if measures.is_some() { measures_at } else { 0 }),
        ("SCALE", u32::from(!problem.beside.is_empty())),
        ("BIAS", u32::from(problem.beside.len() > 1)),
        ("OUT_F16", u32::from(problem.out.dtype == DType::F16)),
        ("OUT_AT", out.at),
        ("SCALARS", scalars_at),
    ]);
    constants.extend(is_of_form(problem));
    constants.extend((shares.cluster > 1).then_some(("CLUSTER", shares.cluster)));
    constants.extend(of_values(values, folded(problem.form)));
    let source = Source { program: Arc::clone(&values.program), inputs: readings, beside, result: problem.out.dtype, end: None };
    let variant = format!("{} {}", problem.form.name(), values.program);
    let kernel = Kernel { id: KernelId::Normalize, variant, constants, source: Some(Arc::new(source)) };
    let groups = rows.div_ceil(u64::from(threads / lanes)) as u32;
    let [x, y] = spread(groups, caps.max_workgroups_per_dimension / shares.cluster);
    let parts = if measures.is_some() { count.div_ceil(u64::from(lanes * held * QUAD)) as u32 } else { 1 };
    Ok(Dispatch { kernel, params: words.into(), bindings, grid: [x * shares.cluster, y, parts] })
}
