//! Plans for what a device can do at best: copies of its memory, and arithmetic without any.

use std::fmt;

use super::{Binding, Dispatch, Plan, Slot};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};

/// What the kernels are told at run time; the layout is that of `Params` in `shaders/ceiling/copy.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[expect(missing_docs, reason = "named as in the shader")]
pub struct Params {
    pub count: u32,
    pub steps: u32,
    pub x: f32,
    pub y: f32,
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "count {} steps {} x {} y {}", self.count, self.steps, self.x, self.y)
    }
}

/// Invocations in a workgroup, and the most workgroups: as many as keep the largest GPUs busy.
const THREADS: u32 = 256;
const WORKGROUPS: u32 = 8192;

/// Chains of an invocation, and links of each in the body of the loop. Those of `shaders/ceiling/fma.cu` come to as many.
const CHAINS: u32 = 8;
const UNROLL: u32 = 4;

fn threads(caps: &Caps) -> u32 {
    THREADS.min(caps.max_workgroup_invocations)
}

fn binding(slot: Slot, index: u32, size_bytes: u64) -> Binding {
    Binding { slot, index, offset_bytes: 0, size_bytes }
}

/// Copies the first operand to the result, each of so many bytes, a multiple of 16 that a binding can have.
pub fn copy(bytes: u64, caps: &Caps) -> Plan {
    let (count, threads) = ((bytes / 16) as u32, threads(caps));
    let workgroups = count.div_ceil(threads).min(WORKGROUPS).min(caps.max_workgroups_per_dimension);
    let kernel = Kernel { id: KernelId::CeilingCopy, variant: String::new(), source: None, constants: vec![("THREADS", threads)] };
    Plan::of(Dispatch {
        kernel,
        params: super::Params::Ceiling(Params { count, ..Params::default() }),
        bindings: vec![binding(Slot::A, 0, bytes), binding(Slot::Out, 1, bytes)],
        grid: [workgroups, 1, 1],
    })
}

/// Multiplies and adds, in chains of so many steps in each invocation of so many workgroups, and how many operations that is.
pub fn fma(workgroups: u32, steps: u32, caps: &Caps) -> (Plan, u64) {
    let threads = threads(caps);
    let constants = vec![("THREADS", threads), ("CHAINS", CHAINS), ("UNROLL", UNROLL)];
    let invocations = u64::from(workgroups) * u64::from(threads);
    let plan = Plan::of(Dispatch {
        kernel: Kernel { id: KernelId::CeilingFma, variant: String::new(), source: None, constants },
        // Chains that neither grow nor vanish.
        params: super::Params::Ceiling(Params { count: 0, steps, x: 0.999, y: 0.001 }),
        bindings: vec![binding(Slot::Out, 1, invocations * 16)],
        grid: [workgroups, 1, 1],
    });
    (plan, invocations * u64::from(CHAINS * 4 * UNROLL) * u64::from(steps) * 2)
}
