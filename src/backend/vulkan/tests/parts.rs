//! What a device has no room for, computed part by part.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use ash::vk;

use super::*;

/// For 64 MiB, and a block of 16 for each of three sorts of memory, where they are not one.
const ROOM_BYTES: u64 = 116 << 20;
/// The driver's functions.
static REAL: OnceLock<ash::DeviceFnV1_0> = OnceLock::new();
/// What was given and is not back.
static GIVEN: Mutex<Option<HashMap<vk::DeviceMemory, u64>>> = Mutex::new(None);
/// Which test's devices there are.
static TURN: Mutex<()> = Mutex::new(());

fn real() -> &'static ash::DeviceFnV1_0 {
    REAL.get().expect("set before a device is used")
}

unsafe extern "system" fn allocate(
    device: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    callbacks: *const vk::AllocationCallbacks<'_>,
    memory: *mut vk::DeviceMemory,
) -> vk::Result {
    let mut given = GIVEN.lock().unwrap();
    let given = given.get_or_insert_default();
    // SAFETY: the caller's arguments.
    unsafe {
        let bytes = (*info).allocation_size;
        if given.values().sum::<u64>() + bytes > ROOM_BYTES {
            return vk::Result::ERROR_OUT_OF_DEVICE_MEMORY;
        }
        let result = (real().allocate_memory)(device, info, callbacks, memory);
        given.insert(*memory, bytes);
        result
    }
}

unsafe extern "system" fn free(device: vk::Device, memory: vk::DeviceMemory, callbacks: *const vk::AllocationCallbacks<'_>) {
    GIVEN.lock().unwrap().get_or_insert_default().remove(&memory);
    // SAFETY: the caller's arguments.
    unsafe { (real().free_memory)(device, memory, callbacks) };
}

/// A device of little memory, which counts what it gave and what it got back, and takes submissions by this function.
fn with_little_memory(submit: Option<vk::PFN_vkQueueSubmit>) -> Option<Gpu> {
    altered(|device| {
        let table = REAL.get_or_init(|| device.fp_v1_0().clone());
        let queue_submit = submit.unwrap_or(table.queue_submit);
        let table = ash::DeviceFnV1_0 { allocate_memory: allocate, free_memory: free, queue_submit, ..table.clone() };
        let (v1_1, v1_2, v1_3) = (device.fp_v1_1().clone(), device.fp_v1_2().clone(), device.fp_v1_3().clone());
        ash::Device::from_parts_1_3(device.handle(), table, v1_1, v1_2, v1_3)
    })
    .map(gpu)
}

#[test]
fn what_does_not_fit_is_computed_in_parts() {
    let _turn = TURN.lock().unwrap();
    let Some(gpu) = with_little_memory(None) else { return };
    // Of a chain each result is let go of when the next one is done: those of all together do not fit.
    let start = gpu.tensor_blocking(&vec![1.0f32; 4 << 20], 2048, 2048).unwrap();
    let chain = (0..20).fold(crate::Expr::from(&start), |whole, _| whole.softmax(-1));
    let last = gpu.evaluate_blocking(&chain).unwrap();
    assert_eq!(last.to_vec_blocking().unwrap()[77], 1.0 / 2048.0);
    drop((gpu, start, chain, last));
    let Some(gpu) = with_little_memory(None) else { return };
    // The result alone has 64 MiB, and the host needs as much to read it.
    let (m, k, n) = (4096, 3, 4096);
    let (a, b, c) = (whole(m * k), whole(k * n), whole(m * n));
    for (transpose_a, transpose_b) in [(false, false), (true, true)] {
        let op = Matmul::new(m as u64, k as u64, n as u64).transpose_a(transpose_a).transpose_b(transpose_b).plus(2.0, &c);
        let report = gpu.matmul_report_blocking(&a, &b, &op).unwrap();
        assert!(report.kernel.contains(" parts for want of memory"), "{}", report.kernel);
        let (from_a, from_b) = (&a[..], &b[..]);
        let x = |i: usize, p: usize| if transpose_a { from_a[p * m + i] } else { from_a[i * k + p] };
        let y = |p: usize, j: usize| if transpose_b { from_b[j * k + p] } else { from_b[p * n + j] };
        // Many elements for a test, which is not optimised: no iterator for each.
        let (data, c) = (&report.data[..], &c[..]);
        let exact = |i: usize, j: usize| x(i, 0) * y(0, j) + x(i, 1) * y(1, j) + x(i, 2) * y(2, j) + 2.0 * c[i * n + j];
        assert_eq!((data.len(), (0..m * n).find(|&at| data[at] != exact(at / n, at % n))), (m * n, None));
    }
    // A tensor is whole or not at all. On a device of its own, since the allocator keeps a block that is empty.
    drop(gpu);
    let Some(gpu) = with_little_memory(None) else { return };
    let kept = gpu.matmul_tensor_blocking(&a, &b, &Matmul::new(m as u64, k as u64, n as u64));
    assert!(kept.is_ok_and(|kept| kept.rows() == m as u64), "without C it fits");
    // What the device may still work on is not yet idle.
    pollster::block_on(gpu.current().unwrap().device.synchronize()).unwrap();
    // There is no room beside what lies idle, however few the pieces of the upload, so that is given back.
    let pooled_bytes = gpu.memory().unwrap().pooled_bytes;
    assert!(pooled_bytes >= 64 << 20, "{pooled_bytes} bytes");
    gpu.tensor_blocking(&vec![0.0; 52 << 18], 52, 1 << 18).unwrap();
    let largest = GIVEN.lock().unwrap().as_ref().unwrap().values().max().copied();
    assert!(largest < Some(64 << 20), "{largest:?} bytes, {:?}", gpu.memory().unwrap());
    let error = gpu.tensor_blocking(&vec![0.0; 30 << 20], 30, 1 << 20).unwrap_err();
    assert_eq!(*error, Error::OutOfMemory { bytes: 120 << 20, place: "the GPU" });
    // Batches of one loop and of two, of which the last shares B between the turns of the inner one.
    let (m, k, n) = (512, 3, 1024);
    for (outer, inner, shared) in [(1, 40, false), (5, 9, true), (2, 20, true)] {
        let items = outer * inner;
        let of_b = |item: usize| if shared { item / inner } else { item };
        let (a, b, c) = (whole(items * m * k), whole((of_b(items - 1) + 1) * k * n), whole(items * m * n));
        let shape = |inner: usize, rows: usize, columns: usize| [outer, inner, rows, columns].map(|size| size as u64);
        let op = Matmul::of(&shape(inner, m, k), &shape(if shared { 1 } else { inner }, k, n)).unwrap().plus(2.0, &c);
        let report = gpu.matmul_report_blocking(&a, &b, &op).unwrap();
        assert!(report.kernel.contains(" parts for want of memory"), "{}", report.kernel);
        let (data, a, b, c) = (&report.data[..], &a[..], &b[..], &c[..]);
        let exact = |at: usize| {
            let (item, i, j) = (at / (m * n), at / n % m, at % n);
            let (x, y) = (&a[(item * m + i) * k..], &b[of_b(item) * k * n + j..]);
            x[0] * y[0] + x[1] * y[n] + x[2] * y[2 * n] + 2.0 * c[at]
        };
        assert_eq!((data.len(), (0..items * m * n).find(|&at| data[at] != exact(at))), (items * m * n, None));
    }
    assert_eq!(gpu.memory().unwrap().used_bytes, 0);
}

/// Parts that were done before a device was lost are kept, and the others are done on a fresh one.
#[test]
fn a_loss_between_parts_is_taken_up() {
    static SUBMISSIONS: AtomicU32 = AtomicU32::new(0);
    static LAST: AtomicU32 = AtomicU32::new(u32::MAX);
    unsafe extern "system" fn lose(queue: vk::Queue, count: u32, submissions: *const vk::SubmitInfo<'_>, fence: vk::Fence) -> vk::Result {
        if SUBMISSIONS.fetch_add(1, Ordering::Relaxed) >= LAST.load(Ordering::Relaxed) {
            return vk::Result::ERROR_DEVICE_LOST;
        }
        // SAFETY: the caller's arguments.
        unsafe { (real().queue_submit)(queue, count, submissions, fence) }
    }
    let _turn = TURN.lock().unwrap();
    let (m, k, n) = (4096, 1, 4096);
    let (a, b, c) = (whole(m * k), whole(k * n), whole(m * n));
    let op = Matmul::new(m as u64, k as u64, n as u64).plus(2.0, &c);
    // The first device lives through it and counts; the second is lost in one of the last parts.
    for is_lost in [false, true] {
        let Some(gpu) = with_little_memory(Some(lose)) else { return };
        let report = gpu.matmul_report_blocking(&a, &b, &op).unwrap();
        assert!(report.kernel.contains(" parts for want of memory"), "{}", report.kernel);
        assert_eq!((report.replayed, gpu.info().unwrap().generation), (is_lost, 1 + u32::from(is_lost)));
        let (data, a, b, c) = (&report.data[..], &a[..], &b[..], &c[..]);
        assert_eq!((0..m * n).find(|&at| data[at] != a[at / n] * b[at % n] + 2.0 * c[at]), None);
        LAST.store(SUBMISSIONS.swap(0, Ordering::Relaxed) * 3 / 4, Ordering::Relaxed);
    }
}
