//! Products so small, or of so few terms, that tiles would be idle for the most part: batches of them, and those of many points or weights with
//! a small matrix. An invocation takes 4 x 4 elements, and the blocks of all items stand behind one another.

use super::step::Step;
use super::{Params, operands_f16, tile, vec4};
use crate::info::Caps;
use crate::kernels::template::Constant;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::{Binding, Dispatch};

/// Rows and columns of a result that an invocation computes.
const BLOCK: u32 = 4;

/// Rows, columns and terms beyond which there is enough for a workgroup to share.
const MOST: u32 = 32;

/// Invocations of a workgroup.
const THREADS: u32 = 64;

/// Steps of k that are fetched at once.
const TERMS: u32 = 4;

/// The most elements of rows that lie behind one another, of A and of the result, all of which an invocation has of four rows.
const MOST_FLAT: u32 = 16;

/// What a step of k costs: all of a GPU for each block, and however few there are, since it waits for memory; the latter for each of what is
/// fetched by fours or by ones. In the measure of the tiles' costs, measured on an NVIDIA H100.
const STEP: f64 = 0.8;
const WAIT: f64 = 1.7e4;
const WAIT_BY_ONES: f64 = 3.4e4;

/// How much of it a nanosecond is on the GPU that it is measured on.
#[cfg(not(target_arch = "wasm32"))]
const COST_OF_NS: f64 = 176.0;

fn blocks(m: u32, n: u32) -> u64 {
    u64::from(m.div_ceil(BLOCK)) * u64::from(n.div_ceil(BLOCK))
}

/// What such products cost; None for any others. `params` tells of all of them.
fn cost(problem: &Problem, params: &Params) -> Option<f64> {
    let Params { m, k, n, batch, .. } = *params;
    let are_small = batch > 1 && m.max(n) <= MOST;
    // Products with a vector have a kernel of their own.
    let is_thin = (2..=MOST).contains(&m.min(n)) && k <= MOST;
    if !(are_small || is_thin) || m.min(k).min(n) == 0 || problem.integers.is_some() || !problem.reads_operands() {
        return None;
    }
    let wait = if k.is_multiple_of(TERMS) { WAIT } else { WAIT_BY_ONES };
    Some(f64::from(k) * (STEP * blocks(m, n) as f64 * f64::from(batch) + wait))
}

/// The most items of a launch, if these are such products, for all of which that is cheaper than tiles.
pub(super) fn most_items(problem: &Problem, params: &Params, caps: &Caps) -> Option<u32> {
    let cost = cost(problem, params)?;
    let invocations = u64::from(caps.max_workgroups_per_dimension) * u64::from(THREADS);
    let is_cheaper = tile::cheapest(problem, params, caps).is_none_or(|of_tiles| cost < of_tiles.cost);
    is_cheaper.then(|| (invocations / blocks(params.m, params.n)).min(u32::MAX.into()) as u32)
}

/// The same on CUDA, whose tiles take so long, which is asked for such products alone.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn most_items_on_cuda(problem: &Problem, params: &Params, tiles_ns: impl FnOnce() -> f64) -> Option<u32> {
    let is_cheaper = cost(problem, params)? / COST_OF_NS < tiles_ns();
    let most = u64::from(u32::MAX) / blocks(params.m, params.n);
    (is_cheaper && most > 0).then_some(most as u32)
}

/// Threads of a block of `shaders/matmul/direct.cu`, and how many blocks there are.
#[cfg(not(target_arch = "wasm32"))]
pub(super) fn grid_on_cuda(&Params { m, n, batch, .. }: &Params) -> (u32, [u32; 3]) {
    (THREADS, [(blocks(m, n) * u64::from(batch)).div_ceil(THREADS.into()) as u32, 1, 1])
}

/// The launch for such products.
pub(super) fn step(problem: &Problem, params: Params, operands: [Binding; 2]) -> Step {
    let Params { k, n, lda, ldb, a_start, b_start, a_outer, a_inner, b_outer, b_inner, .. } = params;
    let [a_along, b_along] = [!problem.transpose_a, problem.transpose_b].map(u32::from);
    let is_flat = is_flat(problem, &params);
    let a_vec4 = vec4(&[a_start, if is_flat { 0 } else { lda }, a_outer, a_inner]);
    let b_vec4 = vec4(&[b_start, ldb, b_outer, b_inner]);
    let by_fours = u32::from(k.is_multiple_of(TERMS));
    let constants = vec![
        ("MANY", 1),
        ("FLAT", if is_flat { k } else { 0 }),
        ("FLAT_N", if is_flat { n } else { 0 }),
        ("A_VEC4", a_vec4),
        ("SLICES", 1),
        ("B_VEC4", b_vec4),
        ("A_LINES", a_vec4 & (1 - a_along)),
        ("B_LINES", b_vec4 & (1 - b_along)),
        ("A_SCATTER", a_along),
        ("B_SCATTER", b_along),
        ("A_TERMS", by_fours & a_vec4 & a_along),
        ("B_TERMS", by_fours & b_vec4 & b_along),
        ("OPERANDS_F16", operands_f16(problem)),
        ("HALF", 0),
        ("WINDOW", 0),
        ("BLOCK_TERMS", k.min(TERMS)),
    ];
    Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulDirect, variant: "small".to_owned(), source: None, constants },
        params,
        operands,
        grid: [workgroups(&params, is_flat), 1],
        parts: 1,
        k_step: 1,
    }
}

fn workgroups(&Params { m, n, batch, .. }: &Params, is_flat: bool) -> u32 {
    let blocks = blocks(m, if is_flat { 1 } else { n });
    (blocks * u64::from(batch)).div_ceil(THREADS.into()) as u32
}

/// Whether both A's rows and the result's lie behind one another, and the latter could not be written by fours one by one.
fn is_flat(problem: &Problem, params: &Params) -> bool {
    let &Params { m, k, n, lda, ldo, a_start, out_start, a_outer, a_inner, batch, .. } = params;
    // Behind all of the result there is room for a last vec4 that is not whole.
    let is_all = m == problem.m && batch == 1 && problem.batch.count() == 1;
    let starts = [a_start, a_outer, a_inner, out_start, if is_all { 0 } else { m.wrapping_mul(n) }];
    let is_whole = k == problem.k && problem.c.is_none() && !problem.transpose_a;
    is_whole && lda == k && ldo == n && k.max(n) <= MOST_FLAT && !n.is_multiple_of(BLOCK) && vec4(&starts) == 1
}

/// Makes a launch one whose invocations have blocks, of which something more can be computed.
pub(in crate::plan) fn in_blocks(dispatch: &mut Dispatch) {
    let Ok(params) = dispatch.params.matmul() else { return };
    if dispatch.kernel.constant("FLAT") > 0 {
        dispatch.grid[0] = workgroups(params, false);
        let not_flat = |(name, _): &&mut Constant| ["FLAT", "FLAT_N", "OUT_VEC4"].contains(name);
        dispatch.kernel.constants.iter_mut().filter(not_flat).for_each(|(_, value)| *value = 0);
    }
}
