//! One product on one device: operands to where the kernel reads them, the plan, the submission. All of it happens before `start`
//! returns, so that the caller's arrays are free again.

#[cfg(not(target_arch = "wasm32"))]
use std::ops::Range;

#[cfg(not(target_arch = "wasm32"))]
use crate::backend::Timer;
use crate::backend::device::{Buffer, Device, Opened, Running};
use crate::backend::{Backend, Bound, How};
use crate::clock::Stopwatch;
use crate::dtype::DType;
#[cfg(target_arch = "wasm32")]
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::HostSlice;
use crate::ops::Op;
use crate::ops::matmul::{Matmul, not_of_type};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::matmul::{Problem, Stored};
use crate::plan::Plan;
use crate::tensor::{Tensor, elements};

/// A matrix to multiply: on the host, or on the device already.
#[derive(Debug, Clone)]
pub enum Operand<'a> {
    /// Row-major values on the host, read once.
    Host(HostSlice<'a>),
    /// A matrix put on the device before.
    Tensor(Tensor),
}

impl<'a, T: Into<HostSlice<'a>>> From<T> for Operand<'a> {
    fn from(values: T) -> Self {
        Self::Host(values.into())
    }
}

impl From<&Tensor> for Operand<'_> {
    fn from(tensor: &Tensor) -> Self {
        Self::Tensor(tensor.clone())
    }
}

impl Operand<'_> {
    pub(crate) fn elements(&self) -> u64 {
        match self {
            Self::Host(values) => values.len(),
            Self::Tensor(tensor) => elements(tensor.shape()),
        }
    }

    pub(crate) fn dtype(&self) -> DType {
        match self {
            Self::Host(values) => values.dtype(),
            Self::Tensor(tensor) => tensor.dtype(),
        }
    }

    fn fingerprint(&self) -> u64 {
        match self {
            Self::Host(values) => values.fingerprint(),
            Self::Tensor(_) => 0,
        }
    }
}

/// A checked operation with its operands.
pub(crate) struct Call<'a> {
    pub op: Op,
    /// The result's.
    pub shape: Vec<u64>,
    /// In the order of the plan's slots; None for what is not read.
    pub inputs: [Option<Operand<'a>>; 4],
}

/// A product under way.
pub(crate) struct Started {
    pub running: Running,
    pub out: Buffer,
    pub plan: Plan,
    /// If it was asked for.
    pub upload_ms: f64,
    /// What tells the time of each upload, if that was asked for and the device has a clock for it.
    #[cfg(not(target_arch = "wasm32"))]
    pub uploads: Vec<Option<Timer>>,
}

impl<'a> Call<'a> {
    /// Checks everything that can be checked without a device.
    pub(crate) fn new(op: &Matmul<'a>, a: Operand<'a>, b: Operand<'a>) -> Result<Self> {
        let dtypes = [a.dtype(), b.dtype()];
        if dtypes[0] != dtypes[1] && !dtypes.iter().all(|dtype| dtype.is_byte()) {
            return Err(not_of_type("b", dtypes[0], dtypes[1]));
        }
        let problem = op.check(dtypes, a.elements(), b.elements())?;
        let (reads, reads_c) = (problem.reads_operands(), problem.c.is_some());
        let inputs = [Some(a).filter(|_| reads), Some(b).filter(|_| reads), op.c.clone().filter(|_| reads_c), op.bias.clone()];
        Ok(Self { op: Op::Matmul(problem), shape: op.shape()?, inputs })
    }

    /// Whether all operands are still on the host, to be read again.
    pub(crate) fn is_replayable(&self) -> bool {
        !self.inputs.iter().flatten().any(|input| matches!(input, Operand::Tensor(_)))
    }

    /// Whether an operand went with another device than this one, which may be sound.
    pub(crate) fn is_left_by(&self, opened: &Opened) -> bool {
        self.inputs.iter().flatten().any(|input| matches!(input, Operand::Tensor(tensor) if tensor.is_left_by(opened)))
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        self.inputs.iter().fold(0, |all, input| all.rotate_left(1) ^ input.as_ref().map_or(0, Operand::fingerprint))
    }

    /// The same product for some items of its batch, all of one turn of the outer loop or all of several turns, and for some rows and columns of
    /// their results; None if an operand is not on the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn part(&self, items: Range<u64>, rows: Range<u32>, columns: Range<u32>) -> Option<Self> {
        let Op::Matmul(problem) = &self.op else { return None };
        let (starts, batch) = (problem.batch.starts(items.start), problem.batch.part(items.end - items.start));
        let reaches = batch.reaches();
        let (m, k, n) = (rows.len() as u32, problem.k, columns.len() as u32);
        // Where the part of a stored matrix starts, and how it is stored.
        let part = |stored: Stored, (row, column): (u32, u32), (rows, columns): (u32, u32)| {
            let part = Stored { rows, columns, stride: stored.stride };
            (u64::from(row) * stored.stride + u64::from(column), part)
        };
        let swap = |yes: bool, (x, y): (u32, u32)| if yes { (y, x) } else { (x, y) };
        let (a_start, a) = part(problem.a, swap(problem.transpose_a, (rows.start, 0)), swap(problem.transpose_a, (m, k)));
        let (b_start, b) = part(problem.b, swap(problem.transpose_b, (0, columns.start)), swap(problem.transpose_b, (k, n)));
        let c = problem.c.map(|c| part(c, (rows.start, columns.start), (m, n)));
        let (c_start, c_span) = c.map_or((0, 0), |(start, c)| (start, c.span()));
        let of = |operand: usize, start: u64, span: u64| (starts[operand] + start, reaches[operand] + span);
        let ranges = [of(0, a_start, a.span()), of(1, b_start, b.span()), of(2, c_start, c_span), (columns.start.into(), n.into())];
        let mut inputs = [const { None }; 4];
        for ((to, input), (start, length)) in inputs.iter_mut().zip(&self.inputs).zip(ranges) {
            *to = match input {
                None => None,
                Some(Operand::Host(values)) => Some(Operand::Host(values.part(start, length))),
                Some(Operand::Tensor(_)) => return None,
            };
        }
        let op = Op::Matmul(Problem { m, n, batch, a, b, c: c.map(|(_, c)| c), ..*problem });
        Some(Self { op, shape: vec![batch.count(), m.into(), n.into()], inputs })
    }

    /// Bytes of the operands that are on the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn upload_bytes(&self, opened: &Opened) -> u64 {
        let host =
            |operand: &Operand<'_>| if matches!(operand, Operand::Host(_)) { operand.elements() * operand.dtype().bytes() } else { 0 };
        if opened.device.reads_host_memory() { 0 } else { self.inputs.iter().flatten().map(host).sum() }
    }

    /// Queues a product of matrices that are on the device; None if this one has to be waited for.
    pub(crate) fn queue(&self, opened: &Opened) -> Result<Option<Buffer>> {
        // After a loss there is something to wait for: a fresh device.
        let on_host = self.inputs.iter().flatten().any(|input| matches!(input, Operand::Host(_)));
        if on_host || opened.device.lost().is_some() {
            return Ok(None);
        }
        #[cfg(target_arch = "wasm32")]
        if !opened.info.backend.is_gpu() {
            return self.compute_now(opened);
        }
        let mut buffers = [None; 4];
        for (buffer, input) in buffers.iter_mut().zip(&self.inputs) {
            if let Some(Operand::Tensor(tensor)) = input {
                *buffer = Some(tensor.buffer_on(opened)?);
            }
        }
        opened.device.queue(&self.op, &buffers)
    }

    /// On the CPU what one thread computes is there at once; None if others are to help, or there is no room: whoever waits sees to that.
    #[cfg(target_arch = "wasm32")]
    fn compute_now(&self, opened: &Opened) -> Result<Option<Buffer>> {
        let plan = opened.device.plan(&self.op)?;
        if plan.dispatches.iter().any(|dispatch| dispatch.grid[0] > 1) {
            return Ok(None);
        }
        let how = How { repeats: 1, timed: false, download: Extent { elements: 0, ..self.op.extent() } };
        match self.start_with(opened, how, Some(plan), upload) {
            Ok(started) => Ok(Some(started.out)),
            Err(error) if matches!(*error, Error::OutOfMemory { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Uploads and submits.
    pub(crate) fn start(&self, opened: &Opened, how: How) -> Result<Started> {
        self.start_with(opened, how, None, upload)
    }

    /// The same, timing what is uploaded.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn start_profiled(&self, opened: &Opened, how: How) -> Result<Started> {
        let mut timers = Vec::new();
        let started = self.start_with(opened, how, None, |device, operand| match operand {
            Some(Operand::Host(values)) if !device.reads_host_memory() => {
                let (buffer, timer) = device.upload_timed(values)?;
                timers.push(timer);
                Ok(Some(buffer))
            }
            _ => Ok(None),
        })?;
        Ok(Started { uploads: timers, ..started })
    }

    fn start_with(
        &self,
        opened: &Opened,
        how: How,
        plan: Option<Plan>,
        mut upload: impl FnMut(&Device, Option<&Operand<'_>>) -> Result<Option<Buffer>>,
    ) -> Result<Started> {
        let device = &opened.device;
        if let Some(reason) = device.lost() {
            return Err(Box::new(Error::DeviceLost { reason }));
        }
        let stopwatch = how.timed.then(Stopwatch::start);
        // What is timed is the kernel that will compute in the end.
        let plan = match plan {
            Some(plan) => plan,
            #[cfg(target_arch = "wasm32")]
            None if !how.timed => device.plan_soon(&self.op)?,
            None => device.plan(&self.op)?,
        };
        let mut uploads = [const { None }; 4];
        for (uploaded, input) in uploads.iter_mut().zip(&self.inputs) {
            *uploaded = upload(device, input.as_ref())?;
        }
        let out = device.allocate(&plan, &self.op)?;
        let upload_ms = stopwatch.as_ref().map_or(0.0, Stopwatch::ms);
        let mut operands = [const { None }; 4];
        for ((operand, upload), input) in operands.iter_mut().zip(&uploads).zip(&self.inputs) {
            *operand = match (input, upload) {
                (None, _) => None,
                (_, Some(buffer)) => Some(Bound::Buffer(buffer)),
                (Some(Operand::Host(values)), None) => Some(Bound::Host(values.clone())),
                (Some(Operand::Tensor(tensor)), None) => Some(Bound::Buffer(tensor.buffer_on(opened)?)),
            };
        }
        let running = device.submit(&plan, &operands, &out, how)?;
        Ok(Started {
            running,
            out,
            plan,
            upload_ms,
            #[cfg(not(target_arch = "wasm32"))]
            uploads: Vec::new(),
        })
    }
}

/// Device memory for a host operand, where the kernel cannot read it in place.
fn upload(device: &Device, operand: Option<&Operand<'_>>) -> Result<Option<Buffer>> {
    match operand {
        Some(Operand::Host(values)) if !device.reads_host_memory() => device.upload(values).map(Some),
        _ => Ok(None),
    }
}
