//! The libraries that CUDA consists of, none of which has to be there. cudarc panics where one is missing or lacks a function, so all that
//! is called is looked up here first.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys::{self, CUresult};
use libloading::Library;

use super::driver::check;

/// CUDA 12.2: drivers from 535 on. The kernels are compiled for it.
const OLDEST_DRIVER: i32 = 12_020;

/// Every function of the driver that this backend calls; a test compares the list with the source.
pub(super) const DRIVER_FUNCTIONS: [&str; 39] = [
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetPCIBusId",
    "cuDeviceGetUuid_v2",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAllocHost_v2",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemcpyAsync",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuModuleGetFunction",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// The same of cuBLASLt.
pub(super) const CUBLASLT_FUNCTIONS: [&str; 13] = [
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutSetAttribute",
];

/// Why a library cannot be used, and what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    pub reason: String,
    pub remedy: &'static str,
}

static LOADED: AtomicBool = AtomicBool::new(false);

pub(super) const NO_GPU: &str = "the driver sees no NVIDIA GPU";
pub(super) const SEE: &str = "see what nvidia-smi says, and whether CUDA_VISIBLE_DEVICES hides it";
const INSTALL: &str = "install NVIDIA's driver, 535 or later";
const UPDATE: &str = "update NVIDIA's driver to 535 or later";

/// Loads and starts the driver, once in a process. Gives the CUDA version that it has, e.g. 12020.
pub(super) fn driver() -> Result<i32, Missing> {
    static DRIVER: OnceLock<Result<i32, Missing>> = OnceLock::new();
    DRIVER.get_or_init(start_driver).clone()
}

fn start_driver() -> Result<i32, Missing> {
    let names: Vec<_> = ["cuda", "nvcuda"].into_iter().flat_map(cudarc::get_lib_name_candidates).collect();
    keep(&names, &DRIVER_FUNCTIONS).map_err(|reason| Missing { reason: format!("no CUDA driver: {reason}"), remedy: INSTALL })?;
    LOADED.store(true, Ordering::Release);
    let mut version = 0;
    // SAFETY: the function is there, as was looked up, and writes one number.
    let asked = check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) });
    asked.map_err(|fault| Missing { reason: fault.to_string(), remedy: INSTALL })?;
    accept(version)?;
    // SAFETY: the function is there, as was looked up.
    check("cuInit", unsafe { sys::cuInit(0) }).map(|()| version).map_err(|fault| {
        if fault.is(CUresult::CUDA_ERROR_NO_DEVICE) {
            Missing { reason: NO_GPU.to_owned(), remedy: SEE }
        } else if fault.is(CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) {
            Missing { reason: fault.to_string(), remedy: "restart the machine: the driver was updated while it ran" }
        } else {
            Missing { reason: fault.to_string(), remedy: SEE }
        }
    })
}

/// Whether the driver can be called.
pub(super) fn is_loaded() -> bool {
    LOADED.load(Ordering::Acquire)
}

/// Refuses drivers that do not know what the kernels are compiled for.
fn accept(version: i32) -> Result<(), Missing> {
    if version >= OLDEST_DRIVER {
        return Ok(());
    }
    let reason = format!("the driver has CUDA {}, but {} is needed", dotted(version), dotted(OLDEST_DRIVER));
    Err(Missing { reason, remedy: UPDATE })
}

/// 12020 as 12.2.
pub(super) fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Loads cuBLASLt, once in a process: from where the system looks for libraries, else from an installed toolkit.
pub(super) fn cublaslt() -> Result<(), String> {
    static CUBLASLT: OnceLock<Result<(), String>> = OnceLock::new();
    let load = || {
        let names = cudarc::get_lib_name_candidates("cublasLt");
        keep(&names, &CUBLASLT_FUNCTIONS).or_else(|reason| {
            // Once a library is loaded from a path it is found by its name too, which is how cudarc looks for it.
            let from_toolkit = toolkit_folders().into_iter().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
            let Some(library) = from_toolkit.filter(|path| path.is_file()).find_map(|path| open(path.as_os_str()).ok()) else {
                return Err(reason);
            };
            std::mem::forget(library);
            keep(&names, &CUBLASLT_FUNCTIONS)
        })
    };
    CUBLASLT.get_or_init(load).clone()
}

/// Where a toolkit keeps its libraries, also when the system does not look there.
pub(super) fn toolkit_folders() -> Vec<PathBuf> {
    let within: &[&str] = if cfg!(windows) { &["bin/x64", "bin"] } else { &["lib64"] };
    toolkits().flat_map(|root| within.iter().map(move |folder| root.join(folder))).collect()
}

/// Where it keeps what sources include.
pub(super) fn toolkit_includes() -> Vec<PathBuf> {
    toolkits().map(|root| root.join("include")).filter(|folder| folder.is_dir()).collect()
}

/// Where a toolkit may be.
fn toolkits() -> impl Iterator<Item = PathBuf> {
    let named = ["CUDA_PATH", "CUDA_HOME"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named.chain(cfg!(target_os = "linux").then(|| PathBuf::from("/usr/local/cuda")))
}

/// Loads the first of these libraries that there is, for good, if it has all these functions. cudarc tries the same names in that order.
fn keep(names: &[String], functions: &[&str]) -> Result<(), String> {
    let mut faults = Vec::new();
    for name in names {
        match open(name.as_ref()) {
            Ok(library) => {
                // SAFETY: the symbol is only looked for, not used.
                let lacks = |function: &&&str| unsafe { library.get::<unsafe extern "C" fn()>(function.as_bytes()) }.is_err();
                return match functions.iter().find(lacks) {
                    Some(function) => Err(format!("{name} has no {function}")),
                    None => {
                        std::mem::forget(library);
                        Ok(())
                    }
                };
            }
            Err(fault) => faults.push(fault),
        }
    }
    // Most names are of no library at all. One that is there and cannot be loaded says more.
    let broken =
        faults.iter().find(|fault| !["No such file", "could not be found", "LoadLibraryExW"].iter().any(|usual| fault.contains(usual)));
    Err(broken.cloned().unwrap_or_else(|| format!("{} was not found", names[0])))
}

pub(super) fn open(name: &std::ffi::OsStr) -> Result<Library, String> {
    // SAFETY: loading runs the library's own start-up code: NVIDIA's, which programs that use CUDA run in any case.
    unsafe { Library::new(name) }.map_err(|error| {
        // The loader's own words are in the source of the error.
        std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_driver_is_refused_with_both_numbers() {
        let missing = accept(11_040).unwrap_err();
        assert_eq!(missing.reason, "the driver has CUDA 11.4, but 12.2 is needed");
        assert!(missing.remedy.contains("535"));
        assert_eq!(accept(12_020), Ok(()));
        assert_eq!(accept(13_000), Ok(()));
    }

    #[test]
    fn a_missing_and_a_broken_library_say_which_they_are() {
        let missing = keep(&["libno-such-library.so".to_owned()], &[]).unwrap_err();
        assert_eq!(missing, "libno-such-library.so was not found");
        let broken = std::env::temp_dir().join(format!("lapidary-broken-{}.so", std::process::id()));
        std::fs::write(&broken, "not a library").unwrap();
        let said = keep(&["libno-such-library.so".to_owned(), broken.display().to_string()], &[]).unwrap_err();
        std::fs::remove_file(&broken).unwrap();
        assert!(said.contains("lapidary-broken"), "{said}");
    }

    /// What is called is looked up first, or cudarc would panic.
    #[test]
    fn every_function_that_is_called_is_looked_up() {
        let sources = [
            include_str!("adapter.rs"),
            include_str!("arguments.rs"),
            include_str!("buffer.rs"),
            include_str!("compute.rs"),
            include_str!("cublaslt.rs"),
            include_str!("driver.rs"),
            include_str!("load.rs"),
            include_str!("pipeline.rs"),
            include_str!("submit.rs"),
        ];
        let listed = |name: &str| DRIVER_FUNCTIONS.contains(&name) || CUBLASLT_FUNCTIONS.contains(&name);
        let mut called = vec!["cuEventElapsedTime".to_owned()];
        for source in sources {
            for (at, _) in source.match_indices("sys::cu") {
                let rest = &source[at + 5..];
                let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                if rest[name.len()..].starts_with('(') && name != "culib" {
                    assert!(listed(&name), "{name} is called but not listed");
                    called.push(name);
                }
            }
        }
        for function in DRIVER_FUNCTIONS.iter().chain(&CUBLASLT_FUNCTIONS) {
            assert!(called.iter().any(|name| name == function), "{function} is listed but not called");
        }
    }
}
