//! Launches for products of 8-bit integers: with a few rows or columns by `shaders/matmul/int8_vector.cu`; else by matrix units,
//! `shaders/matmul/int8_units.cu`, from compute capability 8.0 on, with copies of what these cannot read; by packed products,
//! `shaders/matmul/int8.cu`, on older GPUs and where the copies would take longer.

use super::{COPY_LAUNCH_NS, MOST_LAYERS, Product, Tile, bindings, copy_of, launched, layout, reads, stored};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Integers, Problem};
use crate::plan::matmul::batch::Launch;
use crate::plan::matmul::tile::scratch_bytes;
use crate::plan::matmul::vector::{self, Spread, Vectors};
use crate::plan::matmul::{Params, packed};
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// By matrix units, as measured on an NVIDIA H200 from 512³ to 8192³.
const TILES: [Tile; 2] = [
    Tile { m: 128, n: 128, k: 64, threads: 128, alone_ns: 10.2, shared_ns: 7.4, resident: 2 },
    Tile { m: 64, n: 64, k: 64, threads: 128, alone_ns: 5.3, shared_ns: 3.3, resident: 5 },
];

/// By packed products, as measured there.
const PACKED_TILES: [Tile; 1] = [Tile { m: 64, n: 64, k: 64, threads: 128, alone_ns: 28.8, shared_ns: 14.5, resident: 4 }];

/// Bits of what the kernels are told of their operands, as `shaders/matmul/int8.cuh` has them.
const UNSIGNED: [u32; 2] = [1, 2];
const ALONG_K: [u32; 2] = [4, 8];

/// Threads of a block of `shaders/matmul/int8_sum.cu`.
const SUM_THREADS: u32 = 256;

/// The most vectors with which `shaders/matmul/int8_vector.cu` is quicker than matrix units that need no copies, and how many elements all matrices
/// have then, as measured on an NVIDIA H100.
const MOST_VECTORS: u32 = 4;
const LEAST_MATRIX: u64 = 1 << 18;

/// What reading and writing a byte of a copy takes on an NVIDIA H200.
const COPY_BYTE_NS: f64 = 0.001;

/// Adds the launches for some items of a batch.
pub(super) fn add_launch(
    problem: &Problem,
    integers: &Integers,
    launch: &Launch,
    caps: &Caps,
    multiprocessors: u32,
    plan: &mut Plan,
) -> Result<()> {
    if let Some(product) = by_vectors(problem, integers, launch, caps, multiprocessors) {
        product.add_integers_to(plan);
        return Ok(());
    }
    let &Problem { m, k, n, .. } = problem;
    let mut params = told(problem, integers, launched(problem, launch));
    let shape = [m, k, n];
    let choose = |tiles: &[Tile]| {
        let (tile, parts) = Tile::choose(tiles, shape, params.batch, caps, multiprocessors);
        (tile, parts, tile.cost_ns(shape, params.batch, parts, multiprocessors))
    };
    let mut matrices = bindings(problem);
    let mut used_bytes = 0;
    let (mut tile, mut parts, cost_ns) = choose(&PACKED_TILES);
    let mut variant = format!("{}x{}x{}", tile.m, tile.n, tile.k);
    if caps.matrix_unit.is_some() {
        let (of_units, parts_of_units, mut units_ns) = choose(&TILES);
        let copied = copied(problem, params);
        for &slot in &copied {
            let bytes = reads(slot, &mut params).elements(stored(problem, slot), false, DType::I8);
            units_ns += COPY_LAUNCH_NS + COPY_BYTE_NS * bytes as f64;
        }
        if copied.is_empty() || units_ns < cost_ns {
            let (read_in_place, count) = ((params, matrices.clone()), plan.dispatches.len());
            let copied = copied.into_iter().try_for_each(|slot| {
                let copy = copy_of(problem, slot, DType::I8, used_bytes, caps);
                used_bytes += copy.add_to(plan, &mut matrices, reads(slot, &mut params))?;
                Ok::<_, Box<Error>>(())
            });
            if copied.is_ok() {
                (tile, parts) = (of_units, parts_of_units);
                variant = format!("{}x{}x{} {}", tile.m, tile.n, tile.k, layout(problem));
            } else {
                // A copy that is too large is not made: the others read operands where they lie.
                ((params, matrices), used_bytes) = (read_in_place, 0);
                plan.dispatches.truncate(count);
            }
        }
    }
    let constants = vec![("TILE_M", tile.m), ("TILE_N", tile.n), ("TILE_K", tile.k), ("THREADS", tile.threads)];
    let kernel = Kernel { id: KernelId::MatmulInt8, variant, source: None, constants };
    Product { kernel, params, matrices, blocks: tile.blocks(m, n) as u32, parts, k_step: tile.k, used_bytes }.add_integers_to(plan);
    Ok(())
}

impl Product {
    /// Adds the launch, and where k is split one that adds up the parts.
    fn add_integers_to(self, plan: &mut Plan) {
        let Self { kernel, params, matrices, blocks, parts, k_step, used_bytes } = self;
        let Params { m, k, n, batch, .. } = params;
        let k_part = k.div_ceil(parts).next_multiple_of(k_step);
        let parts = if parts > 1 { k.div_ceil(k_part) } else { 1 };
        let mut dispatch = Dispatch { kernel, params: params.into(), bindings: matrices, grid: [blocks, 1, batch * parts] };
        if parts == 1 {
            plan.dispatches.push(dispatch);
            plan.scratch_bytes = plan.scratch_bytes.max(used_bytes);
            return;
        }
        let scratch_bytes = scratch_bytes([m, n], batch, parts);
        let scratch = |index| Binding { slot: Slot::Scratch, index, offset_bytes: used_bytes, size_bytes: scratch_bytes };
        dispatch.params = Params { out_start: 0, k_part, ..params }.into();
        let mut ends = Vec::new();
        for binding in dispatch.bindings.iter_mut().filter(|binding| binding.slot == Slot::Out) {
            ends.push(Binding { index: 1, ..*binding });
            *binding = scratch(binding.index);
        }
        plan.dispatches.push(dispatch);
        let constants = vec![("THREADS", SUM_THREADS)];
        plan.dispatches.push(Dispatch {
            kernel: Kernel { id: KernelId::MatmulInt8, variant: "sum".to_owned(), source: None, constants },
            params: Params { k: parts, ..params }.into(),
            bindings: [scratch(0)].into_iter().chain(ends).collect(),
            grid: [(batch * m * n).div_ceil(SUM_THREADS), 1, 1],
        });
        plan.scratch_bytes = plan.scratch_bytes.max(used_bytes + scratch_bytes);
    }
}

/// The launch of `shaders/matmul/int8_vector.cu`; None for other products.
fn by_vectors(problem: &Problem, integers: &Integers, launch: &Launch, caps: &Caps, multiprocessors: u32) -> Option<Product> {
    let told = told(problem, integers, launched(problem, launch));
    let product = Vectors::of(problem, told, caps)?;
    let Vectors { swaps, tall, along, x_along, vectors, .. } = product;
    let is_left = caps.matrix_unit.is_some() && (vectors > MOST_VECTORS || product.matrices() < LEAST_MATRIX);
    if is_left && copied(problem, told).is_empty() {
        return None;
    }
    let [turn, turns] = product.turns();
    let threads = if along { vector::THREADS } else { vector::THREADS_ACROSS };
    let lanes = product.lanes(threads);
    let Spread { groups, lanes, parts } = product.spread(threads, 1, lanes, [u32::MAX, MOST_LAYERS], multiprocessors);
    let place = |at: usize| if swaps { 1 - at } else { at };
    let unsigned = [0, 1].map(|at| if integers.dtypes[at] == DType::U8 { UNSIGNED[place(at)] } else { 0 });
    let result = unsigned[0] | unsigned[1] | if x_along { ALONG_K[1] } else { 0 };
    let zero_points = if swaps { told.zero_points.rotate_left(16) } else { told.zero_points };
    let params = Params { result, zero_points, before_y: lanes, before_x: u32::from(tall), ..product.params };
    let constants = vec![("THREADS", threads), ("ALONG", u32::from(along)), ("VECTORS", turn * turns)];
    let variant = format!("{}-{}", if along { "along" } else { "across" }, turn * turns);
    Some(Product {
        kernel: Kernel { id: KernelId::MatmulInt8Vector, variant, source: None, constants },
        params,
        matrices: product.all_ordered(bindings(problem)),
        blocks: groups,
        parts,
        k_step: 4 * lanes,
        used_bytes: 0,
    })
}

/// The operands that matrix units cannot read where they lie.
fn copied(problem: &Problem, mut params: Params) -> Vec<Slot> {
    [Slot::A, Slot::B].into_iter().filter(|&slot| problem.reads_operands() && !reads(slot, &mut params).are_aligned(DType::I8)).collect()
}

/// Parameters that tell how operands are stored and what their zero points are as i8.
fn told(problem: &Problem, integers: &Integers, params: Params) -> Params {
    let along_k = [!problem.transpose_a, problem.transpose_b];
    let (mut result, mut zero_points) = (0, integers.zero_points);
    for at in [0, 1] {
        if integers.dtypes[at] == DType::U8 {
            result |= UNSIGNED[at];
            zero_points[at] -= 128;
        }
        result |= if along_k[at] { ALONG_K[at] } else { 0 };
    }
    Params { result, zero_points: packed(zero_points), ..params }
}
