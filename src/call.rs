//! One product on one device: operands to where the kernel reads them, the plan, the submission. All of it happens before `start`
//! returns, so that the caller's arrays are free again.

#[cfg(not(target_arch = "wasm32"))]
use std::ops::Range;

#[cfg(not(target_arch = "wasm32"))]
use crate::backend::Timer;
use crate::backend::device::{Buffer, Device, Opened, Running};
use crate::backend::{Backend, Bound, How};
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::host::HostSlice;
use crate::ops::Op;
use crate::ops::matmul::Matmul;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::matmul::{Problem, Stored};
use crate::plan::Plan;
use crate::tensor::Tensor;

/// A matrix to multiply: on the host, or on the device already.
#[derive(Clone)]
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
    fn elements(&self) -> u64 {
        match self {
            Self::Host(values) => values.len(),
            Self::Tensor(tensor) => tensor.rows() * tensor.columns(),
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
    a: Operand<'a>,
    b: Operand<'a>,
    c: Option<Operand<'a>>,
}

/// A product under way.
pub(crate) struct Started {
    pub running: Running,
    pub out: Buffer,
    pub plan: Plan,
    pub upload_ms: f64,
    /// What tells the time of each upload, if that was asked for and the device has a clock for it.
    #[cfg(not(target_arch = "wasm32"))]
    pub uploads: Vec<Option<Timer>>,
}

impl<'a> Call<'a> {
    /// Checks everything that can be checked without a device.
    pub(crate) fn new(op: &Matmul<'a>, a: Operand<'a>, b: Operand<'a>) -> Result<Self> {
        let problem = op.check(a.elements(), b.elements())?;
        let c = op.c.clone().filter(|_| problem.c.is_some()).map(Operand::Host);
        Ok(Self { op: Op::Matmul(problem), a, b, c })
    }

    /// Whether all operands are still on the host, to be read again.
    pub(crate) fn is_replayable(&self) -> bool {
        matches!((&self.a, &self.b), (Operand::Host(_), Operand::Host(_)))
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        let c = self.c.as_ref().map_or(0, Operand::fingerprint);
        self.a.fingerprint().rotate_left(1) ^ self.b.fingerprint() ^ c.rotate_left(2)
    }

    /// The same product for some rows and columns of the result; None if an operand is not on the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn part(&self, rows: Range<u32>, columns: Range<u32>) -> Option<Self> {
        let Op::Matmul(problem) = &self.op;
        let (Operand::Host(a), Operand::Host(b)) = (&self.a, &self.b) else { return None };
        let (m, k, n) = (rows.len() as u32, problem.k, columns.len() as u32);
        // Where the part of a stored matrix starts, and how it is stored.
        let part = |stored: Stored, (row, column): (u32, u32), (rows, columns): (u32, u32)| {
            let part = Stored { rows, columns, stride: stored.stride };
            (u64::from(row) * stored.stride + u64::from(column), part)
        };
        let swap = |yes: bool, (x, y): (u32, u32)| if yes { (y, x) } else { (x, y) };
        let mut op = Problem { m, n, ..problem.clone() };
        let (mut a, mut b) = (a.clone(), b.clone());
        if problem.reads_operands() {
            let (a_start, a_part) = part(problem.a, swap(problem.transpose_a, (rows.start, 0)), swap(problem.transpose_a, (m, k)));
            let (b_start, b_part) = part(problem.b, swap(problem.transpose_b, (0, columns.start)), swap(problem.transpose_b, (k, n)));
            (op.a, op.b) = (a_part, b_part);
            (a, b) = (a.part(a_start, a_part.span()), b.part(b_start, b_part.span()));
        }
        let c = match (&self.c, problem.c) {
            (Some(Operand::Host(c)), Some(stored)) => {
                let (c_start, c_part) = part(stored, (rows.start, columns.start), (m, n));
                op.c = Some(c_part);
                Some(Operand::Host(c.part(c_start, c_part.span())))
            }
            (None, _) => None,
            _ => return None,
        };
        Some(Self { op: Op::Matmul(op), a: Operand::Host(a), b: Operand::Host(b), c })
    }

    /// Bytes of the operands that are on the host.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn upload_bytes(&self, opened: &Opened) -> u64 {
        let host = |operand: &Operand<'_>| if matches!(operand, Operand::Host(_)) { operand.elements() * 4 } else { 0 };
        let ab = if self.op.reads_operands() { host(&self.a) + host(&self.b) } else { 0 };
        if opened.device.reads_host_memory() { 0 } else { ab + self.c.as_ref().map_or(0, host) }
    }

    /// Queues a product of matrices that are on the device; None if this one has to be waited for.
    pub(crate) fn queue(&self, opened: &Opened) -> Result<Option<Buffer>> {
        let (Operand::Tensor(a), Operand::Tensor(b), None) = (&self.a, &self.b, &self.c) else { return Ok(None) };
        // After a loss there is something to wait for: a fresh device.
        if opened.device.lost().is_some() {
            return Ok(None);
        }
        let operands = if self.op.reads_operands() { [Some(a.buffer_on(opened)?), Some(b.buffer_on(opened)?)] } else { [None; 2] };
        opened.device.queue(&self.op, operands)
    }

    /// Uploads and submits.
    pub(crate) fn start(&self, opened: &Opened, how: How) -> Result<Started> {
        self.start_with(opened, how, upload)
    }

    /// The same, timing what is uploaded.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn start_profiled(&self, opened: &Opened, how: How) -> Result<Started> {
        let mut timers = Vec::new();
        let started = self.start_with(opened, how, |device, operand| match operand {
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
        mut upload: impl FnMut(&Device, Option<&Operand<'_>>) -> Result<Option<Buffer>>,
    ) -> Result<Started> {
        let device = &opened.device;
        if let Some(reason) = device.lost() {
            return Err(Box::new(Error::DeviceLost { reason }));
        }
        let stopwatch = Stopwatch::start();
        let plan = device.plan(&self.op)?;
        let reads = self.op.reads_operands();
        let (a, b) = (Some(&self.a).filter(|_| reads), Some(&self.b).filter(|_| reads));
        let uploads = [upload(device, a)?, upload(device, b)?, upload(device, self.c.as_ref())?];
        let out = device.allocate(&plan, &self.op)?;
        let upload_ms = stopwatch.ms();
        let [a_upload, b_upload, c_upload] = &uploads;
        let operands =
            [bind(opened, a, a_upload.as_ref())?, bind(opened, b, b_upload.as_ref())?, bind(opened, self.c.as_ref(), c_upload.as_ref())?];
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

fn bind<'a>(opened: &Opened, operand: Option<&'a Operand<'_>>, upload: Option<&'a Buffer>) -> Result<Option<Bound<'a, Buffer>>> {
    Ok(match (operand, upload) {
        (None, _) => None,
        (_, Some(buffer)) => Some(Bound::Buffer(buffer)),
        (Some(Operand::Host(values)), None) => Some(Bound::Host(values.clone())),
        (Some(Operand::Tensor(tensor)), None) => Some(Bound::Buffer(tensor.buffer_on(opened)?)),
    })
}
