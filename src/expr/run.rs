//! The computing of expressions.

use std::borrow::Cow;
use std::sync::Arc;

use super::Expr;
use super::lower::{Lowered, Operation, Operations, Source};
use crate::backend::device::{Buffer, Opened, Running};
use crate::backend::{Backend, Bound, How};
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::ops::Op;
use crate::plan::Plan;
use crate::tensor::Tensor;

impl Gpu {
    /// Computes an expression; its value stays on the device. What can be one kernel is one: see [`Expr`].
    ///
    /// WebGPU and WebGL2 only queue the operations: this resolves at once, and what is evaluated one after another shares a submission. What
    /// the device finds wrong later is an error of whatever reads the tensor, or of whatever is computed from it. An expression that is a tensor,
    /// or its elements in another shape, gives that tensor: memory that a kernel of one's own writes to is both's.
    ///
    /// # Errors
    /// What is wrong with the expression; a tensor of another device; limits and memory of the device; its loss, if tensors went with it.
    pub async fn evaluate(&self, expr: &Expr) -> Result<Tensor> {
        let opened = self.current()?;
        let error = match self.try_evaluate(expr, &opened).await {
            Ok(tensor) => return Ok(tensor),
            Err(error) => error,
        };
        match *error {
            Error::OutOfMemory { .. } => {
                opened.device.trim();
                self.try_evaluate(expr, &opened).await
            }
            Error::DeviceLost { .. } => {
                let (operations, _) = Operations::of(expr.node()?, None)?;
                // One that went with another device than this one, which may be sound.
                let is_left = operations.tensors.iter().any(|tensor| tensor.is_left_by(&opened));
                if is_left && opened.device.lost().is_none() {
                    return Err(error);
                }
                let fresh = self.reopen(&opened).await?;
                // The tensors went with the device; what is made of none is computed on the fresh one.
                if operations.tensors.is_empty() { self.try_evaluate(expr, &fresh).await } else { Err(error) }
            }
            _ => Err(error),
        }
    }

    async fn try_evaluate(&self, expr: &Expr, opened: &Arc<Opened>) -> Result<Tensor> {
        let node = expr.node()?;
        #[cfg(not(target_arch = "wasm32"))]
        {
            if !opened.info.backend.is_gpu() && !self.is_profiled() {
                return self.evaluate_prepared(node, opened);
            }
            let prepared = node.prepared.of(node, opened)?;
            let plan = |at, _: &Op| prepared.plan(at, opened).map(Cow::Borrowed);
            self.run_by(&prepared.lowered, &prepared.tensors, opened, plan).await
        }
        #[cfg(target_arch = "wasm32")]
        {
            let (lowered, tensors) = Lowered::of(node, opened)?;
            self.run(&lowered, &tensors, opened).await
        }
    }

    /// Computes what an expression was lowered to, of these tensors.
    #[cfg(target_arch = "wasm32")]
    pub(crate) async fn run(&self, lowered: &Lowered, tensors: &[Tensor], opened: &Arc<Opened>) -> Result<Tensor> {
        self.run_by(lowered, tensors, opened, |_, op| opened.device.plan(op).map(Cow::Owned)).await
    }

    /// The same by plans, which are asked for by the operation and its number.
    async fn run_by<'p>(
        &self,
        lowered: &Lowered,
        tensors: &[Tensor],
        opened: &Arc<Opened>,
        plan: impl Fn(usize, &Op) -> Result<Cow<'p, Plan>>,
    ) -> Result<Tensor> {
        if let Some(reason) = opened.device.lost() {
            return Err(Box::new(Error::DeviceLost { reason }));
        }
        // Before anything is queued.
        tensors.iter().try_for_each(|tensor| tensor.buffer_on(opened).map(drop))?;
        let mut made = Results::new(lowered, tensors);
        let mut running = Vec::new();
        for (at, Operation { op, sources }) in lowered.list.iter().enumerate() {
            let plan = || plan(at, op);
            let mut inputs = Vec::with_capacity(sources.len());
            for source in sources {
                inputs.push(match source {
                    None => None,
                    Some(source) => Some(made.get(*source)?.buffer_on(opened)?),
                });
            }
            #[cfg(not(target_arch = "wasm32"))]
            let buffer = if self.is_profiled() {
                self.profiled(opened, op, plan, &inputs).await?
            } else {
                start(opened, op, plan, &inputs, &mut running)?
            };
            #[cfg(target_arch = "wasm32")]
            let buffer = start(opened, op, plan, &inputs, &mut running)?;
            // On a CPU other threads may be at it, and nobody waits for them but here.
            if !opened.info.backend.is_gpu() {
                for running in running.drain(..) {
                    opened.device.finish(running).await?;
                }
            }
            let Extent { elements, dtype } = op.extent();
            made.push(self.watched(Tensor::new(vec![elements], dtype, buffer, Arc::clone(opened))));
        }
        // They were submitted in order; a later one that is done says nothing of an earlier one's faults.
        for running in running {
            opened.device.finish(running).await?;
        }
        made.value(opened)
    }

    /// Computes an operation by itself, and records what it took.
    #[cfg(not(target_arch = "wasm32"))]
    async fn profiled<'p>(
        &self,
        opened: &Opened,
        op: &Op,
        plan: impl FnOnce() -> Result<Cow<'p, Plan>>,
        inputs: &[Option<&Buffer>],
    ) -> Result<Buffer> {
        let clock = crate::clock::Stopwatch::start();
        let (plan, out, running) = submit(opened, op, plan, inputs, true)?;
        let finished = match running {
            Some(running) => Some(opened.device.finish(running).await?),
            None => None,
        };
        self.profiler().add(crate::profile::Operation::of_step(op, &plan, opened, finished.as_ref(), clock.ms()));
        Ok(out)
    }
}

/// Queues an operation where the device has a queue, else submits it; gives the memory of its result.
fn start<'p>(
    opened: &Opened,
    op: &Op,
    plan: impl FnOnce() -> Result<Cow<'p, Plan>>,
    inputs: &[Option<&Buffer>],
    running: &mut Vec<Running>,
) -> Result<Buffer> {
    if op.elements() > 0
        && let Some(out) = opened.device.queue(op, inputs)?
    {
        return Ok(out);
    }
    let (_, out, submitted) = submit(opened, op, plan, inputs, false)?;
    running.extend(submitted);
    Ok(out)
}

/// The same with the plan, and what runs unless there is nothing to compute.
fn submit<'p>(
    opened: &Opened,
    op: &Op,
    plan: impl FnOnce() -> Result<Cow<'p, Plan>>,
    inputs: &[Option<&Buffer>],
    timed: bool,
) -> Result<(Cow<'p, Plan>, Buffer, Option<Running>)> {
    let device = &opened.device;
    if op.elements() == 0 {
        let plan = Cow::Owned(Plan::default());
        let out = device.allocate(&plan, op)?;
        return Ok((plan, out, None));
    }
    let plan = plan()?;
    let out = device.allocate(&plan, op)?;
    let operands: Vec<_> = inputs.iter().map(|input| input.map(Bound::Buffer)).collect();
    let how = How { repeats: 1, timed, download: Extent { elements: 0, ..op.extent() } };
    let running = device.submit(&plan, &operands, &out, how)?;
    Ok((plan, out, Some(running)))
}

/// Results of operations one after the other, each until the last that reads it is under way.
pub(super) struct Results<'a> {
    of: &'a Lowered,
    tensors: &'a [Tensor],
    made: Vec<Option<Tensor>>,
}

impl<'a> Results<'a> {
    /// Of an expression that is made of these tensors.
    pub(super) fn new(of: &'a Lowered, tensors: &'a [Tensor]) -> Self {
        Self { of, tensors, made: Vec::with_capacity(of.list.len()) }
    }

    /// One of them, or of the tensors.
    pub(super) fn get(&self, source: Source) -> Result<&Tensor> {
        let found = match source {
            Source::Tensor(number) => self.tensors.get(number),
            Source::Made(number) => self.made.get(number).and_then(Option::as_ref),
        };
        found.ok_or_else(|| Error::internal("a value that is not there"))
    }

    /// The next operation's.
    pub(super) fn push(&mut self, tensor: Tensor) {
        let over = self.of.over.get(self.made.len()).into_iter().flatten();
        self.made.push(Some(tensor));
        for &number in over {
            self.made[number] = None;
        }
    }

    /// The value of the expression, once all is under way.
    pub(super) fn value(&self, opened: &Opened) -> Result<Tensor> {
        let tensor = self.get(self.of.source)?;
        tensor.buffer_on(opened)?;
        tensor.reshape(&self.of.shape)
    }
}
