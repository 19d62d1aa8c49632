//! Products of few terms and columns with so many rows that nothing but memory counts: of points, say, or of colours.

use super::step::Step;
use super::{Params, operands_f16, vec4};
use crate::dtype::DType;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::Binding;

/// The most terms and columns.
const MOST: u32 = 32;

/// With fewer rows others are as quick.
const LEAST: u32 = 4096;

/// Invocations of a workgroup of `shaders/matmul/rows.wgsl`.
const THREADS: u32 = 64;

/// Rows of a workgroup; the most is how many do not take more bytes of its memory than leave room for others.
const ROWS: [u32; 3] = [256, 128, 64];
const MOST_BYTES: u32 = 6 << 10;

/// So many times a workgroup takes its rows at most, where there are more than so many workgroups: the next are on their way while it computes with
/// some, and B is fetched once.
const TIMES: u32 = 8;
const ENOUGH: u32 = 1024;

/// The most elements of B where both terms and columns are of fours: tiles read those as well, and more often what they have read.
const MOST_IN_FOURS: u32 = 20 * 20;

/// Whether it is such a product, whose rows lie behind one another, A's and the result's, from multiples of 4 elements on.
pub(super) fn lie_behind(problem: &Problem, params: &Params) -> bool {
    let &Params { m, k, n, lda, ldo, batch, a_start, out_start, .. } = params;
    let is_plain = !problem.transpose_a && problem.c.is_none() && problem.integers.is_none() && problem.reads_operands();
    let are_few = (1..=MOST).contains(&k) && (1..=MOST).contains(&n) && m >= LEAST;
    is_plain && are_few && batch == 1 && (lda, ldo) == (k, n) && vec4(&[a_start, out_start]) == 1
}

/// The launch for such a product; None for any other.
pub(super) fn step(problem: &Problem, params: Params, operands: [Binding; 2]) -> Option<Step> {
    let Params { m, k, n, .. } = params;
    // Behind all of the result there is room for a last vec4 that is not whole.
    let is_all = m == problem.m && problem.batch.count() == 1;
    let ends_whole = is_all || m.wrapping_mul(n).is_multiple_of(4);
    if k != problem.k || !ends_whole || !lie_behind(problem, &params) {
        return None;
    }
    let by = [4, 2, 1].into_iter().find(|&by| k.is_multiple_of(by) && n.is_multiple_of(by)).unwrap_or(1);
    if by == 4 && problem.dtype == DType::F32 && k * n > MOST_IN_FOURS || n == 1 && k.is_multiple_of(4) {
        return None;
    }
    let ([of_a, of_out], columns) = ([k, n].map(|length| length / by), n.div_ceil(4));
    let apart = of_a.max(of_out) | 1;
    let rows = ROWS.into_iter().find(|rows| rows * apart * by * 4 <= MOST_BYTES).unwrap_or(ROWS[2]);
    // Of neighbours in a row each has other columns.
    let each = [4, 2].into_iter().find(|each| THREADS * each / rows <= columns).unwrap_or(1);
    let fours = |length: u32| (rows * length / 4).div_ceil(THREADS);
    let workgroups = m.div_ceil(rows);
    let constants = vec![
        ("K", k),
        ("N", n),
        ("ROWS", rows),
        ("EACH", each),
        ("COLUMNS", columns),
        ("OF_EACH", columns.div_ceil(THREADS * each / rows)),
        ("LOADS", fours(k)),
        ("STORES", fours(n)),
        ("SINGLE", u32::from(by == 1)),
        ("PAIRS", u32::from(by == 2)),
        ("FOURS", u32::from(by == 4)),
        ("OF_A", of_a),
        ("OF_OUT", of_out),
        ("ROOM", rows * apart),
        ("OF_FOUR", 4 / by),
        ("BY", by),
        ("A_VEC4", 1),
        ("B_VEC4", 0),
        ("B_SCATTER", problem.transpose_b.into()),
        ("OPERANDS_F16", operands_f16(problem)),
        ("HALF", 0),
    ];
    Some(Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulRows, variant: String::new(), source: None, constants },
        params,
        operands,
        grid: [workgroups.div_ceil((workgroups / ENOUGH).clamp(1, TIMES)), 1],
        parts: 1,
        k_step: 1,
    })
}
