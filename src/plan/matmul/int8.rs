//! The launches for products of 8-bit integers, whose words of four take the place of elements in the tiles of the other products, and in the lines
//! of those with a few rows or columns. Their k is never split for speed: it would take a kernel of its own to add the parts up.

use super::step::Step;
use super::tile::{MULTIPROCESSORS, tiled_with};
use super::vector::{self, Spread, Vectors};
use super::{Params, packed};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Integers, Problem};
use crate::plan::Binding;

/// What the kernel of tiles is not told of one: it has one stage, and loops.
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

/// Blocks of four by four elements that an invocation of `shaders/matmul/int8_vector.wgsl` has under way.
const AT_ONCE: u32 = 2;

/// The launch for a product, or a part of one. On the web it is in the part of the package that is for such products.
#[inline(never)]
pub(super) fn step(problem: &Problem, integers: &Integers, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    // Words are multiplied by words of the same signs: of two, an operand of u8 becomes one of i8, and all of it less by 128.
    let signed = integers.dtypes.contains(&DType::I8);
    let mut flips = integers.dtypes.map(|dtype| signed && dtype == DType::U8);
    let mut zero_points = [0, 1].map(|at| integers.zero_points[at] - if flips[at] { 128 } else { 0 });
    let vectors = Vectors::of(problem, params, caps).filter(|_| caps.max_workgroup_invocations >= vector::THREADS);
    let mut step = match vectors {
        Some(product) => {
            if product.swaps {
                flips.reverse();
                zero_points.reverse();
            }
            by_vectors(&product, operands, caps)
        }
        None => by_tiles(problem, params, operands, caps)?,
    };
    step.kernel.constants.extend([
        ("SIGNED", u32::from(signed)),
        ("A_FLIP", u32::from(flips[0])),
        ("B_FLIP", u32::from(flips[1])),
        ("A_ZERO", u32::from(zero_points[0] != 0)),
        ("B_ZERO", u32::from(zero_points[1] != 0)),
        ("PACKED", u32::from(caps.packed_dot)),
    ]);
    step.params.zero_points = packed(zero_points);
    Ok(step)
}

/// That of `shaders/matmul/int8.wgsl`.
fn by_tiles(problem: &Problem, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    // Room for the items of a batch, and none for parts.
    let whole = Caps { max_workgroups_per_dimension: params.batch, ..caps.clone() };
    let words = Params { k: params.k.div_ceil(4), ..params };
    let mut step = tiled_with(problem, words, operands, 1.0, false, &whole)?;
    let kernel = &mut step.kernel;
    kernel.id = KernelId::MatmulInt8;
    kernel.variant = format!("{}x{}x{}", kernel.constant("TILE_M"), kernel.constant("TILE_N"), 4 * kernel.constant("TILE_K"));
    kernel.constants.retain(|(name, _)| !LEFT_OUT.contains(name));
    Ok(Step { params, k_step: 4 * step.k_step, ..step })
}

/// That of `shaders/matmul/int8_vector.wgsl`.
fn by_vectors(product: &Vectors, operands: [Binding; 2], caps: &Caps) -> Step {
    let &Vectors { params, along, x_along, tall, .. } = product;
    let ([turn, turns], [a_vec4, b_vec4]) = (product.turns(), product.vec4s());
    let threads = product.threads(caps);
    let lanes = product.lanes(threads);
    // k is not taken in parts.
    let grid = [caps.max_workgroups_per_dimension, 1];
    let Spread { groups, lanes, .. } = product.spread(threads, 1, lanes, grid, MULTIPROCESSORS as u32);
    let constants = vec![
        ("THREADS", threads),
        ("LANES", lanes),
        ("GROUPS", threads / lanes),
        ("ALONG", u32::from(along)),
        ("X_ALONG", u32::from(x_along)),
        ("A_VEC4", a_vec4),
        ("B_VEC4", b_vec4),
        ("TURN", turn),
        ("TURNS", turns),
        ("TALL", u32::from(tall)),
        ("AT_ONCE", AT_ONCE),
    ];
    let variant = product.variant(lanes);
    Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulInt8Vector, variant, source: None, constants },
        params,
        operands: product.ordered(operands),
        grid: [groups, 1],
        parts: 1,
        k_step: 4 * lanes,
    }
}
