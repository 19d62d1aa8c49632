//! Plans for CUDA: NVIDIA's library for what it takes, else the kernel for matrix units of `shaders/matmul/cooperative.cu` for f16, that of
//! `split_units.cu` for f32 in two terms of f16, those of `int8.cu` and `int8_units.cu` for 8-bit integers, else the register-tiled one of
//! `tiled.cu`, to which f16 is copied as f32. What would leave tiles idle is for others: for `vector.cu` where one side is a few rows or columns, and
//! for `rows.cu` and `direct.cu`. None is split for the sake of limits: addresses are of 64 bits, and one row of blocks may be longer than any result. The kernel's
//! k is, where few blocks would be at work.

mod int8;
mod rows;
mod split;
mod vector;

use super::batch::Launch;
use super::copy::{self, Copy, Reads, VECTOR};
use super::tile::{FROM_MEMORY, scratch_bytes};
use super::{Params, batch, constants_of_layout, operands_f16, small, whole, within_buffers};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Batch, Problem};
use crate::plan::tuned::Tuned;
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// A shape of the kernel, compiled by `scripts/ptx`. Its times are of an NVIDIA H200, from products of 256³ to 4096³ whose operands lay on
/// it; other GPUs differ in the scale rather than in what is fastest.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tile {
    m: u32,
    n: u32,
    k: u32,
    threads: u32,
    /// What one of k takes a block that has a multiprocessor to itself, and waits for memory most of the time.
    alone_ns: f64,
    /// What it takes of a multiprocessor with many blocks, of which some always compute.
    shared_ns: f64,
    /// How many blocks a multiprocessor has room for: registers are what runs out first.
    resident: u64,
}

const TILES: [Tile; 4] = [
    Tile { m: 128, n: 128, k: 16, threads: 128, alone_ns: 165.0, shared_ns: 93.0, resident: 2 },
    Tile { m: 64, n: 64, k: 16, threads: 128, alone_ns: 36.8, shared_ns: 25.8, resident: 5 },
    Tile { m: 32, n: 64, k: 32, threads: 128, alone_ns: 23.2, shared_ns: 15.3, resident: 6 },
    // For narrow results, of which the others would leave more out.
    Tile { m: 32, n: 32, k: 16, threads: 64, alone_ns: 26.0, shared_ns: 8.2, resident: 14 },
];

/// The most layers of a grid: items of a batch and parts of k.
const MOST_LAYERS: u32 = 65_535;

/// The tiles that there are to choose from, by their sizes.
#[cfg(feature = "cuda")]
#[cfg(any(target_os = "linux", target_os = "windows"))]
pub(crate) fn tiles() -> Vec<String> {
    TILES.iter().map(|tile| format!("{}x{}x{}", tile.m, tile.n, tile.k)).collect()
}

/// Of `cooperative.cu`: what is shared of the first as measured at 8192³, of the second from 1024³, the rest estimated from these.
const COOPERATIVE_TILES: [Tile; 2] = [
    Tile { m: 128, n: 128, k: 32, threads: 128, alone_ns: 16.0, shared_ns: 12.0, resident: 2 },
    Tile { m: 64, n: 64, k: 32, threads: 128, alone_ns: 9.0, shared_ns: 5.5, resident: 5 },
];

/// The most parts of k.
const MOST_PARTS: u32 = 256;

/// How many times as long a block waits that reads for a few rows or columns what lies in memory, and how many those are, as measured on an
/// NVIDIA H100.
const READING: f64 = 1.8;
const FEW: u32 = 64;

/// What adding up the parts of a split k takes on that GPU, as measured there through WebGPU: another launch, and for each element that is
/// written or read.
const SUM_LAUNCH_NS: f64 = 4000.0;
const SUM_ELEMENT_NS: f64 = 0.001_35;
/// And for each part, of which 16 are read at a time: an estimate, of half a microsecond for a read.
const SUM_PART_NS: f64 = 30.0;

/// Threads of a block of `shaders/matmul/sum.cu`.
const SUM_THREADS: u32 = 64;

/// What the library may assume that matrices start at multiples of.
const LIBRARY_ALIGNMENT_BYTES: u64 = 256;

/// What of the time of this crate's kernels the library saves on that GPU, of f32 and of f16, at least where products are large.
const LIBRARY_SAVES: f64 = 0.15;
const LIBRARY_SAVES_F16: f64 = 0.45;

/// What a launch takes that copies an operand there.
const COPY_LAUNCH_NS: f64 = 4000.0;

/// The most blocks that copy an operand.
const MOST_COPY_BLOCKS: u32 = 1 << 16;

/// The largest scratch: a split makes enough blocks long before.
const MOST_SCRATCH_BYTES: u64 = 1 << 28;

impl Tile {
    fn blocks(&self, m: u32, n: u32) -> u64 {
        u64::from(m.div_ceil(self.m)) * u64::from(n.div_ceil(self.n))
    }

    /// How long so many products take, their k in so many parts: the multiprocessor with the most blocks, and the adding up.
    fn cost_ns(&self, [m, k, n]: [u32; 3], items: u32, parts: u32, multiprocessors: u32) -> f64 {
        let blocks = (self.blocks(m, n) * u64::from(items) * u64::from(parts)).div_ceil(u64::from(multiprocessors.max(1)));
        let together_ns = |blocks: u64| if blocks == 0 { 0.0 } else { self.alone_ns.max(blocks as f64 * self.shared_ns) };
        let rounds_ns = (blocks / self.resident) as f64 * together_ns(self.resident) + together_ns(blocks % self.resident);
        // One step more to fetch the first slices.
        let steps = k.div_ceil(parts).div_ceil(self.k) + 1;
        let work_ns = rounds_ns * f64::from(steps) * f64::from(self.k);
        let moved = f64::from(2 * parts + 1) * f64::from(m) * f64::from(n) * f64::from(items);
        let sum_ns = SUM_LAUNCH_NS + SUM_PART_NS * f64::from(parts) + SUM_ELEMENT_NS * moved;
        if parts > 1 { work_ns + sum_ns } else { work_ns }
    }

    /// The cheapest tile, and how many parts it takes k in.
    fn choose(tiles: &[Self], shape: [u32; 3], items: u32, caps: &Caps, multiprocessors: u32) -> (Self, u32) {
        let [m, k, n] = shape;
        let most_bytes = caps.max_buffer_bytes.min(MOST_SCRATCH_BYTES);
        let splits = |tile: &Self, parts: u32| {
            k / parts >= 2 * tile.k
                && scratch_bytes([m, n], items, parts) <= most_bytes
                && u64::from(items) * u64::from(parts) <= MOST_LAYERS.into()
        };
        // The smallest runs on every GPU.
        let mut best = (tiles[tiles.len() - 1], 1);
        let mut least_ns = f64::INFINITY;
        let fits = |tile: &Self| tile.threads <= caps.max_workgroup_invocations;
        // What is tuned is the register-tiled kernel.
        let is_tiled = tiles == TILES;
        let waits = is_tiled && m.min(n) <= FEW && u64::from(m.max(n)) * u64::from(k) >= FROM_MEMORY;
        let tuned = caps.tuned.tile(m, n).filter(|_| is_tiled).and_then(|at| tiles.get(at));
        let tuned = tuned.filter(|tile| fits(tile) && !Tuned::is_idle([tile.m, tile.n], [m, n]));
        for tile in tuned.map_or(tiles, std::slice::from_ref).iter().copied() {
            if !fits(&tile) {
                continue;
            }
            let timed = if waits { Self { alone_ns: READING * tile.alone_ns, ..tile } } else { tile };
            let mut parts = 1;
            while parts == 1 || parts <= MOST_PARTS && splits(&tile, parts) {
                let cost_ns = timed.cost_ns(shape, items, parts, multiprocessors);
                if cost_ns < least_ns {
                    (best, least_ns) = ((tile, parts), cost_ns);
                }
                parts *= 2;
            }
        }
        best
    }
}

/// A plan for the kernels of this crate, on a GPU of so many multiprocessors.
pub fn cuda(problem: &Problem, caps: &Caps, multiprocessors: u32) -> Result<Plan> {
    let problem = &batch::merged(problem);
    within_buffers(problem, caps)?;
    super::split::check(problem, caps.matrix_unit)?;
    let mut plan = Plan { dispatches: Vec::new(), scratch_bytes: 0 };
    if problem.elements() == 0 {
        return Ok(plan);
    }
    let small = small_items(problem, caps, multiprocessors);
    let (outer, inner) = batch::fitting(&problem.batch, small.unwrap_or(MOST_LAYERS));
    for launch in batch::launches(&problem.batch, outer, inner) {
        if let Some(dispatch) = rows::product(problem, &launch, multiprocessors) {
            plan.dispatches.push(dispatch);
            continue;
        }
        match &problem.integers {
            Some(integers) => int8::add_launch(problem, integers, &launch, caps, multiprocessors, &mut plan)?,
            None if small.is_some() => plan.dispatches.push(direct(problem, &launch)),
            None => add_launch(problem, &launch, caps, multiprocessors, &mut plan)?,
        }
    }
    Ok(plan)
}

/// Whether a product has so few rows or columns that a kernel of this crate is quicker than NVIDIA's library.
pub fn is_of_vectors(problem: &Problem, caps: &Caps) -> bool {
    let problem = &batch::merged(problem);
    rows::takes(problem) || vector::is_quicker(problem, caps)
}

/// Adds what computes some items of a batch.
fn add_launch(problem: &Problem, launch: &Launch, caps: &Caps, multiprocessors: u32, plan: &mut Plan) -> Result<()> {
    if let Some(product) = vector::product(problem, launch, caps, multiprocessors) {
        product.add_to(problem, plan);
        return Ok(());
    }
    if let Some((before, product)) = split::product(problem, launch, caps, multiprocessors) {
        plan.dispatches.extend(before);
        product.add_to(problem, plan);
        return Ok(());
    }
    let &Problem { m, k, n, .. } = problem;
    let (id, tiles) = tiles_for(problem, caps);
    let by_units = id == KernelId::MatmulCooperative;
    let mut params = Params { result: u32::from(problem.result != DType::F32), ..launched(problem, launch) };
    let mut matrices = bindings(problem);
    let mut used_bytes = 0;
    if problem.dtype != DType::F32 && problem.reads_operands() {
        let kept = if by_units { DType::F16 } else { DType::F32 };
        for slot in [Slot::A, Slot::B] {
            // What the kernel for matrix units reads at once has to lie at its multiples; the other one reads no f16.
            if by_units && reads(slot, &mut params).are_aligned(kept) {
                continue;
            }
            let copy = copy_of(problem, slot, kept, used_bytes, caps);
            used_bytes += copy.add_to(plan, &mut matrices, reads(slot, &mut params))?;
        }
    }
    let (tile, parts) = Tile::choose(tiles, [m, k, n], params.batch, caps, multiprocessors);
    let mut constants = vec![("TILE_M", tile.m), ("TILE_N", tile.n), ("TILE_K", tile.k), ("THREADS", tile.threads)];
    constants.extend(constants_of_layout(problem));
    let variant = format!("{}x{}x{} {}", tile.m, tile.n, tile.k, layout(problem));
    let kernel = Kernel { id, variant, source: None, constants };
    // At most 2³² elements in tiles of 32 × 32, or in a single row or column of 2²⁷ of them.
    let blocks = tile.blocks(m, n) as u32;
    Product { kernel, params, matrices, blocks, parts, k_step: tile.k, used_bytes }.add_to(problem, plan);
    Ok(())
}

/// A launch that computes sums, of which it is not said yet whether they are whole.
struct Product {
    kernel: Kernel,
    params: Params,
    matrices: Vec<Binding>,
    /// Of each item, or of each part of one.
    blocks: u32,
    parts: u32,
    /// Steps of k that the kernel takes at once: only the last part has an edge.
    k_step: u32,
    /// What is taken of the scratch.
    used_bytes: u64,
}

impl Product {
    /// Adds it, and what adds its parts up.
    fn add_to(self, problem: &Problem, plan: &mut Plan) {
        let Self { mut kernel, params, matrices, blocks, parts, k_step, used_bytes } = self;
        let Params { m, k, n, batch, .. } = params;
        plan.scratch_bytes = plan.scratch_bytes.max(used_bytes);
        if parts == 1 {
            plan.dispatches.push(Dispatch { kernel, params: params.into(), bindings: matrices, grid: [blocks, 1, batch] });
            return;
        }
        let k_part = k.div_ceil(parts).next_multiple_of(k_step);
        let parts = k.div_ceil(k_part);
        let ldo = n.next_multiple_of(4);
        let scratch_bytes = scratch_bytes([m, n], batch, parts);
        let scratch = |index| Binding { slot: Slot::Scratch, index, offset_bytes: used_bytes, size_bytes: scratch_bytes };
        let (operands, ends): (Vec<_>, Vec<_>) = matrices.into_iter().partition(|binding| binding.index < 2);
        // C and the bias are for the sum to add.
        kernel.constants.retain(|(name, _)| !matches!(*name, "READS_C" | "READS_BIAS"));
        plan.dispatches.push(Dispatch {
            kernel,
            // The whole is scaled: a part may be too large then, or too small, where that is not.
            params: Params { ldo, out_start: 0, k_part, activation: 0, result: 0, alpha: 1.0, ..params }.into(),
            bindings: operands.into_iter().chain([scratch(4)]).collect(),
            grid: [blocks, 1, parts * batch],
        });
        plan.dispatches.push(sum(problem, params, parts, scratch(0), ends));
        plan.scratch_bytes = plan.scratch_bytes.max(used_bytes + scratch_bytes);
    }
}

/// The most items of a launch of `direct.cu`, if it is for these.
fn small_items(problem: &Problem, caps: &Caps, multiprocessors: u32) -> Option<u32> {
    let params = whole(problem);
    let shape = [params.m, params.k, params.n];
    small::most_items_on_cuda(problem, &params, || {
        let (_, tiles) = tiles_for(problem, caps);
        let (tile, parts) = Tile::choose(tiles, shape, params.batch, caps, multiprocessors);
        tile.cost_ns(shape, params.batch, parts, multiprocessors)
    })
}

/// That launch.
fn direct(problem: &Problem, launch: &Launch) -> Dispatch {
    let params = Params { result: u32::from(problem.result != DType::F32), ..launched(problem, launch) };
    let (threads, grid) = small::grid_on_cuda(&params);
    let operands_f16 = operands_f16(problem);
    let mut constants = vec![("THREADS", threads), ("OPERANDS_F16", operands_f16)];
    constants.extend(constants_of_layout(problem));
    let variant = format!("{}-{}", if operands_f16 == 1 { "f16" } else { "f32" }, layout(problem));
    let kernel = Kernel { id: KernelId::MatmulDirect, variant, source: None, constants };
    Dispatch { kernel, params: params.into(), bindings: bindings(problem), grid }
}

/// The parameters of a launch, whose operands and result are bound whole.
fn launched(problem: &Problem, Launch { first, batch }: &Launch) -> Params {
    let [a_start, b_start, c_start] = problem.batch.starts(*first).map(|start| start as u32);
    Params {
        a_start,
        b_start,
        c_start,
        out_start: (first * u64::from(problem.m) * u64::from(problem.n)) as u32,
        ..whole(&Problem { batch: *batch, ..*problem })
    }
}

/// A plan for cuBLASLt; None for what it does not take: sums of no terms, numbers past 31 bits, batches of two loops. Nor what it is slow at: rows
/// of f16 that start at no multiple of 8 elements, for which the kernel of this crate was nearly twice as fast on an NVIDIA H200, its copies
/// included, unless those are too large; and products that leave tiles idle, for which it took up to ten times as long
/// on an NVIDIA H100. What is not left to it a second launch does, where both are quicker than a kernel of this crate on a GPU of so many
/// multiprocessors: a bias and an activation, since what is exact of the latter is not documented; factors of f32 other than 1 and -1, with which
/// it has been seen to multiply an operand before the sum, which is then infinite, or nothing, where the result is not; and of f16 those that are
/// not finite, and 0, with which NaN is none.
pub fn cublaslt(problem: &Problem, caps: &Caps, multiprocessors: u32) -> Result<Option<Plan>> {
    let problem = &batch::merged(problem);
    within_buffers(problem, caps)?;
    super::split::check(problem, caps.matrix_unit)?;
    let Batch { outer, inner, first } = problem.batch;
    let strides = [problem.a.stride, problem.b.stride, problem.c.map_or(0, |c| c.stride), inner.a, inner.b, inner.c];
    let sizes = [problem.m, problem.k, problem.n, inner.count].map(u64::from);
    let largest = strides.into_iter().chain(sizes).max().unwrap_or(0);
    if !matches!((problem.dtype, problem.result), (DType::F32, DType::F32) | (DType::F16, DType::F32 | DType::F16)) {
        return Ok(None);
    }
    let misaligned = [problem.a.stride, problem.b.stride, inner.a, inner.b].iter().any(|step| !step.is_multiple_of(VECTOR.into()));
    if problem.elements() == 0
        || problem.k == 0
        || problem.dtype == DType::F16 && misaligned && cuda(problem, caps, multiprocessors).is_ok()
        || small_items(problem, caps, multiprocessors).is_some()
        || rows::takes(problem)
        || vector::is_quicker(problem, caps)
        || !vector::takes(problem, caps) && split::takes(problem, &Launch { first: 0, batch: problem.batch }, caps, multiprocessors)
        || outer.count > 1
        || first.iter().any(|first| !(first * problem.dtype.bytes()).is_multiple_of(LIBRARY_ALIGNMENT_BYTES))
        || largest > u64::from(i32::MAX.cast_unsigned())
    {
        return Ok(None);
    }
    let mut bindings = bindings(problem);
    for (binding, (first, dtype)) in bindings.iter_mut().zip(first.into_iter().zip([problem.dtype, problem.dtype, problem.result])) {
        if !matches!(binding.slot, Slot::Out | Slot::BIAS) {
            binding.offset_bytes = first * dtype.bytes();
            binding.size_bytes -= binding.offset_bytes;
        }
    }
    let takes_factor = match problem.dtype {
        DType::F32 => problem.alpha.abs() == 1.0,
        _ => problem.alpha.is_finite() && problem.alpha != 0.0,
    };
    if takes_factor && !problem.bias && problem.activation.is_none() {
        return Ok(Some(Plan::of(library(problem, problem.result, whole(problem), bindings))));
    }
    if !is_worth_an_end(problem, caps, multiprocessors) {
        return Ok(None);
    }
    let params = whole(problem);
    let scratch =
        |index| Binding { slot: Slot::Scratch, index, offset_bytes: 0, size_bytes: scratch_bytes([params.m, params.n], params.batch, 1) };
    let (mut operands, ends): (Vec<_>, Vec<_>) = bindings.into_iter().partition(|binding| matches!(binding.slot, Slot::A | Slot::B));
    operands.push(scratch(4));
    let plain = Params { ldo: params.n.next_multiple_of(4), alpha: 1.0, beta: 0.0, activation: 0, ..params };
    let product = library(&Problem { c: None, bias: false, ..*problem }, DType::F32, plain, operands);
    // C is bound from its first element on.
    let params = Params { result: u32::from(problem.result != DType::F32), c_start: 0, ..params };
    let dispatches = vec![product, sum(problem, params, 1, scratch(0), ends)];
    Ok(Some(Plan { dispatches, scratch_bytes: scratch(0).size_bytes }))
}

/// A product of the library.
fn library(problem: &Problem, result: DType, params: Params, bindings: Vec<Binding>) -> Dispatch {
    let mut constants = constants_of_layout(problem);
    constants.extend([("OPERANDS_F16", u32::from(problem.dtype != DType::F32)), ("RESULT_F16", u32::from(result != DType::F32))]);
    let variant = match (problem.dtype, result) {
        (DType::F32, _) => "f32",
        (_, DType::F32) => "f16 to f32",
        _ => "f16",
    };
    let kernel = Kernel { id: KernelId::MatmulCublasLt, variant: variant.to_owned(), source: None, constants };
    Dispatch { kernel, params: params.into(), bindings, grid: [1; 3] }
}

/// Whether the library with a launch after it is quicker than a kernel of this crate: what it saves of that one's time, and what the launch takes.
fn is_worth_an_end(problem: &Problem, caps: &Caps, multiprocessors: u32) -> bool {
    let Params { m, k, n, batch, .. } = whole(problem);
    let bytes = scratch_bytes([m, n], batch, 1);
    let (_, tiles) = tiles_for(problem, caps);
    let saved = if problem.dtype == DType::F32 { LIBRARY_SAVES } else { LIBRARY_SAVES_F16 };
    let (tile, parts) = Tile::choose(tiles, [m, k, n], batch, caps, multiprocessors);
    let own_ns = tile.cost_ns([m, k, n], batch, parts, multiprocessors);
    let end_ns = SUM_LAUNCH_NS + SUM_PART_NS + SUM_ELEMENT_NS * 3.0 * f64::from(m) * f64::from(n) * f64::from(batch);
    bytes <= caps.max_buffer_bytes.min(MOST_SCRATCH_BYTES) && saved * own_ns > end_ns
}

/// The launch that adds up so many parts of sums, to which `ends` are added, and where it writes the result.
fn sum(problem: &Problem, params: Params, parts: u32, sums: Binding, ends: Vec<Binding>) -> Dispatch {
    let reads = [("READS_C", u32::from(problem.c.is_some())), ("READS_BIAS", u32::from(problem.bias))];
    let constants = [("THREADS", SUM_THREADS)].into_iter().chain(reads).collect();
    let lda = params.n.next_multiple_of(4);
    Dispatch {
        kernel: Kernel { id: KernelId::MatmulSum, variant: String::new(), source: None, constants },
        params: Params { k: parts, lda, ..params }.into(),
        bindings: [sums].into_iter().chain(ends).collect(),
        grid: [(params.batch * params.m * (lda / 4)).div_ceil(SUM_THREADS), 1, 1],
    }
}

/// The kernel of this crate for operands of other than 8-bit integers, and its tiles.
fn tiles_for(problem: &Problem, caps: &Caps) -> (KernelId, &'static [Tile]) {
    let by_units = caps.matrix_unit.is_some_and(|unit| (unit.operands, unit.sums) == (problem.dtype, DType::F32));
    if by_units { (KernelId::MatmulCooperative, &COOPERATIVE_TILES) } else { (KernelId::MatmulTiled, &TILES) }
}

/// How a launch reads an operand.
fn reads(slot: Slot, params: &mut Params) -> Reads<'_> {
    if slot == Slot::A { Reads::a(params) } else { Reads::b(params) }
}

/// Rows and columns of an operand, as stored.
fn stored(problem: &Problem, slot: Slot) -> [u32; 2] {
    let stored = if slot == Slot::A { &problem.a } else { &problem.b };
    [stored.rows, stored.columns]
}

/// A copy of an operand in such elements, which begins so many bytes into the scratch.
fn copy_of(problem: &Problem, slot: Slot, dtype: DType, offset_bytes: u64, caps: &Caps) -> Copy {
    let (kernel, workgroup) = match dtype {
        DType::I8 => ((KernelId::MatmulInt8, "copy"), copy::BLOCK_BYTES),
        _ => ((KernelId::MatmulCopy, ""), copy::BLOCK),
    };
    Copy {
        kernel,
        slot: Slot::Scratch,
        from: Binding { slot, index: 0, offset_bytes: 0, size_bytes: 16 },
        size: stored(problem, slot),
        turned: false,
        dtype,
        index: 1,
        offset_bytes,
        max_bytes: caps.max_buffer_bytes,
        constants: Vec::new(),
        workgroup,
        most_workgroups: MOST_COPY_BLOCKS,
    }
}

/// How operands are stored, as `scripts/ptx` names it.
fn layout(problem: &Problem) -> String {
    [problem.transpose_a, problem.transpose_b].map(|transposed| if transposed { 't' } else { 'n' }).into_iter().collect()
}

/// Whole operands, at the places of a kernel's arguments.
fn bindings(problem: &Problem) -> Vec<Binding> {
    let read = problem.reads_operands();
    let operands = [
        (Slot::A, read, problem.a_span(), problem.dtype),
        (Slot::B, read, problem.b_span(), problem.dtype),
        (Slot::C, problem.c.is_some(), problem.c_span(), problem.result),
        (Slot::BIAS, problem.bias, problem.n.into(), DType::F32),
        (Slot::Out, true, problem.elements(), problem.result),
    ];
    let mut bindings = Vec::with_capacity(operands.len());
    for ((slot, is_bound, span, dtype), index) in operands.into_iter().zip(0..) {
        if is_bound {
            bindings.push(Binding { slot, index, offset_bytes: 0, size_bytes: (span * dtype.bytes()).next_multiple_of(16).max(16) });
        }
    }
    bindings
}
