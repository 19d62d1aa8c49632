//! wgpu: WebGPU in the browser, and Vulkan, Metal, DX12 or GL natively, by the same code and the same WGSL.
//!
//! After a loss WebGPU reports success on almost everything. So a result counts only if its buffer could be mapped, no error scope
//! caught anything, and the device is still there when all of that is known.

mod adapter;
mod buffer;
mod pipeline;
mod submit;

use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use adapter::open;
pub(crate) use buffer::Buffer;
pub(crate) use submit::Running;

use super::{Backend, Bound, Finished, How, MemoryStats};
use crate::error::Result;
use crate::host::{HostSlice, HostVec};
use crate::info::Caps;
use crate::ops::matmul::Problem;
use crate::plan::{self, Plan};

/// An open device.
pub(crate) struct WebGpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    caps: Caps,
    /// Nanoseconds a tick of the GPU's clock, if it has one.
    timestamp_period_ns: Option<f32>,
    pipelines: pipeline::Pipelines,
    pool: super::pool::Pool<buffer::Raw>,
    health: Arc<Health>,
}

#[cfg(target_arch = "wasm32")]
impl Drop for WebGpu {
    fn drop(&mut self) {
        // Natively the last handle frees the device; in the browser the collector would, some time.
        self.device.destroy();
    }
}

/// What the driver has said about the device.
#[derive(Default)]
struct Health {
    lost: Mutex<Option<String>>,
    out_of_memory: Mutex<bool>,
}

impl Health {
    fn lose(&self, reason: String) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }

    fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_out_of_memory(&self, yes: bool) -> bool {
        std::mem::replace(&mut *self.out_of_memory.lock().unwrap_or_else(PoisonError::into_inner), yes)
    }
}

impl Backend for WebGpu {
    type Buffer = Buffer;
    type Running = Running;

    fn plan(&self, problem: &Problem) -> Result<Plan> {
        plan::matmul::compute(problem, &self.caps)
    }

    fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        let buffer = self.storage(values.len() * 4)?;
        self.write(&buffer, values)?;
        Ok(buffer)
    }

    fn allocate(&self, _plan: &Plan, problem: &Problem) -> Result<Buffer> {
        self.storage(problem.elements() * 4)
    }

    fn submit(&self, plan: &Plan, operands: [Option<Bound<'_, Buffer>>; 3], out: &Buffer, how: How) -> Result<Running> {
        self.start(plan, operands, out, how)
    }

    async fn finish(&self, running: Running) -> Result<Finished> {
        self.complete(running).await
    }

    async fn download(&self, buffer: &Buffer, elements: u64) -> Result<HostVec> {
        self.read_back(buffer, elements).await
    }

    async fn synchronize(&self) -> Result<()> {
        self.work_done().await;
        self.settled()
    }

    fn lost(&self) -> Option<String> {
        self.health.lost()
    }

    fn memory(&self) -> MemoryStats {
        self.pool.stats()
    }

    fn trim(&self) {
        self.pool.trim();
    }
}
