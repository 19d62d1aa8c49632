//! How a device computes an expression, kept with it: to find that out takes longer than small operations do.

use std::borrow::Cow;
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
    fn of(node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Found> {
        let (lowered, tensors) = Lowered::of(node, opened)?;
        let plans = lowered.list.iter().map(|_| OnceLock::new()).collect();
        Ok((Arc::downgrade(opened), Arc::new(Self { shape: lowered.shape[..].into(), lowered, tensors, plans })))
    }

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

/// How one device computes it.
type Found = (Weak<Opened>, Arc<Prepared>);

/// What was found out for the first device that the expression was evaluated on, which takes no lock to read, and for the last of any others.
#[derive(Default)]
pub(super) struct Known {
    first: OnceLock<Found>,
    other: Mutex<Option<Found>>,
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

impl Known {
    pub(super) fn of(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Cow<'_, Arc<Prepared>>> {
        let is_of = |(home, _): &Found| Weak::as_ptr(home) == Arc::as_ptr(opened);
        let first = match self.first.get() {
            Some(first) => first,
            None => {
                let found = Prepared::of(node, opened)?;
                self.first.get_or_init(|| found)
            }
        };
        if is_of(first) {
            return Ok(Cow::Borrowed(&first.1));
        }
        let mut other = self.other.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match other.take().filter(is_of) {
            Some(found) => found,
            None => Prepared::of(node, opened)?,
        };
        Ok(Cow::Owned(Arc::clone(&other.insert(found).1)))
    }
}

impl Gpu {
    /// Computes an expression on a CPU, which is done with each operation before the next.
    pub(super) fn evaluate_prepared(&self, node: &Arc<Node>, opened: &Arc<Opened>) -> Result<Tensor> {
        let prepared = node.prepared.of(node, opened)?;
        let Prepared { lowered, shape, tensors, .. } = &**prepared;
        let value = |number: usize, buffer| {
            let dtype = lowered.list[number].op.extent().dtype;
            Ok(self.watched(Tensor::new(Arc::clone(shape), dtype, buffer, Arc::clone(opened))))
        };
        // None for the last, which is mostly the only one, and the value.
        let mut made: Vec<Option<Buffer>> = Vec::with_capacity(lowered.list.len().saturating_sub(1));
        for (at, Operation { op, sources }) in lowered.list.iter().enumerate() {
            let mut inputs = [None; MOST_INPUTS];
            for (input, source) in inputs.iter_mut().zip(sources) {
                *input = match *source {
                    None => None,
                    Some(Source::Tensor(number)) => Some(tensors[number].buffer_on(opened)?),
                    Some(Source::Made(number)) => made[number].as_ref(),
                };
            }
            let buffer = opened.device.make(prepared.plan(at, opened)?, op.extent(), &inputs[..sources.len()])?;
            if at + 1 == lowered.list.len() && lowered.source == Source::Made(at) {
                return value(at, buffer);
            }
            made.push(Some(buffer));
            for &number in &lowered.over[at] {
                made[number] = None;
            }
        }
        match lowered.source {
            Source::Tensor(number) => {
                tensors[number].buffer_on(opened)?;
                tensors[number].reshape(shape)
            }
            Source::Made(number) => value(number, made[number].take().ok_or_else(|| Error::internal("a value that is not there"))?),
        }
    }
}
