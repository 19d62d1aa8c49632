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
use super::{Binding, Dispatch, Params, Plan, Slot, Words, conv, matmul, normalize, reduce};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::{BackendId, Caps};
use crate::kernels::{End, Kernel, KernelId, Source};
use crate::ops::Op;
use crate::ops::elementwise::Program;
use crate::ops::fused::Fused;

/// All bindings of storage buffers.
const BINDINGS: [u32; 7] = [0, 1, 2, 4, 5, 6, 7];
/// The units of textures that what follows reads in a fragment shader: behind all that the kernels read of themselves.
pub(crate) const UNITS: [u32; 5] = [8, 9, 10, 11, 12];

/// The most terms and elements of a product on CUDA, where NVIDIA's library multiplies and a kernel for what follows reads and writes all again.
/// On an NVIDIA H200 those took by its clock 1.2 to 2.8 times as long for up to 1024 x 1024 elements of 64 to 1024 terms, and 0.9 times for
/// 4096 x 4096 of any. With a few rows or columns the library is slower.
#[cfg(not(target_arch = "wasm32"))]
const MOST_TERMS: u32 = 256;
#[cfg(not(target_arch = "wasm32"))]
const MOST_ELEMENTS: u64 = 1 << 20;

/// A plan for compute shaders.
///
/// # Errors
/// [`Error::Internal`] where there is none: [`takes`] tells.
pub fn compute(fused: &Fused, caps: &Caps) -> Result<Plan> {
    let is_read_once = fused.end.inputs.iter().all(|input| reach_bytes(fused, input) <= caps.max_binding_bytes);
    if !is_of_kind(fused, DType::F32) || !is_read_once {
        return Err(refused());
    }
    ended(super::compute(&fused.core, caps)?, fused, caps)
}

/// The plan of the first, whose last kernels compute what follows as well.
fn ended(mut plan: Plan, fused: &Fused, caps: &Caps) -> Result<Plan> {
    for dispatch in &mut plan.dispatches {
        if dispatch.bindings.iter().any(|binding| binding.slot == Slot::Out) {
            add_to(dispatch, fused, caps)?;
        }
    }
    Ok(plan)
}

/// A plan for CUDA with its compiler, on a GPU of so many multiprocessors.
///
/// # Errors
/// [`Error::Internal`] where there is none: [`takes`] tells.
#[cfg(not(target_arch = "wasm32"))]
pub fn cuda(fused: &Fused, caps: &Caps, multiprocessors: u32) -> Result<Plan> {
    // Neighbours of f16 share a word, which nothing but CUDA's kernels write halves of.
    let is_rounded = matches!(fused.core, Op::Reduce(_)) && fused.end.dtype == DType::F16;
    let plan = match &fused.core {
        _ if !is_of_kind(fused, if is_rounded { DType::F16 } else { DType::F32 }) => return Err(refused()),
        // Libraries compute nothing more.
        Op::Conv(problem) => conv::cuda(problem, caps, multiprocessors, |_| Ok(None))?,
        Op::Matmul(problem) if problem.k <= MOST_TERMS && problem.elements() <= MOST_ELEMENTS || matmul::is_of_vectors(problem, caps) => {
            with_room(matmul::cuda(problem, caps, multiprocessors)?)
        }
        Op::Reduce(problem) if is_rounded => rounded(reduce::cuda(problem, caps)?)?,
        Op::Reduce(problem) => reduce::cuda(problem, caps)?,
        Op::Normalize(problem) => normalize::cuda(problem, caps)?,
        _ => return Err(refused()),
    };
    ended(plan, fused, caps)
}

/// A reduction's plan whose only kernel writes what follows in f16.
#[cfg(not(target_arch = "wasm32"))]
fn rounded(mut plan: Plan) -> Result<Plan> {
    if let [dispatch] = &mut plan.dispatches[..]
        && let Some(out) = dispatch.bindings.iter_mut().find(|binding| binding.slot == Slot::Out && binding.offset_bytes == 0)
    {
        out.size_bytes = (out.size_bytes / 2).next_multiple_of(16);
        dispatch.kernel.constants.push(("RESULT_F16", 1));
        return Ok(plan);
    }
    Err(refused())
}

/// A product's plan for CUDA whose last kernels take what follows: they have three pointers more, before the result's.
#[cfg(not(target_arch = "wasm32"))]
fn with_room(mut plan: Plan) -> Plan {
    for Dispatch { kernel, params, bindings, .. } in &mut plan.dispatches {
        if let (Some(out), Params::Matmul(params)) = (bindings.iter_mut().find(|binding| binding.slot == Slot::Out), params) {
            out.index = super::map::OUT_BINDING;
            let is_vec4 = (params.out_start | params.n).is_multiple_of(QUAD);
            kernel.constants.extend([("SCALARS", 0), ("OUT_VEC4", u32::from(is_vec4))]);
        }
    }
    plan
}

/// A plan for CUDA without it: of the first, whose result is in the scratch then, and of what follows.
#[cfg(not(target_arch = "wasm32"))]
pub fn apart(Fused { core_inputs, end, .. }: &Fused, mut plan: Plan, caps: &Caps) -> Result<Plan> {
    let base_bytes = plan.scratch_bytes.next_multiple_of(256);
    let between = |binding: &mut Binding| {
        binding.slot = Slot::Scratch;
        binding.offset_bytes += base_bytes;
    };
    plan.scratch_bytes = base_bytes + (end.elements() * DType::F32.bytes()).next_multiple_of(16);
    let of_result = |binding: &&mut Binding| binding.slot == Slot::Out;
    plan.dispatches.iter_mut().flat_map(|dispatch| &mut dispatch.bindings).filter(of_result).for_each(between);
    let mut rest = super::map::interpreted(end, caps)?.dispatches;
    for binding in rest.iter_mut().flat_map(|dispatch| &mut dispatch.bindings) {
        match binding.slot {
            Slot::Input(0) => between(binding),
            Slot::Input(other) => binding.slot = Slot::Input(core_inputs + other - 1),
            _ => {}
        }
    }
    plan.dispatches.extend(rest);
    Ok(plan)
}

/// The first's plan for fragment shaders, if it is no product: plans of those are not of this part of the package.
pub fn drawn(core: &Op, caps: &Caps) -> Result<Plan> {
    match core {
        Op::Conv(problem) => conv::fragment(problem, caps),
        Op::Reduce(problem) => reduce::fragment(problem, caps),
        Op::Normalize(problem) => normalize::fragment(problem, caps),
        _ => Err(refused()),
    }
}

/// A plan for fragment shaders: the first's, whose last drawing is that of the result.
///
/// # Errors
/// [`Error::Internal`] where there is none: [`takes`] tells.
pub fn fragment(fused: &Fused, mut plan: Plan) -> Result<Plan> {
    let Some(Dispatch { kernel, params, bindings, .. }) = plan.dispatches.last_mut().filter(|_| is_of_kind(fused, DType::F32)) else {
        return Err(refused());
    };
    let mut words = words_of(params)?;
    let (mut told, others) = tell_drawing(fused, &mut words)?;
    if let Params::Matmul(product) = params {
        // What only the kernels of other operations have constants for.
        kernel.constants.extend([("SCALARS", 0), ("QUAD", u32::from(product.n.is_multiple_of(QUAD)))]);
    } else if bindings.is_empty() {
        // What reads all operands is to read its own.
        let own = |input| Binding { slot: Slot::Input(input), index: input.into(), offset_bytes: 0, size_bytes: 16 };
        bindings.extend((0..fused.core_inputs).map(own));
    }
    told.is_quad &= kernel.constant("QUAD") > 0;
    end_with(kernel, told);
    bindings.extend(others);
    *params = told_more(params, words);
    Ok(plan)
}

/// Tells a drawing of what follows: textures are read from their beginning.
fn tell_drawing(fused: &Fused, words: &mut Words) -> Result<(End, Vec<Binding>)> {
    let whole = Caps { max_binding_bytes: u64::MAX, binding_alignment_bytes: u64::MAX, ..Caps::UNLIMITED };
    tell(fused, 0, &UNITS, &whole, words)
}

/// Whether there is such a plan for that backend.
pub fn takes(fused: &Fused, backend: BackendId, caps: &Caps) -> bool {
    match backend {
        BackendId::WebGl2 => match &fused.core {
            Op::Matmul(_) => {
                let mut words = words_of(&matmul::Params::default().into());
                is_of_kind(fused, DType::F32) && words.as_mut().is_ok_and(|words| tell_drawing(fused, words).is_ok())
            }
            core => drawn(core, caps).and_then(|plan| fragment(fused, plan)).is_ok(),
        },
        // What adds up parts has more room than what does all at once.
        #[cfg(not(target_arch = "wasm32"))]
        BackendId::Cuda => cuda(fused, caps, 0).is_ok(),
        _ => compute(fused, caps).is_ok(),
    }
}

/// Whether kernels that take what follows, and write that type, take this.
fn is_of_kind(Fused { core, end, .. }: &Fused, result: DType) -> bool {
    let is_unbounded = end.inputs.iter().all(|input| input.bounds.is_empty());
    core.extent().dtype == DType::F32 && end.dtype == result && is_unbounded && end.elements() <= u32::MAX.into()
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
fn add_to(dispatch: &mut Dispatch, fused: &Fused, caps: &Caps) -> Result<()> {
    matmul::in_blocks(dispatch);
    let kernel = &mut dispatch.kernel;
    let is_whole = |name: &str| kernel.constant(name) == 0;
    let ends = match kernel.id {
        KernelId::Normalize | KernelId::ConvWinogradResult => true,
        KernelId::Reduce => is_whole("PARTIAL"),
        #[cfg(not(target_arch = "wasm32"))]
        KernelId::ConvSum => true,
        KernelId::ConvTiled
        | KernelId::ConvDirect
        | KernelId::MatmulDirect
        | KernelId::MatmulRows
        | KernelId::MatmulTiled
        | KernelId::MatmulVector
        | KernelId::MatmulSum => is_whole("ACCUMULATES") && is_whole("PARTS") && is_whole("RESULT_F16"),
        _ => false,
    };
    let mut words = words_of(&dispatch.params)?;
    let Some(out) = dispatch.bindings.iter().find(|binding| binding.slot == Slot::Out).filter(|_| ends) else { return Err(refused()) };
    let free: Vec<_> = BINDINGS.into_iter().filter(|index| dispatch.bindings.iter().all(|binding| binding.index != *index)).collect();
    let (mut told, bindings) = tell(fused, (out.offset_bytes / DType::F32.bytes()) as u32, &free, caps, &mut words)?;
    // Four at once where the kernel writes four from a multiple of four on.
    let writes_fours = match kernel.id {
        KernelId::Normalize => kernel.constant("QUAD") > 0,
        KernelId::Reduce | KernelId::MatmulRows => false,
        _ => kernel.constant("OUT_VEC4") > 0,
    };
    told.is_quad &= writes_fours && out.offset_bytes.is_multiple_of(16);
    end_with(kernel, told);
    dispatch.bindings.extend(bindings);
    dispatch.params = told_more(&dispatch.params, words);
    Ok(())
}

/// The words of a launch, behind which come those of what follows.
fn words_of(params: &Params) -> Result<Words> {
    match params {
        Params::Words(words) => Ok(*words),
        Params::Matmul(params) => Ok(Words::of(bytemuck::cast_slice(bytemuck::bytes_of(params)))),
        _ => Err(refused()),
    }
}

/// The same with these.
fn told_more(params: &Params, words: Words) -> Params {
    match params {
        Params::Matmul(_) => Params::MatmulEnded(bytemuck::pod_read_unaligned(words.bytes())),
        _ => words.into(),
    }
}

/// Tells a kernel of what follows, whose inputs are bound where there is room: those of the result from that element on.
fn tell(Fused { core_inputs, end, .. }: &Fused, first: u32, free: &[u32], caps: &Caps, words: &mut Words) -> Result<(End, Vec<Binding>)> {
    let others = &end.inputs[1..];
    if free.len() < others.len() {
        return Err(refused());
    }
    let at = words.length();
    words.push(first)?;
    words.push(end.elements() as u32)?;
    end.shape.iter().try_for_each(|&size| words.push(size))?;
    let ranges: Vec<_> = end.shape.iter().map(|&size| [0, size]).collect();
    let is_quad = end.shape.last().is_some_and(|size| size.is_multiple_of(QUAD));
    let (mut readings, mut bindings) = inputs(others, &ranges, is_quad, caps, words)?;
    for (number, (reading, binding)) in readings.iter_mut().zip(&mut bindings).enumerate() {
        (reading.binding, binding.index) = (free[number], free[number]);
        binding.slot = Slot::Input(core_inputs + number as u8);
    }
    let scalars = words.length();
    end.scalars.iter().try_for_each(|&scalar| words.push(scalar))?;
    let rank = end.shape.len() as u32;
    Ok((End { program: Arc::clone(&end.program), inputs: readings, at, rank, scalars, is_quad }, bindings))
}

/// Has a kernel's source have what it was told of.
fn end_with(kernel: &mut Kernel, told: End) {
    let none = || Source { program: Arc::new(Program::default()), inputs: Vec::new(), beside: Vec::new(), result: DType::F32, end: None };
    kernel.variant = format!("{}{}then {}", kernel.variant, if kernel.variant.is_empty() { "" } else { ", " }, told.program);
    let own = kernel.source.as_ref().map_or_else(none, |own| own.as_ref().clone());
    kernel.source = Some(Arc::new(Source { end: Some(told), ..own }));
}
