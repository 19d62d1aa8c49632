//! The handle: one device, replaced when it is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use crate::backend::device::Opened;
use crate::backend::{Backend, BoxFuture, MemoryStats};
#[cfg(not(target_arch = "wasm32"))]
use crate::blocking::is_blocked;
use crate::call::{Call, Operand};
use crate::clock::Stopwatch;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::info::{BackendId, DeviceInfo};
use crate::ops::matmul::Matmul;
use crate::options::Options;
use crate::pending::{Pending, PendingTensor, may_read_again, put, start};
#[cfg(not(target_arch = "wasm32"))]
use crate::profile::Profiler;
use crate::select;
#[cfg(not(target_arch = "wasm32"))]
use crate::selector::Selector;
use crate::tensor::{Tensor, check_length, check_sizes};

/// A device to compute on. Clones share it; two that were opened apart share nothing.
///
/// When the device is lost, the calls under way whose operands are on the host are replayed once on a fresh device, which all of them share; the others
/// end in [`Error::DeviceLost`]. No result of a lost device is ever given.
#[derive(Clone)]
pub struct Gpu(Arc<Inner>);

struct Inner {
    options: Options,
    /// What chose the device, if something did: it chooses the next one too.
    #[cfg(not(target_arch = "wasm32"))]
    selector: Option<Selector>,
    state: Mutex<State>,
    #[cfg(not(target_arch = "wasm32"))]
    profiler: Arc<Profiler>,
    /// The caller's own.
    #[cfg(not(target_arch = "wasm32"))]
    kernels: crate::compute::Registry,
}

impl Inner {
    fn new(options: Options, opened: Arc<Opened>) -> Self {
        Self {
            #[cfg(not(target_arch = "wasm32"))]
            profiler: Profiler::new(options.profile),
            #[cfg(not(target_arch = "wasm32"))]
            kernels: crate::compute::Registry::default(),
            #[cfg(not(target_arch = "wasm32"))]
            selector: None,
            options,
            state: Mutex::new(State { opened: Some(opened), reopening: None }),
        }
    }
}

struct State {
    /// None once the handle is closed.
    opened: Option<Arc<Opened>>,
    /// Somebody is opening a fresh device; the others wait for it here.
    reopening: Option<Vec<oneshot::Sender<()>>>,
}

/// A result and how it came about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Report<Data = Vec<f32>> {
    /// The result, packed by rows.
    pub data: Data,
    /// What computed it.
    pub backend: BackendId,
    /// The adapter's name.
    pub device: String,
    /// Whether a CPU emulated the GPU.
    pub software: bool,
    /// The kernel that ran.
    pub kernel: String,
    /// Bringing the operands to the device.
    pub upload_ms: f64,
    /// The kernel itself.
    pub kernel_ms: f64,
    /// All after that, to the result on the host.
    pub download_ms: f64,
    /// From the call to the result.
    pub total_ms: f64,
    /// Whether a clock of the device gave `kernel_ms`, rather than one outside.
    pub device_clock: bool,
    /// Whether the device was lost on the way and the product computed again.
    pub replayed: bool,
}

impl<Data> Report<Data> {
    /// The same report with other data.
    pub(crate) fn map<Other>(self, f: impl FnOnce(Data) -> Other) -> Report<Other> {
        let Self { data, backend, device, software, kernel, upload_ms, kernel_ms, download_ms, total_ms, device_clock, replayed } = self;
        Report { data: f(data), backend, device, software, kernel, upload_ms, kernel_ms, download_ms, total_ms, device_clock, replayed }
    }
}

/// What a product gives.
pub(crate) enum Output {
    Host(HostVec),
    Tensor(Tensor),
}

/// How a product's result is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Want {
    pub timed: bool,
    pub keep: bool,
}

impl Gpu {
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the backend asked for is not there, with the reason and what would bring it.
    pub async fn open(options: Options) -> Result<Self> {
        let opened = Arc::new(select::open(&options).await?);
        Ok(Self(Arc::new(Inner::new(options, opened))))
    }

    /// A handle of a device that a selector has chosen and opened with these options.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn selected(options: Options, opened: Opened, selector: Selector) -> Self {
        Self(Arc::new(Inner { selector: Some(selector), ..Inner::new(options, Arc::new(opened)) }))
    }

    /// A handle of a device that a test made.
    #[cfg(all(test, feature = "vulkan", not(target_arch = "wasm32")))]
    pub(crate) fn with(options: Options, opened: Opened) -> Self {
        Self(Arc::new(Inner::new(options, Arc::new(opened))))
    }

    /// The device in use.
    ///
    /// # Errors
    /// [`Error::Disposed`] after [`close`](Self::close).
    pub fn info(&self) -> Result<DeviceInfo> {
        let opened = self.current()?;
        let mut info = opened.info.clone();
        opened.device.update(&mut info);
        Ok(info)
    }

    /// C = α·op(A)·op(B) + β·C; see [`Matmul`]. A result of another type than f32 is given in f32, which changes no value of f16, and rounds sums of
    /// i32 past 2²⁴; [`matmul_values`](Self::matmul_values) gives it as it is.
    ///
    /// # Errors
    /// What is wrong with the dimensions or lengths; limits and memory of the device; its loss.
    pub async fn matmul(&self, a: impl Into<Operand<'_>>, b: impl Into<Operand<'_>>, op: &Matmul<'_>) -> Result<Vec<f32>> {
        Ok(self.host_report(a.into(), b.into(), op, false).await?.data)
    }

    /// The same in the result's own type.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul).
    #[cfg(not(target_arch = "wasm32"))]
    pub async fn matmul_values(&self, a: impl Into<Operand<'_>>, b: impl Into<Operand<'_>>, op: &Matmul<'_>) -> Result<HostVec> {
        Ok(self.values_report(a.into(), b.into(), op, false).await?.data)
    }

    /// The same with the times it took.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul).
    pub async fn matmul_report(&self, a: impl Into<Operand<'_>>, b: impl Into<Operand<'_>>, op: &Matmul<'_>) -> Result<Report> {
        self.host_report(a.into(), b.into(), op, true).await
    }

    /// The same with the result staying on the device.
    ///
    /// Where all operands are tensors, WebGPU and WebGL2 only queue the product: this resolves at once, and products that follow one another
    /// share a submission. What the device finds wrong later is an error of whatever reads the tensor, or of whatever is computed from it.
    ///
    /// # Errors
    /// As [`matmul`](Self::matmul).
    pub async fn matmul_tensor(&self, a: impl Into<Operand<'_>>, b: impl Into<Operand<'_>>, op: &Matmul<'_>) -> Result<Tensor> {
        let call = Call::new(op, a.into(), b.into())?;
        if !self.is_profiled()
            && let Some(tensor) = self.queue(&call)?
        {
            return Ok(tensor);
        }
        let report = self.begin(call, Want { timed: false, keep: true })?.finish().await?;
        match report.data {
            Output::Tensor(tensor) => Ok(tensor),
            Output::Host(_) => Err(Error::internal("a result on the host in place of a tensor")),
        }
    }

    async fn host_report(&self, a: Operand<'_>, b: Operand<'_>, op: &Matmul<'_>, timed: bool) -> Result<Report> {
        Ok(self.values_report(a, b, op, timed).await?.map(HostVec::into_vec))
    }

    async fn values_report(&self, a: Operand<'_>, b: Operand<'_>, op: &Matmul<'_>, timed: bool) -> Result<Report<HostVec>> {
        let report = self.begin(Call::new(op, a, b)?, Want { timed, keep: false })?.finish().await?;
        match report.data {
            Output::Host(_) => Ok(report.map(|data| match data {
                Output::Host(values) => values,
                Output::Tensor(_) => HostVec::empty(DType::F32),
            })),
            Output::Tensor(_) => Err(Error::internal("a tensor in place of a result on the host")),
        }
    }

    /// Puts a row-major matrix on the device. Arrays of other dimensions are made of one by [`Tensor::reshape`], which copies nothing.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are not rows · columns values; limits and memory of the device.
    pub async fn tensor(&self, values: impl Into<HostSlice<'_>>, rows: u64, columns: u64) -> Result<Tensor> {
        let shape = vec![rows, columns];
        check_sizes(&shape)?;
        self.begin_tensor(values.into(), shape)?.finish().await
    }

    /// The part of [`tensor`](Self::tensor) that reads the values. What only a product reads may have a dimension that no array has.
    pub(crate) fn begin_tensor<'a>(&self, values: HostSlice<'a>, shape: Vec<u64>) -> Result<PendingTensor<'a>> {
        let opened = self.current()?;
        check_length("data", values.len(), &shape)?;
        let fingerprint = values.fingerprint();
        #[cfg(not(target_arch = "wasm32"))]
        let clock = Stopwatch::start();
        #[cfg(target_arch = "wasm32")]
        let shortages = opened.device.shortages();
        let tensor = match put(self, &opened, &values, &shape) {
            // A fresh device will be opened.
            Err(error) if matches!(*error, Error::DeviceLost { .. }) => None,
            put => Some(put?),
        };
        Ok(PendingTensor {
            gpu: self.clone(),
            opened,
            values,
            fingerprint,
            shape,
            tensor,
            #[cfg(not(target_arch = "wasm32"))]
            clock,
            #[cfg(target_arch = "wasm32")]
            shortages,
        })
    }

    /// Queues a product of tensors whose result is kept, if there is nothing to wait for.
    pub(crate) fn queue(&self, call: &Call<'_>) -> Result<Option<Tensor>> {
        let opened = self.current()?;
        let out = match call.queue(&opened) {
            // Whoever waits for it gives back what lies idle.
            Err(error) if matches!(*error, Error::OutOfMemory { .. }) => None,
            out => out?,
        };
        Ok(out.map(|out| self.watched(Tensor::new(call.shape.clone(), call.op.extent().dtype, out, opened))))
    }

    /// Checks, uploads and submits; what is left is waiting.
    pub(crate) fn begin<'a>(&self, call: Call<'a>, want: Want) -> Result<Pending<'a>> {
        let opened = self.current()?;
        let clock = Stopwatch::start();
        let want = Want { timed: want.timed || self.is_profiled(), ..want };
        #[cfg_attr(not(target_arch = "wasm32"), expect(unused_mut, reason = "natively nobody changes an operand meanwhile"))]
        let mut started = start(self, &call, &opened, want);
        #[cfg(target_arch = "wasm32")]
        if matches!(&started, Err(error) if matches!(**error, Error::OutOfMemory { .. })) && opened.device.reads_host_memory() {
            // Once this returns the page may change what it reads.
            opened.device.trim();
            started = start(self, &call, &opened, want);
        }
        let fingerprint = if may_read_again(&started, &opened) { call.fingerprint() } else { 0 };
        if let Err(error) = &started {
            // Both may go away: a lost device by a fresh one, a full one by giving back what the pool holds, which in the browser a CPU has done.
            let may_go = match **error {
                Error::DeviceLost { .. } => true,
                Error::OutOfMemory { .. } => cfg!(not(target_arch = "wasm32")) || !opened.device.reads_host_memory(),
                _ => false,
            };
            if !may_go {
                return Err(error.clone());
            }
        }
        Ok(Pending { gpu: self.clone(), call, want, opened, started, fingerprint, clock })
    }

    /// Memory of the device.
    ///
    /// # Errors
    /// [`Error::Disposed`] after [`close`](Self::close).
    pub fn memory(&self) -> Result<MemoryStats> {
        Ok(self.current()?.device.memory())
    }

    /// Gives free pooled buffers back to the system.
    ///
    /// # Errors
    /// [`Error::Disposed`] after [`close`](Self::close).
    pub fn trim(&self) -> Result<()> {
        self.current()?.device.trim();
        Ok(())
    }

    /// Closes this handle and its clones. Calls under way finish; later ones get [`Error::Disposed`].
    pub fn close(&self) {
        let opened = self.state().opened.take();
        #[cfg(not(target_arch = "wasm32"))]
        self.0.kernels.forget();
        drop(opened);
    }

    /// The kernels that were defined by name.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn registry(&self) -> &crate::compute::Registry {
        &self.0.kernels
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn profiler(&self) -> &Arc<Profiler> {
        &self.0.profiler
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn is_profiled(&self) -> bool {
        self.0.profiler.is_on()
    }

    /// The tensor, whose way to the host will be profiled with the rest.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn watched(&self, tensor: Tensor) -> Tensor {
        tensor.watched_by(self.profiler())
    }

    #[cfg(target_arch = "wasm32")]
    pub(crate) fn watched(&self, tensor: Tensor) -> Tensor {
        tensor
    }

    #[cfg(target_arch = "wasm32")]
    const fn is_profiled(&self) -> bool {
        false
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn current(&self) -> Result<Arc<Opened>> {
        self.state().opened.clone().ok_or(Box::new(Error::Disposed { what: "handle" }))
    }

    /// A device other than `lost`. Of all who ask at once one opens it, and the others wait; but not a caller that blocks its thread, since whoever
    /// opens one already may be a task of that very thread.
    pub(crate) fn reopen<'a>(&'a self, lost: &'a Arc<Opened>) -> BoxFuture<'a, Result<Arc<Opened>>> {
        Box::pin(self.replace(lost))
    }

    /// What is opened in place of a device that is lost.
    #[cfg(not(target_arch = "wasm32"))]
    async fn choose(&self) -> Result<Opened> {
        match &self.0.selector {
            Some(selector) => Ok(selector.open().await?.1),
            None => select::open(&self.0.options).await,
        }
    }

    #[cfg(target_arch = "wasm32")]
    fn choose(&self) -> BoxFuture<'_, Result<Opened>> {
        select::open(&self.0.options)
    }

    async fn replace(&self, lost: &Arc<Opened>) -> Result<Arc<Opened>> {
        loop {
            let mut own = None;
            let turn = {
                let mut state = self.state();
                match &state.opened {
                    None => return Err(Box::new(Error::Disposed { what: "handle" })),
                    Some(opened) if !Arc::ptr_eq(opened, lost) => return Ok(Arc::clone(opened)),
                    Some(_) => {}
                }
                match &mut state.reopening {
                    Some(waiting) if !is_blocked() => {
                        let (sender, receiver) = oneshot::channel();
                        waiting.push(sender);
                        Some(receiver)
                    }
                    Some(_) => None,
                    None => {
                        state.reopening = Some(Vec::new());
                        own = Some(Reopening(self));
                        None
                    }
                }
            };
            if let Some(turn) = turn {
                // Woken by the turn's end, also if it came to nothing: then this call tries itself.
                let _ = turn.await;
                continue;
            }
            let mut fresh = self.choose().await?;
            fresh.info.generation = lost.info.generation + 1;
            let mut fresh = Arc::new(fresh);
            {
                let mut state = self.state();
                match &mut state.opened {
                    Some(opened) if Arc::ptr_eq(opened, lost) => *opened = Arc::clone(&fresh),
                    // Somebody who does not wait was quicker.
                    Some(opened) => fresh = Arc::clone(opened),
                    None => return Err(Box::new(Error::Disposed { what: "handle" })),
                }
            }
            // Kernels keep the device that they were compiled for.
            #[cfg(not(target_arch = "wasm32"))]
            self.0.kernels.forget();
            drop(own);
            return Ok(fresh);
        }
    }
}

/// No thread of the page is.
#[cfg(target_arch = "wasm32")]
const fn is_blocked() -> bool {
    false
}

/// The turn of who opens a fresh device; its end, however it comes, wakes the others.
struct Reopening<'a>(&'a Gpu);

impl Drop for Reopening<'_> {
    fn drop(&mut self) {
        // Dropping the senders wakes the receivers.
        drop(self.0.state().reopening.take());
    }
}
