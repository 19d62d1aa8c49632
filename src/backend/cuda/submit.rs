//! Runs plans: a product's kernels, the events that time them and the copy of its result go into the stream together.
//!
//! Who waits looks a short while itself, since most products are done at once. Then a thread of the stream, asleep in the driver, waits
//! for all: a callback of the driver would not do, because after a fault it never comes.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdeviceptr;
use futures_channel::oneshot;

use super::buffer::{Buffer, Staging};
use super::driver::{Event, Fault};
use super::{Cuda, Running};
use crate::backend::{Bound, Finished, How};
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::HostVec;
use crate::kernels::{Interpretation, KernelId};
use crate::plan::{Plan, Slot};

/// The most room of a plan that goes back to the pool at once. It could be too much for the pool, and to free it would wait for the device.
const POOLED_BYTES: u64 = 64 << 20;

/// How long who waits looks itself.
const PATIENCE: Duration = Duration::from_micros(50);

impl Cuda {
    pub(super) fn start(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        let scratch = if plan.scratch_bytes > 0 { Some(self.storage(plan.scratch_bytes)?) } else { None };
        let mut addresses = Addresses(vec![out.0.address(), scratch.as_ref().map_or(0, |scratch| scratch.0.address())]);
        for operand in operands {
            addresses.0.push(match operand {
                None => 0,
                Some(Bound::Buffer(buffer)) => buffer.0.address(),
                Some(Bound::Host(_)) => return Err(Error::internal("a host operand reached the GPU")),
            });
        }
        // Compiled before the clock starts.
        let launches = plan.dispatches.iter().map(|dispatch| self.prepare(dispatch)).collect::<Result<Vec<_>>>()?;
        let judge = |fault: Fault| self.judge(&fault);
        // Other threads' work does not come between, where it would count as this call's time.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = if how.timed { Some(Event::record(&self.stream, true).map_err(judge)?) } else { None };
        for _ in 0..how.repeats {
            for (launch, dispatch) in launches.iter().zip(&plan.dispatches) {
                match launch {
                    Launch::Own(module, program) => self.launch(module, dispatch, &addresses, program.as_deref()).map_err(judge)?,
                    Launch::CublasLt(algorithm) => self.launch_cublaslt(algorithm, dispatch, &addresses)?,
                }
            }
        }
        let end = if how.timed { Some(Event::record(&self.stream, true).map_err(judge)?) } else { None };
        let staging = if !how.download.is_empty() { Some(self.stage(out, how.download)?) } else { None };
        let copied = if how.timed && staging.is_some() { Some(Event::record(&self.stream, true).map_err(judge)?) } else { None };
        let done = Arc::new(Event::record(&self.stream, false).map_err(judge)?);
        // What comes next in the stream may have it.
        let scratch = scratch.filter(|_| plan.scratch_bytes > POOLED_BYTES);
        Ok(Running { done, clock: begin.zip(end), copied, staging, scratch })
    }

    fn prepare(&self, dispatch: &crate::plan::Dispatch) -> Result<Launch> {
        if dispatch.kernel.id != KernelId::MatmulCublasLt {
            let kernel = &dispatch.kernel;
            let interpreted = kernel.source.as_ref().filter(|_| kernel.id == KernelId::MapInterpreted);
            let program = interpreted.map(|source| Interpretation::of(source, &kernel.constants).map(Box::new)).transpose()?;
            return Ok(Launch::Own(self.kernel(kernel)?, program));
        }
        let algorithm = self.cublaslt.as_ref().and_then(|library| library.algorithm(dispatch));
        algorithm.map(Launch::CublasLt).ok_or_else(|| Error::internal("a plan for cuBLASLt, which has no algorithm for it"))
    }

    pub(super) async fn complete(&self, running: Running) -> Result<Finished> {
        let Running { done, clock, copied, staging, scratch } = running;
        self.wait_for(done).await?;
        drop(scratch);
        let kernel_ms = match &clock {
            Some((begin, end)) => end.since_ms(begin).map_err(|fault| self.judge(&fault))?,
            None => 0.0,
        };
        let download_ms = match (&clock, &copied) {
            (Some((_, end)), Some(copied)) => Some(copied.since_ms(end).map_err(|fault| self.judge(&fault))?),
            _ => None,
        };
        let data = staging.as_ref().map(Staging::read).transpose()?;
        Ok(Finished { data, kernel_ms, device_clock: clock.is_some(), download_ms })
    }

    /// What is in a buffer, and how many milliseconds its way took if that is wanted.
    pub(super) async fn read_back(&self, buffer: &Buffer, extent: Extent, timed: bool) -> Result<(HostVec, Option<f64>)> {
        if extent.is_empty() {
            return Ok((HostVec::empty(extent.dtype), None));
        }
        let mark = || Event::record(&self.stream, timed).map_err(|fault| self.judge(&fault));
        let (begin, staging, copied) = {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let begin = if timed { Some(mark()?) } else { None };
            (begin, self.stage(buffer, extent)?, Arc::new(mark()?))
        };
        self.wait_for(Arc::clone(&copied)).await?;
        let ms = begin.map(|begin| copied.since_ms(&begin).map_err(|fault| self.judge(&fault))).transpose()?;
        Ok((staging.read()?, ms))
    }

    /// Waits until everything so far is done.
    pub(super) async fn settle(&self) -> Result<()> {
        let event = Event::record(&self.stream, false).map_err(|fault| self.judge(&fault))?;
        self.wait_for(Arc::new(event)).await
    }

    pub(super) async fn wait_for(&self, event: Arc<Event>) -> Result<()> {
        let started = Instant::now();
        let waited = loop {
            match event.is_done() {
                Ok(true) => break Ok(()),
                Err(fault) => break Err(fault),
                Ok(false) if started.elapsed() < PATIENCE => std::hint::spin_loop(),
                Ok(false) => break self.sleep(event).await,
            }
        };
        waited.map_err(|fault| self.judge(&fault))
    }

    async fn sleep(&self, event: Arc<Event>) -> Result<(), Fault> {
        match Arc::clone(&event.waiter).wait(Arc::clone(&event)) {
            Ok(receiver) => match receiver.await {
                Ok(waited) => waited,
                // The thread is gone.
                Err(oneshot::Canceled) => event.wait(),
            },
            Err(event) => event.wait(),
        }
    }
}

/// Where the buffers of a call are on the device, by slot; 0 for what is not there.
pub(super) struct Addresses(Vec<CUdeviceptr>);

impl Addresses {
    pub(super) fn of(&self, slot: Slot) -> CUdeviceptr {
        self.0.get(slot.index()).copied().unwrap_or(0)
    }
}

/// A dispatch made ready.
enum Launch {
    /// With the program that it interprets, if it does.
    Own(Arc<super::pipeline::Module>, Option<Box<Interpretation>>),
    CublasLt(Arc<super::cublaslt::Algorithm>),
}
