//! Plans for the matrix product. Every splitting happens here: over m, n and k where an operand is larger than a binding may be, over
//! m and n where there would be more workgroups than a dispatch may have.

use std::fmt;

use super::{Binding, Dispatch, Plan, Slot};
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Problem, Stored};

/// What a product's kernel is told at run time; the layout is that of `Params` in `shaders/matmul/tiled.wgsl`.
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
}

impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { m, k, n, lda, ldb, ldc, ldo, a_start, b_start, c_start, out_start, alpha, beta } = self;
        write!(f, "{m}x{k}x{n} strides {lda},{ldb},{ldc},{ldo} starts {a_start},{b_start},{c_start},{out_start} alpha {alpha} beta {beta}")
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
    /// Multiplications a second of one workgroup, relative to the largest tile: measured on an NVIDIA H200.
    speed: f64,
}

const TILES: [Tile; 4] = [
    Tile { m: 256, n: 128, k: 16, threads_m: 16, threads_n: 16, speed: 1.0 },
    Tile { m: 64, n: 64, k: 16, threads_m: 8, threads_n: 16, speed: 0.93 },
    Tile { m: 32, n: 64, k: 32, threads_m: 8, threads_n: 16, speed: 0.7 },
    // For what fits a few workgroups: no slower there, and sooner compiled, which counts where a CPU emulates the GPU.
    Tile { m: 32, n: 32, k: 16, threads_m: 8, threads_n: 8, speed: 0.5 },
];

/// Workgroups assumed to run at once. No browser tells; large GPUs have 100 to 200 multiprocessors, and smaller ones lose little by tiles
/// smaller than they could take.
const PARALLEL_WORKGROUPS: u64 = 128;

impl Tile {
    fn threads(&self) -> u32 {
        self.threads_m * self.threads_n
    }

    /// Both slices, each row padded by a vec4 at most.
    fn workgroup_bytes(&self) -> u32 {
        self.k * (self.m / 4 + 1 + self.n / 4 + 1) * 16
    }

    fn fits(&self, caps: &Caps) -> bool {
        self.threads() <= caps.max_workgroup_invocations && self.workgroup_bytes() <= caps.max_workgroup_bytes
    }

    /// The time of a product in arbitrary units: rounds of workgroups, times a tile's work, over its speed.
    fn cost(&self, m: u32, n: u32) -> f64 {
        let workgroups = u64::from(m.div_ceil(self.m)) * u64::from(n.div_ceil(self.n));
        let rounds = workgroups.div_ceil(PARALLEL_WORKGROUPS);
        rounds as f64 * f64::from(self.m * self.n) / self.speed
    }

    fn choose(m: u32, n: u32, caps: &Caps) -> Result<Self> {
        let mut best: Option<(f64, Self)> = None;
        for tile in TILES {
            let cost = tile.cost(m, n);
            if tile.fits(caps) && best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, tile));
            }
        }
        best.map(|(_, tile)| tile).ok_or(Box::new(Error::LimitExceeded {
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
    let mut dispatches = Vec::new();
    for m0 in (0..problem.m).step_by(split.m as usize) {
        for n0 in (0..problem.n).step_by(split.n as usize) {
            // A sum of no terms still has to be written.
            for k0 in (0..problem.k.max(1)).step_by(split.k as usize) {
                let part =
                    Part { m0, k0, n0, m: split.m.min(problem.m - m0), k: split.k.min(problem.k - k0), n: split.n.min(problem.n - n0) };
                dispatches.push(part.dispatch(problem, caps)?);
            }
        }
    }
    Ok(Plan { dispatches })
}

/// A plan for the CPU, which needs no splitting.
pub fn cpu(problem: &Problem, variant: &str) -> Plan {
    let kernel = Kernel { id: KernelId::MatmulCpu, variant: variant.to_owned(), constants: constants_of_layout(problem) };
    Plan { dispatches: vec![Dispatch { kernel, params: whole(problem), bindings: Vec::new(), grid: [1; 3] }] }
}

/// A plan for fragment shaders: a texel of the target is a row of four elements, and the target has a layer for each row of a block.
/// Targets are folded into lines of a power of two of texels, as [`fold`] tells. A binding's index is the sampler: a, b, c.
pub fn fragment(problem: &Problem, caps: &Caps) -> Result<Plan> {
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
    let rows = match problem.m {
        0 | 1 => 1,
        2 => 2,
        _ => 4,
    };
    let (width, height) = fold(u64::from(problem.m.div_ceil(rows)) * u64::from(problem.n.div_ceil(4)), caps)?;
    // Where a single row begins is at the first texel in any case.
    let vec4 = |stored: &Stored| u32::from(stored.stride.is_multiple_of(4) || stored.rows <= 1);
    // Browsers give a buffer for the way back less than this.
    let (bytes, max) = (u64::from(width) * u64::from(height) * u64::from(rows) * 16, (1 << 30) - 1);
    if bytes > max {
        return Err(Box::new(Error::LimitExceeded { what: "the size in bytes of a result of WebGL2", requested: bytes, max }));
    }
    let mut constants = constants_of_layout(problem);
    constants.extend([("ROWS", rows), ("A_VEC4", vec4(&problem.a)), ("B_VEC4", vec4(&problem.b))]);
    let kernel = Kernel { id: KernelId::MatmulPacked, variant: format!("{rows}x4"), constants };
    Ok(Plan { dispatches: vec![Dispatch { kernel, params: whole(problem), bindings, grid: [width, height, rows] }] })
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
    fn dispatch(&self, problem: &Problem, caps: &Caps) -> Result<Dispatch> {
        let tile = Tile::choose(self.m, self.n, caps)?;
        let in_order = |swap: bool, x: u32, y: u32| if swap { (y, x) } else { (x, y) };
        let a_at = in_order(problem.transpose_a, self.m0, self.k0);
        let b_at = in_order(problem.transpose_b, self.k0, self.n0);
        let a_size = in_order(problem.transpose_a, self.m, self.k);
        let b_size = in_order(problem.transpose_b, self.k, self.n);
        let out = result(problem);
        let mut bindings = Vec::with_capacity(4);
        let mut bind = |slot, index, stored: &Stored, at, size| {
            let (binding, start) = window(slot, index, stored, at, size, caps);
            bindings.push(binding);
            start
        };
        let a_start = bind(Slot::A, 0, &problem.a, a_at, a_size);
        let b_start = bind(Slot::B, 1, &problem.b, b_at, b_size);
        let out_start = bind(Slot::Out, 2, &out, (self.m0, self.n0), (self.m, self.n));
        // The first part along k adds C, the later ones what the earlier ones wrote.
        let reads_c = problem.c.filter(|_| self.k0 == 0);
        let c_start = reads_c.map_or(0, |c| bind(Slot::C, 4, &c, (self.m0, self.n0), (self.m, self.n)));
        let params = Params { m: self.m, k: self.k, n: self.n, a_start, b_start, c_start, out_start, ..whole(problem) };
        let vec4 = |start: u32, stride: u32| u32::from(start.is_multiple_of(4) && stride.is_multiple_of(4));
        let (a_scatter, b_scatter) = (u32::from(!problem.transpose_a), u32::from(problem.transpose_b));
        let constants = vec![
            ("TILE_M", tile.m),
            ("TILE_N", tile.n),
            ("TILE_K", tile.k),
            ("THREADS_M", tile.threads_m),
            ("THREADS_N", tile.threads_n),
            ("THREADS", tile.threads()),
            ("A_GROUPS", tile.m / 4 / tile.threads_m),
            ("B_GROUPS", tile.n / 4 / tile.threads_n),
            ("A_LOADS", tile.m * tile.k / 4 / tile.threads()),
            ("B_LOADS", tile.n * tile.k / 4 / tile.threads()),
            ("A_VEC4", vec4(a_start, params.lda)),
            ("B_VEC4", vec4(b_start, params.ldb)),
            ("OUT_VEC4", vec4(out_start, params.ldo) & u32::from(self.n.is_multiple_of(4))),
            ("A_SCATTER", a_scatter),
            ("B_SCATTER", b_scatter),
            ("READS_C", u32::from(reads_c.is_some())),
            ("ACCUMULATES", u32::from(self.k0 > 0)),
        ];
        let variant = format!("{}x{}x{}", tile.m, tile.n, tile.k);
        let kernel = Kernel { id: KernelId::MatmulTiled, variant, constants };
        Ok(Dispatch { kernel, params, bindings, grid: [self.n.div_ceil(tile.n), self.m.div_ceil(tile.m), 1] })
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
