//! The launch of `shaders/matmul/vector.cu` for products of which one side is a few rows or columns. Its sizes are those that were quickest on an
//! NVIDIA H100.

use super::{MOST_LAYERS, MOST_PARTS, Product, bindings, launched, tiles_for};
use crate::dtype::DType;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::Binding;
use crate::plan::matmul::batch::Launch;
use crate::plan::matmul::tile::FROM_MEMORY;
use crate::plan::matmul::vector::Vectors;
use crate::plan::matmul::{Params, operands_f16, whole};

/// Threads of a block; and of one that has few sums, where lines lie across k.
const THREADS: u32 = 128;
const THREADS_ACROSS: u32 = 256;

/// The least steps of k of a lane, and in parts of k that pay for the launch that adds them up.
const LEAST_OF_A_LANE: u32 = 16;
const LEAST_PART: u32 = 512;
const LEAST_OF_A_LANE_IN_PARTS: u32 = 32;

/// What lanes that read a line side by side read of it at once, at least.
const LINE_BYTES: u32 = 512;

/// Elements of a matrix of f16 from which on the library's matrix units are quicker; and this crate's, where lines lie across k and there are more
/// vectors than four.
const LIBRARY_F16: u64 = 1 << 22;
const UNITS_ACROSS: u64 = 1 << 25;

/// For some items of a batch; None for other products.
pub(super) fn product(problem: &Problem, launch: &Launch, caps: &Caps, multiprocessors: u32) -> Option<Product> {
    let told = Params { result: u32::from(problem.result != DType::F32), ..launched(problem, launch) };
    let product = Vectors::of(problem, told, caps)?;
    let [turn, turns] = product.turns();
    let Vectors { swaps, along, x_along, vectors, elements, .. } = product;
    // What has a bias for each column cannot be taken for a row.
    let is_column = problem.bias && problem.n == 1;
    let params = if is_column { Params { m: told.m, n: told.n, ldo: told.ldo, ..product.params } } else { product.params };
    let tall = product.tall || is_column;
    let threads = if along || vectors > 4 { THREADS } else { THREADS_ACROSS };
    let by_units = tiles_for(problem, caps).0 == KernelId::MatmulCooperative;
    let is_left = by_units && !along && vectors > 4 && product.matrix() >= UNITS_ACROSS;
    if is_left || caps.max_workgroup_invocations < threads {
        return None;
    }
    // What is shared of a block are the vectors: with more of them it is to have more lines, while there are blocks enough.
    let line = LINE_BYTES / (4 * problem.dtype.bytes() as u32);
    let most = (params.k / LEAST_OF_A_LANE).next_power_of_two();
    let (least, most) = if along {
        let most = most.clamp(4, threads);
        (if vectors > 4 { most.min(line) } else { most }, most)
    } else {
        let most = most.clamp(4, threads / 4);
        (most.min(8), most)
    };
    let blocks = |lanes: u32| elements.div_ceil(4 * (threads / lanes));
    let all = |each: u32| u64::from(each) * u64::from(params.batch);
    let mut lanes = least;
    while lanes < most && 2 * all(blocks(lanes)) < 3 * u64::from(multiprocessors) {
        lanes *= 2;
    }
    let mut parts = 1;
    while 4 * all(blocks(lanes) * parts) < 3 * u64::from(multiprocessors)
        && params.k / (2 * parts) >= LEAST_PART.max(LEAST_OF_A_LANE_IN_PARTS * lanes)
        && 2 * parts <= MOST_PARTS
        && all(2 * parts) <= MOST_LAYERS.into()
    {
        parts *= 2;
    }
    let [x_element, x_vector] = if x_along { [1, params.ldb] } else { [params.ldb, 1] };
    let operands_f16 = operands_f16(problem);
    let constants = vec![
        ("THREADS", threads),
        ("OPERANDS_F16", operands_f16),
        ("ALONG", u32::from(along)),
        ("VECTORS", turn * turns),
        ("READS_C", u32::from(problem.c.is_some())),
        ("READS_BIAS", u32::from(problem.bias)),
    ];
    let (operands, lies) = (if operands_f16 == 1 { "f16" } else { "f32" }, if along { "along" } else { "across" });
    let variant = format!("{operands}-{lies}-{}", turn * turns);
    let matrices = bindings(problem).into_iter().map(|binding| match binding.index {
        index @ (0 | 1) if swaps => Binding { index: 1 - index, ..binding },
        _ => binding,
    });
    Some(Product {
        kernel: Kernel { id: KernelId::MatmulVector, variant, source: None, constants },
        params: Params { height: x_element, width: x_vector, before_y: lanes, before_x: u32::from(tall), ..params },
        matrices: matrices.collect(),
        blocks: blocks(lanes),
        parts,
        k_step: 4 * lanes,
        used_bytes: 0,
    })
}

/// Whether it is quicker than NVIDIA's library.
pub(super) fn is_quicker(problem: &Problem, caps: &Caps) -> bool {
    let Some(product) = Vectors::of(problem, whole(problem), caps) else { return false };
    let Vectors { along, vectors, .. } = product;
    match problem.dtype {
        DType::F32 => along || vectors > 1 || product.matrix() < FROM_MEMORY,
        _ => along && vectors <= 2 || product.matrix() < LIBRARY_F16,
    }
}
