//! Products of which one side is a few rows or columns, called vectors here. They read each element of the matrix once, so what counts is
//! how evenly the reading is spread over the device.

use super::step::Step;
use super::tile::{MOST_PARTS, MULTIPROCESSORS};
use super::{Params, vec4};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::Binding;

/// Invocations in a workgroup.
const THREADS: u32 = 128;

/// Workgroups that keep a large GPU's memory busy, where they have one or two vectors and where they have more.
const BUSY_WORKGROUPS: [u64; 2] = [1024, 512];

/// The least of k that is worth a part of its own, and of each lane.
const LEAST_PART: u32 = 512;
const LEAST_OF_A_LANE: u32 = 32;

/// The most vectors for which the kernel is quicker than tiles, how many elements the matrix has then, and how many where its lines lie across k
/// and there are more vectors than four; lines for each vector, and terms.
const MOST_VECTORS: u32 = 8;
const LEAST_MATRIX: u64 = 1 << 18;
const LEAST_MATRIX_ACROSS: u64 = 1 << 22;
const LEAST_LINES: u32 = 16;
const LEAST_TERMS: u32 = 128;

/// The launch for such a product; None for any other.
pub(super) fn step(problem: &Problem, params: Params, [a, b]: [Binding; 2], caps: &Caps) -> Option<Step> {
    if problem.integers.is_some() || params.k == 0 || !problem.reads_operands() || caps.max_workgroup_invocations < THREADS {
        return None;
    }
    let Params { m, n, lda, ldb, a_start, b_start, .. } = params;
    let at = |binding: Binding, index| Binding { index, ..binding };
    let turned = Params { a_outer: params.b_outer, b_outer: params.a_outer, a_inner: params.b_inner, b_inner: params.a_inner, ..params };
    let is_worth_it = |vectors: u32, elements: u32, along| {
        let least = if along || vectors <= 4 { LEAST_MATRIX } else { LEAST_MATRIX_ACROSS };
        vectors <= MOST_VECTORS
            && elements >= LEAST_LINES * vectors
            && params.k >= LEAST_TERMS
            && u64::from(elements) * u64::from(params.k) >= least
            && elements.div_ceil(4 * THREADS) <= caps.max_workgroups_per_dimension
    };
    // The matrix, with a line for each element of the result or one for each step of k; and the vectors, with a line for each or one for each
    // step of k.
    let (tall, along, matrix, x_along, x, params) = if m == 1 || m <= n && is_worth_it(m, n, problem.transpose_b) {
        (false, problem.transpose_b, (at(b, 0), b_start, ldb), !problem.transpose_a, (at(a, 1), a_start, lda), turned)
    } else if problem.n == 1 && problem.c.is_none_or(|c| c.stride == 1) {
        // It lies in memory as a row does.
        let row = Params { m: 1, n: m, ldo: m, ..params };
        (false, !problem.transpose_a, (a, a_start, lda), problem.transpose_b, (b, b_start, ldb), row)
    } else if is_worth_it(n, m, !problem.transpose_a) {
        (true, !problem.transpose_a, (a, a_start, lda), problem.transpose_b, (b, b_start, ldb), params)
    } else {
        return None;
    };
    let (matrix, a_start, lda) = matrix;
    let (x, b_start, ldb) = x;
    let (vectors, elements) = if tall { (params.n, params.m) } else { (params.m, params.n) };
    // Of a vector alone that lies across rows of one element the elements are neighbours all the same.
    let x_along = x_along || vectors == 1 && ldb == 1;
    let turn = vectors.next_power_of_two().min(4);
    let turns = vectors.div_ceil(turn);
    let all = |each: u32| u64::from(each) * u64::from(params.batch);
    let busy = BUSY_WORKGROUPS[usize::from(vectors > 2)];
    // Lanes that share a line read neighbours, so a long line is worth many; lines side by side are read by as many groups, which are to be
    // neighbours too, unless there are few of them.
    let mut lanes = if along { (params.k / 16).next_power_of_two().clamp(4, THREADS) } else { 8 };
    // Where a lane takes steps enough two fours of lines halve how often the vectors are read, which counts where there are many.
    let reads_less = along && vectors > 4 && params.k >= LEAST_OF_A_LANE * lanes && all(elements.div_ceil(8 * (THREADS / lanes))) >= busy;
    let fours = if reads_less { 2 } else { 1 };
    let workgroups = |lanes: u32| elements.div_ceil(4 * fours * (THREADS / lanes));
    while !along && lanes < 32 && all(workgroups(lanes)) < BUSY_WORKGROUPS[1] && params.k >= LEAST_OF_A_LANE * lanes {
        lanes *= 2;
    }
    while workgroups(lanes) > caps.max_workgroups_per_dimension && lanes > 1 {
        lanes /= 2;
    }
    let mut parts = 1;
    let most = u64::from(caps.max_workgroups_per_dimension);
    let small = all(elements.div_ceil(16)) <= most;
    // Twice as many parts pay where that comes nearer to a busy GPU, and lanes still have terms enough for the launch that adds the parts up: fewer
    // where multiprocessors are idle, more where each term goes into many sums.
    while small && 2 * parts <= MOST_PARTS && all(2 * parts) <= most {
        let now = all(workgroups(lanes) * parts);
        let least = match (along, vectors) {
            (false, _) if now < MULTIPROCESSORS => LEAST_OF_A_LANE / 4 * 3,
            (false, 3..) => LEAST_OF_A_LANE / 2 * 3,
            _ => LEAST_OF_A_LANE,
        };
        if 3 * now >= 2 * busy || params.k / (2 * parts) < LEAST_PART.max(least * lanes) {
            break;
        }
        parts *= 2;
    }
    let b_vec4 = vec4(&[b_start, params.b_outer, params.b_inner]) & u32::from(vectors == 1 && x_along || ldb.is_multiple_of(4));
    let constants = vec![
        ("THREADS", THREADS),
        ("OPERANDS_F16", super::operands_f16(problem)),
        ("HALF", 0),
        ("LANES", lanes),
        ("GROUPS", THREADS / lanes),
        ("ALONG", u32::from(along)),
        ("A_VEC4", vec4(&[a_start, lda, params.a_outer, params.a_inner])),
        ("B_VEC4", b_vec4 & u32::from(x_along || turn == 4)),
        ("X_ALONG", u32::from(x_along)),
        ("X_FOURS", b_vec4 & u32::from(!x_along && turn == 4)),
        ("TURN", turn),
        ("TURNS", turns),
        ("TALL", u32::from(tall)),
        ("FOURS", fours),
    ];
    let several = if vectors > 1 { format!("{} vectors ", turn * turns) } else { String::new() };
    let variant = format!("{several}{lanes} lanes {}", if along { "along" } else { "across" });
    Some(Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulVector, variant, source: None, constants },
        params: Params { lda, ldb, a_start, b_start, ..params },
        operands: [matrix, x],
        grid: [workgroups(lanes), 1],
        parts,
        k_step: 4 * lanes,
    })
}
