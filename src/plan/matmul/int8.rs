//! The launch for products of 8-bit integers, whose words of four take the place of elements in the tiles of the other products. Their k is
//! never split for speed: it would take a kernel of its own to add the parts up.

use super::step::Step;
use super::tile::tiled_with;
use super::{Params, packed};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::KernelId;
use crate::ops::matmul::{Integers, Problem};
use crate::plan::Binding;

/// What the kernel is not told of a tile: it has one stage, and loops.
const LEFT_OUT: [&str; 15] = [
    "A_LINES",
    "B_FOURS",
    "B_LINES",
    "STAGES",
    "SINGLE",
    "LOOPS",
    "UNROLL",
    "OPERANDS_F16",
    "HALF",
    "WINDOW",
    "EDGES",
    "BLOCK_TERMS",
    "INSIDE",
    "SLICED",
    "SLICES",
];

/// The launch of `shaders/matmul/int8.wgsl`. On the web it is in the part of the package that is for such products.
#[inline(never)]
pub(super) fn step(problem: &Problem, integers: &Integers, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    // Room for the items of a batch, and none for parts.
    let whole = Caps { max_workgroups_per_dimension: params.batch, ..caps.clone() };
    let words = Params { k: params.k.div_ceil(4), ..params };
    let mut step = tiled_with(problem, words, operands, 1.0, false, &whole)?;
    // Words are multiplied by words of the same signs: of two, an operand of u8 becomes one of i8, and all of it less by 128.
    let signed = integers.dtypes.contains(&DType::I8);
    let flips = integers.dtypes.map(|dtype| signed && dtype == DType::U8);
    let zero_points = [0, 1].map(|at| integers.zero_points[at] - if flips[at] { 128 } else { 0 });
    let kernel = &mut step.kernel;
    kernel.id = KernelId::MatmulInt8;
    kernel.variant = format!("{}x{}x{}", kernel.constant("TILE_M"), kernel.constant("TILE_N"), 4 * kernel.constant("TILE_K"));
    kernel.constants.retain(|(name, _)| !LEFT_OUT.contains(name));
    kernel.constants.extend([
        ("SIGNED", u32::from(signed)),
        ("A_FLIP", u32::from(flips[0])),
        ("B_FLIP", u32::from(flips[1])),
        ("A_ZERO", u32::from(zero_points[0] != 0)),
        ("B_ZERO", u32::from(zero_points[1] != 0)),
        ("PACKED", u32::from(caps.packed_dot)),
    ]);
    Ok(Step { params: Params { zero_points: packed(zero_points), ..params }, k_step: 4 * step.k_step, ..step })
}
