//! In a real browser: every backend computes every case right. A backend that is wanted and is not there is a failure.
//!
//! `scripts/test web` runs this in headless Chrome; WebGPU and WebGL2 are real ones there, in software.
#![cfg(target_arch = "wasm32")]

mod bounds;
mod cases;

use bounds::Bound;
use lapidary::{BackendId, Error, Expr, Gpu, Matmul, Options, random};
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

async fn open(backend: BackendId) -> Gpu {
    let gpu = Gpu::open(Options::only(backend)).await.expect("the browser of this test has every backend");
    assert_eq!(gpu.info().expect("an open handle").backend, backend, "another backend stood in");
    gpu
}

async fn every_case_on(backend: BackendId) {
    let gpu = open(backend).await;
    let mut failures = Vec::new();
    for case in cases::all() {
        failures.extend(case.check(&gpu).await.err());
    }
    assert!(failures.is_empty(), "{} wrong on {backend}:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(gpu.memory().expect("an open handle").used_bytes, 0, "every buffer came back");
}

#[wasm_bindgen_test]
async fn every_case_on_webgpu() {
    every_case_on(BackendId::WebGpu).await;
}

#[wasm_bindgen_test]
async fn every_case_on_webgl2() {
    every_case_on(BackendId::WebGl2).await;
}

#[wasm_bindgen_test]
async fn every_case_on_simd() {
    every_case_on(BackendId::Simd).await;
}

#[wasm_bindgen_test]
async fn every_case_on_scalar() {
    every_case_on(BackendId::Scalar).await;
}

/// What this browser is known to have is what runs.
#[wasm_bindgen_test]
async fn the_cpu_uses_the_best_kernel() {
    for (backend, kernel, features) in
        [(BackendId::Simd, "matmul/cpu fma", &["simd128", "relaxed-simd"][..]), (BackendId::Scalar, "matmul/cpu scalar", &[])]
    {
        let gpu = open(backend).await;
        let report = gpu.matmul_report(&[1.0; 6], &[1.0; 6], &Matmul::new(2, 3, 2)).await.unwrap();
        assert_eq!((report.kernel.as_str(), report.data), (kernel, vec![3.0; 4]));
        assert_eq!(gpu.info().unwrap().features, features);
    }
}

/// The whole way of a tensor, on each backend; on WebGL2 its form as a result and as an operand differ.
#[wasm_bindgen_test]
async fn tensors_chain() {
    for &backend in BackendId::ALL {
        let gpu = open(backend).await;
        let values = random::matrix(131 * 131, 1);
        let identity: Vec<f32> = (0..131 * 131).map(|i| f32::from(u8::from(i % 132 == 0))).collect();
        let op = Matmul::new(131, 131, 131);
        let (x, one) = (gpu.tensor(&values, 131, 131).await.unwrap(), gpu.tensor(&identity, 131, 131).await.unwrap());
        let y = gpu.matmul_tensor(&x, &one, &op).await.unwrap();
        let z = gpu.matmul_tensor(&one, &y, &op).await.unwrap();
        assert_eq!(z.to_host().await.unwrap().into_vec(), values, "{backend}");
    }
}

/// Functions, views, a reduction and a product, in one expression.
#[wasm_bindgen_test]
async fn expressions() {
    for &backend in BackendId::ALL {
        let gpu = open(backend).await;
        let values: Vec<f32> = (0..42).map(|i| (i % 11 - 5) as f32).collect();
        let x = gpu.tensor(&values, 6, 7).await.unwrap();
        let turned = (Expr::from(&x) * 0.5 + 1.0).relu().transpose(None);
        let got = gpu.evaluate(&turned.slice(0, -1, -8, -2)).await.unwrap();
        let right = |row: usize, column: usize| (values[row * 7 + column] * 0.5 + 1.0).max(0.0);
        let expected: Vec<f32> = (0..4 * 6).map(|i| right(i % 6, 6 - i / 6 * 2)).collect();
        assert_eq!((got.shape(), got.to_host().await.unwrap().into_vec()), (&[4, 6][..], expected), "{backend}");
        let sums = turned.matmul(&x).sum(Some(&[1]), false);
        let row_sum = |row: usize| values[row * 7..][..7].iter().sum::<f32>();
        let expected: Vec<f32> = (0..7).map(|column| (0..6).map(|row| right(row, column) * row_sum(row)).sum()).collect();
        assert_eq!(gpu.evaluate(&sums).await.unwrap().to_host().await.unwrap().into_vec(), expected, "{backend}");
    }
}

/// Softmax, a norm and Fourier transforms of lengths with small factors, of a large prime one and of twice that, against the same in f64.
#[wasm_bindgen_test]
async fn norms_and_transforms() {
    for &backend in BackendId::ALL {
        let gpu = open(backend).await;
        for n in [12usize, 37, 74, 128] {
            let values = random::matrix(2 * n, n as u64);
            let tensor = gpu.tensor(&values, n as u64, 2).await.unwrap();
            let x = Expr::from(&tensor);
            let gpu = &gpu;
            let got = |expr: Expr| async move { gpu.evaluate(&expr).await.unwrap().to_host().await.unwrap().into_vec() };
            let near = |got: &[f32], exact: &dyn Fn(usize) -> f64, bound: Bound| {
                bound.check(got, &(0..2 * n).map(exact).collect::<Vec<_>>(), &format!("{backend} of {n}"));
            };
            let value = |place: usize| f64::from(values[place]);
            let column = |place: usize| (0..n).map(move |row| value(2 * row + place % 2));
            let softmax = |place: usize| value(place).exp() / column(place).map(f64::exp).sum::<f64>();
            near(&got(x.softmax(0)).await, &softmax, bounds::SOFTMAX);
            let root = |place: usize| (column(place).map(|x| x * x).sum::<f64>() / n as f64 + 1e-5).sqrt();
            near(&got(x.rms_norm(&[0], None, 1e-5)).await, &|place| value(place) / root(place), bounds::RMS_NORM);
            let sum = |place: usize| {
                let term = |i: usize| {
                    let (sin, cos) = (std::f64::consts::TAU * ((i * (place / 2)) % n) as f64 / n as f64).sin_cos();
                    let (re, im) = (value(2 * i), value(2 * i + 1));
                    if place.is_multiple_of(2) { re * cos + im * sin } else { im * cos - re * sin }
                };
                (0..n).map(term).sum()
            };
            // Of numbers up to 1 the transform's are about as large as the root of how many they are.
            let of = |n: usize, magnitude: f64| Bound { relative: 0.0, absolute: bounds::fft(n) * magnitude };
            near(&got(x.fft(-1, None)).await, &sum, of(n, (n as f64).sqrt()));
            near(&got(x.fft(-1, None).ifft(-1, None)).await, &value, of(n * n, 1.0));
        }
    }
}

#[wasm_bindgen_test]
async fn software_is_named_and_auto_says_why() {
    let info = open(BackendId::WebGpu).await.info().unwrap();
    assert!(info.is_software(), "this test's WebGPU is SwiftShader, which must be named as software: {info:?}");
    let auto = Gpu::open(Options::default()).await.unwrap().info().unwrap();
    assert_eq!(auto.others.len(), 3, "{auto:?}");
    if auto.backend == BackendId::Simd {
        assert!(auto.others.iter().any(|other| other.backend == BackendId::WebGpu && other.reason.contains("MFLOP/s")), "{auto:?}");
    }
}

#[wasm_bindgen_test]
async fn bad_lengths_reach_no_device() {
    for &backend in BackendId::ALL {
        let gpu = open(backend).await;
        let error = gpu.matmul(&[0.0; 5], &[0.0; 6], &Matmul::new(2, 3, 2)).await.unwrap_err();
        assert_eq!(*error, Error::LengthMismatch { argument: "a", length: 5, expected: 6, formula: "2 · 3".to_owned() });
        assert_eq!(gpu.matmul(&[1.0; 6], &[1.0; 6], &Matmul::new(2, 3, 2)).await.unwrap(), [3.0; 4]);
    }
}
