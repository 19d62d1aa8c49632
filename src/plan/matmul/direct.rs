//! The kernel that computes straight from memory, in place of a tiled one that is not compiled yet.

use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::plan::{Dispatch, Plan};

/// Rows and columns of the result that a workgroup computes.
const TILE: u32 = 32;

/// Multiplications that even slow GPUs do, in this way, in less time than a compiler takes.
const MULTIPLICATIONS: u64 = 1 << 31;

/// Gives one of the constants another value.
fn set(constants: &mut [(&'static str, u32)], name: &str, value: u32) {
    constants.iter_mut().filter(|(other, _)| *other == name).for_each(|(_, old)| *old = value);
}

/// A plan with the same result as this one, whose kernel is compiled sooner; None where there is no such kernel, or where it would take longer
/// than the compiler.
pub fn stand_in(plan: &Plan, caps: &Caps) -> Option<Plan> {
    let [dispatch] = &plan.dispatches[..] else { return None };
    let params = dispatch.params.matmul().ok()?;
    let work = [params.k, params.n, params.batch].into_iter().fold(u64::from(params.m), |all, side| all.saturating_mul(side.into()));
    let grid = [params.n.div_ceil(TILE), params.m.div_ceil(TILE), dispatch.grid[2]];
    let fits = grid.iter().all(|&groups| groups <= caps.max_workgroups_per_dimension);
    if dispatch.kernel.id != KernelId::MatmulTiled
        || ["PARTS", "EDGES"].iter().any(|name| dispatch.kernel.constant(name) == 1)
        || work > MULTIPLICATIONS
        || !fits
    {
        return None;
    }
    let slices = dispatch.kernel.constant("SLICES");
    // How operands are read, and what becomes of sums; the tile's shape comes before.
    let (_, kept) = dispatch.kernel.constants.split_at(dispatch.kernel.constants.iter().position(|(name, _)| *name == "A_VEC4")?);
    let mut constants = kept.to_vec();
    constants.extend([("FLAT", 0), ("FLAT_N", 0)]);
    set(&mut constants, "SLICES", 0);
    // It computes in f32, whatever the tiles do.
    set(&mut constants, "HALF", 0);
    let kernel = Kernel { id: KernelId::MatmulDirect, variant: String::new(), source: dispatch.kernel.source.clone(), constants };
    let mut dispatch = Dispatch { kernel, grid, ..dispatch.clone() };
    dispatch.params.matmul_mut()?.k_part = if slices > 1 { slices } else { 0 };
    Some(Plan::of(dispatch))
}
