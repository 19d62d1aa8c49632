//! Plans for CUDA: `shaders/fft/steps.cu`, compiled with the constants of a plan for compute shaders, where NVRTC is, else `shaders/fft/fft.cu`, as it
//! comes with the crate, which is told its own.

use super::{Language, RADICES, compute, planned};
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::KernelId;
use crate::ops::fft::Problem;
use crate::plan::{Binding, Dispatch, Params, Plan, Slot};

/// What the kernel is told of a launch as flags, bit by bit.
const FLAGS: [&str; 14] = [
    "COLUMNS",
    "ACROSS",
    "SOURCE_REAL",
    "SOURCE_COMPLEX",
    "SOURCE_HALF",
    "SOURCE_SCRATCH",
    "SOURCE_CHIRP",
    "TARGET_REAL",
    "TARGET_COMPLEX",
    "CHIRP_IN",
    "CHIRP_OUT",
    "FILTERED",
    "CONJUGATE_IN",
    "CONJUGATE_OUT",
];

/// The most threads of a block.
const THREADS: u32 = 256;

/// Elements of a thread, at most.
const EACH: u32 = 8;

/// A plan for CUDA whose kernels are generated: those of compute shaders, bound to what they read, the scratch, and what they write, which may be
/// the scratch.
pub fn cuda(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let mut plan = compute(problem, caps)?;
    for Dispatch { bindings, .. } in &mut plan.dispatches {
        let bound = |slot| bindings.iter().find(|binding| binding.slot == slot).copied();
        let scratch = bound(Slot::Scratch);
        *bindings = numbered([bound(Slot::A), scratch, bound(Slot::Out).or(scratch)]);
    }
    Ok(plan)
}

/// What is bound of these, in their order.
fn numbered(bindings: [Option<Binding>; 3]) -> Vec<Binding> {
    (0..).zip(bindings).filter_map(|(index, binding)| Some(Binding { index, ..binding? })).collect()
}

/// A plan for CUDA without a compiler: the kernel is told behind the words what else are constants. Each launch is bound to what it reads, the chirp's
/// spectrum, and what it writes.
pub fn plain(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let mut plan = planned(problem, caps, Language::Cuda(THREADS * EACH))?;
    for Dispatch { kernel, params, bindings, .. } in &mut plan.dispatches {
        let Params::Words(words) = params else { return Err(Error::internal("a transform of another operation's parameters")) };
        let constant = |name: &str| kernel.constant(name);
        let (length, batch, passes) = (constant("LENGTH"), constant("BATCH"), constant("PASSES"));
        let flags = (0..).zip(FLAGS).map(|(bit, flag)| constant(flag) << bit).sum();
        // Four bits each, of which eight are enough for what fits a block.
        let radices = (0..).step_by(4).zip(&RADICES[..passes as usize]).map(|(bit, radix)| constant(radix) << bit).sum();
        let scratch = bindings.iter().find(|binding| binding.slot == Slot::Scratch).copied();
        let bound = |slot| bindings.iter().find(|binding| binding.slot == slot).copied();
        let reads = if constant("SOURCE_SCRATCH") > 0 { scratch } else { bound(Slot::A) };
        let filter = scratch.filter(|_| constant("FILTERED") > 0);
        let writes = if constant("TARGET_SCRATCH") > 0 { scratch } else { bound(Slot::Out) };
        *bindings = numbered([reads, filter, writes]);
        let threads = (length * batch).div_ceil(EACH).next_power_of_two().clamp(32, THREADS);
        (kernel.id, kernel.constants) = (KernelId::FftPlain, vec![("THREADS", threads)]);
        [length, batch, flags, passes, radices].into_iter().try_for_each(|word| words.push(word))?;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::{ELEMENTS, eights};

    #[test]
    fn eight_passes_are_enough() {
        assert!((1..=ELEMENTS).filter(|step| eights(*step).iter().product::<u32>() == *step).all(|step| eights(step).len() <= 8));
    }
}
