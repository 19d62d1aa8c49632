//! What is refused, and how that is told.

use lapidary::Options;

use super::*;

#[test]
fn wrong_launches_are_told_with_their_numbers() {
    for gpu in all() {
        let kernel = gpu.compile(&saxpy()).unwrap();
        let (x, y) = (buffer(&gpu, &[1.0; 1000]), buffer(&gpu, &[1.0; 1000]));
        let stream = gpu.stream().unwrap();
        let one = [1, 1, 1];
        let whole = |buffer| Argument::from(buffer);
        let refused = |arguments: &[Argument<'_>], grid| Err::<(), _>(refused(&stream, &kernel, arguments, grid));
        said(refused(&[whole(&x)], one), "invalid_argument", &["number of buffers for the kernel saxpy is 1", "has 2"]);
        said(refused(&[whole(&y), whole(&y)], one), "invalid_argument", &["of the kernel saxpy is bound twice"]);
        said(refused(&[whole(&x), y.slice(4..400)], one), "invalid_argument", &["from byte 4", "multiple of"]);
        said(refused(&[whole(&x), y.slice(0..4004)], one), "invalid_argument", &["4004 bytes from byte 0", "4000 bytes"]);
        said(refused(&[whole(&x), y.slice(0..0)], one), "invalid_argument", &["bound to 0 bytes", "at least 4"]);
        said(refused(&[whole(&x), y.slice(u64::MAX - 3..u64::MAX)], one), "invalid_argument", &["4000 bytes"]);
        said(stream.launch(&kernel, one, [&x, &y], &1.0f32), "invalid_argument", &["parameters", "is 4", "take 8"]);
        let max = gpu.info().unwrap().capabilities.max_grid;
        if max[1] < u32::MAX {
            said(refused(&[whole(&x), whole(&y)], [1, max[1] + 1, 1]), "limit_exceeded", &[&(max[1] + 1).to_string(), &max[1].to_string()]);
        }
        if gpu.info().unwrap().capabilities.memories.contains(&Memory::Pinned) {
            let pinned = gpu.allocate(4000, Memory::Pinned).unwrap();
            said(refused(&[whole(&x), whole(&pinned)], one), "invalid_argument", &["pinned"]);
        }
        let tensor = gpu.tensor_blocking(&[1.0f32; 64], 8, 8).unwrap();
        let other_shape = tensor.reshape(&[64]).unwrap();
        let error = stream.launch(&kernel, one, [&tensor, &other_shape], &Saxpy { n: 1, a: 1.0 });
        said(error, "invalid_argument", &["of the kernel saxpy is bound twice"]);
        let none: &[f32] = &[];
        let empty = gpu.tensor_blocking(none, 0, 8).unwrap();
        let error = stream.launch(&kernel, one, [Argument::from(&empty), (&y).into()], &Saxpy { n: 1, a: 1.0 });
        said(error, "invalid_argument", &["bound to 0 bytes"]);
        // Nothing of all that has run.
        stream.launch(&kernel, [0, 1, 1], [&x, &y], &Saxpy { n: 1000, a: 1.0 }).unwrap();
        assert_eq!(y.read_blocking::<f32>(0, 1000).unwrap(), [1.0; 1000]);
    }
}

#[test]
fn wrong_memory_is_told_with_its_numbers() {
    for gpu in all() {
        let memory = |bytes| gpu.allocate(bytes, Memory::Device);
        said(memory(0), "invalid_argument", &["is 0", "multiple of 4"]);
        said(memory(6), "invalid_argument", &["is 6"]);
        let error = memory(1 << 60).unwrap_err();
        assert!(["limit_exceeded", "out_of_memory"].contains(&error.code()) && error.to_string().contains("11529215046068469"), "{error}");
        let (x, y) = (memory(64).unwrap(), memory(64).unwrap());
        let stream = gpu.stream().unwrap();
        said(stream.write(&x, 60, &[1.0f32; 2]), "invalid_argument", &["8 bytes from byte 60 on", "64 bytes"]);
        said(stream.write(&x, 0, &[1u8; 3]), "invalid_argument", &["3 bytes"]);
        said(stream.read::<f32>(&x, 2, 1), "invalid_argument", &["from byte 2 on"]);
        said(stream.read::<f64>(&x, 0, usize::MAX), "invalid_argument", &["64 bytes"]);
        said(stream.copy(&x, 0, &y, 32, 64), "invalid_argument", &["64 bytes from byte 32"]);
        said(stream.copy(&x, 0, &x, 32, 4), "invalid_argument", &["another buffer"]);
        stream.write::<f32>(&x, 64, &[]).unwrap();
        stream.copy(&x, 64, &y, 64, 0).unwrap();
        for memory in [Memory::Device, Memory::HostVisible, Memory::Pinned] {
            let is_there = gpu.info().unwrap().capabilities.memories.contains(&memory);
            let code = gpu.allocate(64, memory).err().map(|error| error.code());
            assert_eq!(code, (!is_there).then_some("unavailable"));
        }
    }
}

#[test]
fn what_is_of_another_device_is_refused() {
    let others = all();
    for gpu in &others {
        let stream = gpu.stream().unwrap();
        let (own, kernel) = (buffer(gpu, &[0.0; 64]), gpu.compile(&saxpy()).unwrap());
        // Another handle has a device of its own, also of the same backend.
        let second = Gpu::open_blocking(Options::only(backend(gpu))).unwrap();
        for other in others.iter().filter(|other| backend(other) != backend(gpu)).chain([&second]) {
            let (foreign, event) = (buffer(other, &[0.0; 64]), other.stream().unwrap().record().unwrap());
            let name = backend(other).name();
            said(
                stream.write(&foreign, 0, &[1.0f32]),
                "invalid_argument",
                &["a buffer is of another handle's device", name, backend(gpu).name()],
            );
            said(
                stream.launch(&kernel, [1; 3], [&own, &foreign], &Saxpy { n: 1, a: 1.0 }),
                "invalid_argument",
                &["another handle's device"],
            );
            said(stream.copy(&foreign, 0, &own, 0, 4), "invalid_argument", &["another handle's device"]);
            let tensor = other.tensor_blocking(&[0.0f32; 64], 8, 8).unwrap();
            let arguments = [Argument::from(&own), Argument::from(&tensor)];
            let parts = ["a tensor is of another handle's device", name, backend(gpu).name()];
            said(stream.launch(&kernel, [1; 3], arguments, &Saxpy { n: 1, a: 1.0 }), "invalid_argument", &parts);
            said(stream.wait(&event), "invalid_argument", &["an event is of another handle's device"]);
            let theirs = other.compile(&saxpy()).unwrap();
            said(stream.launch(&theirs, [1; 3], [&own, &own], &Saxpy { n: 1, a: 1.0 }), "invalid_argument", &["the kernel saxpy"]);
        }
    }
}

#[test]
fn what_does_not_compile_is_told_with_its_line() {
    for gpu in all() {
        let backend = backend(&gpu);
        if matches!(backend, BackendId::Vulkan | BackendId::WebGpu) {
            let compile = |source: &str| gpu.compile(&KernelDefinition::new("broken").wgsl(source));
            said(compile("\n\n@compute @workgroup_size(1) fn main() { let x = ; }"), "compile", &["broken", "WGSL", "wgsl:3:"]);
            said(compile("\n@compute @workgroup_size(1) fn main() -> u32 { return 1.5; }"), "compile", &["wgsl:2:"]);
            said(compile("fn f() {}"), "compile", &["no @compute function"]);
            let two = "@compute @workgroup_size(1) fn a() {} @compute @workgroup_size(1) fn b() {}";
            said(compile(two), "compile", &["several", "a, b"]);
            said(gpu.compile(&KernelDefinition::new("k").wgsl(two).entry("c")), "compile", &["no @compute function c", "a, b"]);
            let elsewhere = "@group(1) @binding(0) var<storage> x: array<u32>; @compute @workgroup_size(1) fn a() { _ = x[0]; }";
            said(compile(elsewhere), "compile", &["x is in group 1"]);
            for far in ["1000", "4294967295"] {
                let source =
                    format!("@group(0) @binding({far}) var<storage> x: array<u32>; @compute @workgroup_size(1) fn a() {{ _ = x[0]; }}");
                said(compile(&source), "compile", &["x is at binding", far, "0 to 999"]);
            }
            said(compile("override n: u32; @compute @workgroup_size(1) fn a() { _ = n; }"), "compile", &["const"]);
            let large = "@compute @workgroup_size(4096, 4096) fn a() {}";
            said(compile(large), "limit_exceeded", &["4096"]);
        }
        if backend == BackendId::Cuda {
            let declared = || KernelDefinition::new("broken").bindings([]).workgroup([1, 1, 1]);
            said(gpu.compile(&declared().cuda("\n\nextern \"C\" __global__ void broken() { int x = ; }")), "compile", &["broken", "(3)"]);
            said(gpu.compile(&declared().cuda("extern \"C\" __global__ void other() {}")), "compile", &["no entry point broken"]);
            said(gpu.compile(&declared().ptx(".version 8.0\n.target sm_52\n.address_size 64\nnonsense")), "compile", &["PTX", "line 4"]);
            said(gpu.compile(&KernelDefinition::new("k").cuda("")), "invalid_option", &["bindings", "not told"]);
            said(gpu.compile(&declared().workgroup([2048, 1, 1]).cuda("")), "limit_exceeded", &["2048", "1024"]);
        }
        let nothing = KernelDefinition::new("nothing");
        said(gpu.compile(&nothing), "invalid_option", &["the kernel nothing", "without a source"]);
        said(gpu.compile(&saxpy().cpu(|_, [_]| {})), "invalid_option", &["twin", "1", "2"]);
        if cfg!(not(any(feature = "vulkan", feature = "webgpu"))) {
            let wgsl = KernelDefinition::new("k").wgsl("").cpu(|_, []| {});
            said(gpu.compile(&wgsl), "invalid_option", &["bindings", "reads no WGSL"]);
            continue;
        }
        said(gpu.compile(&saxpy().workgroup([32, 1, 1])), "invalid_option", &["workgroup of the kernel saxpy", "[32, 1, 1]", "[64, 1, 1]"]);
        said(gpu.compile(&saxpy().bindings([Access::Read])), "invalid_option", &["bindings of the kernel saxpy"]);
        said(gpu.compile(&saxpy().params_bytes(12)), "invalid_option", &["12", "8"]);
    }
}
