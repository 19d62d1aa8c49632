//! How a CPU computes an expression, kept with it: to find that out takes longer than small operations do.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::lower::{Operation, Operations, Source};
use super::node::Node;
use super::run::Results;
use crate::backend::device::Opened;
use crate::backend::{Backend, Bound, How};
use crate::dtype::Extent;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::plan::Plan;
use crate::tensor::Tensor;

/// The operations of an expression with their plans, and which of them gives its value.
struct Prepared {
    steps: Vec<(Operation, Plan)>,
    source: Source,
    tensors: Vec<Tensor>,
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
        let (Operations { list, tensors, .. }, source) = Operations::of(node, None)?;
        let plan = |operation: Operation| {
            let plan = if operation.op.elements() == 0 { Plan::default() } else { opened.device.plan(&operation.op)? };
            Ok((operation, plan))
        };
        let prepared = Arc::new(Prepared { steps: list.into_iter().map(plan).collect::<Result<_>>()?, source, tensors });
        *known = Some((Arc::downgrade(opened), Arc::clone(&prepared)));
        Ok(prepared)
    }
}

impl Gpu {
    /// Computes an expression on a CPU, which is done with each operation before the next.
    pub(super) async fn evaluate_prepared(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Tensor> {
        let prepared = node.prepared.of(node, opened)?;
        let mut made = Results::of(prepared.steps.iter().map(|(operation, _)| operation), prepared.source);
        for (Operation { op, sources }, plan) in &prepared.steps {
            let mut inputs = Vec::with_capacity(sources.len());
            for source in sources {
                inputs.push(match source {
                    None => None,
                    Some(source) => Some(Bound::Buffer(made.get(*source, &prepared.tensors)?.buffer_on(opened)?)),
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
        made.value(prepared.source, &prepared.tensors, &node.shape, opened)
    }
}
