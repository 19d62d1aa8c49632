//! Vulkan itself: no layer between the plan and the driver, bindings as large as the device has them, and the same WGSL as everywhere,
//! compiled to SPIR-V at its first use.
//!
//! Everything made from a device keeps it alive by its [`Context`]; what a submission uses, the [`Queue`] holds until the GPU is done.
//! So nothing is freed too early, whatever a caller drops.
//!
//! Handles of one physical device share one VkDevice in a process, its queue and its memory ([`Context::shared`]); pools, pipelines and the
//! timeline are each handle's own. It stays when the last handle goes, with a block of memory at most: it takes about 100 ms to make one.
//!
//! NVIDIA's driver (580) locks up now and then where a VkDevice is destroyed while others compute or threads end, be they wgpu's; the one waits
//! for the loader, the others for a mutex inside of the driver. So there none is destroyed before the process ends: of a lost one the memory is
//! given back.

mod adapter;
mod buffer;
mod cache;
mod clock;
mod compute;
mod context;
mod features;
mod instance;
mod pipeline;
mod queue;
mod recorder;
mod submit;
#[cfg(test)]
mod tests;
mod transfer;

use std::sync::{Arc, Mutex};

pub(crate) use adapter::{list, open};
pub(crate) use buffer::Buffer;
use clock::{Clock, Ticks};
use context::Context;
use queue::Queue;
pub(crate) use submit::Running;

use super::pool::Pool;
use super::{Backend, Bound, Finished, How, MemoryStats, Timer};
use crate::dtype::Extent;
use crate::error::Result;
use crate::host::{HostSlice, HostVec};
use crate::info::Caps;
use crate::ops::Op;
use crate::plan::{self, Plan};

/// Bytes of free buffers on the host kept for reuse: a few operands' pieces, and a result at 4096.
const HOST_POOL_BYTES: u64 = 128 << 20;

/// A handle of an open device.
pub(crate) struct Vulkan {
    /// Dropped first: it waits for what the GPU does for this handle.
    queue: Queue,
    /// For large copies that a stream was told to make, if the device has one for copies alone.
    transfer: Option<Queue>,
    /// Held while something is put into one of the queues that may have to wait for what is in the other.
    order: Mutex<()>,
    pipelines: pipeline::Pipelines,
    memory: Pool<buffer::Raw>,
    /// Buffers on the host, on the way to and from the device.
    host_memory: Pool<buffer::Raw>,
    caps: Caps,
    clock: Option<Clock>,
    context: Arc<Context>,
}

impl Drop for Vulkan {
    /// Each queue may have been told to wait for the other one's semaphore, which goes with it: first both come to their end.
    fn drop(&mut self) {
        self.queue.wait();
        if let Some(transfer) = &self.transfer {
            transfer.wait();
        }
    }
}

impl Vulkan {
    /// What plans are made by.
    pub(crate) fn planned_by(&self) -> Caps {
        self.caps.clone()
    }
}

impl Backend for Vulkan {
    type Buffer = Buffer;
    type Running = Running;

    fn plan(&self, op: &Op) -> Result<Plan> {
        plan::compute(op, &self.caps)
    }

    fn tiles(&self) -> Vec<String> {
        plan::matmul::tiles()
    }

    fn plan_tuned(&self, op: &Op, tuned: plan::tuned::Tuned) -> Result<Plan> {
        plan::compute(op, &Caps { tuned, ..self.caps.clone() })
    }

    fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        let buffer = self.storage(values.bytes().len() as u64)?;
        self.write(&buffer, 0, values.bytes())?;
        Ok(buffer)
    }

    fn upload_timed(&self, values: &HostSlice<'_>) -> Result<(Buffer, Option<Timer>)> {
        let Some(clock) = self.clock else { return Ok((self.upload(values)?, None)) };
        let ticks = Arc::new(Ticks::new(&self.context, clock)?);
        // Counted in submissions of their own: those of a large operand go by themselves, and in no order.
        let mark = |index| {
            let mut recording = self.queue.record(0)?;
            ticks.mark(recording.commands()?, index);
            recording.hold(Arc::clone(&ticks) as _);
            recording.submit()
        };
        mark(0)?;
        let buffer = self.upload(values)?;
        mark(1)?;
        Ok((buffer, Some(Box::new(move || ticks.ms(0, 1).ok().flatten()))))
    }

    fn allocate(&self, _plan: &Plan, op: &Op) -> Result<Buffer> {
        self.storage(op.extent().bytes())
    }

    fn submit(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        self.start(plan, operands, out, how)
    }

    async fn finish(&self, running: Running) -> Result<Finished> {
        self.complete(running).await
    }

    async fn download(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
        Ok(self.read_back(buffer, extent, None).await?.0)
    }

    async fn download_timed(&self, buffer: &Buffer, extent: Extent) -> Result<(HostVec, Option<f64>)> {
        self.read_back(buffer, extent, self.clock).await
    }

    async fn synchronize(&self) -> Result<()> {
        self.queue.reached(self.queue.flush()?).await?;
        match &self.transfer {
            Some(transfer) => transfer.reached(transfer.flush()?).await,
            None => Ok(()),
        }
    }

    fn lost(&self) -> Option<String> {
        self.context.lost()
    }

    fn memory(&self) -> MemoryStats {
        self.reap();
        self.memory.stats()
    }

    fn trim(&self) {
        self.reap();
        self.memory.trim();
        self.host_memory.trim();
    }
}
