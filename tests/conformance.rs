//! Every backend of this machine computes every case right.
//!
//! `LAPIDARY_REQUIRE=webgpu,simd` makes a backend that is missing, or that another stood in for, a failure; otherwise it is reported as
//! skipped by name.
#![cfg(not(target_arch = "wasm32"))]

mod cases;

use lapidary::{BackendId, Error, Gpu, Options};

fn open(backend: BackendId) -> Option<Gpu> {
    let required = std::env::var("LAPIDARY_REQUIRE").unwrap_or_default();
    match Gpu::open_blocking(Options::only(backend)) {
        Ok(gpu) => {
            let info = gpu.info().expect("an open handle has a device");
            assert_eq!(info.backend, backend, "another backend stood in");
            Some(gpu)
        }
        Err(error) if matches!(*error, Error::Unavailable { .. }) => {
            assert!(required.split(',').all(|name| name != backend.name()), "required: {error}");
            eprintln!("skipped {backend}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn every_case_on(backend: BackendId) {
    let Some(gpu) = open(backend) else { return };
    let failures: Vec<String> = cases::all().iter().filter_map(|case| pollster::block_on(case.check(&gpu)).err()).collect();
    assert!(failures.is_empty(), "{} wrong:\n{}", failures.len(), failures.join("\n"));
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
