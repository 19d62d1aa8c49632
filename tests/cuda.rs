//! The CUDA backend on a machine without a GPU, by a stand-in for the driver (`cuda/driver.rs`): every case through the whole backend, and
//! what no real driver does on demand. The real one is `conformance.rs`'s.
//!
//! A driver is loaded once in a process, by the loader's path. So each test starts itself again, with the path set, and looks how that ends.
#![cfg(all(target_os = "linux", feature = "cuda"))]

mod cases;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use lapidary::compute::{Access, Buffer, Kernel, KernelDefinition, Language, Memory};
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

#[test]
fn what_the_driver_needs_itself_is_made_room_for() {
    let settings = [("STAND_IN_MEMORY_BYTES", "100000000"), ("STAND_IN_OWN_BYTES", "50000000")];
    with_driver("what_the_driver_needs_itself_is_made_room_for", stand_in(), &settings, || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let held = || gpu.allocate(64 << 20, Memory::Device).unwrap();
        for idle in [true, false] {
            let memory = held();
            if idle {
                // It is given back, each time.
                drop(memory);
                compile_saxpy(&gpu).unwrap();
                drop(held());
                gpu.stream().unwrap();
            } else {
                let (module, stream) = (compile_saxpy(&gpu).unwrap_err(), gpu.stream().err().unwrap());
                assert!(module.to_string().contains("memory for the driver's own use could not be had on the GPU"), "{module}");
                assert_eq!((module.code(), stream.code()), ("out_of_memory", "out_of_memory"));
            }
        }
    });
}

#[test]
fn a_callers_fault_is_no_fault_of_the_crate() {
    with_driver("a_callers_fault_is_no_fault_of_the_crate", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let add_up = KernelDefinition::new("add_up").bindings([Access::ReadWrite; 2]).workgroup([64, 1, 1]);
        let add_up = add_up.ptx(".visible .entry add_up(.param .u64 values, .param .u64 total) { }");
        // The source declares 512 bytes, and a block has at most 232,448.
        let error = gpu.compile(&add_up.clone().shared_bytes(232_000)).unwrap_err();
        let what = "the shared memory of a block of this kernel in bytes";
        assert_eq!(*error, Error::LimitExceeded { what, requested: 232_512, max: 232_448 });
        gpu.compile(&add_up.shared_bytes(231_936)).unwrap();
        let definition = KernelDefinition::new("saxpy").bindings([Access::Read, Access::ReadWrite]).workgroup([512, 1, 1]).params_bytes(8);
        let kernel = gpu.compile(&definition.ptx(include_str!("compute/saxpy.ptx"))).unwrap();
        let (x, y, stream) = (filled(&gpu, Memory::Device, 1.0), filled(&gpu, Memory::Device, 2.0), gpu.stream().unwrap());
        let error = stream.launch(&kernel, [3, 1, 1], [&x, &y], &PLAIN).unwrap_err();
        assert_eq!(error.code(), "invalid_argument");
        let said = error.to_string();
        assert!(said.contains("the kernel saxpy is of [3, 1, 1] blocks of [512, 1, 1] threads with 0 bytes"), "{said}");
        // It passes.
        stream.launch(&saxpy(&gpu), [1; 3], [&x, &y], &PLAIN).unwrap();
        assert_eq!(y.read_blocking::<f32>(0, 64).unwrap(), [3.0; 64]);
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

fn compile_saxpy(gpu: &Gpu) -> Result<Kernel> {
    let definition = KernelDefinition::new("saxpy").bindings([Access::Read, Access::ReadWrite]).workgroup([64, 1, 1]).params_bytes(8);
    gpu.compile(&definition.ptx(include_str!("compute/saxpy.ptx")))
}

fn saxpy(gpu: &Gpu) -> Kernel {
    compile_saxpy(gpu).unwrap()
}

fn filled(gpu: &Gpu, memory: Memory, value: f32) -> Buffer {
    let buffer = gpu.allocate(256, memory).unwrap();
    buffer.write_blocking(0, &[value; 64]).unwrap();
    buffer
}

/// n = 64 and a = 1, as saxpy takes them.
const PLAIN: [u32; 2] = [64, 0x3f80_0000];

/// Whether a driver tells what the kernel takes, or it is read in the PTX.
fn definitions_that_do_not_fit_are_refused() {
    let gpu = Gpu::open_blocking(own_kernels()).unwrap();
    let definition = || KernelDefinition::new("saxpy").workgroup([64, 1, 1]).ptx(include_str!("compute/saxpy.ptx"));
    let both = [Access::Read, Access::ReadWrite];
    for (wrong, given) in [
        (definition().bindings([Access::Read]).params_bytes(8), "[8, 8]"),
        (definition().bindings([Access::ReadWrite; 3]).params_bytes(8), "[8, 8, 8, 8]"),
        (definition().bindings(both), "[8, 8]"),
        (definition().bindings(both).params_bytes(4), "[8, 8, 4]"),
        (definition().bindings(both).params_bytes(32), "[8, 8, 32]"),
        // What a WGSL entry point leaves out is no argument of its launches.
        (
            KernelDefinition::new("saxpy").ptx(include_str!("compute/saxpy.ptx")).entry("saxpy").wgsl(
                "@group(0) @binding(0) var<storage, read> x: array<f32>;
                 @group(0) @binding(1) var<storage, read_write> y: array<f32>;
                 @group(0) @binding(2) var<uniform> params: vec2f;
                 @compute @workgroup_size(64) fn saxpy() { y[0] = params.x; }",
            ),
            "[8, 8]",
        ),
    ] {
        let error = gpu.compile(&wrong).unwrap_err();
        let said = error.to_string();
        assert_eq!(error.code(), "invalid_option", "{said}");
        assert!(said.contains("argument of the kernel saxpy") && said.contains(&format!("is {given} by")), "{said}");
        assert!(said.contains("its PTX takes [8, 8, 8]"), "{said}");
    }
    // Sizes in WGSL are rounded up.
    gpu.compile(&definition().bindings(both).params_bytes(16)).unwrap();
    saxpy(&gpu);
}

#[test]
fn a_kernel_is_given_what_its_ptx_takes() {
    with_driver("a_kernel_is_given_what_its_ptx_takes", stand_in(), &[], || {
        definitions_that_do_not_fit_are_refused();
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let unreadable = ".entry strange(.param .texref t) { }";
        let definition = KernelDefinition::new("strange").bindings([Access::Read]).workgroup([1, 1, 1]).ptx(unreadable);
        let error = gpu.compile(&definition).unwrap_err();
        assert!(error.code() == "unavailable" && error.to_string().contains("update NVIDIA's driver to 550"), "{error}");
    });
}

#[test]
fn a_kernel_is_given_what_the_driver_says_that_it_takes() {
    with_driver("a_kernel_is_given_what_the_driver_says_that_it_takes", newer_stand_in(), &[], definitions_that_do_not_fit_are_refused);
}

/// The stand-in does nothing of a stream that nobody waits for: what is missing between two streams shows.
#[test]
fn streams_that_share_memory_wait_for_each_other() {
    with_driver("streams_that_share_memory_wait_for_each_other", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let kernel = saxpy(&gpu);
        for memory in [Memory::Device, Memory::HostVisible] {
            let (a, b, c) = (filled(&gpu, memory, 1.0), filled(&gpu, memory, 10.0), filled(&gpu, memory, 100.0));
            let streams: Vec<_> = (0..3).map(|_| gpu.stream().unwrap()).collect();
            // Written in one, read in the next: b = 11, c = 111.
            streams[0].launch(&kernel, [1; 3], [&a, &b], &PLAIN).unwrap();
            streams[1].launch(&kernel, [1; 3], [&b, &c], &PLAIN).unwrap();
            // Read in one, then written in another: c has got 11, not what comes now.
            streams[2].write(&b, 0, &[5.0f32; 64]).unwrap();
            // Read in two, then written: neither sees it.
            let reads: Vec<_> = streams[..2].iter().map(|stream| stream.read::<f32>(&c, 0, 64).unwrap()).collect();
            streams[2].copy(&a, 0, &c, 0, 256).unwrap();
            for read in reads {
                assert_eq!(read.finish_blocking().unwrap(), [111.0; 64]);
            }
            assert_eq!((b.read_blocking::<f32>(0, 64).unwrap(), c.read_blocking::<f32>(0, 64).unwrap()), (vec![5.0; 64], vec![1.0; 64]));
        }
    });
}

/// A stream goes when it is dropped, even if a kernel and a buffer that it used stay.
#[test]
fn streams_come_and_go_while_what_they_used_stays() {
    with_driver("streams_come_and_go_while_what_they_used_stays", stand_in(), &[("STAND_IN_STREAMS", "8")], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let (kernel, read, written) = (saxpy(&gpu), filled(&gpu, Memory::Device, 1.0), filled(&gpu, Memory::Device, 0.0));
        for _ in 0..100 {
            let stream = gpu.stream().unwrap();
            stream.launch(&kernel, [1; 3], [&read, &written], &PLAIN).unwrap();
            stream.synchronize_blocking().unwrap();
        }
        assert_eq!(written.read_blocking::<f32>(0, 64).unwrap(), [100.0; 64]);
    });
}

#[test]
fn without_nvrtc_a_kernel_in_cuda_says_what_would_help() {
    with_driver("without_nvrtc_a_kernel_in_cuda_says_what_would_help", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let definition = KernelDefinition::new("saxpy").bindings([Access::Read, Access::ReadWrite]).workgroup([64, 1, 1]).params_bytes(8);
        match gpu.compile(&definition.clone().cuda(include_str!("compute/saxpy.cu"))) {
            // Where it is installed it compiles, also for the stand-in.
            Ok(kernel) => assert_eq!(kernel.language(), Language::Cuda),
            Err(error) => {
                assert_eq!(error.code(), "unavailable");
                let said = error.to_string();
                assert!(said.contains("NVRTC is missing: libnvrtc.so") && said.contains("give the kernel as PTX"), "{said}");
            }
        }
        let refused = |definition| gpu.compile(&definition).unwrap_err();
        let error = refused(definition.clone().ptx("nonsense"));
        assert!(error.code() == "compile" && error.to_string().contains("from PTX"), "{error}");
        let error = refused(definition.entry("other").ptx(include_str!("compute/saxpy.ptx")));
        assert!(error.code() == "compile" && error.to_string().contains("there is no entry point other"), "{error}");
    });
}

#[test]
fn what_is_dropped_is_kept_until_streams_are_past_it() {
    with_driver("what_is_dropped_is_kept_until_streams_are_past_it", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let (stream, out) = (gpu.stream().unwrap(), filled(&gpu, Memory::Device, 0.0));
        for _ in 0..4 {
            let kernel = saxpy(&gpu);
            let short_lived = filled(&gpu, Memory::Device, 3.0);
            stream.launch(&kernel, [1; 3], [&short_lived, &out], &PLAIN).unwrap();
            drop(stream.read::<f32>(&short_lived, 0, 64).unwrap());
            drop(short_lived);
            // From the same pool, in the device's own stream and in another.
            let (values, op) = (vec![9.0; 64], Matmul::new(8, 8, 8));
            assert_eq!(gpu.matmul_blocking(&values, &values, &op).unwrap(), [648.0; 64]);
            let other = gpu.stream().unwrap();
            other.write(&gpu.allocate(256, Memory::Device).unwrap(), 0, &[7.0f32; 64]).unwrap();
            gpu.trim().unwrap();
        }
        assert_eq!(stream.read::<f32>(&out, 0, 64).unwrap().finish_blocking().unwrap(), [12.0; 64]);
        drop((stream, out));
        let stats = gpu.memory().unwrap();
        assert_eq!((stats.used_bytes, stats.buffers), (0, 0));
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

#[test]
fn after_a_kernels_fault_everything_of_the_device_says_so() {
    // The first launch is of the product that a device is tried with.
    with_driver("after_a_kernels_fault_everything_of_the_device_says_so", stand_in(), &[("STAND_IN_FAULT_AT", "3")], || {
        let gpu = Gpu::open_blocking(Options { vendor_libraries: false, ..Options::default() }).unwrap();
        let (x, y) = (filled(&gpu, Memory::Device, 1.0), filled(&gpu, Memory::Device, 2.0));
        let (kernel, stream) = (saxpy(&gpu), gpu.stream().unwrap());
        stream.launch(&kernel, [1; 3], [&x, &y], &PLAIN).unwrap();
        assert_eq!(y.read_blocking::<f32>(0, 64).unwrap(), [3.0; 64]);
        stream.launch(&kernel, [1; 3], [&x, &y], &PLAIN).unwrap();
        assert_eq!(stream.synchronize_blocking().unwrap_err().code(), "device_lost");
        let codes = [
            stream.launch(&kernel, [1; 3], [&x, &y], &PLAIN).err(),
            stream.write(&x, 0, &[1.0f32]).err(),
            stream.record().err(),
            y.read_blocking::<f32>(0, 64).err(),
        ];
        assert!(codes.iter().all(|error| error.as_ref().is_some_and(|error| error.code() == "device_lost")), "{codes:?}");
        // What is made now is of the backend that took over.
        let fresh = gpu.allocate(256, Memory::Device).unwrap();
        assert!(fresh.backend() != BackendId::Cuda);
        assert_eq!(gpu.stream().unwrap().copy(&x, 0, &fresh, 0, 4).unwrap_err().code(), "device_lost");
    });
}
