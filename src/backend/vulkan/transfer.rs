//! Large copies on a queue of their own, where the device has one for copies alone: operands come and results go while kernels of other calls
//! run.
//!
//! ```text
//! kernels    ── product 1 ──●── product 2 ──────●── product 3 ──
//!                           ╰────────────╮      ╰─►
//! transfers  ── operands of 2 ── of 3 ── result of 1 ── …
//! ```
//!
//! Each queue has its timeline, and waits for the other's only where both use a buffer: a kernel for the copy into what it reads, a copy to the
//! host for what wrote before, and whatever writes in place for the copies that still read. Buffers are shared by both families, so that none has
//! to be handed over. What is small goes along with its kernel: another submission would take longer than the copy.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use ash::vk;

use super::Vulkan;
use super::buffer::{Buffer, PIECE_BYTES, at_once};
use super::queue::{Queue, Recording};
use super::submit::HostCopy;
use crate::error::Result;

/// What is at least so long goes apart.
const APART_BYTES: u64 = 1 << 20;

/// A copy to the host under way, and which queue's timeline tells of its end.
pub(super) struct ReadBack {
    pub value: u64,
    pub is_apart: bool,
    pub copy: HostCopy,
}

impl Vulkan {
    /// The queue for a copy of so many bytes, if there is one and it is worth it.
    pub(super) fn apart(&self, bytes: u64) -> Option<&Queue> {
        self.transfer.as_ref().filter(|_| bytes >= APART_BYTES)
    }

    /// Copies values to the start of memory that nothing has used since it was taken; they may change as soon as this returns.
    pub(super) fn fill(&self, buffer: &Buffer, values: &[u8]) -> Result<()> {
        let Some(transfer) = self.apart(values.len() as u64) else { return self.write(buffer, 0, values) };
        at_once(values.chunks(PIECE_BYTES).enumerate(), |(index, piece)| {
            let staging = self.staging(piece.len() as u64)?;
            staging.0.write(0, piece)?;
            let mut recording = transfer.record(0)?;
            let region = vk::BufferCopy { src_offset: 0, dst_offset: (index * PIECE_BYTES) as u64, size: piece.len() as u64 };
            // SAFETY: the region lies in both buffers, which the submission holds.
            unsafe { self.context.device.cmd_copy_buffer(recording.commands()?, staging.0.handle, buffer.0.handle, &[region]) };
            recording.hold(staging.0 as _);
            recording.hold(Arc::clone(&buffer.0) as _);
            let value = recording.submit()?;
            buffer.0.filled.fetch_max(value, Ordering::AcqRel);
            Ok(())
        })
    }

    /// Has what is recorded wait for the copies that its use of a buffer comes after, and keeps the buffer.
    pub(super) fn uses(&self, recording: &mut Recording<'_>, buffer: &Buffer, writes: bool) {
        if let Some(transfer) = &self.transfer {
            let read = if writes { buffer.0.read_until.load(Ordering::Acquire) } else { 0 };
            recording.wait_for(transfer, buffer.0.filled.load(Ordering::Acquire).max(read));
        }
        recording.hold(Arc::clone(&buffer.0) as _);
    }

    /// Waits until no copy uses a buffer that is about to be written.
    pub(super) fn settle(&self, buffer: &Buffer) -> Result<()> {
        let until = buffer.0.filled.load(Ordering::Acquire).max(buffer.0.read_until.load(Ordering::Acquire));
        match &self.transfer {
            Some(transfer) if transfer.known() < until => pollster::block_on(transfer.reached(until)),
            _ => Ok(()),
        }
    }

    /// Copies to the host what all that was submitted so far gives, of memory that the host does not reach apart from it if it is long. The part
    /// that locks queues, which must not be locked while anybody waits.
    pub(super) fn start_read_back(&self, buffer: &Buffer, from_bytes: u64, bytes: u64, is_the_hosts: bool) -> Result<ReadBack> {
        let Some(transfer) = self.apart(bytes).filter(|_| !is_the_hosts) else {
            let staging = self.host_copy(bytes)?;
            let mut recording = self.queue.record(0)?;
            self.uses(&mut recording, buffer, false);
            let copy = self.copy_out(&mut recording, (buffer, from_bytes), staging, bytes)?;
            return Ok(ReadBack { value: recording.submit()?, is_apart: false, copy });
        };
        let _order = self.order();
        let after = self.queue.flush()?;
        self.read_apart(transfer, buffer, (from_bytes, bytes), after)
    }

    /// Copies to the host on that queue, once the other one has reached a value.
    pub(super) fn read_apart(&self, transfer: &Queue, buffer: &Buffer, (from_bytes, bytes): (u64, u64), after: u64) -> Result<ReadBack> {
        let staging = self.host_copy(bytes)?;
        let mut recording = transfer.record(0)?;
        recording.wait_for(&self.queue, after);
        let copy = self.copy_out(&mut recording, (buffer, from_bytes), staging, bytes)?;
        let value = recording.submit()?;
        buffer.0.read_until.fetch_max(value, Ordering::AcqRel);
        Ok(ReadBack { value, is_apart: true, copy })
    }

    /// Held while a copy of a buffer that others may write to is put into its queue, and while such a write is.
    pub(super) fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a value of one of the queues.
    pub(super) async fn reached(&self, value: u64, is_apart: bool) -> Result<()> {
        match &self.transfer {
            Some(transfer) if is_apart => transfer.reached(value).await,
            _ => self.queue.reached(value).await,
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
    use super::super::tests::{device, gpu};
    use crate::compute::{KernelDefinition, Memory};
    use crate::gpu::Gpu;
    use crate::ops::matmul::Matmul;

    const SCALE: &str = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @group(0) @binding(1) var<uniform> a: f32;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
            if id.x < arrayLength(&x) { x[id.x] *= a; }
        }";

    /// A device with a queue for copies. Where it has none of its own, a second timeline stands in, whose work goes into the same queue.
    fn apart() -> Option<Gpu> {
        let (mut vulkan, info) = device()?;
        if vulkan.transfer.is_none() {
            eprintln!("{} has no queue for copies alone: the one there is takes them by a timeline of its own", info.name);
            vulkan.transfer = Some(vulkan.queue.beside().unwrap());
        }
        Some(gpu((vulkan, info)))
    }

    #[test]
    fn large_operands_and_results_pass_by_a_queue_of_their_own() {
        let Some(gpu) = apart() else { return };
        // Of several pieces, the last of them short: 9 MiB and more.
        let (m, k, n) = (2500, 3, 1001);
        let value = |i: usize| (i * 7 % 11) as f32 - 5.0;
        let c: Vec<f32> = (0..m * n).map(value).collect();
        let (a, b): (Vec<f32>, Vec<f32>) = ((0..m * k).map(value).collect(), (0..k * n).map(value).collect());
        let op = Matmul::new(m as u64, k as u64, n as u64).plus(1.0, &c);
        let right = |at: usize| (0..k).map(|p| a[at / n * k + p] * b[p * n + at % n]).sum::<f32>() + c[at];
        let expected: Vec<f32> = (0..m * n).map(right).collect();
        for _ in 0..3 {
            assert!(gpu.matmul_blocking(&a, &b, &op).unwrap() == expected);
            let tensor = gpu.tensor_blocking(&expected, m as u64, n as u64).unwrap();
            assert!(tensor.to_vec_blocking().unwrap() == expected);
        }
        assert!(gpu.matmul_report_blocking(&a, &b, &op).unwrap().data == expected, "timed, it goes by one queue");
        let stats = gpu.memory().unwrap();
        assert_eq!((stats.used_bytes, stats.buffers), (0, 0));
    }

    /// What is on its way to the host when a kernel writes in place is what was there before.
    #[test]
    fn copies_under_way_and_what_is_written_in_place_keep_their_order() {
        let Some(gpu) = apart() else { return };
        let n = 1 << 20;
        let scale = gpu.compile(&KernelDefinition::new("scale").wgsl(SCALE)).unwrap();
        let stream = gpu.stream().unwrap();
        let buffer = gpu.allocate(n * 4, Memory::Device).unwrap();
        let ones = vec![1.0f32; n as usize];
        stream.write(&buffer, 0, &ones).unwrap();
        let double = || stream.launch(&scale, [n as u32 / 64, 1, 1], [&buffer], &2.0f32).unwrap();
        let mut readings = Vec::new();
        for _ in 0..4 {
            readings.push(stream.read::<f32>(&buffer, 0, n as usize).unwrap());
            double();
        }
        stream.write(&buffer, 0, &ones).unwrap();
        double();
        for (turn, reading) in readings.into_iter().enumerate() {
            assert!(reading.finish_blocking().unwrap() == vec![(1 << turn) as f32; n as usize], "{turn}");
        }
        assert!(buffer.read_blocking::<f32>(0, n as usize).unwrap() == vec![2.0; n as usize]);
        // A tensor is filled apart, and a kernel after that has it whole.
        for turn in 1..4u8 {
            let tensor = gpu.tensor_blocking(&vec![f32::from(turn); n as usize], 1, n).unwrap();
            stream.launch(&scale, [n as u32 / 64, 1, 1], [&tensor], &3.0f32).unwrap();
            assert!(tensor.to_vec_blocking().unwrap() == vec![f32::from(turn) * 3.0; n as usize]);
        }
    }

    #[test]
    fn threads_copy_and_multiply_at_once() {
        let Some(gpu) = apart() else { return };
        let side = 600;
        std::thread::scope(|scope| {
            for thread in 1..5u8 {
                let gpu = &gpu;
                scope.spawn(move || {
                    let (a, ones, c) = (vec![f32::from(thread); side * 4], vec![1.0; 4 * side], vec![0.5; side * side]);
                    let op = Matmul::new(side as u64, 4, side as u64).plus(2.0, &c);
                    for round in 0..6 {
                        if round % 3 == 0 {
                            // Given up while its operands are on their way.
                            let mut call = Box::pin(gpu.matmul(&a, &ones, &op));
                            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                            let _ = std::future::Future::poll(call.as_mut(), &mut context);
                            continue;
                        }
                        assert!(gpu.matmul_blocking(&a, &ones, &op).unwrap() == vec![f32::from(thread) * 4.0 + 1.0; side * side]);
                    }
                });
            }
        });
        gpu.tensor_blocking(&[0.0f32], 1, 1).unwrap();
        assert_eq!(gpu.memory().unwrap().used_bytes, 0);
    }

    /// Its figures are of worth only on a GPU that has nothing else to do.
    #[test]
    #[ignore = "prints figures"]
    fn what_a_queue_for_copies_gains() {
        let side = 4096u64;
        let values = crate::random::matrix((side * side) as usize, 1);
        for with in [false, true, false, true] {
            let Some((mut vulkan, info)) = device() else { return };
            if vulkan.transfer.is_none() {
                println!("{} has no queue for copies alone", info.name);
                return;
            }
            if !with {
                vulkan.transfer = None;
            }
            let gpu = gpu((vulkan, info));
            let op = Matmul::new(side, side, side);
            let each = |threads: usize| {
                let clock = std::time::Instant::now();
                std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(|| (0..6).for_each(|_| drop(gpu.matmul_blocking(&values, &values, &op).unwrap())));
                    }
                });
                clock.elapsed().as_secs_f64() * 1e3 / (6 * threads) as f64
            };
            each(1);
            println!(
                "with {with}: {:.2} ms a product of {side}³ from host to host in one thread, {:.2} in each of three",
                each(1),
                each(3)
            );
        }
    }
}
