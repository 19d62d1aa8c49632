//! The launch of `shaders/matmul/vector.cu` for products of which one side is a few rows or columns. Its sizes are those that were quickest on an
//! NVIDIA H100.

use super::{MOST_LAYERS, Product, bindings, launched, tiles_for};
use crate::dtype::DType;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::matmul::batch::Launch;
use crate::plan::matmul::tile::FROM_MEMORY;
use crate::plan::matmul::vector::{Spread, THREADS, THREADS_ACROSS, Vectors};
use crate::plan::matmul::{Params, operands_f16, whole};

/// What lanes read of a line at once at least, where there are more vectors than four: those are shared by the lines of a block.
const LINE_BYTES: u32 = 512;

/// Elements of all matrices of f16 from which on the library's matrix units are quicker, but with one or two vectors along k of so many steps; and
/// from which on this crate's are with more than four, but along k of so many.
const LIBRARY_F16: u64 = 1 << 22;
const LONG: u32 = 512;
const UNITS_F16: u64 = 1 << 25;
const LONG_BY_UNITS: u32 = 2048;

/// For some items of a batch; None for other products.
pub(super) fn product(problem: &Problem, launch: &Launch, caps: &Caps, multiprocessors: u32) -> Option<Product> {
    let told = Params { result: u32::from(problem.result != DType::F32), ..launched(problem, launch) };
    let product = Vectors::of(problem, told, caps)?;
    let [turn, turns] = product.turns();
    let Vectors { along, x_along, vectors, .. } = product;
    // What has a bias for each column cannot be taken for a row.
    let is_column = problem.bias && problem.n == 1;
    let params = if is_column { Params { m: told.m, n: told.n, ldo: told.ldo, ..product.params } } else { product.params };
    let tall = product.tall || is_column;
    let threads = if along || vectors > 4 { THREADS } else { THREADS_ACROSS };
    let by_units = tiles_for(problem, caps).0 == KernelId::MatmulCooperative;
    let is_left = by_units && vectors > 4 && product.matrices() >= UNITS_F16 && !(along && told.k >= LONG_BY_UNITS);
    if is_left || caps.max_workgroup_invocations < threads {
        return None;
    }
    let line = LINE_BYTES / (4 * problem.dtype.bytes() as u32);
    let [least, most] = product.lanes(threads);
    let least = if along && vectors > 4 { most.min(line) } else { least };
    let Spread { groups, lanes, parts } = product.spread(threads, 1, [least, most], [u32::MAX, MOST_LAYERS], multiprocessors);
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
    Some(Product {
        kernel: Kernel { id: KernelId::MatmulVector, variant, source: None, constants },
        params: Params { height: x_element, width: x_vector, before_y: lanes, before_x: u32::from(tall), ..params },
        matrices: product.all_ordered(bindings(problem)),
        blocks: groups,
        parts,
        k_step: 4 * lanes,
        used_bytes: 0,
    })
}

/// Whether a product by itself is such a one.
pub(super) fn takes(problem: &Problem, caps: &Caps) -> bool {
    Vectors::of(problem, whole(problem), caps).is_some()
}

/// Whether it is quicker than NVIDIA's library.
pub(super) fn is_quicker(problem: &Problem, caps: &Caps) -> bool {
    let Some(product) = Vectors::of(problem, whole(problem), caps).filter(|_| problem.integers.is_none()) else { return false };
    let Vectors { along, vectors, .. } = product;
    match problem.dtype {
        DType::F32 => along || vectors > 1 || product.matrix() < FROM_MEMORY,
        _ => along && vectors <= 2 && problem.k >= LONG || product.matrices() < LIBRARY_F16,
    }
}
