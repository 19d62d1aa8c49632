//! What each operation took, part by part: bringing its operands to the device, its kernels, and bringing its result back.
//!
//! Each part is timed by the device's own clock where it has one for it: CUDA by events and Vulkan by timestamps for all three parts of a
//! product, wgpu by timestamps for kernels. Elsewhere the host's clock is used, and said to be. Launches and copies in a handle's streams
//! ([`compute`](crate::compute)) are recorded as their events would tell, a kernel with the bytes of the buffers that it is given; each is
//! waited for. While nobody profiles, a call looks at one flag and does no more.
//!
//! ```
//! # fn main() -> lapidary::Result<()> {
//! use lapidary::{Gpu, Matmul, Options};
//! let gpu = Gpu::open_blocking(Options { profile: true, ..Options::default() })?;
//! let a = vec![1.0; 64 * 64];
//! gpu.matmul_blocking(&a, &a, &Matmul::new(64, 64, 64))?;
//! let profile = gpu.profile();
//! assert_eq!(profile.operations.len(), 1);
//! println!("{profile}"); // a table; `to_json` and `to_trace` are for other programs
//! # Ok(()) }
//! ```

mod export;
mod table;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Instant;

use crate::backend::device::Opened;
use crate::backend::{Finished, Timer};
use crate::call::Call;
use crate::dtype::DType;
use crate::gpu::{Gpu, Report};
use crate::info::{BackendId, DeviceInfo};
use crate::ops::Op;
use crate::plan::Plan;
use crate::tensor::Tensor;

/// Operations that are kept; what comes after them is only counted.
const MOST: usize = 1 << 16;

/// A part of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Phase {
    /// Milliseconds that it took.
    pub ms: f64,
    /// Bytes that it had to move: over the bus, or by kernels each element of the operands and of the result once.
    pub bytes: u64,
    /// Whether the device's clock gave the time, rather than the host's.
    pub device_clock: bool,
}

impl Phase {
    fn new(device_ms: Option<f64>, host_ms: f64, bytes: u64) -> Self {
        Self { ms: device_ms.unwrap_or(host_ms), bytes, device_clock: device_ms.is_some() }
    }
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Operation {
    /// What was done, e.g. `matmul`; `tensor` and `to_host` where a matrix alone was moved; `launch`, `write`, `read` and `copy` in a stream.
    pub name: &'static str,
    /// Its size, e.g. `1024x512x256`; a launch's grid.
    pub size: String,
    /// What computed.
    pub backend: BackendId,
    /// The adapter's name.
    pub device: String,
    /// The kernel that ran; empty if none did.
    pub kernel: String,
    /// When it was called, in milliseconds of the host's clock since the process opened its first device.
    pub start_ms: f64,
    /// From the call to the result, by the host's clock.
    pub total_ms: f64,
    /// Operands to the device.
    pub upload: Phase,
    /// The kernels.
    pub compute: Phase,
    /// The result to the host.
    pub download: Phase,
}

/// What the device's clock will say, or has said, of the ways of an operation's operands and result.
#[derive(Default)]
pub(crate) struct Clocks {
    /// One for each upload.
    pub uploads: Vec<Option<Timer>>,
    pub download_ms: Option<f64>,
    /// Whether the result stays on the device.
    pub keeps: bool,
}

/// What a stream of [`compute`](crate::compute) did, and the bytes that it is about.
pub(crate) enum Done<'a> {
    Write(u64),
    Read(u64),
    Copy(u64),
    Launch { kernel: &'a str, grid: [u32; 3], bytes: u64 },
}

impl Operation {
    /// One that has just ended.
    fn new(name: &'static str, size: String, info: &DeviceInfo, total_ms: f64) -> Self {
        Self {
            name,
            size,
            backend: info.backend,
            device: info.name.clone(),
            kernel: String::new(),
            start_ms: 0.0,
            total_ms,
            upload: Phase::default(),
            compute: Phase::default(),
            download: Phase::default(),
        }
    }

    /// One that computes.
    pub(crate) fn of_call<Data>(call: &Call<'_>, opened: &Opened, report: &Report<Data>, clocks: Clocks) -> Self {
        let (name, size) = call.op.label();
        let computes = report.kernel != "none";
        let upload_bytes = if computes { call.upload_bytes(opened) } else { 0 };
        let download_bytes = if clocks.keeps { 0 } else { call.op.extent().bytes() };
        // All of them by the device's clock, or all by the host's.
        let uploaded_ms = clocks.uploads.into_iter().map(|timer| timer?()).sum::<Option<f64>>().filter(|_| upload_bytes > 0);
        Self {
            kernel: report.kernel.clone(),
            upload: Phase::new(uploaded_ms, report.upload_ms, upload_bytes),
            compute: Phase::new(
                Some(report.kernel_ms).filter(|_| report.device_clock),
                report.kernel_ms,
                if computes { call.op.least_bytes() } else { 0 },
            ),
            download: Phase::new(clocks.download_ms, report.download_ms, download_bytes),
            ..Self::new(name, size, &opened.info, report.total_ms)
        }
    }

    /// One of an expression, whose operands are on the device and whose result stays there; none is finished if there was nothing to compute.
    pub(crate) fn of_step(op: &Op, plan: &Plan, opened: &Opened, finished: Option<&Finished>, total_ms: f64) -> Self {
        let (name, size) = op.label();
        let compute = finished.map(|Finished { kernel_ms, device_clock, .. }| {
            Phase::new(Some(*kernel_ms).filter(|_| *device_clock), *kernel_ms, op.least_bytes())
        });
        Self { kernel: plan.kernel(), compute: compute.unwrap_or_default(), ..Self::new(name, size, &opened.info, total_ms) }
    }

    /// A matrix on its way to the device.
    pub(crate) fn of_upload(tensor: &Tensor, info: &DeviceInfo, timer: Option<Timer>, total_ms: f64) -> Self {
        let (rows, columns) = (tensor.rows(), tensor.columns());
        let upload = Phase::new(timer.and_then(|timer| timer()), total_ms, rows * columns * tensor.dtype().bytes());
        Self { upload, ..Self::new("tensor", format!("{rows}x{columns}"), info, total_ms) }
    }

    /// A matrix on its way to the host.
    pub(crate) fn of_download((rows, columns): (u64, u64), dtype: DType, info: &DeviceInfo, device_ms: Option<f64>, total_ms: f64) -> Self {
        let download = Phase::new(device_ms, total_ms, rows * columns * dtype.bytes());
        Self { download, ..Self::new("to_host", format!("{rows}x{columns}"), info, total_ms) }
    }

    /// Something in a stream, that took so long there.
    pub(crate) fn of_stream(what: &Done<'_>, info: &DeviceInfo, ms: f64, total_ms: f64) -> Self {
        let phase = |bytes| Phase { ms, bytes, device_clock: info.capabilities.device_clock };
        let moved = |name, bytes: u64| Self::new(name, format!("{bytes} B"), info, total_ms);
        match *what {
            Done::Write(bytes) => Self { upload: phase(bytes), ..moved("write", bytes) },
            Done::Read(bytes) => Self { download: phase(bytes), ..moved("read", bytes) },
            Done::Copy(bytes) => Self { compute: phase(2 * bytes), kernel: "copy".to_owned(), ..moved("copy", bytes) },
            Done::Launch { kernel, grid: [x, y, z], bytes } => {
                Self { compute: phase(bytes), kernel: kernel.to_owned(), ..Self::new("launch", format!("{x}x{y}x{z}"), info, total_ms) }
            }
        }
    }
}

/// What was recorded.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Profile {
    /// The operations, in the order in which they ended.
    pub operations: Vec<Operation>,
    /// Operations that came when there was no more room, of which nothing is known.
    pub left_out: u64,
}

/// From where times are counted: one for all handles, whose operations then fit on one line.
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Where the calls of a handle put what they took.
pub(crate) struct Profiler {
    is_on: AtomicBool,
    profile: Mutex<Profile>,
}

impl Profiler {
    pub(crate) fn new(is_on: bool) -> Arc<Self> {
        LazyLock::force(&ORIGIN);
        Arc::new(Self { is_on: AtomicBool::new(is_on), profile: Mutex::default() })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Takes in an operation that has just ended.
    pub(crate) fn add(&self, operation: Operation) {
        let start_ms = (ORIGIN.elapsed().as_secs_f64() * 1e3 - operation.total_ms).max(0.0);
        let mut profile = self.profile.lock().unwrap_or_else(PoisonError::into_inner);
        if profile.operations.len() < MOST {
            profile.operations.push(Operation { start_ms, ..operation });
        } else {
            profile.left_out += 1;
        }
    }
}

impl Gpu {
    /// What the operations of this handle and of its clones took so far, as far as they were profiled.
    pub fn profile(&self) -> Profile {
        self.profiler().profile.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Turns profiling on or off; [`Options::profile`](crate::Options::profile) says whether it is on at first. Profiled operations are waited
    /// for one by one, so that none of them is only queued.
    pub fn set_profiling(&self, is_on: bool) {
        self.profiler().is_on.store(is_on, Ordering::Relaxed);
    }

    /// Forgets what was recorded.
    pub fn clear_profile(&self) {
        *self.profiler().profile.lock().unwrap_or_else(PoisonError::into_inner) = Profile::default();
    }
}

#[cfg(test)]
pub(super) fn example() -> Profile {
    let phase = |ms, bytes, device_clock| Phase { ms, bytes, device_clock };
    let operation = |start_ms, size: &str| Operation {
        name: "matmul",
        size: size.to_owned(),
        backend: BackendId::WebGpu,
        device: "a \"card\"".to_owned(),
        kernel: "matmul/tiled 64x64x16".to_owned(),
        start_ms,
        total_ms: 4.0,
        upload: phase(1.0, 8000, false),
        compute: phase(0.5, 12_000, true),
        download: phase(2.0, 4000, false),
    };
    Profile { operations: vec![operation(0.0, "64x64x64"), operation(2.0, "64x64x64"), operation(6.5, "4x4x4")], left_out: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let profiler = Profiler::new(true);
        let operation = &example().operations[0];
        for _ in 0..MOST + 3 {
            profiler.add(operation.clone());
        }
        let profile = profiler.profile.lock().unwrap();
        assert_eq!((profile.operations.len(), profile.left_out), (MOST, 3));
    }
}
