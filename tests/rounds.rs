//! Devices opened, used and dropped leave neither memory nor threads nor open files behind. A process of its own, so that nothing else
//! counts.
#![cfg(target_os = "linux")]

mod devices;

use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lapidary::{BackendId, Gpu, Matmul, Options, random};

/// What one test holds while it counts: all count the same process.
static ALONE: Mutex<()> = Mutex::new(());

/// Resident KiB, threads, open files.
fn held() -> [u64; 3] {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect("Linux has it");
        line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
    };
    [field("VmRSS:"), field("Threads:"), std::fs::read_dir("/proc/self/fd").expect("Linux has it").count() as u64]
}

/// What is held once it is `wanted` of threads and files, else what is after two seconds: Linux still counts a thread for a moment after
/// it has been joined.
fn held_when_settled(wanted: [u64; 2]) -> [u64; 3] {
    let began = Instant::now();
    loop {
        let now = held();
        if now[1..] == wanted || began.elapsed() > Duration::from_secs(2) {
            return now;
        }
        sleep(Duration::from_millis(10));
    }
}

/// `LAPIDARY_ROUNDS` is how often, 200 times if it is not set.
fn many_devices_of(options: &Options, backend: BackendId) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let count = std::env::var("LAPIDARY_ROUNDS").ok().and_then(|count| count.parse().ok()).unwrap_or(200);
    let round = || {
        let gpu = Gpu::open_blocking(options.clone())?;
        let values = random::matrix(100 * 100, 1);
        let tensor = gpu.tensor_blocking(&values, 100, 100)?;
        gpu.matmul_blocking(&tensor, &values, &Matmul::new(100, 100, 100))
    };
    if devices::open(options.clone()).is_none() {
        return;
    }
    // Drivers keep something of their first devices.
    for _ in 0..20 {
        round().expect("a product");
    }
    sleep(Duration::from_millis(200));
    let before = held();
    for _ in 0..count {
        round().expect("a product");
    }
    let after = held_when_settled([before[1], before[2]]);
    println!("{backend}, {count} rounds: from {before:?} to {after:?} (resident KiB, threads, files)");
    assert!(after[0] < before[0] + 16 * 1024, "memory from {before:?} to {after:?}");
    assert!(after[1..] == before[1..], "threads or files from {before:?} to {after:?}");
}

#[test]
fn many_devices_of_vulkan_leave_nothing_behind() {
    many_devices_of(&Options::only(BackendId::Vulkan), BackendId::Vulkan);
}

#[test]
fn many_devices_of_cuda_leave_nothing_behind() {
    many_devices_of(&Options::only(BackendId::Cuda), BackendId::Cuda);
}

#[test]
fn many_devices_of_cuda_without_cublaslt_leave_nothing_behind() {
    many_devices_of(&Options { vendor_libraries: false, ..Options::only(BackendId::Cuda) }, BackendId::Cuda);
}

#[test]
fn many_devices_of_webgpu_leave_nothing_behind() {
    many_devices_of(&Options::only(BackendId::WebGpu), BackendId::WebGpu);
}
