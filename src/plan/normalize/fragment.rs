//! Plans for softmax and the norms by fragment shaders: a drawing of the states of each row's parts, as a reduction has it, one of what each row's
//! values are told, a texel each, and one of the result.
//!
//! ```text
//! a row's:   rows, 0, values of a row, epsilon, 0, parts of a row, 0, 0, divisor
//! results':  elements, 0, values of a row, sizes, inputs, scale and bias as a map's inputs, the result as they are, scalars
//! ```

use std::sync::Arc;

use super::{as_reduction, is_of_form, ranges, steps};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId, Source};
use crate::ops::normalize::Problem;
use crate::plan::map::{self, OUT_BINDING, QUAD};
use crate::plan::matmul::fold;
use crate::plan::reduce::{self, fold_constants};
use crate::plan::words::Words;
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// Where in the words the divisor of a row is, which is where reductions have it, epsilon, and the sizes of the result.
const DIVISOR: u32 = 8;
const EPSILON: u32 = 3;
const SIZES: u32 = 3;
/// The unit of the texture with what rows are told, behind those of all inputs.
const MEASURES: u32 = map::MOST_UNITS;

/// A plan for fragment shaders.
pub fn fragment(problem: &Problem, caps: &Caps) -> Result<Plan> {
    if problem.values.elements() == 0 {
        return Ok(Plan::default());
    }
    let (rows, count) = (problem.rows(), problem.count());
    let reduction = as_reduction(problem);
    let mut plan = reduce::fragment(&reduction, caps)?;
    plan.dispatches.truncate(1);
    let (states_bytes, measures_bytes) = (plan.scratch_bytes, rows * 16);
    plan.scratch_bytes += measures_bytes;
    let parts = states_bytes / measures_bytes;
    let measures = Binding { slot: Slot::Scratch, index: OUT_BINDING, offset_bytes: states_bytes, size_bytes: measures_bytes };
    let mut words = Words::default();
    let head = [rows as u32, 0, count as u32, problem.epsilon.to_bits(), 0, parts as u32, 0, 0, reduction.divisor.to_bits()];
    head.into_iter().try_for_each(|word| words.push(word))?;
    let mut constants = fold_constants(reduction.fold, DType::F32);
    constants.extend(is_of_form(problem));
    constants.extend([("DIVISOR", DIVISOR), ("EPSILON", EPSILON), ("SCALARS", 0)]);
    let (width, height) = fold(rows, caps)?;
    plan.dispatches.push(Dispatch {
        kernel: Kernel { id: KernelId::NormalizeMeasure, variant: problem.form.name().to_owned(), constants, source: None },
        params: words.into(),
        bindings: vec![Binding { slot: Slot::Scratch, index: 0, offset_bytes: 0, size_bytes: states_bytes }, measures],
        grid: [width, height, 1],
    });
    plan.dispatches.push(results(problem, Binding { index: MEASURES, ..measures }, caps)?);
    Ok(plan)
}

/// The drawing of the result.
fn results(problem: &Problem, measures: Binding, caps: &Caps) -> Result<Dispatch> {
    let values = &problem.values;
    let is_quad = problem.is_in_fours();
    let mut words = Words::default();
    let head = [values.elements() as u32, 0, problem.count() as u32];
    head.into_iter().chain(values.shape.iter().copied()).try_for_each(|word| words.push(word))?;
    let views: Vec<_> = values.inputs.iter().chain(&problem.beside).chain([&problem.out]).cloned().collect();
    // Textures are read from their beginning.
    let whole = Caps { max_binding_bytes: u64::MAX, binding_alignment_bytes: u64::MAX, ..Caps::UNLIMITED };
    let outer = values.shape.first().copied().unwrap_or(1);
    let (mut readings, mut bindings) = map::inputs(&views, &ranges(problem, [[0, outer], steps(problem)]), is_quad, &whole, &mut words)?;
    let scalars_at = words.length();
    values.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
    let (Some(out), Some(binding)) = (readings.pop(), bindings.last_mut()) else { return Err(Error::internal("a result that is nowhere")) };
    *binding = Binding { slot: Slot::Out, index: OUT_BINDING, ..*binding };
    bindings.push(measures);
    let beside = ["scale", "bias"].into_iter().zip(readings.split_off(values.inputs.len())).collect();
    let mut constants = vec![
        ("RANK", values.shape.len() as u32),
        ("QUAD", is_quad.into()),
        ("SIZES", SIZES),
        ("OUT_AT", out.at),
        ("MEASURES", MEASURES),
        ("SCALE", u32::from(!problem.beside.is_empty())),
        ("BIAS", u32::from(problem.beside.len() > 1)),
        ("RESULT_F16", u32::from(problem.out.dtype == DType::F16)),
        ("SCALARS", scalars_at),
    ];
    constants.extend(is_of_form(problem));
    let source = Source { program: Arc::clone(&values.program), inputs: readings, beside, result: problem.out.dtype, end: None };
    let variant = format!("{} {}", problem.form.name(), values.program);
    let kernel = Kernel { id: KernelId::NormalizeFragment, variant, constants, source: Some(Arc::new(source)) };
    let (width, height) = fold(values.elements().div_ceil(QUAD.into()), caps)?;
    Ok(Dispatch { kernel, params: words.into(), bindings, grid: [width, height, 1] })
}
