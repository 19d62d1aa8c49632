//! What a profile tells of operations, on every backend of this machine.
#![cfg(not(target_arch = "wasm32"))]

mod devices;

use devices::all_with;
use lapidary::compute::{KernelDefinition, Memory};
use lapidary::{BackendId, DType, Expr, Gpu, Matmul, Options, Padding, random};

/// A handle that profiles on each backend that is there.
fn handles() -> Vec<Gpu> {
    all_with(&Options { profile: true, ..Options::default() })
}

#[test]
fn every_part_of_an_operation_has_its_time_and_its_bytes() {
    for gpu in handles() {
        let info = gpu.info().unwrap();
        let backend = info.backend;
        let (m, k, n) = (128, 64, 96);
        let (a, b) = (random::matrix(m * k, 1), random::matrix(k * n, 2));
        let op = Matmul::new(m as u64, k as u64, n as u64);
        let expected = gpu.matmul_blocking(&a, &b, &op).unwrap();
        let tensor = gpu.tensor_blocking(&a, m as u64, k as u64).unwrap();
        let kept = gpu.matmul_tensor_blocking(&tensor, &b, &op).unwrap();
        assert_eq!(kept.to_vec_blocking().unwrap(), expected);
        let profile = gpu.profile();
        let names: Vec<_> = profile.operations.iter().map(|operation| (operation.name, operation.size.as_str())).collect();
        assert_eq!(names, [("matmul", "128x64x96"), ("tensor", "128x64"), ("matmul", "128x64x96"), ("to_host", "128x96")], "{backend}");
        let matrix = |rows: usize, columns: usize| (rows * columns * 4) as u64;
        let up = |bytes| if backend.is_gpu() { bytes } else { 0 };
        let bytes = [
            [up(matrix(m, k) + matrix(k, n)), matrix(m, k) + matrix(k, n) + matrix(m, n), matrix(m, n)],
            [matrix(m, k), 0, 0],
            [up(matrix(k, n)), matrix(m, k) + matrix(k, n) + matrix(m, n), 0],
            [0, 0, matrix(m, n)],
        ];
        let has_clock = info.features.contains(&"timestamp-query");
        let times_copies = has_clock && backend != BackendId::WebGpu;
        for (operation, bytes) in profile.operations.iter().zip(bytes) {
            let parts = [operation.upload, operation.compute, operation.download];
            assert_eq!(parts.map(|part| part.bytes), bytes, "{backend} {operation:?}");
            assert!(parts.iter().all(|part| part.ms >= 0.0 && part.ms.is_finite()) && operation.total_ms > 0.0, "{operation:?}");
            let [upload, compute, download] = parts.map(|part| part.device_clock);
            let computes = operation.compute.bytes > 0;
            assert_eq!(compute, computes && has_clock, "{backend} {operation:?}");
            assert_eq!(upload, operation.upload.bytes > 0 && times_copies, "{backend} {operation:?}");
            assert_eq!(download, operation.download.bytes > 0 && times_copies, "{backend} {operation:?}");
            assert_eq!((operation.backend, operation.kernel.is_empty()), (backend, !computes));
        }
        let starts: Vec<_> = profile.operations.iter().map(|operation| operation.start_ms).collect();
        assert!(starts.is_sorted(), "{starts:?}");
    }
}

/// What callers put into streams is recorded too, by the clock that their events have.
#[test]
fn a_stream_is_recorded_step_by_step() {
    let twofold = KernelDefinition::new("twofold")
        .wgsl(
            "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
             @compute @workgroup_size(64) fn twofold(@builtin(global_invocation_id) id: vec3u) {
                 if id.x < arrayLength(&x) { x[id.x] *= 2.0; }
             }",
        )
        .cuda("extern \"C\" __global__ void twofold(float *x) { x[blockIdx.x * 64 + threadIdx.x] *= 2.0f; }")
        .cpu(|_, [x]| x.write::<f32>().iter_mut().for_each(|x| *x *= 2.0));
    for gpu in handles() {
        let info = gpu.info().unwrap();
        let kernel = gpu.compile(&twofold).unwrap();
        let [x, y] = [(); 2].map(|()| gpu.allocate(128 * 4, Memory::Device).unwrap());
        let stream = gpu.stream().unwrap();
        let run = || {
            stream.write(&x, 0, &[1.5f32; 128]).unwrap();
            stream.launch(&kernel, [2, 1, 1], [&x], &()).unwrap();
            stream.copy(&x, 0, &y, 0, 128 * 4).unwrap();
            assert_eq!(stream.read::<f32>(&y, 0, 100).unwrap().finish_blocking().unwrap(), [3.0; 100], "{}", info.backend);
        };
        run();
        let operations = gpu.profile().operations;
        let about: Vec<_> =
            operations.iter().map(|operation| (operation.name, operation.size.as_str(), operation.kernel.as_str())).collect();
        assert_eq!(about, [("write", "512 B", ""), ("launch", "2x1x1", "twofold"), ("copy", "512 B", "copy"), ("read", "400 B", "")]);
        for (operation, bytes) in operations.iter().zip([[512, 0, 0], [0, 512, 0], [0, 1024, 0], [0, 0, 400]]) {
            let parts = [operation.upload, operation.compute, operation.download];
            assert_eq!(parts.map(|part| part.bytes), bytes, "{operation:?}");
            for part in parts.iter().filter(|part| part.bytes > 0) {
                assert_eq!(part.device_clock, info.capabilities.device_clock, "{operation:?}");
                assert!(part.ms >= 0.0 && part.ms.is_finite() && operation.total_ms > 0.0, "{operation:?}");
            }
        }
        gpu.set_profiling(false);
        run();
        assert_eq!(gpu.profile().operations.len(), 4, "{}", info.backend);
    }
}

#[test]
fn profiling_is_off_until_it_is_turned_on() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    let product = || gpu.matmul_blocking(&[2.0], &[3.0], &Matmul::new(1, 1, 1)).unwrap();
    product();
    assert_eq!(gpu.profile().operations.len(), 0);
    gpu.set_profiling(true);
    product();
    product();
    gpu.set_profiling(false);
    product();
    assert_eq!(gpu.clone().profile().operations.len(), 2, "clones share it");
    gpu.clear_profile();
    assert_eq!(gpu.profile().operations.len(), 0);
}

/// A result without elements needs no device, but counts as an operation.
#[test]
fn an_empty_product_moves_nothing() {
    let gpu = Gpu::open_blocking(Options { profile: true, ..Options::only(BackendId::Simd) }).unwrap();
    gpu.matmul_blocking(&[0.0; 0], &[1.0; 6], &Matmul::new(0, 2, 3)).unwrap();
    let operations = gpu.profile().operations;
    assert_eq!((operations.len(), operations[0].compute.bytes, operations[0].download.bytes), (1, 0, 0));
}

/// A fused chain reads each input once and writes its result once, whatever is between them.
#[test]
fn a_chain_moves_its_inputs_and_its_result_once() {
    for gpu in handles() {
        let info = gpu.info().unwrap();
        let backend = info.backend;
        let tensor = |rows: u64, columns: u64| {
            Expr::from(gpu.tensor_blocking(&random::matrix((rows * columns) as usize, rows), rows, columns).unwrap())
        };
        let (a, b, row) = (tensor(64, 96), tensor(96, 64), tensor(1, 96));
        gpu.clear_profile();
        let chain = a.mul(0.5).add(&row).add(b.transpose(None)).relu().mul(&a).tanh().cast(DType::F16);
        let slice = a.slice(0, 0, 64, 2).pad(&[[3, 0], [0, 0]], Padding::Constant(0.0));
        let results = [&chain, &slice, &a.slice(0, 0, 0, 1)].map(|expr| gpu.evaluate_blocking(expr).unwrap());
        let profile = gpu.profile();
        let about = profile.operations.iter().map(|operation| (operation.name, operation.size.as_str(), operation.compute.bytes));
        let inputs = 2 * 64 * 96 * 4 + 96 * 4;
        let expected = [("map", "64x96", inputs + 64 * 96 * 2), ("map", "35x96", (32 + 35) * 96 * 4), ("map", "0", 0)];
        assert_eq!(about.collect::<Vec<_>>(), expected, "{backend}");
        let has_clock = info.features.contains(&"timestamp-query");
        for operation in &profile.operations {
            assert_eq!((operation.upload.bytes, operation.download.bytes), (0, 0), "{backend}");
            let computes = operation.compute.bytes > 0;
            assert_eq!(operation.compute.device_clock, computes && has_clock, "{backend} {operation:?}");
            assert_eq!(operation.kernel.starts_with("map"), computes, "{backend} {operation:?}");
            assert!(operation.compute.ms >= 0.0 && operation.compute.ms.is_finite() && operation.total_ms > 0.0, "{operation:?}");
        }
        assert_eq!(results[2].shape(), [0, 96]);
    }
}
