//! Runs plans that somebody waits for: one submission a product, its copy to the host included.

use std::sync::Arc;

use futures_channel::oneshot;

use super::WebGpu;
use super::attend::Notice;
use super::batch::Verdict;
use super::buffer::{Buffer, Room};
use super::launch::{PARAMS_STRIDE_BYTES, ScopeFuture, Scopes, add_params, launch};
use crate::backend::{Bound, Finished, How};
use crate::clock::Stopwatch;
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::HostVec;
use crate::plan::Plan;

/// A submission under way.
pub(crate) struct Running {
    /// What is to be known of the matrices that were queued.
    queued: Vec<Arc<Verdict>>,
    faults: Vec<ScopeFuture>,
    started: Stopwatch,
    download: Extent,
    /// The result's copy in pieces, unless the clock outside has to see the kernel alone first.
    staging: Vec<Staging>,
    /// What is copied once the kernel's time is known.
    later: Option<(wgpu::Buffer, u64)>,
    ticks: Option<Staging>,
    timed: bool,
    /// Kept from the pool until the work is done.
    _params: Room,
}

/// A buffer that the host is about to read.
pub(crate) struct Staging {
    pub(super) buffer: Room,
    bytes: u64,
    mapping: Mapping,
}

/// Whether the host may read a buffer.
enum Mapping {
    /// Nobody asked for it.
    No,
    /// What comes tells that it may.
    Pending(Notice),
    Done,
}

impl Drop for Staging {
    fn drop(&mut self) {
        match self.mapping {
            Mapping::No => return,
            Mapping::Done => {}
            // wgpu takes a map back only if nobody polls the device meanwhile: the buffer may be mapped later, and whoever had it then would
            // read it too early.
            Mapping::Pending(_) if cfg!(not(target_arch = "wasm32")) => self.buffer.discard(),
            Mapping::Pending(_) => {}
        }
        // Mapped, or about to be, it could not serve again.
        self.buffer.unmap();
    }
}

/// The most that comes to the host at a time. A browser takes each piece from the GPU's process to the page's: one is copied where it
/// belongs while the next is on its way.
#[cfg(target_arch = "wasm32")]
const PIECE_BYTES: usize = 1 << 20;
#[cfg(not(target_arch = "wasm32"))]
const PIECE_BYTES: usize = usize::MAX;

/// Has pieces copied that lie behind one another in another buffer, from a byte on.
fn fill(pieces: &[Staging], encoder: &mut wgpu::CommandEncoder, from: &wgpu::Buffer, mut at: u64) {
    for piece in pieces {
        encoder.copy_buffer_to_buffer(from, at, &piece.buffer, 0, piece.bytes);
        at += piece.bytes;
    }
}

impl WebGpu {
    pub(super) fn start(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        let mut queued = Vec::new();
        queued.extend(out.verdict.get().cloned());
        for operand in operands.iter().flatten() {
            if let Bound::Buffer(buffer) = operand {
                queued.extend(buffer.verdict.get().cloned());
            }
        }
        self.batches.submit();
        let scopes = Scopes::open(&self.device);
        let started = self.encode(plan, operands, out, how);
        let faults = scopes.close();
        started.map(|(params, staging, ticks)| Running {
            queued,
            faults,
            started: Stopwatch::start(),
            download: how.download,
            later: (staging.is_empty() && !how.download.is_empty()).then(|| (wgpu::Buffer::clone(out.raw()), out.at_bytes())),
            staging,
            ticks,
            timed: how.timed,
            _params: params,
        })
    }

    fn encode(
        &self,
        plan: &Plan,
        operands: &[Option<Bound<'_, Buffer>>],
        out: &Buffer,
        how: How,
    ) -> Result<(Room, Vec<Staging>, Option<Staging>)> {
        // All that can fail comes first.
        let params = self.params((PARAMS_STRIDE_BYTES * plan.dispatches.len()) as u64)?;
        let pipelines = self.pipelines(plan)?;
        // What a plan binds without reading still has to be a buffer.
        let scratch = self.storage(plan.scratch_bytes)?;
        // Another thread may have recorded what reads that memory since, and let go of it.
        #[cfg(not(target_arch = "wasm32"))]
        self.batches.submit_users(&scratch);
        let mut buffers = vec![out, &scratch];
        for operand in operands {
            buffers.push(match operand {
                None => &scratch,
                Some(Bound::Buffer(operand)) => operand,
                Some(Bound::Host(_)) => return Err(Error::internal("a host operand reached the GPU")),
            });
        }
        let has_clock = how.timed && self.timestamp_period_ns.is_some();
        let ticks = if has_clock { Some(self.staging(2 * 8)?) } else { None };
        let at_once = !how.download.is_empty() && (!how.timed || has_clock);
        let staging = if at_once { self.pieces(how.download.bytes())? } else { Vec::new() };

        let mut words = Vec::new();
        add_params(&mut words, plan);
        self.queue.write_buffer(&params, 0, &words);
        let groups = self.groups(plan, &pipelines, &buffers, &params, 0);

        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let queries = has_clock
            .then(|| self.device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count: 2 }));
        {
            let timestamp_writes = queries.as_ref().map(|query_set| wgpu::ComputePassTimestampWrites {
                query_set,
                beginning_of_pass_write_index: Some(0),
                end_of_pass_write_index: Some(1),
            });
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            for _ in 0..how.repeats {
                launch(&mut pass, plan, &pipelines, &groups, false, &[], None);
            }
        }
        if let (Some(queries), Some(ticks)) = (&queries, &ticks) {
            let resolved = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: ticks.bytes,
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            });
            encoder.resolve_query_set(queries, 0..2, &resolved, 0);
            fill(std::slice::from_ref(ticks), &mut encoder, &resolved, 0);
        }
        fill(&staging, &mut encoder, out.raw(), out.at_bytes());
        self.queue.submit([encoder.finish()]);
        Ok((params, staging, ticks))
    }

    /// Room for a result on its way to the host.
    pub(super) fn staging(&self, bytes: u64) -> Result<Staging> {
        // Copies are of whole words.
        let bytes = bytes.next_multiple_of(4);
        Ok(Staging { buffer: self.mappable(bytes)?, bytes, mapping: Mapping::No })
    }

    /// The same in pieces.
    fn pieces(&self, bytes: u64) -> Result<Vec<Staging>> {
        let mut pieces = Vec::new();
        for start in (0..bytes).step_by(PIECE_BYTES) {
            pieces.push(self.staging((bytes - start).min(PIECE_BYTES as u64))?);
        }
        Ok(pieces)
    }

    pub(super) async fn complete(&self, running: Running) -> Result<Finished> {
        let Running { queued, mut faults, started, download, mut staging, later, mut ticks, timed, _params } = running;
        let mut kernel_ms = 0.0;
        if timed && ticks.is_none() {
            self.work_done().await;
            kernel_ms = started.ms();
        }
        if let Some((from, at_bytes)) = later {
            let scopes = Scopes::open(&self.device);
            let pieces = self.pieces(download.bytes());
            if let Ok(pieces) = &pieces {
                let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                fill(pieces, &mut encoder, &from, at_bytes);
                self.queue.submit([encoder.finish()]);
            }
            faults.extend(scopes.close());
            staging = pieces?;
        }
        // All maps are asked for before any is waited for.
        for room in ticks.iter_mut().chain(&mut staging) {
            self.map(room);
        }
        // The device is busy meanwhile.
        let mut data = if staging.is_empty() { None } else { Some(room(download)?) };
        for verdict in queued {
            self.settle(&verdict).await?;
        }
        // The last of them caught what there was no memory for, by which others failed.
        while let Some(fault) = faults.pop() {
            self.judge(fault.await)?;
        }
        let device_clock = ticks.is_some();
        if let Some(mut ticks) = ticks {
            self.mapped(&mut ticks).await?;
            kernel_ms = self.ticks_ms(&ticks)?;
        }
        let mut at = 0;
        for mut piece in staging {
            self.mapped(&mut piece).await?;
            if let Some(data) = &mut data {
                self.read(&piece, data, at, download)?;
            }
            at += piece.bytes;
        }
        match self.health.lost() {
            Some(reason) => Err(Box::new(Error::DeviceLost { reason })),
            None => Ok(Finished {
                data,
                kernel_ms,
                device_clock,
                #[cfg(not(target_arch = "wasm32"))]
                download_ms: None,
            }),
        }
    }

    pub(super) async fn read_back(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
        let how = How { repeats: 0, timed: false, download: extent };
        let running = self.start(&Plan { dispatches: Vec::new(), scratch_bytes: 0 }, &[], buffer, how)?;
        // Without elements nothing is copied.
        Ok(self.complete(running).await?.data.unwrap_or_else(|| HostVec::empty(extent.dtype)))
    }

    /// What no scope caught.
    pub(super) fn settled(&self) -> Result<()> {
        match self.health.lost() {
            Some(reason) => Err(Box::new(Error::DeviceLost { reason })),
            // In the browser whoever puts something there asks for itself.
            None if cfg!(not(target_arch = "wasm32")) && self.health.was_short() => Err(self.out_of_memory()),
            None => Ok(()),
        }
    }

    pub(super) fn out_of_memory(&self) -> Box<Error> {
        self.forms.shrink();
        // What was not to be had may be a slab, or a buffer that somebody has.
        self.batches.slabs.retire();
        self.pool.retire();
        // In the browser what there is in use says most; natively it is told apart from what was asked for.
        let bytes = if cfg!(target_arch = "wasm32") { self.pool.stats().used_bytes } else { 0 };
        Box::new(Error::OutOfMemory { bytes, place: "the GPU" })
    }

    /// What a scope caught, as an error of this crate.
    pub(super) fn judge(&self, fault: Option<wgpu::Error>) -> Result<()> {
        if let Some(reason) = self.health.lost() {
            return Err(Box::new(Error::DeviceLost { reason }));
        }
        let Some(fault) = fault else { return Ok(()) };
        // A buffer that could not be had shows as a validation error where it is used.
        let out_of_memory = self.health.was_short() || matches!(fault, wgpu::Error::OutOfMemory { .. });
        Err(if out_of_memory { self.out_of_memory() } else { Error::internal(fault.to_string()) })
    }

    /// Asks for the buffer's contents.
    pub(super) fn map(&self, staging: &mut Staging) {
        let (sender, receiver) = oneshot::channel();
        staging.buffer.map_async(wgpu::MapMode::Read, 0..staging.bytes, move |mapped| {
            if mapped.is_ok() {
                // The receiver is gone if the call was dropped.
                let _ = sender.send(());
            }
        });
        staging.mapping = Mapping::Pending(self.attend(receiver));
    }

    pub(super) async fn work_done(&self) {
        let (sender, receiver) = oneshot::channel();
        self.queue.on_submitted_work_done(move || {
            let _ = sender.send(());
        });
        self.attend(receiver).came().await;
    }

    /// Waits until what was asked for can be read.
    pub(super) async fn mapped(&self, staging: &mut Staging) -> Result<()> {
        if let Mapping::Pending(notice) = &mut staging.mapping {
            // Nothing but a loss is left once the scopes are clean.
            if !notice.came().await {
                return Err(self.unmapped());
            }
            staging.mapping = Mapping::Done;
        }
        Ok(())
    }

    pub(super) fn unmapped(&self) -> Box<Error> {
        Box::new(Error::DeviceLost { reason: self.health.lost().unwrap_or_else(|| "the result could not be mapped".to_owned()) })
    }

    /// Copies a piece of a result to where it belongs, `at` bytes from the start.
    fn read(&self, piece: &Staging, data: &mut HostVec, at: u64, extent: Extent) -> Result<()> {
        match piece.buffer.get_mapped_range(0..piece.bytes) {
            Ok(view) => {
                copy(&view, data, at, piece.bytes.min(extent.bytes() - at));
                Ok(())
            }
            // It was mapped, so it was lost since.
            Err(_) => Err(self.unmapped()),
        }
    }

    fn ticks_ms(&self, staging: &Staging) -> Result<f64> {
        let ms = staging.buffer.get_mapped_range(0..staging.bytes).map(|view| {
            let (begin, end) = view.split_at(8);
            let tick = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
            // Drivers have been seen to give an end before its beginning.
            tick(end).saturating_sub(tick(begin)) as f64 * f64::from(self.timestamp_period_ns.unwrap_or(1.0)) / 1e6
        });
        ms.map_err(|_| self.unmapped())
    }
}

/// Room on the host for a result of so many bytes.
#[cfg(not(target_arch = "wasm32"))]
fn room(extent: Extent) -> Result<HostVec> {
    HostVec::with_room(extent)
}

/// Room on the host for a result. The system finds memory for an array only when it is touched, which costs more than the copy into it: the
/// first pieces' pages are touched while they are waited for.
#[cfg(target_arch = "wasm32")]
fn room(extent: Extent) -> Result<HostVec> {
    const TOUCHED_BYTES: u32 = 16 * PIECE_BYTES as u32;
    let room = HostVec::zeros(extent)?;
    room.bytes().fill(0, 0, TOUCHED_BYTES);
    Ok(room)
}

#[cfg(not(target_arch = "wasm32"))]
fn copy(view: &wgpu::BufferView, data: &mut HostVec, _: u64, length: u64) {
    data.extend(&view[..length as usize]);
}

#[cfg(target_arch = "wasm32")]
fn copy(view: &wgpu::BufferView, data: &mut HostVec, at: u64, length: u64) {
    data.bytes().set(&view.as_uint8array().subarray(0, length as u32), at as u32);
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::super::tests::webgpu;
    use super::*;
    use crate::backend::Backend;
    use crate::dtype::DType;
    use crate::ops::Op;
    use crate::ops::matmul::Matmul;

    /// What another thread records while a product is on its way may read memory that it then lets go of, and that is the product's scratch next.
    #[test]
    fn scratch_is_not_what_is_still_to_be_read() {
        let Some((device, _)) = webgpu() else { return };
        let product = |m: u64, k: u64, n: u64| Op::Matmul(Matmul::new(m, k, n).check([DType::F32; 2], m * k, k * n).unwrap());
        let ones = |count: u64| device.upload(&(&vec![1.0f32; count as usize]).into()).unwrap();
        let op = product(64, 8192, 64);
        let plan = device.plan(&op).unwrap();
        assert!(plan.scratch_bytes > 0, "{plan}");
        let (a, b, out) = (ones(64 * 8192), ones(64 * 8192), device.allocate(&plan, &op).unwrap());
        let (length, how) = (plan.scratch_bytes / 4, How { repeats: 1, timed: false, download: Extent::f32(0) });
        let (sum, ones_of_length) = (product(1, length, 1), ones(length));
        // What comes first is compiled. A batch is submitted by itself after a while, so that one round tells nothing.
        for round in 0..20 {
            let read = ones(length);
            let queued = device.queue(&sum, &[Some(&ones_of_length), Some(&read), None, None]).unwrap().expect("there is a queue");
            drop(read);
            drop(device.encode(&plan, &[Some(Bound::Buffer(&a)), Some(Bound::Buffer(&b))], &out, how).unwrap());
            let got = pollster::block_on(device.download(&queued, Extent::f32(1))).unwrap().into_vec();
            assert_eq!(got, [length as f32], "round {round}");
        }
    }

    /// Where the values of a read that was given up went is no place for the next one's until the device is done with it.
    #[test]
    fn reads_that_are_given_up_disturb_no_others() {
        let Some((device, _)) = webgpu() else { return };
        let (ones, twos) = ([1.0; 100], [2.0; 100]);
        let [first, second] = [&ones, &twos].map(|values| device.upload(&values.into()).unwrap());
        let extent = Extent::f32(100);
        for round in 0..600 {
            let mut given_up = Box::pin(device.download(&first, extent));
            let _ = given_up.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
            // Another thread is about to map it.
            let started = std::time::Instant::now();
            while started.elapsed() < std::time::Duration::from_micros(round % 200) {}
            drop(given_up);
            let got = pollster::block_on(device.download(&second, extent)).map(crate::host::HostVec::into_vec);
            assert_eq!(got, Ok(twos.into()), "round {round}");
        }
    }
}
