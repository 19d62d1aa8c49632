//! Plans for the matrix product. Every splitting happens here: over m, n and k where an operand is larger than a binding may be, over
//! m and n where there would be more workgroups than a dispatch may have.

mod batch;
mod cooperative;
mod copy;
#[cfg(not(target_arch = "wasm32"))]
mod cuda;
mod direct;
mod edges;
mod fragment;
#[cfg(feature = "webgpu")]
pub mod group;
mod int8;
mod parts;
mod rows;
mod shared;
mod small;
mod split;
mod step;
mod strips;
mod tile;
mod vector;
mod window;

use std::fmt;

#[cfg(feature = "cuda")]
#[cfg(any(target_os = "linux", target_os = "windows"))]
pub(crate) use cuda::tiles as cuda_tiles;
#[cfg(not(target_arch = "wasm32"))]
pub use cuda::{cublaslt, cuda, is_of_vectors};
pub use direct::stand_in;
pub use fragment::{fold, fragment};
pub(super) use shared::shared;
pub(super) use small::in_blocks;
pub use strips::{FragmentCaps, MOST_BLOCK_BYTES};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use tile::SMALLEST_WORKGROUP;
#[cfg(any(feature = "webgpu", all(feature = "vulkan", not(target_arch = "wasm32"))))]
pub(crate) use tile::tiles;
pub(super) use window::{FOURS_OF_LINE, LINES, ROOM, windowed};

use super::{Dispatch, Plan};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Activation, Problem, Stored};
use parts::PartSize;

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
    /// For CUDA alone, whose kernels are told at run time what WGSL needs to know before: 0 for a result of f32, 1 for one of f16; of 8-bit
    /// integers how operands are stored, by the bits of `shaders/matmul/int8.cu`.
    pub result: u32,
    /// The rest is for windows (`shaders/conv`), of which `out_width` is not 0. Otherwise `shaders/matmul/vector.cu` is told in `height` and `width`
    /// how far apart a vector's elements and the vectors are, in `before_y` how many lanes share a line, and in `before_x` whether they are columns.
    pub bias_inner: u32,
    pub height: u32,
    pub width: u32,
    pub out_width: u32,
    pub before_y: u32,
    pub before_x: u32,
    /// Of 8-bit integers: A's zero point in the low half, B's in the high one.
    pub zero_points: u32,
}

/// The same for a kernel that also computes something of its result, and the words that tell of that: together as many as [`Words`](super::Words).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[expect(missing_docs, reason = "named as in the shader")]
pub struct Ended {
    pub params: Params,
    pub more: [u32; 32],
}

impl Params {
    /// Where an item of the batch starts in A, B and C.
    pub fn starts(&self, item: u32) -> [u64; 3] {
        let (outer, inner) = (u64::from(item / self.inner.max(1)), u64::from(item % self.inner.max(1)));
        let start =
            |first: u32, outer_step: u32, inner_step: u32| u64::from(first) + outer * u64::from(outer_step) + inner * u64::from(inner_step);
        [
            start(self.a_start, self.a_outer, self.a_inner),
            start(self.b_start, self.b_outer, self.b_inner),
            start(self.c_start, self.c_outer, self.c_inner),
        ]
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
        if *result > 0 {
            write!(f, " result {result}")?;
        }
        let Self { zero_points, bias_inner, height, width, out_width, before_y, before_x, .. } = self;
        if *zero_points > 0 {
            write!(f, " zero points {},{}", *zero_points as i16, (*zero_points >> 16) as i16)?;
        }
        if *out_width == 0 && *before_y > 0 {
            let lie = if *before_x > 0 { "columns" } else { "rows" };
            write!(f, " {before_y} lanes for {lie} {width} apart of elements {height} apart")?;
        }
        if *out_width > 0 {
            write!(f, " windows {out_width} a row of {height}x{width} from -{before_y},-{before_x} bias stride {bias_inner}")?;
        }
        Ok(())
    }
}

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let problem = &batch::merged(problem);
    within_buffers(problem, caps)?;
    split::check(problem, cooperative::unit(caps))?;
    let part = PartSize::choose(problem, caps);
    // What several parts make of an operand would be several forms.
    let without = Caps { keeps: [false; 2], ..caps.clone() };
    let caps = if part.is_whole(problem) { caps } else { &without };
    let mut plan = Plan { dispatches: Vec::new(), scratch_bytes: 0 };
    for items in batch::launches(&problem.batch, part.outer, part.inner) {
        part.dispatch(problem, &items, caps, &mut plan)?;
    }
    Ok(plan)
}

/// A plan for the CPU, which needs no splitting. The grid is of threads that share the rows or columns of the result, or the products of a
/// batch: as many as `threads` says of what is left of the batch.
pub fn cpu(problem: &Problem, variant: &str, threads: impl FnOnce(&Problem) -> u32) -> Plan {
    let problem = &batch::merged(problem);
    let threads = threads(problem);
    let variant = if threads > 1 { format!("{variant}, {threads} threads") } else { variant.to_owned() };
    let kernel = Kernel { id: KernelId::MatmulCpu, variant, source: None, constants: constants_of_layout(problem) };
    let zero_points = problem.integers.map_or(0, |integers| packed(integers.zero_points));
    Plan::of(Dispatch { kernel, params: Params { zero_points, ..whole(problem) }.into(), bindings: Vec::new(), grid: [threads, 1, 1] })
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

/// Zero points as a kernel is told them.
fn packed([a, b]: [i32; 2]) -> u32 {
    u32::from(a as u16) | u32::from(b as u16) << 16
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

/// Whether four elements can be loaded at once, wherever in a row or a batch: each of these numbers is a multiple of four.
fn vec4(numbers: &[u32]) -> u32 {
    u32::from(numbers.iter().all(|number| number.is_multiple_of(4)))
}

/// Whether A and B are of f16.
fn operands_f16(problem: &Problem) -> u32 {
    u32::from(problem.dtype != DType::F32)
}
