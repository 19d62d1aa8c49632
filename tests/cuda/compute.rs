//! Kernels of one's own, buffers and streams on the stand-in.

use lapidary::compute::{Access, Buffer, Kernel, KernelDefinition, Language, Memory};

use super::*;

/// n = 64 and a = 1, as saxpy takes them.
const PLAIN: [u32; 2] = [64, 0x3f80_0000];

fn compile_saxpy(gpu: &Gpu) -> Result<Kernel> {
    let definition = KernelDefinition::new("saxpy").bindings([Access::Read, Access::ReadWrite]).workgroup([64, 1, 1]).params_bytes(8);
    gpu.compile(&definition.ptx(include_str!("../compute/saxpy.ptx")))
}

fn saxpy(gpu: &Gpu) -> Kernel {
    compile_saxpy(gpu).unwrap()
}

fn filled(gpu: &Gpu, memory: Memory, value: f32) -> Buffer {
    let buffer = gpu.allocate(256, memory).unwrap();
    buffer.write_blocking(0, &[value; 64]).unwrap();
    buffer
}

/// Whether a driver tells what the kernel takes, or it is read in the PTX.
fn definitions_that_do_not_fit_are_refused() {
    let gpu = Gpu::open_blocking(own_kernels()).unwrap();
    let definition = || KernelDefinition::new("saxpy").workgroup([64, 1, 1]).ptx(include_str!("../compute/saxpy.ptx"));
    let both = [Access::Read, Access::ReadWrite];
    for (wrong, given) in [
        (definition().bindings([Access::Read]).params_bytes(8), "[8, 8]"),
        (definition().bindings([Access::ReadWrite; 3]).params_bytes(8), "[8, 8, 8, 8]"),
        (definition().bindings(both), "[8, 8]"),
        (definition().bindings(both).params_bytes(4), "[8, 8, 4]"),
        (definition().bindings(both).params_bytes(32), "[8, 8, 32]"),
        // What a WGSL entry point leaves out is no argument of its launches.
        (
            KernelDefinition::new("saxpy").ptx(include_str!("../compute/saxpy.ptx")).entry("saxpy").wgsl(
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
    with_driver("compute::a_kernel_is_given_what_its_ptx_takes", stand_in(), &[], || {
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
    with_driver(
        "compute::a_kernel_is_given_what_the_driver_says_that_it_takes",
        newer_stand_in(),
        &[],
        definitions_that_do_not_fit_are_refused,
    );
}

/// The stand-in does nothing of a stream that nobody waits for: what is missing between two streams shows.
#[test]
fn streams_that_share_memory_wait_for_each_other() {
    with_driver("compute::streams_that_share_memory_wait_for_each_other", stand_in(), &[], || {
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
    with_driver("compute::streams_come_and_go_while_what_they_used_stays", stand_in(), &[("STAND_IN_STREAMS", "8")], || {
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
    with_driver("compute::without_nvrtc_a_kernel_in_cuda_says_what_would_help", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let definition = KernelDefinition::new("saxpy").bindings([Access::Read, Access::ReadWrite]).workgroup([64, 1, 1]).params_bytes(8);
        match gpu.compile(&definition.clone().cuda(include_str!("../compute/saxpy.cu"))) {
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
        let error = refused(definition.entry("other").ptx(include_str!("../compute/saxpy.ptx")));
        assert!(error.code() == "compile" && error.to_string().contains("there is no entry point other"), "{error}");
    });
}

#[test]
fn what_is_dropped_is_kept_until_streams_are_past_it() {
    with_driver("compute::what_is_dropped_is_kept_until_streams_are_past_it", stand_in(), &[], || {
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
fn after_a_kernels_fault_everything_of_the_device_says_so() {
    // The first launch is of the product that a device is tried with.
    with_driver("compute::after_a_kernels_fault_everything_of_the_device_says_so", stand_in(), &[("STAND_IN_FAULT_AT", "3")], || {
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

#[test]
fn a_callers_fault_is_no_fault_of_the_crate() {
    with_driver("compute::a_callers_fault_is_no_fault_of_the_crate", stand_in(), &[], || {
        let gpu = Gpu::open_blocking(own_kernels()).unwrap();
        let add_up = KernelDefinition::new("add_up").bindings([Access::ReadWrite; 2]).workgroup([64, 1, 1]);
        let add_up = add_up.ptx(".visible .entry add_up(.param .u64 values, .param .u64 total) { }");
        // The source declares 512 bytes, and a block has at most 232,448.
        let error = gpu.compile(&add_up.clone().shared_bytes(232_000)).unwrap_err();
        let what = "the shared memory of a block of this kernel in bytes";
        assert_eq!(*error, Error::LimitExceeded { what, requested: 232_512, max: 232_448 });
        gpu.compile(&add_up.shared_bytes(231_936)).unwrap();
        let definition = KernelDefinition::new("saxpy").bindings([Access::Read, Access::ReadWrite]).workgroup([512, 1, 1]).params_bytes(8);
        let kernel = gpu.compile(&definition.ptx(include_str!("../compute/saxpy.ptx"))).unwrap();
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

#[test]
fn what_the_driver_needs_itself_is_made_room_for() {
    let settings = [("STAND_IN_MEMORY_BYTES", "100000000"), ("STAND_IN_OWN_BYTES", "50000000")];
    with_driver("compute::what_the_driver_needs_itself_is_made_room_for", stand_in(), &settings, || {
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
