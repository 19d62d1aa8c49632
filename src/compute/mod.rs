//! The device itself, for more than products: memory, kernels of one's own, streams, and events that time, the same on every backend.
//!
//! ```text
//! KernelDefinition ─► Gpu::compile ─► Kernel ─┐
//!   WGSL, CUDA, PTX,    reflected, compiled,  ├─► Stream::launch ─► Stream::read
//!   a twin on the CPU   checked once          │     checked, then runs in order
//! Gpu::allocate ─────────────────────► Buffer ┘
//! ```
//!
//! ```
//! # fn main() -> lapidary::Result<()> {
//! use lapidary::compute::{KernelDefinition, Memory};
//! use lapidary::{Gpu, Options};
//!
//! // x ← a·x on whatever device is open.
//! let scale = KernelDefinition::new("scale")
//!     .wgsl("
//!         @group(0) @binding(0) var<storage, read_write> x: array<f32>;
//!         @group(0) @binding(1) var<uniform> a: f32;
//!         @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
//!             if id.x < arrayLength(&x) { x[id.x] *= a; }
//!         }")
//!     .cpu(|run, [x]| {
//!         let a: f32 = run.params();
//!         x.write::<f32>().iter_mut().for_each(|x| *x *= a);
//!     });
//!
//! let gpu = Gpu::open_blocking(Options::default())?;
//! let kernel = gpu.compile(&scale)?;
//! let x = gpu.allocate(100 * 4, Memory::Device)?;
//! let stream = gpu.stream()?;
//! stream.write(&x, 0, &[1.5f32; 100])?;
//! stream.launch(&kernel, [2, 1, 1], [&x], &2.0f32)?;
//! assert_eq!(stream.read::<f32>(&x, 0, 100)?.finish_blocking()?, [3.0; 100]);
//! # Ok(()) }
//! ```
//!
//! **Order.** What is put into one stream runs in order. Between streams, what uses the same buffer keeps the order of the calls, and the
//! rest may overlap: on CUDA, whose streams are real ones, and on Vulkan copies beside kernels where the device has a queue for copies alone.
//! Elsewhere all streams of a device are one queue, and on the CPU the work is done when the call returns. So a result never depends on the
//! backend; only the time does.
//!
//! **Life.** Handles keep their device alive and give back what they own when dropped, in whatever order; what the device still uses is
//! kept until it is done. After the loss of a device its handles end in [`Error::DeviceLost`](crate::Error::DeviceLost), and new ones are
//! made on a fresh device.

mod buffer;
mod definition;
mod kernel;
#[cfg(any(feature = "vulkan", feature = "webgpu"))]
pub(crate) mod reflection;
mod registry;
mod stream;
mod twin;

pub use buffer::{Argument, Buffer};
pub use bytemuck::Pod;
pub use definition::{Access, KernelDefinition, Language};
pub use kernel::Kernel;
pub(crate) use kernel::Signature;
pub(crate) use registry::Registry;
pub use stream::{Event, Reading, Stream};
pub(crate) use twin::{Part, outside};
pub use twin::{Run, Values};

pub use crate::info::{Capabilities, Memory};
