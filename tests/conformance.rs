//! Every backend of this machine computes every case right.
//!
//! One that is not there is skipped by name; with `LAPIDARY_REQUIRE=webgpu,simd` that is a failure.
#![cfg(not(target_arch = "wasm32"))]

mod cases;
mod devices;

use cases::{Case, Values};
use devices::open;
use lapidary::{BackendId, DType, Gpu, Matmul, Options, Precision, random};

/// Multiplications of a case that takes seconds with all types on all backends.
const LONG: usize = 10_000_000;

/// Every case where operands, result or both are f16, but for values past its range. What takes long takes the types in turn: they change what a
/// kernel loads and stores, and the many small cases have each of them.
fn all_f16() -> Vec<Case> {
    let types = [(DType::F16, DType::F32), (DType::F16, DType::F16), (DType::F32, DType::F16)];
    let mut long = 0;
    let with = |case: Case| {
        let is_long = case.multiplications() > LONG;
        long += usize::from(is_long);
        let of_types = types.iter().enumerate().filter(move |(i, _)| !is_long || long % types.len() == *i);
        of_types.map(|(_, &(dtype, result))| Case { dtype, result, ..case }).collect::<Vec<_>>()
    };
    cases::all().into_iter().filter(|case| case.values != Values::IllScaled).flat_map(with).collect()
}

fn every_case_on(backend: BackendId) {
    every_case_with(Options::only(backend));
}

fn every_case_with(options: Options) {
    every_one_of(&cases::all(), options);
}

fn every_one_of(cases: &[Case], options: Options) {
    let Some(gpu) = open(options) else { return };
    every_one_on(&for_device(cases, &gpu), &[&gpu]);
}

/// Those that a device takes: all, or of wgpu's with a GPU that a CPU emulates every third. Its kernels, which are seconds in compiling there, are those of
/// Vulkan and of WebGPU in a browser, and both take all.
fn for_device(cases: &[Case], gpu: &Gpu) -> Vec<Case> {
    let info = gpu.info().expect("an open handle has a device");
    let step = if info.backend == BackendId::WebGpu && info.is_software() { 3 } else { 1 };
    cases.iter().step_by(step).cloned().collect()
}

fn every_one_on(cases: &[Case], gpus: &[&Gpu]) {
    let failures: Vec<String> = cases.iter().filter_map(|case| pollster::block_on(case.check_on(gpus)).err()).collect();
    assert!(failures.is_empty(), "{} wrong:\n{}", failures.len(), failures.join("\n"));
}

/// Products in two terms where there are matrix units; elsewhere they are refused.
fn every_split_case_on(backend: BackendId) {
    let Some(gpu) = open(Options::only(backend)) else { return };
    let cases = cases::split();
    let has_units = gpu.info().expect("an open handle has a device").caps.matrix_unit.is_some();
    if has_units {
        let a = vec![1.0; 1024 * 1024];
        let op = Matmul::new(1024, 1024, 1024).precision(Precision::F16x3);
        let report = gpu.matmul_report_blocking(&a, &a, &op).expect("it has units");
        assert!(report.kernel.starts_with("matmul/cooperative f16x3"), "{}", report.kernel);
        return every_one_of(&cases, Options::only(backend));
    }
    eprintln!("skipped f16x3 on {backend}: no matrix units for it");
    let error = pollster::block_on(cases[0].check(&gpu)).expect_err("it has no units");
    assert!(error.contains("precision is f16x3, but") && error.contains("VK_KHR_cooperative_matrix"), "{error}");
}

/// The root mean square error of a product beside its exact value, of rows and columns that are so far apart.
fn error_of(c: &[f32], [a, b]: [&[f32]; 2], [m, k, n]: [usize; 3]) -> f64 {
    let (mut squares, mut count) = (0.0, 0);
    for (i, j) in (0..m).step_by(61).flat_map(|i| (0..n).step_by(37).map(move |j| (i, j))) {
        let exact: f64 = (0..k).map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j])).sum();
        squares += (f64::from(c[i * n + j]) - exact).powi(2);
        count += 1;
    }
    (squares / f64::from(count)).sqrt()
}

/// `cargo test --test conformance two_terms -- --nocapture` prints how much.
#[test]
fn two_terms_are_no_less_exact_than_f32_where_there_are_units() {
    for backend in [BackendId::Cuda, BackendId::Vulkan] {
        let Some(gpu) = open(Options::only(backend)) else { continue };
        if gpu.info().expect("an open handle has a device").caps.matrix_unit.is_none() {
            eprintln!("skipped the errors of f16x3 on {backend}: no matrix units for it");
            continue;
        }
        for [m, k, n] in
            [[2048, 512, 1024], [961, 1000, 1023], [1024, 1024, 1024], [1536, 1536, 1536], [2048, 2048, 2048], [1024, 4096, 1024]]
        {
            for is_positive in [false, true] {
                let values = |count, seed| -> Vec<f32> {
                    let of_both = random::matrix(count, seed);
                    if is_positive { of_both.into_iter().map(f32::abs).collect() } else { of_both }
                };
                let (a, b) = (values(m * k, 1), values(k * n, 2));
                let errors = [Precision::F16x3, Precision::F32].map(|precision| {
                    let op = Matmul::new(m as u64, k as u64, n as u64).precision(precision);
                    let report = gpu.matmul_report_blocking(&a, &b, &op).expect("it is computed");
                    assert_eq!(report.kernel.contains("f16x3"), precision == Precision::F16x3, "{m}x{k}x{n} by {}", report.kernel);
                    error_of(&report.data, [&a, &b], [m, k, n])
                });
                let ratio = errors[0] / errors[1];
                eprintln!(
                    "{backend} {m}x{k}x{n}, terms of {}: {ratio:.2} of f32's error",
                    if is_positive { "one sign" } else { "both signs" }
                );
                assert!(ratio <= 1.0, "{ratio}");
            }
        }
    }
}

#[test]
fn every_split_case() {
    for backend in [BackendId::Cuda, BackendId::Vulkan, BackendId::WebGpu, BackendId::Simd, BackendId::Scalar] {
        every_split_case_on(backend);
    }
}

#[test]
fn what_is_more_than_whole_tiles() {
    let gpus: Vec<_> = [BackendId::Cuda, BackendId::Vulkan, BackendId::WebGpu].map(Options::only).into_iter().filter_map(open).collect();
    every_one_on(&cases::edges(), &gpus.iter().collect::<Vec<_>>());
}

#[test]
fn every_case_on_cuda() {
    every_case_on(BackendId::Cuda);
}

#[test]
fn every_case_on_cuda_by_own_kernels() {
    let options = Options { vendor_libraries: false, ..Options::only(BackendId::Cuda) };
    if let Some(gpu) = open(options.clone()) {
        let report = gpu.matmul_report_blocking(&[2.0], &[3.0], &Matmul::new(1, 1, 1)).expect("a small product");
        assert_eq!(report.kernel, "matmul/vector f32-along-1");
        let ones = vec![1.0; 1 << 15];
        let long = gpu.matmul_report_blocking(&ones, &ones, &Matmul::new(1, 1 << 15, 1)).expect("a small product");
        assert!(long.kernel.contains(", k in ") && *long.data == [32_768.0], "{}", long.kernel);
    }
    every_case_with(options);
}

#[test]
fn every_case_on_vulkan() {
    every_case_on(BackendId::Vulkan);
}

#[test]
fn every_case_on_webgpu() {
    every_case_on(BackendId::WebGpu);
}

#[test]
fn every_case_on_simd() {
    every_case_on(BackendId::Simd);
}

#[test]
fn every_case_on_scalar() {
    every_case_on(BackendId::Scalar);
}

#[test]
fn every_f16_case_on_simd() {
    every_one_of(&all_f16(), Options::only(BackendId::Simd));
}

#[test]
fn every_f16_case_on_scalar() {
    every_one_of(&all_f16(), Options::only(BackendId::Scalar));
}

#[test]
fn every_f16_case_on_vulkan() {
    every_one_of(&all_f16(), Options::only(BackendId::Vulkan));
}

#[test]
fn every_f16_case_on_webgpu() {
    every_one_of(&all_f16(), Options::only(BackendId::WebGpu));
}

#[test]
fn every_f16_case_on_cuda() {
    every_one_of(&all_f16(), Options::only(BackendId::Cuda));
}

#[test]
fn every_f16_case_on_cuda_by_own_kernels() {
    every_one_of(&all_f16(), Options { vendor_libraries: false, ..Options::only(BackendId::Cuda) });
}
