//! Every device of this machine, in each backend that sees it, without opening any but OpenGL's, of which nothing is known before.
//!
//! A card shows up once in each backend: [`Devices::cards`] tells which entries are the same one. Drivers give a card a UUID and know its
//! place on the PCI bus; where neither is known, as of OpenGL's devices, nobody can tell, and the entry counts as a card of its own.

use crate::backend::device::Device;
use crate::info::{BackendId, BackendState, Capabilities, DeviceInfo, DeviceKind, OtherBackend};

/// A device as a backend lists it. What only an open device tells is not here: its limits, and a maker's libraries among its features.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdapterInfo {
    /// Which backend sees it.
    pub backend: BackendId,
    /// Its place in that backend, counted from 0: what [`Options::adapter`](crate::Options::adapter) takes. CUDA's and Vulkan's are those of
    /// the drivers, so that other tools count the same.
    pub index: u32,
    /// The adapter's name.
    pub name: String,
    /// The maker; empty if unknown.
    pub vendor: String,
    /// The chip's family, or for WebGPU what it goes through; empty if unknown.
    pub architecture: String,
    /// What sort of hardware.
    pub kind: DeviceKind,
    /// The driver's name or version; empty if unknown.
    pub driver: String,
    /// What drivers call this very card: the same in each backend that sees it. None if unknown.
    pub uuid: Option<[u8; 16]>,
    /// The card's place on the PCI bus, e.g. `0000:65:00.0`. Empty if unknown.
    pub pci_address: String,
    /// Bytes of memory of its own; of an integrated GPU, what it may have of the machine's. None if unknown.
    pub memory_bytes: Option<u64>,
    /// Features in use, or there to be used.
    pub features: Vec<&'static str>,
    /// What it can do beside products, as far as is known before it is opened; None if nothing is.
    pub capabilities: Option<Capabilities>,
    /// Why it cannot be used; None if it can, as far as is known before it is opened.
    pub fault: Option<String>,
}

impl AdapterInfo {
    /// What a backend says of a device that it could open.
    pub(crate) fn new(info: DeviceInfo, index: u32, memory_bytes: Option<u64>) -> Self {
        let DeviceInfo { backend, name, vendor, architecture, kind, driver, uuid, pci_address, features, capabilities, .. } = info;
        let capabilities = Some(capabilities);
        // Some drivers know no UUID and say nothing but zeros.
        let uuid = uuid.filter(|uuid| *uuid != [0; 16]);
        Self {
            backend,
            index,
            name,
            vendor,
            architecture,
            kind,
            driver,
            uuid,
            pci_address,
            memory_bytes,
            features,
            capabilities,
            fault: None,
        }
    }

    /// A device that cannot be used, of which there may be a name.
    #[cfg(any(test, feature = "vulkan", all(feature = "cuda", any(target_os = "linux", target_os = "windows"))))]
    pub(crate) fn faulty(backend: BackendId, index: u32, name: String, fault: String) -> Self {
        Self {
            backend,
            index,
            name,
            vendor: String::new(),
            architecture: String::new(),
            kind: DeviceKind::Gpu,
            driver: String::new(),
            uuid: None,
            pci_address: String::new(),
            memory_bytes: None,
            features: Vec::new(),
            capabilities: None,
            fault: Some(fault),
        }
    }

    /// Whether this is known to be the same card as the other: by UUID, else by PCI address. The CPU is one.
    pub fn is_same_card(&self, other: &Self) -> bool {
        match (self.uuid, other.uuid) {
            _ if self.kind == DeviceKind::Cpu || other.kind == DeviceKind::Cpu => self.kind == other.kind,
            (Some(own), Some(others)) => own == others,
            _ => !self.pci_address.is_empty() && self.pci_address == other.pci_address,
        }
    }
}

/// What there is, and what there is not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Devices {
    /// The devices, backend by backend in the order of [`BackendId::ALL`], by their indices.
    pub found: Vec<AdapterInfo>,
    /// The backends that have none, with the reason and what would turn them on.
    pub off: Vec<OtherBackend>,
}

impl Devices {
    /// For each of `found` the number of its card: the same for the same card, counted from 0 in the order in which they appear.
    pub fn cards(&self) -> Vec<u32> {
        let mut cards: Vec<u32> = Vec::with_capacity(self.found.len());
        for (at, device) in self.found.iter().enumerate() {
            let known = self.found[..at].iter().position(|earlier| device.is_same_card(earlier));
            let next = cards.iter().max().map_or(0, |last| last + 1);
            cards.push(known.map_or(next, |earlier| cards[earlier]));
        }
        cards
    }

    fn add(&mut self, backend: BackendId) {
        match Device::list(backend) {
            Ok(found) => self.found.extend(found),
            Err(off) => self.off.push(off),
        }
    }
}

/// Every device of every backend. A backend that is off is no error: it is listed with its reason. Loads drivers, which may take some
/// hundred milliseconds the first time, and opens no device but OpenGL's, of which some are listed that cannot be opened.
///
/// ```
/// let devices = lapidary::devices();
/// for (device, card) in devices.found.iter().zip(devices.cards()) {
///     println!("{} {}: {} (card {card})", device.backend, device.index, device.name);
/// }
/// for off in &devices.off {
///     println!("{}: {}; {}", off.backend, off.reason, off.remedy);
/// }
/// ```
pub fn devices() -> Devices {
    let mut devices = Devices::default();
    for &backend in BackendId::ALL {
        devices.add(backend);
    }
    devices
}

/// The devices of one backend.
pub fn devices_of(backend: BackendId) -> Devices {
    let mut devices = Devices::default();
    devices.add(backend);
    devices
}

/// What a backend says to an index that it does not have.
pub(crate) fn no_such_adapter(backend: BackendId, index: u32, count: usize) -> OtherBackend {
    OtherBackend {
        backend,
        state: BackendState::Off,
        reason: format!("there is no adapter {index}: adapters are counted from 0, and it has {count}"),
        remedy: "choose one that devices() lists".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(backend: BackendId, uuid: Option<u8>, pci_address: &str) -> AdapterInfo {
        let device = AdapterInfo::faulty(backend, 0, String::new(), String::new());
        AdapterInfo { uuid: uuid.map(|byte| [byte; 16]), pci_address: pci_address.to_owned(), ..device }
    }

    #[test]
    fn a_card_is_known_by_its_uuid_else_by_its_place() {
        let found = vec![
            device(BackendId::Cuda, Some(1), "0000:01:00.0"),
            device(BackendId::Cuda, Some(2), "0000:02:00.0"),
            device(BackendId::Vulkan, Some(2), "0000:02:00.0"),
            // Two parts of one card have a place in common.
            device(BackendId::Vulkan, Some(3), "0000:01:00.0"),
            device(BackendId::WebGpu, None, "0000:02:00.0"),
            device(BackendId::WebGpu, None, ""),
            device(BackendId::WebGpu, None, ""),
            AdapterInfo { kind: DeviceKind::Cpu, ..device(BackendId::Simd, None, "") },
            AdapterInfo { kind: DeviceKind::Cpu, ..device(BackendId::Scalar, None, "") },
        ];
        assert_eq!(Devices { found, off: Vec::new() }.cards(), [0, 1, 1, 2, 1, 3, 4, 5, 5]);
    }
}
