//! Plans for operations with what follows them: those of the operations, whose kernels compute the rest of each element before they write it.
//!
//! Behind its own words such a kernel is told:
//!
//! ```text
//! number of the first element of what it sees of the result, elements of all of the result,
//! sizes,
//! for each input but the first: offset, strides
//! scalars
//! ```

use std::sync::Arc;

use super::map::{QUAD, inputs};
use super::matmul::Ended;
use super::{Dispatch, Params, Plan, Slot, Words};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{End, KernelId, Source};
use crate::ops::elementwise::Program;
use crate::ops::fused::Fused;

/// All bindings of storage buffers.
const BINDINGS: [u32; 7] = [0, 1, 2, 4, 5, 6, 7];

/// A plan for compute shaders.
///
/// # Errors
/// [`Error::Internal`] where there is none: [`takes`] tells.
pub fn compute(fused: &Fused, caps: &Caps) -> Result<Plan> {
    let Fused { core, end, .. } = fused;
    let is_read_once = end.inputs.iter().all(|input| input.bounds.is_empty() && reach_bytes(fused, input) <= caps.max_binding_bytes);
    if core.extent().dtype != DType::F32 || end.dtype != DType::F32 || !is_read_once || end.elements() > u32::MAX.into() {
        return Err(refused());
    }
    let mut plan = super::compute(core, caps)?;
    for dispatch in &mut plan.dispatches {
        if dispatch.bindings.iter().any(|binding| binding.slot == Slot::Out) {
            add_to(dispatch, fused, caps)?;
        }
    }
    Ok(plan)
}

/// Whether there is such a plan.
pub fn takes(fused: &Fused, caps: &Caps) -> bool {
    compute(fused, caps).is_ok()
}

fn refused() -> Box<Error> {
    Error::internal("an operation that does not take what follows it")
}

/// From the first to the last element that is read of an input, and what a binding may begin before it.
fn reach_bytes(fused: &Fused, input: &crate::ops::map::View) -> u64 {
    let ranges: Vec<_> = fused.end.shape.iter().map(|&size| [0, size]).collect();
    let [first, last] = input.reach(&ranges);
    (last - first) as u64 * input.dtype.bytes() + 512
}

/// Has a launch that writes the result compute what follows.
fn add_to(dispatch: &mut Dispatch, Fused { core_inputs, end, .. }: &Fused, caps: &Caps) -> Result<()> {
    let kernel = &mut dispatch.kernel;
    let is_whole = |name: &str| kernel.constant(name) == 0;
    let ends = match kernel.id {
        KernelId::Normalize | KernelId::ConvWinogradResult => true,
        KernelId::Reduce => is_whole("PARTIAL"),
        KernelId::ConvTiled | KernelId::ConvDirect | KernelId::MatmulTiled | KernelId::MatmulSum => {
            is_whole("ACCUMULATES") && is_whole("PARTS") && is_whole("RESULT_F16")
        }
        _ => false,
    };
    let own = kernel.source.as_ref();
    let (mut words, is_product) = match &dispatch.params {
        Params::Words(words) => (*words, false),
        Params::Matmul(_) => (Words::default(), true),
        _ => return Err(refused()),
    };
    let Some(out) = dispatch.bindings.iter().find(|binding| binding.slot == Slot::Out).filter(|_| ends) else { return Err(refused()) };
    let free: Vec<_> = BINDINGS.into_iter().filter(|index| dispatch.bindings.iter().all(|binding| binding.index != *index)).collect();
    let others = &end.inputs[1..];
    if free.len() < others.len() {
        return Err(refused());
    }
    let at = words.length();
    words.push((out.offset_bytes / DType::F32.bytes()) as u32)?;
    words.push(end.elements() as u32)?;
    end.shape.iter().try_for_each(|&size| words.push(size))?;
    let ranges: Vec<_> = end.shape.iter().map(|&size| [0, size]).collect();
    let is_quad = end.shape.last().is_some_and(|size| size.is_multiple_of(QUAD));
    let (mut readings, mut bindings) = inputs(others, &ranges, is_quad, caps, &mut words)?;
    for (number, (reading, binding)) in readings.iter_mut().zip(&mut bindings).enumerate() {
        (reading.binding, binding.index) = (free[number], free[number]);
        binding.slot = Slot::Input(core_inputs + number as u8);
    }
    let scalars = words.length();
    end.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
    if is_product && words.length() as usize > Ended::MOST {
        return Err(refused());
    }
    // Four at once where the kernel writes four from a multiple of four on.
    let writes_fours = match kernel.id {
        KernelId::Normalize => kernel.constant("QUAD") > 0,
        KernelId::Reduce => false,
        _ => kernel.constant("OUT_VEC4") > 0,
    };
    let is_quad = is_quad && writes_fours && out.offset_bytes.is_multiple_of(16);
    let told = End { program: Arc::clone(&end.program), inputs: readings, at, rank: end.shape.len() as u32, scalars, is_quad };
    let none = || Source { program: Arc::new(Program::default()), inputs: Vec::new(), beside: Vec::new(), result: DType::F32, end: None };
    kernel.source = Some(Arc::new(Source { end: Some(told), ..own.map_or_else(none, |own| own.as_ref().clone()) }));
    kernel.variant = format!("{}{}then {}", kernel.variant, if kernel.variant.is_empty() { "" } else { ", " }, end.program);
    dispatch.bindings.extend(bindings);
    dispatch.params = match dispatch.params {
        Params::Matmul(params) => {
            let mut more = [0; Ended::MOST];
            more.iter_mut().zip(words.get()).for_each(|(to, from)| *to = *from);
            Params::MatmulEnded(Ended { params, more })
        }
        _ => words.into(),
    };
    Ok(())
}
