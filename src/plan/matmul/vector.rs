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

/// Such a product.
pub(super) struct Vectors {
    /// With the matrix for A and the vectors for B, wherever they are stored.
    pub(super) params: Params,
    /// The matrix is B.
    pub(super) swaps: bool,
    /// The vectors are columns of the result, otherwise rows.
    pub(super) tall: bool,
    /// Lines of the matrix as stored have an element of the result each, otherwise a step of k; elements of a vector lie side by side, otherwise
    /// what is multiplied by one step of k.
    pub(super) along: bool,
    pub(super) x_along: bool,
    pub(super) vectors: u32,
    /// Of a vector of the result.
    pub(super) elements: u32,
}

impl Vectors {
    /// None for any other product.
    pub(super) fn of(problem: &Problem, params: Params, caps: &Caps) -> Option<Self> {
        if problem.integers.is_some() || params.k == 0 || !problem.reads_operands() {
            return None;
        }
        let Params { m, n, lda, ldb, a_start, b_start, .. } = params;
        let swapped = Params {
            lda: ldb,
            ldb: lda,
            a_start: b_start,
            b_start: a_start,
            a_outer: params.b_outer,
            b_outer: params.a_outer,
            a_inner: params.b_inner,
            b_inner: params.a_inner,
            ..params
        };
        let is_worth_it = |vectors: u32, elements: u32, along| {
            let least = if along || vectors <= 4 { LEAST_MATRIX } else { LEAST_MATRIX_ACROSS };
            vectors <= MOST_VECTORS
                && elements >= LEAST_LINES * vectors
                && params.k >= LEAST_TERMS
                && u64::from(elements) * u64::from(params.k) >= least
                && elements.div_ceil(4 * THREADS) <= caps.max_workgroups_per_dimension
        };
        let (swaps, tall, params) = if m == 1 || m <= n && is_worth_it(m, n, problem.transpose_b) {
            (true, false, swapped)
        } else if problem.n == 1 && problem.c.is_none_or(|c| c.stride == 1) {
            // It lies in memory as a row does.
            (false, false, Params { m: 1, n: m, ldo: m, ..params })
        } else if is_worth_it(n, m, !problem.transpose_a) {
            (false, true, params)
        } else {
            return None;
        };
        let (along, x_along) =
            if swaps { (problem.transpose_b, !problem.transpose_a) } else { (!problem.transpose_a, problem.transpose_b) };
        let (vectors, elements) = if tall { (params.n, params.m) } else { (params.m, params.n) };
        // Of a vector alone that lies across rows of one element the elements are neighbours all the same, and so are those of a single line.
        let x_along = x_along || vectors == 1 && params.ldb == 1;
        let is_line = elements == 1 && params.lda == 1;
        let (along, params) = (along || is_line, if is_line { Params { lda: 0, ..params } } else { params });
        Some(Self { params, swaps, tall, along, x_along, vectors, elements })
    }

    /// Elements of the matrix.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn matrix(&self) -> u64 {
        u64::from(self.elements) * u64::from(self.params.k)
    }

    /// By how many vectors sums are added up at a time, and how often: some of the last are perhaps nobody's.
    pub(super) fn turns(&self) -> [u32; 2] {
        let turn = self.vectors.next_power_of_two().min(4);
        [turn, self.vectors.div_ceil(turn)]
    }

    /// Lanes that share a line, fours of lines that they take, and parts of k, for WebGPU and Vulkan.
    fn spread(&self, caps: &Caps) -> [u32; 3] {
        let &Self { params: Params { k, batch, .. }, along, vectors, elements, .. } = self;
        let all = |each: u32| u64::from(each) * u64::from(batch);
        let busy = BUSY_WORKGROUPS[usize::from(vectors > 2)];
        // Lanes that share a line read neighbours, so a long line is worth many; lines side by side are read by as many groups, which are to be
        // neighbours too, unless there are few of them.
        let mut lanes = if along { (k / 16).next_power_of_two().clamp(4, THREADS) } else { 8 };
        // Where a lane takes steps enough two fours of lines halve how often the vectors are read, which counts where there are many.
        let reads_less = along && vectors > 4 && k >= LEAST_OF_A_LANE * lanes && all(elements.div_ceil(8 * (THREADS / lanes))) >= busy;
        let fours = if reads_less { 2 } else { 1 };
        let workgroups = |lanes: u32| self.workgroups(lanes, fours);
        while !along && lanes < 32 && all(workgroups(lanes)) < BUSY_WORKGROUPS[1] && k >= LEAST_OF_A_LANE * lanes {
            lanes *= 2;
        }
        while workgroups(lanes) > caps.max_workgroups_per_dimension && lanes > 1 {
            lanes /= 2;
        }
        let mut parts = 1;
        let most = u64::from(caps.max_workgroups_per_dimension);
        let small = all(elements.div_ceil(16)) <= most;
        // Twice as many parts pay where that comes nearer to a busy GPU, and lanes still have terms enough for the launch that adds the parts up:
        // fewer where multiprocessors are idle, more where each term goes into many sums.
        while small && 2 * parts <= MOST_PARTS && all(2 * parts) <= most {
            let now = all(workgroups(lanes) * parts);
            let least = match (along, vectors) {
                (false, _) if now < MULTIPROCESSORS => LEAST_OF_A_LANE / 4 * 3,
                (false, 3..) => LEAST_OF_A_LANE / 2 * 3,
                _ => LEAST_OF_A_LANE,
            };
            if 3 * now >= 2 * busy || k / (2 * parts) < LEAST_PART.max(least * lanes) {
                break;
            }
            parts *= 2;
        }
        [lanes, fours, parts]
    }

    /// Workgroups that share the lines then.
    fn workgroups(&self, lanes: u32, fours: u32) -> u32 {
        self.elements.div_ceil(4 * fours * (THREADS / lanes))
    }
}

/// The launch for such a product; None for any other.
pub(super) fn step(problem: &Problem, params: Params, [a, b]: [Binding; 2], caps: &Caps) -> Option<Step> {
    let product = Vectors::of(problem, params, caps).filter(|_| caps.max_workgroup_invocations >= THREADS)?;
    let [lanes, fours, parts] = product.spread(caps);
    let [turn, turns] = product.turns();
    let Vectors { params, swaps, tall, along, x_along, vectors, .. } = product;
    let b_vec4 =
        vec4(&[params.b_start, params.b_outer, params.b_inner]) & u32::from(vectors == 1 && x_along || params.ldb.is_multiple_of(4));
    let constants = vec![
        ("THREADS", THREADS),
        ("OPERANDS_F16", super::operands_f16(problem)),
        ("HALF", 0),
        ("LANES", lanes),
        ("GROUPS", THREADS / lanes),
        ("ALONG", u32::from(along)),
        ("A_VEC4", vec4(&[params.a_start, params.lda, params.a_outer, params.a_inner])),
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
    let grid = [product.workgroups(lanes, fours), 1];
    Some(Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulVector, variant, source: None, constants },
        params,
        operands: if swaps { [Binding { index: 0, ..b }, Binding { index: 1, ..a }] } else { [a, b] },
        grid,
        parts,
        k_step: 4 * lanes,
    })
}
