//! How a CPU computes an expression, kept with it: to find that out takes longer than small operations do.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

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
struct Prepared {
    lowered: Lowered,
    /// The value's.
    shape: Arc<[u64]>,
    tensors: Vec<Tensor>,
    plans: Vec<Plan>,
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
    fn of(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Arc<Prepared>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((home, prepared)) = &*known
            && Weak::as_ptr(home) == Arc::as_ptr(opened)
        {
            return Ok(Arc::clone(prepared));
        }
        let (lowered, tensors) = Lowered::of(node, opened)?;
        let plan = |operation: &Operation| {
            if operation.op.elements() == 0 { Ok(Plan::default()) } else { opened.device.plan(&operation.op) }
        };
        let plans = lowered.list.iter().map(plan).collect::<Result<_>>()?;
        let prepared = Arc::new(Prepared { shape: lowered.shape[..].into(), lowered, tensors, plans });
        *known = Some((Arc::downgrade(opened), Arc::clone(&prepared)));
        Ok(prepared)
    }
}

impl Gpu {
    /// Computes an expression on a CPU, which is done with each operation before the next.
    pub(super) fn evaluate_prepared(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Tensor> {
        let Prepared { lowered, shape, tensors, plans } = &*node.prepared.of(node, opened)?;
        let mut made: Vec<Option<Buffer>> = Vec::with_capacity(plans.len());
        for (at, (Operation { op, sources }, plan)) in lowered.list.iter().zip(plans).enumerate() {
            let mut inputs = [None; MOST_INPUTS];
            for (input, source) in inputs.iter_mut().zip(sources) {
                *input = match *source {
                    None => None,
                    Some(Source::Tensor(number)) => Some(tensors[number].buffer_on(opened)?),
                    Some(Source::Made(number)) => made[number].as_ref(),
                };
            }
            made.push(Some(opened.device.make(plan, op.extent(), &inputs[..sources.len()])?));
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
