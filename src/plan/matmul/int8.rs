//! The launch for products of 8-bit integers, whose words of four take the place of elements in the tiles of the other products. Their k is
//! never split for speed: it would take a kernel of its own to add the parts up.

use super::step::Step;
use super::tile::{layout, tile_of_words};
use super::{Params, packed};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Integers, Problem};
use crate::plan::Binding;

/// The launch of `shaders/matmul/int8.wgsl`.
pub(super) fn step(problem: &Problem, integers: &Integers, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    let (tile, mut constants) = tile_of_words(&params, caps)?;
    // Words are multiplied by words of the same signs: of two, an operand of u8 becomes one of i8, and all of it less by 128.
    let signed = integers.dtypes.contains(&DType::I8);
    let flips = integers.dtypes.map(|dtype| signed && dtype == DType::U8);
    let zero_points = [0, 1].map(|at| integers.zero_points[at] - if flips[at] { 128 } else { 0 });
    constants.extend(layout(problem, &params));
    constants.extend([
        ("SIGNED", u32::from(signed)),
        ("A_FLIP", u32::from(flips[0])),
        ("B_FLIP", u32::from(flips[1])),
        ("A_ZERO", u32::from(zero_points[0] != 0)),
        ("B_ZERO", u32::from(zero_points[1] != 0)),
        ("PACKED", u32::from(caps.packed_dot)),
    ]);
    let variant = format!("{}x{}x{}", tile.m, tile.n, 4 * tile.k);
    Ok(Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulInt8, variant, source: None, constants },
        params: Params { zero_points: packed(zero_points), ..params },
        operands,
        grid: tile.grid(&params),
        parts: 1,
        k_step: 4 * tile.k,
    })
}
