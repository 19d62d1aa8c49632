//! How a device computes an expression, kept with it: to find that out takes longer than small operations do.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use super::lower::{Lowered, Operation, Source};
use super::node::Node;
use crate::backend::Backend;
use crate::backend::device::{Buffer, Opened};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::ops::map::MOST_INPUTS;
use crate::plan::Plan;
use crate::tensor::Tensor;

/// The operations of an expression, its tensors, and the operations' plans.
pub(super) struct Prepared {
    pub lowered: Lowered,
    /// The value's.
    shape: Arc<[u64]>,
    pub tensors: Vec<Tensor>,
    /// Those that were asked for: a device that has a queue knows plans of its own.
    plans: Vec<OnceLock<Plan>>,
}

impl Prepared {
    /// The plan of the operation of that number.
    pub(super) fn plan(&self, at: usize, opened: &Opened) -> Result<&Plan> {
        let plan = &self.plans[at];
        if let Some(plan) = plan.get() {
            return Ok(plan);
        }
        let op = &self.lowered.list[at].op;
        let made = if op.elements() == 0 { Plan::default() } else { opened.device.plan(op)? };
        Ok(plan.get_or_init(|| made))
    }
}

/// What was found out for the device that the expression was last evaluated on.
#[derive(Default)]
pub(super) struct Known(Mutex<Option<(Weak<Opened>, Arc<Prepared>)>>);

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

impl Known {
    pub(super) fn of(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Arc<Prepared>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((home, prepared)) = &*known
            && Weak::as_ptr(home) == Arc::as_ptr(opened)
        {
            return Ok(Arc::clone(prepared));
        }
        let (lowered, tensors) = Lowered::of(node, opened)?;
        let plans = lowered.list.iter().map(|_| OnceLock::new()).collect();
        let prepared = Arc::new(Prepared { shape: lowered.shape[..].into(), lowered, tensors, plans });
        *known = Some((Arc::downgrade(opened), Arc::clone(&prepared)));
        Ok(prepared)
    }
}

impl Gpu {
    /// Computes an expression on a CPU, which is done with each operation before the next.
    pub(super) fn evaluate_prepared(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Tensor> {
        let prepared = node.prepared.of(node, opened)?;
        let Prepared { lowered, shape, tensors, .. } = &*prepared;
        let mut made: Vec<Option<Buffer>> = Vec::with_capacity(lowered.list.len());
        for (at, Operation { op, sources }) in lowered.list.iter().enumerate() {
            let mut inputs = [None; MOST_INPUTS];
            for (input, source) in inputs.iter_mut().zip(sources) {
                *input = match *source {
                    None => None,
                    Some(Source::Tensor(number)) => Some(tensors[number].buffer_on(opened)?),
                    Some(Source::Made(number)) => made[number].as_ref(),
                };
            }
            made.push(Some(opened.device.make(prepared.plan(at, opened)?, op.extent(), &inputs[..sources.len()])?));
            for &number in &lowered.over[at] {
                made[number] = None;
            }
        }
        match lowered.source {
            Source::Tensor(number) => {
                tensors[number].buffer_on(opened)?;
                tensors[number].reshape(shape)
            }
            Source::Made(number) => {
                let buffer = made[number].take().ok_or_else(|| Error::internal("a value that is not there"))?;
                Ok(self.watched(Tensor::new(Arc::clone(shape), lowered.list[number].op.extent().dtype, buffer, Arc::clone(opened))))
            }
        }
    }
}
