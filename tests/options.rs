//! How a device is configured: each option does what it says, and what it cannot be is told by name.
#![cfg(not(target_arch = "wasm32"))]

mod devices;

use std::path::{Path, PathBuf};

use devices::{is_required, open};
use lapidary::{BackendId, Error, Gpu, Matmul, Options, PipelineCache, random};

/// A product of whole numbers, which has one right result, and the kernel that computed it.
fn product(gpu: &Gpu, n: usize) -> String {
    let values: Vec<f32> = random::matrix(n * n, 1).iter().map(|x| (x * 8.0).floor()).collect();
    let report = gpu.matmul_report_blocking(&values, &values, &Matmul::new(n as u64, n as u64, n as u64)).expect("a product");
    for (row, column) in [(0, 0), (n - 1, 0), (n / 2, n / 3), (n - 1, n - 1)] {
        let exact: f32 = (0..n).map(|p| values[row * n + p] * values[p * n + column]).sum();
        assert_eq!(report.data[row * n + column], exact, "{row},{column}");
    }
    report.kernel
}

const GPUS: [BackendId; 3] = [BackendId::Cuda, BackendId::Vulkan, BackendId::WebGpu];

#[test]
fn what_an_option_cannot_be_is_refused_by_name() {
    let simd = Options::only(BackendId::Simd);
    for (option, options) in [
        ("adapter", Options { adapter: Some(0), ..Options::default() }),
        ("workgroup_hint", Options { workgroup_hint: Some(0), ..simd.clone() }),
        ("threads", Options { threads: Some(0), ..simd.clone() }),
        ("pipeline_cache", Options { pipeline_cache: PipelineCache::Folder(PathBuf::new()), ..simd }),
    ] {
        let error = Gpu::open_blocking(options).err().expect("it cannot be that");
        assert!(matches!(&*error, Error::InvalidOption { option: named, .. } if named == option), "{error}");
    }
}

#[test]
fn the_cpu_keeps_to_its_threads() {
    let Some(gpu) = open(Options { threads: Some(1), ..Options::only(BackendId::Simd) }) else { return };
    assert!(gpu.info().unwrap().name.ends_with(" CPU, 1 thread"), "{}", gpu.info().unwrap().name);
    product(&gpu, 150);
    let Some(gpu) = open(Options { threads: Some(2), ..Options::only(BackendId::Simd) }) else { return };
    product(&gpu, 150);
}

#[test]
fn a_workgroup_is_no_larger_than_the_hint() {
    for backend in GPUS {
        let hinted = |hint| open(Options { workgroup_hint: Some(hint), vendor_libraries: false, ..Options::only(backend) });
        // The smallest kernel has 64 invocations.
        for hint in [1, 64] {
            let Some(gpu) = hinted(hint) else { break };
            let kernel = product(&gpu, 130);
            assert!(kernel.starts_with("matmul/tiled 32x32x16"), "{backend} {hint}: {kernel}");
        }
    }
}

#[test]
fn a_validated_device_computes_without_a_complaint() {
    for backend in GPUS {
        // Where the layer is missing, Vulkan says so.
        let Err(error) = Gpu::open_blocking(Options { validation: true, ..Options::only(backend) }).map(|gpu| product(&gpu, 70)) else {
            continue;
        };
        let Error::Unavailable { reason, .. } = &*error else { panic!("{error}") };
        assert!(reason.contains("validation") || !is_required(backend.name()), "required: {error}");
        eprintln!("skipped {backend}: {error}");
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.map(|entry| entry.expect("it is readable").path()).collect());
    entries.unwrap_or_default()
}

/// Vulkan's, which this crate writes. A file that something has happened to, or of something else, is passed over and replaced.
#[test]
fn compiled_kernels_are_kept_where_the_option_says() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pipelines-{}", std::process::id()));
    let options = Options { pipeline_cache: PipelineCache::Folder(folder.clone()), ..Options::only(BackendId::Vulkan) };
    let Some(gpu) = open(options.clone()) else { return };
    product(&gpu, 40);
    let [file] = &files(&folder)[..] else { panic!("{:?}", files(&folder)) };
    let whole = std::fs::read(file).expect("it is readable");
    for fault in [Vec::new(), whole[..whole.len() / 2].to_vec(), b"lapidary".repeat(1000)] {
        std::fs::write(file, &fault).expect("it is writable");
        product(&open(options.clone()).expect("it opened before"), 40);
        assert!(std::fs::read(file).expect("it is readable") != fault, "the file is replaced");
    }
    std::fs::remove_dir_all(&folder).expect("it is ours");
    let off = Options { pipeline_cache: PipelineCache::Off, ..options };
    product(&open(off).expect("it opened before"), 40);
    assert!(!folder.exists());
}
