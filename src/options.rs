//! How a device is chosen and opened.

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

/// Which GPU of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PowerPreference {
    /// The fastest.
    #[default]
    HighPerformance,
    /// The thriftiest.
    LowPower,
}

/// How a device is chosen and opened.
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
    /// Bytes of free device buffers kept for reuse.
    pub pool_bytes: u64,
    /// Whether a maker's library may compute where one is installed (cuBLASLt on CUDA). Without, kernels of this crate do.
    #[cfg(not(target_arch = "wasm32"))]
    pub vendor_libraries: bool,
    /// The most threads that the CPU computes on in the browser; None for as many as there are cores. 1 starts no workers.
    #[cfg(target_arch = "wasm32")]
    pub threads: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: Choice::Auto,
            power_preference: PowerPreference::HighPerformance,
            #[cfg(not(target_arch = "wasm32"))]
            adapter: None,
            pool_bytes: 512 << 20,
            #[cfg(not(target_arch = "wasm32"))]
            vendor_libraries: true,
            #[cfg(target_arch = "wasm32")]
            threads: None,
        }
    }
}

impl Options {
    /// This backend or none.
    pub fn only(backend: BackendId) -> Self {
        Self { backend: Choice::Only(backend), ..Self::default() }
    }

    /// Refuses what does not go together.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn check(&self) -> Result<()> {
        match self.adapter {
            Some(index) if self.backend == Choice::Auto => Err(Box::new(Error::InvalidOption {
                option: "adapter".to_owned(),
                value: index.to_string(),
                expected: "adapters are counted in each backend, so it takes a backend to count in".to_owned(),
            })),
            _ => Ok(()),
        }
    }
}
