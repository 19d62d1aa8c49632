//! Kernels compiled for a device, and what their launches are checked against.

use std::sync::Arc;

use super::definition::{Access, KernelDefinition, Language};
use super::twin::Twin;
use crate::backend::compute::{Compute, Program};
use crate::backend::device::Opened;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::info::{BackendId, DeviceInfo};

/// What a launch of a kernel takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    pub entry: String,
    pub workgroup: [u32; 3],
    /// Memory of a workgroup that the source declares, as far as that is known.
    pub workgroup_bytes: u32,
    /// In the order of their numbers, which is that of a launch's arguments.
    pub bindings: Vec<Binding>,
    pub params: Option<Params>,
}

/// A buffer that a kernel sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    pub index: u32,
    pub access: Access,
    pub least_bytes: u64,
    /// In the source; empty if unknown.
    pub name: String,
}

/// A kernel's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Params {
    pub index: u32,
    pub bytes: u32,
}

/// A kernel compiled for the device of a handle. Clones share it.
#[derive(Clone)]
pub struct Kernel(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub name: String,
    pub language: Language,
    pub signature: Signature,
    pub code: Code,
    /// Dropped last.
    pub home: Arc<Opened>,
}

/// What runs.
pub(super) enum Code {
    Program(Program),
    Twin(Twin),
}

impl Gpu {
    /// Compiles a kernel for the device in use.
    ///
    /// # Errors
    /// [`Error::Compile`] with the compiler's message and its line; [`Error::InvalidOption`] where the definition has no source for this
    /// backend and no twin, or where what it says and what its source says differ; [`Error::LimitExceeded`] for a workgroup larger than the
    /// device takes; [`Error::Unavailable`] for CUDA C++ without NVRTC, and for WGSL that uses what the device has not, by the name that the
    /// feature has among [`DeviceInfo::features`].
    pub fn compile(&self, definition: &KernelDefinition) -> Result<Kernel> {
        Kernel::compile(self.sound()?, definition)
    }
}

impl Kernel {
    pub(super) fn compile(home: Arc<Opened>, definition: &KernelDefinition) -> Result<Self> {
        let language = definition.language_of(home.info.backend)?;
        let signature = Signature::of(definition, (language == Language::Wgsl).then_some(&home.info))?;
        if let Some(twin) = &definition.cpu
            && twin.buffers != signature.bindings.len()
        {
            return Err(disagree(
                definition,
                "the twin's number of buffers",
                twin.buffers.to_string(),
                signature.bindings.len().to_string(),
            ));
        }
        let code = match &definition.cpu {
            Some(twin) if language == Language::Cpu => Code::Twin(twin.clone()),
            _ => {
                signature.within(definition, language, &home)?;
                Code::Program(home.device.compile(definition, &signature)?)
            }
        };
        Ok(Self(Arc::new(Inner { name: definition.name.clone(), language, signature, code, home })))
    }

    /// The definition's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What runs when it is launched.
    pub fn language(&self) -> Language {
        self.0.language
    }

    /// Where it was compiled for.
    pub fn backend(&self) -> BackendId {
        self.0.home.info.backend
    }

    /// Invocations of a workgroup in x, y and z.
    pub fn workgroup(&self) -> [u32; 3] {
        self.0.signature.workgroup
    }

    /// What it does with each of its buffers.
    pub fn bindings(&self) -> Vec<Access> {
        self.0.signature.bindings.iter().map(|binding| binding.access).collect()
    }

    /// The size of its parameters in bytes.
    pub fn params_bytes(&self) -> u32 {
        self.0.signature.params.map_or(0, |params| params.bytes)
    }
}

impl Signature {
    /// What the WGSL says, which is for that device if it is to run it, or where there is none the definition.
    #[cfg_attr(not(any(feature = "vulkan", feature = "webgpu")), expect(unused_variables, reason = "there is nothing that runs WGSL"))]
    fn of(definition: &KernelDefinition, device: Option<&DeviceInfo>) -> Result<Self> {
        #[cfg(any(feature = "vulkan", feature = "webgpu"))]
        if let Some(source) = &definition.wgsl {
            let read = super::reflection::read(definition, source, device)?;
            read.agree(definition)?;
            return Ok(read);
        }
        Self::told(definition)
    }

    /// Refuses a definition that says other things than its source.
    #[cfg(any(feature = "vulkan", feature = "webgpu"))]
    fn agree(&self, definition: &KernelDefinition) -> Result<()> {
        let bindings: Vec<_> = self.bindings.iter().map(|binding| binding.access).collect();
        if let Some(told) = definition.bindings.as_ref().filter(|told| **told != bindings) {
            return Err(disagree(definition, "bindings", format!("{told:?}"), format!("{bindings:?}")));
        }
        if let Some(told) = definition.workgroup.filter(|told| *told != self.workgroup) {
            return Err(disagree(definition, "workgroup", format!("{told:?}"), format!("{:?}", self.workgroup)));
        }
        let bytes = self.params.map_or(0, |params| params.bytes);
        match definition.params_bytes.filter(|told| *told != bytes) {
            Some(told) => Err(disagree(definition, "params_bytes", told.to_string(), bytes.to_string())),
            None => Ok(()),
        }
    }

    fn told(definition: &KernelDefinition) -> Result<Self> {
        let missing = |what: &str| {
            Box::new(Error::InvalidOption {
                option: format!("{what} of the kernel {}", definition.name),
                value: "not told".to_owned(),
                expected: format!("{}it has to be, by .{what}()", unread(definition)),
            })
        };
        let accesses = definition.bindings.as_ref().ok_or_else(|| missing("bindings"))?;
        let on_the_cpu_alone = definition.cuda.is_none() && definition.ptx.is_none();
        let workgroup = definition.workgroup.or(on_the_cpu_alone.then_some([1; 3])).ok_or_else(|| missing("workgroup"))?;
        let binding = |(index, access): (u32, &Access)| Binding { index, access: *access, least_bytes: 1, name: String::new() };
        Ok(Self {
            entry: definition.entry.clone().unwrap_or_else(|| definition.name.clone()),
            workgroup,
            workgroup_bytes: 0,
            bindings: (0..).zip(accesses).map(binding).collect(),
            params: definition.params_bytes.filter(|bytes| *bytes > 0).map(|bytes| Params { index: accesses.len() as u32, bytes }),
        })
    }

    /// Refuses what the device cannot run.
    fn within(&self, definition: &KernelDefinition, language: Language, home: &Opened) -> Result<()> {
        let (caps, capabilities) = (&home.info.caps, &home.info.capabilities);
        let invocations = self.workgroup.iter().fold(1u64, |product, size| product.saturating_mul((*size).into()));
        let [x, y, z] = [0, 1, 2].map(|axis| (u64::from(self.workgroup[axis]), u64::from(capabilities.max_workgroup_size[axis])));
        // Of what a CUDA source declares itself the compiler says whether it fits.
        let shared_bytes = if language == Language::Wgsl { self.workgroup_bytes } else { definition.shared_bytes };
        let params_bytes = self.params.map_or(0, |params| params.bytes);
        let limits = [
            ("the workgroup's size in x", x.0, x.1),
            ("the workgroup's size in y", y.0, y.1),
            ("the workgroup's size in z", z.0, z.1),
            ("the number of invocations in a workgroup", invocations, caps.max_workgroup_invocations.into()),
            ("the workgroup memory in bytes", shared_bytes.into(), capabilities.max_workgroup_bytes.into()),
            ("the number of buffers of a kernel", self.bindings.len() as u64, capabilities.max_storage_bindings.into()),
            ("the size in bytes of a kernel's parameters", params_bytes.into(), capabilities.max_params_bytes.into()),
        ];
        match limits.into_iter().find(|(_, requested, max)| requested > max) {
            Some((what, requested, max)) => Err(Box::new(Error::LimitExceeded { what, requested, max })),
            None if invocations == 0 => Err(disagree(definition, "workgroup", format!("{:?}", self.workgroup), "1 or more".to_owned())),
            None => Ok(()),
        }
    }
}

/// Why nothing was read from a source.
fn unread(definition: &KernelDefinition) -> &'static str {
    if definition.wgsl.is_some() {
        "a build without the features vulkan and webgpu reads no WGSL: "
    } else {
        "without WGSL to read it from "
    }
}

fn disagree(definition: &KernelDefinition, what: &str, told: String, read: String) -> Box<Error> {
    Box::new(Error::InvalidOption {
        option: format!("{what} of the kernel {}", definition.name),
        value: told,
        expected: format!("its source says {read}"),
    })
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel {} from {} on {}", self.name(), self.language(), self.backend())
    }
}
