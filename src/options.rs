//! How a device is chosen and opened.

#[cfg(not(target_arch = "wasm32"))]
use std::path::PathBuf;

#[cfg(not(target_arch = "wasm32"))]
use etcetera::BaseStrategy;

#[cfg(not(target_arch = "wasm32"))]
use crate::error::{Error, Result};
use crate::info::BackendId;

/// Which backend to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The first of [`BackendId::ALL`] that works; a software GPU only if it beats the CPU.
    #[default]
    Auto,
    /// SIMD, else scalar.
    Cpu,
    /// This one or none.
    Only(BackendId),
}

impl Choice {
    /// The choice of that name: `auto`, `cpu`, or a backend's.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            name => BackendId::from_name(name).map(Self::Only),
        }
    }
}

/// Which GPU of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PowerPreference {
    /// The fastest.
    #[default]
    HighPerformance,
    /// The thriftiest.
    LowPower,
}

impl PowerPreference {
    /// The preference of that name: `high-performance` or `low-power`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "high-performance" => Some(Self::HighPerformance),
            "low-power" => Some(Self::LowPower),
            _ => None,
        }
    }
}

/// Where what drivers compile is kept from one process to the next.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PipelineCache {
    /// In `lapidary` in the user's folder for caches, e.g. `~/.cache` on Linux.
    #[default]
    On,
    /// Nowhere.
    Off,
    /// In that folder, which is made when there is something to keep.
    Folder(PathBuf),
}

/// How a device is chosen and opened: a plain struct, of which one states what differs from the default.
///
/// ```
/// # #[cfg(not(target_arch = "wasm32"))]
/// # fn main() -> lapidary::Result<()> {
/// use lapidary::{BackendId, Gpu, Options, PipelineCache};
/// let thrifty = Options { pool_bytes: 64 << 20, threads: Some(2), pipeline_cache: PipelineCache::Off, ..Options::only(BackendId::Simd) };
/// let gpu = Gpu::open_blocking(thrifty)?;
/// # gpu.close();
/// # Ok(()) }
/// ```
///
/// Natively [`from_env`](Self::from_env) reads the same from environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which backend.
    pub backend: Choice,
    /// Which GPU of several.
    pub power_preference: PowerPreference,
    /// This device of the backend, by the index that [`devices`](crate::devices) gives, in place of a preference. It takes a backend to
    /// count in, so it does not go with [`Choice::Auto`].
    #[cfg(not(target_arch = "wasm32"))]
    pub adapter: Option<u32>,
    /// Bytes of free device buffers kept for reuse. On wgpu half as much may also hold other forms of tensors that are multiplied again and again.
    pub pool_bytes: u64,
    /// Whether a maker's library may compute where one is installed (on CUDA cuBLASLt, and NVRTC, which compiles kernels for
    /// expressions). Without, kernels that come with this crate do.
    #[cfg(not(target_arch = "wasm32"))]
    pub vendor_libraries: bool,
    /// Whether what the driver is told is checked: by Vulkan's Khronos validation layer, synchronization validation too, whose complaints end
    /// calls in errors, and by wgpu's debug mode. CUDA has a tool of its own, compute-sanitizer.
    #[cfg(not(target_arch = "wasm32"))]
    pub validation: bool,
    /// Where Vulkan's compiled kernels and the results of tuning are kept. CUDA's driver has a cache of its own.
    #[cfg(not(target_arch = "wasm32"))]
    pub pipeline_cache: PipelineCache,
    /// The most invocations that a workgroup of a GPU should have, at least 1: kernels of fewer are taken where there are any. A hint, since
    /// the smallest kernel is taken even if it has more.
    #[cfg(not(target_arch = "wasm32"))]
    pub workgroup_hint: Option<u32>,
    /// The most threads of the CPU that compute at once, at least 1; all cores if not said, in the browser up to 16. There the others are workers,
    /// started when the first product is large enough for them; natively all handles share threads, which sleep when there is nothing to do. The
    /// results are the same bits with any number.
    pub threads: Option<u32>,
    /// Whether operations are profiled from the beginning; [`Gpu::profile`](crate::Gpu::profile) gives what they took.
    #[cfg(not(target_arch = "wasm32"))]
    pub profile: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: Choice::Auto,
            power_preference: PowerPreference::HighPerformance,
            #[cfg(not(target_arch = "wasm32"))]
            adapter: None,
            pool_bytes: 1280 << 20,
            #[cfg(not(target_arch = "wasm32"))]
            vendor_libraries: true,
            #[cfg(not(target_arch = "wasm32"))]
            validation: false,
            #[cfg(not(target_arch = "wasm32"))]
            pipeline_cache: PipelineCache::On,
            #[cfg(not(target_arch = "wasm32"))]
            workgroup_hint: None,
            threads: None,
            #[cfg(not(target_arch = "wasm32"))]
            profile: false,
        }
    }
}

impl Options {
    /// This backend or none.
    pub fn only(backend: BackendId) -> Self {
        Self { backend: Choice::Only(backend), ..Self::default() }
    }

    /// Refuses what does not go together, and what cannot be.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |option: &str, value: String, expected: &str| {
            Err(Box::new(Error::InvalidOption { option: option.to_owned(), value, expected: expected.to_owned() }))
        };
        match self.adapter {
            Some(index) if self.backend == Choice::Auto => {
                return wrong("adapter", index.to_string(), "adapters are counted in each backend, so it takes a backend to count in");
            }
            _ => {}
        }
        for (option, value) in [("workgroup_hint", self.workgroup_hint), ("threads", self.threads)] {
            if value == Some(0) {
                return wrong(option, "0".to_owned(), "it must be at least 1");
            }
        }
        match &self.pipeline_cache {
            PipelineCache::Folder(folder) if folder.as_os_str().is_empty() => {
                wrong("pipeline_cache", "an empty path".to_owned(), "it must be a folder")
            }
            _ => Ok(()),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl PipelineCache {
    /// The folder; None if there is to be none, or the system has no place for it.
    pub fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::Folder(folder) => Some(folder.clone()),
            Self::On => Some(etcetera::base_strategy::choose_native_strategy().ok()?.cache_dir().join("lapidary")),
        }
    }
}
