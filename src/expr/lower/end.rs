//! What follows an operation goes into its kernel, on devices whose kernels take it.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::node::{Axis, Node, What};
use super::kernel::Kernel;
use super::{Operation, Operations, Refused, Source, Values};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::BackendId;
use crate::ops::Op;
use crate::ops::fused::Fused;
use crate::ops::map::View;
use crate::plan;

/// Stands for the result of an operation that is not in the list yet.
const NOT_YET: usize = usize::MAX;

/// Whether kernels of reductions round what follows to f16 as well: CUDA's.
#[cfg(not(target_arch = "wasm32"))]
fn rounds(backend: BackendId) -> bool {
    backend == BackendId::Cuda
}
#[cfg(target_arch = "wasm32")]
fn rounds(_: BackendId) -> bool {
    false
}

impl Operations {
    /// One kernel for a value that is made element by element of an operation's result, if nobody else needs that.
    pub(super) fn ended(&mut self, node: &Arc<Node>) -> Result<Option<Source>> {
        let takes = |backend| node.dtype == DType::F32 || node.dtype == DType::F16 && rounds(backend);
        let Some((backend, caps)) = self.fuses.clone().filter(|(backend, _)| takes(*backend)) else { return Ok(None) };
        let Some(core) = self.core(node) else { return Ok(None) };
        // Its inputs are made before it, and it is the last.
        let Source::Made(number) = self.source(&core)? else { return Ok(None) };
        let Some(Operation { op, sources }) = (number + 1 == self.list.len()).then(|| self.list.pop()).flatten() else { return Ok(None) };
        // What is added to a product is a part of what follows here.
        let core_inputs = if matches!(op, Op::Matmul(_)) { 2 } else { sources.len() };
        self.made.insert(Arc::as_ptr(&core), Source::Made(NOT_YET));
        match self.end(node, &core) {
            Ok(Values { problem: end, sources: others, .. }) => {
                let fused = Fused { core: op.clone(), core_inputs: core_inputs as u8, end };
                // Nothing but the first of what follows is the operation's result.
                let is_apart = others.iter().skip(1).all(|source| !matches!(source, Source::Made(NOT_YET)));
                if is_apart && plan::fused::takes(&fused, backend, &caps) {
                    let sources = sources.into_iter().take(core_inputs).chain(others.into_iter().skip(1).map(Some)).collect();
                    return Ok(Some(self.add(Op::Fused(Arc::new(fused)), sources)));
                }
            }
            Err(Refused::Full) => {}
            Err(Refused::Wrong(error)) => return Err(error),
        }
        let source = self.add(op, sources);
        self.made.insert(Arc::as_ptr(&core), source);
        Ok(None)
    }

    /// The operation that a value is made of, of the same shape, so that all that is made of its result is on the way to the value.
    fn core(&self, node: &Arc<Node>) -> Option<Arc<Node>> {
        let mut seen: HashMap<*const Node, (usize, &Arc<Node>)> = HashMap::new();
        let mut left = vec![node];
        let mut found = Vec::new();
        while let Some(next) = left.pop() {
            for input in next.inputs() {
                let (times, _) = seen.entry(Arc::as_ptr(input)).or_insert((0, input));
                *times += 1;
                if *times > 1 || input.shape != node.shape || self.made.contains_key(&Arc::as_ptr(input)) {
                    continue;
                }
                match &input.what {
                    What::Apply(..) | What::Select(_) | What::Cast(_) => left.push(input),
                    What::Whole(Op::Conv(_), _) | What::Matmul(_) | What::Reduce(..) | What::Normalize(..) if input.dtype == DType::F32 => {
                        found.push(input);
                    }
                    _ => {}
                }
            }
        }
        let is_whole = |node: &Arc<Node>| {
            let pointer = Arc::as_ptr(node);
            seen.get(&pointer).is_some_and(|(times, _)| self.uses.get(&pointer) == Some(times))
        };
        // What is between must not be asked for elsewhere, or it would be computed again there.
        let between = seen.values().filter(|(_, node)| matches!(node.what, What::Apply(..) | What::Select(_) | What::Cast(_)));
        let all_are_whole = between.filter(|(_, of)| of.shape == node.shape).all(|(_, node)| is_whole(node));
        found.into_iter().find(|core| all_are_whole && is_whole(core)).cloned()
    }

    /// The program of a value whose first input is the operation's result.
    fn end(&mut self, node: &Arc<Node>, core: &Arc<Node>) -> std::result::Result<Values, Refused> {
        let mut kernel = Kernel::over(&node.shape);
        let axes: Vec<_> = (0..node.shape.len()).map(Axis::along).collect();
        let place = kernel.lay(&core.shape, &axes);
        kernel.input(Source::Made(NOT_YET), View { dtype: core.dtype, ..place })?;
        let value = kernel.value(self, node, &axes, true)?;
        kernel.end_with(value);
        kernel.finish(node.dtype, 0, 0)
    }
}
