//! How a CPU computes an expression, kept with it: to find that out takes longer than small operations do.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::lower::{Lowered, Operation};
use super::node::Node;
use super::run::Results;
use crate::backend::device::Opened;
use crate::backend::{Backend, Bound, How};
use crate::dtype::Extent;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::plan::Plan;
use crate::tensor::Tensor;

/// The operations of an expression, its tensors, and the operations' plans.
struct Prepared {
    lowered: Lowered,
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
        let prepared = Arc::new(Prepared { lowered, tensors, plans });
        *known = Some((Arc::downgrade(opened), Arc::clone(&prepared)));
        Ok(prepared)
    }
}

impl Gpu {
    /// Computes an expression on a CPU, which is done with each operation before the next.
    pub(super) async fn evaluate_prepared(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Tensor> {
        let prepared = node.prepared.of(node, opened)?;
        let mut made = Results::new(&prepared.lowered, &prepared.tensors);
        for (Operation { op, sources }, plan) in prepared.lowered.list.iter().zip(&prepared.plans) {
            let mut inputs = Vec::with_capacity(sources.len());
            for source in sources {
                inputs.push(match source {
                    None => None,
                    Some(source) => Some(Bound::Buffer(made.get(*source)?.buffer_on(opened)?)),
                });
            }
            let (device, extent) = (&opened.device, op.extent());
            let out = device.allocate(plan, op)?;
            if extent.elements > 0 {
                let how = How { repeats: 1, timed: false, download: Extent { elements: 0, ..extent } };
                let running = device.submit(plan, &inputs, &out, how)?;
                device.finish(running).await?;
            }
            drop(inputs);
            made.push(self.watched(Tensor::new(vec![extent.elements], extent.dtype, out, Arc::clone(opened))));
        }
        made.value(opened)
    }
}
