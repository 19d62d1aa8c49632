//! In a real browser: every backend computes every case right. A backend that is wanted and is not there is a failure.
//!
//! `scripts/test web` runs this in headless Chrome; WebGPU and WebGL2 are real ones there, in software.
#![cfg(target_arch = "wasm32")]

mod bounds;
mod cases;
#[path = "onnx/mod.rs"]
mod onnx;
#[path = "trials/mod.rs"]
mod trials;

use std::collections::BTreeMap;

use bounds::Bound;
use half::f16;
use js_sys::{ArrayBuffer, Uint8Array};
use lapidary::{BackendId, DType, Element, Error, Expr, Gpu, HostVec, Matmul, Options, random};
use onnx::{Case, Report, Set};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::{console_log, wasm_bindgen_test, wasm_bindgen_test_configure};

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

#[wasm_bindgen]
extern "C" {
    type Response;
    #[wasm_bindgen(catch)]
    async fn fetch(url: &str) -> Result<Response, JsValue>;
    #[wasm_bindgen(method, getter)]
    fn status(this: &Response) -> u16;
    #[wasm_bindgen(method, catch, js_name = arrayBuffer)]
    async fn array_buffer(this: &Response) -> Result<ArrayBuffer, JsValue>;
}

/// ONNX's cases, all of whose files `web.mjs` gives in one: each a path and a content, both behind their length in bytes. None if it has none.
async fn cases_of_onnx() -> Option<Vec<Case>> {
    let response = fetch("/onnx-cases").await.expect("the page's server answers");
    if response.status() == 404 {
        return None;
    }
    assert_eq!(response.status(), 200, "the cases are required, and web.mjs has none: run scripts/onnx");
    let bytes = Uint8Array::new(&response.array_buffer().await.expect("the cases arrive")).to_vec();
    let mut rest = &bytes[..];
    let mut next = || {
        let (length, behind) = rest.split_first_chunk()?;
        let (content, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        rest = behind;
        Some(content)
    };
    let mut files = BTreeMap::<String, (Vec<u8>, BTreeMap<String, Set>)>::new();
    while let (Some(path), Some(content)) = (next(), next()) {
        let path = std::str::from_utf8(path).expect("a path is text");
        let (model, sets) = files.entry(path.split('/').next().expect("a case").to_owned()).or_default();
        match path.split('/').collect::<Vec<_>>()[..] {
            [_, "model.onnx"] => *model = content.to_vec(),
            [_, set, file] => drop(sets.entry(set.to_owned()).or_default().insert(file.to_owned(), content.to_vec())),
            _ => {}
        }
    }
    Some(files.into_iter().filter_map(|(name, (model, sets))| Case::new(name, &model, sets.into_values().collect())).collect())
}

async fn every_case_of_onnx_on(backend: BackendId) {
    let Some(cases) = cases_of_onnx().await else { return console_log!("ONNX's cases are skipped on {backend}: run scripts/onnx") };
    let report = Report::of(&open(backend).await, &cases).await;
    // These words are what web.mjs prints of all that is said.
    console_log!("ONNX's cases on {backend}\n{report}");
    assert!(report.failed.is_empty(), "{} failed on {backend}:\n{}", report.failed.len(), report.failed.join("\n"));
    assert!(report.passed > 0, "no case passed on {backend}");
}

#[wasm_bindgen_test]
async fn every_case_of_onnx_on_webgpu() {
    every_case_of_onnx_on(BackendId::WebGpu).await;
}

#[wasm_bindgen_test]
async fn every_case_of_onnx_on_webgl2() {
    every_case_of_onnx_on(BackendId::WebGl2).await;
}

#[wasm_bindgen_test]
async fn every_case_of_onnx_on_simd() {
    every_case_of_onnx_on(BackendId::Simd).await;
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

/// Of NaN and the infinities as well, of which drivers have numbers.
#[wasm_bindgen_test]
async fn functions_at_the_edges() {
    type Row = (&'static str, fn(&Expr) -> Expr, fn(f64) -> f64);
    const ROWS: [Row; 11] = [
        ("exp", Expr::exp, f64::exp),
        ("log", Expr::log, f64::ln),
        ("sigmoid", Expr::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ("softplus", Expr::softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p() + 0.0 * if x.is_nan() { x } else { 0.0 }),
        ("sinh", Expr::sinh, f64::sinh),
        ("cosh", Expr::cosh, f64::cosh),
        ("tanh", Expr::tanh, f64::tanh),
        ("asinh", Expr::asinh, f64::asinh),
        ("acosh", Expr::acosh, f64::acosh),
        ("atanh", Expr::atanh, f64::atanh),
        ("sqrt", Expr::sqrt, f64::sqrt),
    ];
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -2.0, -1.0, -0.0, 0.0, 0.999, 1.0, 1.001, 2.0];
    for &backend in BackendId::ALL {
        let gpu = open(backend).await;
        let x = Expr::from(&gpu.tensor(&values, 1, values.len() as u64).await.unwrap());
        for (name, make, exact) in ROWS {
            let got = gpu.evaluate(&make(&x)).await.unwrap().to_host().await.unwrap().into_vec();
            for (got, value) in got.into_iter().zip(values) {
                let (got, expected) = (f64::from(got), exact(value.into()));
                let same = got == expected || (got.is_nan() && expected.is_nan()) || (got - expected).abs() <= 1e-5 * expected.abs();
                assert!(same, "{name} of {value} on {backend} is {got}, not {expected}");
            }
        }
    }
}

/// A row and a column with an infinity, whatever takes part in them.
#[wasm_bindgen_test]
async fn variances_of_infinities() {
    for &backend in BackendId::ALL {
        let gpu = open(backend).await;
        for n in [1u64, 3, 100, 5000, 70_000] {
            let mut values = random::matrix(n as usize, 1);
            values[n as usize / 2] = f32::INFINITY;
            for shape in [[1, n], [n, 1]] {
                let x = Expr::from(&gpu.tensor(&values, shape[0], shape[1]).await.unwrap());
                for (what, made) in
                    [("var", x.var(None, false, 0.0)), ("std", x.std(Some(&[if shape[0] == 1 { 1 } else { 0 }]), true, 0.0))]
                {
                    let got = gpu.evaluate(&made).await.unwrap().to_host().await.unwrap().into_vec();
                    assert!(got.iter().all(|value| value.is_nan()), "{what} of {shape:?} on {backend} is {got:?}");
                }
            }
        }
    }
}

/// As many as `LAPIDARY_TRIALS` said when this was compiled.
#[wasm_bindgen_test]
async fn expressions_at_random() {
    let count = option_env!("LAPIDARY_TRIALS").map_or(20, |count| count.parse().expect("a number"));
    let by_steps = trials::by_steps(count).await;
    for backend in [BackendId::WebGpu, BackendId::WebGl2, BackendId::Simd] {
        trials::check(&open(backend).await, &by_steps).await;
    }
}

/// Each type goes to a device and comes back as it was, and its numbers are those of f32.
#[wasm_bindgen_test]
async fn elements_of_every_type() {
    async fn there_and_back<E: Element + Copy + PartialEq + std::fmt::Debug>(gpu: &Gpu, values: &[E], numbers: &[f32]) {
        let what = format!("{} on {}", E::DTYPE, gpu.info().unwrap().backend);
        let tensor = gpu.tensor(values, 1, values.len() as u64).await.unwrap();
        let host = tensor.to_host().await.unwrap();
        assert_eq!((tensor.dtype(), host.dtype(), host.len()), (E::DTYPE, E::DTYPE, values.len() as u64), "{what}");
        assert_eq!(host, HostVec::from(values.to_vec()), "{what}");
        assert_eq!(host.clone().into_vec(), numbers, "{what}");
        assert_eq!(host.clone().into_f16(), numbers.iter().copied().map(f16::from_f32).collect::<Vec<_>>(), "{what}");
        let other = if E::DTYPE == DType::Bool { host.clone().into_typed::<u32>().err() } else { host.clone().into_typed::<bool>().err() };
        assert_eq!(other.expect("of another type").code(), "invalid_type", "{what}");
        assert_eq!(host.into_typed::<E>().unwrap(), values, "{what}");
    }
    for &backend in BackendId::ALL {
        let gpu = open(backend).await;
        there_and_back(&gpu, &[1.5f32, -0.0, f32::INFINITY], &[1.5, -0.0, f32::INFINITY]).await;
        there_and_back(&gpu, &[1.5, -2.0, 65504.0].map(f16::from_f32), &[1.5, -2.0, 65504.0]).await;
        there_and_back(&gpu, &[i32::MIN, -1, 7], &[-2_147_483_648.0, -1.0, 7.0]).await;
        there_and_back(&gpu, &[u32::MAX, 0, 7], &[4_294_967_296.0, 0.0, 7.0]).await;
        there_and_back(&gpu, &[true, false, true], &[1.0, 0.0, 1.0]).await;
        there_and_back(&gpu, &[-128i8, 0, 127], &[-128.0, 0.0, 127.0]).await;
        there_and_back(&gpu, &[255u8, 0, 127], &[255.0, 0.0, 127.0]).await;
        there_and_back::<i32>(&gpu, &[], &[]).await;
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
