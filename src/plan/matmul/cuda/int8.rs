//! The launch for products of 8-bit integers, `shaders/matmul/int8.cu`: by matrix units from compute capability 8.0 on, before that by packed
//! products. Their k is not split, as elsewhere.

use super::{Tile, bindings, launched};
use crate::dtype::DType;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Integers, Problem};
use crate::plan::matmul::batch::Launch;
use crate::plan::matmul::packed;
use crate::plan::{Dispatch, Plan};

/// By matrix units, as measured on an NVIDIA H200 from 512³ to 4096³.
const TILES: [Tile; 2] = [
    Tile { m: 128, n: 128, k: 64, threads: 256, alone_ns: 31.0, shared_ns: 33.6, resident: 1 },
    Tile { m: 64, n: 64, k: 128, threads: 128, alone_ns: 19.0, shared_ns: 13.5, resident: 4 },
];

/// By packed products, as measured there.
const PACKED_TILES: [Tile; 1] = [Tile { m: 64, n: 64, k: 64, threads: 128, alone_ns: 28.8, shared_ns: 14.5, resident: 4 }];

/// Bits of what the kernel is told of its operands.
const UNSIGNED: [u32; 2] = [1, 2];
const ALONG_K: [u32; 2] = [4, 8];

/// Adds the launch for some items of a batch.
pub(super) fn add_launch(problem: &Problem, integers: &Integers, launch: &Launch, caps: &Caps, multiprocessors: u32, plan: &mut Plan) {
    let &Problem { m, k, n, .. } = problem;
    let tiles = if caps.matrix_unit.is_some() { &TILES[..] } else { &PACKED_TILES };
    let mut params = launched(problem, launch);
    // Without room for parts there are none.
    let (tile, _) = Tile::choose(tiles, [m, k, n], params.batch, &Caps { max_buffer_bytes: 0, ..caps.clone() }, multiprocessors);
    let along_k = [!problem.transpose_a, problem.transpose_b];
    let mut zero_points = integers.zero_points;
    for at in [0, 1] {
        if integers.dtypes[at] == DType::U8 {
            params.result |= UNSIGNED[at];
            zero_points[at] -= 128;
        }
        params.result |= if along_k[at] { ALONG_K[at] } else { 0 };
    }
    params.zero_points = packed(zero_points);
    let Tile { m: tile_m, n: tile_n, k: tile_k, threads, .. } = tile;
    let constants = vec![("TILE_M", tile_m), ("TILE_N", tile_n), ("TILE_K", tile_k), ("THREADS", threads)];
    let kernel = Kernel { id: KernelId::MatmulInt8, variant: format!("{tile_m}x{tile_n}x{tile_k}"), source: None, constants };
    let grid = [tile.blocks(m, n) as u32, 1, params.batch];
    plan.dispatches.push(Dispatch { kernel, params: params.into(), bindings: bindings(problem), grid });
}
