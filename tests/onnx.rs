//! ONNX's own test cases of operators, on every native backend that is there; `web.rs` has those of the browser.
//!
//! `scripts/onnx` fetches the cases; without them there is nothing to run, which is said.
#![cfg(not(target_arch = "wasm32"))]

mod bounds;
mod devices;
#[path = "onnx/mod.rs"]
mod onnx;

use std::path::{Path, PathBuf};

use lapidary::{BackendId, Options};
use onnx::{Case, Report, Set};

/// Of ONNX, as in `scripts/onnx`.
const VERSION: &str = "1.22.0";

/// There are some 1,700 cases: where there are fewer than these, most were lost.
const FEWEST: usize = 1000;

/// Where the cases are: `LAPIDARY_ONNX_CASES`, else where `scripts/onnx` has put them.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("LAPIDARY_ONNX_CASES").map(PathBuf::from);
    let is_named = named.is_some();
    let folder = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("target/onnx-cases-{VERSION}")));
    if folder.is_dir() {
        // A folder of one's own may hold what one likes.
        let count = std::fs::read_dir(&folder).expect("a folder can be read").count();
        assert!(is_named || count >= FEWEST, "there are only {count} cases in {}: remove it and run scripts/onnx", folder.display());
        return Some(folder);
    }
    assert!(!devices::is_required("onnx"), "there are no cases in {}: run scripts/onnx", folder.display());
    eprintln!("skipped: there are no cases in {}: run scripts/onnx", folder.display());
    None
}

/// What is in a folder, by its paths.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).expect("a folder can be read").map(|entry| entry.expect("an entry can be read").path())
}

fn name_of(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

fn cases() -> Vec<Case> {
    let Some(folder) = folder() else { return Vec::new() };
    let set =
        |path: PathBuf| entries(&path).map(|file| (name_of(&file), std::fs::read(&file).expect("a file can be read"))).collect::<Set>();
    let case = |path: PathBuf| {
        let model = std::fs::read(path.join("model.onnx")).ok()?;
        Case::new(name_of(&path), &model, entries(&path).filter(|path| path.is_dir()).map(set).collect())
    };
    let mut cases: Vec<_> = entries(&folder).filter_map(case).collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

fn every_case_on(backend: BackendId, vendor_libraries: bool) {
    let Some(gpu) = devices::open(Options { vendor_libraries, ..Options::only(backend) }) else { return };
    let only = std::env::var("LAPIDARY_ONNX_ONLY").unwrap_or_default();
    let cases: Vec<_> = cases().into_iter().filter(|case| case.name.contains(&only)).collect();
    let report = pollster::block_on(Report::of(&gpu, &cases));
    println!("on {backend}\n{report}");
    assert!(report.failed.is_empty(), "{} cases failed on {backend}", report.failed.len());
    assert!(report.passed > 0 || report.skipped() == 0 && only.is_empty(), "no case passed on {backend}");
}

macro_rules! backends {
    ($($test:ident: $backend:ident, $vendor_libraries:literal;)+) => { $(
        #[test]
        fn $test() {
            every_case_on(BackendId::$backend, $vendor_libraries);
        }
    )+ };
}

backends! {
    every_case_of_onnx_on_the_cpu: Simd, true;
    every_case_of_onnx_on_the_plain_cpu: Scalar, true;
    every_case_of_onnx_on_cuda: Cuda, true;
    every_case_of_onnx_on_cuda_by_own_kernels: Cuda, false;
    every_case_of_onnx_on_vulkan: Vulkan, true;
    every_case_of_onnx_on_webgpu: WebGpu, true;
}
