//! What a WGSL source says of its kernel: entry point, workgroup, bindings, and how much memory each of them takes.

use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ShaderStage, StorageAccess};

use super::definition::{Access, KernelDefinition, Language};
use super::kernel::{Binding, Params, Signature};
use crate::error::{Error, Result};

/// Compiles as far as every device does, and reads what the module declares.
pub(super) fn read(definition: &KernelDefinition, source: &str) -> Result<Signature> {
    let fault = |log: String| Error::Compile { kernel: definition.name.clone(), language: Language::Wgsl.name(), log };
    let module = naga::front::wgsl::parse_str(source).map_err(|error| fault(error.emit_to_string(source)))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    let info = validator.validate(&module).map_err(|error| fault(error.emit_to_string(source)))?;
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
