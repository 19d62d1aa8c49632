//! Kernels of the caller's: one submission a call, each behind a barrier against all before it, so that streams share the one queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use ash::vk;

use super::Vulkan;
use super::buffer::{Buffer, Raw};
use super::clock::Ticks;
use super::pipeline::{Checks, Pipeline};
use super::recorder::{COPY_WRITES, HOST_ACCESSES, KERNEL_WRITES};
use super::submit::{HostCopy, range};
use crate::backend::BoxFuture;
use crate::backend::compute::{Compute, Launch};
use crate::compute::{KernelDefinition, Signature};
use crate::error::{Error, Result};
use crate::info::Memory;

/// Memory, and when the device was told to use it last.
pub(crate) struct Storage {
    buffer: Buffer,
    is_the_hosts: bool,
    /// What the timeline reaches when it is done with that.
    used: AtomicU64,
}

/// A kernel.
pub(crate) struct Program {
    pipeline: Arc<Pipeline>,
    params: Option<u32>,
}

/// A place in the queue.
pub(crate) struct Mark {
    value: u64,
    tick: Option<Arc<Ticks>>,
    /// Of the host's clock, when it was first seen to be reached.
    seen: OnceLock<Instant>,
}

/// A copy under way.
pub(crate) struct Fetch {
    value: u64,
    copy: HostCopy,
}

impl Storage {
    fn handle(&self) -> vk::Buffer {
        self.buffer.0.handle
    }

    fn used_at(&self, value: u64) {
        self.used.fetch_max(value, Ordering::AcqRel);
    }
}

impl Compute for Vulkan {
    type Storage = Storage;
    type Program = Program;
    type Lane = ();
    type Mark = Mark;
    type Fetch = Fetch;

    fn reserve(&self, memory: Memory, bytes: u64) -> Result<Storage> {
        let buffer = match memory {
            Memory::Device => self.storage(bytes)?,
            Memory::HostVisible => self.visible(bytes)?,
            Memory::Pinned => self.staging(bytes)?,
        };
        Ok(Storage { buffer, is_the_hosts: memory != Memory::Device, used: AtomicU64::new(0) })
    }

    fn adopt(&self, tensor: &Buffer) -> Result<Storage> {
        Ok(Storage { buffer: tensor.clone(), is_the_hosts: false, used: AtomicU64::new(0) })
    }

    fn compile(&self, definition: &KernelDefinition, signature: &Signature) -> Result<Program> {
        let source = definition.wgsl.as_deref().unwrap_or_default();
        let pipeline = self.pipelines.make(&definition.name, source, &signature.entry, Checks::ALL).map_err(|error| match *error {
            // The source is right as far as WGSL goes; what is then refused cannot be said in SPIR-V, or not to this driver.
            Error::Internal { detail } => Box::new(Error::Compile { kernel: definition.name.clone(), language: "WGSL", log: detail }),
            error => Box::new(error),
        })?;
        Ok(Program { pipeline, params: signature.params.map(|params| params.index) })
    }

    fn lane(&self) -> Result<()> {
        Ok(())
    }

    fn shared_lane(&self) -> Result<()> {
        Ok(())
    }

    fn store(&self, _lane: &(), to: &Storage, at_bytes: u64, bytes: &[u8]) -> Result<()> {
        if to.is_the_hosts {
            // It is written where it lies, once the device is done with it.
            pollster::block_on(self.queue.reached(to.used.load(Ordering::Acquire)))?;
            return to.buffer.0.write(at_bytes, bytes);
        }
        self.write(&to.buffer, at_bytes, bytes)?;
        // Copies that go along with one submission must not overlap, and nobody knows what comes next.
        to.used_at(self.queue.flush()?);
        Ok(())
    }

    fn fetch(&self, _lane: &(), from: &Storage, at_bytes: u64, bytes: u64) -> Result<Fetch> {
        let (value, copy) = self.start_read_back(&from.buffer, at_bytes, bytes)?;
        from.used_at(value);
        Ok(Fetch { value, copy })
    }

    fn fetched<'a>(&'a self, fetch: Fetch, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.queue.reached(fetch.value).await?;
            self.read_into(&fetch.copy, out)?;
            self.context.settled()
        })
    }

    fn copy(&self, _lane: &(), (from, from_bytes): (&Storage, u64), (to, to_bytes): (&Storage, u64), bytes: u64) -> Result<()> {
        let mut recording = self.queue.record(0)?;
        let region = vk::BufferCopy { src_offset: from_bytes, dst_offset: to_bytes, size: bytes };
        // SAFETY: both ranges lie in their buffers, which are two and are held below.
        unsafe { self.context.device.cmd_copy_buffer(recording.commands()?, from.handle(), to.handle(), &[region]) };
        if to.is_the_hosts {
            recording.barrier(COPY_WRITES, HOST_ACCESSES)?;
        }
        for storage in [from, to] {
            recording.hold(Arc::clone(&storage.buffer.0) as _);
        }
        let value = recording.submit()?;
        from.used_at(value);
        to.used_at(value);
        Ok(())
    }

    fn launch(&self, _lane: &(), program: &Program, launch: &Launch<'_, Storage>) -> Result<()> {
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        let of_buffer = |bound: &crate::backend::compute::Bound<'_, Storage>| {
            (bound.index, kind, [range(bound.storage.handle(), bound.offset_bytes, bound.size_bytes)])
        };
        let mut writes: Vec<_> = launch.buffers.iter().map(of_buffer).collect();
        let mut held: Vec<Arc<_>> = launch.buffers.iter().map(|bound| Arc::clone(&bound.storage.buffer.0)).collect();
        if let Some(index) = program.params {
            let params = self.params(launch.params.len() as u64)?;
            let raw: &Raw = &params.0;
            raw.write(0, launch.params)?;
            let bytes = launch.params.len().next_multiple_of(16) as u64;
            writes.push((index, vk::DescriptorType::UNIFORM_BUFFER, [range(raw.handle, 0, bytes)]));
            held.push(params.0);
        }
        let mut recording = self.queue.record(launch.buffers.len() as u32)?;
        let set = self.set(&recording, program.pipeline.bindings, &writes)?;
        let (device, commands, [x, y, z]) = (&self.context.device, recording.commands()?, launch.grid);
        // SAFETY: the set is of the pipeline's layout and has all that the kernel uses; the grid is within the device's limits; pipeline
        // and buffers are held below.
        unsafe {
            device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, program.pipeline.handle);
            device.cmd_bind_descriptor_sets(commands, vk::PipelineBindPoint::COMPUTE, program.pipeline.layout, 0, &[set], &[]);
            device.cmd_dispatch(commands, x, y, z);
        }
        if launch.buffers.iter().any(|bound| bound.is_written && bound.storage.is_the_hosts) {
            recording.barrier(KERNEL_WRITES, HOST_ACCESSES)?;
        }
        recording.hold(Arc::clone(&program.pipeline) as _);
        for buffer in held {
            recording.hold(buffer as _);
        }
        let value = recording.submit()?;
        for bound in &launch.buffers {
            bound.storage.used_at(value);
        }
        Ok(())
    }

    fn mark(&self, _lane: &()) -> Result<Mark> {
        let tick = match self.clock {
            Some(clock) => Some(Arc::new(Ticks::new(&self.context, clock)?)),
            None => None,
        };
        let mut recording = self.queue.record(0)?;
        if let Some(tick) = &tick {
            tick.mark(recording.commands()?, 0);
            recording.hold(Arc::clone(tick) as _);
        }
        Ok(Mark { value: recording.submit()?, tick, seen: OnceLock::new() })
    }

    fn wait(&self, _lane: &(), _mark: &Mark) -> Result<()> {
        // What comes later in the one queue runs later.
        Ok(())
    }

    fn reached<'a>(&'a self, mark: &'a Mark) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.queue.reached(mark.value).await?;
            let _ = mark.seen.set(Instant::now());
            Ok(())
        })
    }

    fn elapsed_ms(&self, from: &Mark, to: &Mark) -> Result<f64> {
        if let (Some(from), Some(to)) = (&from.tick, &to.tick) {
            return to.ms_since(from)?.ok_or_else(|| Error::internal("an event that was reached has no time"));
        }
        let seen = |mark: &Mark| mark.seen.get().copied().ok_or_else(|| Error::internal("an event that nobody waited for"));
        let (from, to) = (seen(from)?, seen(to)?);
        Ok(if to >= from { (to - from).as_secs_f64() * 1e3 } else { (from - to).as_secs_f64() * -1e3 })
    }
}
