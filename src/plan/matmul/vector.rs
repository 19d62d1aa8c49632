//! Products of which one side is a single row or column. They read each element of the matrix once, so what counts is how evenly the
//! reading is spread over the device.

use super::step::Step;
use super::tile::MOST_PARTS;
use super::{Params, vec4};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::Binding;

/// Invocations in a workgroup.
const THREADS: u32 = 128;

/// Workgroups that keep a large GPU's memory busy.
const BUSY_WORKGROUPS: u64 = 1024;

/// The least of k that is worth a part of its own.
const LEAST_PART: u32 = 512;

/// The launch for such a product; None for any other.
pub(super) fn step(problem: &Problem, params: Params, [a, b]: [Binding; 2], caps: &Caps) -> Option<Step> {
    if problem.integers.is_some() || params.k == 0 || !problem.reads_operands() || caps.max_workgroup_invocations < THREADS {
        return None;
    }
    let Params { m, n, lda, ldb, a_start, b_start, .. } = params;
    let at = |binding: Binding, index| Binding { index, ..binding };
    let turned = Params { a_outer: params.b_outer, b_outer: params.a_outer, a_inner: params.b_inner, b_inner: params.a_inner, ..params };
    // The matrix, with a line for each element of the result or one for each step of k; and the vector.
    let (along, matrix, vector, elements, params) = if m == 1 {
        let vector_step = if problem.transpose_a { lda } else { 1 };
        (problem.transpose_b, (at(b, 0), b_start, ldb), (at(a, 1), a_start, vector_step), n, turned)
    } else if problem.n == 1 && problem.c.is_none_or(|c| c.stride == 1) {
        let vector_step = if problem.transpose_b { 1 } else { ldb };
        (!problem.transpose_a, (a, a_start, lda), (b, b_start, vector_step), m, params)
    } else {
        return None;
    };
    let (matrix, a_start, lda) = matrix;
    let (vector, b_start, ldb) = vector;
    // Lanes that share a line read neighbours, so a long line is worth many; lines side by side are read by as many groups.
    let mut lanes = if along { (params.k / 16).next_power_of_two().clamp(4, THREADS) } else { 8 };
    let workgroups = |lanes: u32| elements.div_ceil(4 * (THREADS / lanes));
    while workgroups(lanes) > caps.max_workgroups_per_dimension && lanes > 1 {
        lanes /= 2;
    }
    let mut parts = 1;
    let all = |each: u32| u64::from(each) * u64::from(params.batch);
    let most = u64::from(caps.max_workgroups_per_dimension);
    let small = all(elements.div_ceil(16)) <= most;
    while small
        && all(workgroups(lanes) * parts) < BUSY_WORKGROUPS
        && params.k / (2 * parts) >= LEAST_PART
        && 2 * parts <= MOST_PARTS
        && all(2 * parts) <= most
    {
        parts *= 2;
    }
    let constants = vec![
        ("THREADS", THREADS),
        ("OPERANDS_F16", super::operands_f16(problem)),
        ("HALF", 0),
        ("LANES", lanes),
        ("GROUPS", THREADS / lanes),
        ("ALONG", u32::from(along)),
        ("A_VEC4", vec4(&[a_start, lda, params.a_outer, params.a_inner])),
        ("B_VEC4", u32::from(ldb == 1) & vec4(&[b_start, params.b_outer, params.b_inner])),
    ];
    let variant = format!("{} lanes {}", lanes, if along { "along" } else { "across" });
    Some(Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulVector, variant, source: None, constants },
        params: Params { m: 1, n: elements, lda, ldb, ldo: elements, a_start, b_start, ..params },
        operands: [matrix, vector],
        grid: [workgroups(lanes), 1],
        parts,
        k_step: 4 * lanes,
    })
}
