//! The devices that tests run on.
//!
//! A backend that is not there is skipped, which is said by name. `LAPIDARY_REQUIRE=webgpu,simd` makes that a failure.
#![allow(dead_code, reason = "no test needs all of it")]

mod required;

use lapidary::{BackendId, Choice, Error, Gpu, Options};
pub use required::is_required;

/// A handle; None if its backend is not there.
pub fn open(options: Options) -> Option<Gpu> {
    let choice = options.backend;
    match Gpu::open_blocking(options) {
        Ok(gpu) => {
            let backend = gpu.info().expect("an open handle has a device").backend;
            assert!(!matches!(choice, Choice::Only(wanted) if wanted != backend), "{backend} stood in for another");
            Some(gpu)
        }
        Err(error) => {
            let Error::Unavailable { backend, .. } = &*error else { panic!("{error}") };
            assert!(!is_required(backend.name()), "required: {error}");
            eprintln!("skipped {backend}: {error}");
            None
        }
    }
}

/// A handle of each backend that is there.
pub fn all() -> Vec<Gpu> {
    all_with(&Options::default())
}

/// The same with other options.
pub fn all_with(options: &Options) -> Vec<Gpu> {
    let open = |&backend: &BackendId| open(Options { backend: Choice::Only(backend), ..options.clone() });
    BackendId::ALL.iter().filter_map(open).collect()
}

/// Does it on every backend; on CUDA also by what comes with the crate alone.
pub fn everywhere(test: impl Fn(&Gpu, BackendId)) {
    let alone = Options { vendor_libraries: false, ..Options::only(BackendId::Cuda) };
    for options in BackendId::ALL.iter().map(|&backend| Options::only(backend)).chain([alone]) {
        if let Some(gpu) = open(options) {
            test(&gpu, gpu.info().expect("an open handle has a device").backend);
        }
    }
}
