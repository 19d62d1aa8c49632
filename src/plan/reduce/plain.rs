//! Plans for CUDA without a compiler: `shaders/reduce/plain.cu` folds rows that lie one behind the other, where the interpreter of elementwise
//! programs puts them first unless they do.
//!
//! ```text
//! values ─ map/interpreted ─► scratch ─ reduce/plain ─► states of parts ─ reduce/plain ─► result
//! ```
//!
//! The words are those of a reduction up to the divisor, then the lanes of a row, whether states are written, whether they are read, and
//! which of the folds it is that the kernel has under one name.

use super::{BLOCK, BUSY, MOST_VALUES, THREADS, state_words};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::elementwise::Step;
use crate::ops::map;
use crate::ops::reduce::{Fold, Problem};
use crate::plan::words::Words;
use crate::plan::{self, Binding, Dispatch, Plan, Slot};

/// Multiples at which parts of the scratch begin.
const ALIGNMENT_BYTES: u64 = 256;

/// A plan for CUDA without a compiler.
pub fn plain(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let (rows, count) = (problem.rows(), problem.count());
    for (what, requested) in [("the values of a row", count), ("the rows of a reduction", rows)] {
        if requested > MOST_VALUES {
            return Err(Box::new(Error::LimitExceeded { what, requested, max: MOST_VALUES }));
        }
    }
    let (mut plan, values) = in_rows(&problem.values, caps)?;
    let [rows, count] = [rows, count].map(|number| number as u32);
    let lanes = count.div_ceil(BLOCK).next_power_of_two().min(THREADS);
    let groups = rows.div_ceil(THREADS / lanes);
    let block = lanes * BLOCK;
    let part = count.div_ceil((BUSY as u32 / groups.max(1)).max(1)).max(2 * block).next_multiple_of(block);
    let parts = count.div_ceil(part).max(1);
    let out = Binding { slot: Slot::Out, index: 7, offset_bytes: 0, size_bytes: (u64::from(rows) * 4).next_multiple_of(16) };
    if parts == 1 {
        plan.dispatches.push(dispatch(problem, [rows, count, part, lanes], [values, out], [false, false])?);
        return Ok(plan);
    }
    let size_bytes = (u64::from(rows) * u64::from(parts) * 4 * state_words(problem.fold, problem.values.dtype)).next_multiple_of(16);
    let states = Binding { slot: Slot::Scratch, index: 7, offset_bytes: plan.scratch_bytes.next_multiple_of(ALIGNMENT_BYTES), size_bytes };
    plan.scratch_bytes = states.offset_bytes + size_bytes;
    plan.dispatches.push(dispatch(problem, [rows, count, part, lanes], [values, states], [false, true])?);
    let lanes = parts.next_power_of_two().min(THREADS);
    plan.dispatches.push(dispatch(problem, [rows, parts, parts, lanes], [Binding { index: 0, ..states }, out], [true, false])?);
    Ok(plan)
}

/// What puts values row by row where a kernel finds them, and that place.
pub(in crate::plan) fn in_rows(values: &map::Problem, caps: &Caps) -> Result<(Plan, Binding)> {
    let size_bytes = (values.elements() * 4).next_multiple_of(16).max(16);
    if let [input] = &values.inputs[..]
        && values.program.steps == [Step::Input(0)]
        && input.dtype == values.dtype
        && input.bounds.is_empty()
        && input.strides == strides(&values.shape)
        && let Ok(offset) = u64::try_from(input.offset)
        && (offset * 4).is_multiple_of(ALIGNMENT_BYTES)
    {
        return Ok((Plan::default(), Binding { slot: Slot::Input(0), index: 0, offset_bytes: offset * 4, size_bytes }));
    }
    let mut plan = plan::map::interpreted(values, caps)?;
    for binding in plan.dispatches.iter_mut().flat_map(|dispatch| &mut dispatch.bindings).filter(|binding| binding.slot == Slot::Out) {
        binding.slot = Slot::Scratch;
    }
    plan.scratch_bytes = size_bytes;
    Ok((plan, Binding { slot: Slot::Scratch, index: 0, offset_bytes: 0, size_bytes }))
}

/// The strides of what lies row by row.
pub(in crate::plan) fn strides(shape: &[u32]) -> Vec<i64> {
    (0..shape.len()).map(|dimension| shape[dimension + 1..].iter().map(|&size| i64::from(size)).product()).collect()
}

fn dispatch(
    problem: &Problem,
    [rows, count, part, lanes]: [u32; 4],
    bindings: [Binding; 2],
    [reads_states, writes_states]: [bool; 2],
) -> Result<Dispatch> {
    let parts = count.div_ceil(part).max(1);
    let is_other = matches!(problem.fold, Fold::Min | Fold::ArgMin | Fold::Mean | Fold::Std | Fold::Rms);
    let mut words = Words::default();
    let head = [rows, 0, count, count, part, parts, 0, 0, problem.divisor.to_bits()];
    let flags = [lanes, writes_states.into(), reads_states.into(), is_other.into()];
    head.into_iter().chain(flags).try_for_each(|word| words.push(word))?;
    let kernel = Kernel {
        id: KernelId::ReducePlain,
        variant: variant(problem.fold, problem.values.dtype),
        constants: vec![("THREADS", THREADS)],
        source: None,
    };
    Ok(Dispatch { kernel, params: words.into(), bindings: bindings.to_vec(), grid: [rows.div_ceil(THREADS / lanes).max(1), 1, parts] })
}

/// What the kernel is called in `plain.cu`.
fn variant(fold: Fold, dtype: DType) -> String {
    let (name, wraps) = match fold {
        Fold::Sum | Fold::Mean => ("sum", true),
        Fold::Prod => ("prod", true),
        Fold::Max | Fold::Min => ("extreme", false),
        Fold::ArgMax | Fold::ArgMin => ("arg", false),
        Fold::Var | Fold::Std => ("moments", false),
        Fold::Norm | Fold::Rms => ("norm", false),
        Fold::LogSumExp => ("exponential", false),
    };
    // Of integers that wrap around the bits are the same.
    let dtype = if wraps && dtype == DType::I32 { DType::U32 } else { dtype };
    format!("{name}_{dtype}")
}
