//! What the whole backend must do on a real driver, and on one that fails.

mod parts;

use std::sync::atomic::{AtomicU32, Ordering};

use super::instance::Instance;
use super::pipeline::{Checks, Shader};
use super::*;
use crate::Error;
use crate::backend::device::{Device, Opened};
use crate::backend::limited;
use crate::call::Call;
use crate::dtype::{DType, Extent};
use crate::gpu::Gpu;
use crate::info::{BackendId, Caps, DeviceInfo, Dialect, MatrixUnit};
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Matmul, Precision};
use crate::options::{Options, PowerPreference};

/// A device; None, said by name, if there is none and nothing requires it.
pub(super) fn device() -> Option<(Vulkan, DeviceInfo)> {
    altered(|device| device)
}

/// A device some of whose functions are others.
fn altered(alter: impl Fn(ash::Device) -> ash::Device) -> Option<(Vulkan, DeviceInfo)> {
    let made = Instance::shared(false).and_then(|instance| {
        let cards = adapter::cards(&instance, PowerPreference::HighPerformance, None, &mut Vec::new())?;
        let card = cards.first().ok_or_else(|| ("no driver has a device".to_owned(), ""))?;
        // One that no other test shares, since these are made to fail.
        let context = card.create(&instance).and_then(|device| card.context(&instance, alter(device)));
        context.and_then(|context| card.assemble(&instance, context, &Options::default())).map_err(|fault| (fault, ""))
    });
    match made {
        Ok(opened) => Some(opened),
        Err((reason, _)) => {
            assert!(!crate::environment::is_required("vulkan"), "required: {reason}");
            eprintln!("skipped vulkan: {reason}");
            None
        }
    }
}

/// The same device with another function for submissions.
fn with_submit(device: &ash::Device, submit: ash::vk::PFN_vkQueueSubmit) -> ash::Device {
    let table = ash::DeviceFnV1_0 { queue_submit: submit, ..device.fp_v1_0().clone() };
    let (v1_1, v1_2, v1_3) = (device.fp_v1_1().clone(), device.fp_v1_2().clone(), device.fp_v1_3().clone());
    ash::Device::from_parts_1_3(device.handle(), table, v1_1, v1_2, v1_3)
}

/// The same device with another function for memory.
fn with_allocate(device: &ash::Device, allocate: ash::vk::PFN_vkAllocateMemory) -> ash::Device {
    let table = ash::DeviceFnV1_0 { allocate_memory: allocate, ..device.fp_v1_0().clone() };
    let (v1_1, v1_2, v1_3) = (device.fp_v1_1().clone(), device.fp_v1_2().clone(), device.fp_v1_3().clone());
    ash::Device::from_parts_1_3(device.handle(), table, v1_1, v1_2, v1_3)
}

const ONCE: How = How { repeats: 1, timed: false, download: Extent::f32(0) };

fn whole(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 7 % 11) as f32 - 5.0).collect()
}

/// A product of whole numbers, which has one right result.
fn is_right(gpu: &Gpu, n: usize) -> Result<bool> {
    let (a, b) = (whole(n * n), whole(n * n));
    let c = gpu.matmul_blocking(&a, &b, &Matmul::new(n as u64, n as u64, n as u64))?;
    Ok((0..n * n).all(|at| c[at] == (0..n).map(|p| a[at / n * n + p] * b[p * n + at % n]).sum::<f32>()))
}

pub(super) fn gpu((device, info): (Vulkan, DeviceInfo)) -> Gpu {
    Gpu::with(Options::only(BackendId::Vulkan), Opened { device: Device::Vulkan(device), info })
}

/// A device that is said to have less room.
fn limited_device(limit: fn(&mut Caps)) -> Option<Opened> {
    let (mut device, info) = device()?;
    limit(&mut device.caps);
    Some(Opened { device: Device::Vulkan(device), info })
}

limited::tests!(limited_device);

/// Operands of several pieces, and one that ends in the middle of a piece.
#[test]
fn what_goes_to_the_device_comes_back() {
    let Some((device, _)) = device() else { return };
    for elements in [1, 5, 4096, (2 << 20) + 3, (5 << 20) + 1] {
        let values: Vec<f32> = (0..elements).map(|i| i as f32).collect();
        let buffer = device.upload(&HostSlice::from(&values)).unwrap();
        let back = pollster::block_on(device.download(&buffer, Extent::f32(elements as u64))).unwrap().into_vec();
        assert!(back == values, "{elements} elements");
    }
    assert_eq!(device.memory().used_bytes, 0);
}

/// The GPU's clock sees each of the products that are timed.
#[test]
fn the_clock_counts_repeated_products() {
    let Some((device, info)) = device() else { return };
    let has_clock = device.clock.is_some();
    let opened = Opened { device: Device::Vulkan(device), info };
    let values = whole(96 * 96);
    let op = Matmul::new(96, 96, 96);
    let run = |repeats| {
        let call = Call::new(&op, (&values).into(), (&values).into()).unwrap();
        let started = call.start(&opened, How { repeats, timed: true, download: call.op.extent() }).unwrap();
        pollster::block_on(opened.device.finish(started.running)).unwrap()
    };
    let (once, often) = (run(1), run(64));
    assert_eq!((once.device_clock, often.device_clock), (has_clock, has_clock));
    assert_eq!(once.data.unwrap().into_vec(), often.data.unwrap().into_vec());
    // Something else may hold up a run, but not the quickest of several.
    let quickest = |repeats| (0..5).map(|_| run(repeats).kernel_ms).fold(f64::INFINITY, f64::min);
    let (once_ms, often_ms) = (quickest(1), quickest(64));
    assert!(often_ms > 2.0 * once_ms && once_ms > 0.0, "{once_ms} and {often_ms} ms");
}

/// Without a clock of its own the time is taken outside, and the result comes after it.
#[test]
fn a_queue_without_a_clock_is_timed_from_outside() {
    let Some((mut device, info)) = device() else { return };
    device.clock = None;
    let report = gpu((device, info)).matmul_report_blocking(&[2.0; 4], &[3.0; 4], &Matmul::new(2, 2, 2)).unwrap();
    assert!(!report.device_clock && report.kernel_ms > 0.0);
    assert_eq!(report.data, [12.0; 4]);
}

/// Calls given up at any point leave nothing behind.
#[test]
fn a_dropped_call_gives_its_memory_back_when_the_gpu_is_done() {
    let Some((device, info)) = device() else { return };
    let opened = Opened { device: Device::Vulkan(device), info };
    let values = whole(64 * 64);
    let op = Matmul::new(64, 64, 64);
    for _ in 0..50 {
        let call = Call::new(&op, (&values).into(), (&values).into()).unwrap();
        drop(call.start(&opened, How { download: call.op.extent(), ..ONCE }).unwrap());
    }
    pollster::block_on(opened.device.synchronize()).unwrap();
    assert_eq!(opened.device.memory().used_bytes, 0);
}

/// What was to go along with a submission that never came is given back too.
#[test]
fn an_operand_that_nobody_reads_is_given_back() {
    let Some((device, _)) = device() else { return };
    drop(device.upload(&HostSlice::from(&whole(1000))).unwrap());
    assert_eq!(device.memory().used_bytes, 0);
    let kept = device.upload(&HostSlice::from(&whole(1000))).unwrap();
    assert_eq!(device.memory().buffers, 1);
    assert_eq!(pollster::block_on(device.download(&kept, Extent::f32(1000))).unwrap().into_vec(), whole(1000));
}

/// A driver that says at some submission that the device is lost, and one that says nothing and does nothing.
#[test]
fn a_lost_device_is_replaced() {
    static SUBMISSIONS: AtomicU32 = AtomicU32::new(0);
    unsafe extern "system" fn lose(_: ash::vk::Queue, _: u32, _: *const ash::vk::SubmitInfo<'_>, _: ash::vk::Fence) -> ash::vk::Result {
        SUBMISSIONS.fetch_add(1, Ordering::Relaxed);
        ash::vk::Result::ERROR_DEVICE_LOST
    }
    let Some(lost) = altered(|device| with_submit(&device, lose)) else { return };
    let gpu = gpu(lost);
    let tensor = gpu.tensor_blocking(&whole(16), 4, 4).unwrap();
    assert_eq!((SUBMISSIONS.load(Ordering::Relaxed), gpu.info().unwrap().generation), (1, 2), "put on a fresh device");
    assert_eq!(tensor.to_vec_blocking().unwrap(), whole(16));
    assert!(is_right(&gpu, 33).unwrap());

    let Some((device, info)) = altered(|device| with_submit(&device, lose)) else { return };
    let opened = Opened { device: Device::Vulkan(device), info };
    let values = whole(16);
    let op = Matmul::new(4, 4, 4);
    let call = Call::new(&op, (&values).into(), (&values).into()).unwrap();
    let submissions = SUBMISSIONS.load(Ordering::Relaxed);
    for _ in 0..3 {
        assert_eq!(call.start(&opened, ONCE).err().map(|error| error.code()), Some("device_lost"));
    }
    assert_eq!(SUBMISSIONS.load(Ordering::Relaxed), submissions + 1, "a lost device is left alone");
}

/// A driver that takes a submission, lets its timeline go on, and does nothing.
#[test]
fn a_result_that_did_not_arrive_is_not_given() {
    static REAL: std::sync::OnceLock<ash::vk::PFN_vkQueueSubmit> = std::sync::OnceLock::new();
    unsafe extern "system" fn forget(
        queue: ash::vk::Queue,
        count: u32,
        submissions: *const ash::vk::SubmitInfo<'_>,
        fence: ash::vk::Fence,
    ) -> ash::vk::Result {
        let real = REAL.get().expect("set before a device is used");
        // SAFETY: the caller's arguments, but without commands.
        unsafe { real(queue, count, &ash::vk::SubmitInfo { command_buffer_count: 0, ..*submissions }, fence) }
    }
    let opened = altered(|device| {
        REAL.get_or_init(|| device.fp_v1_0().queue_submit);
        with_submit(&device, forget)
    });
    let Some((device, _)) = opened else { return };
    let buffer = device.upload(&HostSlice::from(&whole(100))).unwrap();
    let error = pollster::block_on(device.download(&buffer, Extent::f32(100))).unwrap_err();
    assert_eq!(*error, Error::DeviceLost { reason: "the result did not arrive".to_owned() });
    assert!(device.lost().is_some());
}

#[test]
fn a_full_device_says_how_much_was_asked_for() {
    unsafe extern "system" fn refuse(
        _: ash::vk::Device,
        _: *const ash::vk::MemoryAllocateInfo<'_>,
        _: *const ash::vk::AllocationCallbacks<'_>,
        _: *mut ash::vk::DeviceMemory,
    ) -> ash::vk::Result {
        ash::vk::Result::ERROR_OUT_OF_DEVICE_MEMORY
    }
    let Some((mut device, info)) = altered(|device| with_allocate(&device, refuse)) else { return };
    device.caps.max_buffer_bytes = 1 << 20;
    let gpu = gpu((device, info));
    let error = gpu.matmul_blocking(&whole(100), &whole(100), &Matmul::new(10, 10, 10)).unwrap_err();
    assert_eq!(*error, Error::OutOfMemory { bytes: 400, place: "the GPU" });
    let error = gpu.tensor_blocking(&vec![0.0; 1 << 19], 1, 1 << 19).unwrap_err();
    assert_eq!(*error, Error::LimitExceeded { what: "the size of a buffer in bytes", requested: 2 << 20, max: 1 << 20 });
}

/// `cargo test --release --lib what_checks_cost -- --ignored --nocapture`; `LAPIDARY_SIZE` is the size, 1024 if it is not set.
#[test]
#[ignore = "prints figures"]
fn what_checks_cost() {
    let n: usize = std::env::var("LAPIDARY_SIZE").ok().and_then(|size| size.parse().ok()).unwrap_or(1024);
    let (a, b) = (crate::random::matrix(n * n, 1), crate::random::matrix(n * n, 2));
    let op = Matmul::new(n as u64, n as u64, n as u64);
    let rate = |checks| {
        let (mut device, info) = device().expect("a device");
        device.pipelines.checks = checks;
        let done = pollster::block_on(gpu((device, info)).benchmark(&a, &b, &op, 5, 100.0)).unwrap();
        2.0 * (n as f64).powi(3) / done.median_ms() / 1e6
    };
    println!("{n}³ on {}", device().expect("a device").1.name);
    for (name, checks) in [
        ("none", Checks::TRUSTED),
        ("bounds", Checks { bounds: true, ..Checks::TRUSTED }),
        ("zeroed workgroup memory", Checks { zeroes: true, ..Checks::TRUSTED }),
        ("loops", Checks { loops: true, ..Checks::TRUSTED }),
        ("divisions", Checks { divisions: true, ..Checks::TRUSTED }),
        ("all", Checks { bounds: true, zeroes: true, loops: true, divisions: true }),
        ("none again", Checks::TRUSTED),
    ] {
        println!("checks {name}: {:.1} GFLOP/s", rate(checks));
    }
}

/// The kernels for matrix units become SPIR-V here too, where no device runs them.
#[test]
fn kernels_for_matrix_units_compile() {
    let unit = MatrixUnit { m: 16, n: 16, k: 16, operands: DType::F16, sums: DType::F32, subgroup_size: 32, dialect: Dialect::Cooperative };
    let caps = Caps { max_workgroup_invocations: 1024, max_workgroup_bytes: 48 << 10, matrix_unit: Some(unit), ..Caps::UNLIMITED };
    for (n, result) in [(4096, DType::F32), (1024, DType::F16), (257, DType::F32), (64, DType::F16), (4097, DType::F32), (2047, DType::F16)]
    {
        for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
            let op = Matmul::new(n, n, n).transpose_a(transpose_a).transpose_b(transpose_b).result(result);
            let plan = crate::plan::matmul::compute(&op.check([DType::F16; 2], n * n, n * n).unwrap(), &caps).unwrap();
            for dispatch in &plan.dispatches {
                let shader = Shader::of(&dispatch.kernel, Checks::TRUSTED).unwrap();
                only_matrices_of_floats(shader.words());
            }
            let ids: Vec<_> = plan.dispatches.iter().map(|dispatch| dispatch.kernel.id).collect();
            let copies = if n > 2000 && n % 8 != 0 { 2 } else { 0 };
            assert!(ids[..copies].iter().all(|id| *id == KernelId::MatmulCopy) && ids[copies] == KernelId::MatmulCooperative, "{ids:?}");
            let op = Matmul::new(4096, n + 960, n + 3000).transpose_a(transpose_a).transpose_b(transpose_b).precision(Precision::F16x3);
            let plan =
                crate::plan::matmul::compute(&op.check([DType::F32; 2], 4096 * (n + 960), (n + 960) * (n + 3000)).unwrap(), &caps).unwrap();
            assert_eq!(plan.dispatches.len(), 3, "{plan}");
            for dispatch in &plan.dispatches {
                only_matrices_of_floats(Shader::of(&dispatch.kernel, Checks::TRUSTED).unwrap().words());
            }
        }
    }
}

/// Rows that start anywhere, in the middle of words too, and items of a batch, of one loop and of two; what lies beyond the columns is zero.
#[test]
fn operands_are_copied_to_where_rows_are_aligned() {
    use crate::plan::matmul::Params;
    use crate::plan::{Binding, Dispatch, Plan, Slot};

    let Some((vulkan, _)) = device() else { return };
    if !vulkan.caps.stores_f16 {
        eprintln!("skipped: this device of Vulkan has no f16");
        return;
    }
    let values: Vec<half::f16> = (0..20_000).map(|i| half::f16::from_f32((i % 2039) as f32)).collect();
    let from = vulkan.upload(&HostSlice::from(&values)).unwrap();
    // Rows, columns and stride; the first element; items of the inner loop and of all, and the steps of both loops.
    let cases = [
        ([5u32, 7, 7], 0u32, [1u32, 1], [0u32, 0]),
        ([5, 8, 11], 1, [1, 1], [0, 0]),
        ([3, 1, 1], 3, [1, 1], [0, 0]),
        ([64, 129, 131], 5, [1, 1], [0, 0]),
        ([4, 9, 9], 2, [5, 5], [37, 37]),
        ([2, 15, 17], 1, [3, 6], [35, 211]),
        ([1, 16, 16], 0, [1, 1], [0, 0]),
    ];
    for (([m, n, lda], a_start, [inner, batch], [a_inner, a_outer]), turned) in
        cases.into_iter().flat_map(|case| [(case, false), (case, true)])
    {
        let (rows, columns) = if turned { (n, m) } else { (m, n) };
        let ldo = columns.next_multiple_of(8);
        let params = Params { m, n, lda, ldo, a_start, a_inner, a_outer, batch, inner, alpha: 1.0, ..Params::default() };
        let constants = vec![("THREADS", 64), ("ROWS", 16), ("BATCHED", 1), ("BIAS_ROWS", 0), ("HALF", 1), ("TURNED", u32::from(turned))];
        let elements = u64::from(batch * rows * ldo);
        let binding =
            |slot, index, elements: u64| Binding { slot, index, offset_bytes: 0, size_bytes: (elements * 2).next_multiple_of(16) };
        let plan = Plan::of(Dispatch {
            kernel: Kernel { id: KernelId::MatmulCopy, variant: String::new(), source: None, constants },
            params: params.into(),
            bindings: vec![binding(Slot::A, 0, 20_000), binding(Slot::Out, 2, elements)],
            grid: [1, 1, 1],
        });
        let out = vulkan.storage(elements * 2).unwrap();
        let extent = Extent { elements, dtype: DType::F16 };
        let how = How { repeats: 1, timed: false, download: extent };
        let running = vulkan.submit(&plan, &[Some(Bound::Buffer(&from))], &out, how).unwrap();
        let copy = pollster::block_on(vulkan.finish(running)).unwrap().data.unwrap().into_f16();
        for (at, value) in copy.iter().enumerate() {
            let (row, column) = (at as u32 / ldo, at as u32 % ldo);
            let item = row / rows;
            let [i, j] = if turned { [column, row % rows] } else { [row % rows, column] };
            let read = a_start + item / inner * a_outer + item % inner * a_inner + i * lda + j;
            let right = if column < columns { values[read as usize] } else { half::f16::ZERO };
            assert_eq!(*value, right, "element {at} of {m}x{n}, {lda} apart, from {a_start} on, turned {turned}");
        }
    }
}

/// Products that are worth the copies, where there are matrix units.
#[test]
fn products_of_copied_operands_are_right() {
    let Some((vulkan, _)) = device() else { return };
    if vulkan.caps.matrix_unit.is_none() {
        eprintln!("skipped: this device of Vulkan has no matrix units");
        return;
    }
    let gpu = Gpu::open_blocking(Options::only(BackendId::Vulkan)).unwrap();
    let (m, k, n) = (1501usize, 1499usize, 1507usize);
    let halves = |count: usize| (0..count).map(|i| half::f16::from_f32((i * 7 % 5) as f32 - 2.0)).collect::<Vec<_>>();
    let (a, b) = (halves(m * k), halves(k * n));
    for (transpose_a, transpose_b) in [(false, false), (true, false), (false, true), (true, true)] {
        for result in [DType::F32, DType::F16] {
            let op = Matmul::new(m as u64, k as u64, n as u64).transpose_a(transpose_a).transpose_b(transpose_b).result(result);
            let c = gpu.matmul_blocking(&a, &b, &op).unwrap();
            let x = |i: usize, p: usize| a[if transpose_a { p * m + i } else { i * k + p }].to_f32();
            let y = |p: usize, j: usize| b[if transpose_b { j * k + p } else { p * n + j }].to_f32();
            // Every element is a sum of its own, so that some of each row and column tell of all.
            for at in (0..m * n).step_by(997) {
                let sum: f32 = (0..k).map(|p| x(at / n, p) * y(p, at % n)).sum();
                let right = if result == DType::F16 { half::f16::from_f32(sum).to_f32() } else { sum };
                assert_eq!(c[at], right, "element {at}, transposed {transpose_a},{transpose_b}, in {result}");
            }
        }
    }
}

/// naga gives a matrix the type of what it is loaded from; units multiply no other than these.
fn only_matrices_of_floats(words: &[u32]) {
    let (type_float, type_matrix) = (22, 4456);
    let (mut floats, mut at) = (Vec::new(), 5);
    while at < words.len() {
        match words[at] & 0xffff {
            code if code == type_float => floats.push(words[at + 1]),
            code if code == type_matrix => assert!(floats.contains(&words[at + 2]), "a matrix of something else"),
            _ => {}
        }
        at += (words[at] >> 16) as usize;
    }
}

/// A task that opens a fresh device cannot go on while its own thread waits for something.
#[test]
fn nobody_who_blocks_a_thread_waits_for_a_task_of_it() {
    let Some((device, info)) = device() else { return };
    let context = Arc::clone(&device.context);
    let gpu = gpu((device, info));
    assert!(is_right(&gpu, 16).unwrap());
    context.lose("for a test".to_owned());
    let a = whole(16);
    let op = Matmul::new(4, 4, 4);
    let mut task = Box::pin(gpu.matmul(&a, &a, &op));
    let first = task.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
    // Another task of the same thread.
    assert!(is_right(&gpu, 16).unwrap());
    let buffer = gpu.allocate(64, crate::info::Memory::Device).unwrap();
    if first.is_pending() {
        pollster::block_on(task).unwrap();
    }
    // Both have the same device since.
    buffer.write_blocking(0, &[1.0f32; 16]).unwrap();
    assert!(is_right(&gpu, 16).unwrap() && gpu.allocate(64, crate::info::Memory::Device).unwrap().copy_from_blocking(&buffer).is_ok());
}

/// The proof of a copy lies behind it, where the largest buffer ends.
#[test]
fn what_is_as_large_as_a_buffer_may_be_is_read() {
    let Some(opened) = limited_device(|caps| caps.max_buffer_bytes = 4096) else { return };
    let gpu = Gpu::with(Options::only(BackendId::Vulkan), opened);
    let tensor = gpu.tensor_blocking(&vec![1.0f32; 1024], 32, 32).unwrap();
    assert_eq!(tensor.to_vec_blocking().unwrap(), [1.0; 1024]);
    assert_eq!(gpu.tensor_blocking(&vec![1.0f32; 1028], 1, 1028).unwrap_err().code(), "limit_exceeded");
}

/// Kernels keep the device that they were compiled for, but not those that are known by a name.
#[test]
fn a_closed_handle_keeps_no_device() {
    let Some(opened) = device() else { return };
    let gpu = gpu(opened);
    gpu.define(crate::compute::KernelDefinition::new("nothing").bindings([]).cpu(|_, []| {}));
    drop(gpu.kernel("nothing").unwrap());
    let opened = Arc::downgrade(&gpu.current().unwrap());
    gpu.close();
    assert!(opened.upgrade().is_none());
    assert_eq!(gpu.kernel("nothing").unwrap_err().code(), "disposed");
}
