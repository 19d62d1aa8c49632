//! Products by matrix units, of f16 or of what f32 was split into: large tiles, of which each subgroup computes a part.
//! An operand of f16 whose rows start at no multiple of what is fetched at once is copied to where they do, if the product is worth it.

use super::Params;
use super::copy::{Copies, Reads};
use super::step::Step;
use super::tile::{KEPT_USES, has_room};
use crate::dtype::DType;
use crate::info::{Caps, Dialect, MatrixUnit};
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::Binding;

/// A shape of the kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tile {
    pub(super) m: u32,
    pub(super) n: u32,
    pub(super) k: u32,
    subgroups_m: u32,
    subgroups_n: u32,
    /// Terms of each operand.
    terms: u32,
    /// Multiplications a second of one workgroup, relative to the fastest tile: measured on an NVIDIA H200. Tiles of 128 × 256 and of
    /// 256 × 128, eight subgroups each, were at 0.7 to 0.9.
    speed: f64,
}

/// On Vulkan; the second is for devices of less workgroup memory.
#[cfg(not(target_arch = "wasm32"))]
const TILES: [Tile; 3] = [
    Tile { m: 128, n: 128, k: 64, subgroups_m: 2, subgroups_n: 2, terms: 1, speed: 1.0 },
    Tile { m: 128, n: 128, k: 32, subgroups_m: 2, subgroups_n: 2, terms: 1, speed: 0.86 },
    Tile { m: 64, n: 64, k: 64, subgroups_m: 2, subgroups_n: 2, terms: 1, speed: 0.69 },
];

/// In Chromium.
const SUBGROUP_TILES: [Tile; 2] = [
    Tile { m: 128, n: 128, k: 32, subgroups_m: 2, subgroups_n: 2, terms: 1, speed: 1.0 },
    Tile { m: 64, n: 64, k: 64, subgroups_m: 2, subgroups_n: 2, terms: 1, speed: 0.74 },
];

/// Those for operands of two terms.
pub(super) const SPLIT_TILES: [Tile; 2] = [
    Tile { m: 128, n: 128, k: 32, subgroups_m: 2, subgroups_n: 4, terms: 2, speed: 1.0 },
    Tile { m: 64, n: 64, k: 64, subgroups_m: 2, subgroups_n: 2, terms: 2, speed: 0.85 },
];

/// What the kernel is written for.
const SIDE: u32 = 16;

/// Elements that are fetched at once.
pub(super) const VECTOR: u32 = 8;

/// Workgroups assumed to run at once, as for the tiled kernel.
pub(super) const PARALLEL_WORKGROUPS: u64 = 128;

/// What adding up the parts of a split k costs, in multiplications of a workgroup of the first tile: another launch, and for each element
/// written or read.
const SUM_LAUNCH: f64 = 4e6;
const SUM_ELEMENT: f64 = 1.5;

/// The most parts of k.
const MOST_PARTS: u32 = 32;

/// What it costs to fetch an operand's elements one by one, in parts of the time that it takes otherwise: on that GPU 4097³ took nearly twice
/// as long as 4096³, where both operands were so. And what a copy costs, in the same measure as the adding up.
const SCATTERED: f64 = 0.4;
const COPY_LAUNCH: f64 = 4e6;
const COPY_ELEMENT: f64 = 0.75;

impl Tile {
    fn subgroups(&self) -> u32 {
        self.subgroups_m * self.subgroups_n
    }

    fn threads(&self, unit: &MatrixUnit) -> u32 {
        self.subgroups() * unit.subgroup_size
    }

    /// Both slices as they are stored, a subgroup's lines padded by a vector, and a matrix of sums of each subgroup.
    fn workgroup_bytes(&self, [a_turned, b_turned]: [bool; 2]) -> u32 {
        let slice = |side: u32, parts: u32, k_along: bool| {
            let padded = if k_along { side * (self.k + VECTOR) } else { self.k * (side + parts * VECTOR) };
            padded * self.terms * 2
        };
        slice(self.m, self.subgroups_m, !a_turned) + slice(self.n, self.subgroups_n, b_turned) + self.subgroups() * SIDE * SIDE * 4
    }

    pub(super) fn fits(&self, problem: &Problem, unit: &MatrixUnit, caps: &Caps) -> bool {
        let threads = self.threads(unit);
        threads <= caps.max_workgroup_invocations
            && (SIDE * SIDE / 4).is_multiple_of(unit.subgroup_size)
            && self.workgroup_bytes([problem.transpose_a, problem.transpose_b]) <= caps.max_workgroup_bytes
            && (self.m * self.k / VECTOR).is_multiple_of(threads)
            && (self.n * self.k / VECTOR).is_multiple_of(threads)
    }

    /// The time of a product in arbitrary units, as for the tiled kernel.
    pub(super) fn cost(&self, [m, k, n]: [u32; 3], items: u32, parts: u32) -> f64 {
        let workgroups = u64::from(m.div_ceil(self.m)) * u64::from(n.div_ceil(self.n)) * u64::from(items) * u64::from(parts);
        let rounds = workgroups.div_ceil(PARALLEL_WORKGROUPS);
        let work = rounds as f64 * f64::from(self.m * self.n) * f64::from(k.div_ceil(parts)) / self.speed;
        let moved = f64::from(2 * parts + 1) * f64::from(items) * f64::from(m) * f64::from(n);
        if parts > 1 { work + SUM_LAUNCH + SUM_ELEMENT * moved } else { work }
    }
}

/// The matrix units, if they are what the kernel is written for.
pub(super) fn unit(caps: &Caps) -> Option<MatrixUnit> {
    caps.matrix_unit.filter(|unit| (unit.m, unit.n, unit.k) == (SIDE, SIDE, SIDE) && (unit.operands, unit.sums) == (DType::F16, DType::F32))
}

/// Whether a grid of such tiles can be launched.
pub(super) fn has_grid(tile: &Tile, params: &Params, caps: &Caps) -> bool {
    params.m.div_ceil(tile.m).max(params.n.div_ceil(tile.n)) <= caps.max_workgroups_per_dimension
}

/// The launch for such a product, `whole` if no other one adds to its sums; None where no matrix unit takes it, or for nothing that one could
/// do.
pub(super) fn step(problem: &Problem, params: Params, operands: [Binding; 2], whole: bool, caps: &Caps) -> Option<Step> {
    let unit = unit(caps)?;
    if unit.operands != problem.dtype || params.k == 0 {
        return None;
    }
    let Params { m, k, n, .. } = params;
    let mut best: Option<(f64, Tile, u32)> = None;
    let tiles: &[Tile] = match unit.dialect {
        Dialect::Subgroup => &SUBGROUP_TILES,
        #[cfg(not(target_arch = "wasm32"))]
        _ => &TILES,
    };
    for &tile in tiles {
        if !tile.fits(problem, &unit, caps) || !has_grid(&tile, &params, caps) {
            continue;
        }
        let mut parts = 1;
        while parts == 1 || parts <= MOST_PARTS && k / parts >= 4 * tile.k && has_room([m, n], params.batch, parts, caps) {
            let cost = tile.cost([m, k, n], params.batch, parts);
            if best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, tile, parts));
            }
            parts *= 2;
        }
    }
    let (cost, tile, parts) = best?;
    let (mut params, mut operands, mut copies) = (params, operands, Copies::default());
    if whole {
        let in_order = |swap: bool, x: u32, y: u32| if swap { [y, x] } else { [x, y] };
        let [a, b] = &mut operands;
        let mut consider = |operand: &mut Binding, mut reads: Reads<'_>, size: [u32; 2]| {
            // Browsers allow no kernel to read one part of a buffer and write another. What is kept has a buffer of its own.
            let may_wait = parts == 1 || unit.dialect != Dialect::Subgroup;
            let uses = if caps.kept(operand.slot).is_some() { KEPT_USES } else { f64::from(u8::from(may_wait)) };
            if !reads.are_aligned(DType::F16)
                && cost * SCATTERED * uses > COPY_LAUNCH + COPY_ELEMENT * 2.0 * reads.elements(size, false, DType::F16) as f64
            {
                copies.add(operand, &mut reads, size, DType::F16, false, caps);
            }
        };
        consider(a, Reads::a(&mut params), in_order(problem.transpose_a, m, k));
        consider(b, Reads::b(&mut params), in_order(problem.transpose_b, k, n));
    }
    let before_bytes = copies.bytes.next_multiple_of(caps.binding_alignment_bytes);
    let launch = launch(problem, params, operands, &tile, &unit, parts, 1);
    Some(Step { before: copies.dispatches, before_bytes, ..launch })
}

/// The launch of the kernel in that shape, for so many parts of k; with two terms sums go on to f32 after so many steps.
pub(super) fn launch(
    problem: &Problem,
    params: Params,
    operands: [Binding; 2],
    tile: &Tile,
    unit: &MatrixUnit,
    parts: u32,
    flush: u32,
) -> Step {
    let threads = tile.threads(unit);
    let (own_m, own_n) = (tile.m / tile.subgroups_m, tile.n / tile.subgroups_n);
    // Lines of a slice and their length, as stored; and of what a subgroup reads.
    let lines = |turned: bool, side: u32| if turned { (tile.k, side) } else { (side, tile.k) };
    let ((_, a_line), (_, b_line)) = (lines(problem.transpose_a, tile.m), lines(!problem.transpose_b, tile.n));
    let ((a_own_lines, a_own_line), (b_own_lines, b_own_line)) = (lines(problem.transpose_a, own_m), lines(!problem.transpose_b, own_n));
    let vec8 = |numbers: [u32; 4]| u32::from(numbers.iter().all(|number| number.is_multiple_of(VECTOR)));
    let constants = vec![
        ("SUBGROUP", u32::from(unit.dialect == Dialect::Subgroup)),
        ("TERMS", tile.terms),
        ("SPLIT", u32::from(tile.terms > 1)),
        ("FLUSH", flush),
        ("TILE_M", tile.m),
        ("TILE_N", tile.n),
        ("TILE_K", tile.k),
        ("SUBGROUPS_M", tile.subgroups_m),
        ("SUBGROUPS_N", tile.subgroups_n),
        ("SUBGROUPS", tile.subgroups()),
        ("LANES_OF_SUBGROUP", unit.subgroup_size),
        ("PIECES", SIDE * SIDE / 4 / unit.subgroup_size),
        ("THREADS", threads),
        ("FRAGMENTS_M", own_m / SIDE),
        ("FRAGMENTS_N", own_n / SIDE),
        ("K_FRAGMENTS", tile.k / SIDE),
        ("A_LOADS", tile.m * tile.k / VECTOR / threads),
        ("B_LOADS", tile.n * tile.k / VECTOR / threads),
        ("A_LINE", a_line),
        ("B_LINE", b_line),
        ("A_OWN_LINES", a_own_lines),
        ("A_OWN_LINE", a_own_line),
        ("B_OWN_LINES", b_own_lines),
        ("B_OWN_LINE", b_own_line),
        ("A_TURNED", u32::from(problem.transpose_a)),
        ("B_TURNED", u32::from(problem.transpose_b)),
        ("A_VEC8", vec8([params.a_start, params.lda, params.a_outer, params.a_inner])),
        ("B_VEC8", vec8([params.b_start, params.ldb, params.b_outer, params.b_inner])),
    ];
    let variant = format!("{}{}x{}x{}", if tile.terms > 1 { "f16x3 " } else { "" }, tile.m, tile.n, tile.k);
    Step {
        before: Vec::new(),
        before_bytes: 0,
        kernel: Kernel { id: KernelId::MatmulCooperative, variant, source: None, constants },
        grid: [params.n.div_ceil(tile.n), params.m.div_ceil(tile.m)],
        params,
        operands,
        parts,
        k_step: tile.k,
    }
}
