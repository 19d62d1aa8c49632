//! Large copies of streams, on a queue of their own where the device has one for copies alone: they run while kernels do.
//!
//! ```text
//! kernels    ── kernel on x ── kernel on y ●── kernel on z ──
//!                       ╰───────────╮      │
//! copies     ── y to the device ────┼──────╯
//!                                   ●── x to the host ──
//! ```
//!
//! Each queue has its timeline. What is put into one waits for the other where both use the same memory: a kernel for the last copy of what
//! it uses, a copy for the last kernel. Buffers are shared by both families, so that none has to be handed over. Marks lie in the queue of
//! kernels, since counts of the clock are comparable within one queue only, and come after the copies of their stream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::Vulkan;
use super::compute::Storage;
use super::queue::Recording;
use crate::error::Result;

/// What is shorter goes by the queue of kernels: to have one queue wait for another takes longer.
const APART_BYTES: u64 = 1 << 20;

/// A stream, in both queues.
#[derive(Default)]
pub(crate) struct Lane {
    /// What the timeline of copies reaches with its last one.
    copied: AtomicU64,
    /// What the timeline of kernels has to reach before its next copy.
    after: AtomicU64,
}

impl Lane {
    pub(super) fn copies_come_after(&self, value: u64) {
        self.after.fetch_max(value, Ordering::AcqRel);
    }
}

impl Vulkan {
    /// Whether a copy of so many bytes goes by the queue for copies.
    pub(super) fn is_apart(&self, bytes: u64) -> bool {
        self.transfer.is_some() && bytes >= APART_BYTES
    }

    /// Held from before a recording until it is submitted, so that nothing comes between what it waits for and what waits for it.
    pub(super) fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to record into one of the queues, behind what the other does with the memory.
    pub(super) fn recording(&self, lane: &Lane, is_apart: bool, sets: u32, memory: &[&Storage]) -> Result<Recording<'_>> {
        let last = |timeline: fn(&Storage) -> &AtomicU64| memory.iter().map(|storage| timeline(storage).load(Ordering::Acquire)).max();
        let Some(transfer) = &self.transfer else { return self.queue.record(sets) };
        let (queue, other, value) = if is_apart {
            (transfer, &self.queue, last(|storage| &storage.used).max(Some(lane.after.load(Ordering::Acquire))))
        } else {
            (&self.queue, transfer, last(|storage| &storage.copied))
        };
        let mut recording = queue.record(sets)?;
        recording.wait_for(other, value.unwrap_or(0))?;
        Ok(recording)
    }

    /// Submits what was recorded, with the memory that it uses; gives what its queue's timeline then reaches.
    pub(super) fn put(&self, mut recording: Recording<'_>, lane: &Lane, is_apart: bool, memory: &[&Storage]) -> Result<u64> {
        for storage in memory {
            recording.hold(Arc::clone(&storage.buffer.0) as _);
        }
        let value = recording.submit()?;
        for storage in memory {
            let timeline = if is_apart { &storage.copied } else { &storage.used };
            timeline.fetch_max(value, Ordering::AcqRel);
        }
        if is_apart {
            lane.copied.fetch_max(value, Ordering::AcqRel);
        }
        Ok(value)
    }

    /// Starts to record a mark: in the queue of kernels, behind the lane's copies.
    pub(super) fn marking(&self, lane: &Lane) -> Result<Recording<'_>> {
        let mut recording = self.queue.record(0)?;
        if let Some(transfer) = &self.transfer {
            recording.wait_for(transfer, lane.copied.load(Ordering::Acquire))?;
        }
        Ok(recording)
    }

    /// Waits until a value of one of the queues is reached.
    pub(super) async fn reached(&self, value: u64, is_apart: bool) -> Result<()> {
        match &self.transfer {
            Some(transfer) if is_apart => transfer.reached(value).await,
            _ if is_apart => Ok(()),
            _ => self.queue.reached(value).await,
        }
    }

    /// Waits until the GPU is done with all that was submitted.
    pub(super) fn wait(&self) {
        self.queue.wait();
        if let Some(transfer) = &self.transfer {
            transfer.wait();
        }
    }

    /// Gives back what the GPU is done with.
    pub(super) fn reap(&self) {
        self.queue.reap();
        if let Some(transfer) = &self.transfer {
            transfer.reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::Queue;
    use super::super::tests::{device, gpu};
    use crate::compute::{Buffer, Kernel, KernelDefinition, Memory, Stream};
    use crate::gpu::Gpu;

    const SCALE: &str = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @group(0) @binding(1) var<uniform> a: f32;
        @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&x) { x[id.x] *= a; }
        }";

    /// More than goes by the queue of kernels, in pieces of which the last is short.
    const N: usize = (2 << 20) + 12;

    /// A device with a queue for copies. Where it has none of its own, a second timeline stands in, whose work goes into the same queue.
    fn apart() -> Option<Gpu> {
        let (mut vulkan, info) = device()?;
        if vulkan.transfer.is_none() {
            eprintln!("{} has no queue for copies alone: the one there is takes them by a timeline of its own", info.name);
            let family = vulkan.context.families[0];
            vulkan.transfer = Some(Queue::new(&vulkan.context, family).unwrap());
        }
        Some(gpu((vulkan, info)))
    }

    fn scale(gpu: &Gpu) -> Kernel {
        gpu.compile(&KernelDefinition::new("scale").wgsl(SCALE)).unwrap()
    }

    fn double(stream: &Stream, kernel: &Kernel, buffer: &Buffer) {
        stream.launch(kernel, [N.div_ceil(256) as u32, 1, 1], [buffer], &2.0f32).unwrap();
    }

    /// Whatever queue a call goes into, and whatever stream: what is on its way to the host is what was there before.
    #[test]
    fn what_shares_memory_keeps_its_order_in_two_queues() {
        let Some(gpu) = apart() else { return };
        let (kernel, bytes, ones) = (scale(&gpu), N as u64 * 4, vec![1.0f32; N]);
        let (here, there) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let (buffer, pinned) = (gpu.allocate(bytes, Memory::Device).unwrap(), gpu.allocate(bytes, Memory::Pinned).unwrap());
        here.write(&buffer, 0, &ones).unwrap();
        let mut readings = Vec::new();
        for _ in 0..4 {
            readings.push(there.read::<f32>(&buffer, 0, N).unwrap());
            double(&here, &kernel, &buffer);
        }
        // 16 to pinned memory and back over what was doubled since, a small copy over its start.
        there.copy(&buffer, 0, &pinned, 0, bytes).unwrap();
        double(&here, &kernel, &buffer);
        there.copy(&pinned, 0, &buffer, 0, bytes).unwrap();
        here.write(&buffer, 0, &[0.5f32; 3]).unwrap();
        double(&here, &kernel, &buffer);
        // Pinned memory is written only after it was read.
        pinned.write_blocking(0, &ones).unwrap();
        for (turn, reading) in readings.into_iter().enumerate() {
            assert!(reading.finish_blocking().unwrap() == vec![(1 << turn) as f32; N], "{turn}");
        }
        let values = buffer.read_blocking::<f32>(0, N).unwrap();
        assert!(values[..3] == [1.0; 3] && values[3..].iter().all(|&value| value == 32.0), "{:?}", &values[..8]);
        assert!(pinned.read_blocking::<f32>(0, N).unwrap() == ones);
    }

    #[test]
    fn marks_come_after_the_copies_of_their_stream_and_before_later_ones() {
        let Some(gpu) = apart() else { return };
        let bytes = N as u64 * 4;
        let stream = gpu.stream().unwrap();
        let (from, to) = (gpu.allocate(bytes, Memory::Pinned).unwrap(), gpu.allocate(bytes, Memory::Device).unwrap());
        from.write_blocking(0, &vec![3.0f32; N]).unwrap();
        let begin = stream.record().unwrap();
        stream.copy(&from, 0, &to, 0, bytes).unwrap();
        let end = stream.record().unwrap();
        let ms = end.elapsed_ms_since_blocking(&begin).unwrap();
        assert!(ms > 0.0 && ms < 60_000.0, "{ms} ms");
        assert!(to.read_blocking::<f32>(0, N).unwrap() == vec![3.0; N]);
    }

    #[test]
    fn threads_copy_and_compute_at_once() {
        let Some(gpu) = apart() else { return };
        let (kernel, shared) = (scale(&gpu), gpu.allocate(N as u64 * 4, Memory::Device).unwrap());
        std::thread::scope(|scope| {
            for thread in 1..4u8 {
                let (gpu, kernel, shared) = (&gpu, &kernel, &shared);
                scope.spawn(move || {
                    let stream = gpu.stream().unwrap();
                    let own = gpu.allocate(N as u64 * 4, Memory::Device).unwrap();
                    for _ in 0..3 {
                        stream.write(&own, 0, &vec![f32::from(thread); N]).unwrap();
                        double(&stream, kernel, &own);
                        let reading = stream.read::<f32>(&own, 0, N).unwrap();
                        stream.write(shared, 0, &vec![0.0f32; N]).unwrap();
                        double(&stream, kernel, shared);
                        // Given up while it is on its way.
                        drop(stream.read::<f32>(shared, 0, N).unwrap());
                        assert!(reading.finish_blocking().unwrap() == vec![f32::from(thread) * 2.0; N]);
                    }
                });
            }
        });
        assert!(shared.read_blocking::<f32>(0, N).unwrap() == vec![0.0; N]);
        drop((shared, kernel));
        assert_eq!(gpu.memory().unwrap().used_bytes, 0);
    }
}
