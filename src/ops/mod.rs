//! What each operation means, what it refuses, and nothing about where it runs.
//!
//! A new operation is a file here, its plan in `plan/`, its kernels in `shaders/<op>/` with their ids in `kernels`, and its cases in
//! `tests/`.

pub mod matmul;
