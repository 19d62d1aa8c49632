//! Other forms of operands that stay: what a plan makes of a tensor before it multiplies, its rows copied to where kernels read four elements at
//! once, or what f32 is split into, serves the products after it too. A tensor that was an operand a few times gets them; they go when it goes, or
//! when free memory is given back, for they count as that: whatever is kept, products are the same to the last bit.

use std::sync::{Arc, Mutex, Weak};

use super::WebGpu;
use super::batch::lock;
use super::buffer::{Buffer, Raw};
use crate::backend::pool::Pool;
use crate::ops::Op;
use crate::plan::{Dispatch, Plan, Slot};

/// How often a tensor has been an operand before forms of it are kept: many are one only once or twice.
const USES: u32 = 3;

/// The most forms of one tensor.
const MOST: usize = 2;

/// The forms of a device.
pub(super) struct All {
    pool: Pool<Arc<Raw>>,
    state: Mutex<State>,
}

struct State {
    bytes: u64,
    /// How much they may take together.
    most_bytes: u64,
    /// Of which tensors there are some.
    owners: Vec<Weak<Mutex<Forms>>>,
}

impl All {
    /// They may take half of what is kept free.
    pub(super) fn new(pool: &Pool<Arc<Raw>>, pool_bytes: u64) -> Arc<Self> {
        Arc::new(Self { pool: pool.clone(), state: Mutex::new(State { bytes: 0, most_bytes: pool_bytes / 2, owners: Vec::new() }) })
    }

    /// Gives all of them back, and takes no more if there were any: the device has run out of memory, and what is queued fails by it.
    pub(super) fn shrink(&self) {
        {
            let state = &mut *lock(&self.state);
            if state.bytes > 0 {
                state.most_bytes = 0;
            }
        }
        self.trim();
    }

    /// Gives all of them back.
    pub(super) fn trim(&self) {
        let owners = std::mem::take(&mut lock(&self.state).owners);
        for owner in owners {
            if let Some(forms) = owner.upgrade() {
                // What they hold is given back after they are let go.
                let kept = std::mem::take(&mut lock(&forms).kept);
                drop(kept);
            }
        }
    }
}

/// What is kept of a tensor.
#[derive(Default)]
pub(super) struct Forms {
    uses: u32,
    /// Somebody else may write to the tensor.
    is_lent: bool,
    kept: Vec<Arc<Kept>>,
}

/// A form that stays.
pub(super) struct Kept {
    /// The launch that made it.
    maker: Dispatch,
    pub(super) buffer: Buffer,
    all: Arc<All>,
    bytes: u64,
}

impl Kept {
    fn new(maker: &Dispatch, buffer: Buffer, bytes: u64, all: &Arc<All>) -> Arc<Self> {
        lock(&all.state).bytes += bytes;
        all.pool.count(-(bytes as i64), bytes as i64, -1);
        Arc::new(Self { maker: maker.clone(), buffer, all: Arc::clone(all), bytes })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        lock(&self.all.state).bytes -= self.bytes;
        self.all.pool.count(self.bytes as i64, -(self.bytes as i64), 1);
    }
}

/// Of two operands their forms, and which launches of a plan need not be made for them.
pub(super) type Found = [Option<Arc<Kept>>; 2];
pub(super) type Done = [Option<usize>; 2];

/// Where kernels write.
const MADE: u32 = 2;

/// Which launches of a plan make forms: of each operand one at most.
pub(super) fn makers(plan: &Plan) -> [Option<usize>; 2] {
    [0, 1].map(|at| {
        let makes = |dispatch: &Dispatch| dispatch.bindings.iter().any(|binding| binding.slot == Slot::Kept(at) && binding.index == MADE);
        plan.dispatches.iter().position(makes)
    })
}

impl Buffer {
    /// From now on somebody else may write to it.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn lend(&self) {
        let kept = {
            let mut forms = lock(&self.forms);
            forms.is_lent = true;
            std::mem::take(&mut forms.kept)
        };
        // What they hold is given back after they are let go.
        drop(kept);
    }

    /// Keeps a form of it whose maker is on its way to the device.
    pub(super) fn keep(&self, form: &Arc<Kept>) {
        {
            let owners = &mut lock(&form.all.state).owners;
            // Those that are gone make room.
            let mut at = 0;
            while at < owners.len() {
                if owners[at].strong_count() > 0 {
                    at += 1;
                } else {
                    owners.swap_remove(at);
                }
            }
            owners.push(Arc::downgrade(&self.forms));
        }
        let mut forms = lock(&self.forms);
        // It may have been lent since it was asked.
        if !forms.is_lent {
            forms.kept.push(Arc::clone(form));
        }
    }

    /// What such a launch made of it, if that is kept.
    fn form(&self, maker: &Dispatch) -> Option<Arc<Kept>> {
        let failed = {
            let kept = &mut lock(&self.forms).kept;
            let at = kept.iter().position(|kept| kept.maker == *maker)?;
            // What was computed in a batch that failed is nothing.
            if kept[at].buffer.verdict.get().is_none_or(|verdict| verdict.get().is_ok()) {
                return Some(Arc::clone(&kept[at]));
            }
            kept.swap_remove(at)
        };
        drop(failed);
        None
    }
}

impl WebGpu {
    /// Of which operands of a product forms are to be kept. Counts its use.
    pub(super) fn keeps(&self, op: &Op, operands: &[Option<&Buffer>]) -> [bool; 2] {
        let core = if let Op::Fused(fused) = op { &fused.core } else { op };
        if !matches!(core, Op::Matmul(_)) {
            return [false; 2];
        }
        [0, 1].map(|at| {
            let Some(operand) = operands.get(at).copied().flatten() else { return false };
            let mut forms = lock(&operand.forms);
            forms.uses = forms.uses.saturating_add(1);
            forms.uses > USES && !forms.is_lent
        })
    }

    /// The forms that a plan works with, and the launches that are done since those are there already; or of which operand there is no room for one.
    pub(super) fn forms(&self, operands: &[Option<&Buffer>], plan: &Plan, makers: [Option<usize>; 2]) -> Result<(Found, Done), usize> {
        let (mut found, mut done) = (Found::default(), Done::default());
        for at in 0..2 {
            let (Some(maker), Some(operand)) = (makers[at], operands.get(at).copied().flatten()) else { continue };
            let dispatch = &plan.dispatches[maker];
            let known = operand.form(dispatch);
            if known.is_some() {
                done[at] = Some(maker);
            }
            found[at] = Some(known.or_else(|| self.new_form(operand, dispatch)).ok_or(at)?);
        }
        Ok((found, done))
    }

    /// Room for what such a launch makes of an operand.
    fn new_form(&self, operand: &Buffer, maker: &Dispatch) -> Option<Arc<Kept>> {
        let bytes = maker.bindings.iter().map(|binding| if binding.index == MADE { binding.size_bytes } else { 0 }).sum();
        let has_room = {
            let State { bytes: taken, most_bytes, .. } = *lock(&self.forms.state);
            taken + bytes <= most_bytes && lock(&operand.forms).kept.len() < MOST
        };
        let buffer = if has_room { self.storage(bytes).ok()? } else { return None };
        let taken_bytes = buffer.raw().size();
        Some(Kept::new(maker, buffer, taken_bytes, &self.forms))
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::super::tests::webgpu;
    use super::*;
    use crate::backend::compute::Compute;
    use crate::backend::{Backend, Bound, How};
    use crate::dtype::{DType, Extent};
    use crate::ops::matmul::{Activation, Matmul};

    fn values(count: u64, seed: u64) -> Vec<f32> {
        (0..count).map(|i| ((i * 37 + seed * 11) % 101) as f32 / 50.0 - 1.0).collect()
    }

    fn bits(device: &WebGpu, out: &Buffer, extent: Extent) -> Vec<u32> {
        let values = pollster::block_on(device.download(out, extent)).unwrap().into_vec();
        values.into_iter().map(f32::to_bits).collect()
    }

    /// No multiple of four.
    const SIDE: u64 = 261;

    /// A square matrix, and its product with itself.
    fn squared(device: &WebGpu) -> (Op, Buffer) {
        let op = Matmul::new(SIDE, SIDE, SIDE).check([DType::F32; 2], SIDE * SIDE, SIDE * SIDE);
        (Op::Matmul(op.unwrap()), device.upload(&(&values(SIDE * SIDE, 1)).into()).unwrap())
    }

    fn kept(buffer: &Buffer) -> usize {
        lock(&buffer.forms).kept.len()
    }

    /// A product is the same to the last bit with forms and without, whatever of it has some; and they go with the tensors.
    #[test]
    fn products_of_forms_are_those_without() {
        let Some((device, _)) = webgpu() else { return };
        for (m, k, n) in [(261u64, 263, 257), (129, 1027, 130), (200, 301, 190), (65, 4099, 67)] {
            for (transpose_a, transpose_b, batch, shares, result) in [
                (false, false, 1, true, DType::F32),
                (true, false, 1, true, DType::F16),
                (false, true, 2, false, DType::F32),
                (true, true, 3, true, DType::F16),
            ] {
                let items = if shares { 1 } else { batch };
                let [a, b] = [values(items * m * k, 1), values(items * k * n, 2)];
                let bias = values(n, 3);
                let op = Matmul::new(m, k, n).transpose_a(transpose_a).transpose_b(transpose_b).bias(&bias).activation(Activation::Relu);
                let op = op.result(result).batch(batch);
                let op = if shares { op.stride_a(0).stride_b(0) } else { op };
                let op = Op::Matmul(op.check([DType::F32; 2], items * m * k, items * k * n).unwrap());
                let [x, y, z] = [&a, &b, &bias].map(|values| device.upload(&values.into()).unwrap());
                let plan = device.plan(&op).unwrap();
                let alone = device.allocate(&plan, &op).unwrap();
                let operands = [Some(Bound::Buffer(&x)), Some(Bound::Buffer(&y)), None, Some(Bound::Buffer(&z))];
                let running = device.submit(&plan, &operands, &alone, How { repeats: 1, timed: false, download: Extent::f32(0) }).unwrap();
                pollster::block_on(device.finish(running)).unwrap();
                let expected = bits(&device, &alone, op.extent());
                let case = format!("{m} {k} {n} transposed {transpose_a},{transpose_b}");
                // Another A each time has no form; then both have one.
                for round in 0..12 {
                    let other = device.upload(&(&a).into()).unwrap();
                    let out = device.queue(&op, &[Some(if round < 6 { &other } else { &x }), Some(&y), None, Some(&z)]).unwrap().unwrap();
                    assert_eq!(bits(&device, &out, op.extent()), expected, "{case} in round {round}");
                    assert_eq!(kept(&other), 0);
                }
                assert!(kept(&x) + kept(&y) > 0, "{case}: no form was made");
                assert!(lock(&device.forms.state).bytes > 0 && device.memory().pooled_bytes > 0);
            }
        }
        assert_eq!((device.memory().used_bytes, device.memory().buffers, lock(&device.forms.state).bytes), (0, 0, 0));
    }

    /// Two tensors are multiplied in many ways, by turns: each has forms of two windows of it at most, and nothing takes one for another.
    #[test]
    fn forms_are_of_one_window_of_a_tensor() {
        let Some((device, _)) = webgpu() else { return };
        let side = 200u64;
        let [x, y] = [1, 2].map(|seed| device.upload(&(&values(side * side, seed)).into()).unwrap());
        let window = |offset, m, k, n| {
            let op = Matmul::new(m, k, n).lda(side).ldb(side - 1).offset_a(offset).offset_b(2 * offset);
            Op::Matmul(op.check([DType::F32; 2], side * side, side * side).unwrap())
        };
        let mut ops = Vec::new();
        for (offset, m, k, n) in [(0, 130, 131, 129), (1, 130, 131, 129), (201, 150, 100, 67), (3, 130, 131, 129)] {
            let op = window(offset, m, k, n);
            let plan = device.plan(&op).unwrap();
            let out = device.allocate(&plan, &op).unwrap();
            let how = How { repeats: 1, timed: false, download: Extent::f32(0) };
            let running = device.submit(&plan, &[Some(Bound::Buffer(&x)), Some(Bound::Buffer(&y))], &out, how).unwrap();
            pollster::block_on(device.finish(running)).unwrap();
            let expected = bits(&device, &out, op.extent());
            ops.push((op, expected));
        }
        for round in 0..6 {
            for (at, (op, expected)) in ops.iter().enumerate() {
                let out = device.queue(op, &[Some(&x), Some(&y), None, None]).unwrap().unwrap();
                assert_eq!(bits(&device, &out, op.extent()), *expected, "product {at} in round {round}");
            }
        }
        assert_eq!((kept(&x), kept(&y)), (MOST, MOST));
    }

    /// Somebody may write to a tensor that is lent.
    #[test]
    fn what_is_lent_has_no_forms() {
        let Some((device, _)) = webgpu() else { return };
        let (op, a) = squared(&device);
        let product = || drop(device.queue(&op, &[Some(&a), Some(&a), None, None]).unwrap());
        (0..=USES).for_each(|_| product());
        assert!(kept(&a) > 0);
        drop(device.adopt(&a).unwrap());
        assert_eq!(kept(&a), 0);
        product();
        assert_eq!(kept(&a), 0);
    }

    /// There is an end to what forms take.
    #[test]
    fn forms_have_room_only_for_so_much() {
        let Some((device, _)) = webgpu() else { return };
        let (op, a) = squared(&device);
        let most_bytes = lock(&device.forms.state).most_bytes;
        lock(&device.forms.state).bytes = most_bytes;
        for _ in 0..2 * USES {
            drop(device.queue(&op, &[Some(&a), Some(&a), None, None]).unwrap());
        }
        assert_eq!(kept(&a), 0);
        lock(&device.forms.state).bytes = 0;
    }

    /// Nor is there as much where the device has run out of memory.
    #[test]
    fn a_device_without_memory_makes_fewer() {
        let Some((device, _)) = webgpu() else { return };
        let (op, a) = squared(&device);
        let multiply = || (0..2 * USES).for_each(|_| drop(device.queue(&op, &[Some(&a), Some(&a), None, None]).unwrap()));
        multiply();
        assert!(kept(&a) > 0);
        lock(&device.forms.state).most_bytes = 2 * SIDE * SIDE * 4;
        assert_eq!(device.out_of_memory().code(), "out_of_memory");
        assert_eq!(kept(&a), 0);
        multiply();
        assert_eq!(kept(&a), 0);
    }

    /// They count as free memory, and are given back with it.
    #[test]
    fn forms_are_given_back_with_free_memory() {
        let Some((device, _)) = webgpu() else { return };
        let (op, a) = squared(&device);
        let before = device.memory();
        for _ in 0..2 {
            (0..3 * USES).for_each(|_| drop(device.queue(&op, &[Some(&a), Some(&a), None, None]).unwrap()));
            assert!(kept(&a) > 0);
            let after = device.memory();
            assert_eq!((after.used_bytes, after.buffers), (before.used_bytes, before.buffers));
            device.trim();
            assert_eq!((kept(&a), device.memory().pooled_bytes, lock(&device.forms.state).bytes), (0, 0, 0));
        }
    }

    /// A form that was to be made in a batch that failed is made again.
    #[test]
    fn forms_of_failed_batches_are_forgotten() {
        let Some((device, _)) = webgpu() else { return };
        let (op, a) = squared(&device);
        let bad = device.upload(&(&values(SIDE * SIDE, 2)).into()).unwrap();
        let product = |x: &Buffer| device.queue(&op, &[Some(x), Some(&a), None, None]).unwrap().unwrap();
        let expected = bits(&device, &product(&a), op.extent());
        product(&a);
        bad.raw().destroy();
        // The third use of B is in a batch that cannot be submitted.
        drop(product(&bad));
        let failed = product(&a);
        assert!(kept(&a) > 0);
        assert!(pollster::block_on(device.download(&failed, Extent::f32(SIDE * SIDE))).is_err());
        for _ in 0..3 {
            assert_eq!(bits(&device, &product(&a), op.extent()), expected);
        }
        assert!(kept(&a) > 0);
    }
}
