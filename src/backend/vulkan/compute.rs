//! Kernels of the caller's: one submission a call, each behind a barrier against all before it, so that streams share the queues.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use ash::vk;

use super::Vulkan;
use super::buffer::{Buffer, Raw};
use super::clock::Ticks;
use super::pipeline::{Checks, Pipeline};
use super::recorder::{COPY_WRITES, HOST_ACCESSES, KERNEL_WRITES};
use super::submit::{HostCopy, range};
use super::transfer::Lane;
use crate::backend::BoxFuture;
use crate::backend::compute::{Compute, Launch};
use crate::clock::signed_ms;
use crate::compute::{KernelDefinition, Signature};
use crate::error::{Error, Result};
use crate::info::Memory;

/// Memory, and when the device was told to use it last.
pub(crate) struct Storage {
    pub buffer: Buffer,
    is_the_hosts: bool,
    /// Whether it is a tensor's, which products and operations use too, in the queue of kernels and without a word here.
    is_lent: bool,
    /// What the timeline reaches when it is done with that.
    pub used: AtomicU64,
    /// The same of the queue for copies.
    pub copied: AtomicU64,
    /// Held while values go there in pieces.
    writing: Mutex<()>,
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
    is_apart: bool,
    copy: HostCopy,
}

impl Storage {
    fn new(buffer: Buffer, is_the_hosts: bool) -> Self {
        Self { buffer, is_the_hosts, is_lent: false, used: AtomicU64::new(0), copied: AtomicU64::new(0), writing: Mutex::default() }
    }

    fn handle(&self) -> vk::Buffer {
        self.buffer.0.handle
    }
}

impl Compute for Vulkan {
    type Storage = Storage;
    type Program = Program;
    type Lane = Lane;
    type Mark = Mark;
    type Fetch = Fetch;

    fn reserve(&self, memory: Memory, bytes: u64) -> Result<Storage> {
        let buffer = match memory {
            Memory::Device => self.storage(bytes)?,
            Memory::HostVisible => self.visible(bytes)?,
            Memory::Pinned => self.staging(bytes)?,
        };
        Ok(Storage::new(buffer, memory != Memory::Device))
    }

    fn adopt(&self, tensor: &Buffer) -> Result<Storage> {
        Ok(Storage { is_lent: true, ..Storage::new(tensor.clone(), false) })
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

    fn lane(&self) -> Result<Lane> {
        Ok(Lane::default())
    }

    fn shared_lane(&self) -> Result<Lane> {
        Ok(Lane::default())
    }

    fn store(&self, lane: &Lane, to: &Storage, at_bytes: u64, bytes: &[u8]) -> Result<()> {
        if to.is_the_hosts {
            // It is written where it lies, once the device is done with it. What other threads ask of it meanwhile comes before or after.
            let wait = || {
                let [used, copied] = [&to.used, &to.copied].map(|value| value.load(Ordering::Acquire));
                pollster::block_on(async {
                    self.reached(used, false).await?;
                    self.reached(copied, true).await
                })
            };
            wait()?;
            // They may have asked for more, and would go on to: for the rest they wait.
            let _order = self.order();
            wait()?;
            return to.buffer.0.write(at_bytes, bytes);
        }
        // Its pieces are not mixed with those of another thread.
        let _writing = to.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_apart = self.is_apart(bytes.len() as u64) && !to.is_lent;
        self.send(bytes, |staging, start_bytes, size| {
            let region = vk::BufferCopy { src_offset: 0, dst_offset: at_bytes + start_bytes, size };
            let _order = self.order();
            let mut recording = self.recording(lane, is_apart, 0, &[to])?;
            // SAFETY: the region lies in both buffers, which are held below.
            unsafe { self.context.device.cmd_copy_buffer(recording.commands()?, staging.0.handle, to.handle(), &[region]) };
            recording.hold(staging.0 as _);
            self.put(recording, lane, is_apart, &[to]).map(drop)
        })
    }

    fn fetch(&self, lane: &Lane, from: &Storage, at_bytes: u64, bytes: u64) -> Result<Fetch> {
        let is_apart = self.is_apart(bytes) && !from.is_the_hosts && !from.is_lent;
        let staging = self.host_copy(bytes)?;
        let _order = self.order();
        let mut recording = self.recording(lane, is_apart, 0, &[from])?;
        let copy = self.copy_out(&mut recording, (&from.buffer, at_bytes), staging, bytes)?;
        Ok(Fetch { value: self.put(recording, lane, is_apart, &[from])?, is_apart, copy })
    }

    fn fetched<'a>(&'a self, fetch: Fetch, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.reached(fetch.value, fetch.is_apart).await?;
            self.read_into(&fetch.copy, out)?;
            self.context.settled()
        })
    }

    fn copy(&self, lane: &Lane, (from, from_bytes): (&Storage, u64), (to, to_bytes): (&Storage, u64), bytes: u64) -> Result<()> {
        // Within the device kernels' queue is no slower, and what comes next need not wait for another.
        let is_apart = self.is_apart(bytes) && from.is_the_hosts != to.is_the_hosts && !from.is_lent && !to.is_lent;
        let region = vk::BufferCopy { src_offset: from_bytes, dst_offset: to_bytes, size: bytes };
        let _order = self.order();
        let recording = self.recording(lane, is_apart, 0, &[from, to])?;
        // SAFETY: both ranges lie in their buffers, which are two and are held below.
        unsafe { self.context.device.cmd_copy_buffer(recording.commands()?, from.handle(), to.handle(), &[region]) };
        if to.is_the_hosts {
            recording.barrier(COPY_WRITES, HOST_ACCESSES)?;
        }
        self.put(recording, lane, is_apart, &[from, to]).map(drop)
    }

    fn launch(&self, lane: &Lane, program: &Program, launch: &Launch<'_, Storage>) -> Result<()> {
        let kind = vk::DescriptorType::STORAGE_BUFFER;
        let of_buffer = |bound: &crate::backend::compute::Bound<'_, Storage>| {
            (bound.index, kind, [range(bound.storage.handle(), bound.offset_bytes, bound.size_bytes)])
        };
        let mut writes: Vec<_> = launch.buffers.iter().map(of_buffer).collect();
        let memory: Vec<_> = launch.buffers.iter().map(|bound| bound.storage).collect();
        let mut held = None;
        if let Some(index) = program.params {
            let params = self.params(launch.params.len() as u64)?;
            let raw: &Raw = &params.0;
            raw.write(0, launch.params)?;
            let bytes = launch.params.len().next_multiple_of(16) as u64;
            writes.push((index, vk::DescriptorType::UNIFORM_BUFFER, [range(raw.handle, 0, bytes)]));
            held = Some(params.0);
        }
        let _order = self.order();
        let mut recording = self.recording(lane, false, launch.buffers.len() as u32, &memory)?;
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
        if let Some(params) = held {
            recording.hold(params as _);
        }
        self.put(recording, lane, false, &memory).map(drop)
    }

    fn mark(&self, lane: &Lane) -> Result<Mark> {
        let tick = match self.clock {
            Some(clock) => Some(Arc::new(Ticks::new(&self.context, clock)?)),
            None => None,
        };
        let _order = self.order();
        let mut recording = self.marking(lane)?;
        if let Some(tick) = &tick {
            tick.mark(recording.commands()?, 0);
            recording.hold(Arc::clone(tick) as _);
        }
        let value = recording.submit()?;
        lane.copies_come_after(value);
        Ok(Mark { value, tick, seen: OnceLock::new() })
    }

    fn wait(&self, lane: &Lane, mark: &Mark) -> Result<()> {
        // What comes later in the queue of the marks runs later.
        lane.copies_come_after(mark.value);
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
        Ok(signed_ms(seen(from)?, seen(to)?))
    }
}
