//! What each operation means, what it refuses, and nothing about where it runs.
//!
//! A new operation is a file here and a variant of [`Op`], its plan in `plan/`, its kernels in `shaders/<op>/` with their ids in `kernels`,
//! its twin in `backend/cpu`, and its cases in `tests/`.

pub mod conv;
pub mod elementwise;
pub mod fft;
pub mod fused;
pub mod map;
pub mod matmul;
pub mod normalize;
pub mod pool;
pub mod reduce;
pub mod window;

use crate::dtype::{DType, Extent};

/// A checked operation: what a device is asked to plan and to run.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A product.
    Matmul(matmul::Problem),
    /// An elementwise operation.
    Map(map::Problem),
    /// A convolution.
    Conv(conv::Problem),
    /// A pool.
    Pool(pool::Problem),
    /// A Fourier transform.
    Fft(fft::Problem),
    /// A reduction.
    Reduce(reduce::Problem),
    /// Softmax or a norm.
    Normalize(normalize::Problem),
    /// One of these and what follows it, on backends whose kernels do both at once.
    Fused(std::sync::Arc<fused::Fused>),
}

impl Op {
    /// Elements of the result.
    pub fn elements(&self) -> u64 {
        match self {
            Self::Matmul(problem) => problem.elements(),
            Self::Map(problem) => problem.elements(),
            Self::Conv(problem) => problem.elements(),
            Self::Pool(problem) => problem.elements(),
            Self::Fft(problem) => problem.elements(),
            Self::Reduce(problem) => problem.rows(),
            Self::Normalize(problem) => problem.values.elements(),
            Self::Fused(fused) => fused.end.elements(),
        }
    }

    /// How much the result holds.
    pub(crate) fn extent(&self) -> Extent {
        let dtype = match self {
            Self::Matmul(problem) => problem.result,
            Self::Map(problem) => problem.dtype,
            Self::Conv(problem) => problem.dtype,
            Self::Pool(problem) => problem.result(),
            Self::Fft(_) => DType::F32,
            Self::Reduce(problem) => problem.dtype(),
            Self::Normalize(problem) => problem.dtype(),
            Self::Fused(fused) => fused.end.dtype,
        };
        Extent { elements: self.elements(), dtype }
    }

    /// Whether the operands are read at all.
    pub fn reads_operands(&self) -> bool {
        match self {
            Self::Matmul(problem) => problem.reads_operands(),
            Self::Map(_) | Self::Conv(_) | Self::Pool(_) => self.elements() > 0,
            Self::Fft(_) => self.elements() > 0,
            Self::Reduce(problem) => problem.values.elements() > 0,
            Self::Normalize(problem) => problem.values.elements() > 0,
            Self::Fused(fused) => fused.core.reads_operands(),
        }
    }

    /// Its name and its size, for reports.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn label(&self) -> (&'static str, String) {
        match self {
            Self::Matmul(matmul::Problem { m, k, n, .. }) => ("matmul", format!("{m}x{k}x{n}")),
            Self::Conv(problem) => {
                let &conv::Problem { batch, groups, channels, filters, windows: [y, x], .. } = problem;
                ("conv", format!("{batch}x{}x{}x{} by {}x{}x{}", groups * channels, y.input, x.input, groups * filters, y.taps, x.taps))
            }
            Self::Fft(fft::Problem { outer, length, inner, .. }) => ("fft", format!("{outer}x{length}x{inner}")),
            Self::Pool(problem) => {
                let &pool::Problem { planes, windows: [z, y, x], .. } = problem;
                ("pool", format!("{planes}x{}x{}x{} by {}x{}x{}", z.input, y.input, x.input, z.taps, y.taps, x.taps))
            }
            Self::Map(problem) => ("map", sizes(&problem.shape)),
            Self::Reduce(problem) => (problem.fold.name(), sizes(&problem.values.shape)),
            Self::Normalize(problem) => (problem.form.name(), sizes(&problem.values.shape)),
            Self::Fused(fused) => fused.core.label(),
        }
    }

    /// The least that kernels have to move: each element that is read or written, once.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn least_bytes(&self) -> u64 {
        match self {
            Self::Matmul(problem) => problem.least_bytes(),
            Self::Map(problem) => problem.least_bytes(),
            Self::Conv(problem) => problem.least_bytes(),
            Self::Pool(problem) => problem.least_bytes(),
            Self::Fft(problem) => problem.least_bytes(),
            Self::Reduce(problem) => problem.least_bytes(),
            Self::Normalize(problem) => problem.least_bytes(),
            Self::Fused(fused) => fused.least_bytes(),
        }
    }

    /// Multiplications of numbers, by which the time that it takes is guessed.
    pub fn multiplications(&self) -> u64 {
        match self {
            Self::Matmul(problem) => problem.multiplications(),
            Self::Map(problem) => problem.elements(),
            Self::Conv(problem) => problem.multiplications(),
            Self::Pool(problem) => problem.seen(),
            Self::Fft(problem) => problem.multiplications(),
            Self::Reduce(problem) => problem.values.elements(),
            Self::Normalize(problem) => problem.values.elements(),
            Self::Fused(fused) => fused.core.multiplications(),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn sizes(shape: &[u32]) -> String {
    crate::tensor::joined(&shape.iter().map(|&size| size.into()).collect::<Vec<_>>(), "x")
}
