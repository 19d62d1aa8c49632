//! Plans for reductions by fragment shaders: a drawing of the states of each row's parts, a texel each, and one that joins them.

use std::sync::Arc;

use super::{DIVISOR, SIZES, fold_constants, ranges};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::reduce::Problem;
use crate::plan::map::{self, QUAD};
use crate::plan::matmul::fold;
use crate::plan::words::Words;
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// Fragments that keep a GPU busy.
const BUSY: u64 = 1 << 16;
/// Values that a part has at least, and the most parts of a row.
const PART: u64 = 256;
const MOST_PARTS: u64 = 4096;

/// A plan for fragment shaders. The words are those of compute shaders.
pub fn fragment(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let (rows, count, values) = (problem.rows(), problem.count(), &problem.values);
    if rows == 0 {
        return Ok(Plan::default());
    }
    let parts = (BUSY / rows).clamp(1, MOST_PARTS).min(count.div_ceil(PART)).max(1);
    let part = count.div_ceil(parts).next_multiple_of(64);
    let parts = count.div_ceil(part).max(1);
    let (rank, kept) = (values.shape.len() as u32, problem.kept as u32);
    let is_quad = values.shape.last().is_some_and(|inner| inner.is_multiple_of(QUAD)) && values.inputs.iter().all(|i| i.bounds.is_empty());
    let mut words = Words::default();
    let head = [rows as u32, 0, count as u32, count as u32, part as u32, parts as u32, 0, 0, problem.divisor.to_bits()];
    head.into_iter().chain(values.shape.iter().copied()).try_for_each(|word| words.push(word))?;
    let [first, steps] = [0, problem.kept].map(|dimension| [0, values.shape[dimension]]);
    // Textures are read from their beginning.
    let whole = Caps { max_binding_bytes: u64::MAX, binding_alignment_bytes: u64::MAX, ..Caps::UNLIMITED };
    let (readings, mut bindings) = map::inputs(&values.inputs, &ranges(problem, first, steps), is_quad, &whole, &mut words)?;
    let scalars_at = words.length();
    values.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
    let states = rows * parts;
    let scratch = Binding { slot: Slot::Scratch, index: map::OUT_BINDING, offset_bytes: 0, size_bytes: states * 16 };
    bindings.push(scratch);
    let mut constants = fold_constants(problem.fold, values.dtype);
    constants.extend([("DIVISOR", DIVISOR), ("SIZES", SIZES), ("INTEGER", u32::from(problem.dtype() != DType::F32))]);
    let mut merge = constants.clone();
    merge.push(("SCALARS", 0));
    constants.extend([("RANK", rank), ("KEPT", kept), ("REDUCED", rank - kept), ("QUAD", is_quad.into()), ("SCALARS", scalars_at)]);
    let source = Source { program: Arc::clone(&values.program), inputs: readings, beside: Vec::new(), result: values.dtype, end: None };
    let variant = format!("{} {}", problem.fold.name(), values.program);
    let params = words.into();
    let out = Binding { slot: Slot::Out, index: map::OUT_BINDING, offset_bytes: 0, size_bytes: (rows * 4).next_multiple_of(16) };
    let kernels = [
        (Kernel { id: KernelId::ReduceFragment, variant, constants, source: Some(Arc::new(source)) }, bindings, states),
        (
            Kernel { id: KernelId::ReduceMergeFragment, variant: problem.fold.name().to_owned(), constants: merge, source: None },
            vec![Binding { index: 0, ..scratch }, out],
            rows.div_ceil(QUAD.into()),
        ),
    ];
    let mut plan = Plan { dispatches: Vec::new(), scratch_bytes: states * 16 };
    for (kernel, bindings, texels) in kernels {
        let (width, height) = fold(texels, caps)?;
        plan.dispatches.push(Dispatch { kernel, params, bindings, grid: [width, height, 1] });
    }
    Ok(plan)
}
