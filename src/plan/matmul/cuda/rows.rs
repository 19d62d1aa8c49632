//! The launch of `shaders/matmul/rows.cu` for products of few terms and columns with so many rows that nothing but memory counts: of points, say, or
//! of colours.

use super::{bindings, constants_of_layout, launched};
use crate::dtype::DType;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::Dispatch;
use crate::plan::matmul::batch::Launch;
use crate::plan::matmul::{Params, operands_f16, rows, whole};

/// The most elements of B where both are multiples of 4: with 32 x 32 the register-tiled kernel took four fifths of the time on an NVIDIA H200.
const MOST_IN_FOURS: u32 = 24 * 24;

/// Elements that the kernel has room for, of A and of the result, and its threads.
const ROOM: u32 = 3072;
const THREADS: u32 = 128;

/// Rows of a block are such a multiple.
const ROWS: u32 = 32;

/// Blocks of a multiprocessor, if there are rows enough.
const BLOCKS: u32 = 8;

/// Whether it is for such products.
pub(super) fn takes(problem: &Problem) -> bool {
    rows_of_block(problem, &whole(problem), 1).is_some()
}

/// The launch, on a GPU of so many multiprocessors; None for other products.
pub(super) fn product(problem: &Problem, launch: &Launch, multiprocessors: u32) -> Option<Dispatch> {
    let params = Params { result: u32::from(problem.result != DType::F32), ..launched(problem, launch) };
    let rows = rows_of_block(problem, &params, multiprocessors)?;
    let operands_f16 = operands_f16(problem);
    let mut constants = vec![("THREADS", THREADS), ("OPERANDS_F16", operands_f16)];
    constants.extend(constants_of_layout(problem));
    let (operands, b) = (if operands_f16 == 1 { "f16" } else { "f32" }, if problem.transpose_b { 't' } else { 'n' });
    let kernel = Kernel { id: KernelId::MatmulRows, variant: format!("{operands}-n{b}"), source: None, constants };
    let grid = [params.m.div_ceil(rows), 1, 1];
    Some(Dispatch { kernel, params: Params { k_part: rows, ..params }.into(), bindings: bindings(problem), grid })
}

/// How many rows a block takes; None for other products.
fn rows_of_block(problem: &Problem, params: &Params, multiprocessors: u32) -> Option<u32> {
    let &Params { m, k, n, .. } = params;
    // What lies in whole fours others read as well, and matrix units take f16 as it is.
    let are_fours = k.is_multiple_of(4) && n.is_multiple_of(4);
    let is_others = are_fours && if problem.dtype == DType::F16 { k.is_multiple_of(8) } else { k * n > MOST_IN_FOURS };
    if is_others || !rows::lie_behind(problem, params) {
        return None;
    }
    // As the kernel has them in shared memory.
    let pitch = |length: u32| if length.is_multiple_of(4) { ((length / 4) | 1) * 4 } else { length };
    let busy = m / (BLOCKS * multiprocessors.max(1));
    Some((ROOM / pitch(k).max(pitch(n))).min(busy) / ROWS * ROWS).map(|rows| rows.max(ROWS))
}
