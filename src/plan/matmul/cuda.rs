//! Plans for CUDA: NVIDIA's library for what it takes, else the register-tiled kernel of `shaders/matmul/tiled.cu`. Neither is split:
//! addresses are of 64 bits, and one row of blocks may be longer than any result.

use super::{constants_of_layout, result, whole, within_buffer};
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// A shape of the kernel, compiled by `scripts/ptx`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tile {
    m: u32,
    n: u32,
    k: u32,
    threads: u32,
    /// Multiplications a second on one multiprocessor, relative to the largest tile.
    speed: f64,
}

const TILES: [Tile; 3] = [
    Tile { m: 128, n: 128, k: 16, threads: 128, speed: 1.0 },
    Tile { m: 64, n: 64, k: 16, threads: 128, speed: 0.8 },
    Tile { m: 32, n: 32, k: 16, threads: 64, speed: 0.4 },
];

impl Tile {
    fn blocks(&self, m: u32, n: u32) -> u64 {
        u64::from(m.div_ceil(self.m)) * u64::from(n.div_ceil(self.n))
    }

    /// The time of a product in arbitrary units: rounds of blocks over the multiprocessors, times a tile's work, over its speed.
    fn cost(&self, m: u32, n: u32, multiprocessors: u32) -> f64 {
        let rounds = self.blocks(m, n).div_ceil(u64::from(multiprocessors.max(1)));
        rounds as f64 * f64::from(self.m * self.n) / self.speed
    }

    fn choose(m: u32, n: u32, multiprocessors: u32) -> Self {
        let cost = |tile: &Self| tile.cost(m, n, multiprocessors);
        TILES.into_iter().reduce(|best, tile| if cost(&tile) < cost(&best) { tile } else { best }).unwrap_or(TILES[0])
    }
}

/// A plan for the kernel, on a GPU of so many multiprocessors.
pub fn cuda(problem: &Problem, caps: &Caps, multiprocessors: u32) -> Result<Plan> {
    let bindings = bindings(problem, caps)?;
    if problem.elements() == 0 {
        return Ok(Plan { dispatches: Vec::new(), scratch_bytes: 0 });
    }
    let tile = Tile::choose(problem.m, problem.n, multiprocessors);
    let mut constants = vec![("TILE_M", tile.m), ("TILE_N", tile.n), ("TILE_K", tile.k), ("THREADS", tile.threads)];
    constants.extend(constants_of_layout(problem));
    let letter = |transposed| if transposed { 't' } else { 'n' };
    let layout = [letter(problem.transpose_a), letter(problem.transpose_b)];
    let variant = format!("{}x{}x{} {}{}", tile.m, tile.n, tile.k, layout[0], layout[1]);
    let kernel = Kernel { id: KernelId::MatmulTiled, variant, constants };
    // At most 2³² elements in tiles of 32 × 32, or in a single row or column of 2²⁷ of them.
    let blocks = tile.blocks(problem.m, problem.n) as u32;
    Ok(Plan::of(Dispatch { kernel, params: whole(problem), bindings, grid: [blocks, 1, 1] }))
}

/// A plan for cuBLASLt; None for what it does not take: sums of no terms, and numbers past 31 bits.
pub fn cublaslt(problem: &Problem, caps: &Caps) -> Result<Option<Plan>> {
    let bindings = bindings(problem, caps)?;
    let strides = [problem.a.stride, problem.b.stride, problem.c.map_or(0, |c| c.stride)];
    let largest = strides.into_iter().chain([problem.m, problem.k, problem.n].map(u64::from)).max().unwrap_or(0);
    if problem.elements() == 0 || problem.k == 0 || largest > u64::from(i32::MAX.cast_unsigned()) {
        return Ok(None);
    }
    let kernel = Kernel { id: KernelId::MatmulCublasLt, variant: "f32".to_owned(), constants: constants_of_layout(problem) };
    Ok(Some(Plan::of(Dispatch { kernel, params: whole(problem), bindings, grid: [1; 3] })))
}

/// Whole matrices, in the order of the kernel's arguments.
fn bindings(problem: &Problem, caps: &Caps) -> Result<Vec<Binding>> {
    let operand = |stored| Some(stored).filter(|_| problem.reads_operands());
    let matrices = [(Slot::A, operand(problem.a)), (Slot::B, operand(problem.b)), (Slot::C, problem.c), (Slot::Out, Some(result(problem)))];
    let mut bindings = Vec::with_capacity(matrices.len());
    for ((slot, stored), index) in matrices.into_iter().zip(0..) {
        if let Some(stored) = stored {
            within_buffer(&stored, caps)?;
            bindings.push(Binding { slot, index, offset_bytes: 0, size_bytes: (stored.span() * 4).next_multiple_of(16).max(16) });
        }
    }
    Ok(bindings)
}
