//! Products of which one side is a few rows or columns, called vectors here. They read each element of the matrix once, so what counts is
//! how evenly the reading is spread over the device.

use super::step::Step;
use super::tile::MULTIPROCESSORS;
use super::{Params, vec4};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::Binding;

/// Invocations in a workgroup; and where lines lie across k and a device has room for so many, which read more of neighbouring lines then.
pub(super) const THREADS: u32 = 128;
pub(super) const THREADS_ACROSS: u32 = 256;

/// Workgroups of eight lines for each group of lanes that are enough.
const ENOUGH_BY_EIGHTS: u32 = 512;

/// The least of k of each lane; and where it is taken in parts, of each and of a part, for the launch that adds the parts up.
const LEAST_OF_A_LANE: u32 = 16;
const LEAST_OF_A_LANE_IN_PARTS: u32 = 32;
const LEAST_PART: u32 = 512;

/// The most parts of k.
const MOST_PARTS: u32 = 128;

/// How many groups of threads a quarter of the multiprocessors has where there are enough of them; and fewer than how many where parts of k pay:
/// at first, once that launch is there, and where it takes little of the time.
const ENOUGH: u32 = 6;
const FEW: u32 = 3;
const FEW_IN_PARTS: u32 = 8;
const FEW_OF_LARGE: u32 = 16;

/// Elements of a matrix from which on that launch takes little of the time, and the least of a part of such a one.
const LARGE: u64 = 1 << 25;
const LARGE_PART: u32 = 4096;

/// The most vectors for which the kernel is quicker than tiles, how many elements the matrix has then, how many where its lines lie across k and
/// there are more vectors than four, and how many of 8 bits; lines for each vector, and terms.
const MOST_VECTORS: u32 = 8;
const LEAST_MATRIX: u64 = 1 << 18;
const LEAST_MATRIX_ACROSS: u64 = 1 << 21;
const LEAST_MATRIX_OF_BYTES: u64 = 1 << 16;
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
    /// None for any other product, whatever its elements are.
    pub(super) fn of(problem: &Problem, params: Params, caps: &Caps) -> Option<Self> {
        // Steps of k are counted past its end.
        if params.k == 0 || params.k > u32::MAX / 2 || !problem.reads_operands() {
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
            let least = match problem.integers {
                Some(_) => LEAST_MATRIX_OF_BYTES,
                None if along || vectors <= 4 => LEAST_MATRIX,
                None => LEAST_MATRIX_ACROSS,
            };
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
    pub(super) fn matrix(&self) -> u64 {
        u64::from(self.elements) * u64::from(self.params.k)
    }

    /// The same of all items of a batch.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn matrices(&self) -> u64 {
        self.matrix().saturating_mul(self.params.batch.into())
    }

    /// By how many vectors sums are added up at a time, and how often: some of the last are perhaps nobody's.
    pub(super) fn turns(&self) -> [u32; 2] {
        let turn = self.vectors.next_power_of_two().min(4);
        [turn, self.vectors.div_ceil(turn)]
    }

    /// Whether lines of the matrix start at multiples of four elements, and whether vectors do, or what is multiplied by one step of k.
    pub(super) fn vec4s(&self) -> [u32; 2] {
        let Params { lda, ldb, a_start, a_outer, a_inner, b_start, b_outer, b_inner, .. } = self.params;
        let has_one = self.vectors == 1 && self.x_along;
        [vec4(&[a_start, lda, a_outer, a_inner]), vec4(&[b_start, b_outer, b_inner]) & u32::from(has_one || ldb.is_multiple_of(4))]
    }

    /// Threads of a group.
    pub(super) fn threads(&self, caps: &Caps) -> u32 {
        let has_room = caps.max_workgroup_invocations >= THREADS_ACROSS;
        // Lanes for fewer steps would leave a large group too many lines.
        if !self.along && has_room && self.params.k > LEAST_OF_A_LANE * THREADS_ACROSS / 8 { THREADS_ACROSS } else { THREADS }
    }

    /// What reports call a kernel for it.
    pub(super) fn variant(&self, lanes: u32) -> String {
        let [turn, turns] = self.turns();
        let several = if self.vectors > 1 { format!("{} vectors ", turn * turns) } else { String::new() };
        format!("{several}{lanes} lanes {}", if self.along { "along" } else { "across" })
    }

    /// The matrix before the vectors.
    pub(super) fn ordered(&self, [a, b]: [Binding; 2]) -> [Binding; 2] {
        if self.swaps { [Binding { index: 0, ..b }, Binding { index: 1, ..a }] } else { [a, b] }
    }

    /// The same of all that is bound.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn all_ordered(&self, mut bindings: Vec<Binding>) -> Vec<Binding> {
        for binding in bindings.iter_mut().filter(|binding| self.swaps && binding.index < 2) {
            binding.index = 1 - binding.index;
        }
        bindings
    }

    /// The fewest and the most lanes that share a line, in groups of so many threads, of which no less of k than pays is left to each: along it those
    /// read neighbours, so a long line is worth many.
    pub(super) fn lanes(&self, threads: u32) -> [u32; 2] {
        let room = if self.along { threads } else { threads / 4 };
        let most = (self.params.k / LEAST_OF_A_LANE).next_power_of_two().max(4).min(room);
        [if self.along { most } else { most.min(8) }, most]
    }

    /// How the matrix is read in groups of so many threads, with so many fours of lines for as many lanes as share them, between these two, in grids
    /// of at most so many groups and layers.
    pub(super) fn spread(&self, threads: u32, fours: u32, [least, most]: [u32; 2], grid: [u32; 2], multiprocessors: u32) -> Spread {
        let Params { k, batch, .. } = self.params;
        let groups = |lanes: u32| self.elements.div_ceil(4 * fours * (threads / lanes));
        let busy = |groups: u32| batch.saturating_mul(groups) / (multiprocessors / 4).max(1);
        // With few lanes a group has many lines that share what they are multiplied by, and across k it reads many side by side; but there are to be
        // groups enough.
        let mut lanes = least;
        while lanes < most && busy(groups(lanes)) < ENOUGH {
            lanes *= 2;
        }
        while groups(lanes) > grid[0] && lanes > 1 {
            lanes /= 2;
        }
        // With few vectors the threads of a group are few for how much each waits for memory.
        let is_long = !self.along && self.vectors <= 2 && self.matrix() >= LARGE;
        let mut parts = 1;
        while 2 * parts <= MOST_PARTS && batch.saturating_mul(2 * parts) <= grid[1] {
            let (now, part) = (busy(groups(lanes) * parts), k / (2 * parts));
            let pays = now < if parts > 1 { FEW_IN_PARTS } else { FEW } || is_long && part >= LARGE_PART && now < FEW_OF_LARGE;
            if !pays || part < LEAST_PART.max(LEAST_OF_A_LANE_IN_PARTS * lanes) {
                break;
            }
            parts *= 2;
        }
        Spread { groups: groups(lanes), lanes, parts }
    }
}

/// How a product's matrix is read.
pub(super) struct Spread {
    /// Groups of threads, for each item of a batch and each part of k.
    pub(super) groups: u32,
    /// Lanes that share a line.
    pub(super) lanes: u32,
    /// Parts of k.
    pub(super) parts: u32,
}

/// The launch for such a product of floating-point numbers; None for any other.
pub(super) fn step(problem: &Problem, params: Params, operands: [Binding; 2], caps: &Caps) -> Option<Step> {
    if problem.integers.is_some() || caps.max_workgroup_invocations < THREADS {
        return None;
    }
    let product = Vectors::of(problem, params, caps)?;
    let [turn, turns] = product.turns();
    let Vectors { params, tall, along, x_along, vectors, elements, .. } = product;
    let threads = product.threads(caps);
    let [least, most] = product.lanes(threads);
    // Where a lane takes steps enough two fours of lines halve how often the vectors are read, which counts where there are many.
    let by_eights = params.batch.saturating_mul(elements.div_ceil(8 * (threads / most)));
    let reads_less = along && vectors > 4 && params.k >= LEAST_OF_A_LANE_IN_PARTS * most && by_eights >= ENOUGH_BY_EIGHTS;
    let fours = if reads_less { 2 } else { 1 };
    // Half as many threads keep half as much busy.
    let halves = if !along && threads == THREADS { 2 } else { 1 };
    let Spread { groups, lanes, parts } =
        product.spread(threads, fours, [least, most], [caps.max_workgroups_per_dimension; 2], halves * MULTIPROCESSORS as u32);
    let [a_vec4, b_vec4] = product.vec4s();
    let constants = vec![
        ("THREADS", threads),
        ("OPERANDS_F16", super::operands_f16(problem)),
        ("HALF", 0),
        ("LANES", lanes),
        ("GROUPS", threads / lanes),
        ("ALONG", u32::from(along)),
        ("A_VEC4", a_vec4),
        ("B_VEC4", b_vec4 & u32::from(x_along || turn == 4)),
        ("X_ALONG", u32::from(x_along)),
        ("X_FOURS", b_vec4 & u32::from(!x_along && turn == 4)),
        ("TURN", turn),
        ("TURNS", turns),
        ("TALL", u32::from(tall)),
        ("FOURS", fours),
    ];
    let variant = product.variant(lanes);
    Some(Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulVector, variant, source: None, constants },
        params,
        operands: product.ordered(operands),
        grid: [groups, 1],
        parts,
        k_step: 4 * lanes,
    })
}
