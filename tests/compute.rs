//! The device itself on every backend of this machine: memory, kernels of one's own, streams, events; and what is refused.
//!
//! `LAPIDARY_REQUIRE` as in `conformance.rs`.
#![cfg(not(target_arch = "wasm32"))]

#[path = "compute/cuda.rs"]
mod cuda;
mod devices;
#[path = "compute/refused.rs"]
mod refused;
#[path = "compute/wgsl.rs"]
mod wgsl;

use std::sync::{Arc, Mutex};

use devices::all;
use lapidary::compute::{Access, Argument, Buffer, Kernel, KernelDefinition, Language, Memory, Stream};
use lapidary::{BackendId, DeviceKind, Error, Gpu, Matmul, Result};

fn backend(gpu: &Gpu) -> BackendId {
    gpu.info().expect("an open handle has a device").backend
}

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Saxpy {
    n: u32,
    a: f32,
}

fn saxpy() -> KernelDefinition {
    let definition = KernelDefinition::new("saxpy").bindings([Access::Read, Access::ReadWrite]).workgroup([64, 1, 1]).params_bytes(8);
    definition.wgsl(include_str!("compute/saxpy.wgsl")).cuda(include_str!("compute/saxpy.cu")).cpu(|run, [x, y]| {
        let Saxpy { n, a } = run.params();
        for (x, y) in x.read::<f32>().iter().zip(y.write::<f32>()).take(n as usize) {
            *y += a * x;
        }
    })
}

fn sum() -> KernelDefinition {
    let definition = KernelDefinition::new("sum").bindings([Access::Read, Access::ReadWrite]).workgroup([128, 1, 1]);
    let definition = definition.entry("add_up").shared_bytes(128 * 4);
    definition.wgsl(include_str!("compute/sum.wgsl")).cuda(include_str!("compute/sum.cu")).cpu(|_, [values, total]| {
        total.write::<u32>()[0] += values.read::<u32>().iter().sum::<u32>();
    })
}

/// The language that a backend has of these.
fn own_language(backend: BackendId) -> Language {
    match backend {
        BackendId::Cuda => Language::Cuda,
        BackendId::Vulkan | BackendId::WebGpu => Language::Wgsl,
        _ => Language::Cpu,
    }
}

fn floats(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|i| (i % 1000) as f32 * step).collect()
}

fn buffer(gpu: &Gpu, values: &[f32]) -> Buffer {
    let buffer = gpu.allocate(values.len() as u64 * 4, Memory::Device).unwrap();
    buffer.write_blocking(0, values).unwrap();
    buffer
}

#[test]
fn a_kernel_of_ones_own_runs_everywhere() {
    for gpu in all() {
        let n = 100_003;
        let (x, y) = (buffer(&gpu, &floats(n, 1.0)), buffer(&gpu, &floats(n, 0.5)));
        let kernel = gpu.compile(&saxpy()).unwrap();
        assert_eq!((kernel.language(), kernel.backend()), (own_language(backend(&gpu)), backend(&gpu)));
        assert_eq!((kernel.workgroup(), kernel.bindings(), kernel.params_bytes()), ([64, 1, 1], vec![Access::Read, Access::ReadWrite], 8));
        let stream = gpu.stream().unwrap();
        // The launches depend on each other.
        for _ in 0..3 {
            stream.launch(&kernel, [(n as u32).div_ceil(64), 1, 1], [&x, &y], &Saxpy { n: n as u32 - 1, a: 2.0 }).unwrap();
        }
        let values = y.read_blocking::<f32>(0, n).unwrap();
        let wrong = (0..n).find(|&i| values[i] != (i % 1000) as f32 * if i < n - 1 { 6.5 } else { 0.5 });
        assert_eq!(wrong, None, "{kernel:?}");
    }
}

#[test]
fn workgroup_memory_and_atomics_add_up() {
    for gpu in all() {
        let kernel = gpu.compile(&sum()).unwrap();
        let values: Vec<u32> = (0..1000).collect();
        let (from, total) = (gpu.allocate(4000, Memory::Device).unwrap(), gpu.allocate(4, Memory::Device).unwrap());
        from.write_blocking(0, &values).unwrap();
        total.write_blocking(0, &[7u32]).unwrap();
        let stream = gpu.stream().unwrap();
        stream.launch(&kernel, [8, 1, 1], [&from, &total], &()).unwrap();
        assert_eq!(stream.read::<u32>(&total, 0, 1).unwrap().finish_blocking().unwrap(), [7 + 499_500], "{kernel:?}");
    }
}

#[test]
fn copies_go_every_way_and_keep_their_order() {
    for gpu in all() {
        let memories = gpu.info().unwrap().capabilities.memories;
        let stream = gpu.stream().unwrap();
        for (&first, &second) in memories.iter().flat_map(|first| memories.iter().map(move |second| (first, second))) {
            let (a, b) = (gpu.allocate(4096, first).unwrap(), gpu.allocate(4096, second).unwrap());
            assert_eq!((a.memory(), a.bytes()), (first, 4096));
            stream.write(&a, 0, &[1.0f32; 1024]).unwrap();
            // Over what is under way.
            stream.write(&a, 8, &[2.0f32, 3.0]).unwrap();
            stream.copy(&a, 4, &b, 0, 16).unwrap();
            stream.write(&a, 0, &[9.0f32; 1024]).unwrap();
            let copied = stream.read::<f32>(&b, 0, 4).unwrap();
            stream.write(&b, 0, &[5.0f32; 4]).unwrap();
            assert_eq!(copied.finish_blocking().unwrap(), [1.0, 2.0, 3.0, 1.0], "{a:?} to {b:?}");
            b.copy_from_blocking(&a).unwrap();
            assert_eq!(b.read_blocking::<f32>(4088, 2).unwrap(), [9.0; 2], "{a:?} to {b:?}");
        }
        // More than is copied in one piece.
        let large: Vec<u64> = (0..3 << 20).collect();
        let room = gpu.allocate(large.len() as u64 * 8 + 64, Memory::Device).unwrap();
        room.write_blocking(64, &large).unwrap();
        assert!(room.read_blocking::<u64>(64, large.len()).unwrap() == large);
        assert!(room.read_blocking::<u64>(0, 0).unwrap().is_empty());
    }
}

/// What uses the same buffers keeps the order of the calls, whichever streams it is in.
#[test]
fn streams_keep_the_order_of_what_they_share() {
    for gpu in all() {
        let kernel = gpu.compile(&saxpy()).unwrap();
        let n = 1 << 18;
        let streams: Vec<_> = (0..4).map(|_| gpu.stream().unwrap()).collect();
        let rooms: Vec<_> = (0..5).map(|i| buffer(&gpu, &vec![f32::from(u8::from(i == 0)); n])).collect();
        // Each adds the last one's result to its own, twice around.
        for turn in 0..8 {
            let stream = &streams[turn % 4];
            stream
                .launch(&kernel, [n as u32 / 64, 1, 1], [&rooms[turn % 5], &rooms[(turn + 1) % 5]], &Saxpy { n: n as u32, a: 1.0 })
                .unwrap();
        }
        let mut expected = [1.0, 0.0, 0.0, 0.0, 0.0];
        for turn in 0..8 {
            expected[(turn + 1) % 5] += expected[turn % 5];
        }
        for (room, expected) in rooms.iter().zip(expected) {
            assert!(room.read_blocking::<f32>(0, n).unwrap() == vec![expected; n], "{room:?}");
        }
    }
}

#[test]
fn events_are_reached_and_timed() {
    for gpu in all() {
        let (x, y) = (buffer(&gpu, &floats(1 << 16, 1.0)), buffer(&gpu, &floats(1 << 16, 1.0)));
        let kernel = gpu.compile(&saxpy()).unwrap();
        let (stream, other) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let begin = stream.record().unwrap();
        for _ in 0..20 {
            stream.launch(&kernel, [1 << 10, 1, 1], [&x, &y], &Saxpy { n: 1 << 16, a: 0.5 }).unwrap();
        }
        let end = stream.record().unwrap();
        other.wait(&end).unwrap();
        other.synchronize_blocking().unwrap();
        let ms = end.elapsed_ms_since_blocking(&begin).unwrap();
        assert!(ms > 0.0 && ms < 60_000.0, "{}: {ms} ms", backend(&gpu));
        assert!((begin.elapsed_ms_since_blocking(&end).unwrap() + ms).abs() < 1e-3);
    }
}

/// A device whose backend has no source runs the twin on copies, in its place among the rest.
#[test]
fn a_twin_stands_in_where_there_is_no_source() {
    for gpu in all() {
        let twin = KernelDefinition::new("negate").bindings([Access::Read, Access::ReadWrite]).params_bytes(4).cpu(|run, [x, y]| {
            let plus: f32 = run.params();
            x.read::<f32>().iter().zip(y.write::<f32>()).for_each(|(x, y)| *y = plus - x);
        });
        let kernel = gpu.compile(&twin).unwrap();
        assert_eq!(kernel.language(), Language::Cpu);
        let (x, y) = (buffer(&gpu, &floats(1000, 1.0)), buffer(&gpu, &[0.0; 1000]));
        let stream = gpu.stream().unwrap();
        stream.write(&x, 0, &[100.0f32]).unwrap();
        stream.launch(&kernel, [1, 1, 1], [x.slice(0..2048), y.slice(1024..3072)], &1.0f32).unwrap();
        let values = y.read_blocking::<f32>(0, 1000).unwrap();
        let expected = |i: usize| if (256..768).contains(&i) { 1.0 - if i == 256 { 100.0 } else { (i - 256) as f32 } } else { 0.0 };
        assert_eq!((0..1000).find(|&i| values[i] != expected(i)), None, "{kernel:?}");
    }
}

/// A twin that calls the device that waits for it would wait for itself.
#[test]
fn a_twin_that_calls_back_is_told_so() {
    for gpu in all() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let other = gpu.compile(&KernelDefinition::new("nothing").bindings([Access::Read]).cpu(|_, [_]| {})).unwrap();
        let (x, stream) = (buffer(&gpu, &[1.0; 64]), gpu.stream().unwrap());
        let twin = KernelDefinition::new("again").bindings([Access::Read]).cpu({
            let (said, x, stream) = (Arc::clone(&said), x.clone(), stream.clone());
            move |_, [_]| said.lock().unwrap().push(stream.launch(&other, [1; 3], [&x], &()).map_err(|error| error.code()))
        });
        let twin = gpu.compile(&twin).unwrap();
        for _ in 0..2 {
            stream.launch(&twin, [1; 3], [&x], &()).unwrap();
        }
        assert_eq!(*said.lock().unwrap(), [Err("invalid_argument"); 2], "{}", backend(&gpu));
        assert_eq!(x.read_blocking::<f32>(0, 64).unwrap(), [1.0; 64]);
    }
}

/// What products give and what kernels do to it, in the order of the calls, in whichever streams.
#[test]
fn tensors_are_read_and_written_where_they_are() {
    for gpu in all() {
        let name = backend(&gpu);
        let (n, side) = (64 * 64, 64);
        let kernel = gpu.compile(&saxpy()).unwrap();
        let (ones, identity) = (vec![1.0f32; n], (0..n).map(|i| f32::from(u8::from(i % 65 == 0))).collect::<Vec<_>>());
        let (x, y) = (gpu.tensor_blocking(&ones, 64, 64).unwrap(), gpu.tensor_blocking(&identity, 64, 64).unwrap());
        let op = Matmul::new(side, side, side);
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
        let launch = |turn: usize, from: Argument<'_>, to: Argument<'_>| {
            streams[turn % 2].launch(&kernel, [n as u32 / 64, 1, 1], [from, to], &Saxpy { n: n as u32, a: 2.0 }).unwrap();
        };
        // x becomes 1 + 2·64, a product's result 64, and what clones and other shapes see is that.
        let product = gpu.matmul_tensor_blocking(&x, &x, &op).unwrap();
        let clone = product.reshape(&[n as u64]).unwrap();
        for turn in 0..3 {
            launch(turn, Argument::from(&product), Argument::from(&x));
        }
        assert!(x.to_vec_blocking().unwrap() == vec![1.0 + 3.0 * 128.0; n], "{name}");
        // A product after it reads what was written, and one before it did not.
        let after = gpu.matmul_tensor_blocking(&x, &y, &op).unwrap();
        let own = buffer(&gpu, &ones);
        launch(0, Argument::from(&own), Argument::from(&product));
        launch(1, Argument::from(&product), Argument::from(&own));
        assert!(clone.to_vec_blocking().unwrap() == vec![66.0; n], "{name}");
        assert!(own.read_blocking::<f32>(0, n).unwrap() == vec![133.0; n], "{name}");
        assert!(after.to_vec_blocking().unwrap() == vec![385.0; n], "{name}");
        assert!(gpu.matmul_blocking(&product, &y, &op).unwrap() == vec![66.0; n], "{name}");
        // Both were uploaded, as were many that may lie beside them.
        launch(0, Argument::from(&y), Argument::from(&x));
        let expected: Vec<f32> = identity.iter().map(|one| 385.0 + 2.0 * one).collect();
        assert!(x.to_vec_blocking().unwrap() == expected && y.to_vec_blocking().unwrap() == identity, "{name}");
        // A twin where there is a source of no backend.
        let twin = KernelDefinition::new("halve").bindings([Access::ReadWrite]).cpu(|_, [x]| {
            x.write::<f32>().iter_mut().for_each(|x| *x *= 0.5);
        });
        let twin = gpu.compile(&twin).unwrap();
        streams[0].launch(&twin, [1; 3], [&product], &()).unwrap();
        assert!(product.to_vec_blocking().unwrap() == vec![33.0; n], "{name}");
        // Whoever drops it meanwhile takes nothing away.
        launch(0, Argument::from(&product), Argument::from(&own));
        drop((product, clone, x));
        let others: Vec<_> = (0..4).map(|_| gpu.tensor_blocking(&identity, 64, 64).unwrap()).collect();
        assert!(own.read_blocking::<f32>(0, n).unwrap() == vec![199.0; n], "{name}");
        drop(others);
    }
}

#[test]
fn a_tensor_of_f16_is_whole_words_to_a_kernel() {
    let definition = KernelDefinition::new("words").bindings([Access::Read, Access::ReadWrite]).cpu(|_, [from, to]| {
        let (from, to) = (from.read::<u32>(), to.write::<u32>());
        to[0] = from.len() as u32;
        to[1..].copy_from_slice(from);
    });
    for gpu in all() {
        let kernel = gpu.compile(&definition).unwrap();
        let halves: Vec<_> = [1.0, 2.0, 3.0].map(half::f16::from_f32).to_vec();
        let (tensor, out) = (gpu.tensor_blocking(&halves, 1, 3).unwrap(), gpu.allocate(12, Memory::Device).unwrap());
        gpu.stream().unwrap().launch(&kernel, [1; 3], [Argument::from(&tensor), (&out).into()], &()).unwrap();
        let words = out.read_blocking::<u32>(0, 3).unwrap();
        assert_eq!((words[0], words[1], words[2] & 0xffff), (2, 0x4000_3c00, 0x4200), "{}", backend(&gpu));
    }
}

#[test]
fn a_tensor_of_bytes_is_bytes_to_a_kernel() {
    let definition = KernelDefinition::new("add").bindings([Access::ReadWrite, Access::Read]).cpu(|_, [to, from]| {
        to.write::<i8>().iter_mut().zip(from.read::<i8>()).for_each(|(to, from)| *to = to.wrapping_add(*from));
    });
    for gpu in all() {
        let kernel = gpu.compile(&definition).unwrap();
        for count in [1i8, 5, 8] {
            let bytes: Vec<i8> = (0..count).map(|i| i * 9 - 20).collect();
            let [x, y] = [(); 2].map(|()| gpu.tensor_blocking(&bytes, 1, bytes.len() as u64).unwrap());
            gpu.stream().unwrap().launch(&kernel, [1; 3], [Argument::from(&x), (&y).into()], &()).unwrap();
            // Of a product with 1, since bytes are given back as nothing else.
            let one = gpu.tensor_blocking(&[1i8], 1, 1).unwrap();
            let product = match gpu.matmul_tensor_blocking(&one, &x, &Matmul::new(1, 1, bytes.len() as u64)) {
                Ok(product) => product,
                Err(error) => {
                    assert!(backend(&gpu) == BackendId::Cuda && error.code() == "invalid_type", "{error}");
                    eprintln!("skipped: CUDA multiplies no integers");
                    continue;
                }
            };
            let expected: Vec<i32> = bytes.iter().map(|&byte| 2 * i32::from(byte)).collect();
            assert_eq!(product.to_host_blocking().unwrap().into_typed::<i32>().unwrap(), expected, "{count} bytes on {}", backend(&gpu));
        }
    }
}

/// A kernel, a twin that a tensor goes to the host and back for, and a product, of so much memory that its copies might go another way.
#[test]
fn a_twin_has_its_turn_between_kernels_and_products() {
    let twin = KernelDefinition::new("negate").bindings([Access::ReadWrite]).cpu(|_, [x]| {
        x.write::<f32>().iter_mut().for_each(|x| *x = -*x);
    });
    let side = 1024u64;
    let count = (side * side) as usize;
    for gpu in all() {
        let (kernel, twin) = (gpu.compile(&saxpy()).unwrap(), gpu.compile(&twin).unwrap());
        let stream = gpu.stream().unwrap();
        let (ones, row) = (vec![1.0f32; count], gpu.tensor_blocking(&vec![1.0f32; side as usize], 1, side).unwrap());
        for turn in 0..3 {
            let (x, y) = (gpu.tensor_blocking(&ones, side, side).unwrap(), gpu.tensor_blocking(&ones, side, side).unwrap());
            let launch =
                || stream.launch(&kernel, [count as u32 / 64, 1, 1], [Argument::from(&x), (&y).into()], &Saxpy { n: count as u32, a: 2.0 });
            launch().unwrap();
            stream.launch(&twin, [1; 3], [&y], &()).unwrap();
            let product = gpu.matmul_tensor_blocking(&row, &y, &Matmul::new(1, side, side)).unwrap();
            launch().unwrap();
            assert!(product.to_vec_blocking().unwrap() == vec![-3.0 * side as f32; side as usize], "{} in turn {turn}", backend(&gpu));
            assert!(y.to_vec_blocking().unwrap() == vec![-1.0; count], "{} in turn {turn}", backend(&gpu));
        }
    }
}

/// What two threads write to one buffer is there as one of them wrote it.
#[test]
fn writes_of_threads_are_not_mixed() {
    for gpu in all() {
        for &memory in gpu.info().unwrap().capabilities.memories {
            let buffer = gpu.allocate(16 << 20, memory).unwrap();
            for round in 0..6u8 {
                std::thread::scope(|scope| {
                    for number in [2 * round, 2 * round + 1] {
                        let buffer = &buffer;
                        scope.spawn(move || buffer.write_blocking(0, &vec![number; 16 << 20]).unwrap());
                    }
                });
                let values = buffer.read_blocking::<u64>(0, 2 << 20).unwrap();
                assert!(values.iter().all(|&value| value == values[0]), "{} {memory:?}", backend(&gpu));
            }
        }
    }
}

#[test]
fn kernels_are_run_by_name() {
    for gpu in all() {
        assert!(gpu.kernel("saxpy").unwrap_err().to_string().contains("none is defined"));
        gpu.define(saxpy());
        gpu.define(sum());
        assert_eq!(gpu.kernel("sum").unwrap().name(), "sum");
        let error = gpu.clone().kernel("sAxpy").unwrap_err();
        assert_eq!(error.to_string(), "the kernel's name is sAxpy, but defined are saxpy, sum");
        gpu.define(KernelDefinition::new("saxpy").bindings([]).cpu(|_, []| {}));
        assert_eq!(gpu.kernel("saxpy").unwrap().bindings(), []);
    }
}

/// The error of a launch of saxpy with something wrong.
fn refused(stream: &Stream, kernel: &Kernel, arguments: &[Argument<'_>], grid: [u32; 3]) -> Box<Error> {
    stream.launch(kernel, grid, arguments.iter().cloned(), &Saxpy { n: 1, a: 1.0 }).unwrap_err()
}

fn said(result: Result<impl Sized>, code: &str, parts: &[&str]) {
    let error = result.err().expect("it is refused");
    assert_eq!(error.code(), code, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{error} lacks {part}");
    }
}

/// Handles outlive their device's, in whatever order they go, and everything is given back.
#[test]
fn nothing_is_freed_under_what_uses_it() {
    for gpu in all() {
        let name = backend(&gpu);
        let (x, y) = (buffer(&gpu, &floats(1 << 16, 1.0)), buffer(&gpu, &vec![0.0; 1 << 16]));
        let (kernel, stream) = (gpu.compile(&saxpy()).unwrap(), gpu.stream().unwrap());
        let before = gpu.memory().unwrap();
        for _ in 0..50 {
            let short_lived = buffer(&gpu, &floats(1 << 16, 1.0));
            stream.launch(&kernel, [1 << 10, 1, 1], [&short_lived, &y], &Saxpy { n: 1 << 16, a: 1.0 }).unwrap();
        }
        drop(stream.read::<f32>(&y, 0, 1 << 16).unwrap());
        stream.synchronize_blocking().unwrap();
        assert_eq!(gpu.memory().unwrap().buffers, before.buffers, "{name}");
        gpu.close();
        assert_eq!(gpu.allocate(4, Memory::Device).unwrap_err().code(), "disposed");
        drop(gpu);
        // The device lives on in what was made of it.
        stream.launch(&kernel, [1 << 10, 1, 1], [&x, &y], &Saxpy { n: 1 << 16, a: 1.0 }).unwrap();
        drop((x, kernel));
        let event = stream.record().unwrap();
        drop(stream);
        event.reached_blocking().unwrap();
        assert!(y.read_blocking::<f32>(0, 1 << 16).unwrap() == floats(1 << 16, 51.0), "{name}");
    }
}

#[test]
fn what_a_device_can_do_is_told() {
    for gpu in all() {
        let info = gpu.info().unwrap();
        let capabilities = &info.capabilities;
        assert!(capabilities.memories.contains(&Memory::Device) && capabilities.max_storage_bindings >= 4, "{capabilities:?}");
        assert!(capabilities.max_workgroup_size.iter().all(|size| *size >= 64) && capabilities.max_grid.iter().all(|size| *size >= 65_535));
        assert!(capabilities.max_workgroup_bytes >= 16_384 && capabilities.atomics.contains(&"u32"));
        assert_eq!(capabilities.compute_capability.is_some(), info.backend == BackendId::Cuda);
        // The same by its names, and before it is opened.
        let has = |name: &str| info.features.contains(&name);
        let named = [has("shader-f16"), has("shader-f64"), has("timestamp-query"), has("cooperative-matrix")];
        assert_eq!(named, [capabilities.f16, capabilities.f64, capabilities.device_clock, capabilities.matrix_units], "{info:?}");
        assert_eq!(has("unified-memory"), matches!(info.kind, DeviceKind::Cpu | DeviceKind::Software | DeviceKind::Integrated));
        let listed = lapidary::devices_of(info.backend).found;
        let same = |features: &[&str]| info.features.iter().filter(|name| **name != "cublaslt").eq(features);
        assert!(listed.iter().any(|listed| listed.name == info.name && same(&listed.features)), "{info:?} {listed:?}");
        if info.backend == BackendId::Cuda {
            assert!(capabilities.concurrent_streams && capabilities.device_clock && capabilities.subgroup_size == Some(32));
            assert!(capabilities.memory_bytes.is_some_and(|bytes| bytes > 1 << 28) && capabilities.f64);
        }
    }
}

#[test]
fn threads_share_a_device() {
    // A twin on copies would lose what another thread has computed meanwhile.
    let twin = KernelDefinition::new("add").bindings([Access::Read, Access::ReadWrite]).params_bytes(8).cpu(|_, [x, y]| {
        x.read::<f32>().iter().zip(y.write::<f32>()).for_each(|(x, y)| *y += x);
    });
    for (gpu, definition) in all().into_iter().flat_map(|gpu| [(gpu.clone(), saxpy()), (gpu, twin.clone())]) {
        let kernel = gpu.compile(&definition).unwrap();
        let y = buffer(&gpu, &vec![0.0; 1 << 14]);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (gpu, kernel, y) = (&gpu, &kernel, &y);
                scope.spawn(move || {
                    let x = buffer(gpu, &vec![(thread + 1) as f32; 1 << 14]);
                    let stream = gpu.stream().unwrap();
                    for _ in 0..10 {
                        stream.launch(kernel, [1 << 8, 1, 1], [&x, y], &Saxpy { n: 1 << 14, a: 1.0 }).unwrap();
                    }
                });
            }
        });
        assert!(y.read_blocking::<f32>(0, 1 << 14).unwrap() == vec![100.0; 1 << 14], "{}", backend(&gpu));
    }
}

#[test]
#[ignore = "times a GPU that has nothing else to do"]
fn copies_run_beside_kernels() {
    for gpu in all() {
        let (name, has_queue) = (backend(&gpu), gpu.info().unwrap().features.contains(&"transfer-queue"));
        if name != BackendId::Cuda && !has_queue {
            eprintln!("skipped {name}: it has no queue for copies alone");
            continue;
        }
        let n = 1 << 26;
        let (x, y) = (buffer(&gpu, &vec![1.0; n]), buffer(&gpu, &vec![0.0; n]));
        let (pinned, room) = (gpu.allocate(n as u64 * 4, Memory::Pinned).unwrap(), gpu.allocate(n as u64 * 4, Memory::Device).unwrap());
        pinned.write_blocking(0, &vec![2.0f32; n]).unwrap();
        let kernel = gpu.compile(&saxpy()).unwrap();
        let (computes, copies) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let grid = [n as u32 / 64, 1, 1];
        let compute = || (0..40).for_each(|_| computes.launch(&kernel, grid, [&x, &y], &Saxpy { n: n as u32, a: 1.0 }).unwrap());
        let copy = || (0..2).for_each(|_| copies.copy(&pinned, 0, &room, 0, n as u64 * 4).unwrap());
        let time = |work: &dyn Fn()| {
            let clock = std::time::Instant::now();
            work();
            let put_ms = clock.elapsed().as_secs_f64() * 1e3;
            computes.synchronize_blocking().unwrap();
            copies.synchronize_blocking().unwrap();
            (put_ms, clock.elapsed().as_secs_f64() * 1e3)
        };
        let both = || {
            compute();
            copy();
        };
        time(&both);
        let ((_, kernels_ms), (copies_put_ms, copies_ms)) = (time(&compute), time(&copy));
        let (_, both_ms) = time(&both);
        println!("{name}: kernels {kernels_ms:.2} ms, copies {copies_ms:.2} ms ({copies_put_ms:.2} to start them), both {both_ms:.2} ms");
        assert!(copies_put_ms < copies_ms / 4.0, "copies from pinned memory wait for the device");
        assert!(both_ms < kernels_ms.max(copies_ms) + 0.5 * kernels_ms.min(copies_ms), "streams run one after the other");
        assert!(room.read_blocking::<f32>(0, n).unwrap() == vec![2.0; n]);
    }
}
