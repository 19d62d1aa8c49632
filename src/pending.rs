//! Calls under way: what has been submitted and is waited for, and done once more if the device is lost meanwhile.

use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
use crate::backend::Timer;
#[cfg(target_arch = "wasm32")]
use crate::backend::cpu;
use crate::backend::device::Opened;
#[cfg(target_arch = "wasm32")]
use crate::backend::device::Running;
use crate::backend::{Backend, How};
use crate::call::{Call, Started};
use crate::clock::Stopwatch;
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Output, Report, Want};
use crate::host::{HostSlice, HostVec};
#[cfg(not(target_arch = "wasm32"))]
use crate::out_of_core;
#[cfg(not(target_arch = "wasm32"))]
use crate::profile::{Clocks, Operation};
use crate::tensor::Tensor;

/// A matrix on its way to the device.
pub(crate) struct PendingTensor<'a> {
    pub(crate) gpu: Gpu,
    pub(crate) opened: Arc<Opened>,
    pub(crate) values: HostSlice<'a>,
    pub(crate) fingerprint: u64,
    pub(crate) shape: Vec<u64>,
    /// None if the device was lost already.
    pub(crate) tensor: Option<Put>,
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) clock: Stopwatch,
    /// How often there had been no memory before.
    #[cfg(target_arch = "wasm32")]
    pub(crate) shortages: u32,
}

/// A tensor whose values are on their way, with what tells the time of that where somebody profiles.
#[cfg(not(target_arch = "wasm32"))]
type Put = (Tensor, Option<Timer>);
#[cfg(target_arch = "wasm32")]
type Put = (Tensor,);

impl PendingTensor<'_> {
    /// Waits for the device's word; after a loss, puts the matrix on a fresh device. In the browser it shows only now that there was no memory:
    /// then it is tried once more when what lies idle has been given back.
    pub(crate) async fn finish(self) -> Result<Tensor> {
        let Self { gpu, mut opened, values, fingerprint, shape, mut tensor, .. } = self;
        #[cfg(target_arch = "wasm32")]
        let mut shortages = self.shortages;
        let mut again = false;
        loop {
            let fault = match tensor {
                None => None,
                Some(put) => {
                    let settled = opened.device.synchronize().await;
                    #[cfg(target_arch = "wasm32")]
                    let settled = settled.and_then(|()| opened.device.check_memory(shortages));
                    let Err(error) = settled else {
                        #[cfg(not(target_arch = "wasm32"))]
                        if gpu.is_profiled() && !again {
                            gpu.profiler().add(Operation::of_upload(&put.0, &opened.info, put.1, self.clock.ms()));
                        }
                        return Ok(put.0);
                    };
                    match *error {
                        Error::DeviceLost { .. } if !again => None,
                        #[cfg(target_arch = "wasm32")]
                        Error::OutOfMemory { .. } if !again => Some(error),
                        _ => return Err(error),
                    }
                }
            };
            match &fault {
                Some(_) => opened.device.trim(),
                None => opened = gpu.reopen(&opened).await?,
            }
            if values.fingerprint() != fingerprint {
                return Err(fault.unwrap_or_else(changed_meanwhile));
            }
            again = true;
            #[cfg(target_arch = "wasm32")]
            {
                shortages = opened.device.shortages();
            }
            tensor = Some(put(&gpu, &opened, &values, &shape)?);
        }
    }
}

/// Out of memory, it is tried once more when what lies idle has been given back.
pub(crate) fn put(gpu: &Gpu, opened: &Arc<Opened>, values: &HostSlice<'_>, shape: &[u64]) -> Result<Put> {
    match put_once(gpu, opened, values, shape) {
        Err(error) if matches!(*error, Error::OutOfMemory { .. }) => {
            opened.device.trim();
            put_once(gpu, opened, values, shape)
        }
        put => put,
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn put_once(gpu: &Gpu, opened: &Arc<Opened>, values: &HostSlice<'_>, shape: &[u64]) -> Result<Put> {
    let (buffer, timer) = if gpu.is_profiled() { opened.device.upload_timed(values)? } else { (opened.device.keep(values)?, None) };
    Ok((gpu.watched(Tensor::new(shape.to_vec(), values.dtype(), buffer, Arc::clone(opened))), timer))
}

#[cfg(target_arch = "wasm32")]
fn put_once(_gpu: &Gpu, opened: &Arc<Opened>, values: &HostSlice<'_>, shape: &[u64]) -> Result<Put> {
    Ok((Tensor::new(shape.to_vec(), values.dtype(), opened.device.keep(values)?, Arc::clone(opened)),))
}

/// Whether a call reads its operands after it returned, if it has to be done again: on the CPU one that is not done by then.
pub(crate) fn may_read_again(started: &Result<Option<Started>>, opened: &Opened) -> bool {
    let is_shared = |started: &Started| started.plan.dispatches.iter().any(|dispatch| dispatch.grid[0] > 1);
    opened.info.backend.is_gpu() || matches!(started, Ok(Some(started)) if is_shared(started))
}

fn changed_meanwhile() -> Box<Error> {
    Box::new(Error::DeviceLost { reason: "it cannot be done again, because an operand was changed meanwhile".to_owned() })
}

#[cfg_attr(target_arch = "wasm32", expect(unused_variables, reason = "nobody profiles in the browser"))]
pub(crate) fn start(gpu: &Gpu, call: &Call<'_>, opened: &Opened, want: Want) -> Result<Option<Started>> {
    let extent = call.op.extent();
    if extent.is_empty() && !want.keep {
        return Ok(None);
    }
    let download = if want.keep { Extent { elements: 0, ..extent } } else { extent };
    let how = How { repeats: 1, timed: want.timed, download };
    #[cfg(not(target_arch = "wasm32"))]
    if gpu.is_profiled() {
        return call.start_profiled(opened, how).map(Some);
    }
    call.start(opened, how).map(Some)
}

/// A product that is submitted. Dropping it gives its memory back when the device is done.
pub(crate) struct Pending<'a> {
    pub(crate) gpu: Gpu,
    pub(crate) call: Call<'a>,
    pub(crate) want: Want,
    pub(crate) opened: Arc<Opened>,
    /// None for a result without elements.
    pub(crate) started: Result<Option<Started>>,
    pub(crate) fingerprint: u64,
    pub(crate) clock: Stopwatch,
}

impl Pending<'_> {
    /// Whether the result is there already.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn is_over(&self) -> bool {
        matches!(&self.started, Ok(Some(Started { running: Running::Cpu(cpu::Running::Done(_)), .. })))
            && self.opened.device.gives_at_once()
    }

    /// Waits for the result; after a loss, once more on a fresh device.
    pub(crate) async fn finish(self) -> Result<Report<Output>> {
        let Self { gpu, call, want, mut opened, mut started, fingerprint, clock } = self;
        let (mut lost, mut again) = (false, false);
        loop {
            let error = match complete(&gpu, &call, &opened, started, &clock).await {
                Ok(report) => {
                    #[cfg(target_arch = "wasm32")]
                    if let (true, Some(device)) = (want.timed, opened.device.name()) {
                        return Ok(Report { replayed: lost, device, ..report });
                    }
                    return Ok(Report { replayed: lost, ..report });
                }
                #[cfg(not(target_arch = "wasm32"))]
                Err(error) if again && matches!(*error, Error::OutOfMemory { .. }) => {
                    let report = out_of_core::in_parts(&gpu, &call, &opened, want, error).await?;
                    return Ok(Report { replayed: lost || report.replayed, ..report });
                }
                Err(error) if again => return Err(error),
                Err(error) => error,
            };
            match *error {
                Error::DeviceLost { .. } if opened.device.lost().is_none() && call.is_left_by(&opened) => return Err(error),
                Error::DeviceLost { .. } => {
                    // If not this call, the next one is to find a device.
                    opened = gpu.reopen(&opened).await?;
                    if !call.is_replayable() {
                        return Err(error);
                    }
                    lost = true;
                }
                // On the CPU it may be a worker that found no room: then none are left, and the next try is without. On a GPU who found out before has
                // given back what lay idle.
                #[cfg(target_arch = "wasm32")]
                Error::OutOfMemory { .. } => opened.device.trim(),
                #[cfg(not(target_arch = "wasm32"))]
                Error::OutOfMemory { .. } if opened.device.memory().pooled_bytes > 0 => opened.device.trim(),
                #[cfg(not(target_arch = "wasm32"))]
                Error::OutOfMemory { .. } => return out_of_core::in_parts(&gpu, &call, &opened, want, error).await,
                _ => return Err(error),
            }
            if fingerprint != 0 && call.fingerprint() != fingerprint {
                return Err(if lost { changed_meanwhile() } else { error });
            }
            started = start(&gpu, &call, &opened, want);
            again = true;
        }
    }
}

pub(crate) async fn complete(
    gpu: &Gpu,
    call: &Call<'_>,
    opened: &Arc<Opened>,
    started: Result<Option<Started>>,
    clock: &Stopwatch,
) -> Result<Report<Output>> {
    #[cfg(not(target_arch = "wasm32"))]
    let mut clocks = Clocks::default();
    let (data, kernel, upload_ms, kernel_ms, device_clock) = match started? {
        None => (Output::Host(HostVec::empty(call.op.extent().dtype)), "none".to_owned(), 0.0, 0.0, false),
        Some(started) => {
            let Started { running, out, plan, upload_ms, .. } = started;
            let finished = opened.device.finish(running).await?;
            #[cfg(not(target_arch = "wasm32"))]
            {
                clocks = Clocks { uploads: started.uploads, download_ms: finished.download_ms, keeps: finished.data.is_none() };
            }
            let data = match finished.data {
                Some(values) => Output::Host(values),
                None => Output::Tensor(gpu.watched(Tensor::new(call.shape.clone(), call.op.extent().dtype, out, Arc::clone(opened)))),
            };
            (data, plan.kernel(), upload_ms, finished.kernel_ms, finished.device_clock)
        }
    };
    let total_ms = clock.ms();
    let report = Report {
        data,
        backend: opened.info.backend,
        device: opened.info.name.clone(),
        software: opened.info.is_software(),
        kernel,
        upload_ms,
        kernel_ms,
        download_ms: (total_ms - upload_ms - kernel_ms).max(0.0),
        total_ms,
        device_clock,
        replayed: false,
    };
    #[cfg(not(target_arch = "wasm32"))]
    if gpu.is_profiled() {
        gpu.profiler().add(Operation::of_call(call, opened, &report, clocks));
    }
    Ok(report)
}
