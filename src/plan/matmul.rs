//! Plans for the matrix product. Every splitting happens here: over m, n and k where an operand is larger than a binding may be, over
//! m and n where there would be more workgroups than a dispatch may have.

#[cfg(not(target_arch = "wasm32"))]
mod cuda;
mod strips;
mod vector;

use std::fmt;

#[cfg(not(target_arch = "wasm32"))]
pub use cuda::{cublaslt, cuda};
pub use strips::{FragmentCaps, MOST_BLOCK_BYTES};

use super::{Binding, Dispatch, Plan, Slot};
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Problem, Stored};

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
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { m, k, n, lda, ldb, ldc, ldo, a_start, b_start, c_start, out_start, alpha, beta, k_part } = self;
        write!(
            f,
            "{m}x{k}x{n} strides {lda},{ldb},{ldc},{ldo} starts {a_start},{b_start},{c_start},{out_start} alpha {alpha} beta {beta}"
        )?;
        if *k_part > 0 { write!(f, " k in parts of {k_part}") } else { Ok(()) }
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
const TILES: [Tile; 5] = [
    Tile { m: 128, n: 128, k: 8, threads_m: 16, threads_n: 16, stages: 2, unroll: 8, speed: 1.0, fill: 1.07 },
    Tile { m: 64, n: 128, k: 8, threads_m: 8, threads_n: 16, stages: 2, unroll: 8, speed: 0.95, fill: 1.25 },
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

/// The most parts of k.
const MOST_PARTS: u32 = 64;

/// What adding up the parts of a split k costs, in multiplications of a multiprocessor with the first tile: another launch, and for each element
/// written or read. Measured as the speeds above.
const SUM_LAUNCH: f64 = 1.5e6;
const SUM_ELEMENT: f64 = 0.5;

/// Invocations in a workgroup that adds up parts.
const SUM_THREADS: u32 = 64;

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

    /// The time of a product in arbitrary units, its k in so many parts: the workgroups of the busiest multiprocessor, times a tile's work, over
    /// its speed; and the adding up.
    fn cost(&self, [m, k, n]: [u32; 3], parts: u32) -> f64 {
        let workgroups = u64::from(m.div_ceil(self.m)) * u64::from(n.div_ceil(self.n)) * u64::from(parts);
        let rounds = (workgroups.div_ceil(MULTIPROCESSORS) as f64).max(self.fill);
        let work = rounds * f64::from(self.m * self.n) * f64::from(k.max(1).div_ceil(parts)) / self.speed;
        let moved = f64::from(2 * parts + 1) * f64::from(m) * f64::from(n);
        if parts > 1 { work + SUM_LAUNCH + SUM_ELEMENT * moved } else { work }
    }

    /// The cheapest tile, and how many parts it takes k in.
    fn choose(shape: [u32; 3], caps: &Caps) -> Result<(Self, u32)> {
        let [m, k, n] = shape;
        let scratch = |parts: u32| u64::from(parts) * u64::from(m) * u64::from(n.next_multiple_of(4)) * 4;
        let splits = |tile: &Self, parts: u32| {
            // What a part does should be worth its end, and the parts have to be found room for.
            k / parts >= 2 * tile.k
                && parts <= caps.max_workgroups_per_dimension
                && scratch(parts) <= caps.max_binding_bytes.min(1 << 28)
                && (scratch(1) / 16).div_ceil(SUM_THREADS.into()) <= u64::from(caps.max_workgroups_per_dimension)
        };
        let mut best: Option<(f64, Self, u32)> = None;
        for tile in TILES {
            if !tile.fits(caps) {
                continue;
            }
            let mut parts = 1;
            while parts == 1 || parts <= MOST_PARTS && splits(&tile, parts) {
                let cost = tile.cost(shape, parts);
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

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let operand = |stored| Some(stored).filter(|_| problem.reads_operands());
    for stored in [operand(problem.a), operand(problem.b), problem.c, Some(result(problem))].into_iter().flatten() {
        within_buffer(&stored, caps)?;
    }
    let split = Split::choose(problem, caps);
    let mut plan = Plan { dispatches: Vec::new(), scratch_bytes: 0 };
    for m0 in (0..problem.m).step_by(split.m as usize) {
        for n0 in (0..problem.n).step_by(split.n as usize) {
            // A sum of no terms still has to be written.
            for k0 in (0..problem.k.max(1)).step_by(split.k as usize) {
                let part =
                    Part { m0, k0, n0, m: split.m.min(problem.m - m0), k: split.k.min(problem.k - k0), n: split.n.min(problem.n - n0) };
                part.dispatch(problem, caps, &mut plan)?;
            }
        }
    }
    Ok(plan)
}

/// A plan for the CPU, which needs no splitting.
pub fn cpu(problem: &Problem, variant: &str) -> Plan {
    let kernel = Kernel { id: KernelId::MatmulCpu, variant: variant.to_owned(), constants: constants_of_layout(problem) };
    Plan::of(Dispatch { kernel, params: whole(problem).into(), bindings: Vec::new(), grid: [1; 3] })
}

/// A plan for fragment shaders: a texel of the target is a row of four elements, and the target has a layer for each row of a block.
/// Targets are folded into lines of a power of two of texels, as [`fold`] tells, and `ldo` is the elements from one row of blocks to the
/// next. A binding's index is the sampler: a, b, c. Where A is put into uniform blocks, the scratch is bound in its place.
pub fn fragment(problem: &Problem, caps: &Caps, fragment: &FragmentCaps) -> Result<Plan> {
    // Blocks have four columns: a single column is computed as a row, which is stored the same, from Cᵀ = op(B)ᵀ·op(A)ᵀ.
    let turned = problem.n == 1 && problem.m > 1 && problem.c.is_none_or(|c| c.stride == 1);
    let in_order = if turned { [Slot::B, Slot::A, Slot::C] } else { [Slot::A, Slot::B, Slot::C] };
    let mut problem = if turned { transposed(problem) } else { problem.clone() };
    if problem.m == 1 && problem.transpose_a && problem.a.stride == 1 {
        (problem.transpose_a, problem.a) = (false, column_as_row(problem.a));
    }
    let problem = &problem;
    let read = [Some(problem.a).filter(|_| problem.reads_operands()), Some(problem.b).filter(|_| problem.reads_operands()), problem.c];
    let mut bindings = Vec::with_capacity(3);
    for ((index, slot), stored) in (0..).zip(in_order).zip(read) {
        if let Some(stored) = stored {
            let texels = stored.span().div_ceil(4);
            fold(texels, caps)?;
            bindings.push(Binding { slot, index, offset_bytes: 0, size_bytes: texels * 16 });
        }
    }
    if let Some(plan) = strips::strips(problem, &bindings, caps, fragment) {
        return Ok(plan);
    }
    let rows = match problem.m {
        0 | 1 => 1,
        2 => 2,
        m if fragment.targets >= strips::ROWS && u64::from(m) * u64::from(problem.n) >= LARGE_RESULT => strips::ROWS,
        _ => 4,
    };
    let (width, height) = fold(u64::from(problem.m.div_ceil(rows)) * u64::from(problem.n.div_ceil(4)), caps)?;
    let (bytes, max) = (u64::from(width) * u64::from(height) * u64::from(rows) * 16, MOST_BUFFER_BYTES);
    if bytes > max {
        return Err(Box::new(Error::LimitExceeded { what: "the size in bytes of a result of WebGL2", requested: bytes, max }));
    }
    let mut constants = constants_of_layout(problem);
    constants.extend([
        ("ROWS", rows),
        ("BLOCKS", 0),
        ("LOOPS", 1),
        ("A_VEC4", vec4_texels(&problem.a)),
        ("B_VEC4", vec4_texels(&problem.b)),
    ]);
    let params = Params { ldo: problem.n.div_ceil(4).saturating_mul(4), ..whole(problem) };
    let kernel = Kernel { id: KernelId::MatmulPacked, variant: format!("{rows}x4"), constants };
    Ok(Plan::of(Dispatch { kernel, params: params.into(), bindings, grid: [width, height, rows] }))
}

/// Elements of a result from which on blocks of eight rows are enough of them to keep a large GPU busy.
const LARGE_RESULT: u64 = 1 << 18;

/// Browsers give a buffer no more than this.
const MOST_BUFFER_BYTES: u64 = (1 << 30) - 1;

/// Whether the rows of a matrix in a texture begin with texels; a single row does in any case.
fn vec4_texels(stored: &Stored) -> u32 {
    u32::from(stored.stride.is_multiple_of(4) || stored.rows <= 1)
}

/// The product whose result is the transpose of this one's, where C is a packed column if it is read.
fn transposed(problem: &Problem) -> Problem {
    let &Problem { m, n, transpose_a, transpose_b, a, b, c, .. } = problem;
    Problem { m: n, n: m, transpose_a: !transpose_b, transpose_b: !transpose_a, a: b, b: a, c: c.map(column_as_row), ..*problem }
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
        ..Params::default()
    }
}

fn constants_of_layout(problem: &Problem) -> Vec<(&'static str, u32)> {
    vec![
        ("TRANSPOSE_A", u32::from(problem.transpose_a)),
        ("TRANSPOSE_B", u32::from(problem.transpose_b)),
        ("READS_C", u32::from(problem.c.is_some())),
    ]
}

fn result(problem: &Problem) -> Stored {
    Stored { rows: problem.m, columns: problem.n, stride: u64::from(problem.n) }
}

fn within_buffer(stored: &Stored, caps: &Caps) -> Result<()> {
    let bytes = stored.span() * 4;
    if bytes > caps.max_buffer_bytes {
        return Err(Box::new(Error::LimitExceeded {
            what: "the size in bytes of a matrix in one buffer",
            requested: bytes,
            max: caps.max_buffer_bytes,
        }));
    }
    Ok(())
}

/// The largest parts that a dispatch can do.
#[derive(Debug, Clone, Copy)]
struct Split {
    m: u32,
    k: u32,
    n: u32,
}

impl Split {
    fn choose(problem: &Problem, caps: &Caps) -> Self {
        let smallest = TILES[TILES.len() - 1];
        let most = |tile: u32| u32::try_from(u64::from(tile) * u64::from(caps.max_workgroups_per_dimension)).unwrap_or(u32::MAX);
        let mut split = Self { m: problem.m.min(most(smallest.m)).max(1), k: problem.k.max(1), n: problem.n.min(most(smallest.n)).max(1) };
        // A binding starts at the alignment before its first element, and its length is rounded up to a vec4.
        let room = caps.max_binding_bytes.saturating_sub(caps.binding_alignment_bytes + 16).max(64) / 4;
        loop {
            let Self { m, k, n } = split;
            let too_large = |rows: u32, columns: u32, stride: u64| u64::from(rows - 1) * stride + u64::from(columns) > room;
            let (a_rows, a_columns) = if problem.transpose_a { (k, m) } else { (m, k) };
            let (b_rows, b_columns) = if problem.transpose_b { (n, k) } else { (k, n) };
            let stride = problem.c.map_or(0, |c| c.stride).max(u64::from(problem.n));
            // Fewer rows make a range shorter by whole strides; fewer columns help only in a single row.
            if problem.reads_operands() && too_large(a_rows, a_columns, problem.a.stride) {
                halve(if (a_rows > 1) != problem.transpose_a { &mut split.m } else { &mut split.k });
            } else if problem.reads_operands() && too_large(b_rows, b_columns, problem.b.stride) {
                halve(if (b_rows > 1) != problem.transpose_b { &mut split.k } else { &mut split.n });
            } else if too_large(m, n, stride) {
                halve(if m > 1 { &mut split.m } else { &mut split.n });
            } else {
                return split;
            }
        }
    }
}

/// Half as much, in whole tiles where that is possible.
fn halve(part: &mut u32) {
    *part = if *part > 512 { (*part / 2).next_multiple_of(256) } else { part.div_ceil(2) };
}

/// One part of a split product.
struct Part {
    m0: u32,
    k0: u32,
    n0: u32,
    m: u32,
    k: u32,
    n: u32,
}

impl Part {
    /// Adds what computes this part.
    fn dispatch(&self, problem: &Problem, caps: &Caps, plan: &mut Plan) -> Result<()> {
        let in_order = |swap: bool, x: u32, y: u32| if swap { (y, x) } else { (x, y) };
        let a_at = in_order(problem.transpose_a, self.m0, self.k0);
        let b_at = in_order(problem.transpose_b, self.k0, self.n0);
        let a_size = in_order(problem.transpose_a, self.m, self.k);
        let b_size = in_order(problem.transpose_b, self.k, self.n);
        let (a, a_start) = window(Slot::A, 0, &problem.a, a_at, a_size, caps);
        let (b, b_start) = window(Slot::B, 1, &problem.b, b_at, b_size, caps);
        let size = (self.m, self.n);
        let (out, out_start) = window(Slot::Out, 2, &result(problem), (self.m0, self.n0), size, caps);
        // The first part along k adds C, the later ones what the earlier ones wrote.
        let c = problem.c.filter(|_| self.k0 == 0).map(|c| window(Slot::C, 4, &c, (self.m0, self.n0), size, caps));
        let c_start = c.map_or(0, |(_, start)| start);
        let params = Params { m: self.m, k: self.k, n: self.n, a_start, b_start, c_start, out_start, ..whole(problem) };
        let step = vector::step(problem, params, [a, b], caps);
        let step = if let Some(step) = step { step } else { tiled(problem, params, [a, b], caps)? };
        step.add_to(plan, out, c.map(|(binding, _)| binding), self.k0 > 0);
        Ok(())
    }
}

/// Whether four elements can be loaded at once.
fn vec4(start: u32, stride: u32) -> u32 {
    u32::from(start.is_multiple_of(4) && stride.is_multiple_of(4))
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

/// The launch of the register-tiled kernel.
fn tiled(problem: &Problem, params: Params, operands: [Binding; 2], caps: &Caps) -> Result<Step> {
    let (tile, parts) = Tile::choose([params.m, params.k, params.n], caps)?;
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
        ("A_VEC4", vec4(params.a_start, params.lda)),
        ("B_VEC4", vec4(params.b_start, params.ldb)),
        ("A_SCATTER", u32::from(!problem.transpose_a)),
        ("B_SCATTER", u32::from(problem.transpose_b)),
    ];
    let kernel = Kernel { id: KernelId::MatmulTiled, variant: format!("{}x{}x{}", tile.m, tile.n, tile.k), constants };
    Ok(Step { kernel, params, operands, grid: [params.n.div_ceil(tile.n), params.m.div_ceil(tile.m)], parts, k_step: tile.k })
}

impl Step {
    /// Adds the launch, and where k is split a second one that adds the parts up.
    fn add_to(self, plan: &mut Plan, out: Binding, c: Option<Binding>, accumulates: bool) {
        let Self { mut kernel, params, operands: [a, b], grid: [x, y], parts, k_step } = self;
        let stores = [
            ("OUT_VEC4", vec4(params.out_start, params.ldo) & vec4(params.n, 0)),
            ("READS_C", u32::from(c.is_some())),
            ("ACCUMULATES", u32::from(accumulates)),
        ];
        kernel.constants.push(("PARTS", u32::from(parts > 1)));
        if parts == 1 {
            kernel.constants.extend(stores);
            let bindings = [Some(a), Some(b), Some(out), c].into_iter().flatten().collect();
            plan.dispatches.push(Dispatch { kernel, params: params.into(), bindings, grid: [x, y, 1] });
            return;
        }
        let k_part = params.k.div_ceil(parts).next_multiple_of(k_step);
        let parts = params.k.div_ceil(k_part);
        let ldo = params.n.next_multiple_of(4);
        let scratch_bytes = u64::from(parts) * u64::from(params.m) * u64::from(ldo) * 4;
        let scratch = |index| Binding { slot: Slot::Scratch, index, offset_bytes: 0, size_bytes: scratch_bytes };
        kernel.constants.extend([("OUT_VEC4", 1), ("READS_C", 0), ("ACCUMULATES", 0)]);
        plan.dispatches.push(Dispatch {
            kernel,
            params: Params { ldo, out_start: 0, k_part, ..params }.into(),
            bindings: vec![a, b, scratch(2)],
            grid: [x, y, parts],
        });
        let constants = [("THREADS", SUM_THREADS)].into_iter().chain(stores).collect();
        plan.dispatches.push(Dispatch {
            kernel: Kernel { id: KernelId::MatmulSum, variant: String::new(), constants },
            params: Params { k: parts, lda: ldo, alpha: 1.0, ..params }.into(),
            bindings: [Some(scratch(0)), Some(out), c].into_iter().flatten().collect(),
            grid: [(params.m * (ldo / 4)).div_ceil(SUM_THREADS), 1, 1],
        });
        plan.scratch_bytes = plan.scratch_bytes.max(scratch_bytes);
    }
}

/// The binding that holds a part of a stored matrix, and the element of it at which the part starts.
fn window(slot: Slot, index: u32, stored: &Stored, at: (u32, u32), size: (u32, u32), caps: &Caps) -> (Binding, u32) {
    // An operand that is not read has no elements to point at.
    let first = if size.0 == 0 || size.1 == 0 { 0 } else { u64::from(at.0) * stored.stride + u64::from(at.1) };
    let length = Stored { rows: size.0, columns: size.1, stride: stored.stride }.span();
    let offset_bytes = first * 4 / caps.binding_alignment_bytes * caps.binding_alignment_bytes;
    let start = first - offset_bytes / 4;
    let size_bytes = ((start + length) * 4).next_multiple_of(16).max(16);
    (Binding { slot, index, offset_bytes, size_bytes }, start as u32)
}
