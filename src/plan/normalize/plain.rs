//! Plans for CUDA without a compiler: `shaders/normalize/plain.cu` takes rows that lie one behind the other, and the interpreter of elementwise
//! programs does what comes before and after.
//!
//! ```text
//! values ─ map/interpreted ─► rows in scratch ─ normalize/plain ─► the same ─ map/interpreted: · scale + bias ─► result
//! ```

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::elementwise::{Function, Kind, Program, Step};
use crate::ops::map::{self, View};
use crate::ops::normalize::Problem;
use crate::plan::map::THREADS;
use crate::plan::reduce::plain::{in_rows, strides};
use crate::plan::words::Words;
use crate::plan::{self, Binding, Dispatch, Plan, Slot};

/// The most blocks, each of which takes several rows then.
const MOST_WORKGROUPS: u64 = 1 << 16;

/// A plan for CUDA without a compiler.
pub fn plain(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let values = &problem.values;
    if values.elements() == 0 {
        return Ok(Plan::default());
    }
    let (rows, count) = (problem.rows(), problem.count());
    if rows > u64::from(u32::MAX) >> 1 {
        let what = "the rows of a softmax or a norm";
        return Err(Box::new(Error::LimitExceeded { what, requested: rows, max: u64::from(u32::MAX) >> 1 }));
    }
    let (mut plan, reads) = in_rows(values, caps)?;
    let out = &problem.out;
    let is_direct = problem.beside.is_empty() && out.dtype == DType::F32 && out.offset == 0 && out.strides == strides(&values.shape);
    let slot = if is_direct { Slot::Out } else { Slot::Scratch };
    let writes = Binding { slot, index: 7, offset_bytes: 0, size_bytes: reads.size_bytes };
    let mut words = Words::default();
    let head = [rows as u32, 0, count as u32, (count as f32).to_bits(), problem.epsilon.to_bits()];
    head.into_iter().try_for_each(|word| words.push(word))?;
    let kernel = Kernel {
        id: KernelId::NormalizePlain,
        variant: problem.form.name().to_owned(),
        constants: vec![("THREADS", THREADS)],
        source: None,
    };
    let grid = [rows.min(MOST_WORKGROUPS) as u32, 1, 1];
    plan.dispatches.push(Dispatch { kernel, params: words.into(), bindings: vec![reads, writes], grid });
    if !is_direct {
        plan.scratch_bytes = reads.size_bytes;
        plan.dispatches.extend(placed(problem, caps)?.dispatches);
    }
    Ok(plan)
}

/// What multiplies rows in the scratch by the scale, adds the bias, and puts them where the result has them.
fn placed(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let shape = &problem.values.shape;
    // The dimensions as they are in memory.
    let mut order: Vec<_> = (0..shape.len()).collect();
    order.sort_by_key(|&dimension| if shape[dimension] == 1 { i64::MIN } else { -problem.out.strides[dimension] });
    let turned = |view: &View| View { strides: order.iter().map(|&dimension| view.strides[dimension]).collect(), ..view.clone() };
    let rows = View { dtype: DType::F32, offset: 0, strides: strides(shape), bounds: Vec::new() };
    let inputs: Vec<_> = [&rows].into_iter().chain(&problem.beside).map(turned).collect();
    let mut steps: Vec<_> = (0..inputs.len()).map(|input| Step::Input(input as u8)).collect();
    for (number, function) in (1u8..).zip([Function::Mul, Function::Add]).take(problem.beside.len()) {
        let last = if number == 1 { 0 } else { steps.len() as u8 - 1 };
        steps.push(Step::Apply(function, [last, number]));
    }
    let program = Program { inputs: vec![Kind::F32; inputs.len()], steps };
    let shape = order.iter().map(|&dimension| shape[dimension]).collect();
    let whole = map::Problem { shape, inputs, program: Arc::new(program), scalars: Vec::new(), dtype: problem.out.dtype };
    let mut plan = plan::map::interpreted(&whole, caps)?;
    let own = problem.values.inputs.len() as u8;
    for binding in plan.dispatches.iter_mut().flat_map(|dispatch| &mut dispatch.bindings) {
        binding.slot = match binding.slot {
            Slot::Input(0) => Slot::Scratch,
            Slot::Input(beside) => Slot::Input(own + beside - 1),
            other => other,
        };
    }
    Ok(plan)
}
