//! The CPU: operands are read where they lie, and the work is done when [`submit`](Backend::submit) returns.

#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(not(target_arch = "wasm32"))]
mod scalar;
#[cfg(target_arch = "wasm32")]
pub(crate) mod wasm;

#[cfg(not(target_arch = "wasm32"))]
use native as engine;
#[cfg(target_arch = "wasm32")]
use wasm as engine;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Backend, Bound, Finished, How, MemoryStats};
use crate::clock::Stopwatch;
#[cfg(not(target_arch = "wasm32"))]
use crate::devices::AdapterInfo;
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::info::{BackendId, Caps, DeviceInfo, DeviceKind, OtherBackend, Standing};
use crate::ops::matmul::Problem;
use crate::plan::{self, Plan};

/// A path on the CPU.
pub(crate) struct Cpu {
    engine: engine::Engine,
    in_use: Arc<InUse>,
}

/// What tensors on the CPU hold.
#[derive(Default)]
struct InUse {
    bytes: AtomicU64,
    buffers: AtomicU64,
    peak_bytes: AtomicU64,
}

/// A tensor's values: written once, by the upload or by the product that it is the result of.
pub(crate) struct Buffer {
    values: OnceLock<HostVec>,
    bytes: u64,
    in_use: Arc<InUse>,
}

/// Work that is done already.
pub(crate) struct Running(Finished);

/// Opens the path, or says why it is not there.
pub(crate) async fn open(id: BackendId) -> Result<(Cpu, DeviceInfo), OtherBackend> {
    let off = |reason: String, remedy: &str| OtherBackend { backend: id, standing: Standing::Off, reason, remedy: remedy.to_owned() };
    if id == BackendId::Simd && cfg!(not(feature = "simd")) {
        return Err(off("this build leaves it out".to_owned(), "build with the feature simd"));
    }
    let engine = engine::Engine::open(id == BackendId::Simd).await.map_err(|reason| off(reason, engine::REMEDY))?;
    let info = DeviceInfo {
        backend: id,
        name: engine::Engine::name(),
        vendor: String::new(),
        architecture: std::env::consts::ARCH.to_owned(),
        kind: DeviceKind::Cpu,
        #[cfg(not(target_arch = "wasm32"))]
        driver: String::new(),
        #[cfg(not(target_arch = "wasm32"))]
        uuid: None,
        #[cfg(not(target_arch = "wasm32"))]
        pci_address: String::new(),
        caps: Caps::UNLIMITED,
        features: engine.features(),
        reason: String::new(),
        others: Vec::new(),
        generation: 1,
    };
    Ok((Cpu { engine, in_use: Arc::default() }, info))
}

/// The CPU, which is one.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn list(id: BackendId) -> Result<Vec<AdapterInfo>, OtherBackend> {
    // There is nothing to open that would cost anything.
    let (_, info) = pollster::block_on(open(id))?;
    Ok(vec![AdapterInfo::new(info, 0, None)])
}

impl Cpu {
    fn buffer(&self, values: OnceLock<HostVec>, bytes: u64) -> Buffer {
        let used = self.in_use.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.in_use.buffers.fetch_add(1, Ordering::Relaxed);
        self.in_use.peak_bytes.fetch_max(used, Ordering::Relaxed);
        Buffer { values, bytes, in_use: Arc::clone(&self.in_use) }
    }

    /// |op(A)|·|op(B)| and op(A)·op(B) in double precision, for the judging of results.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn engine(&self) -> &engine::Engine {
        &self.engine
    }
}

impl Buffer {
    fn values(&self) -> Result<&HostVec> {
        self.values.get().ok_or_else(|| Error::internal("a tensor without values"))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.in_use.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.in_use.buffers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Backend for Cpu {
    type Buffer = Buffer;
    type Running = Running;

    fn plan(&self, problem: &Problem) -> Result<Plan> {
        Ok(plan::matmul::cpu(problem, self.engine.variant()))
    }

    fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        let bytes = values.len() * 4;
        Ok(self.buffer(engine::copy(values)?.into(), bytes))
    }

    fn allocate(&self, _plan: &Plan, problem: &Problem) -> Result<Buffer> {
        Ok(self.buffer(OnceLock::new(), problem.elements() * 4))
    }

    fn submit(&self, plan: &Plan, operands: [Option<Bound<'_, Buffer>>; 3], out: &Buffer, how: How) -> Result<Running> {
        let stopwatch = Stopwatch::start();
        let [a, b, c] = &operands;
        let operands = [host(a.as_ref())?, host(b.as_ref())?, host(c.as_ref())?];
        let mut data = None;
        for dispatch in (0..how.repeats).flat_map(|_| &plan.dispatches) {
            data = Some(self.engine.matmul(&dispatch.params, &dispatch.kernel, &operands)?);
        }
        let kernel_ms = stopwatch.ms();
        let data = data.ok_or_else(|| Error::internal("an empty plan"))?;
        let data = if how.download > 0 {
            Some(data)
        } else {
            // A second run of a benchmark gives the same values again.
            let _ = out.values.set(data);
            None
        };
        Ok(Running(Finished { data, kernel_ms, device_clock: false }))
    }

    async fn finish(&self, running: Running) -> Result<Finished> {
        Ok(running.0)
    }

    async fn download(&self, buffer: &Buffer, _elements: u64) -> Result<HostVec> {
        engine::copy(&engine::borrow(buffer.values()?))
    }

    async fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn lost(&self) -> Option<String> {
        None
    }

    fn memory(&self) -> MemoryStats {
        MemoryStats {
            used_bytes: self.in_use.bytes.load(Ordering::Relaxed),
            pooled_bytes: 0,
            peak_bytes: self.in_use.peak_bytes.load(Ordering::Relaxed),
            buffers: self.in_use.buffers.load(Ordering::Relaxed),
        }
    }

    fn trim(&self) {}
}

/// An operand's values where they lie.
fn host<'a>(operand: Option<&'a Bound<'_, Buffer>>) -> Result<Option<HostSlice<'a>>> {
    Ok(match operand {
        None => None,
        Some(Bound::Host(values)) => Some(values.clone()),
        Some(Bound::Buffer(buffer)) => Some(engine::borrow(buffer.values()?)),
    })
}
