//! Where plans run. A backend obeys: what is checked and decided above it is not checked or decided again.
//!
//! Each has the same rooms: `adapter` finds and opens a device and says what it can do, `buffer` holds its memory, `pipeline`
//! compiles kernels and keeps them, `submit` runs plans and brings results back.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod compute;
#[allow(unsafe_code, reason = "instructions of the CPU's")]
pub(crate) mod cpu;
#[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
#[allow(unsafe_code, reason = "the driver's C interface")]
pub(crate) mod cuda;
pub(crate) mod device;
#[cfg(all(any(feature = "vulkan", feature = "webgpu"), not(target_arch = "wasm32")))]
#[allow(unsafe_code, reason = "the C library's")]
mod exit;
#[cfg(all(test, any(feature = "vulkan", feature = "webgpu"), not(target_arch = "wasm32")))]
mod limited;
pub(crate) mod pool;
#[cfg(any(
    all(feature = "cuda", any(target_os = "linux", target_os = "windows")),
    all(feature = "vulkan", not(target_arch = "wasm32")),
    all(feature = "webgl2", target_arch = "wasm32"),
    feature = "webgpu"
))]
pub(crate) mod recent;
#[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
#[allow(unsafe_code, reason = "the driver's C interface")]
pub(crate) mod vulkan;
#[cfg(all(feature = "webgl2", target_arch = "wasm32"))]
pub(crate) mod webgl2;
#[cfg(feature = "webgpu")]
pub(crate) mod webgpu;

use std::pin::Pin;

use crate::dtype::Extent;
use crate::error::Result;
use crate::host::{HostSlice, HostVec};
use crate::ops::Op;
use crate::plan::Plan;
#[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
use crate::plan::tuned::Tuned;

/// A future on the heap. One that is not is compiled anew into each that waits for it, and moved through all of them.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
#[cfg(target_arch = "wasm32")]
pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What tells how many milliseconds something took by the device's own clock, once all work so far is done; None if that failed.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) type Timer = Box<dyn FnOnce() -> Option<f64> + Send>;

/// A device's memory and time, as the rest of the crate uses them.
///
/// Everything up to [`submit`](Self::submit) returns at once and reads its arguments before it does; errors that a device reports
/// later come out of [`finish`](Self::finish), or of what reads a queued result. Nothing here is retried and no result is given by a device that was lost:
/// [`Gpu`](crate::Gpu) sees to the rest.
pub(crate) trait Backend {
    /// Memory of the device, given back when dropped.
    type Buffer;
    /// Work under way.
    type Running;

    /// Chooses how this device computes.
    fn plan(&self, op: &Op) -> Result<Plan>;

    /// The same, or another way to the same result that can begin sooner, for work that somebody waits for: where a kernel is not compiled
    /// yet, one that is compiled in no time may stand in.
    #[cfg(target_arch = "wasm32")]
    fn plan_soon(&self, op: &Op) -> Result<Plan> {
        self.plan(op)
    }

    /// The tiles that there are to choose from in a product, by their sizes; none if the device does not choose.
    #[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
    fn tiles(&self) -> Vec<String> {
        Vec::new()
    }

    /// The plan as it would be with these tiles.
    #[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
    fn plan_tuned(&self, op: &Op, _tuned: Tuned) -> Result<Plan> {
        self.plan(op)
    }

    /// Memory with the values in it.
    fn upload(&self, values: &HostSlice<'_>) -> Result<Self::Buffer>;

    /// The same for a tensor, which stays for others to read.
    fn keep(&self, values: &HostSlice<'_>) -> Result<Self::Buffer> {
        self.upload(values)
    }

    /// The same as [`upload`](Self::upload), with what tells the time of it; None if the device has no clock for that.
    #[cfg(not(target_arch = "wasm32"))]
    fn upload_timed(&self, values: &HostSlice<'_>) -> Result<(Self::Buffer, Option<Timer>)> {
        Ok((self.upload(values)?, None))
    }

    /// Memory for the result of a plan, its contents unspecified.
    fn allocate(&self, plan: &Plan, op: &Op) -> Result<Self::Buffer>;

    /// Starts a plan, once or `repeats` times over. `operands` are its inputs in order, those that it does not read absent; its bindings
    /// lie within them.
    fn submit(&self, plan: &Plan, operands: &[Option<Bound<'_, Self::Buffer>>], out: &Self::Buffer, how: How) -> Result<Self::Running>;

    /// Records a plan without waiting for anything, so that many share a submission, and gives the memory of its result; None if the device
    /// has no queue, or this operation has to be waited for. What goes wrong comes out when the result is downloaded or used.
    fn queue(&self, _op: &Op, _operands: &[Option<&Self::Buffer>]) -> Result<Option<Self::Buffer>> {
        Ok(None)
    }

    /// Waits for the work, and brings the result if it was asked for. An error if the device reported one, or was lost, meanwhile.
    async fn finish(&self, running: Self::Running) -> Result<Finished>;

    /// Copies a result that holds so much back to the host.
    async fn download(&self, buffer: &Self::Buffer, extent: Extent) -> Result<HostVec>;

    /// The same with the milliseconds that it took by the device's own clock; None if the device has none for that.
    #[cfg(not(target_arch = "wasm32"))]
    async fn download_timed(&self, buffer: &Self::Buffer, extent: Extent) -> Result<(HostVec, Option<f64>)> {
        Ok((self.download(buffer, extent).await?, None))
    }

    /// Waits until everything so far is done. An error if the device reported one that no other call was told of.
    async fn synchronize(&self) -> Result<()>;

    /// Why the device is lost, if it is.
    fn lost(&self) -> Option<String>;

    /// Memory in use.
    fn memory(&self) -> MemoryStats;

    /// Gives free memory back to the system.
    fn trim(&self);
}

/// An operand as a backend gets it.
pub(crate) enum Bound<'a, Buffer> {
    /// On the device.
    Buffer(&'a Buffer),
    /// On the host: only for the CPU, which reads it where it is.
    Host(HostSlice<'a>),
}

/// How a plan is to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct How {
    /// How often, in one submission.
    pub repeats: u32,
    /// Whether the kernel's time is wanted, which may cost a little.
    pub timed: bool,
    /// How much of the result comes back to the host; no elements for none of it.
    pub download: Extent,
}

/// Work that is done.
pub(crate) struct Finished {
    /// The result, if it was asked for.
    pub data: Option<HostVec>,
    /// The kernel's time, if it was asked for.
    pub kernel_ms: f64,
    /// Whether a clock of the device gave that time, rather than one outside.
    pub device_clock: bool,
    /// The time of the result's way to the host by the device's clock, if it has one for that and the kernel's time was asked for.
    #[cfg(not(target_arch = "wasm32"))]
    pub download_ms: Option<f64>,
}

/// Memory of a device in use, of which operands, results and what kernels need beside them are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryStats {
    /// Bytes of buffers that calls and tensors hold.
    pub used_bytes: u64,
    /// Bytes of free buffers kept for reuse, of what is free in those that small tensors share, and of the forms in which tensors that are
    /// multiplied again and again are kept beside them.
    pub pooled_bytes: u64,
    /// The most that `used_bytes` has been.
    pub peak_bytes: u64,
    /// Buffers in use.
    pub buffers: u64,
    /// How often a free buffer served again.
    #[cfg(not(target_arch = "wasm32"))]
    pub hits: u64,
    /// How often one had to be made.
    #[cfg(not(target_arch = "wasm32"))]
    pub misses: u64,
}
