//! One launch of many small products that differ in nothing but in where their matrices are: what a launch costs is more than what they do.

use super::stand_in;
use crate::info::Caps;
use crate::kernels::KernelId;
use crate::ops::matmul::Problem;
use crate::plan::{Binding, Plan};

/// The most products of a launch.
pub const MOST: u32 = 128;

/// Elements of a result, and multiplications, above which a product keeps a GPU busy for longer than its launch takes.
const ELEMENTS: u64 = 1 << 14;
const MULTIPLICATIONS: u64 = 1 << 23;

/// Multiplications up to which nothing is gained by sharing operands in workgroup memory.
const DIRECT: u64 = 1 << 19;

/// Has z of the plan's grid count products, where there is no more to it than one launch of one product, and something to gain; gives whether
/// that is so.
pub fn group(problem: &Problem, plan: &mut Plan, caps: &Caps) -> bool {
    let [dispatch] = &plan.dispatches[..] else { return false };
    let multiplications = problem.multiplications();
    let is_small = problem.elements() <= ELEMENTS && multiplications <= MULTIPLICATIONS;
    let is_known = matches!(dispatch.kernel.id, KernelId::MatmulTiled | KernelId::MatmulVector);
    // Neither a batch nor parts of k.
    if !is_small || !is_known || dispatch.grid[2] != 1 {
        return false;
    }
    if multiplications <= DIRECT
        && dispatch.kernel.constant("HALF") == 0
        && let Some(direct) = stand_in(plan, caps)
    {
        *plan = direct;
    }
    let dispatch = &mut plan.dispatches[0];
    let slices = dispatch.params.matmul().map_or(1, |params| params.k_part.max(1));
    let constants = &mut dispatch.kernel.constants;
    for (name, value) in &mut *constants {
        match *name {
            "BATCHED" => *value = 1,
            // It serves no other tiles.
            "SLICES" if *value == 0 => *value = slices,
            _ => {}
        }
    }
    constants.push(("GROUPED", MOST));
    true
}

/// Which number of a product's place tells where a binding is: A and B, whose elements are of one type, then C and the result, which are of
/// another. None for the bias, which all products of a group share.
pub fn place(binding: &Binding) -> Option<usize> {
    match binding.index {
        0 => Some(0),
        1 => Some(1),
        4 => Some(2),
        2 => Some(3),
        _ => None,
    }
}
