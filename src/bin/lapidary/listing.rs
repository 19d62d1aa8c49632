//! What there is: backends and devices.

use std::fmt::Write;

use lapidary::{AdapterInfo, BackendId, Capabilities, Choice, DeviceKind, Devices, Options, OtherBackend, devices_of};
use serde_json::{Value, json};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output;
use crate::status::standing;
use crate::table::{Align, Table};

/// The devices of the backends that the options leave open.
pub fn find(choice: Choice) -> Devices {
    match choice {
        Choice::Auto => lapidary::devices(),
        Choice::Only(backend) => devices_of(backend),
        Choice::Cpu => {
            let (mut devices, scalar) = (devices_of(BackendId::Simd), devices_of(BackendId::Scalar));
            devices.found.extend(scalar.found);
            devices.off.extend(scalar.off);
            devices
        }
    }
}

/// What the options ask for.
pub struct Asked {
    /// Each device, and the number of its card.
    pub found: Vec<(AdapterInfo, u32)>,
    pub off: Vec<OtherBackend>,
}

/// Of the devices that the options leave open those with the index that they name. An error if there is none.
pub fn asked(options: &Options) -> Result<Asked, Failure> {
    let devices = find(options.backend);
    let cards = devices.cards();
    let has_any = !devices.found.is_empty();
    let named = |device: &AdapterInfo| options.adapter.is_none_or(|index| index == device.index);
    let found: Vec<_> = devices.found.into_iter().zip(cards).filter(|(device, _)| named(device)).collect();
    if found.is_empty() {
        return Err(Failure::NoDevice(match (devices.off.first(), options.adapter) {
            (Some(off), _) if !has_any => format!("{} is not available: {}", off.backend, reason_and_remedy(off)),
            (_, Some(index)) => format!("there is no adapter {index}; lapidary devices lists what there is"),
            _ => "there is no device".to_owned(),
        }));
    }
    Ok(Asked { found, off: devices.off })
}

/// `lapidary backends`.
pub fn backends(common: &Common) -> Result<(), Failure> {
    let devices = find(common.options.backend);
    let mut table = Table::new(&[("backend", Align::Left), ("state", Align::Left), ("devices", Align::Right), ("", Align::Left)]);
    let mut list = Vec::new();
    for &backend in BackendId::ALL {
        let own: Vec<_> = devices.found.iter().filter(|device| device.backend == backend).collect();
        let off = devices.off.iter().find(|off| off.backend == backend);
        let (state, about) = match (off, state(&own)) {
            (Some(off), _) => ("off", reason_and_remedy(off)),
            (None, Some(state)) => (state, own.iter().map(|device| name_and_fault(device)).collect::<Vec<_>>().join(", ")),
            // Another backend was asked for.
            (None, None) => continue,
        };
        table.row([backend.to_string(), state.to_owned(), own.len().to_string(), about]);
        list.push(json!({
            "backend": backend.name(),
            "state": state,
            "devices": own.len(),
            "reason": off.map(|off| &off.reason),
            "remedy": off.map(|off| &off.remedy).filter(|remedy| !remedy.is_empty()),
        }));
    }
    if common.json { output::print_json("backends", json!({ "backends": list })) } else { output::print(&table.text()) }
}

fn name_and_fault(device: &AdapterInfo) -> String {
    device.fault.as_ref().map_or_else(|| device.name.clone(), |fault| format!("{} (unusable: {fault})", device.name))
}

/// What a backend with these devices is; None without any.
fn state(own: &[&AdapterInfo]) -> Option<&'static str> {
    if own.is_empty() {
        None
    } else if own.iter().all(|device| device.fault.is_some()) {
        Some("unusable")
    } else if own.iter().all(|device| device.fault.is_some() || device.kind == DeviceKind::Software) {
        Some("software")
    } else {
        Some("on")
    }
}

pub fn reason_and_remedy(off: &OtherBackend) -> String {
    if off.remedy.is_empty() { off.reason.clone() } else { format!("{}; {}", off.reason, off.remedy) }
}

/// `lapidary devices`.
pub fn devices(common: &Common) -> Result<(), Failure> {
    let Asked { found, off } = asked(&common.options)?;
    if common.json {
        let list: Vec<_> = found.iter().map(|(device, card)| device_json(device, *card)).collect();
        return output::print_json("devices", json!({ "devices": list, "off": off.iter().map(off_json).collect::<Vec<_>>() }));
    }
    let mut table = Table::new(&[
        ("backend", Align::Left),
        ("index", Align::Right),
        ("card", Align::Right),
        ("kind", Align::Left),
        ("memory", Align::Right),
        ("name", Align::Left),
    ]);
    for (device, card) in &found {
        let mut about = device.name.clone();
        for more in [&device.architecture, &device.driver, &device.pci_address] {
            if !more.is_empty() {
                let _ = write!(about, ", {more}");
            }
        }
        if let Some(fault) = &device.fault {
            let _ = write!(about, " (unusable: {fault})");
        }
        let memory = device.memory_bytes.map_or_else(String::new, memory_text);
        table.row([device.backend.to_string(), device.index.to_string(), card.to_string(), device.kind.name().to_owned(), memory, about]);
    }
    output::print(&table.text())?;
    for off in &off {
        output::note(&format!("{} is off: {}", off.backend, reason_and_remedy(off)));
    }
    Ok(())
}

fn memory_text(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

pub fn device_json(device: &AdapterInfo, card: u32) -> Value {
    json!({
        "backend": device.backend.name(),
        "index": device.index,
        "card": card,
        "name": device.name,
        "vendor": device.vendor,
        "architecture": device.architecture,
        "kind": device.kind.name(),
        "standing": standing(device.kind),
        "driver": device.driver,
        "uuid": device.uuid.map(uuid_text),
        "pci_address": device.pci_address,
        "memory_bytes": device.memory_bytes,
        "features": device.features,
        "capabilities": device.capabilities.as_ref().map(capabilities_json),
        "fault": device.fault,
    })
}

/// Limits that there are not are null.
fn capabilities_json(capabilities: &Capabilities) -> Value {
    let limit = |most: u32| Some(most).filter(|most| *most < u32::MAX);
    let limits = |most: [u32; 3]| most.map(limit);
    json!({
        "memories": capabilities.memories.iter().map(|memory| memory.name()).collect::<Vec<_>>(),
        "max_workgroup_size": limits(capabilities.max_workgroup_size),
        "max_workgroup_bytes": limit(capabilities.max_workgroup_bytes),
        "max_grid": limits(capabilities.max_grid),
        "max_storage_bindings": limit(capabilities.max_storage_bindings),
        "max_params_bytes": limit(capabilities.max_params_bytes),
        "subgroup_size": capabilities.subgroup_size,
        "compute_capability": capabilities.compute_capability.map(|(major, minor)| format!("{major}.{minor}")),
        "f16": capabilities.f16,
        "f64": capabilities.f64,
        "int8": capabilities.int8,
        "atomics": capabilities.atomics,
        "matrix_units": capabilities.matrix_units,
        "concurrent_streams": capabilities.concurrent_streams,
        "device_clock": capabilities.device_clock,
    })
}

fn off_json(off: &OtherBackend) -> Value {
    json!({ "backend": off.backend.name(), "reason": off.reason, "remedy": off.remedy })
}

/// As everybody writes them, e.g. `00000000-0000-0000-0000-000000000000`.
fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::new();
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}
