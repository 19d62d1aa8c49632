//! Chooses a device by what it must have.

use std::fmt;

use crate::backend::device::Opened;
use crate::devices::{AdapterInfo, Devices, devices_of};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::info::{BackendId, DeviceKind};
use crate::options::{Choice, Options, PowerPreference};
use crate::select;

/// What a device must have, and which is taken of several that have it.
///
/// Hardware goes before the CPU and before GPUs that a CPU emulates, which are taken only if [`allow_cpu`](Self::allow_cpu) says so. Then
/// the order of the backends counts, then what is preferred within one, then memory. When the device is lost, the same choice is made
/// again: where CUDA is at its end, that is the next of `backends`.
///
/// ```
/// use lapidary::{BackendId, Gpu, Selector};
/// let wanted = Selector { backends: vec![BackendId::Cuda, BackendId::Vulkan], least_memory_bytes: 8 << 30, ..Selector::default() };
/// match Gpu::select_blocking(&wanted) {
///     Ok(gpu) => println!("{}", gpu.info()?.name),
///     Err(error) => println!("{error}"), // names every device and what it lacks
/// }
/// # Ok::<(), Box<lapidary::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    /// The backends to look at, the preferred ones first. All, if not said otherwise.
    pub backends: Vec<BackendId>,
    /// Whether a GPU with memory of its own goes before others of its backend; else they go in the drivers' order. Options that prefer
    /// [`LowPower`](PowerPreference::LowPower) count for more: with them it goes after the others, and the smallest memory first.
    pub prefer_discrete: bool,
    /// The least memory; a device that does not tell its memory is refused if this is not 0.
    pub least_memory_bytes: u64,
    /// Features that it must have, by the names that [`DeviceInfo::features`](crate::DeviceInfo::features) lists.
    pub features: Vec<String>,
    /// Whether the CPU may compute, itself or behind a GPU that it emulates.
    pub allow_cpu: bool,
    /// The rest of how the device is opened. The backend and the adapter are the selector's choice: options that choose one are refused.
    pub options: Options,
}

impl Default for Selector {
    fn default() -> Self {
        Self {
            backends: BackendId::ALL.to_vec(),
            prefer_discrete: true,
            least_memory_bytes: 0,
            features: Vec::new(),
            allow_cpu: false,
            options: Options::default(),
        }
    }
}

/// A device, or a whole backend, that a selector has looked at and not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Which backend.
    pub backend: BackendId,
    /// Which of its devices; None for the backend itself.
    pub adapter: Option<u32>,
    /// The device's name; empty if unknown.
    pub name: String,
    /// What it lacks.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.adapter {
            Some(index) => write!(f, "{} {index} ({}): {}", self.backend, self.name, self.reason),
            None => write!(f, "{}: {}", self.backend, self.reason),
        }
    }
}

impl Selector {
    /// Parts what is there into what may be opened, the best first, and what may not.
    fn sort(&self, devices: Devices) -> (Vec<AdapterInfo>, Vec<Refused>) {
        let Devices { found, off } = devices;
        let (mut fit, mut refused) = (Vec::new(), Vec::new());
        for off in off {
            let reason = if off.remedy.is_empty() { off.reason } else { format!("{}; {}", off.reason, off.remedy) };
            refused.push(Refused { backend: off.backend, adapter: None, name: String::new(), reason });
        }
        for device in found {
            match self.lacks(&device) {
                None => fit.push(device),
                Some(reason) => refused.push(Refused { reason, ..refusal(&device) }),
            }
        }
        // Stable: of equals the first that the drivers list.
        fit.sort_by_key(|device| {
            let class = match device.kind {
                DeviceKind::Cpu => 1,
                DeviceKind::Software => 2,
                _ => 0,
            };
            let place = self.backends.iter().position(|&backend| backend == device.backend);
            let (discrete, bytes) = (device.kind == DeviceKind::Discrete, i128::from(device.memory_bytes.unwrap_or(0)));
            let preferred = match self.options.power_preference {
                PowerPreference::LowPower => (discrete, bytes),
                PowerPreference::HighPerformance if self.prefer_discrete => (!discrete, -bytes),
                PowerPreference::HighPerformance => (false, 0),
            };
            (class, place, preferred)
        });
        (fit, refused)
    }

    fn lacks(&self, device: &AdapterInfo) -> Option<String> {
        if let Some(fault) = &device.fault {
            return Some(fault.clone());
        }
        if !self.allow_cpu {
            match device.kind {
                DeviceKind::Cpu => return Some("the CPU is not allowed".to_owned()),
                DeviceKind::Software => return Some("a CPU emulates it, and the CPU is not allowed".to_owned()),
                _ => {}
            }
        }
        let least = self.least_memory_bytes;
        match device.memory_bytes {
            Some(bytes) if bytes < least => Some(format!("it has {bytes} bytes of memory, but {least} are wanted")),
            None if least > 0 => Some(format!("it does not tell how much memory it has, and {least} bytes are wanted")),
            _ => None,
        }
    }
}

fn refusal(device: &AdapterInfo) -> Refused {
    Refused { backend: device.backend, adapter: Some(device.index), name: device.name.clone(), reason: String::new() }
}

impl Selector {
    /// Opens the best device that fits, and tells how.
    pub(crate) async fn open(&self) -> Result<(Options, Opened)> {
        let mut devices = Devices::default();
        for (at, &backend) in self.backends.iter().enumerate() {
            if !self.backends[..at].contains(&backend) {
                let Devices { found, off } = devices_of(backend);
                devices.found.extend(found);
                devices.off.extend(off);
            }
        }
        let (fit, mut refused) = self.sort(devices);
        for device in fit {
            let options = Options { backend: Choice::Only(device.backend), adapter: Some(device.index), ..self.options.clone() };
            let reason = match select::open(&options).await {
                Ok(opened) => {
                    // Some features only an open device has.
                    let there = &opened.info.features;
                    let lacking: Vec<_> = self.features.iter().filter(|name| !there.contains(&name.as_str())).cloned().collect();
                    if lacking.is_empty() {
                        return Ok((options, opened));
                    }
                    format!("it lacks {}", lacking.join(", "))
                }
                Err(error) => match *error {
                    Error::Unavailable { reason, .. } => reason,
                    error => error.to_string(),
                },
            };
            refused.push(Refused { reason, ..refusal(&device) });
        }
        Err(Box::new(Error::NoDevice { refused }))
    }
}

impl Gpu {
    /// Opens the best device that has what the selector asks for. What fails when it is opened is passed over like what lacks something.
    ///
    /// # Errors
    /// [`Error::NoDevice`] with all that was looked at, and why each was refused; [`Error::InvalidOption`] if the selector's options choose a
    /// backend or an adapter themselves.
    pub async fn select(selector: &Selector) -> Result<Self> {
        let Options { backend, adapter, .. } = &selector.options;
        let chosen =
            [("backend", format!("{backend:?}"), *backend != Choice::Auto), ("adapter", format!("{adapter:?}"), adapter.is_some())];
        if let Some((option, value, _)) = chosen.into_iter().find(|(.., is_chosen)| *is_chosen) {
            let expected = "a selector chooses it, by its `backends` and what else it asks for".to_owned();
            return Err(Box::new(Error::InvalidOption { option: option.to_owned(), value, expected }));
        }
        let (options, opened) = selector.open().await?;
        Ok(Self::selected(options, opened, selector.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn device(backend: BackendId, index: u32, kind: DeviceKind, gib: u64) -> AdapterInfo {
        let device = AdapterInfo::faulty(backend, index, format!("{kind:?} of {gib} GiB"), String::new());
        AdapterInfo { kind, memory_bytes: (gib > 0).then_some(gib * GIB), fault: None, ..device }
    }

    fn machine() -> Devices {
        let broken = AdapterInfo { fault: Some("it is too old".to_owned()), ..device(BackendId::Cuda, 0, DeviceKind::Discrete, 4) };
        let found = vec![
            broken,
            device(BackendId::Cuda, 1, DeviceKind::Discrete, 24),
            device(BackendId::Vulkan, 0, DeviceKind::Software, 32),
            device(BackendId::Vulkan, 1, DeviceKind::Integrated, 16),
            device(BackendId::Vulkan, 2, DeviceKind::Discrete, 8),
            device(BackendId::Vulkan, 3, DeviceKind::Discrete, 24),
            device(BackendId::WebGpu, 0, DeviceKind::Gpu, 0),
            device(BackendId::Simd, 0, DeviceKind::Cpu, 0),
        ];
        Devices { found, off: Vec::new() }
    }

    fn order(selector: &Selector) -> Vec<(&'static str, u32)> {
        let Devices { mut found, off } = machine();
        found.retain(|device| selector.backends.contains(&device.backend));
        selector.sort(Devices { found, off }).0.iter().map(|device| (device.backend.name(), device.index)).collect()
    }

    #[test]
    fn backends_go_in_their_order_and_discrete_ones_first() {
        let all = Selector::default();
        assert_eq!(order(&all), [("cuda", 1), ("vulkan", 3), ("vulkan", 2), ("vulkan", 1), ("webgpu", 0)]);
        let chain = Selector { backends: vec![BackendId::WebGpu, BackendId::Vulkan], ..Selector::default() };
        assert_eq!(order(&chain)[..2], [("webgpu", 0), ("vulkan", 3)]);
        let plain = Selector { prefer_discrete: false, ..Selector::default() };
        assert_eq!(order(&plain)[1..4], [("vulkan", 1), ("vulkan", 2), ("vulkan", 3)]);
        // Whoever asks for the thriftiest does not get the strongest.
        let options = Options { power_preference: PowerPreference::LowPower, ..Options::default() };
        let thrifty = Selector { options, ..Selector::default() };
        assert_eq!(order(&thrifty), [("cuda", 1), ("vulkan", 1), ("vulkan", 2), ("vulkan", 3), ("webgpu", 0)]);
    }

    #[test]
    fn the_cpu_comes_last_and_in_no_disguise() {
        let any = Selector { allow_cpu: true, ..Selector::default() };
        assert_eq!(order(&any)[5..], [("simd", 0), ("vulkan", 0)]);
        let (_, refused) = Selector::default().sort(machine());
        let said: Vec<_> = refused.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "cuda 0 (Discrete of 4 GiB): it is too old",
                "vulkan 0 (Software of 32 GiB): a CPU emulates it, and the CPU is not allowed",
                "simd 0 (Cpu of 0 GiB): the CPU is not allowed",
            ]
        );
    }

    #[test]
    fn what_has_too_little_memory_is_refused_with_both_numbers() {
        let large = Selector { least_memory_bytes: 20 * GIB, ..Selector::default() };
        assert_eq!(order(&large), [("cuda", 1), ("vulkan", 3)]);
        let (_, refused) = large.sort(machine());
        assert!(refused.iter().any(|refused| refused.reason == "it has 8589934592 bytes of memory, but 21474836480 are wanted"));
        assert!(refused.iter().any(|refused| refused.reason.contains("does not tell how much memory")));
    }
}
