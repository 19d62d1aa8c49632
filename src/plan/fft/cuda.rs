//! Plans for CUDA: `shaders/fft/fft.cu`, compiled with a plan's constants where NVRTC is, else as it comes with the crate, which is told them.

use super::{RADICES, planned};
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::KernelId;
use crate::kernels::template::Constant;
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

/// Elements of a thread, at most: compiled with constants, and as the kernel comes with the crate.
const EACH: u32 = 16;
const EACH_PLAIN: u32 = 8;

/// A plan for CUDA whose kernels are generated.
pub fn cuda(problem: &Problem, caps: &Caps) -> Result<Plan> {
    plan(problem, caps, EACH, |kernel_id, constants, words| {
        *kernel_id = KernelId::Fft;
        // The same numbers in all launches of a shape.
        let names = ["LINE", "INNER", "BEFORE"];
        constants.extend(names.into_iter().zip(words.get().iter().skip(1).copied()));
        constants.push(("EACH", EACH));
        Ok(())
    })
}

/// A plan for CUDA without a compiler: the kernel is told behind the words what else are constants.
pub fn plain(problem: &Problem, caps: &Caps) -> Result<Plan> {
    plan(problem, caps, EACH_PLAIN, |kernel_id, constants, words| {
        *kernel_id = KernelId::FftPlain;
        constants.drain(1..).try_for_each(|(_, value)| words.push(value))
    })
}

/// The launches with their constants: the threads, then what the kernel may be told instead. Each is bound to what it reads, the chirp's
/// spectrum, and what it writes.
fn plan(
    problem: &Problem,
    caps: &Caps,
    each: u32,
    finish: impl Fn(&mut KernelId, &mut Vec<Constant>, &mut crate::plan::Words) -> Result<()>,
) -> Result<Plan> {
    let mut plan = planned(problem, caps, THREADS * each)?;
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
        let numbered = (0..).zip([reads, filter, writes]);
        *bindings = numbered.filter_map(|(index, binding)| Some(Binding { index, ..binding? })).collect();
        let threads = (length * batch).div_ceil(each).next_power_of_two().clamp(32, THREADS);
        kernel.constants =
            vec![("THREADS", threads), ("LENGTH", length), ("BATCH", batch), ("FLAGS", flags), ("PASSES", passes), ("RADICES", radices)];
        finish(&mut kernel.id, &mut kernel.constants, words)?;
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::{ELEMENTS, radices};

    #[test]
    fn eight_passes_are_enough() {
        assert!((1..=ELEMENTS).filter(|step| radices(*step).iter().product::<u32>() == *step).all(|step| radices(step).len() <= 8));
    }
}
