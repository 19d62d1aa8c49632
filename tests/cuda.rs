//! The CUDA backend on a machine without a GPU, by a stand-in for the driver (`cuda/driver.rs`): every case through the whole backend, and
//! what no real driver does on demand. The real one is `conformance.rs`'s.
//!
//! A driver is loaded once in a process, by the loader's path. So each test starts itself again, with the path set, and looks how that ends.
#![cfg(all(target_os = "linux", feature = "cuda"))]

mod cases;
#[path = "cuda/compute.rs"]
mod compute;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use lapidary::{BackendId, BackendState, Error, Expr, Gpu, Matmul, Options, Result, Selector, random};

const CHILD: &str = "STAND_IN_CHILD";

/// The folder with the stand-in, made at the first use.
fn stand_in() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| make("stand-in", &[]))
}

/// The same of a newer driver.
fn newer_stand_in() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| make("newer-stand-in", &["--cfg=newer"]))
}

fn make(name: &str, arguments: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if std::env::var_os(CHILD).is_some() {
        return folder;
    }
    std::fs::create_dir_all(&folder).expect("the folder for tests is writable");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--crate-type=cdylib", "--edition=2024", "-Copt-level=2", "-o"])
        .arg(folder.join("libcuda.so"))
        .arg(root.join("tests/cuda/driver.rs"))
        .args(arguments)
        .env("STAND_IN_PTX", root.join("shaders/matmul"))
        .status()
        .expect("rustc starts");
    assert!(status.success(), "the stand-in does not compile");
    folder
}

/// Runs the body in a process of its own, with the driver in that folder and these settings.
fn with_driver(name: &str, folder: &Path, settings: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut child = Command::new(std::env::current_exe().expect("a test knows itself"));
    child.args([name, "--exact", "--nocapture"]).env(CHILD, name).env("LD_LIBRARY_PATH", folder).envs(settings.iter().copied());
    let output = child.output().expect("it starts");
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}

fn own_kernels() -> Options {
    Options { vendor_libraries: false, ..Options::only(BackendId::Cuda) }
}

fn small() -> (Vec<f32>, Matmul<'static>) {
    (random::matrix(64 * 64, 1), Matmul::new(64, 64, 64))
}

#[test]
fn every_case_is_right_and_every_byte_given_back() {
    with_driver("every_case_is_right_and_every_byte_given_back", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        for case in cases::all() {
            pollster::block_on(case.check(&gpu)).unwrap();
        }
        let stats = gpu.memory().unwrap();
        assert_eq!((stats.used_bytes, stats.buffers), (0, 0));
        let info = gpu.info().unwrap();
        assert_eq!((info.name.as_str(), info.architecture.as_str(), info.driver.as_str()), ("stand-in", "sm_90", "CUDA 12.2"));
        assert_eq!((info.uuid, info.pci_address.as_str()), (Some([7; 16]), "0000:3b:00.0"));
        assert_eq!(info.notes, ["cuBLASLt is not used, as the option vendor_libraries says"]);
    });
}

/// Of products in two terms the stand-in computes in f32, from operands that lie as both terms would.
#[test]
fn both_terms_lie_where_they_belong() {
    with_driver("both_terms_lie_where_they_belong", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        for case in cases::split_small() {
            pollster::block_on(case.check(&gpu)).unwrap();
            let [m, k, n, items] = [case.m, case.k, case.n, case.batch[0].iter().product()];
            let (a, b) = (vec![1.0; items * m * k], vec![1.0; items * k * n]);
            let op = Matmul::new(m as u64, k as u64, n as u64).batch(items as u64).precision(case.precision);
            let report = gpu.matmul_report_blocking(&a, &b, &op).unwrap();
            assert!(report.kernel.starts_with("matmul/cooperative f16x3-"), "{case}: {}", report.kernel);
        }
    });
}

#[test]
fn without_cublaslt_a_note_says_what_would_help() {
    let folder = make("without-cublaslt", &[]);
    std::fs::write(folder.join("libcublasLt.so"), "not a library").unwrap();
    with_driver("without_cublaslt_a_note_says_what_would_help", &folder, &[], || {
        let info = Gpu::open_blocking(Options::only(BackendId::Cuda)).unwrap().info().unwrap();
        // Where a real one is installed too, it is found after the broken one.
        if !info.features.contains(&"cublaslt") {
            let [note] = &info.notes[..] else { panic!("{:?}", info.notes) };
            assert!(note.starts_with("cuBLASLt is not used: ") && note.contains("libcublasLt.so: "), "{note}");
            assert!(note.contains("install NVIDIA's CUDA toolkit"), "{note}");
        }
    });
}

#[test]
fn two_gpus_are_listed_and_chosen_by_index() {
    with_driver("two_gpus_are_listed_and_chosen_by_index", stand_in(), &[("STAND_IN_DEVICES", "2")], || {
        let found = lapidary::devices_of(BackendId::Cuda).found;
        let places: Vec<_> = found.iter().map(|device| (device.index, device.pci_address.as_str(), device.uuid)).collect();
        assert_eq!(places, [(0, "0000:3b:00.0", Some([7; 16])), (1, "0000:5e:00.0", Some([8; 16]))]);
        assert!(found.iter().all(|device| device.memory_bytes == Some(1 << 30) && device.fault.is_none()));
        for device in &found {
            let gpu = Gpu::open_blocking(Options { adapter: Some(device.index), ..own_kernels() }).unwrap();
            assert_eq!(gpu.info().unwrap().pci_address, device.pci_address);
        }
        let error = Gpu::open_blocking(Options { adapter: Some(2), ..own_kernels() }).err().unwrap();
        assert!(error.to_string().contains("there is no adapter 2: adapters are counted from 0, and it has 2"), "{error}");
    });
}

/// A GPU that another process has for itself leaves the others; asked for by its index it says why.
#[test]
fn a_gpu_that_cannot_be_opened_leaves_the_others() {
    let settings = [("STAND_IN_DEVICES", "2"), ("STAND_IN_PROHIBITED", "0")];
    with_driver("a_gpu_that_cannot_be_opened_leaves_the_others", stand_in(), &settings, || {
        assert_eq!(Gpu::open_blocking(own_kernels()).unwrap().info().unwrap().pci_address, "0000:5e:00.0");
        let error = Gpu::open_blocking(Options { adapter: Some(0), ..own_kernels() }).err().unwrap();
        assert!(error.to_string().contains("cuDevicePrimaryCtxRetain"), "{error}");
    });
}

#[test]
fn an_operand_larger_than_all_pieces_arrives_whole() {
    with_driver("an_operand_larger_than_all_pieces_arrives_whole", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let values = random::matrix(3500 * 3001, 1);
        let tensor = gpu.tensor_blocking(&values, 3500, 3001).unwrap();
        assert!(tensor.to_vec_blocking().unwrap() == values);
    });
}

#[test]
fn a_dropped_call_harms_nobody() {
    with_driver("a_dropped_call_harms_nobody", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let (values, op) = small();
        let right = gpu.matmul_blocking(&values, &values, &op).unwrap();
        let other = random::matrix(64 * 64, 2);
        for _ in 0..20 {
            let mut call = Box::pin(gpu.matmul(&other, &other, &op));
            let _ = std::future::Future::poll(call.as_mut(), &mut std::task::Context::from_waker(std::task::Waker::noop()));
            drop(call);
            assert!(gpu.matmul_blocking(&values, &values, &op).unwrap() == right);
        }
        assert_eq!(gpu.memory().unwrap().used_bytes, 0);
    });
}

#[test]
fn after_a_fatal_fault_the_next_backend_takes_over() {
    with_driver("after_a_fatal_fault_the_next_backend_takes_over", stand_in(), &[("STAND_IN_FAULT_AT", "2")], || {
        let gpu = Gpu::open_blocking(Options { vendor_libraries: false, ..Options::default() }).unwrap();
        assert_eq!(gpu.info().unwrap().backend, BackendId::Cuda);
        let (values, op) = small();
        let report = gpu.matmul_report_blocking(&values, &values, &op).unwrap();
        assert!(report.replayed && report.backend != BackendId::Cuda);
        let others = gpu.info().unwrap().others;
        let cuda = others.iter().find(|other| other.backend == BackendId::Cuda).unwrap();
        assert!(cuda.state == BackendState::Off && cuda.reason.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{cuda:?}");
        let again = gpu.matmul_report_blocking(&values, &values, &op).unwrap();
        assert!(!again.replayed && again.backend == report.backend, "the fault is of one call only");
    });
}

#[test]
fn after_a_fatal_fault_a_selector_goes_on_with_its_next_backend() {
    let name = "after_a_fatal_fault_a_selector_goes_on_with_its_next_backend";
    with_driver(name, stand_in(), &[("STAND_IN_FAULT_AT", "2")], || {
        let options = Options { vendor_libraries: false, ..Options::default() };
        let selector = Selector { backends: vec![BackendId::Cuda, BackendId::Scalar], allow_cpu: true, options, ..Selector::default() };
        let gpu = Gpu::select_blocking(&selector).unwrap();
        let (values, op) = small();
        let report = gpu.matmul_report_blocking(&values, &values, &op).unwrap();
        assert!(report.replayed && report.backend == BackendId::Scalar);
        let info = gpu.info().unwrap();
        assert_eq!((info.backend, info.generation), (BackendId::Scalar, 2));
        // Where nothing else may serve, it says what each lacks.
        let only = Selector { backends: vec![BackendId::Cuda], ..selector };
        let error = Gpu::select_blocking(&only).err().unwrap();
        assert!(error.code() == "no_device" && error.to_string().contains("a fault has ended CUDA"), "{error}");
    });
}

#[test]
fn a_selector_asks_for_features_by_the_names_of_every_backend() {
    with_driver("a_selector_asks_for_features_by_the_names_of_every_backend", stand_in(), &[], || {
        let with = |features: &[&str]| {
            let features = features.iter().map(ToString::to_string).collect();
            Gpu::select_blocking(&Selector { backends: vec![BackendId::Cuda], features, ..Selector::default() })
        };
        let all = ["shader-f16", "shader-f64", "subgroups", "cooperative-matrix-16x16x16-f16-f32", "timestamp-query", "transfer-queue"];
        assert_eq!(with(&all).unwrap().info().unwrap().backend, BackendId::Cuda);
        assert!(with(&["unified-memory"]).err().unwrap().to_string().contains("it lacks unified-memory"));
    });
}

#[test]
fn a_tensor_of_a_dead_context_says_so_and_cuda_stays_off() {
    with_driver("a_tensor_of_a_dead_context_says_so_and_cuda_stays_off", stand_in(), &[("STAND_IN_FAULT_AT", "2")], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let (values, op) = small();
        let tensor = gpu.tensor_blocking(&values, 64, 64).unwrap();
        assert!(gpu.matmul_blocking(&tensor, &values, &op).is_err());
        assert_eq!(tensor.to_vec_blocking().unwrap_err().code(), "device_lost");
        let error = Gpu::open_blocking(own_kernels()).err().unwrap();
        assert!(matches!(&*error, Error::Unavailable { remedy, .. } if remedy.contains("start the program again")), "{error}");
    });
}

#[test]
fn out_of_memory_is_told_with_the_number_and_passes() {
    with_driver("out_of_memory_is_told_with_the_number_and_passes", stand_in(), &[("STAND_IN_MEMORY_BYTES", "100000000")], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let values = vec![1.0; 1 << 22];
        let mut tensors = Vec::new();
        let error = loop {
            match gpu.tensor_blocking(&values, 1 << 11, 1 << 11) {
                Ok(tensor) => tensors.push(tensor),
                Err(error) => break error,
            }
        };
        assert_eq!(*error, Error::OutOfMemory { bytes: 1 << 24, place: "the GPU" });
        assert!(tensors.len() >= 3);
        drop(tensors);
        assert!(gpu.tensor_blocking(&values, 1 << 11, 1 << 11).is_ok());
        let error = gpu.tensor_blocking(&vec![1.0; 1 << 25], 1 << 12, 1 << 13).err().unwrap();
        assert_eq!(error.code(), "limit_exceeded");
    });
}

fn refusal() -> String {
    let error = Gpu::open_blocking(own_kernels()).err().expect("no such driver is used");
    assert_eq!(error.code(), "unavailable");
    assert!(Gpu::open_blocking(Options::default()).is_ok(), "auto goes on");
    error.to_string()
}

#[test]
fn an_old_driver_is_refused() {
    with_driver("an_old_driver_is_refused", stand_in(), &[("STAND_IN_VERSION", "11040")], || {
        assert!(refusal().contains("the driver has CUDA 11.4, but 12.2 is needed; update NVIDIA's driver to 535 or later"));
    });
}

#[test]
fn a_broken_driver_is_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("libcuda.so"), "not a library").unwrap();
    with_driver("a_broken_driver_is_refused", &folder, &[], || {
        // Where a real one is installed too, it is found after the broken one.
        if Gpu::open_blocking(own_kernels()).is_err() {
            let said = refusal();
            assert!(said.contains("no CUDA driver") && said.contains("libcuda.so: "), "{said}");
        }
    });
}

#[test]
fn an_expression_without_tensors_is_computed_on_the_device_that_takes_over() {
    let name = "an_expression_without_tensors_is_computed_on_the_device_that_takes_over";
    with_driver(name, stand_in(), &[("STAND_IN_FAULT_AT", "2")], || {
        let gpu = Gpu::open_blocking(Options { vendor_libraries: false, ..Options::default() }).unwrap();
        assert_eq!(gpu.info().unwrap().backend, BackendId::Cuda);
        let bits = gpu.evaluate_blocking(&Expr::random_bits(&[100], 7)).unwrap();
        assert!(gpu.info().unwrap().backend != BackendId::Cuda);
        let cpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
        let expected = cpu.evaluate_blocking(&Expr::random_bits(&[100], 7)).unwrap();
        assert_eq!(bits.to_host_blocking().unwrap(), expected.to_host_blocking().unwrap());
    });
}
