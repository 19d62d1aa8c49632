//! The shapes of the register-tiled kernel, what each costs, and the launch of the cheapest.

use super::copy::{Copies, Reads};
use super::edges::{self, Cover};
use super::step::{SUM_THREADS, Step};
use super::{Params, operands_f16, vec4};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{F16_TERMS, Precision, Problem};
use crate::plan::tuned::Tuned;
use crate::plan::{Binding, Slot};

/// A shape of the register-tiled kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tile {
    pub(super) m: u32,
    pub(super) n: u32,
    k: u32,
    threads_m: u32,
    threads_n: u32,
    /// Invocations that own the same elements, each of which takes one of so many terms.
    slices: u32,
    /// Steps of k in workgroup memory.
    stages: u32,
    /// Steps of k in the body of the innermost loop.
    unroll: u32,
    /// Multiplications a second of a GPU full of workgroups, relative to the first tile; and in f16, where 0 leaves it out: it was slower there.
    speed: f32,
    speed_f16: f32,
    /// Whether it is quicker where A is stored with k down its columns, to which a copy may turn it; and in f16.
    turns: bool,
    turns_f16: bool,
    /// Whether two workgroups at once are what a multiprocessor has memory for, of which one by itself does not keep it busy: a third waits for both. A
    /// test reckons it; here it would be downloaded with every page.
    is_in_pairs: bool,
    /// What it costs to fetch an operand's elements one by one beside what it costs other tiles, in parts of the time that a product takes.
    scattered: f32,
    /// Workgroups at once that it takes to keep one multiprocessor busy: with fewer the time is the same; and in f16.
    fill: f32,
    fill_f16: f32,
}

/// Speeds and fills are measured on an NVIDIA H200, as the rest is that is reckoned here, but for the speed of 64x128x8 and the pairs: on an H100.
#[rustfmt::skip]
pub(super) const TILES: [Tile; 11] = [
    Tile { m: 128, n: 128, k: 8, threads_m: 16, threads_n: 16, slices: 1, stages: 2, unroll: 8, speed: 1.0, speed_f16: 1.19, turns: true, turns_f16: true, is_in_pairs: false, scattered: 0.0, fill: 1.1, fill_f16: 1.0 },
    Tile { m: 64, n: 128, k: 8, threads_m: 8, threads_n: 16, slices: 1, stages: 2, unroll: 8, speed: 0.9, speed_f16: 1.32, turns: true, turns_f16: true, is_in_pairs: false, scattered: 0.0, fill: 1.15, fill_f16: 1.4 },
    Tile { m: 96, n: 96, k: 8, threads_m: 8, threads_n: 24, slices: 1, stages: 2, unroll: 8, speed: 0.83, speed_f16: 1.17, turns: true, turns_f16: true, is_in_pairs: true, scattered: 0.0, fill: 1.3, fill_f16: 1.37 },
    Tile { m: 64, n: 64, k: 16, threads_m: 8, threads_n: 16, slices: 1, stages: 2, unroll: 16, speed: 0.76, speed_f16: 1.17, turns: true, turns_f16: false, is_in_pairs: true, scattered: 0.0, fill: 1.07, fill_f16: 1.55 },
    Tile { m: 32, n: 64, k: 16, threads_m: 8, threads_n: 16, slices: 1, stages: 2, unroll: 16, speed: 0.61, speed_f16: 0.97, turns: true, turns_f16: false, is_in_pairs: false, scattered: 0.0, fill: 1.15, fill_f16: 2.0 },
    Tile { m: 64, n: 128, k: 16, threads_m: 8, threads_n: 16, slices: 2, stages: 2, unroll: 8, speed: 0.87, speed_f16: 0.0, turns: true, turns_f16: false, is_in_pairs: false, scattered: 0.05, fill: 1.0, fill_f16: 0.0 },
    Tile { m: 64, n: 64, k: 16, threads_m: 8, threads_n: 8, slices: 2, stages: 2, unroll: 8, speed: 0.82, speed_f16: 1.25, turns: true, turns_f16: true, is_in_pairs: true, scattered: -0.02, fill: 1.15, fill_f16: 1.15 },
    Tile { m: 32, n: 64, k: 32, threads_m: 4, threads_n: 8, slices: 4, stages: 2, unroll: 8, speed: 0.72, speed_f16: 0.0, turns: true, turns_f16: false, is_in_pairs: false, scattered: 0.0, fill: 1.06, fill_f16: 0.0 },
    Tile { m: 32, n: 32, k: 32, threads_m: 4, threads_n: 8, slices: 4, stages: 2, unroll: 8, speed: 0.61, speed_f16: 0.78, turns: false, turns_f16: true, is_in_pairs: true, scattered: -0.04, fill: 1.0, fill_f16: 1.2 },
    Tile { m: 32, n: 64, k: 16, threads_m: 4, threads_n: 8, slices: 4, stages: 2, unroll: 4, speed: 0.79, speed_f16: 0.0, turns: true, turns_f16: false, is_in_pairs: false, scattered: 0.0, fill: 1.28, fill_f16: 0.0 },
    // For what fits a few workgroups: little slower there, and sooner compiled, which counts where a CPU emulates the GPU.
    Tile { m: 32, n: 32, k: 16, threads_m: 8, threads_n: 8, slices: 1, stages: 1, unroll: 1, speed: 0.53, speed_f16: 0.69, turns: false, turns_f16: false, is_in_pairs: false, scattered: 0.0, fill: 1.5, fill_f16: 3.3 },
];

/// Invocations of the smallest kernel's workgroup.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) const SMALLEST_WORKGROUP: u32 = 64;

/// Fours of k that neighbours fetch from one row of an operand that is stored with k along its rows: 16 and 8 of them from one row, as steps in f16
/// have, kept each other waiting for banks of workgroup memory.
const ROW_FOURS: u32 = 4;

/// Multiprocessors assumed. No browser tells; large GPUs have 100 to 200, and smaller ones lose little by tiles smaller than they could take.
pub(super) const MULTIPROCESSORS: u64 = 128;

/// The tiles that there are to choose from, by their names.
#[cfg(any(feature = "webgpu", all(feature = "vulkan", not(target_arch = "wasm32"))))]
pub(crate) fn tiles() -> Vec<String> {
    TILES.iter().map(Tile::name).collect()
}

/// The most parts of k.
const MOST_PARTS: u32 = 1024;

/// What adding up the parts of a split k costs, in multiplications of a multiprocessor with the first tile: another launch, and for each element
/// written or read. Measured as the speeds above. In f16 the parts' beginnings and ends count, too.
const SUM_LAUNCH: f64 = 5e5;
const SUM_LAUNCH_F16: f64 = 1e6;
const SUM_ELEMENT: f64 = 0.15;

/// What the exchange between slices costs, in the same measure: of a few workgroups, and of each of many on a multiprocessor.
const EXCHANGE: f64 = 1.7e5;
const EXCHANGE_OF_MANY: f64 = 4e4;

/// And the beginning and the end of each workgroup.
const START: f64 = 6e3;

/// What it costs to fetch an operand's elements one by one, or to turn what is stored with k along its rows, in f32 or in f16, in parts of the
/// time that a product takes otherwise; and what a copy costs, in the measure of the adding up. Measured as the speeds above, but that a copy's
/// launch counts for more than it takes: near where both are as quick, products without a copy were quicker.
const SCATTERED: f64 = 0.08;
const TURNED: f64 = 0.035;
const TURNED_F16: f64 = 0.08;
const COPY_LAUNCH: f64 = 1.7e6;
const COPY_ELEMENT: f64 = 0.45;

/// The most workgroup memory of a sliced tile that others find room beside, as Chromium's share of it on an NVIDIA H200 allows.
const ROOM_BYTES: u32 = 16 << 10;

/// What a step of k waits for an operand that comes from memory, in the measure of the adding up, where each slice takes eight terms of it or more;
/// and from how many elements on an operand comes from there. Measured on an NVIDIA H100, of products of 9 to 64 rows or columns.
const MEMORY_WAIT: f64 = 1.2e5;
const SLICE_TERMS: f64 = 8.0;
pub(super) const FROM_MEMORY: u64 = 1 << 23;

/// For how many products a copy that is kept is made.
pub(super) const KEPT_USES: f64 = 64.0;

impl Tile {
    pub(super) fn threads(&self) -> u32 {
        self.threads_m * self.threads_n * self.slices
    }

    /// Its size, and how many slices if there are some: `64x64x16/2`.
    fn name(&self) -> String {
        let Self { m, n, k, slices, .. } = *self;
        let slices = if slices > 1 { format!("/{slices}") } else { String::new() };
        format!("{m}x{n}x{k}{slices}")
    }

    /// The same for sums in f16, each of one step, whose single stage takes about the memory of two in f32. Four slices sum up half as many terms
    /// each: with fewer, adding the sums up counted for more than the sums.
    fn in_f16(self) -> Self {
        let k = F16_TERMS.max(F16_TERMS / 2 * self.slices);
        let unroll = if self.unroll * self.slices == self.k { k / self.slices } else { self.unroll };
        Self { k, stages: 1, unroll, speed: self.speed_f16, turns: self.turns_f16, fill: self.fill_f16, ..self }
    }

    /// Both operands' steps of every stage, each row padded by a vec4 at most; and sums of blocks at the edges. In f16 A's elements are there
    /// twice, B's are half as large, and slices exchange their sums elsewhere.
    fn workgroup_bytes(&self, half: bool) -> u32 {
        let b_bytes = if half { 8 } else { 16 };
        let sums = if half && self.slices > 1 { 4 * self.threads() * 16 } else { 0 };
        self.stages * self.k * ((self.m / 4 + 1) * 16 + (self.n / 4 + 1) * b_bytes) + self.threads() * 16 + sums
    }

    /// Whether blocks at the edges find room beside it on a multiprocessor, while those are computed: those of a tile that has most of its memory
    /// wait until the tiles are done.
    fn leaves_room(&self) -> bool {
        self.slices == 1 || self.workgroup_bytes(false) <= ROOM_BYTES
    }

    /// This tile where the larger operand has so many elements: if they come from memory, it takes as many workgroups at once as have something to do
    /// while one waits.
    fn reading(self, elements: u64) -> Self {
        if elements < FROM_MEMORY {
            return self;
        }
        let step = f64::from(self.m * self.n * self.k) / f64::from(self.speed);
        let wait = MEMORY_WAIT * (SLICE_TERMS * f64::from(self.slices) / f64::from(self.k)).max(1.0);
        Self { fill: self.fill.max((wait / step) as f32), ..self }
    }

    fn fits(&self, half: bool, caps: &Caps) -> bool {
        self.threads() <= caps.max_workgroup_invocations && self.workgroup_bytes(half) <= caps.max_workgroup_bytes
    }

    /// The tiles to be looked at: the one that was tuned for such a result, if there is one that is of use, else all that fit.
    fn candidates([m, n]: [u32; 2], half: bool, slices: bool, caps: &Caps) -> impl Iterator<Item = Self> {
        let tiles = TILES.map(|tile| {
            let is_known = (tile.slices == 1 || slices) && (!half || tile.speed_f16 > 0.0);
            Some(if half { tile.in_f16() } else { tile }).filter(|tile| is_known && tile.fits(half, caps))
        });
        let is_of_use = |tile: Self| !Tuned::is_idle([tile.m, tile.n], [m, n]);
        let tuned = caps.tuned.tile(m, n).filter(|&at| tiles.get(at).copied().flatten().is_some_and(is_of_use));
        tiles.into_iter().enumerate().filter(move |&(at, _)| tuned.is_none_or(|tuned| at == tuned)).filter_map(|(_, tile)| tile)
    }

    /// The time of so many products in arbitrary units, their k in so many parts: the workgroups of the busiest multiprocessor, times a tile's
    /// work, over its speed; what is left of whole tiles; and the adding up. A term takes so much more effort than one of a product.
    fn cost(&self, [m, k, n]: [u32; 3], items: u32, parts: u32, effort: f64, half: bool, cover: &Cover) -> f64 {
        let [tiles_m, tiles_n] = cover.tiles.map(u64::from);
        let workgroups = tiles_m * tiles_n * u64::from(items) * u64::from(parts);
        let work = f64::from(self.m * self.n) * f64::from(k.div_ceil(parts).max(self.k)) / f64::from(self.speed) * effort + START;
        // What is past whole tiles is done beside them where they leave something of a multiprocessor.
        let past = cover.cost(k, parts) * f64::from(items) / MULTIPROCESSORS as f64;
        // In f16 it is the sliced tiles of which a third workgroup waits for two.
        let is_in_pairs = if half { self.slices > 1 } else { self.is_in_pairs };
        let at_once = if is_in_pairs && workgroups > MULTIPROCESSORS { 2 } else { 1 };
        let rounds = workgroups.div_ceil(MULTIPROCESSORS * at_once) * at_once;
        let work = (rounds as f64 * work + past).max(f64::from(self.fill) * work);
        let work = if self.slices > 1 { work + EXCHANGE.max(EXCHANGE_OF_MANY * rounds as f64) } else { work };
        let moved = f64::from(2 * parts + 1) * f64::from(m) * f64::from(n) * f64::from(items);
        let launch = if half { SUM_LAUNCH_F16 } else { SUM_LAUNCH };
        if parts > 1 { work + launch + SUM_ELEMENT * moved } else { work }
    }

    /// The cheapest way to a product, a term of which takes so much effort; where the kernel `cuts`, whole tiles may leave the rest, but for sliced
    /// ones, which blocks beside them slow down. Others know no slices, or were measured without them.
    pub(super) fn choose(problem: &Problem, params: &Params, effort: f64, cuts: bool, caps: &Caps) -> Result<Choice> {
        let Params { m, k, n, batch, .. } = *params;
        let half = caps.f16 && problem.precision == Precision::F16;
        let scattered = if cuts { vec4s(params).map(|is_vec4| f64::from(1 - is_vec4)).iter().sum() } else { 0.0 };
        // What a part does should be worth its end.
        let splits = |tile: &Self, parts: u32| k / parts >= 2 * tile.k && has_room([m, n], batch, parts, caps);
        let mut best: Option<Choice> = None;
        for tile in Self::candidates([m, n], half, cuts, caps) {
            let effort = effort * (1.0 + f64::from(tile.scattered) * scattered);
            let reading = if cuts && !half { tile.reading(u64::from(m.max(n)) * u64::from(k)) } else { tile };
            let cut = Some(Cover::of([m, n], &tile, cuts && tile.leaves_room())).filter(|cover| cover.blocks > 0 && cover.fits(caps));
            for cover in [Some(Cover::of([m, n], &tile, false)), cut].into_iter().flatten() {
                let mut parts = 1;
                while parts == 1 || parts <= MOST_PARTS && splits(&tile, parts) {
                    let cost = reading.cost([m, k, n], batch, parts, effort, half, &cover);
                    if best.is_none_or(|best| cost < best.cost) {
                        best = Some(Choice { cost, tile, parts, cover, half });
                    }
                    // Of many a few more or less are no matter.
                    parts += (parts / 32).max(1);
                }
            }
        }
        best.ok_or(Box::new(Error::LimitExceeded {
            what: "the workgroup memory in bytes that the smallest kernel needs",
            requested: u64::from(TILES[TILES.len() - 1].workgroup_bytes(false)),
            max: u64::from(caps.max_workgroup_bytes),
        }))
    }
}

/// The cheapest way that has no copies; None if there is none. Compiled once, for all parts of the package.
#[inline(never)]
pub(super) fn cheapest(problem: &Problem, params: &Params, caps: &Caps) -> Option<Choice> {
    Tile::choose(problem, params, 1.0, true, caps).ok()
}

/// How the tiled kernel computes a product.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    pub(super) cost: f64,
    tile: Tile,
    /// Parts that k is taken in.
    parts: u32,
    cover: Cover,
    /// With sums in f16.
    half: bool,
}

impl Choice {
    /// Sums that an element of the result is added up of, each of them in a row.
    pub(super) fn sums(&self) -> u32 {
        self.tile.slices * self.parts
    }
}

/// The most room for parts of results, or for a copy of an operand.
const MOST_SCRATCH_BYTES: u64 = 1 << 28;

/// Whether so many parts of results can be found room for, and be added up in one launch.
pub(super) fn has_room(sides: [u32; 2], items: u32, parts: u32, caps: &Caps) -> bool {
    let most = u64::from(caps.max_workgroups_per_dimension);
    u64::from(parts) * u64::from(items) <= most
        && scratch_bytes(sides, items, parts) <= caps.max_binding_bytes.min(MOST_SCRATCH_BYTES)
        && (scratch_bytes(sides, items, 1) / 16).div_ceil(SUM_THREADS.into()) <= most
}

/// Room for the parts of split products: for each part all items, their rows starting at vec4s.
pub(super) fn scratch_bytes([m, n]: [u32; 2], items: u32, parts: u32) -> u64 {
    u64::from(parts).saturating_mul(u64::from(items) * u64::from(m)).saturating_mul(u64::from(n).next_multiple_of(4) * 4)
}

/// The launch of the register-tiled kernel for a product that no other one adds to, and before it copies of its operands, if it is worth them: of
/// one whose rows start anywhere, or that is stored with k along its rows, which a copy turns. With what is kept of operands the kernel is chosen
/// as without it, so that the sums are the same to the last bit.
pub(super) fn aligned(problem: &Problem, mut params: Params, mut operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    let Params { m, k, n, .. } = params;
    let choice = Tile::choose(problem, &params, 1.0, true, caps)?;
    let (mut copies, mut problem) = (Copies::default(), *problem);
    let dtype = if choice.half { DType::F16 } else { DType::F32 };
    let waits = waits(&problem, &params, choice.parts);
    if problem.dtype == dtype {
        let vec4s = vec4s(&params);
        let mut consider = |operand: &mut Binding, is_vec4: u32, turned: bool, mut reads: Reads<'_>, size: [u32; 2]| {
            let scattered = if is_vec4 == 0 { SCATTERED } else { 0.0 };
            let turning = if choice.half { TURNED_F16 } else { TURNED };
            let gain = choice.cost * if turned { scattered + turning } else { scattered };
            let elements = reads.elements(size, turned, dtype);
            // WebGPU allows no kernel to read one part of a buffer, the copies, and write another, sums that wait for others or for being
            // rounded. What is kept has a buffer of its own.
            let uses = if caps.kept(operand.slot).is_some() { KEPT_USES } else { f64::from(u8::from(!waits)) };
            gain * uses > COPY_LAUNCH + COPY_ELEMENT * elements as f64
                && elements * dtype.bytes() <= MOST_SCRATCH_BYTES
                && copies.add(operand, &mut reads, size, dtype, turned, caps)
        };
        let [a, b] = &mut operands;
        let (turns_a, turns_b) = (!problem.transpose_a, problem.transpose_b);
        // For a tile that is none the quicker for it what is kept stays as it stands, and nothing else is copied.
        let [turned_a, turned_b] = [turns_a, turns_b].map(|turns| turns && choice.tile.turns);
        let [may_a, may_b] =
            [(Slot::A, turns_a), (Slot::B, turns_b)].map(|(slot, turns)| !turns || choice.tile.turns || caps.kept(slot).is_some());
        let a_size = if turns_a { [m, k] } else { [k, m] };
        let b_size = if turns_b { [n, k] } else { [k, n] };
        problem.transpose_a |= may_a && consider(a, vec4s[0], turned_a, Reads::a(&mut params), a_size) && turned_a;
        problem.transpose_b &= !(may_b && consider(b, vec4s[1], turned_b, Reads::b(&mut params), b_size) && turned_b);
    }
    let step = chosen(&problem, params, operands, choice, true);
    Ok(Step { before: copies.dispatches, before_bytes: copies.bytes.next_multiple_of(caps.binding_alignment_bytes), ..step })
}

/// Whether sums stand in scratch first, by fours: where they wait for others, or for being rounded to rows that start anywhere.
fn waits(problem: &Problem, params: &Params, parts: u32) -> bool {
    parts > 1 || problem.result == DType::F16 && vec4(&[params.out_start, params.ldo, params.n]) == 0
}

/// Whether four elements of A and of B can be fetched at once.
fn vec4s(params: &Params) -> [u32; 2] {
    let Params { a_start, lda, a_outer, a_inner, b_start, ldb, b_outer, b_inner, .. } = *params;
    [vec4(&[a_start, lda, a_outer, a_inner]), vec4(&[b_start, ldb, b_outer, b_inner])]
}

/// The launch of the register-tiled kernel.
pub(super) fn tiled(problem: &Problem, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    tiled_with(problem, params, operands, 1.0, true, caps)
}

/// The same where a term takes more effort than one of a product of matrices, which is worth more parts of k, or where the kernel `cuts` nothing
/// off that is past whole tiles.
pub(super) fn tiled_with(problem: &Problem, params: Params, operands: [Binding; 2], effort: f64, cuts: bool, caps: &Caps) -> Result<Step> {
    Ok(chosen(problem, params, operands, Tile::choose(problem, &params, effort, cuts, caps)?, false))
}

/// The launch of what was chosen, of a product that is `whole` or is added to what others left.
fn chosen(problem: &Problem, params: Params, operands: [Binding; 2], Choice { tile, parts, cover, half, .. }: Choice, whole: bool) -> Step {
    let (k, items) = (tile.k, u64::from(params.batch) * u64::from(parts));
    let [a_vec4, b_vec4] = vec4s(&params);
    // Where two tiles share rows or columns, each of them writes what it has computed of them: so there may be nothing to add. What stands in
    // scratch is stored by fours.
    let fours = [a_vec4, b_vec4 | u32::from(waits(problem, &params, parts))];
    let may_overlap = whole && problem.c.is_none() && cover.may_overlap(&tile, &params, fours);
    let is_inside = may_overlap && (half || cover.blocks > 0);
    let mut constants = vec![
        ("TILE_M", tile.m),
        ("TILE_N", tile.n),
        ("TILE_K", k),
        ("THREADS_M", tile.threads_m),
        ("THREADS_N", tile.threads_n),
        ("THREADS", tile.threads()),
        ("SLICED", u32::from(tile.slices > 1)),
        ("SLICE_ROWS", 4 / tile.slices),
        ("STAGES", tile.stages),
        ("SINGLE", u32::from(tile.stages == 1)),
        ("LOOPS", u32::from(tile.unroll * tile.slices < k)),
        ("UNROLL", tile.unroll),
        ("A_GROUPS", tile.m / 4 / tile.threads_m),
        ("B_GROUPS", tile.n / 4 / tile.threads_n),
        ("A_LOADS", tile.m * k / 4 / tile.threads()),
        ("B_LOADS", tile.n * k / 4 / tile.threads()),
        ("ROW_FOURS", (k / 4).min(ROW_FOURS)),
        ("A_VEC4", a_vec4),
        ("SLICES", tile.slices),
        ("B_VEC4", b_vec4),
        ("B_FOURS", b_vec4),
        ("A_LINES", a_vec4 & u32::from(problem.transpose_a)),
        ("B_LINES", b_vec4 & u32::from(!problem.transpose_b)),
        ("A_SCATTER", u32::from(!problem.transpose_a)),
        ("B_SCATTER", u32::from(problem.transpose_b)),
        ("OPERANDS_F16", operands_f16(problem)),
        ("HALF", u32::from(half)),
        ("WINDOW", 0),
        ("EDGES", u32::from(cover.blocks > 0)),
        ("BLOCK_TERMS", if cover.blocks > 0 { edges::TERMS } else { 1 }),
        ("INSIDE", u32::from(is_inside)),
    ];
    if cover.blocks > 0 {
        let [rows, columns] = cover.past.map(|past| u32::from(past > 0));
        constants.extend([("EDGE_M", rows), ("EDGE_N", columns), ("EDGE_BLOCKS", cover.in_workgroup)]);
    }
    let kernel = Kernel {
        id: KernelId::MatmulTiled,
        variant: format!("{}{}", if half { "f16 " } else { "" }, tile.name()),
        source: None,
        constants,
    };
    Step { before: Vec::new(), before_bytes: 0, kernel, params, operands, grid: cover.grid(items), parts, k_step: k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept of tuning names tiles.
    #[test]
    fn each_tile_has_a_name_of_its_own() {
        let names = TILES.map(|tile| tile.name());
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
    }

    /// A multiprocessor gives 48 KiB to workgroups, each of which has 1 KiB beside what it asks for, and 256 invocations keep it busy.
    #[test]
    fn in_pairs_is_what_two_have_room_for() {
        for tile in TILES {
            let at_once = (48 << 10) / (tile.workgroup_bytes(false) + (1 << 10));
            assert_eq!(tile.is_in_pairs, at_once == 2 && tile.threads() < 256, "{}", tile.name());
        }
    }

    /// Slices exchange their sums where B was.
    #[test]
    fn what_slices_exchange_has_room() {
        for tile in TILES.iter().filter(|tile| tile.slices > 1) {
            assert!(tile.stages * tile.k * tile.n / 4 >= 4 * tile.threads(), "{}", tile.name());
        }
    }
}
