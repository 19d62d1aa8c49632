//! Kernels of the caller's through wgpu natively: one submission a call, in the order of the calls.
//!
//! Natively wgpu tells at once what an error scope caught, so that every call ends in its own error.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures_channel::oneshot;

use super::WebGpu;
use super::attend;
use super::buffer::{Buffer, Raw};
use super::launch::Scopes;
use super::pipeline::Pipeline;
use super::submit::Staging;
use crate::backend::BoxFuture;
use crate::backend::compute::{Bound, Compute, Launch};
use crate::clock::signed_ms;
use crate::compute::{KernelDefinition, Signature, reflection};
use crate::error::{Error, Result};
use crate::info::{Capabilities, DeviceKind, Memory};

/// Memory, which the device keeps for as long as it uses it.
pub(crate) struct Storage {
    raw: Arc<Raw>,
    /// Where it starts in that.
    start_bytes: u64,
    /// None for a tensor's, which has an owner.
    _owner: Option<Buffer>,
}

/// A kernel.
pub(crate) struct Program {
    pipeline: Pipeline,
    params: Option<u32>,
}

/// A place in the queue.
pub(crate) struct Mark {
    submission: wgpu::SubmissionIndex,
    /// When the device said that it was there.
    told: Arc<OnceLock<Instant>>,
    /// The device's own clock, if it has one.
    clock: Option<Clock>,
}

/// What the device's clock showed.
struct Clock {
    /// Mapped when the device has said that it was there.
    room: wgpu::Buffer,
    ticks: OnceLock<u64>,
}

/// What an adapter has.
pub(super) fn capabilities(about: &wgpu::AdapterInfo, features: wgpu::Features, limits: &wgpu::Limits) -> Capabilities {
    Capabilities {
        max_workgroup_size: [limits.max_compute_workgroup_size_x, limits.max_compute_workgroup_size_y, limits.max_compute_workgroup_size_z],
        max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
        max_grid: [limits.max_compute_workgroups_per_dimension; 3],
        max_storage_bindings: limits.max_storage_buffers_per_shader_stage,
        max_params_bytes: u32::try_from(limits.max_uniform_buffer_binding_size).unwrap_or(u32::MAX),
        subgroup_size: Some(about.subgroup_max_size).filter(|size| *size > 0),
        f16: features.contains(wgpu::Features::SHADER_F16),
        f64: features.contains(wgpu::Features::SHADER_F64),
        device_clock: features.contains(wgpu::Features::TIMESTAMP_QUERY),
        ..Capabilities::LEAST
    }
}

/// Names of what else there is, for kernels of the caller's.
pub(super) fn features(kind: DeviceKind, features: wgpu::Features) -> Vec<&'static str> {
    let names = [(features.contains(wgpu::Features::SHADER_F64), "shader-f64"), (kind.shares_memory(), "unified-memory")];
    names.into_iter().filter_map(|(there, name)| there.then_some(name)).collect()
}

impl WebGpu {
    /// Does something, and says what an error scope caught meanwhile.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let scopes = Scopes::open(&self.device);
        let done = work();
        for fault in scopes.close() {
            self.judge(pollster::block_on(fault))?;
        }
        done
    }

    /// Submits what is recorded.
    fn submit(&self, record: impl FnOnce(&mut wgpu::CommandEncoder)) -> wgpu::SubmissionIndex {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        record(&mut encoder);
        self.queue.submit([encoder.finish()])
    }

    /// A copy of some bytes in a buffer of its own.
    fn apart(&self, from: &wgpu::Buffer, from_bytes: u64, bytes: u64) -> Result<Buffer> {
        let apart = self.storage(bytes)?;
        self.batches.submit_users(&apart);
        self.submit(|encoder| encoder.copy_buffer_to_buffer(from, from_bytes, apart.raw(), 0, bytes));
        Ok(apart)
    }

    /// Has the device's clock read after all that was submitted.
    fn mark_ticks(&self) -> Mark {
        let queries = wgpu::QuerySetDescriptor { label: None, ty: wgpu::QueryType::Timestamp, count: 1 };
        let queries = self.device.create_query_set(&queries);
        let room = |usage| self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 8, usage, mapped_at_creation: false });
        let resolved = room(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let mapped = room(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let submission = self.submit(|encoder| {
            let timestamp_writes = Some(wgpu::ComputePassTimestampWrites {
                query_set: &queries,
                beginning_of_pass_write_index: Some(0),
                end_of_pass_write_index: None,
            });
            drop(encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes }));
            encoder.resolve_query_set(&queries, 0..1, &resolved, 0);
            encoder.copy_buffer_to_buffer(&resolved, 0, &mapped, 0, 8);
        });
        let (told, tell) = telling();
        // What comes of it shows when it is read.
        mapped.map_async(wgpu::MapMode::Read, .., |_| tell());
        Mark { submission, told, clock: Some(Clock { room: mapped, ticks: OnceLock::new() }) }
    }
}

/// The time at which what is told here is called.
fn telling() -> (Arc<OnceLock<Instant>>, impl FnOnce() + Send + 'static) {
    let told = Arc::new(OnceLock::new());
    let tell = Arc::clone(&told);
    (told, move || {
        tell.get_or_init(Instant::now);
    })
}

impl Compute for WebGpu {
    type Storage = Storage;
    type Program = Program;
    type Lane = ();
    type Mark = Mark;
    type Fetch = Staging;

    fn reserve(&self, _memory: Memory, bytes: u64) -> Result<Storage> {
        let mut reserved = None;
        let done = self.guarded(|| {
            let buffer = self.storage(bytes)?;
            // It may be memory that is still to be written to by what is recorded.
            self.batches.submit_users(&buffer);
            reserved = Some(buffer);
            Ok(())
        });
        match (done, reserved) {
            (Ok(()), Some(buffer)) => Ok(Storage { raw: Arc::clone(buffer.raw()), start_bytes: 0, _owner: Some(buffer) }),
            (Err(error), buffer) => {
                if let Some(mut buffer) = buffer {
                    buffer.discard();
                }
                Err(error)
            }
            (Ok(()), None) => Err(Error::internal("no buffer and no error")),
        }
    }

    fn adopt(&self, tensor: &Buffer) -> Result<Storage> {
        // What is recorded comes first, and has to have gone well.
        if let Some(verdict) = tensor.verdict.get() {
            pollster::block_on(self.settle(verdict))?;
        }
        self.batches.submit_users(tensor);
        tensor.lend();
        Ok(Storage { raw: Arc::clone(tensor.raw()), start_bytes: tensor.at_bytes(), _owner: None })
    }

    fn compile(&self, definition: &KernelDefinition, signature: &Signature) -> Result<Program> {
        let source = reflection::plain(definition.wgsl.as_deref().unwrap_or_default());
        let source = wgpu::ShaderSource::Wgsl(source);
        let compiled = self.guarded(|| {
            let label = Some(definition.name.as_str());
            let module = self.device.create_shader_module(wgpu::ShaderModuleDescriptor { label, source });
            let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label,
                layout: None,
                module: &module,
                entry_point: Some(&signature.entry),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            Ok(pipeline)
        });
        let pipeline = compiled.map_err(|error| match *error {
            // The source is right as far as naga says; what a driver then refuses is its word on it.
            Error::Internal { detail } => Box::new(Error::Compile { kernel: definition.name.clone(), language: "WGSL", log: detail }),
            error => Box::new(error),
        })?;
        let pipeline = self.guarded(|| Ok(Pipeline { bindings: pipeline.get_bind_group_layout(0), pipeline }))?;
        Ok(Program { pipeline, params: signature.params.map(|params| params.index) })
    }

    fn lane(&self) -> Result<()> {
        Ok(())
    }

    fn shared_lane(&self) -> Result<()> {
        Ok(())
    }

    fn store(&self, _lane: &(), to: &Storage, at_bytes: u64, bytes: &[u8]) -> Result<()> {
        self.guarded(|| {
            self.send(&to.raw, to.start_bytes + at_bytes, bytes);
            Ok(())
        })
    }

    fn fetch(&self, _lane: &(), from: &Storage, at_bytes: u64, bytes: u64) -> Result<Staging> {
        self.guarded(|| {
            let mut staging = self.staging(bytes.max(4))?;
            self.submit(|encoder| encoder.copy_buffer_to_buffer(&from.raw, from.start_bytes + at_bytes, &staging.buffer, 0, bytes));
            self.map(&mut staging);
            Ok(staging)
        })
    }

    fn fetched<'a>(&'a self, mut fetch: Staging, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.mapped(&mut fetch).await?;
            let view = fetch.buffer.get_mapped_range(0..out.len() as u64).map_err(|_| self.unmapped())?;
            out.copy_from_slice(&view);
            self.settled()
        })
    }

    fn copy(&self, _lane: &(), (from, from_bytes): (&Storage, u64), (to, to_bytes): (&Storage, u64), bytes: u64) -> Result<()> {
        self.guarded(|| {
            let (from_bytes, to_bytes) = (from.start_bytes + from_bytes, to.start_bytes + to_bytes);
            self.submit(|encoder| encoder.copy_buffer_to_buffer(&from.raw, from_bytes, &to.raw, to_bytes, bytes));
            Ok(())
        })
    }

    fn launch(&self, _lane: &(), program: &Program, launch: &Launch<'_, Storage>) -> Result<()> {
        self.guarded(|| {
            let entry = |binding, buffer, offset, bytes| wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size: wgpu::BufferSize::new(bytes) }),
            };
            let params = self.params(launch.params.len() as u64)?;
            // A launch must not read from the buffer that it writes to, which may be a slab with other tensors in it.
            let is_written = |raw| launch.buffers.iter().any(|bound| bound.is_written && Arc::ptr_eq(&bound.storage.raw, raw));
            let mut apart = Vec::new();
            for Bound { storage, is_written: writes, offset_bytes, size_bytes, .. } in &launch.buffers {
                let is_shared = !writes && is_written(&storage.raw);
                let start_bytes = storage.start_bytes + offset_bytes;
                apart.push(if is_shared { Some(self.apart(&storage.raw, start_bytes, *size_bytes)?) } else { None });
            }
            let mut entries = Vec::new();
            for (bound, apart) in launch.buffers.iter().zip(&apart) {
                let (raw, start_bytes) = match apart {
                    Some(apart) => (apart.raw(), 0),
                    None => (&bound.storage.raw, bound.storage.start_bytes + bound.offset_bytes),
                };
                entries.push(entry(bound.index, raw, start_bytes, bound.size_bytes));
            }
            if let Some(index) = program.params {
                let mut padded = launch.params.to_vec();
                padded.resize(padded.len().next_multiple_of(16), 0);
                self.queue.write_buffer(&params, 0, &padded);
                entries.push(entry(index, &params, 0, padded.len() as u64));
            }
            let group = wgpu::BindGroupDescriptor { label: None, layout: &program.pipeline.bindings, entries: &entries };
            let group = self.device.create_bind_group(&group);
            self.submit(|encoder| {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                pass.set_pipeline(&program.pipeline.pipeline);
                pass.set_bind_group(0, &group, &[]);
                let [x, y, z] = launch.grid;
                pass.dispatch_workgroups(x, y, z);
            });
            Ok(())
        })
    }

    fn mark(&self, _lane: &()) -> Result<Mark> {
        self.guarded(|| {
            if self.timestamp_period_ns.is_some() {
                return Ok(self.mark_ticks());
            }
            let submission = self.submit(|_| {});
            let (told, tell) = telling();
            let (sender, done) = oneshot::channel();
            self.queue.on_submitted_work_done(move || {
                tell();
                let _ = sender.send(());
            });
            // The time counts, whether or not somebody waits for it.
            drop(self.attend(done));
            Ok(Mark { submission, told, clock: None })
        })
    }

    fn wait(&self, _lane: &(), _mark: &Mark) -> Result<()> {
        // What comes later in the one queue runs later.
        Ok(())
    }

    fn reached<'a>(&'a self, mark: &'a Mark) -> BoxFuture<'a, Result<()>> {
        let (sender, told) = oneshot::channel();
        let (device, health, submission, reached) =
            (self.device.clone(), Arc::clone(&self.health), mark.submission.clone(), Arc::clone(&mark.told));
        let wait = move || {
            loop {
                attend::poll(&health, || device.poll(attend::until(&device, Some(submission.clone()))));
                if reached.get().is_some() || health.lost().is_some() {
                    break;
                }
                // Polled by two threads at a time, the device calls back in the other one, soon.
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = sender.send(());
        };
        let waiter = std::thread::Builder::new().spawn(wait).map(|waiter| self.outlive(waiter));
        Box::pin(async move {
            waiter.map_err(|error| Error::internal(format!("no thread could be started ({error})")))?;
            told.await.map_err(|_| Error::internal("the thread that waits for the GPU is gone"))?;
            self.settled()
        })
    }

    fn elapsed_ms(&self, from: &Mark, to: &Mark) -> Result<f64> {
        if let (Some(from), Some(to)) = (&from.clock, &to.clock) {
            let (from, to) = (self.ticks(from)?, self.ticks(to)?);
            let ticks = if to >= from { (to - from) as f64 } else { -((from - to) as f64) };
            return Ok(ticks * f64::from(self.timestamp_period_ns.unwrap_or(1.0)) / 1e6);
        }
        let time = |mark: &Mark| mark.told.get().copied().ok_or_else(|| Error::internal("an event without a time"));
        Ok(signed_ms(time(from)?, time(to)?))
    }
}

impl WebGpu {
    /// The clock at a mark that is reached.
    fn ticks(&self, clock: &Clock) -> Result<u64> {
        if let Some(ticks) = clock.ticks.get() {
            return Ok(*ticks);
        }
        let view = clock.room.get_mapped_range(..).map_err(|_| self.unmapped())?;
        let read = <[u8; 8]>::try_from(&view[..]).map_or(0, u64::from_le_bytes);
        Ok(*clock.ticks.get_or_init(|| read))
    }
}
