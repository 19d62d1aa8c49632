//! What each operation means, what it refuses, and nothing about where it runs.
//!
//! A new operation is a file here and a variant of [`Op`], its plan in `plan/`, its kernels in `shaders/<op>/` with their ids in `kernels`,
//! its twin in `backend/cpu`, and its cases in `tests/`.

pub mod matmul;

/// A checked operation: what a device is asked to plan and to run.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A product.
    Matmul(matmul::Problem),
}

impl Op {
    /// Elements of the result.
    pub fn elements(&self) -> u64 {
        match self {
            Self::Matmul(problem) => problem.elements(),
        }
    }

    /// Whether the operands are read at all.
    pub fn reads_operands(&self) -> bool {
        match self {
            Self::Matmul(problem) => problem.reads_operands(),
        }
    }

    /// Its name and its size, for reports.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn label(&self) -> (&'static str, String) {
        match self {
            Self::Matmul(matmul::Problem { m, k, n, .. }) => ("matmul", format!("{m}x{k}x{n}")),
        }
    }

    /// The least that kernels have to move: each element that is read or written, once.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn least_bytes(&self) -> u64 {
        match self {
            Self::Matmul(problem) => {
                let &matmul::Problem { m, k, n, .. } = problem;
                let operands = if problem.reads_operands() { u64::from(k) * (u64::from(m) + u64::from(n)) } else { 0 };
                let added = if problem.c.is_some() { problem.elements() } else { 0 };
                (operands + added + problem.elements()) * 4
            }
        }
    }

    /// Multiplications of numbers, by which the time that it takes is guessed.
    pub fn multiplications(&self) -> u64 {
        match self {
            Self::Matmul(problem) => problem.multiplications(),
        }
    }
}
