//! GPU matrix products for the browser and for native machines.
//!
//! **What** to compute (an op) is decided apart from **how** (a plan) and **where** (a backend):
//!
//! ```text
//! JS   matmul(a, b, {m, k, n}) ── web ──┐
//! Rust gpu.matmul(&a, &b, &op) ─────────┴─► ops::matmul ──► plan::matmul ──► backend ──► device
//!                                           what it means    (shape, caps)    upload
//!                                           and what is      ─► Plan,         submit
//!                                           refused          plain data       finish
//! ```
//!
//! ```
//! # fn main() -> lapidary::Result<()> {
//! use lapidary::{Gpu, Matmul, Options};
//! let gpu = Gpu::open_blocking(Options::default())?; // the best device that is there
//! let (a, b) = (vec![1.0; 64 * 32], vec![2.0; 32 * 48]);
//! let c = gpu.matmul_blocking(&a, &b, &Matmul::new(64, 32, 48))?;
//! assert_eq!(c, vec![64.0; 64 * 48]);
//! println!("{}", gpu.info()?.name);
//! # Ok(()) }
//! ```
//!
//! What waits for a device is async on every target; natively the `_blocking` methods wait.

// What the crate's own tests share with those of `tests/` calls it by its name.
#[cfg(test)]
extern crate self as lapidary;

mod backend;
mod benchmark;
#[cfg(not(target_arch = "wasm32"))]
mod blocking;
mod call;
#[cfg(not(target_arch = "wasm32"))]
mod ceilings;
mod clock;
#[cfg(not(target_arch = "wasm32"))]
pub mod compute;
#[cfg(not(target_arch = "wasm32"))]
mod devices;
mod dtype;
#[cfg(not(target_arch = "wasm32"))]
mod environment;
mod error;
mod expr;
#[cfg(not(target_arch = "wasm32"))]
mod files;
mod gpu;
mod host;
mod info;
pub mod kernels;
pub mod ops;
mod options;
#[cfg(not(target_arch = "wasm32"))]
mod out_of_core;
mod pending;
pub mod plan;
#[cfg(not(target_arch = "wasm32"))]
mod profile;
pub mod random;
mod select;
#[cfg(not(target_arch = "wasm32"))]
mod selector;
mod tensor;
#[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
mod tune;
pub mod verify;
#[cfg(target_arch = "wasm32")]
mod web;

pub use backend::MemoryStats;
pub use benchmark::Benchmark;
#[cfg(not(target_arch = "wasm32"))]
pub use blocking::default_gpu;
pub use call::Operand;
#[cfg(not(target_arch = "wasm32"))]
pub use ceilings::Ceilings;
#[cfg(not(target_arch = "wasm32"))]
pub use devices::{AdapterInfo, Devices, devices, devices_of};
pub use dtype::DType;
pub use error::{Error, Result};
pub use expr::{Conv, Expr, Padding, Pool};
pub use gpu::{Gpu, Report};
pub use host::{Element, HostSlice, HostVec};
pub use info::{BackendId, BackendState, Caps, DeviceInfo, DeviceKind, OtherBackend};
#[cfg(not(target_arch = "wasm32"))]
pub use info::{Capabilities, Dialect, MatrixUnit};
pub use ops::matmul::{Activation, Matmul, Precision};
#[cfg(not(target_arch = "wasm32"))]
pub use options::PipelineCache;
pub use options::{Choice, Options, PowerPreference};
#[cfg(not(target_arch = "wasm32"))]
pub use profile::{Operation, Phase, Profile};
#[cfg(not(target_arch = "wasm32"))]
pub use selector::{Refused, Selector};
pub use tensor::Tensor;
#[cfg(not(target_arch = "wasm32"))]
pub use tune::{Trial, Tuning};

/// The README's programs, which compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
