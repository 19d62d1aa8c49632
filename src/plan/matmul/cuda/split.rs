//! Products of f32 in two terms of f16 each on CUDA, [`F16x3`](crate::Precision::F16x3): a launch of `shaders/matmul/split.cu` for each operand, which
//! takes it apart into lines along k, and one of `split_units.cu`, which multiplies these. Where that would not pay, or leaves no room, plain f32 is
//! what computes.

use super::{LIBRARY_SAVES, Product, TILES, Tile, bindings, launched};
use crate::dtype::DType;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::plan::matmul::batch::Launch;
use crate::plan::matmul::cooperative::VECTOR;
use crate::plan::matmul::split::{Source, is_asked_for};
use crate::plan::matmul::{Params, constants_of_layout};
use crate::plan::{Binding, Dispatch, Slot};

/// Of `split_units.cu`, each element of whose lines are two as they are stored. Times are of an NVIDIA H100, from products of 512³ to 4096³.
const SPLIT_TILES: [Tile; 3] = [
    Tile { m: 64, n: 128, k: 16, threads: 128, alone_ns: 27.6, shared_ns: 17.0, resident: 2 },
    Tile { m: 64, n: 64, k: 32, threads: 128, alone_ns: 20.0, shared_ns: 9.3, resident: 3 },
    Tile { m: 64, n: 32, k: 32, threads: 128, alone_ns: 15.5, shared_ns: 6.6, resident: 5 },
];

/// Elements as they are stored for each of k.
const TERMS: u32 = 2;

/// What lines start at multiples of, elements of f16: those of a line of the cache, of which a slice's part would else lie in one more.
const LINE: u64 = 64;

/// For a shorter k the splitting does not pay.
const LEAST_K: u32 = 128;

/// What one launch more takes there, which splits an operand, and each element of that, whose lines are rows or columns.
const SPLIT_LAUNCH_NS: f64 = 2500.0;
const SPLIT_ELEMENT_NS: [f64; 2] = [0.0033, 0.0055];

/// Threads of a block of `split.cu` for rows and for columns; how many columns it has; and the fewest and the most threads that share a row, each for
/// so many elements of it.
const THREADS: [u32; 2] = [256, 512];
const COLUMNS: u32 = 8;
const LANES: [u32; 2] = [8, THREADS[0]];
const LANE: u32 = 32;

/// An operand to split.
struct Operand(Source);

impl Operand {
    fn k(&self) -> u32 {
        if self.0.along { self.0.columns } else { self.0.rows }
    }

    fn items(&self) -> u64 {
        u64::from(self.0.outer.1) * u64::from(self.0.inner.1)
    }

    /// Of f16, from one line to the next once it is split: with its exponent.
    fn apart(&self) -> u64 {
        (u64::from(TERMS) * u64::from(self.k()).next_multiple_of(VECTOR.into()) + u64::from(VECTOR)).next_multiple_of(LINE)
    }

    fn item(&self) -> u64 {
        u64::from(self.0.lines()) * self.apart()
    }

    fn bytes(&self) -> u64 {
        (self.items() * self.item() * DType::F16.bytes()).next_multiple_of(256)
    }

    /// What splitting it takes.
    fn split_ns(&self) -> f64 {
        let elements = self.items() as f64 * f64::from(self.0.rows) * f64::from(self.0.columns);
        SPLIT_LAUNCH_NS + SPLIT_ELEMENT_NS[usize::from(!self.0.along)] * elements
    }

    /// The launch that splits it into what begins so many bytes into the scratch.
    fn split(&self, offset_bytes: u64) -> Dispatch {
        let &Self(Source { binding, rows, columns, stride, start, outer, inner, along }) = self;
        let threads = THREADS[usize::from(!along)];
        let lanes = if along { (columns / LANE).next_power_of_two().clamp(LANES[0], LANES[1]) } else { COLUMNS };
        let in_block = if along { threads / lanes } else { lanes };
        let params = Params {
            m: rows,
            n: columns,
            lda: stride,
            ldo: self.apart() as u32,
            a_start: start,
            batch: self.items() as u32,
            inner: inner.1,
            a_outer: outer.0,
            a_inner: inner.0,
            before_y: lanes,
            ..Params::default()
        };
        let variant = if along { "along" } else { "across" };
        let to = Binding { slot: Slot::Scratch, index: 1, offset_bytes, size_bytes: self.bytes() };
        Dispatch {
            kernel: Kernel { id: KernelId::MatmulSplit, variant: variant.to_owned(), source: None, constants: vec![("THREADS", threads)] },
            params: params.into(),
            bindings: vec![Binding { index: 0, ..binding }, to],
            grid: [self.0.lines().div_ceil(in_block), 1, params.batch],
        }
    }
}

/// What such a launch is told of its operands, these, its tile, and the parts of its k; None where nobody asked for one, plain f32 is as fast, or there is no room for the terms.
fn choose(problem: &Problem, launch: &Launch, caps: &Caps, multiprocessors: u32) -> Option<(Params, [Operand; 2], Tile, u32)> {
    if !is_asked_for(problem) || problem.k < LEAST_K {
        return None;
    }
    let params = launched(problem, launch);
    let bound = bindings(problem);
    let find = |slot: Slot| bound.iter().copied().find(|binding| binding.slot == slot);
    let operands = Source::both(problem, &params, [find(Slot::A)?, find(Slot::B)?]).map(Operand);
    let fits = |operand: &Operand| operand.items() * operand.item() <= u32::MAX.into();
    let bytes: u64 = operands.iter().map(Operand::bytes).sum();
    if !operands.iter().all(fits) || bytes > caps.max_buffer_bytes / 2 {
        return None;
    }
    let shape = [params.m, params.k, params.n];
    let cost_ns = |tiles: &[Tile]| {
        let (tile, parts) = Tile::choose(tiles, shape, params.batch, caps, multiprocessors);
        (tile.cost_ns(shape, params.batch, parts, multiprocessors), tile, parts)
    };
    let (ns, tile, parts) = cost_ns(&SPLIT_TILES);
    let split_ns: f64 = operands.iter().map(Operand::split_ns).sum();
    (ns + split_ns < (1.0 - LIBRARY_SAVES) * cost_ns(&TILES).0).then_some((params, operands, tile, parts))
}

/// Whether the first launch of a product is such a one.
pub(super) fn takes(problem: &Problem, launch: &Launch, caps: &Caps, multiprocessors: u32) -> bool {
    choose(problem, launch, caps, multiprocessors).is_some()
}

/// For some items of a batch, with what comes before it; None for other products.
pub(super) fn product(problem: &Problem, launch: &Launch, caps: &Caps, multiprocessors: u32) -> Option<([Dispatch; 2], Product)> {
    let (params, [a, b], tile, parts) = choose(problem, launch, caps, multiprocessors)?;
    let before = [a.split(0), b.split(a.bytes())];
    let mut matrices = bindings(problem);
    for (slot, split) in [Slot::A, Slot::B].into_iter().zip(&before) {
        for binding in matrices.iter_mut().filter(|binding| binding.slot == slot) {
            *binding = Binding { index: binding.index, ..split.bindings[1] };
        }
    }
    let [[a_outer, a_inner], [b_outer, b_inner]] = [&a, &b].map(|operand| operand.0.steps(operand.item() as u32));
    let params = Params {
        k: TERMS * params.k.next_multiple_of(VECTOR),
        lda: a.apart() as u32,
        ldb: b.apart() as u32,
        a_start: 0,
        b_start: 0,
        a_outer,
        a_inner,
        b_outer,
        b_inner,
        result: u32::from(problem.result != DType::F32),
        ..params
    };
    let mut constants = vec![("TILE_M", tile.m), ("TILE_N", tile.n), ("TILE_K", tile.k), ("THREADS", tile.threads)];
    constants.extend(constants_of_layout(problem));
    let variant = format!("f16x3-{}x{}x{}", tile.m, tile.n, tile.k);
    let kernel = Kernel { id: KernelId::MatmulCooperative, variant, source: None, constants };
    let (blocks, used_bytes) = (tile.blocks(params.m, params.n) as u32, a.bytes() + b.bytes());
    Some((before, Product { kernel, params, matrices, blocks, parts, k_step: TERMS * tile.k, used_bytes }))
}
