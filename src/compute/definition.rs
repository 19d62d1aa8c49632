//! A kernel as its author writes it: a name, a source for each sort of device, and what the sources do not say themselves.

use std::fmt;

use super::twin::{Run, Twin, Values};
use crate::error::{Error, Result};
use crate::info::BackendId;

/// What a kernel does with a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It only reads.
    Read,
    /// It writes, and may read.
    ReadWrite,
}

/// What a kernel was compiled from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// WGSL, for webgpu and vulkan.
    Wgsl,
    /// CUDA C++, compiled by NVRTC.
    Cuda,
    /// PTX, compiled by NVIDIA's driver.
    Ptx,
    /// The twin on the CPU.
    Cpu,
}

impl Language {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wgsl => "WGSL",
            Self::Cuda => "CUDA C++",
            Self::Ptx => "PTX",
            Self::Cpu => "the CPU's twin",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel: one meaning, and a source for each backend that is to run it.
///
/// | backend | runs |
/// |---|---|
/// | webgpu, vulkan | [`wgsl`](Self::wgsl) |
/// | cuda | [`cuda`](Self::cuda), else [`ptx`](Self::ptx) |
/// | simd, scalar | [`cpu`](Self::cpu) |
///
/// Where a backend has no source, the twin on the CPU runs on copies of what the buffers hold; [`Kernel::language`](super::Kernel::language)
/// tells. Arguments are counted in the order of the bindings' numbers in WGSL, which is that of the pointers among a CUDA kernel's
/// arguments; its parameters come last, by value.
#[derive(Clone)]
pub struct KernelDefinition {
    pub(crate) name: String,
    pub(crate) wgsl: Option<String>,
    pub(crate) cuda: Option<String>,
    pub(crate) ptx: Option<String>,
    pub(super) cpu: Option<Twin>,
    pub(crate) entry: Option<String>,
    pub(super) bindings: Option<Vec<Access>>,
    pub(super) workgroup: Option<[u32; 3]>,
    pub(super) params_bytes: Option<u32>,
    pub(crate) shared_bytes: u32,
}

impl KernelDefinition {
    /// A kernel without a source.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            wgsl: None,
            cuda: None,
            ptx: None,
            cpu: None,
            entry: None,
            bindings: None,
            workgroup: None,
            params_bytes: None,
            shared_bytes: 0,
        }
    }

    /// The source for webgpu and vulkan. Buffers are storage buffers in group 0; parameters are the one uniform buffer there. Bindings,
    /// their least sizes, the workgroup's size and that of the parameters are read from it. It may use f16 (`enable f16;`), f64 and
    /// subgroups where the device has `shader-f16`, `shader-f64` and `subgroups` among its
    /// [features](crate::DeviceInfo::features); packing and unpacking of f16, which is how WGSL reads a tensor of it, everywhere.
    pub fn wgsl(mut self, source: impl Into<String>) -> Self {
        self.wgsl = Some(source.into());
        self
    }

    /// The source for cuda, compiled for the GPU by NVRTC. Its entry point is `extern "C"` and called as the kernel, or as
    /// [`entry`](Self::entry) says. Without WGSL beside it [`bindings`](Self::bindings), [`workgroup`](Self::workgroup) and, if there
    /// are any, [`params_bytes`](Self::params_bytes) have to be told.
    pub fn cuda(mut self, source: impl Into<String>) -> Self {
        self.cuda = Some(source.into());
        self
    }

    /// The same already compiled, which needs no NVRTC; it serves where there is no CUDA source.
    pub fn ptx(mut self, source: impl Into<String>) -> Self {
        self.ptx = Some(source.into());
        self
    }

    /// The twin on the CPU: called once a launch, for the whole grid, with the buffers in the order of their bindings. The device waits for it:
    /// it has to keep from calling the device's buffers and streams, which is an error on its own thread. In place of a kernel on a GPU it works
    /// on copies: what others write to a buffer meanwhile that it writes too is lost.
    pub fn cpu<const N: usize>(mut self, twin: impl Fn(&Run<'_>, [Values<'_>; N]) + Send + Sync + 'static) -> Self {
        self.cpu = Some(Twin::new(twin));
        self
    }

    /// The entry point: by default WGSL's only one, and in CUDA C++ and PTX the kernel's name.
    pub fn entry(mut self, name: impl Into<String>) -> Self {
        self.entry = Some(name.into());
        self
    }

    /// What the kernel does with each of its buffers. WGSL says so itself, and has to agree.
    pub fn bindings(mut self, bindings: impl Into<Vec<Access>>) -> Self {
        self.bindings = Some(bindings.into());
        self
    }

    /// Invocations of a workgroup, which CUDA calls threads of a block, in x, y and z. WGSL says so itself, and has to agree.
    pub fn workgroup(mut self, size: [u32; 3]) -> Self {
        self.workgroup = Some(size);
        self
    }

    /// The size of the parameters in bytes. WGSL says so itself, and has to agree.
    pub fn params_bytes(mut self, bytes: u32) -> Self {
        self.params_bytes = Some(bytes);
        self
    }

    /// CUDA's dynamic shared memory of a block, in bytes, beside what the source declares.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What that backend runs.
    pub(super) fn language_of(&self, backend: BackendId) -> Result<Language> {
        let own = match backend {
            BackendId::Cuda if self.cuda.is_some() => Some(Language::Cuda),
            BackendId::Cuda => self.ptx.as_ref().map(|_| Language::Ptx),
            BackendId::Vulkan | BackendId::WebGpu => self.wgsl.as_ref().map(|_| Language::Wgsl),
            _ => None,
        };
        own.or(self.cpu.as_ref().map(|_| Language::Cpu)).ok_or_else(|| {
            let source = match backend {
                BackendId::Cuda => "a source by .cuda() or .ptx()",
                BackendId::Vulkan | BackendId::WebGpu => "a source by .wgsl()",
                _ => "a twin by .cpu()",
            };
            let remedy = if source.contains("twin") { String::new() } else { ", or a twin on the CPU by .cpu()".to_owned() };
            Box::new(Error::InvalidOption {
                option: format!("the kernel {}", self.name),
                value: format!("without a source for {backend}"),
                expected: format!("it needs {source}{remedy}"),
            })
        })
    }
}

impl fmt::Debug for KernelDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there = [self.wgsl.is_some(), self.cuda.is_some(), self.ptx.is_some(), self.cpu.is_some()];
        let languages = [Language::Wgsl, Language::Cuda, Language::Ptx, Language::Cpu];
        let sources = languages.into_iter().zip(there).filter_map(|(language, there)| there.then_some(language.name()));
        write!(f, "KernelDefinition {} in {}", self.name, sources.collect::<Vec<_>>().join(", "))
    }
}
