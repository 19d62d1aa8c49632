//! Memory of a device on every backend of this machine: what one user leaves to the next, and what is left of it when something fails.
//!
//! `LAPIDARY_REQUIRE` as in `conformance.rs`.
#![cfg(not(target_arch = "wasm32"))]

mod devices;

use devices::{all, all_with};
use lapidary::compute::{Access, KernelDefinition, Memory};
use lapidary::{BackendId, Expr, Matmul, Options};

/// A product is still to be computed when its result is dropped, and its memory serves again.
#[test]
fn what_was_let_go_is_not_written_to_under_the_next_owner() {
    const SIDE: u64 = 300;
    for gpu in all() {
        let one = gpu.tensor_blocking(&vec![1.0f32; (SIDE * SIDE) as usize], SIDE, SIDE).unwrap();
        let product = || gpu.matmul_tensor_blocking(&one, &one, &Matmul::new(SIDE, SIDE, SIDE)).unwrap();
        product().to_vec_blocking().unwrap();
        for _ in 0..4 {
            drop(product());
            let buffer = gpu.allocate(SIDE * SIDE * 4, Memory::Device).unwrap();
            buffer.write_blocking(0, &[7.0f32; (SIDE * SIDE) as usize]).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(10));
            let values = buffer.read_blocking::<f32>(0, (SIDE * SIDE) as usize).unwrap();
            assert_eq!(values.iter().position(|value| *value != 7.0), None, "{:?}", buffer.backend());
        }
    }
}

/// A size that an underflow made is not rounded up to nothing.
#[test]
fn sizes_near_the_end_of_all_numbers_are_refused() {
    for gpu in all() {
        for memory in gpu.info().unwrap().capabilities.memories {
            for bytes in [u64::MAX - 3, u64::MAX - 15, 1 << 63] {
                let error = gpu.allocate(bytes, *memory).unwrap_err();
                assert!(["limit_exceeded", "out_of_memory"].contains(&error.code()), "{error}");
            }
        }
    }
}

/// What a twin had written before it panicked stays, and others write on.
#[test]
fn a_twin_that_panics_leaves_its_memory_usable() {
    for gpu in all() {
        let buffer = gpu.allocate(64, Memory::Device).unwrap();
        buffer.write_blocking(0, &[1.0f32; 16]).unwrap();
        let definition = KernelDefinition::new("halve").bindings([Access::ReadWrite]).params_bytes(4);
        let kernel = gpu
            .compile(&definition.cpu(|run, [x]| {
                assert!(run.params::<u32>() == 0, "told to panic");
                x.write::<f32>().iter_mut().for_each(|x| *x /= 2.0);
            }))
            .unwrap();
        let launch = |panics: u32| gpu.stream().and_then(|stream| stream.launch(&kernel, [1; 3], [&buffer], &panics));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| launch(1)));
        assert!(caught.is_err() || caught.is_ok_and(|launched| launched.is_err()), "the panic is seen");
        launch(0).unwrap();
        assert_eq!(buffer.read_blocking::<f32>(0, 2).unwrap(), [0.5; 2], "{:?}", buffer.backend());
    }
}

/// Numbers of bindings are an entry point's own.
#[test]
fn entry_points_may_use_the_same_numbers() {
    const SOURCE: &str = "
        @group(0) @binding(0) var<uniform> scale: f32;
        @group(0) @binding(1) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(16) fn first(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= scale; }
        @group(0) @binding(0) var<storage, read_write> y: array<f32>;
        @compute @workgroup_size(16) fn second(@builtin(global_invocation_id) id: vec3u) { y[id.x] += 1.0; }";
    for gpu in all().into_iter().filter(|gpu| matches!(gpu.info().unwrap().backend, BackendId::Vulkan | BackendId::WebGpu)) {
        let buffer = gpu.allocate(64, Memory::Device).unwrap();
        buffer.write_blocking(0, &[3.0f32; 16]).unwrap();
        let stream = gpu.stream().unwrap();
        let kernel = |entry: &str| gpu.compile(&KernelDefinition::new(entry).wgsl(SOURCE).entry(entry)).unwrap();
        stream.launch(&kernel("first"), [1; 3], [&buffer], &2.0f32).unwrap();
        assert_eq!(buffer.read_blocking::<f32>(0, 16).unwrap(), [6.0; 16], "{:?}", buffer.backend());
        stream.launch(&kernel("second"), [1; 3], [&buffer], &()).unwrap();
        assert_eq!(buffer.read_blocking::<f32>(0, 16).unwrap(), [7.0; 16], "{:?}", buffer.backend());
    }
}

/// What the only entry point leaves out does not count, whatever its number and its group.
#[test]
fn what_an_entry_point_leaves_out_may_have_its_numbers() {
    const SOURCE: &str = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @group(0) @binding(0) var<uniform> other: vec4f;
        @group(1) @binding(0) var<uniform> another: f32;
        @compute @workgroup_size(16) fn first(@builtin(global_invocation_id) id: vec3u) { x[id.x] += 1.0; }";
    for gpu in all().into_iter().filter(|gpu| matches!(gpu.info().unwrap().backend, BackendId::Vulkan | BackendId::WebGpu)) {
        let buffer = gpu.allocate(64, Memory::Device).unwrap();
        buffer.write_blocking(0, &[3.0f32; 16]).unwrap();
        let kernel = gpu.compile(&KernelDefinition::new("first").wgsl(SOURCE)).unwrap();
        gpu.stream().unwrap().launch(&kernel, [1; 3], [&buffer], &()).unwrap();
        assert_eq!(buffer.read_blocking::<f32>(0, 16).unwrap(), [4.0; 16], "{:?}", buffer.backend());
    }
}

/// What is kept is no reason to make each result's buffer anew: making one takes longer than most operations.
#[test]
fn results_serve_again_beside_tensors_that_are_more_than_the_pool_may_keep() {
    const ELEMENTS: u64 = 1 << 18;
    for gpu in all_with(&Options { pool_bytes: 8 << 20, ..Options::default() }) {
        let kept = [0; 10].map(|_| gpu.tensor_blocking(&vec![1.0f32; ELEMENTS as usize], 1, ELEMENTS).unwrap());
        let step = || {
            let results: Vec<_> = kept[..5].iter().map(|kept| gpu.evaluate_blocking(&(Expr::from(kept.clone()) + 1.0)).unwrap()).collect();
            let sum = results.iter().cloned().map(Expr::from).reduce(|sum, result| sum + result).unwrap().sum(None, false);
            gpu.evaluate_blocking(&sum).unwrap().to_vec_blocking().unwrap()
        };
        let made = [0; 4].map(|_| {
            assert_eq!(step(), [(2 * 5 * ELEMENTS) as f32]);
            gpu.memory().unwrap().misses
        });
        assert_eq!(made[1], made[3], "{:?}: {made:?}", gpu.info().unwrap().backend);
    }
}
