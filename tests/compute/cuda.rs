//! What only CUDA has to be asked: definitions beside compiled kernels, what a block can have, and the end of a device.

use lapidary::compute::{Access, KernelDefinition, Memory};
use lapidary::{BackendId, Gpu, Options};

use super::devices::all;
use super::{backend, buffer, said};

/// CUDA where it is there; said by name, or a failure if it is required, where it is not.
fn cuda() -> Option<Gpu> {
    let gpu = all().into_iter().find(|gpu| backend(gpu) == BackendId::Cuda);
    if gpu.is_none() {
        eprintln!("skipped: there is no CUDA");
    }
    gpu
}

/// The driver reads as many arguments as a kernel declares, whatever it is given.
#[test]
fn a_definition_fits_its_kernel() {
    let Some(gpu) = cuda() else { return };
    let source = "extern \"C\" __global__ void fill(float* x, const float* y, uint3 n) { x[0] = y[0] + n.x + n.y + n.z; }";
    let definition = || KernelDefinition::new("fill").workgroup([1, 1, 1]).cuda(source);
    let both = [Access::ReadWrite, Access::Read];
    for (wrong, given) in [
        (definition().bindings([Access::ReadWrite]).params_bytes(12), "[8, 12]"),
        (definition().bindings([Access::ReadWrite; 3]).params_bytes(12), "[8, 8, 8, 12]"),
        (definition().bindings(both), "[8, 8]"),
        (definition().bindings(both).params_bytes(8), "[8, 8, 8]"),
    ] {
        said(gpu.compile(&wrong), "invalid_option", &["argument of the kernel fill", given, "takes [8, 8, 12]"]);
    }
    let (x, y, stream) = (buffer(&gpu, &[0.0; 4]), buffer(&gpu, &[4.0; 4]), gpu.stream().unwrap());
    let kernel = gpu.compile(&definition().bindings(both).params_bytes(12)).unwrap();
    stream.launch(&kernel, [1; 3], [&x, &y], &[1u32, 2, 3]).unwrap();
    assert_eq!(x.read_blocking::<f32>(0, 1).unwrap(), [10.0]);
    // As WGSL counts a vec3u.
    let kernel = gpu.compile(&definition().bindings(both).params_bytes(16)).unwrap();
    stream.launch(&kernel, [1; 3], [&x, &y], &[1u32, 2, 3, 0]).unwrap();
    assert_eq!(x.read_blocking::<f32>(0, 1).unwrap(), [10.0]);
}

#[test]
fn what_a_block_cannot_have_is_told_with_its_numbers() {
    let Some(gpu) = cuda() else { return };
    let max = gpu.info().unwrap().capabilities.max_workgroup_bytes;
    let source = "extern \"C\" __global__ void shares(float* x) {
        // Or the compiler does without.
        __shared__ volatile float own[10000];
        extern __shared__ volatile float more[];
        own[9999] = 1.0f;
        more[4999] = 2.0f;
        x[0] = own[9999] + more[4999];
    }";
    let definition = KernelDefinition::new("shares").bindings([Access::ReadWrite]).workgroup([1, 1, 1]).cuda(source);
    let error = gpu.compile(&definition.clone().shared_bytes(max - 39_996));
    said(error, "limit_exceeded", &["shared memory of a block", &(max + 4).to_string(), &max.to_string()]);
    // More than is usual, though neither part is.
    let (x, stream) = (buffer(&gpu, &[0.0; 4]), gpu.stream().unwrap());
    if max >= 60_000 {
        let kernel = gpu.compile(&definition.shared_bytes(20_000)).unwrap();
        stream.launch(&kernel, [1; 3], [&x], &()).unwrap();
        assert_eq!(x.read_blocking::<f32>(0, 1).unwrap(), [3.0]);
    }
    // Compiled for blocks of 32 threads.
    let ptx = ".version 8.0\n.target sm_52\n.address_size 64\n.visible .entry fixed(.param .u64 x) .reqntid 32, 1, 1 { ret; }";
    let definition = KernelDefinition::new("fixed").bindings([Access::ReadWrite]).ptx(ptx);
    let kernel = gpu.compile(&definition.clone().workgroup([16, 1, 1])).unwrap();
    let parts = ["the launch of the kernel fixed", "[2, 1, 1] blocks of [16, 1, 1] threads", "cuLaunchKernel"];
    said(stream.launch(&kernel, [2, 1, 1], [&x], &()), "invalid_argument", &parts);
    stream.launch(&gpu.compile(&definition.workgroup([32, 1, 1])).unwrap(), [2, 1, 1], [&x], &()).unwrap();
    stream.synchronize_blocking().unwrap();
}

/// By itself, since CUDA is off for the rest of the process afterwards.
#[test]
#[ignore = "ends CUDA for its process"]
fn a_kernel_that_strays_ends_the_device_and_nothing_else() {
    let Some(gpu) = cuda() else { return };
    let stray = KernelDefinition::new("stray").bindings([Access::ReadWrite]).workgroup([1, 1, 1]);
    let stray = gpu.compile(&stray.cuda("extern \"C\" __global__ void stray(float* x) { x[1ull << 44] = 1.0f; }")).unwrap();
    let (x, stream) = (buffer(&gpu, &[1.0; 64]), gpu.stream().unwrap());
    stream.launch(&stray, [1; 3], [&x], &()).unwrap();
    let error = stream.synchronize_blocking().unwrap_err();
    assert!(error.code() == "device_lost" && error.to_string().contains("ILLEGAL_ADDRESS"), "{error}");
    for error in [stream.record().err(), x.read_blocking::<f32>(0, 64).err()] {
        assert_eq!(error.map(|error| error.code()), Some("device_lost"));
    }
    let error = gpu.allocate(4, Memory::Device).unwrap_err();
    assert!(error.to_string().contains("start the program again"), "{error}");
    drop((stray, x, stream, gpu));
    let other = Gpu::open_blocking(Options::default()).unwrap();
    assert!(backend(&other) != BackendId::Cuda);
    assert_eq!(buffer(&other, &[3.0; 4]).read_blocking::<f32>(0, 4).unwrap(), [3.0; 4]);
}
