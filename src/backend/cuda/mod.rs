//! CUDA: NVIDIA's driver, loaded at run time, with cuBLASLt where it is installed and kernels of this crate where it is not.
//!
//! Each device has one stream, in which uploads, kernels and downloads run in the order in which calls make them. `load` finds libraries,
//! `driver` wraps what is used of them, and the other rooms are those of every backend.

mod adapter;
mod arguments;
mod buffer;
mod compute;
mod cublaslt;
mod driver;
mod generated;
mod load;
mod nvrtc;
mod pipeline;
mod submit;
mod waiter;

use std::sync::{Arc, Mutex};

pub(crate) use adapter::{list, open};
pub(crate) use buffer::Buffer;

use super::{Backend, Bound, Finished, How, MemoryStats, Timer};
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::info::Caps;
use crate::ops::{Op, matmul};
use crate::plan::{self, Plan};

/// An open device. The stream comes last: what is dropped before it waits for what is in it.
pub(crate) struct Cuda {
    /// Held while a call puts its work into the stream.
    turn: Mutex<()>,
    pieces: buffer::Pieces,
    pool: super::pool::Pool<buffer::Raw>,
    kernels: pipeline::Kernels,
    generated: generated::Generated,
    /// Whether kernels that are generated may be compiled here.
    may_compile: bool,
    cublaslt: Option<cublaslt::CublasLt>,
    multiprocessors: u32,
    compute_capability: (u32, u32),
    /// Of a block, for kernels of the caller's.
    max_shared_bytes: u32,
    /// Of the caller's own work.
    order: compute::Order,
    caps: Caps,
    stream: Arc<driver::Stream>,
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // A dropped call may have work in the stream that uses the kernels.
        let _ = self.stream.synchronize();
    }
}

/// Work under way.
pub(crate) struct Running {
    done: Arc<driver::Event>,
    /// Around the kernels, if their time is wanted.
    clock: Option<(driver::Event, driver::Event)>,
    /// After the result's copy, if that is to be timed.
    copied: Option<driver::Event>,
    staging: Option<buffer::Staging>,
    /// The plan's own room if it is large, held until the device is past it: to free it any earlier would wait.
    scratch: Option<Buffer>,
}

impl Cuda {
    fn judge(&self, fault: &driver::Fault) -> Box<Error> {
        self.stream.context.judge(fault)
    }

    fn plan_matmul(&self, problem: &matmul::Problem) -> Result<Plan> {
        matmul::Integers::refuse_in(problem, &self.caps)?;
        match self.plan_library(problem)? {
            Some(plan) => Ok(plan),
            None => plan::matmul::cuda(problem, &self.caps, self.multiprocessors),
        }
    }

    /// A plan for what is a product alone, if that is quicker than what else computes it.
    fn plan_product(&self, problem: &matmul::Problem) -> Result<Option<Plan>> {
        if plan::matmul::is_of_vectors(problem, &self.caps) {
            return plan::matmul::cuda(problem, &self.caps, self.multiprocessors).map(Some);
        }
        self.plan_library(problem)
    }

    /// A plan for NVIDIA's library, if it is there and takes such a product.
    fn plan_library(&self, problem: &matmul::Problem) -> Result<Option<Plan>> {
        let Some(library) = &self.cublaslt else { return Ok(None) };
        let plan = plan::matmul::cublaslt(problem, &self.caps, self.multiprocessors)?;
        // The product is the first.
        Ok(plan.filter(|plan| plan.dispatches.first().is_some_and(|product| library.algorithm(product).is_some())))
    }
}

impl Backend for Cuda {
    type Buffer = Buffer;
    type Running = Running;

    fn plan(&self, op: &Op) -> Result<Plan> {
        match op {
            Op::Matmul(problem) => self.plan_matmul(problem),
            Op::Map(problem) => self.plan_map(problem),
            Op::Reduce(problem) => self.plan_reduce(problem),
            Op::Normalize(problem) => self.plan_normalize(problem),
            Op::Conv(problem) => plan::conv::cuda(problem, &self.caps, self.multiprocessors, |product| self.plan_product(product)),
            Op::Pool(problem) => self.plan_pool(problem),
            Op::Fft(problem) => self.plan_fft(problem),
            Op::Fused(fused) => self.plan_fused(fused),
        }
    }

    fn tiles(&self) -> Vec<String> {
        // For what NVIDIA's library does not compute.
        plan::matmul::cuda_tiles()
    }

    fn plan_tuned(&self, op: &Op, tuned: plan::tuned::Tuned) -> Result<Plan> {
        let Op::Matmul(problem) = op else { return self.plan(op) };
        plan::matmul::cuda(problem, &Caps { tuned, ..self.caps.clone() }, self.multiprocessors)
    }

    fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        let buffer = self.storage(values.bytes().len() as u64)?;
        self.write(&buffer, values)?;
        Ok(buffer)
    }

    fn upload_timed(&self, values: &HostSlice<'_>) -> Result<(Buffer, Option<Timer>)> {
        let mark = || driver::Event::record(&self.stream, true).map_err(|fault| self.judge(&fault));
        let begin = mark()?;
        let buffer = self.upload(values)?;
        let end = mark()?;
        Ok((buffer, Some(Box::new(move || end.since_ms(&begin).ok()))))
    }

    fn allocate(&self, _plan: &Plan, op: &Op) -> Result<Buffer> {
        self.storage(op.extent().bytes())
    }

    fn submit(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        self.start(plan, operands, out, how)
    }

    async fn finish(&self, running: Running) -> Result<Finished> {
        self.complete(running).await
    }

    async fn download(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
        Ok(self.read_back(buffer, extent, false).await?.0)
    }

    async fn download_timed(&self, buffer: &Buffer, extent: Extent) -> Result<(HostVec, Option<f64>)> {
        self.read_back(buffer, extent, true).await
    }

    async fn synchronize(&self) -> Result<()> {
        self.settle().await
    }

    fn lost(&self) -> Option<String> {
        self.stream.context.lost()
    }

    fn memory(&self) -> MemoryStats {
        self.pool.stats()
    }

    fn trim(&self) {
        self.pool.trim();
    }
}
