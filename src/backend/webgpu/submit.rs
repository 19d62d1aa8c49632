//! Runs plans: one submission a product, its copy to the host included.

use std::future::Future;
use std::pin::Pin;

use futures_channel::oneshot;

use super::WebGpu;
use super::buffer::{Buffer, Raw};
use crate::backend::pool::Pooled;
use crate::backend::{Bound, Finished, How};
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::host::HostVec;
use crate::plan::{Plan, Slot};

/// Parameters of each dispatch lie this far apart, which every adapter allows.
const PARAMS_STRIDE_BYTES: u64 = 256;

#[cfg(target_arch = "wasm32")]
type ScopeFuture = Pin<Box<dyn Future<Output = Option<wgpu::Error>>>>;
#[cfg(not(target_arch = "wasm32"))]
type ScopeFuture = Pin<Box<dyn Future<Output = Option<wgpu::Error>> + Send>>;

/// A submission under way.
pub(crate) struct Running {
    faults: [ScopeFuture; 2],
    started: Stopwatch,
    elements: u64,
    /// The result's copy, unless the clock outside has to see the kernel alone first.
    staging: Option<Staging>,
    /// What is copied once the kernel's time is known.
    later: Option<wgpu::Buffer>,
    ticks: Option<Staging>,
    timed: bool,
    /// Kept from the pool until the work is done.
    _params: Pooled<Raw>,
}

/// A buffer that the host is about to read.
struct Staging {
    buffer: Pooled<Raw>,
    bytes: u64,
}

impl WebGpu {
    pub(super) fn start(&self, plan: &Plan, operands: [Option<Bound<'_, Buffer>>; 3], out: &Buffer, how: How) -> Result<Running> {
        let scopes = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation].map(|filter| self.device.push_error_scope(filter));
        let started = self.encode(plan, operands, out, how);
        let [outer, inner] = scopes;
        // Scopes close in the reverse order.
        let inner: ScopeFuture = Box::pin(inner.pop());
        let faults: [ScopeFuture; 2] = [Box::pin(outer.pop()), inner];
        started.map(|(params, staging, ticks)| Running {
            faults,
            started: Stopwatch::start(),
            elements: how.download,
            later: (staging.is_none() && how.download > 0).then(|| (**out.0).clone()),
            staging,
            ticks,
            timed: how.timed,
            _params: params,
        })
    }

    fn encode(
        &self,
        plan: &Plan,
        operands: [Option<Bound<'_, Buffer>>; 3],
        out: &Buffer,
        how: How,
    ) -> Result<(Pooled<Raw>, Option<Staging>, Option<Staging>)> {
        let params = self.params(PARAMS_STRIDE_BYTES * plan.dispatches.len() as u64)?;
        let mut words = vec![0u8; PARAMS_STRIDE_BYTES as usize * plan.dispatches.len()];
        for (chunk, dispatch) in words.chunks_exact_mut(PARAMS_STRIDE_BYTES as usize).zip(&plan.dispatches) {
            let bytes = bytemuck::bytes_of(&dispatch.params);
            chunk[..bytes.len()].copy_from_slice(bytes);
        }
        self.queue.write_buffer(&params, 0, &words);

        // What a plan binds without reading still has to be a buffer.
        let nothing = self.storage(0)?;
        let find = |slot: Slot| match (slot, operands.get(slot.index())) {
            (Slot::Out, _) => Ok(&out.0),
            (_, Some(Some(Bound::Buffer(buffer)))) => Ok(&buffer.0),
            (_, Some(None)) => Ok(&nothing.0),
            _ => Err(Error::internal("a host operand reached the GPU")),
        };
        let mut launches = Vec::with_capacity(plan.dispatches.len());
        for (index, dispatch) in plan.dispatches.iter().enumerate() {
            let pipeline = self.pipeline(&dispatch.kernel)?;
            let range = |buffer, offset, size| {
                wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(size) })
            };
            let params_at = PARAMS_STRIDE_BYTES * index as u64;
            let mut entries = vec![wgpu::BindGroupEntry {
                binding: 3,
                resource: range(&params, params_at, size_of_val(&dispatch.params).next_multiple_of(16) as u64),
            }];
            for binding in &dispatch.bindings {
                entries.push(wgpu::BindGroupEntry {
                    binding: binding.index,
                    resource: range(find(binding.slot)?, binding.offset_bytes, binding.size_bytes),
                });
            }
            let group =
                self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout: &pipeline.bindings, entries: &entries });
            launches.push((pipeline, group, dispatch.grid));
        }

        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let queries = (how.timed && self.timestamp_period_ns.is_some())
            .then(|| self.device.create_query_set(&wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count: 2 }));
        {
            let timestamp_writes = queries.as_ref().map(|query_set| wgpu::ComputePassTimestampWrites {
                query_set,
                beginning_of_pass_write_index: Some(0),
                end_of_pass_write_index: Some(1),
            });
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
            for _ in 0..how.repeats {
                for (pipeline, group, [x, y, z]) in &launches {
                    pass.set_pipeline(&pipeline.pipeline);
                    pass.set_bind_group(0, group, &[]);
                    pass.dispatch_workgroups(*x, *y, *z);
                }
            }
        }
        let ticks = match &queries {
            Some(queries) => {
                let resolved = self.device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size: 16,
                    usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                    mapped_at_creation: false,
                });
                encoder.resolve_query_set(queries, 0..2, &resolved, 0);
                let buffer = self.staging(16)?;
                encoder.copy_buffer_to_buffer(&resolved, 0, &buffer, 0, 16);
                Some(Staging { buffer, bytes: 16 })
            }
            None => None,
        };
        let at_once = how.download > 0 && (!how.timed || ticks.is_some());
        let staging = if at_once { Some(self.copy_out(&mut encoder, &out.0, how.download)?) } else { None };
        self.queue.submit([encoder.finish()]);
        Ok((params, staging, ticks))
    }

    fn copy_out(&self, encoder: &mut wgpu::CommandEncoder, from: &wgpu::Buffer, elements: u64) -> Result<Staging> {
        let bytes = elements * 4;
        let buffer = self.staging(bytes)?;
        encoder.copy_buffer_to_buffer(from, 0, &buffer, 0, bytes);
        Ok(Staging { buffer, bytes })
    }

    pub(super) async fn complete(&self, running: Running) -> Result<Finished> {
        let Running { faults, started, elements, mut staging, later, ticks, timed, _params } = running;
        let mut kernel_ms = 0.0;
        if timed && ticks.is_none() {
            self.work_done().await;
            kernel_ms = started.ms();
        }
        if let Some(from) = later {
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            staging = Some(self.copy_out(&mut encoder, &from, elements)?);
            self.queue.submit([encoder.finish()]);
        }
        // Both maps are asked for before either is waited for.
        let ticks = ticks.map(|ticks| (self.map(&ticks), ticks));
        let mapped = staging.map(|staging| (self.map(&staging), staging));
        for fault in faults {
            self.judge(fault.await)?;
        }
        let device_clock = ticks.is_some();
        if let Some((mapping, ticks)) = ticks {
            kernel_ms = self.ticks_ms(mapping, &ticks).await?;
        }
        let data = match mapped {
            Some((mapping, staging)) => Some(self.read(mapping, &staging).await?),
            None => None,
        };
        match self.health.lost() {
            Some(reason) => Err(Error::DeviceLost { reason }),
            None => Ok(Finished { data, kernel_ms, device_clock }),
        }
    }

    pub(super) async fn read_back(&self, buffer: &Buffer, elements: u64) -> Result<HostVec> {
        let how = How { repeats: 0, timed: false, download: elements };
        let running = self.start(&Plan { dispatches: Vec::new() }, [None, None, None], buffer, how)?;
        self.complete(running).await?.data.ok_or_else(|| Error::internal("no result"))
    }

    /// What no scope caught.
    pub(super) fn settled(&self) -> Result<()> {
        match self.health.lost() {
            Some(reason) => Err(Error::DeviceLost { reason }),
            None if self.health.note_out_of_memory(false) => Err(self.out_of_memory()),
            None => Ok(()),
        }
    }

    fn out_of_memory(&self) -> Error {
        Error::OutOfMemory { bytes: self.pool.stats().used_bytes, place: "the GPU" }
    }

    /// What a scope caught, as an error of this crate.
    fn judge(&self, fault: Option<wgpu::Error>) -> Result<()> {
        if let Some(reason) = self.health.lost() {
            return Err(Error::DeviceLost { reason });
        }
        let Some(fault) = fault else { return Ok(()) };
        // A buffer that could not be had shows as a validation error where it is used.
        let out_of_memory = self.health.note_out_of_memory(false) || matches!(fault, wgpu::Error::OutOfMemory { .. });
        Err(if out_of_memory { self.out_of_memory() } else { Error::internal(fault.to_string()) })
    }

    fn map(&self, staging: &Staging) -> oneshot::Receiver<Result<(), wgpu::BufferAsyncError>> {
        let (sender, receiver) = oneshot::channel();
        staging.buffer.map_async(wgpu::MapMode::Read, 0..staging.bytes, move |mapped| {
            // The receiver is gone if the call was dropped.
            let _ = sender.send(mapped);
        });
        self.attend();
        receiver
    }

    pub(super) async fn work_done(&self) {
        let (sender, receiver) = oneshot::channel();
        self.queue.on_submitted_work_done(move || {
            let _ = sender.send(());
        });
        self.attend();
        let _ = receiver.await;
    }

    /// Natively callbacks come only while somebody polls the device.
    fn attend(&self) {
        #[cfg(not(target_arch = "wasm32"))]
        {
            let (device, health) = (self.device.clone(), std::sync::Arc::clone(&self.health));
            std::thread::spawn(move || {
                if let Err(error) = device.poll(wgpu::PollType::wait_indefinitely()) {
                    health.lose(error.to_string());
                }
            });
        }
    }

    async fn mapped(&self, mapping: oneshot::Receiver<Result<(), wgpu::BufferAsyncError>>) -> Result<()> {
        match mapping.await {
            Ok(Ok(())) => Ok(()),
            // Nothing but a loss is left once the scopes are clean.
            _ => Err(self.unmapped()),
        }
    }

    fn unmapped(&self) -> Error {
        Error::DeviceLost { reason: self.health.lost().unwrap_or_else(|| "the result could not be mapped".to_owned()) }
    }

    async fn read(&self, mapping: oneshot::Receiver<Result<(), wgpu::BufferAsyncError>>, staging: &Staging) -> Result<HostVec> {
        self.mapped(mapping).await?;
        let data = match staging.buffer.get_mapped_range(0..staging.bytes) {
            Ok(view) => copy(&view),
            // It was mapped, so it was lost since.
            Err(_) => Err(self.unmapped()),
        };
        staging.buffer.unmap();
        data
    }

    async fn ticks_ms(&self, mapping: oneshot::Receiver<Result<(), wgpu::BufferAsyncError>>, staging: &Staging) -> Result<f64> {
        self.mapped(mapping).await?;
        let ms = staging.buffer.get_mapped_range(0..staging.bytes).map(|view| {
            let (begin, end) = view.split_at(8);
            let tick = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
            // Drivers have been seen to give an end before its beginning.
            tick(end).saturating_sub(tick(begin)) as f64 * f64::from(self.timestamp_period_ns.unwrap_or(1.0)) / 1e6
        });
        staging.buffer.unmap();
        ms.map_err(|_| self.unmapped())
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn copy(view: &wgpu::BufferView) -> Result<HostVec> {
    let values: &[f32] = bytemuck::cast_slice(view);
    let mut out = Vec::new();
    out.try_reserve_exact(values.len()).map_err(|_| Error::OutOfMemory { bytes: view.len() as u64, place: "the host" })?;
    out.extend_from_slice(values);
    Ok(HostVec(out))
}

#[cfg(target_arch = "wasm32")]
fn copy(view: &wgpu::BufferView) -> Result<HostVec> {
    let bytes = view.as_uint8array();
    let elements = bytes.length() / 4;
    let out = crate::backend::cpu::wasm::new_array(u64::from(elements))?;
    out.set(&js_sys::Float32Array::new_with_byte_offset_and_length(&bytes.buffer(), bytes.byte_offset(), elements), 0);
    Ok(HostVec(out))
}
