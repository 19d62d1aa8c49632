//! What a caller in Rust sees: errors with their numbers, tensors, threads, memory.
#![cfg(not(target_arch = "wasm32"))]

mod cases;
mod devices;

use devices::all;
use half::f16;
use lapidary::{Activation, BackendId, BackendState, Choice, DType, DeviceInfo, DeviceKind, Error, Gpu, Matmul, Options, Selector, random};

fn cpu() -> Gpu {
    Gpu::open_blocking(Options::only(BackendId::Simd)).expect("the CPU is always there")
}

/// A handle of each GPU backend that is there.
fn gpus() -> Vec<Gpu> {
    all().into_iter().filter(|gpu| gpu.info().expect("an open handle has a device").backend.is_gpu()).collect()
}

#[test]
fn lengths_that_do_not_match_are_told_with_both_numbers() {
    let gpu = cpu();
    let a = [0.0; 6];
    let error = gpu.matmul_blocking(&a, &a, &Matmul::new(2, 4, 1)).unwrap_err();
    assert_eq!(*error, Error::LengthMismatch { argument: "a", length: 6, expected: 8, formula: "2 · 4".to_owned() });
    assert_eq!(error.to_string(), "a has 6 elements, but 2 · 4 = 8 are needed");
    let codes = |op: Matmul<'_>| gpu.matmul_blocking(&a, &a, &op).unwrap_err().code();
    assert_eq!(codes(Matmul::new(2, 3, 3)), "length_mismatch");
    assert_eq!(codes(Matmul::new(2, 3, 2).plus(1.0, &a)), "length_mismatch");
    assert_eq!(codes(Matmul::new(2, 3, 2).lda(2)), "invalid_dimension");
    assert_eq!(codes(Matmul::new(2, 3, 2).lda(u64::MAX)), "invalid_dimension");
    assert_eq!(codes(Matmul::new(2, 3, 2).lda(4)), "length_mismatch");
    assert_eq!(codes(Matmul::new(1 << 33, 3, 2)), "invalid_dimension");
    assert_eq!(codes(Matmul::new(65_537, 65_537, 1)), "limit_exceeded");
    assert_eq!(codes(Matmul::new(65_536, 65_536, 1)), "length_mismatch");
    assert_eq!(codes(Matmul::new(46_341, 92_682, 1)), "limit_exceeded");
    assert!(gpu.matmul_blocking(&a, &a, &Matmul::new(2, 3, 2)).is_ok(), "the next call works");
}

/// Types are told apart, and a result comes in the one that was asked for.
#[test]
fn types_are_kept_and_those_that_do_not_match_are_named() {
    let gpu = cpu();
    let half = |values: &[f32]| values.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let (wide, narrow) = (vec![0.5f32; 4], half(&[0.5; 4]));
    let op = Matmul::new(2, 2, 2);
    let error = gpu.matmul_blocking(&wide, &narrow, &op).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("b must be of f32")), ("invalid_type", true), "{error}");
    let error = gpu.matmul_blocking(&narrow, &narrow, &op.clone().plus(1.0, &narrow)).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("c must be of f32")), ("invalid_type", true), "{error}");
    assert_eq!(gpu.matmul_blocking(&narrow, &narrow, &op).unwrap(), [0.5; 4]);

    let a = gpu.tensor_blocking(&narrow, 2, 2).unwrap();
    assert_eq!(a.dtype(), DType::F16);
    let out = gpu.matmul_tensor_blocking(&a, &a, &op.clone().result(DType::F16)).unwrap();
    assert_eq!(out.dtype(), DType::F16);
    let values = out.to_host_blocking().unwrap();
    assert_eq!((values.dtype(), values.len()), (DType::F16, 4));
    assert_eq!(values.into_f16(), half(&[0.5; 4]));
    // 2 · 200² is past what f16 holds, and 2049 between two of its numbers.
    let large = half(&[200.0; 4]);
    assert_eq!(gpu.matmul_blocking(&large, &large, &op.clone().result(DType::F16)).unwrap(), [f32::INFINITY; 4]);
    assert_eq!(gpu.matmul_blocking(&large, &large, &op).unwrap(), [80_000.0; 4]);
    assert_eq!(gpu.matmul_blocking(&[2049.0], &[1.0], &Matmul::new(1, 1, 1).result(DType::F16)).unwrap(), [2048.0]);
}

#[test]
fn what_is_not_read_does_not_matter() {
    for gpu in all() {
        let nan = [f32::NAN; 4];
        assert_eq!(gpu.matmul_blocking(&nan, &nan, &Matmul::new(2, 2, 2).alpha(0.0)).unwrap(), [0.0; 4]);
        assert_eq!(gpu.matmul_blocking(&nan, &nan, &Matmul::new(2, 2, 2).alpha(0.0).plus(2.0, &[1.0; 4])).unwrap(), [2.0; 4]);
        assert_eq!(gpu.matmul_blocking(&[1.0; 4], &[1.0; 4], &Matmul::new(2, 2, 2).plus(0.0, &nan)).unwrap(), [2.0; 4]);
    }
}

#[test]
fn nan_stays_in_its_row() {
    for gpu in all() {
        let mut a = vec![1.0; 5 * 7];
        a[2 * 7 + 3] = f32::NAN;
        let c = gpu.matmul_blocking(&a, &[1.0; 7 * 6], &Matmul::new(5, 7, 6)).unwrap();
        for (i, x) in c.iter().enumerate() {
            assert_eq!(x.is_nan(), i / 6 == 2, "{i}");
        }
    }
}

#[test]
fn tensors_serve_many_products_and_give_their_memory_back() {
    for gpu in all() {
        let identity: Vec<f32> = (0..9).map(|i| f32::from(u8::from(i % 4 == 0))).collect();
        let x = gpu.tensor_blocking(&random::matrix(9, 1), 3, 3).unwrap();
        let y = gpu.tensor_blocking(&identity, 3, 3).unwrap();
        let op = Matmul::new(3, 3, 3);
        let once = gpu.matmul_tensor_blocking(&x, &y, &op).unwrap();
        let z = gpu.matmul_tensor_blocking(&once, &y, &op).unwrap();
        assert_eq!(z.to_vec_blocking().unwrap(), random::matrix(9, 1));
        assert_eq!(gpu.matmul_blocking(&x, &identity, &op).unwrap(), random::matrix(9, 1));
        assert!(gpu.memory().unwrap().used_bytes > 0);
        drop((x, y, once, z));
        assert_eq!(gpu.memory().unwrap().used_bytes, 0);
        assert_eq!(gpu.tensor_blocking(&identity, 3, 4).unwrap_err().code(), "length_mismatch");
    }
}

/// A matrix that moves rows up by one: its powers are as exact as itself.
fn shift(n: usize) -> Vec<f32> {
    (0..n * n).map(|i| f32::from(u8::from(i / n == (i % n + n - 1) % n))).collect()
}

#[test]
fn products_that_nobody_waits_for_are_right_in_any_order() {
    const N: usize = 9;
    for gpu in all() {
        let op = Matmul::new(N as u64, N as u64, N as u64);
        let values = random::matrix(N * N, 1);
        let shifted = |rows: usize| (0..N * N).map(|i| values[(i / N + rows) % N * N + i % N]).collect::<Vec<_>>();
        let step = gpu.tensor_blocking(&shift(N), N as u64, N as u64).unwrap();
        let first = gpu.tensor_blocking(&values, N as u64, N as u64).unwrap();
        let kept = |x: &lapidary::Tensor, op: &Matmul<'_>| gpu.matmul_tensor_blocking(&step, x, op).unwrap();
        let mut chain = vec![kept(&first, &op)];
        for i in 0..600 {
            chain.push(kept(&chain[i], &op));
        }
        for i in (0..=600).rev().step_by(50).chain([3, 599]) {
            assert_eq!(chain[i].to_vec_blocking().unwrap(), shifted(i + 1), "product {i}");
        }
        // More parameters than the device holds at once, operands let go of at once, and their memory written anew before it was read.
        let results: Vec<_> = (0..600).map(|i| kept(&chain[i], &op.clone().alpha(i as f32))).collect();
        drop(chain);
        let other = gpu.tensor_blocking(&[5.0; N * N], N as u64, N as u64).unwrap();
        gpu.trim().unwrap();
        for (i, result) in results.iter().enumerate().step_by(37) {
            let expected: Vec<f32> = shifted(i + 2).iter().map(|x| x * i as f32).collect();
            assert_eq!(result.to_vec_blocking().unwrap(), expected, "alpha {i}");
        }
        assert_eq!(other.to_vec_blocking().unwrap(), [5.0; N * N]);
    }
}

#[test]
fn ten_thousand_rounds_end_where_they_began() {
    for gpu in all() {
        let op = Matmul::new(9, 9, 9);
        let before = gpu.memory().unwrap();
        let a = gpu.tensor_blocking(&shift(9), 9, 9).unwrap();
        let one = gpu.memory().unwrap();
        for round in 0..10_000 {
            let kept = gpu.matmul_tensor_blocking(&a, &a, &op).unwrap();
            assert_eq!(gpu.memory().unwrap().buffers, one.buffers + 1, "in round {round}");
            drop(kept);
        }
        let kept: Vec<_> = (0..500).map(|_| gpu.matmul_tensor_blocking(&a, &a, &op).unwrap()).collect();
        let live = gpu.memory().unwrap();
        assert_eq!(live.buffers, one.buffers + 500);
        assert_eq!(live.used_bytes - one.used_bytes, 500 * (one.used_bytes - before.used_bytes));
        drop((a, kept));
        let after = gpu.memory().unwrap();
        assert_eq!((after.used_bytes, after.buffers), (before.used_bytes, before.buffers));
    }
}

#[test]
fn queued_products_in_parts_take_turns() {
    for gpu in all() {
        let (m, k, n) = (24, 4096, 20);
        let values = |count: usize, seed: usize| (0..count).map(|i| ((i * 7 + seed) % 5) as f32 - 2.0).collect::<Vec<_>>();
        let (x, y) = (values(m * k, 1), values(k * n, 3));
        let a = gpu.tensor_blocking(&x, m as u64, k as u64).unwrap();
        let b = gpu.tensor_blocking(&y, k as u64, n as u64).unwrap();
        let op = |alpha: f32| Matmul::new(m as u64, k as u64, n as u64).alpha(alpha);
        let kept: Vec<_> = (0..9).map(|i| gpu.matmul_tensor_blocking(&a, &b, &op(i as f32)).unwrap()).collect();
        let exact = |i: usize| (0..k).map(|p| x[i / n * k + p] * y[p * n + i % n]).sum::<f32>();
        let expected: Vec<f32> = (0..m * n).map(exact).collect();
        for (alpha, tensor) in kept.iter().enumerate() {
            let scaled: Vec<f32> = expected.iter().map(|x| x * alpha as f32).collect();
            assert_eq!(tensor.to_vec_blocking().unwrap(), scaled, "alpha {alpha}");
        }
    }
}

#[test]
fn threads_share_a_queue() {
    for gpu in all() {
        let step = gpu.tensor_blocking(&shift(9), 9, 9).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6u64 {
                let (gpu, step) = (&gpu, &step);
                scope.spawn(move || {
                    let op = Matmul::new(9, 9, 9);
                    let values = random::matrix(81, thread);
                    let mut last = gpu.tensor_blocking(&values, 9, 9).unwrap();
                    for turn in 1..=180 {
                        last = gpu.matmul_tensor_blocking(step, &last, &op).unwrap();
                        if turn % 45 == 0 {
                            assert_eq!(last.to_vec_blocking().unwrap(), values, "thread {thread}, turn {turn}");
                        }
                    }
                });
            }
        });
    }
}

#[test]
fn a_tensor_of_another_device_is_refused() {
    let (one, other) = (cpu(), cpu());
    let x = one.tensor_blocking(&[1.0], 1, 1).unwrap();
    let error = other.matmul_blocking(&x, &[1.0], &Matmul::new(1, 1, 1)).unwrap_err();
    assert_eq!(error.code(), "invalid_type");
}

#[test]
fn the_gpu_holds_operands_result_and_one_staging_buffer() {
    for gpu in gpus() {
        let n = 256u64;
        let values = random::matrix((n * n) as usize, 1);
        gpu.trim().unwrap();
        for _ in 0..3 {
            gpu.matmul_blocking(&values, &values, &Matmul::new(n, n, n)).unwrap();
        }
        let stats = gpu.memory().unwrap();
        let matrix = n * n * 4;
        assert_eq!(stats.used_bytes, 0);
        assert!(stats.peak_bytes <= 4 * matrix + 4096 + 35 * 37 * 16, "{stats:?}");
        gpu.trim().unwrap();
        assert_eq!(gpu.memory().unwrap().pooled_bytes, 0);
    }
}

#[test]
fn threads_share_a_device() {
    for gpu in all() {
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let gpu = &gpu;
                scope.spawn(move || {
                    for turn in 0..6 {
                        let (m, k, n) = (thread * 5 + 1, turn * 7 + 1, 33);
                        let case = cases::Case { m: m as usize, k: k as usize, n, ..cases::all()[0] };
                        pollster::block_on(case.check(gpu)).unwrap();
                    }
                });
            }
        });
    }
}

#[test]
fn a_closed_handle_says_so_and_what_is_under_way_finishes() {
    let gpu = cpu();
    let clone = gpu.clone();
    clone.close();
    assert_eq!(gpu.matmul_blocking(&[1.0], &[1.0], &Matmul::new(1, 1, 1)).unwrap_err().code(), "disposed");
    assert_eq!(gpu.info().unwrap_err().code(), "disposed");
}

#[test]
fn the_choice_is_told() {
    let gpu = Gpu::open_blocking(Options { backend: Choice::Cpu, ..Options::default() }).unwrap();
    let info = gpu.info().unwrap();
    assert_eq!((info.backend, info.generation), (BackendId::Simd, 1));
    assert_eq!(info.others.len(), BackendId::ALL.len() - 1);
    let error = Gpu::open_blocking(Options::only(BackendId::WebGl2)).err().expect("WebGL2 is not native");
    assert_eq!(error.code(), "unavailable");
    let report = gpu.matmul_report_blocking(&[2.0], &[3.0], &Matmul::new(1, 1, 1)).unwrap();
    assert_eq!((report.data.as_slice(), report.backend, report.replayed), ([6.0].as_slice(), BackendId::Simd, false));
}

#[test]
fn every_backend_is_listed_and_what_is_listed_opens_by_its_index() {
    let devices = lapidary::devices();
    assert_eq!(devices.cards().len(), devices.found.len());
    for &backend in BackendId::ALL {
        let own: Vec<_> = devices.found.iter().filter(|device| device.backend == backend).collect();
        let off = devices.off.iter().find(|off| off.backend == backend);
        assert_eq!(own.is_empty(), off.is_some(), "{backend}");
        assert!(off.is_none_or(|off| off.state == BackendState::Off && !off.reason.is_empty()), "{backend}");
        assert_eq!(lapidary::devices_of(backend).found.len(), own.len());
        for (index, device) in (0u32..).zip(&own) {
            assert_eq!(device.index, index, "{backend}");
            if device.fault.is_none() {
                let info = Gpu::open_blocking(Options { adapter: Some(index), ..Options::only(backend) }).unwrap().info().unwrap();
                assert_eq!((info.backend, &info.name, info.kind), (backend, &device.name, device.kind));
            }
        }
        let error = Gpu::open_blocking(Options { adapter: Some(99), ..Options::only(backend) }).err().expect("there are not so many");
        assert_eq!(error.code(), "unavailable");
        assert!(
            off.is_some() || error.to_string().contains(&format!("no adapter 99: adapters are counted from 0, and it has {}", own.len())),
            "{error}"
        );
    }
    let error = Gpu::open_blocking(Options { adapter: Some(0), ..Options::default() }).err().expect("it takes a backend");
    assert_eq!(error.code(), "invalid_option");
}

#[test]
fn a_selector_takes_hardware_or_says_what_each_device_lacks() {
    let hardware = |info: &DeviceInfo| !matches!(info.kind, DeviceKind::Cpu | DeviceKind::Software);
    match Gpu::select_blocking(&Selector::default()).map_err(|error| *error) {
        Ok(gpu) => assert!(hardware(&gpu.info().unwrap())),
        Err(Error::NoDevice { refused }) => {
            let seen = |backend| refused.iter().any(|refused| refused.backend == backend && !refused.reason.is_empty());
            assert!(BackendId::ALL.iter().all(|&backend| seen(backend)), "{refused:?}");
        }
        Err(error) => panic!("{error}"),
    }
    let any = Selector { allow_cpu: true, backends: vec![BackendId::WebGl2, BackendId::Simd], ..Selector::default() };
    assert_eq!(Gpu::select_blocking(&any).unwrap().info().unwrap().backend, BackendId::Simd);
    let impossible = Selector { features: vec!["warp drive".to_owned()], ..any.clone() };
    let error = Gpu::select_blocking(&impossible).err().unwrap();
    assert!(error.code() == "no_device" && error.to_string().contains("it lacks warp drive"), "{error}");
    for options in [Options::only(BackendId::Simd), Options { adapter: Some(0), ..Options::default() }] {
        let both = Selector { options, ..any.clone() };
        assert_eq!(Gpu::select_blocking(&both).err().unwrap().code(), "invalid_option", "{both:?}");
    }
    let nothing = Selector { backends: Vec::new(), ..Selector::default() };
    assert_eq!(Gpu::select_blocking(&nothing).err().unwrap().to_string(), "no device fits: no backend was to be looked at");
}

#[test]
fn cuda_without_a_driver_says_so_and_auto_goes_on() {
    match Gpu::open_blocking(Options::only(BackendId::Cuda)) {
        Ok(gpu) => assert_eq!(gpu.info().unwrap().backend, BackendId::Cuda),
        Err(error) => {
            let Error::Unavailable { backend, reason, remedy } = *error else { panic!("{error}") };
            assert_eq!(backend, BackendId::Cuda);
            assert!(!reason.is_empty() && (!remedy.is_empty() || cfg!(target_os = "macos")), "{reason}; {remedy}");
            let info = Gpu::open_blocking(Options::default()).unwrap().info().unwrap();
            let other = info.others.iter().find(|other| other.backend == BackendId::Cuda).expect("it was tried");
            assert_eq!((other.state, &other.reason), (BackendState::Off, &reason));
        }
    }
}

#[test]
fn auto_prefers_a_software_gpu_only_if_it_is_faster() {
    let gpu = lapidary::default_gpu().unwrap();
    let info = gpu.info().unwrap();
    let place = |backend| BackendId::ALL.iter().position(|&id| id == backend);
    for other in info.others.iter().filter(|other| other.backend.is_gpu()) {
        match other.state {
            // It was there, it was software, and it lost the race.
            BackendState::Available => assert!(other.reason.contains("MFLOP/s"), "{}", other.reason),
            BackendState::Untried => assert!(place(other.backend) > place(info.backend), "{} passed over", other.backend),
            _ => assert!(!other.reason.is_empty()),
        }
    }
}

#[test]
fn a_benchmark_gives_times() {
    let gpu = cpu();
    let values = random::matrix(64 * 64, 1);
    for (samples, min_ms, option) in [(0, 5.0, "samples"), (5, -1.0, "min_ms"), (5, f64::NAN, "min_ms")] {
        let error = gpu.benchmark_blocking(&values, &values, &Matmul::new(64, 64, 64), samples, min_ms).unwrap_err();
        assert!(error.code() == "invalid_option" && error.to_string().contains(option), "{error}");
    }
    let done = gpu.benchmark_blocking(&values, &values, &Matmul::new(64, 64, 64), 5, 5.0).unwrap();
    assert_eq!((done.samples_ms.len(), done.backend), (5, BackendId::Simd));
    // What holds up the shorter of two runs makes a sample of nothing, but not five times over.
    assert!(done.samples_ms.iter().any(|&ms| ms > 0.0), "{:?}", done.samples_ms);
}

#[test]
fn batches_have_the_shapes_that_numpy_gives_them() {
    let shape = |a: &[u64], b: &[u64]| Matmul::of(a, b).map(|op| op.shape().unwrap()).map_err(|error| error.to_string());
    assert_eq!(shape(&[2, 3], &[3, 4]), Ok(vec![2, 4]));
    assert_eq!(shape(&[7, 1, 2, 3], &[5, 3, 4]), Ok(vec![7, 5, 2, 4]));
    assert_eq!(shape(&[3], &[3, 4]), Ok(vec![4]));
    assert_eq!(shape(&[6, 2, 3], &[3]), Ok(vec![6, 2]));
    assert_eq!(shape(&[3], &[3]), Ok(vec![]));
    assert!(shape(&[2, 3], &[4, 5]).unwrap_err().contains("the shape of b is [4, 5], but it must be one of 3 rows, since a is [2, 3]"));
    assert!(shape(&[2, 2, 3], &[5, 3, 4]).unwrap_err().contains("the batch of b is [5], but it must be one that goes with [2] of a"));
    assert!(shape(&[], &[3]).unwrap_err().contains("the shape of a is []"));
    for gpu in all() {
        let values = random::matrix(2 * 3 * 4 * 5, 1);
        let a = gpu.tensor_blocking(&values, 6, 20).unwrap().reshape(&[2, 3, 4, 5]).unwrap();
        assert_eq!((a.shape(), a.rows(), a.columns()), (&[2, 3, 4, 5][..], 24, 5));
        let x = gpu.tensor_blocking(&[1.0, 2.0, 3.0, 4.0, 5.0], 5, 1).unwrap().reshape(&[5]).unwrap();
        let kept = gpu.matmul_tensor_blocking(&a, &x, &Matmul::of(a.shape(), x.shape()).unwrap()).unwrap();
        assert_eq!(kept.shape(), [2, 3, 4]);
        let expected = gpu.matmul_blocking(&values, &x, &Matmul::new(24, 5, 1)).unwrap();
        assert_eq!(kept.to_vec_blocking().unwrap(), expected);
        let error = a.reshape(&[7, 3]).unwrap_err().to_string();
        assert_eq!(error, "the tensor has 120 elements, but 7 · 3 = 21 are needed");
        drop(a);
        assert_eq!(kept.reshape(&[24]).unwrap().to_vec_blocking().unwrap(), expected);
    }
}

#[test]
fn lengths_of_batches_are_told_with_their_numbers() {
    let gpu = cpu();
    let (a, b) = ([1.0; 12], [1.0; 6]);
    let said = |op: Matmul<'_>| gpu.matmul_blocking(&a, &b, &op).unwrap_err().to_string();
    let op = |count| Matmul::new(2, 3, 2).batch(count);
    assert_eq!(said(op(2)), "b has 6 elements, but 2 · 3 · 2 = 12 are needed");
    assert_eq!(said(op(3).stride_b(0)), "a has 12 elements, but 3 · 2 · 3 = 18 are needed");
    assert_eq!(said(op(2).stride_a(7).stride_b(0)), "a has 12 elements, but at least 7 + (2 - 1) · 3 + 3 = 13 are needed");
    assert_eq!(gpu.matmul_blocking(&a, &b, &op(2).stride_b(0)).unwrap(), [3.0; 8]);
    assert_eq!(gpu.matmul_blocking(&a, &b, &op(2).stride_b(0).stride_a(1)).unwrap(), [3.0; 8]);
    assert_eq!(gpu.matmul_blocking(&[0.0; 0], &[0.0; 0], &op(0)).unwrap(), [0.0; 0]);
    let error = gpu.matmul_blocking(&a, &b, &op(1 << 33).stride_a(0).stride_b(0)).unwrap_err();
    assert_eq!(error.code(), "invalid_dimension");
    let error = gpu.matmul_blocking(&a, &b, &op(1 << 31).stride_a(0).stride_b(0)).unwrap_err();
    assert_eq!(error.code(), "limit_exceeded");
}

#[test]
fn a_bias_and_an_activation_follow_the_sum() {
    for gpu in all() {
        let (a, b) = ([1.0, 2.0, -3.0, -4.0], [1.0, 0.0, 0.0, 1.0]);
        let op = Matmul::new(2, 2, 2).plus(1.0, &[10.0, 0.0, 0.0, 0.0]).bias(&[-2.0, 3.0]);
        assert_eq!(gpu.matmul_blocking(&a, &b, &op).unwrap(), [9.0, 5.0, -5.0, -1.0]);
        let op = op.activation(Activation::Relu);
        assert_eq!(gpu.matmul_blocking(&a, &b, &op).unwrap(), [9.0, 5.0, 0.0, 0.0]);
        for &activation in Activation::ALL {
            let nan = gpu.matmul_blocking(&[f32::NAN], &[1.0], &Matmul::new(1, 1, 1).activation(activation)).unwrap();
            assert!(nan[0].is_nan(), "{activation:?}: {nan:?}");
        }
        let far = Matmul::new(1, 1, 1).activation(Activation::Sigmoid);
        assert_eq!(gpu.matmul_blocking(&[-1e30], &[1.0], &far).unwrap(), [0.0]);
        assert_eq!(gpu.matmul_blocking(&[1e30], &[1.0], &far).unwrap(), [1.0]);
        // All of it on the device.
        let of = |values: &[f32], columns: u64| gpu.tensor_blocking(values, values.len() as u64 / columns, columns).unwrap();
        let (x, y, c, bias) = (of(&a, 2), of(&b, 2), of(&[10.0, 0.0, 0.0, 0.0], 2), of(&[-2.0, 3.0], 2));
        let op = Matmul::new(2, 2, 2).plus(1.0, &c).bias(&bias).activation(Activation::Relu);
        let kept = gpu.matmul_tensor_blocking(&x, &y, &op).unwrap();
        let again = gpu.matmul_tensor_blocking(&kept, &y, &op).unwrap();
        assert_eq!(kept.to_vec_blocking().unwrap(), [9.0, 5.0, 0.0, 0.0]);
        assert_eq!(again.to_vec_blocking().unwrap(), [17.0, 8.0, 0.0, 3.0]);
        let error = gpu.matmul_blocking(&a, &b, &Matmul::new(2, 2, 2).bias(&[1.0])).unwrap_err();
        assert_eq!(error.to_string(), "bias has 1 elements, but n = 2 are needed");
    }
}

#[test]
fn what_is_not_a_number_with_a_fraction_is_no_matrix() {
    let gpu = cpu();
    let (a, b) = ([1i32, 2, 3, 4], [true, false, true, true]);
    let op = Matmul::new(2, 2, 2);
    let refused = [gpu.matmul_blocking(&a, &a, &op), gpu.matmul_blocking(&b, &b, &op)];
    for (refused, found) in refused.into_iter().zip(["of i32", "of bool"]) {
        let error = refused.unwrap_err();
        assert!(matches!(&*error, Error::InvalidType { argument, .. } if argument == "a"), "{error}");
        assert!(error.to_string().ends_with(found), "{error}");
    }
}
