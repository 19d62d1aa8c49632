//! Plans for the matrix product. Every splitting happens here: over m, n and k where an operand is larger than a binding may be, over
//! m and n where there would be more workgroups than a dispatch may have.

mod batch;
#[cfg(not(target_arch = "wasm32"))]
mod cooperative;
#[cfg(not(target_arch = "wasm32"))]
mod cuda;
mod strips;
mod vector;

use std::fmt;

#[cfg(feature = "cuda")]
#[cfg(any(target_os = "linux", target_os = "windows"))]
pub(crate) use cuda::TILE_COUNT as CUDA_TILE_COUNT;
#[cfg(not(target_arch = "wasm32"))]
pub use cuda::{cublaslt, cuda};
pub use strips::{FragmentCaps, MOST_BLOCK_BYTES};

use super::{Binding, Dispatch, Plan, Slot};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Activation, Batch, Level, Problem, Stored};
use batch::Launch;

/// What a product's kernel is told at run time; the layout is that of `Params` in `shaders/matmul/store.wgsl`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[expect(missing_docs, reason = "named as in the shader")]
pub struct Params {
    pub m: u32,
    pub k: u32,
    pub n: u32,
    pub lda: u32,
    pub ldb: u32,
    pub ldc: u32,
    pub ldo: u32,
    pub a_start: u32,
    pub b_start: u32,
    pub c_start: u32,
    pub out_start: u32,
    pub alpha: f32,
    pub beta: f32,
    pub k_part: u32,
    pub batch: u32,
    pub inner: u32,
    pub a_outer: u32,
    pub b_outer: u32,
    pub c_outer: u32,
    pub a_inner: u32,
    pub b_inner: u32,
    pub c_inner: u32,
    pub bias_start: u32,
    pub activation: u32,
    /// For CUDA alone, whose kernels are told at run time what WGSL needs to know before: 0 for a result of f32, 1 for one of f16.
    pub result: u32,
}

impl Params {
    /// Where an item of the batch starts in A, B and C, counted from where the first does.
    pub fn starts(&self, item: u32) -> [u64; 3] {
        let (outer, inner) = (u64::from(item / self.inner.max(1)), u64::from(item % self.inner.max(1)));
        let start = |outer_step: u32, inner_step: u32| outer * u64::from(outer_step) + inner * u64::from(inner_step);
        [start(self.a_outer, self.a_inner), start(self.b_outer, self.b_inner), start(self.c_outer, self.c_inner)]
    }
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { m, k, n, lda, ldb, ldc, ldo, a_start, b_start, c_start, out_start, alpha, beta, k_part, .. } = self;
        write!(
            f,
            "{m}x{k}x{n} strides {lda},{ldb},{ldc},{ldo} starts {a_start},{b_start},{c_start},{out_start} alpha {alpha} beta {beta}"
        )?;
        if *k_part > 0 {
            write!(f, " k in parts of {k_part}")?;
        }
        let Self { batch, inner, a_outer, b_outer, c_outer, a_inner, b_inner, c_inner, .. } = self;
        if *batch != 1 {
            write!(f, " batch {}x{inner} strides {a_outer},{b_outer},{c_outer} {a_inner},{b_inner},{c_inner}", batch / inner.max(&1))?;
        }
        let Self { bias_start, activation, result, .. } = self;
        if *bias_start + *activation > 0 {
            write!(f, " bias from {bias_start} activation {activation}")?;
        }
        if *result > 0 { write!(f, " result {result}") } else { Ok(()) }
    }
}

/// A shape of the register-tiled kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tile {
    m: u32,
    n: u32,
    k: u32,
    threads_m: u32,
    threads_n: u32,
    /// Steps of k in workgroup memory.
    stages: u32,
    /// Steps of k in the body of the innermost loop.
    unroll: u32,
    /// Multiplications a second of a GPU full of workgroups, relative to the first tile.
    speed: f64,
    /// Workgroups at once that it takes to keep one multiprocessor busy: with fewer the time is the same.
    fill: f64,
}

/// Speeds and fills are measured on an NVIDIA H200.
const TILES: [Tile; 6] = [
    Tile { m: 128, n: 128, k: 8, threads_m: 16, threads_n: 16, stages: 2, unroll: 8, speed: 1.0, fill: 1.07 },
    Tile { m: 64, n: 128, k: 8, threads_m: 8, threads_n: 16, stages: 2, unroll: 8, speed: 0.95, fill: 1.25 },
    Tile { m: 96, n: 96, k: 8, threads_m: 8, threads_n: 24, stages: 2, unroll: 8, speed: 0.9, fill: 1.3 },
    Tile { m: 64, n: 64, k: 16, threads_m: 8, threads_n: 16, stages: 2, unroll: 16, speed: 0.82, fill: 1.3 },
    Tile { m: 32, n: 64, k: 16, threads_m: 8, threads_n: 16, stages: 2, unroll: 16, speed: 0.67, fill: 1.5 },
    // For what fits a few workgroups: little slower there, and sooner compiled, which counts where a CPU emulates the GPU.
    Tile { m: 32, n: 32, k: 16, threads_m: 8, threads_n: 8, stages: 1, unroll: 1, speed: 0.6, fill: 3.0 },
];

/// Invocations of the smallest kernel's workgroup.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) const SMALLEST_WORKGROUP: u32 = 64;

/// Multiprocessors assumed. No browser tells; large GPUs have 100 to 200, and smaller ones lose little by tiles smaller than they could take.
const MULTIPROCESSORS: u64 = 128;

/// How many tiles there are to choose from.
#[cfg(any(feature = "vulkan", feature = "webgpu"))]
#[cfg(not(target_arch = "wasm32"))]
pub(crate) const TILE_COUNT: u8 = TILES.len() as u8;

/// The most parts of k.
const MOST_PARTS: u32 = 64;

/// What adding up the parts of a split k costs, in multiplications of a multiprocessor with the first tile: another launch, and for each element
/// written or read. Measured as the speeds above.
const SUM_LAUNCH: f64 = 1.5e6;
const SUM_ELEMENT: f64 = 0.5;

/// Invocations in a workgroup that adds up parts.
const SUM_THREADS: u32 = 64;

/// Workgroups that round sums, of which each invocation takes as many as there are: enough for large GPUs.
#[cfg(not(target_arch = "wasm32"))]
const ROUND_WORKGROUPS: u32 = 4096;

impl Tile {
    fn threads(&self) -> u32 {
        self.threads_m * self.threads_n
    }

    /// Both slices of every stage, each row padded by a vec4 at most.
    fn workgroup_bytes(&self) -> u32 {
        self.stages * self.k * (self.m / 4 + 1 + self.n / 4 + 1) * 16
    }

    fn fits(&self, caps: &Caps) -> bool {
        self.threads() <= caps.max_workgroup_invocations && self.workgroup_bytes() <= caps.max_workgroup_bytes
    }

    /// Whether a tile is to be looked at: the one that was tuned for such a result, if there is one, else all that fit.
    fn is_candidate(at: usize, [m, n]: [u32; 2], caps: &Caps) -> bool {
        let fits = |at: usize| TILES.get(at).is_some_and(|tile| tile.fits(caps));
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(tuned) = caps.tuned.tile(m, n).filter(|&tuned| fits(tuned)) {
            return at == tuned;
        }
        #[cfg(target_arch = "wasm32")]
        let _ = (m, n);
        fits(at)
    }

    /// The time of so many products in arbitrary units, their k in so many parts: the workgroups of the busiest multiprocessor, times a tile's
    /// work, over its speed; and the adding up.
    fn cost(&self, [m, k, n]: [u32; 3], items: u32, parts: u32) -> f64 {
        let workgroups = u64::from(m.div_ceil(self.m)) * u64::from(n.div_ceil(self.n)) * u64::from(items) * u64::from(parts);
        let rounds = (workgroups.div_ceil(MULTIPROCESSORS) as f64).max(self.fill);
        let work = rounds * f64::from(self.m * self.n) * f64::from(k.max(1).div_ceil(parts)) / self.speed;
        let moved = f64::from(2 * parts + 1) * f64::from(m) * f64::from(n) * f64::from(items);
        if parts > 1 { work + SUM_LAUNCH + SUM_ELEMENT * moved } else { work }
    }

    /// The cheapest tile, and how many parts it takes k in.
    fn choose(shape: [u32; 3], items: u32, caps: &Caps) -> Result<(Self, u32)> {
        let [m, k, n] = shape;
        // What a part does should be worth its end.
        let splits = |tile: &Self, parts: u32| k / parts >= 2 * tile.k && has_room([m, n], items, parts, caps);
        let mut best: Option<(f64, Self, u32)> = None;
        for (at, tile) in TILES.into_iter().enumerate() {
            if !Self::is_candidate(at, [m, n], caps) {
                continue;
            }
            let mut parts = 1;
            while parts == 1 || parts <= MOST_PARTS && splits(&tile, parts) {
                let cost = tile.cost(shape, items, parts);
                if best.is_none_or(|(least, ..)| cost < least) {
                    best = Some((cost, tile, parts));
                }
                parts += 1;
            }
        }
        best.map(|(_, tile, parts)| (tile, parts)).ok_or(Box::new(Error::LimitExceeded {
            what: "the workgroup memory in bytes that the smallest kernel needs",
            requested: u64::from(TILES[TILES.len() - 1].workgroup_bytes()),
            max: u64::from(caps.max_workgroup_bytes),
        }))
    }
}

/// Whether so many parts of results can be found room for, and be added up in one launch.
fn has_room(sides: [u32; 2], items: u32, parts: u32, caps: &Caps) -> bool {
    let most = u64::from(caps.max_workgroups_per_dimension);
    u64::from(parts) * u64::from(items) <= most
        && scratch_bytes(sides, items, parts) <= caps.max_binding_bytes.min(1 << 28)
        && (scratch_bytes(sides, items, 1) / 16).div_ceil(SUM_THREADS.into()) <= most
}

/// Room for the parts of split products: for each part all items, their rows starting at vec4s.
fn scratch_bytes([m, n]: [u32; 2], items: u32, parts: u32) -> u64 {
    u64::from(parts).saturating_mul(u64::from(items) * u64::from(m)).saturating_mul(u64::from(n).next_multiple_of(4) * 4)
}

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let problem = &batch::merged(problem);
    within_buffers(problem, caps)?;
    let split = Split::choose(problem, caps);
    let mut plan = Plan { dispatches: Vec::new(), scratch_bytes: 0 };
    for items in batch::launches(&problem.batch, split.outer, split.inner) {
        split.dispatch(problem, &items, caps, &mut plan)?;
    }
    Ok(plan)
}

/// A plan for the CPU, which needs no splitting. The grid is of threads that share the rows or columns of the result.
pub fn cpu(problem: &Problem, variant: &str, threads: u32) -> Plan {
    let problem = &batch::merged(problem);
    let variant = if threads > 1 { format!("{variant}, {threads} threads") } else { variant.to_owned() };
    let kernel = Kernel { id: KernelId::MatmulCpu, variant, constants: constants_of_layout(problem) };
    Plan::of(Dispatch { kernel, params: whole(problem).into(), bindings: Vec::new(), grid: [threads, 1, 1] })
}

/// A plan for fragment shaders: a texel of the target is a row of four elements, and the target has a layer for each row of a block.
/// Targets are folded into lines of a power of two of texels, as [`fold`] tells, and `ldo` is the elements from one row of blocks to the
/// next. A binding's index is the sampler: a, b, c, bias. Where A is put into uniform blocks, the scratch is bound in its place.
pub fn fragment(problem: &Problem, caps: &Caps, fragment: &FragmentCaps) -> Result<Plan> {
    // Blocks have four columns: a single column is computed as a row, which is stored the same, from Cᵀ = op(B)ᵀ·op(A)ᵀ.
    let problem = &batch::merged(problem);
    let turned = problem.n == 1 && problem.m > 1 && problem.c.is_none_or(|c| c.stride == 1);
    let [first, second] = if turned { [Slot::B, Slot::A] } else { [Slot::A, Slot::B] };
    let bias_step = u32::from(problem.n > 1);
    let mut problem = if turned { transposed(problem) } else { *problem };
    if problem.m == 1 && problem.transpose_a && problem.a.stride == 1 {
        (problem.transpose_a, problem.a) = (false, column_as_row(problem.a));
    }
    let problem = &problem;
    let reads = problem.reads_operands();
    let bias_span = if bias_step == 0 { 1 } else { u64::from(problem.n) };
    let read = [
        (first, reads, problem.a_span()),
        (second, reads, problem.b_span()),
        (Slot::C, problem.c.is_some(), problem.c_span()),
        (Slot::BIAS, problem.bias, bias_span),
    ];
    let mut bindings = Vec::with_capacity(read.len());
    for (index, (slot, is_read, span)) in (0..).zip(read) {
        if is_read {
            let texels = span.div_ceil(4);
            fold(texels, caps)?;
            bindings.push(Binding { slot, index, offset_bytes: 0, size_bytes: texels * 16 });
        }
    }
    if let Some(plan) = strips::strips(problem, &bindings, caps, fragment) {
        return Ok(plan);
    }
    let single = problem.batch.count() <= 1;
    // A block belongs to one item of a batch.
    let rows = match problem.m {
        0 | 1 => 1,
        2 => 2,
        // Texels of Aᵀ hold four rows.
        m if single && !problem.transpose_a && fragment.targets >= strips::ROWS && u64::from(m) * u64::from(problem.n) >= LARGE_RESULT => {
            strips::ROWS
        }
        m if single || m.is_multiple_of(4) => 4,
        m if m.is_multiple_of(2) => 2,
        _ => 1,
    };
    let all_rows = u64::from(problem.m) * problem.batch.count();
    let (width, height) = fold(all_rows.div_ceil(rows.into()) * u64::from(problem.n.div_ceil(4)), caps)?;
    let Batch { outer, inner } = problem.batch;
    let (bytes, max) = (u64::from(width) * u64::from(height) * u64::from(rows) * 16, MOST_BUFFER_BYTES);
    if bytes > max {
        return Err(Box::new(Error::LimitExceeded { what: "the size in bytes of a result of WebGL2", requested: bytes, max }));
    }
    let mut constants = constants_of_layout(problem);
    constants.extend([("ROWS", rows), ("BLOCKS", 0), ("LOOPS", 1), ("BATCHED", u32::from(!single))]);
    constants.extend([("BIAS_STEP", bias_step), ("ACTIVATION", Activation::number(problem.activation))]);
    constants.extend([("A_VEC4", vec4_texels(&problem.a, [outer.a, inner.a])), ("B_VEC4", vec4_texels(&problem.b, [outer.b, inner.b]))]);
    let params = Params { ldo: problem.n.div_ceil(4).saturating_mul(4), ..whole(problem) };
    let kernel = Kernel { id: KernelId::MatmulPacked, variant: format!("{rows}x4"), constants };
    Ok(Plan::of(Dispatch { kernel, params: params.into(), bindings, grid: [width, height, rows] }))
}

/// Elements of a result from which on blocks of eight rows are enough of them to keep a large GPU busy.
const LARGE_RESULT: u64 = 1 << 18;

/// Browsers give a buffer no more than this.
const MOST_BUFFER_BYTES: u64 = (1 << 30) - 1;

/// Whether the rows of matrices in a texture begin with texels, where the items of a batch lie so far apart. A single row does in any case.
fn vec4_texels(stored: &Stored, steps: [u64; 2]) -> u32 {
    u32::from((stored.stride.is_multiple_of(4) || stored.rows <= 1) && steps.iter().all(|step| step.is_multiple_of(4)))
}

/// The product whose result is the transpose of this one's, where C is a packed column if it is read.
fn transposed(problem: &Problem) -> Problem {
    let &Problem { m, n, batch, transpose_a, transpose_b, a, b, c, .. } = problem;
    let turned = |level: Level| Level { a: level.b, b: level.a, ..level };
    let batch = Batch { outer: turned(batch.outer), inner: turned(batch.inner) };
    Problem { m: n, n: m, batch, transpose_a: !transpose_b, transpose_b: !transpose_a, a: b, b: a, c: c.map(column_as_row), ..*problem }
}

/// A packed column is stored as a row is.
fn column_as_row(column: Stored) -> Stored {
    Stored { rows: column.columns, columns: column.rows, stride: column.rows.into() }
}

/// Width and height of a texture that holds so many texels: the width a power of two, so that a shader finds a texel by shifts, and as near to
/// the square root as that allows.
pub fn fold(texels: u64, caps: &Caps) -> Result<(u32, u32)> {
    let largest = 1u64 << u64::from(caps.max_texture_size).ilog2();
    let width = ((texels.max(1) as f64).sqrt().ceil() as u64).next_power_of_two().min(largest);
    let height = texels.max(1).div_ceil(width);
    if height > u64::from(caps.max_texture_size) {
        let max = largest * u64::from(caps.max_texture_size) * 4;
        return Err(Box::new(Error::LimitExceeded {
            what: "the number of elements of a matrix in one texture",
            requested: texels * 4,
            max,
        }));
    }
    Ok((width as u32, height as u32))
}

/// Parameters of the whole product in one piece.
fn whole(problem: &Problem) -> Params {
    Params {
        m: problem.m,
        k: problem.k,
        n: problem.n,
        lda: problem.a.stride as u32,
        ldb: problem.b.stride as u32,
        ldc: problem.c.map_or(0, |c| c.stride as u32),
        ldo: problem.n,
        alpha: problem.alpha,
        beta: problem.beta,
        activation: Activation::number(problem.activation),
        ..batch::params(&problem.batch)
    }
}

fn constants_of_layout(problem: &Problem) -> Vec<(&'static str, u32)> {
    vec![
        ("TRANSPOSE_A", u32::from(problem.transpose_a)),
        ("TRANSPOSE_B", u32::from(problem.transpose_b)),
        ("READS_C", u32::from(problem.c.is_some())),
        ("READS_BIAS", u32::from(problem.bias)),
    ]
}

fn result(problem: &Problem) -> Stored {
    Stored { rows: problem.m, columns: problem.n, stride: u64::from(problem.n) }
}

/// Whether each operand fits a buffer.
fn within_buffers(problem: &Problem, caps: &Caps) -> Result<()> {
    let reads = |span| if problem.reads_operands() { span } else { 0 };
    let operands = [problem.a_span(), problem.b_span()].map(|span| reads(span) * problem.dtype.bytes());
    let results = [problem.c_span(), problem.elements()].map(|span| span * problem.result.bytes());
    for requested in operands.into_iter().chain(results) {
        if requested > caps.max_buffer_bytes {
            return Err(Box::new(Error::LimitExceeded {
                what: "the size in bytes of a matrix in one buffer",
                requested,
                max: caps.max_buffer_bytes,
            }));
        }
    }
    Ok(())
}

/// The largest parts that a dispatch can do.
#[derive(Debug, Clone, Copy)]
struct Split {
    /// Items of each loop of a batch. More than one only if their products are whole.
    outer: u32,
    inner: u32,
    m: u32,
    k: u32,
    n: u32,
}

impl Split {
    fn choose(problem: &Problem, caps: &Caps) -> Self {
        let smallest = TILES[TILES.len() - 1];
        let most = |tile: u32| u32::try_from(u64::from(tile) * u64::from(caps.max_workgroups_per_dimension)).unwrap_or(u32::MAX);
        let (m, n) = (problem.m.min(most(smallest.m)).max(1), problem.n.min(most(smallest.n)).max(1));
        let whole = m >= problem.m && n >= problem.n;
        let (outer, inner) = if whole { batch::fitting(&problem.batch, caps.max_workgroups_per_dimension) } else { (1, 1) };
        let mut split = Self { outer, inner, m, k: problem.k.max(1), n };
        // A binding starts at the alignment before its first element, and its length is rounded up to a vec4.
        let room_bytes = caps.max_binding_bytes.saturating_sub(caps.binding_alignment_bytes + 16).max(64);
        // Sums may be kept in f32 until they are rounded.
        let (operand_room, result_room) = (room_bytes / problem.dtype.bytes(), room_bytes / 4);
        loop {
            let Self { m, k, n, .. } = split;
            let launch = batch::part(&problem.batch, split.outer, split.inner);
            let span = |reach: u64, rows: u32, columns: u32, stride: u64| reach + u64::from(rows - 1) * stride + u64::from(columns);
            let (a_rows, a_columns) = if problem.transpose_a { (k, m) } else { (m, k) };
            let (b_rows, b_columns) = if problem.transpose_b { (n, k) } else { (k, n) };
            let reads = problem.reads_operands();
            let [a_reach, b_reach, c_reach] = launch.reaches();
            let a_is = reads && span(a_reach, a_rows, a_columns, problem.a.stride) > operand_room;
            let b_is = reads && span(b_reach, b_rows, b_columns, problem.b.stride) > operand_room;
            let c_is = problem.c.is_some_and(|c| span(c_reach, m, n, c.stride) > result_room);
            let out_is = span((launch.count() - 1) * u64::from(m) * u64::from(n), m, n, problem.n.into()) > result_room;
            // Fewer rows make a range shorter by whole strides; fewer columns help only in a single row.
            if launch.count() > 1 && (a_is || b_is || c_is || out_is) {
                let level = if split.outer > 1 { &mut split.outer } else { &mut split.inner };
                *level = level.div_ceil(2);
            } else if a_is {
                halve(if (a_rows > 1) != problem.transpose_a { &mut split.m } else { &mut split.k });
            } else if b_is {
                halve(if (b_rows > 1) != problem.transpose_b { &mut split.k } else { &mut split.n });
            } else if c_is || out_is {
                halve(if m > 1 { &mut split.m } else { &mut split.n });
            } else {
                return split;
            }
        }
    }

    /// Adds what computes some items of a batch, in parts.
    fn dispatch(&self, problem: &Problem, items: &Launch, caps: &Caps, plan: &mut Plan) -> Result<()> {
        for m0 in (0..problem.m).step_by(self.m as usize) {
            for n0 in (0..problem.n).step_by(self.n as usize) {
                // A sum of no terms still has to be written.
                for k0 in (0..problem.k.max(1)).step_by(self.k as usize) {
                    let (m, k, n) = (self.m.min(problem.m - m0), self.k.min(problem.k - k0), self.n.min(problem.n - n0));
                    Part { m0, k0, n0, m, k, n, items }.dispatch(problem, caps, plan)?;
                }
            }
        }
        Ok(())
    }
}

/// Half as much, in whole tiles where that is possible.
fn halve(part: &mut u32) {
    *part = if *part > 512 { (*part / 2).next_multiple_of(256) } else { part.div_ceil(2) };
}

/// One part of a split product, or whole products of a batch.
struct Part<'a> {
    m0: u32,
    k0: u32,
    n0: u32,
    m: u32,
    k: u32,
    n: u32,
    items: &'a Launch,
}

impl Part<'_> {
    /// Adds what computes this part.
    fn dispatch(&self, problem: &Problem, caps: &Caps, plan: &mut Plan) -> Result<()> {
        let in_order = |swap: bool, x: u32, y: u32| if swap { (y, x) } else { (x, y) };
        let a_at = in_order(problem.transpose_a, self.m0, self.k0);
        let b_at = in_order(problem.transpose_b, self.k0, self.n0);
        let a_size = in_order(problem.transpose_a, self.m, self.k);
        let b_size = in_order(problem.transpose_b, self.k, self.n);
        let Launch { first, batch } = self.items;
        let (starts, reaches) = (problem.batch.starts(*first), batch.reaches());
        let [a_items, b_items, c_items] = [0, 1, 2].map(|operand| (starts[operand], reaches[operand]));
        let of_result = u64::from(problem.m) * u64::from(problem.n);
        let (a, a_start) = window(Slot::A, 0, (&problem.a, problem.dtype), a_items, a_at, a_size, caps);
        let (b, b_start) = window(Slot::B, 1, (&problem.b, problem.dtype), b_items, b_at, b_size, caps);
        let (at, size) = ((self.m0, self.n0), (self.m, self.n));
        let out_items = (first * of_result, (batch.count() - 1) * of_result);
        let (out, out_start) = window(Slot::Out, 2, (&result(problem), problem.result), out_items, at, size, caps);
        let (is_first, is_last) = (self.k0 == 0, self.k0 + self.k >= problem.k);
        // The first part along k adds C, the later ones what the earlier ones wrote; or C waits for the sums to be rounded.
        let adds_c = if problem.result == DType::F32 { is_first } else { is_last };
        let c = problem.c.filter(|_| adds_c).map(|c| window(Slot::C, 4, (&c, problem.result), c_items, at, size, caps));
        let c_start = c.map_or(0, |(_, start)| start);
        let whole = whole(&Problem { batch: *batch, ..*problem });
        let params = Params { m: self.m, k: self.k, n: self.n, a_start, b_start, c_start, out_start, ..whole };
        // What comes after the sum is for the last part along k.
        let row = Stored { rows: 1, columns: problem.n, stride: problem.n.into() };
        let bias = (problem.bias && is_last).then(|| window(Slot::BIAS, 5, (&row, DType::F32), (0, 0), (0, self.n0), (1, self.n), caps));
        let bias_start = bias.map_or(0, |(_, start)| start);
        let params = Params { bias_start, activation: if is_last { params.activation } else { 0 }, ..params };
        let step = match vector::step(problem, params, [a, b], caps) {
            Some(step) => step,
            None => matrix_step(problem, params, [a, b], caps)?,
        };
        let added = [c, bias].map(|window| window.map(|(binding, _)| binding));
        step.add_to(plan, &End { out, added, bias_step: u32::from(problem.n > 1), dtype: problem.result, is_first, is_last });
        Ok(())
    }
}

/// Whether four elements can be loaded at once, wherever in a row or a batch: each of these numbers is a multiple of four.
fn vec4(numbers: &[u32]) -> u32 {
    u32::from(numbers.iter().all(|number| number.is_multiple_of(4)))
}

/// Whether A and B are of f16.
fn operands_f16(problem: &Problem) -> u32 {
    u32::from(problem.dtype != DType::F32)
}

/// A launch that computes sums, before it is known where they go.
struct Step {
    kernel: Kernel,
    params: Params,
    operands: [Binding; 2],
    /// Workgroups in x and y.
    grid: [u32; 2],
    /// Into how many parts k is split.
    parts: u32,
    /// Steps of k that the kernel takes at once: only the last part has an edge.
    k_step: u32,
}

/// The launch for a product of two matrices: by matrix units where there are any for its type, else by the register-tiled kernel.
fn matrix_step(problem: &Problem, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(step) = cooperative::step(problem, params, operands, caps) {
        return Ok(step);
    }
    tiled(problem, params, operands, caps)
}

/// The launch of the register-tiled kernel.
fn tiled(problem: &Problem, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    let (tile, parts) = Tile::choose([params.m, params.k, params.n], params.batch, caps)?;
    let constants = vec![
        ("TILE_M", tile.m),
        ("TILE_N", tile.n),
        ("TILE_K", tile.k),
        ("THREADS_M", tile.threads_m),
        ("THREADS_N", tile.threads_n),
        ("THREADS", tile.threads()),
        ("STAGES", tile.stages),
        ("SINGLE", u32::from(tile.stages == 1)),
        ("LOOPS", u32::from(tile.unroll < tile.k)),
        ("UNROLL", tile.unroll),
        ("A_GROUPS", tile.m / 4 / tile.threads_m),
        ("B_GROUPS", tile.n / 4 / tile.threads_n),
        ("A_LOADS", tile.m * tile.k / 4 / tile.threads()),
        ("B_LOADS", tile.n * tile.k / 4 / tile.threads()),
        ("A_VEC4", vec4(&[params.a_start, params.lda, params.a_outer, params.a_inner])),
        ("B_VEC4", vec4(&[params.b_start, params.ldb, params.b_outer, params.b_inner])),
        ("A_SCATTER", u32::from(!problem.transpose_a)),
        ("B_SCATTER", u32::from(problem.transpose_b)),
        ("OPERANDS_F16", operands_f16(problem)),
    ];
    let kernel = Kernel { id: KernelId::MatmulTiled, variant: format!("{}x{}x{}", tile.m, tile.n, tile.k), constants };
    Ok(Step { kernel, params, operands, grid: [params.n.div_ceil(tile.n), params.m.div_ceil(tile.m)], parts, k_step: tile.k })
}

/// Where the sums of a launch go.
struct End {
    out: Binding,
    /// C and the bias.
    added: [Option<Binding>; 2],
    /// The bias goes on from element to element, or there is only one.
    bias_step: u32,
    /// What the result's elements are.
    dtype: DType,
    /// Whether these are the first terms of the sums, and whether they are the last.
    is_first: bool,
    is_last: bool,
}

impl Step {
    /// Adds the launch, and where sums wait for others, or for being rounded, a second one that adds the parts up.
    fn add_to(self, plan: &mut Plan, end: &End) {
        let Self { mut kernel, params, operands: [a, b], grid: [x, y], mut parts, k_step } = self;
        let [c, bias] = end.added;
        let out_vec4 = vec4(&[params.out_start, params.ldo, params.n]);
        let narrow = end.dtype != DType::F32;
        let is_whole = end.is_first && end.is_last;
        // A sum is rounded once, when it is whole; and rows that share a word are for one invocation to write.
        let rounds = narrow && (out_vec4 == 0 || !is_whole);
        if rounds && !is_whole {
            parts = 1;
        }
        let stores = [
            ("OUT_VEC4", out_vec4),
            ("READS_C", u32::from(c.is_some())),
            ("ACCUMULATES", u32::from(!end.is_first)),
            ("BATCHED", u32::from(params.batch > 1)),
            ("READS_BIAS", u32::from(bias.is_some())),
            ("BIAS_STEP", end.bias_step),
            ("ACTIVATION", params.activation),
            ("RESULT_F16", u32::from(narrow)),
            ("WORDS", 0),
        ];
        kernel.constants.push(("PARTS", u32::from(parts > 1)));
        if parts == 1 && !rounds {
            let plain = end.is_first && end.added == [None; 2] && params.activation == 0 && !narrow;
            kernel.finish(stores, plain && vec4(&[params.out_start, params.ldo]) == 1);
            let bindings = [Some(a), Some(b), Some(end.out), c, bias].into_iter().flatten().collect();
            plan.dispatches.push(Dispatch { kernel, params: params.into(), bindings, grid: [x, y, params.batch] });
            return;
        }
        let k_part = if parts > 1 { params.k.div_ceil(parts).next_multiple_of(k_step) } else { 0 };
        let parts = if parts > 1 { params.k.div_ceil(k_part) } else { 1 };
        let ldo = params.n.next_multiple_of(4);
        let scratch_bytes = scratch_bytes([params.m, params.n], params.batch, parts);
        let scratch = |index| Binding { slot: Slot::Scratch, index, offset_bytes: 0, size_bytes: scratch_bytes };
        plan.scratch_bytes = plan.scratch_bytes.max(scratch_bytes);
        // Sums of no terms need no launch of their own: there is no part to add up.
        if params.k > 0 {
            let accumulates = u32::from(rounds && !end.is_first);
            let values = [1, 0, accumulates, u32::from(params.batch > 1), 0, 0, 0, 0, 0];
            let mut kept = stores;
            kept.iter_mut().zip(values).for_each(|((_, value), kept)| *value = kept);
            kernel.finish(kept, accumulates == 0);
            plan.dispatches.push(Dispatch {
                kernel,
                params: Params { ldo, out_start: 0, k_part, bias_start: 0, activation: 0, ..params }.into(),
                bindings: vec![a, b, scratch(2)],
                grid: [x, y, parts * params.batch],
            });
        }
        if rounds && !end.is_last {
            return;
        }
        let rows = params.batch.saturating_mul(params.m);
        let (id, workgroups) = match rounds {
            #[cfg(not(target_arch = "wasm32"))]
            true => (KernelId::MatmulRound, (rows.saturating_mul(params.ldo) / 2).div_ceil(SUM_THREADS).clamp(1, ROUND_WORKGROUPS)),
            _ => (KernelId::MatmulSum, (rows * (ldo / 4)).div_ceil(SUM_THREADS)),
        };
        let constants = [("THREADS", SUM_THREADS)].into_iter().chain(stores);
        // What is rounded stands in scratch in any case.
        let constants = constants.map(|(name, value)| match name {
            "OUT_VEC4" | "ACCUMULATES" if rounds => (name, 0),
            "WORDS" => (name, u32::from(rounds)),
            _ => (name, value),
        });
        plan.dispatches.push(Dispatch {
            kernel: Kernel { id, variant: String::new(), constants: constants.collect() },
            params: Params { k: if params.k > 0 { parts } else { 0 }, lda: ldo, alpha: 1.0, ..params }.into(),
            bindings: [Some(scratch(0)), Some(end.out), c, bias].into_iter().flatten().collect(),
            grid: [workgroups, 1, 1],
        });
    }
}

/// The binding that holds a part of a stored matrix, and the element of it at which the part starts. Of a batch, `items` tells where the first
/// matrix starts, and how far behind it the last one does.
#[allow(clippy::too_many_arguments, reason = "they are what a range is made of")]
#[inline(never)]
fn window(
    slot: Slot,
    index: u32,
    (stored, dtype): (&Stored, DType),
    items: (u64, u64),
    at: (u32, u32),
    size: (u32, u32),
    caps: &Caps,
) -> (Binding, u32) {
    // An operand that is not read has no elements to point at.
    let is_read = size.0 > 0 && size.1 > 0;
    let first = if is_read { items.0 + u64::from(at.0) * stored.stride + u64::from(at.1) } else { 0 };
    let length = if is_read { items.1 + Stored { rows: size.0, columns: size.1, stride: stored.stride }.span() } else { 0 };
    let offset_bytes = first * dtype.bytes() / caps.binding_alignment_bytes * caps.binding_alignment_bytes;
    let start = first - offset_bytes / dtype.bytes();
    let size_bytes = ((start + length) * dtype.bytes()).next_multiple_of(16).max(16);
    (Binding { slot, index, offset_bytes, size_bytes }, start as u32)
}
