//! What a WGSL source says of its kernel: entry point, workgroup, bindings, and how much memory each of them takes.

use std::borrow::Cow;

use naga::valid::{Capabilities, ModuleInfo, ValidationError, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage, StorageAccess, WithSpan};

use super::definition::{Access, KernelDefinition, Language};
use super::kernel::{Binding, Params, Signature};
use crate::error::{Error, Result};
use crate::info::DeviceInfo;

/// As many numbers as WebGPU has for bindings: drivers have been seen to make a table of them.
const MOST_BINDINGS: u32 = 1000;

/// What WGSL can use where a device has the feature of that name, and only there.
const OPTIONAL: [(&str, Capabilities); 3] = [
    ("shader-f16", Capabilities::SHADER_FLOAT16),
    ("shader-f64", Capabilities::FLOAT64),
    ("subgroups", Capabilities::SUBGROUP.union(Capabilities::SUBGROUP_BARRIER)),
];

/// All that WGSL can use somewhere.
pub(crate) const EVERYTHING: Capabilities = {
    // Every device packs and unpacks f16.
    let mut all = Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let mut at = 0;
    while at < OPTIONAL.len() {
        all = all.union(OPTIONAL[at].1);
        at += 1;
    }
    all
};

/// The source without what browsers want before subgroups are used, and naga does not know.
pub(crate) fn plain(source: &str) -> Cow<'_, str> {
    const ENABLE: &str = "enable subgroups;";
    // As long, so that lines and columns stay what they are.
    if source.contains(ENABLE) { source.replace(ENABLE, &" ".repeat(ENABLE.len())).into() } else { source.into() }
}

fn validate(module: &Module, capabilities: Capabilities) -> Result<ModuleInfo, Box<WithSpan<ValidationError>>> {
    Validator::new(ValidationFlags::all(), capabilities).validate(module).map_err(Box::new)
}

/// Refuses a module that uses what the device has not.
fn refuse_what_is_missing(definition: &KernelDefinition, module: &Module, device: &DeviceInfo) -> Result<()> {
    let is_missing = |(name, capability): &(&'static str, Capabilities)| {
        !device.features.contains(name) && validate(module, EVERYTHING - *capability).is_err()
    };
    let missing: Vec<_> = OPTIONAL.iter().filter(|optional| is_missing(optional)).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Box::new(Error::Unavailable {
        backend: device.backend,
        reason: format!("the kernel {} uses {}, which {} does not have here", definition.name, missing.join(" and "), device.name),
        remedy: "ask for a device with it by Selector::features, or write the kernel without it".to_owned(),
    }))
}

/// Compiles, for a device that is to run it as far as that does, and reads what the module declares.
pub(super) fn read(definition: &KernelDefinition, source: &str, device: Option<&DeviceInfo>) -> Result<Signature> {
    let fault = |log: String| Error::Compile { kernel: definition.name.clone(), language: Language::Wgsl.name(), log };
    let source = &*plain(source);
    let module = naga::front::wgsl::parse_str(source).map_err(|error| fault(error.emit_to_string(source)))?;
    let info = validate(&module, EVERYTHING).map_err(|error| fault(error.emit_to_string(source)))?;
    if let Some(device) = device {
        refuse_what_is_missing(definition, &module, device)?;
    }
    if module.overrides.iter().next().is_some() {
        return Err(Box::new(fault("overridable constants cannot be set here: write them as const".to_owned())));
    }
    let at = entry(&module, definition).map_err(fault)?;
    let (entry, used) = (&module.entry_points[at], info.get_entry_point(at));
    let mut signature = Signature { entry: entry.name.clone(), workgroup: entry.workgroup_size, ..Signature::default() };
    for (handle, variable) in module.global_variables.iter() {
        if used[handle].is_empty() {
            continue;
        }
        let name = variable.name.as_deref().unwrap_or_default();
        let bytes = module.types[variable.ty].inner.size(module.to_ctx());
        if variable.space == AddressSpace::WorkGroup {
            signature.workgroup_bytes = signature.workgroup_bytes.saturating_add(bytes.next_multiple_of(16));
        }
        let Some(place) = &variable.binding else { continue };
        if place.group != 0 {
            return Err(Box::new(fault(format!("{name} is in group {}, but all bindings have to be in group 0", place.group))));
        }
        if place.binding >= MOST_BINDINGS {
            return Err(Box::new(fault(format!(
                "{name} is at binding {}, but bindings are numbered from 0 to {}",
                place.binding,
                MOST_BINDINGS - 1
            ))));
        }
        match variable.space {
            AddressSpace::Storage { access } => {
                let access = if access.contains(StorageAccess::STORE) { Access::ReadWrite } else { Access::Read };
                signature.bindings.push(Binding { index: place.binding, access, least_bytes: bytes.into(), name: name.to_owned() });
            }
            AddressSpace::Uniform if signature.params.is_none() => signature.params = Some(Params { index: place.binding, bytes }),
            AddressSpace::Uniform => return Err(Box::new(fault(format!("{name} is a second uniform buffer; there can be one")))),
            _ => return Err(Box::new(fault(format!("{name} is neither a storage nor a uniform buffer")))),
        }
    }
    signature.bindings.sort_by_key(|binding| binding.index);
    Ok(signature)
}

/// The place of the entry point that is named, or of the only one for compute shaders.
fn entry(module: &Module, definition: &KernelDefinition) -> Result<usize, String> {
    let computes = |at: &usize| module.entry_points[*at].stage == ShaderStage::Compute;
    let all: Vec<_> = (0..module.entry_points.len()).filter(computes).collect();
    let names = || all.iter().map(|at| module.entry_points[*at].name.as_str()).collect::<Vec<_>>().join(", ");
    match &definition.entry {
        Some(name) => all.iter().copied().find(|at| module.entry_points[*at].name == *name).ok_or_else(|| {
            format!("there is no @compute function {name}; there is {}", if all.is_empty() { "none".to_owned() } else { names() })
        }),
        None => match all[..] {
            [at] => Ok(at),
            [] => Err("there is no @compute function".to_owned()),
            _ => Err(format!("there are several @compute functions: say by .entry() which is meant of {}", names())),
        },
    }
}
