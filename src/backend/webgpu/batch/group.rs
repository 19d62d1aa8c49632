//! Groups: consecutive products that differ only in where their matrices are become one launch.
//!
//! ```text
//! record ─► group ──(another recipe or other buffers, full, something else is recorded or waited for)──► one launch
//! ```
//!
//! All results of a group are in one buffer and its operands in others, and no slot of a slab serves twice before its batch is submitted: see
//! [`slab`](super::super::slab). So a product of a group has nothing to do with another one of it.

use std::sync::Arc;

use super::super::buffer::{Buffer, Place};
use super::super::launch::{PARAMS_STRIDE_BYTES, launch};
use super::recipe::Recipe;
use super::{Key, State};
use crate::ops::Op;
use crate::plan::Plan;
use crate::plan::matmul::Params;
use crate::plan::matmul::group::{MOST, place};

/// Room for the parameters of any group.
pub(super) const PARAMS_SLOTS: usize = (size_of::<Params>().next_multiple_of(16) + MOST as usize * 16).div_ceil(PARAMS_STRIDE_BYTES);

/// Products that wait for others to join them.
pub(super) struct Group {
    /// The recipe, and what is bound.
    pub key: Key,
    pub recipe: Arc<Recipe>,
    pub groups: Arc<Vec<wgpu::BindGroup>>,
    /// Of each product where its matrices start in their buffers, in elements.
    pub places: Vec<[u32; 4]>,
}

/// Where a product's matrices start in their slabs; what has a buffer of its own is bound where it starts.
pub(super) fn places(op: &Op, plan: &Plan, buffers: &[&Buffer]) -> [u32; 4] {
    let mut places = [0; 4];
    if let (Op::Matmul(problem), [dispatch]) = (op, &plan.dispatches[..]) {
        for binding in &dispatch.bindings {
            if let (Some(at), Place::Slot(slot)) = (place(binding), &buffers[binding.slot.index()].place) {
                let dtype = if at < 2 { problem.dtype } else { problem.result };
                places[at] = ((slot.at_bytes() + binding.offset_bytes) / dtype.bytes()) as u32;
            }
        }
    }
    places
}

impl State {
    /// Whether a product of which this is bound may join the open group.
    pub(super) fn may_join(&self, key: &Key) -> bool {
        let group = self.open.as_ref().and_then(|open| open.group.as_ref());
        group.is_some_and(|group| group.key == *key && group.places.len() < MOST as usize)
    }

    /// Launches the open group: nothing else may join it.
    pub(super) fn close_group(&mut self) {
        let Some(open) = &mut self.open else { return };
        let Some(Group { recipe, groups, places, .. }) = open.group.take() else { return };
        let plan = &recipe.plan;
        let at = self.params.add([plan.dispatches[0].params.bytes(), bytemuck::cast_slice(&places)]);
        let many = Some((places.len() as u32, at as u32));
        launch(&mut open.pass, plan, recipe.pipelines(), &groups, open.recipe == recipe.id, &[], many);
        open.recipe = recipe.id;
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::super::super::WebGpu;
    use super::super::super::tests::webgpu;
    use super::*;
    use crate::backend::{Backend, Bound, How};
    use crate::dtype::{DType, Extent};
    use crate::ops::matmul::{Activation, Matmul};

    /// Numbers below others that look random, the same each time.
    struct Numbers(u32);

    impl Numbers {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.0 >> 8) as usize % most
        }
    }

    /// What is done with square matrices of one size each, some of which are larger than a slot.
    enum Step {
        Upload(usize, Vec<f32>),
        /// The result, its operands, and the operation.
        Product(usize, [Option<usize>; 4], Box<Op>),
        Free(usize),
    }

    const SIDES: [usize; 6] = [1, 6, 33, 64, 100, 130];

    /// Products of what was uploaded and of one another. Of tensors there are so many places for each size.
    fn steps(count: usize, places: usize) -> Vec<Step> {
        let mut numbers = Numbers(7);
        let upload = |at: usize, numbers: &mut Numbers| {
            let side = SIDES[at / places];
            Step::Upload(at, (0..side * side).map(|_| numbers.below(2001) as f32 / 1000.0 - 1.0).collect())
        };
        let mut steps: Vec<_> = (0..SIDES.len() * places).map(|at| upload(at, &mut numbers)).collect();
        let mut last = (0, false);
        while steps.len() < count {
            // Often the same again.
            let (size, adds) = if numbers.below(4) > 0 { last } else { (numbers.below(SIDES.len()), numbers.below(3) == 0) };
            last = (size, adds);
            let (side, first) = (SIDES[size], size * places);
            let mut any = || first + numbers.below(places);
            let [out, a, b, c, bias] = [any(), any(), any(), any(), first];
            if out == first || [a, b, c].contains(&out) {
                continue;
            }
            if numbers.below(9) == 0 {
                steps.push(upload(out, &mut numbers));
                continue;
            }
            let added = vec![0.0; side * side];
            // Neither vanishes nor grows, however long the chain.
            let sizes = Matmul::new(side as u64, side as u64, side as u64);
            let mut product = sizes.transpose_a(adds).alpha(2.0 / (side as f32).sqrt()).activation(Activation::Tanh);
            if adds {
                product = product.plus(0.5, &added).bias(&added[..side]);
            }
            let elements = (side * side) as u64;
            let op = Op::Matmul(product.check([DType::F32; 2], elements, elements).unwrap());
            steps.push(Step::Free(out));
            steps.push(Step::Product(out, [Some(a), Some(b), adds.then_some(c), adds.then_some(bias)], Box::new(op)));
        }
        steps
    }

    /// What the tensors hold in the end.
    fn run(steps: &[Step], places: usize, device: &WebGpu, is_queued: bool) -> Vec<Vec<u32>> {
        let mut tensors: Vec<Option<Buffer>> = Vec::new();
        tensors.resize_with(SIDES.len() * places, || None);
        for step in steps {
            match step {
                Step::Upload(at, values) => tensors[*at] = Some(device.keep(&values.into()).unwrap()),
                Step::Free(at) => tensors[*at] = None,
                Step::Product(at, operands, op) => {
                    let operands = operands.map(|operand| operand.map(|operand| tensors[operand].as_ref().unwrap()));
                    let out = if is_queued {
                        device.queue(op, &operands).unwrap().expect("there is a queue")
                    } else {
                        let plan = device.plan(op).unwrap();
                        let out = device.allocate(&plan, op).unwrap();
                        let bound: Vec<_> = operands.iter().map(|operand| operand.map(Bound::Buffer)).collect();
                        let how = How { repeats: 1, timed: false, download: Extent::f32(0) };
                        let running = device.submit(&plan, &bound, &out, how).unwrap();
                        pollster::block_on(device.finish(running)).unwrap();
                        out
                    };
                    tensors[*at] = Some(out);
                }
            }
        }
        let read = |(at, tensor): (usize, &Option<Buffer>)| {
            let extent = Extent::f32((SIDES[at / places] as u64).pow(2));
            let values = pollster::block_on(device.download(tensor.as_ref().unwrap(), extent)).unwrap().into_vec();
            values.into_iter().map(f32::to_bits).collect()
        };
        tensors.iter().enumerate().map(read).collect()
    }

    #[test]
    fn products_in_groups_are_those_by_themselves() {
        let Some((device, _)) = webgpu() else { return };
        let steps = steps(300, 7);
        let (queued, alone) = (run(&steps, 7, &device, true), run(&steps, 7, &device, false));
        for (at, (queued, alone)) in queued.iter().zip(&alone).enumerate() {
            assert!(queued == alone, "tensor {at}, of side {}", SIDES[at / 7]);
            assert!(queued.iter().any(|bits| f32::from_bits(*bits) != 0.0) && queued.iter().all(|bits| f32::from_bits(*bits).is_finite()));
        }
        assert_eq!(device.memory().used_bytes, 0);
        device.trim();
        assert_eq!(device.memory().pooled_bytes, 0);
    }
}
