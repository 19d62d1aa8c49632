//! Runs plans: one submission a product, the copies of its operands and of its result included.
//!
//! ```text
//! all before ─┬─ copies of operands ─┬─ ticks ─ dispatch ─┬─ … ─ dispatch ─ ticks ─┬─ result to the host ─┬─ proof ─► timeline
//!             barrier                barrier              barrier                   barrier                barrier
//! ```
//!
//! After a loss Vulkan may report success on a wait. So the last thing that a submission writes to the host is a word that proves that
//! all before it was done; a result without it is none.

use std::sync::Arc;

use ash::vk;

use super::Vulkan;
use super::buffer::{Buffer, Raw};
use super::clock::{Clock, Ticks};
use super::pipeline::Pipeline;
use super::queue::Recording;
use super::recorder::{COPY_READS, COPY_WRITES, HOST_READS, KERNEL_ACCESSES, KERNEL_WRITES};
use crate::backend::{Bound, Finished, How};
use crate::clock::Stopwatch;
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::{HostVec, Read};
use crate::plan::{Dispatch, Params, Plan, Slot};

/// Parameters of each dispatch lie this far apart, which every device allows.
const PARAMS_STRIDE_BYTES: usize = 256;

/// A submission under way.
pub(crate) struct Running {
    /// What the timeline reaches when it is done.
    value: u64,
    started: Stopwatch,
    download: Extent,
    /// The result's copy, unless the clock outside has to see the kernel alone first.
    copy: Option<HostCopy>,
    /// What is copied once the kernel's time is known.
    later: Option<Buffer>,
    ticks: Option<Arc<Ticks>>,
    timed: bool,
}

/// A copy on the host that arrives with the submission.
pub(super) struct HostCopy {
    staging: Buffer,
    bytes: u64,
    /// The word behind the bytes that shows that they arrived.
    proof: u32,
}

/// A dispatch with all that it needs.
struct Launch<'a> {
    dispatch: &'a Dispatch,
    pipeline: Arc<Pipeline>,
    /// Its parameters and their place.
    params: (vk::Buffer, u64),
}

impl Vulkan {
    pub(super) fn start(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        let params = self.params((PARAMS_STRIDE_BYTES * plan.dispatches.len()) as u64)?;
        let mut launches = Vec::with_capacity(plan.dispatches.len());
        for (index, dispatch) in plan.dispatches.iter().enumerate() {
            let at = (PARAMS_STRIDE_BYTES * index) as u64;
            params.0.write(at, dispatch.params.bytes())?;
            launches.push(Launch { dispatch, pipeline: self.pipelines.get(&dispatch.kernel)?, params: (params.0.handle, at) });
        }
        // What a plan binds without reading still has to be a buffer.
        let scratch = self.storage(plan.scratch_bytes)?;
        let find = |slot: Slot| match slot {
            Slot::Out => Ok(out),
            Slot::Scratch => Ok(&scratch),
            Slot::Kept(_) => Err(Error::internal("a plan for a device that keeps forms of operands")),
            Slot::Input(input) => match operands.get(usize::from(input)) {
                Some(Some(Bound::Buffer(buffer))) => Ok(*buffer),
                Some(Some(Bound::Host(_))) => Err(Error::internal("a host operand reached the GPU")),
                Some(None) | None => Ok(&scratch),
            },
        };
        let ticks = match self.clock.filter(|_| how.timed) {
            Some(clock) => Some(Arc::new(Ticks::new(&self.context, clock)?)),
            None => None,
        };
        let at_once = !how.download.is_empty() && (!how.timed || ticks.is_some());
        // The queue is locked from here on: what is taken from a pool was taken above.
        let staging = if at_once { Some(self.host_copy(how.download.bytes())?) } else { None };

        let mut recording = self.queue.record(launches.len() as u32)?;
        let mut sets = Vec::with_capacity(launches.len());
        for launch in &launches {
            sets.push(self.bind(&recording, launch, find)?);
        }
        let commands = recording.commands()?;
        if let Some(ticks) = &ticks {
            ticks.mark(commands, 0);
        }
        let device = &self.context.device;
        for turn in 0..how.repeats {
            for (index, (launch, set)) in launches.iter().zip(&sets).enumerate() {
                if turn > 0 || index > 0 {
                    recording.barrier(KERNEL_WRITES, KERNEL_ACCESSES)?;
                }
                let [x, y, z] = launch.dispatch.grid;
                // SAFETY: the set is of the pipeline's layout, and the grid within the limits that the plan was made for; the pipelines
                // and the buffers are held below.
                unsafe {
                    device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, launch.pipeline.handle);
                    device.cmd_bind_descriptor_sets(commands, vk::PipelineBindPoint::COMPUTE, launch.pipeline.layout, 0, &[*set], &[]);
                    device.cmd_dispatch(commands, x, y, z);
                }
            }
        }
        if let Some(ticks) = &ticks {
            ticks.mark(commands, 1);
            recording.hold(Arc::clone(ticks) as _);
        }
        let copy = match staging {
            Some(staging) => {
                recording.barrier(KERNEL_WRITES, COPY_READS)?;
                let copy = self.copy_out(&mut recording, (out, 0), staging, how.download.bytes())?;
                if let Some(ticks) = &ticks {
                    ticks.mark(commands, 2);
                }
                Some(copy)
            }
            None => None,
        };
        for operand in operands {
            if let Some(Bound::Buffer(buffer)) = operand {
                recording.hold(Arc::clone(&buffer.0) as _);
            }
        }
        for buffer in [params, scratch, out.clone()] {
            recording.hold(buffer.0 as _);
        }
        for launch in launches {
            recording.hold(launch.pipeline as _);
        }
        let started = Stopwatch::start();
        let value = recording.submit()?;
        let later = (copy.is_none() && !how.download.is_empty()).then(|| out.clone());
        Ok(Running { value, started, download: how.download, copy, later, ticks, timed: how.timed })
    }

    /// The set of bindings of a dispatch.
    fn bind<'b>(
        &self,
        recording: &Recording<'_>,
        launch: &Launch<'_>,
        find: impl Fn(Slot) -> Result<&'b Buffer>,
    ) -> Result<vk::DescriptorSet> {
        let (params, params_at) = launch.params;
        let params_bytes = launch.dispatch.params.bytes().len().next_multiple_of(16) as u64;
        let mut writes = vec![(Params::BINDING, vk::DescriptorType::UNIFORM_BUFFER, [range(params, params_at, params_bytes)])];
        for binding in &launch.dispatch.bindings {
            let at = [range(find(binding.slot)?.0.handle, binding.offset_bytes, binding.size_bytes)];
            writes.push((binding.index, vk::DescriptorType::STORAGE_BUFFER, at));
        }
        self.set(recording, launch.pipeline.bindings, &writes)
    }

    /// A set of these bindings.
    pub(super) fn set(
        &self,
        recording: &Recording<'_>,
        layout: vk::DescriptorSetLayout,
        writes: &[(u32, vk::DescriptorType, [vk::DescriptorBufferInfo; 1])],
    ) -> Result<vk::DescriptorSet> {
        let set = recording.bindings(layout)?;
        let write = |(index, kind, at): &(u32, vk::DescriptorType, [vk::DescriptorBufferInfo; 1])| {
            // The slice is as long as the call below.
            vk::WriteDescriptorSet { p_buffer_info: at.as_ptr(), descriptor_count: 1, ..Default::default() }
                .dst_set(set)
                .dst_binding(*index)
                .descriptor_type(*kind)
        };
        let writes: Vec<_> = writes.iter().map(write).collect();
        // SAFETY: the ranges lie in their buffers, as the plan or the launch guarantees, and no submission uses the set yet.
        unsafe { self.context.device.update_descriptor_sets(&writes, &[]) };
        Ok(set)
    }

    /// Room on the host for a copy of so many bytes and the proof behind them, which is not there yet.
    pub(super) fn host_copy(&self, bytes: u64) -> Result<Buffer> {
        let at = proof_at(bytes);
        let staging = self.staging(at + 4)?;
        staging.0.write(at, &[0; 4])?;
        Ok(staging)
    }

    /// Records a copy to the host, from that byte on. What wrote to `from` is behind a barrier.
    pub(super) fn copy_out(
        &self,
        recording: &mut Recording<'_>,
        (from, from_bytes): (&Buffer, u64),
        staging: Buffer,
        bytes: u64,
    ) -> Result<HostCopy> {
        let (device, commands) = (&self.context.device, recording.commands()?);
        // Never 0, and another one each time.
        let proof = recording.value() as u32 | 1 << 31;
        let region = vk::BufferCopy { src_offset: from_bytes, dst_offset: 0, size: bytes };
        // SAFETY: both buffers are at least that long, and held below.
        unsafe { device.cmd_copy_buffer(commands, from.0.handle, staging.0.handle, &[region]) };
        recording.barrier(COPY_WRITES, COPY_WRITES)?;
        // SAFETY: there is room for the word behind the bytes.
        unsafe { device.cmd_fill_buffer(commands, staging.0.handle, proof_at(bytes), 4, proof) };
        recording.barrier(COPY_WRITES, HOST_READS)?;
        recording.hold(Arc::clone(&staging.0) as _);
        recording.hold(Arc::clone(&from.0) as _);
        Ok(HostCopy { staging, bytes, proof })
    }

    pub(super) async fn complete(&self, running: Running) -> Result<Finished> {
        let Running { value, started, download, copy, later, ticks, timed } = running;
        self.queue.reached(value).await?;
        let measured = match &ticks {
            Some(ticks) => ticks.ms(0, 1)?,
            None => None,
        };
        let download_ms = match &ticks {
            Some(ticks) if copy.is_some() => ticks.ms(1, 2)?,
            _ => None,
        };
        let kernel_ms = measured.unwrap_or_else(|| if timed { started.ms() } else { 0.0 });
        let data = match (copy, later) {
            (Some(copy), _) => Some(self.read(&copy, download)?),
            (None, Some(from)) => Some(self.read_back(&from, download, None).await?.0),
            (None, None) => None,
        };
        self.context.settled()?;
        Ok(Finished { data, kernel_ms, device_clock: measured.is_some(), download_ms })
    }

    /// What is in a buffer, and how many milliseconds its way took if there is a clock for that.
    pub(super) async fn read_back(&self, buffer: &Buffer, extent: Extent, clock: Option<Clock>) -> Result<(HostVec, Option<f64>)> {
        if extent.is_empty() {
            return Ok((HostVec::empty(extent.dtype), None));
        }
        let ticks = clock.map(|clock| Ticks::new(&self.context, clock).map(Arc::new)).transpose()?;
        let (value, copy) = self.start_read_back(buffer, 0, extent.bytes(), ticks.as_ref())?;
        self.queue.reached(value).await?;
        let data = self.read(&copy, extent)?;
        let ms = ticks.map_or(Ok(None), |ticks| ticks.ms(0, 1))?;
        self.context.settled()?;
        Ok((data, ms))
    }

    /// The part that locks the queue, which must not be locked while anybody waits.
    pub(super) fn start_read_back(
        &self,
        buffer: &Buffer,
        from_bytes: u64,
        bytes: u64,
        ticks: Option<&Arc<Ticks>>,
    ) -> Result<(u64, HostCopy)> {
        let staging = self.host_copy(bytes)?;
        let mut recording = self.queue.record(0)?;
        if let Some(ticks) = ticks {
            ticks.mark(recording.commands()?, 0);
            recording.hold(Arc::clone(ticks) as _);
        }
        let copy = self.copy_out(&mut recording, (buffer, from_bytes), staging, bytes)?;
        if let Some(ticks) = ticks {
            ticks.mark(recording.commands()?, 1);
        }
        Ok((recording.submit()?, copy))
    }

    fn read(&self, copy: &HostCopy, extent: Extent) -> Result<HostVec> {
        let (raw, elements) = (self.proven(copy)?, extent.elements as usize);
        HostVec::read(extent.dtype, Words { raw, elements })
    }

    /// The bytes of a copy, as many as `out` has.
    pub(super) fn read_into(&self, copy: &HostCopy, out: &mut [u8]) -> Result<()> {
        self.proven(copy)?.read_into(0, out)
    }

    /// What a copy went to, if it has arrived there.
    fn proven<'c>(&self, copy: &'c HostCopy) -> Result<&'c Raw> {
        let raw: &Raw = &copy.staging.0;
        if raw.read::<u32>(proof_at(copy.bytes), 1)? != [copy.proof] {
            self.context.lose("the result did not arrive".to_owned());
            self.context.settled()?;
        }
        Ok(raw)
    }
}

/// A result that has arrived.
struct Words<'a> {
    raw: &'a Raw,
    elements: usize,
}

impl Read for Words<'_> {
    fn read<T: bytemuck::AnyBitPattern>(self) -> Result<Vec<T>> {
        self.raw.read(0, self.elements)
    }
}

/// What a copy's proof takes behind it, where buffers are of whole vec4s.
pub(super) const PROOF_BYTES: u64 = 16;

/// Where the proof of a copy of so many bytes lies.
fn proof_at(bytes: u64) -> u64 {
    bytes.next_multiple_of(16)
}

pub(super) fn range(buffer: vk::Buffer, offset: u64, range: u64) -> vk::DescriptorBufferInfo {
    vk::DescriptorBufferInfo { buffer, offset, range }
}
