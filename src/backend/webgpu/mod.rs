//! wgpu: WebGPU in the browser, and Vulkan, Metal, DX12 or GL natively, by the same code and the same WGSL.
//!
//! After a loss WebGPU reports success on almost everything. So a result counts only if its buffer could be mapped, no error scope
//! caught anything, and the device is still there when all of that is known.
//!
//! Natively handles of one adapter of Vulkan's share a device that stays, as those of `backend/vulkan` do; what has become of it they
//! share too.

mod adapter;
mod attend;
mod batch;
mod buffer;
#[cfg(not(target_arch = "wasm32"))]
mod compute;
#[cfg(target_arch = "wasm32")]
mod external;
mod forms;
mod launch;
#[cfg(target_arch = "wasm32")]
mod matrix;
mod pipeline;
#[cfg(target_arch = "wasm32")]
mod ring;
mod slab;
mod submit;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use adapter::list;
pub(crate) use adapter::open;
pub(crate) use buffer::Buffer;
pub(crate) use submit::Running;

use super::{Backend, Bound, Finished, How, MemoryStats};
use crate::dtype::Extent;
use crate::error::Result;
use crate::host::{HostSlice, HostVec};
use crate::info::Caps;
use crate::ops::Op;
use crate::plan::{self, Plan};

/// An open device.
pub(crate) struct WebGpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    caps: Caps,
    /// Nanoseconds a tick of the GPU's clock, if it has one.
    timestamp_period_ns: Option<f32>,
    pipelines: pipeline::Pipelines,
    pool: super::pool::Pool<Arc<buffer::Raw>>,
    health: Arc<Health>,
    batches: Arc<batch::Batches>,
    forms: Arc<forms::All>,
    #[cfg(target_arch = "wasm32")]
    ring: ring::Ring,
    /// What was tuned, before this device was opened or since.
    #[cfg(target_arch = "wasm32")]
    tuned: std::cell::Cell<plan::tuned::Tuned>,
    /// Whether the page computes on the device too.
    #[cfg(target_arch = "wasm32")]
    is_pages: std::cell::Cell<bool>,
    /// Threads in which the device calls back.
    #[cfg(not(target_arch = "wasm32"))]
    attendants: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Drop for WebGpu {
    fn drop(&mut self) {
        // Threads that attend to the device hold it. If one of them were the last, it would take the driver apart while the process, of which
        // nobody keeps the end waiting, takes itself apart too.
        let attendants = std::mem::take(self.attendants.get_mut().unwrap_or_else(PoisonError::into_inner));
        for attendant in attendants.into_iter().chain(self.batches.take_timer()) {
            // A waker that one of them called may have dropped this.
            if attendant.thread().id() != std::thread::current().id() {
                let _ = attendant.join();
            }
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl Drop for WebGpu {
    fn drop(&mut self) {
        if self.is_pages.get() {
            // It may be drawing with it; the collector frees it, some time.
            self.trim();
        } else {
            self.device.destroy();
        }
    }
}

/// What the driver has said about the device.
#[derive(Default)]
struct Health {
    lost: Mutex<Option<String>>,
    /// How often there was no memory, so far as no error scope told: natively since somebody asked.
    shortages: AtomicU32,
}

impl Health {
    fn lose(&self, reason: String) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }

    fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_shortage(&self) {
        self.shortages.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether there was no memory. In the browser what one call lacked others may lack at the same time, so that each is told.
    fn was_short(&self) -> bool {
        let shortages =
            if cfg!(target_arch = "wasm32") { self.shortages.load(Ordering::Relaxed) } else { self.shortages.swap(0, Ordering::Relaxed) };
        shortages > 0
    }
}

#[cfg(target_arch = "wasm32")]
impl WebGpu {
    /// Takes these tiles from now on.
    pub(crate) fn set_tuned(&self, tuned: plan::tuned::Tuned) {
        self.tuned.set(tuned);
        self.batches.forget_recipes();
    }

    /// How often there was no memory for what nobody waits for.
    pub(crate) fn shortages(&self) -> u32 {
        self.health.shortages.load(Ordering::Relaxed)
    }

    /// An error if that was once more since.
    pub(crate) fn check_memory(&self, before: u32) -> Result<()> {
        if self.shortages() == before { Ok(()) } else { Err(self.out_of_memory()) }
    }
}

impl WebGpu {
    /// The plan with forms of those operands kept.
    fn plan_keeping(&self, op: &Op, keeps: [bool; 2]) -> Result<Plan> {
        plan::compute(op, &Caps { keeps, ..self.planned_by() })
    }

    /// What plans are made by.
    pub(crate) fn planned_by(&self) -> Caps {
        #[cfg(target_arch = "wasm32")]
        let tuned = self.tuned.get();
        #[cfg(not(target_arch = "wasm32"))]
        let tuned = self.caps.tuned;
        Caps { tuned, ..self.caps.clone() }
    }
}

impl Backend for WebGpu {
    type Buffer = Buffer;
    type Running = Running;

    fn plan(&self, op: &Op) -> Result<Plan> {
        #[cfg(target_arch = "wasm32")]
        let caps = &self.planned_by();
        #[cfg(not(target_arch = "wasm32"))]
        let caps = &self.caps;
        plan::compute(op, caps)
    }

    #[cfg(target_arch = "wasm32")]
    fn plan_soon(&self, op: &Op) -> Result<Plan> {
        let plan = self.plan(op)?;
        match plan::matmul::stand_in(&plan, &self.caps) {
            Some(other) if !self.is_compiled(&plan.dispatches[0].kernel)? => Ok(other),
            _ => Ok(plan),
        }
    }

    fn tiles(&self) -> Vec<String> {
        plan::matmul::tiles()
    }

    fn plan_tuned(&self, op: &Op, tuned: plan::tuned::Tuned) -> Result<Plan> {
        plan::compute(op, &Caps { tuned, ..self.caps.clone() })
    }

    fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        self.put(self.storage(values.len() * values.dtype().bytes())?, values)
    }

    fn keep(&self, values: &HostSlice<'_>) -> Result<Buffer> {
        self.put(self.storage_of_tensor(values.len() * values.dtype().bytes())?, values)
    }

    fn allocate(&self, _plan: &Plan, op: &Op) -> Result<Buffer> {
        self.storage(op.extent().bytes())
    }

    fn submit(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
        self.start(plan, operands, out, how)
    }

    fn queue(&self, op: &Op, operands: &[Option<&Buffer>]) -> Result<Option<Buffer>> {
        self.record(op, operands)
    }

    fn finish(&self, running: Running) -> impl Future<Output = Result<Finished>> {
        self.complete(running)
    }

    fn download(&self, buffer: &Buffer, extent: Extent) -> impl Future<Output = Result<HostVec>> {
        self.read_back(buffer, extent)
    }

    async fn synchronize(&self) -> Result<()> {
        self.work_done().await;
        self.settled()
    }

    fn lost(&self) -> Option<String> {
        self.health.lost()
    }

    fn memory(&self) -> MemoryStats {
        let stats = self.pool.stats();
        #[cfg(target_arch = "wasm32")]
        let stats = MemoryStats { pooled_bytes: stats.pooled_bytes + self.ring.bytes(), ..stats };
        stats
    }

    fn trim(&self) {
        // They become free buffers.
        self.forms.trim();
        self.pool.trim();
        self.batches.slabs.trim();
        #[cfg(target_arch = "wasm32")]
        self.ring.trim();
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;
    use crate::backend::device::{Device, Opened};
    use crate::backend::limited;
    use crate::dtype::DType;
    use crate::ops::matmul::Matmul;
    use crate::options::Options;

    const NINE: Extent = Extent::f32(81);

    pub(super) fn webgpu() -> Option<(WebGpu, crate::info::DeviceInfo)> {
        let opened = pollster::block_on(open(&Options::default())).ok();
        if opened.is_none() {
            assert!(!crate::environment::is_required("webgpu"), "required");
            eprintln!("skipped webgpu: no adapter");
        }
        opened
    }

    /// A batch that fails condemns what was computed in it and from it, and nothing else.
    #[test]
    fn a_fault_in_the_queue_is_told_by_what_it_befell() {
        let Some((device, _)) = webgpu() else { return };
        let values: Vec<f32> = (0..81).map(|i| f32::from(u8::from(i / 9 == i % 9))).collect();
        let (a, bad) = (device.upload(&(&values).into()).unwrap(), device.upload(&(&values).into()).unwrap());
        let op = Op::Matmul(Matmul::new(9, 9, 9).check([DType::F32; 2], 81, 81).unwrap());
        let queue = |x: &Buffer| device.queue(&op, &[Some(x), Some(&a), None, None]).map(|out| out.expect("there is a queue"));
        let read = |x: &Buffer| pollster::block_on(device.download(x, NINE)).map(HostVec::into_vec);
        // On a busy machine the queue may have gone off by itself before what cannot be submitted was put into it.
        let mut befell_both = 0;
        for _ in 0..4 {
            let before = queue(&a).unwrap();
            assert_eq!(read(&before).unwrap(), values);
            // What is destroyed cannot be submitted.
            bad.raw().destroy();
            let neighbour = queue(&a).unwrap();
            let failed = queue(&bad).unwrap();
            let derived = queue(&failed).unwrap();
            assert_eq!(read(&derived).unwrap_err().code(), "internal");
            let is_apart = read(&neighbour).is_ok_and(|found| found == values);
            befell_both += u32::from(!is_apart);
            for condemned in [&failed, &neighbour].into_iter().take(if is_apart { 1 } else { 2 }) {
                assert_eq!(read(condemned).unwrap_err().code(), "internal");
                assert_eq!(queue(condemned).err().map(|error| error.code()), Some("internal"), "it is known");
            }
            assert_eq!(read(&before).unwrap(), values);
            let after = queue(&before).unwrap();
            assert_eq!(read(&after).unwrap(), values);
            assert_eq!(read(&queue(&after).unwrap()).unwrap(), values);
        }
        assert!(befell_both > 0, "what was queued with it failed with it");
        drop((a, bad));
        assert_eq!(device.memory().used_bytes, 0);
    }

    /// A queue that nobody reads is computed all the same.
    #[test]
    fn nothing_waits_for_ever() {
        let Some((device, _)) = webgpu() else { return };
        let a = device.upload(&(&[2.0f32; 81]).into()).unwrap();
        let op = Op::Matmul(Matmul::new(9, 9, 9).check([DType::F32; 2], 81, 81).unwrap());
        let out = device.queue(&op, &[Some(&a), Some(&a), None, None]).unwrap().expect("there is a queue");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while device.batches.is_recording() {
            assert!(std::time::Instant::now() < deadline, "still not submitted");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(pollster::block_on(device.download(&out, NINE)).unwrap().into_vec(), [36.0; 81]);
    }

    /// What computes before a tiled kernel is compiled gives the same to the last bit.
    #[test]
    fn a_stand_in_has_the_same_result() {
        let Some((device, _)) = webgpu() else { return };
        for (m, k, n) in [(36, 20, 44), (35, 19, 37), (1024, 70, 33), (3, 0, 2), (200, 301, 190)] {
            let values = |count: usize| (0..count).map(|i| (i as f32 * 0.37).sin()).collect::<Vec<_>>();
            let (a, b, c) = (values(m * k), values(k * n), values(m * n));
            let put = |values: &Vec<f32>| device.upload(&values.into()).unwrap();
            let operands = [put(&a), put(&b), put(&c)];
            for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
                let op = Matmul::new(m as u64, k as u64, n as u64).transpose_a(transpose_a).transpose_b(transpose_b).plus(2.0, &c);
                let op = Op::Matmul(op.check([DType::F32; 2], a.len() as u64, b.len() as u64).unwrap());
                let plan = device.plan(&op).unwrap();
                let stand_in = plan::matmul::stand_in(&plan, &device.caps).expect("one stage");
                assert_eq!(stand_in.dispatches[0].params.matmul().unwrap().k_part > 1, k > 300);
                let result = |plan: &Plan| {
                    let out = device.allocate(plan, &op).unwrap();
                    let bound: Vec<_> = operands.iter().map(|buffer| Some(Bound::Buffer(buffer))).collect();
                    let running = device.submit(plan, &bound, &out, How { repeats: 1, timed: false, download: op.extent() }).unwrap();
                    pollster::block_on(device.finish(running)).unwrap().data.unwrap().into_vec()
                };
                assert_eq!(result(&stand_in), result(&plan), "{m} {k} {n} transposed {transpose_a},{transpose_b}");
            }
        }
    }

    /// Every tile that computes in f16, as they do in browsers: of whole numbers whose sums f16 holds the result is exact.
    #[test]
    fn products_computed_in_f16_are_right() {
        use crate::ops::matmul::Precision;
        let Some((mut device, _)) = webgpu() else { return };
        if !device.caps.stores_f16 {
            return eprintln!("skipped f16: {} has none", device.device.adapter_info().name);
        }
        device.caps.f16 = true;
        let whole = |count: usize, seed: usize| {
            (0..count).map(|i| half::f16::from_f32(((i * 7919 + seed) % 13 % 4) as f32 - 1.0)).collect::<Vec<_>>()
        };
        let mut kernels = std::collections::BTreeSet::new();
        for tile in 0..device.tiles().len() {
            let tuned = (0..plan::tuned::Tuned::CLASSES).fold(plan::tuned::Tuned::NONE, |tuned, class| tuned.with(class, Some(tile as u8)));
            for ([m, k, n], transpose_a, transpose_b) in
                [([70, 100, 68], false, false), ([128, 96, 128], false, true), ([67, 33, 131], true, false)]
            {
                let (a, b) = (whole(m * k, 1), whole(k * n, 5));
                let op =
                    Matmul::new(m as u64, k as u64, n as u64).transpose_a(transpose_a).transpose_b(transpose_b).precision(Precision::F16);
                let op = Op::Matmul(op.check([DType::F16; 2], a.len() as u64, b.len() as u64).unwrap());
                let plan = device.plan_tuned(&op, tuned).unwrap();
                // Some tiles are of f32 alone.
                if !kernels.insert((m, plan.dispatches[0].kernel.variant.clone())) {
                    continue;
                }
                let operands = [device.upload(&(&a).into()).unwrap(), device.upload(&(&b).into()).unwrap()];
                let bound: Vec<_> = operands.iter().map(|buffer| Some(Bound::Buffer(buffer))).collect();
                let out = device.allocate(&plan, &op).unwrap();
                let running = device.submit(&plan, &bound, &out, How { repeats: 1, timed: false, download: op.extent() }).unwrap();
                let got = pollster::block_on(device.finish(running)).unwrap().data.unwrap().into_vec();
                for (at, got) in got.into_iter().enumerate() {
                    let (i, j) = (at / n, at % n);
                    let term = |t: usize| {
                        let (a, b) =
                            (a[if transpose_a { t * m + i } else { i * k + t }], b[if transpose_b { j * k + t } else { t * n + j }]);
                        a.to_f32() * b.to_f32()
                    };
                    assert_eq!(got, (0..k).map(term).sum::<f32>(), "{i}, {j} of {plan}");
                }
            }
        }
        assert!(kernels.len() > 3 * 5 && kernels.iter().all(|(_, variant)| variant.starts_with("f16 ")), "{kernels:?}");
    }

    /// A device that is said to have less room.
    fn limited_device(limit: fn(&mut Caps)) -> Option<Opened> {
        let (mut device, info) = webgpu()?;
        limit(&mut device.caps);
        Some(Opened { device: Device::WebGpu(device), info })
    }

    limited::tests!(limited_device);

    /// Reductions too: rows are cut and their values too, and what the parts gave is joined.
    #[test]
    fn a_reduction_in_many_parts_is_right() {
        use crate::ops::elementwise::{Kind, Program, Step};
        use crate::ops::map::{self, View};
        use crate::ops::reduce::{Fold, Problem};
        let Some((mut device, info)) = webgpu() else { return };
        device.caps.max_binding_bytes = 8192;
        device.caps.max_workgroups_per_dimension = 3;
        let device = Opened { device: Device::WebGpu(device), info }.device;
        let (m, n) = (256u32, 320u32);
        let host: Vec<f32> = (0..m * n).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
        let a = device.upload(&(&host).into()).unwrap();
        let program = std::sync::Arc::new(Program { inputs: vec![Kind::F32], steps: vec![Step::Input(0)] });
        let cases = [(vec![m * n], vec![1], 0), (vec![m, n], vec![n, 1], 1), (vec![n, m], vec![1, n], 1)];
        for ((shape, strides, kept), fold) in cases.into_iter().flat_map(|case| [(case.clone(), Fold::Sum), (case, Fold::Var)]) {
            let strides: Vec<i64> = strides.into_iter().map(i64::from).collect();
            let view = View { dtype: DType::F32, offset: 0, strides: strides.clone(), bounds: Vec::new() };
            let count: u32 = shape[kept..].iter().product();
            let program = std::sync::Arc::clone(&program);
            let values = map::Problem { shape: shape.clone(), inputs: vec![view], program, scalars: Vec::new(), dtype: DType::F32 };
            let op = Op::Reduce(Problem { values, kept, fold, divisor: count as f32 });
            let plan = device.plan(&op).unwrap();
            assert!(plan.dispatches.len() > 10, "{plan}");
            let out = device.allocate(&plan, &op).unwrap();
            let how = How { repeats: 1, timed: false, download: op.extent() };
            let running = device.submit(&plan, &[Some(crate::backend::Bound::Buffer(&a))], &out, how).unwrap();
            let data = pollster::block_on(device.finish(running)).unwrap().data.unwrap().into_vec();
            for (row, &got) in data.iter().enumerate() {
                let start = if kept > 0 { row * strides[0] as usize } else { 0 };
                let step = strides[strides.len() - 1] as usize;
                let values: Vec<f64> = (0..count as usize).map(|i| host[start + i * step].into()).collect();
                let (sum, count) = (values.iter().sum::<f64>(), f64::from(count));
                let expected = if fold == Fold::Sum { sum } else { values.iter().map(|x| (x - sum / count).powi(2)).sum::<f64>() / count };
                assert!((f64::from(got) - expected).abs() < 1e-4, "{fold:?} of {shape:?}, {row}: {got}, not {expected}");
            }
        }
    }
}
