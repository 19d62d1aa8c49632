//! What a device is and what it can do: asked once, then data. The same struct is behind JavaScript's `device_info()`, the page's
//! card and the tests.

use std::fmt;

use crate::dtype::DType;
use crate::error::Error;
use crate::plan::Slot;
use crate::plan::tuned::Tuned;

/// What computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendId {
    /// NVIDIA's CUDA, natively.
    #[cfg(not(target_arch = "wasm32"))]
    Cuda,
    /// Vulkan itself, natively.
    #[cfg(not(target_arch = "wasm32"))]
    Vulkan,
    /// wgpu: WebGPU in the browser; Vulkan, Metal, DX12 or GL natively.
    WebGpu,
    /// Fragment shaders in the browser.
    WebGl2,
    /// Vector instructions on the CPU.
    Simd,
    /// Plain code on the CPU: the oracle that the others are tested against.
    Scalar,
}

impl BackendId {
    /// All of them, in the order in which `auto` prefers them: by what measured fastest, not by name.
    ///
    /// On an NVIDIA H200, f32 at 4096³ with operands on the device: CUDA 51 TFLOP/s by cuBLASLt, which no other backend of that card exceeds.
    /// Vulkan itself goes before wgpu, which runs the same kernels on the same driver with its own checks added, and has 2 GiB in a
    /// binding where Vulkan has 4; in the browser WebGPU gave 46 TFLOP/s there and WebGL2 0.25. SIMD goes before plain code. A GPU that a
    /// CPU emulates has no place in the order: it is raced against the CPU.
    pub const ALL: &[Self] = &[
        #[cfg(not(target_arch = "wasm32"))]
        Self::Cuda,
        #[cfg(not(target_arch = "wasm32"))]
        Self::Vulkan,
        Self::WebGpu,
        Self::WebGl2,
        Self::Simd,
        Self::Scalar,
    ];

    /// The name that options, reports and JavaScript use.
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cuda => "cuda",
            #[cfg(not(target_arch = "wasm32"))]
            Self::Vulkan => "vulkan",
            Self::WebGpu => "webgpu",
            Self::WebGl2 => "webgl2",
            Self::Simd => "simd",
            Self::Scalar => "scalar",
        }
    }

    /// The backend of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.name() == name)
    }

    /// Whether its kernels compute what follows an operation, too; those of CUDA do on devices that have its compiler.
    pub(crate) const fn fuses(self) -> bool {
        match self {
            Self::WebGpu | Self::WebGl2 => true,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Vulkan => true,
            _ => false,
        }
    }

    /// Whether results come from a device of its own memory.
    pub const fn is_gpu(self) -> bool {
        !matches!(self, Self::Simd | Self::Scalar)
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What sort of hardware a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeviceKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU that does not say which.
    Gpu,
    /// A CPU that emulates a GPU: SwiftShader, lavapipe, WARP.
    Software,
    /// The CPU itself.
    Cpu,
}

impl DeviceKind {
    /// Whether its memory is the CPU's.
    #[cfg(all(any(feature = "vulkan", feature = "webgpu"), not(target_arch = "wasm32")))]
    pub(crate) const fn shares_memory(self) -> bool {
        matches!(self, Self::Integrated | Self::Software | Self::Cpu)
    }

    /// The name that JavaScript sees.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Gpu => "gpu",
            Self::Software => "software",
            Self::Cpu => "cpu",
        }
    }
}

/// What plans may rely on. A limit that a backend does not have is `u64::MAX` or `u32::MAX`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// The largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// The largest range of a buffer that a kernel sees at once, in bytes.
    pub max_binding_bytes: u64,
    /// Bindings start at multiples of this many bytes.
    pub binding_alignment_bytes: u64,
    /// The most workgroups in x, y or z.
    pub max_workgroups_per_dimension: u32,
    /// The most invocations in a workgroup.
    pub max_workgroup_invocations: u32,
    /// Workgroup memory in bytes.
    pub max_workgroup_bytes: u32,
    /// The most workgroups that see one another's memory: 1 where none do.
    pub max_cluster_workgroups: u32,
    /// The longest side of a texture in texels.
    pub max_texture_size: u32,
    /// What was measured to be fastest on this very device.
    pub tuned: Tuned,
    /// Whether kernels may compute in f16.
    pub f16: bool,
    /// Whether kernels may write f16 one by one, and not as words of two.
    pub stores_f16: bool,
    /// Whether kernels may multiply packed 8-bit integers, four in an instruction.
    pub packed_dot: bool,
    /// The matrix units that kernels of the crate can use.
    pub matrix_unit: Option<MatrixUnit>,
    /// Of which of a product's operands other forms are kept, so that what they cost does not count.
    pub keeps: [bool; 2],
}

/// What multiplies small matrices in one instruction, a subgroup at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixUnit {
    /// Rows of A and of the sums.
    pub m: u32,
    /// Columns of B and of the sums.
    pub n: u32,
    /// Columns of A, rows of B.
    pub k: u32,
    /// What A's and B's elements are.
    pub operands: DType,
    /// What the sums are.
    pub sums: DType,
    /// Invocations that share one.
    pub subgroup_size: u32,
    /// How shaders speak of them.
    pub dialect: Dialect,
}

/// The language of matrix units. WGSL has no standard one yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// naga's cooperative matrices in WGSL, for Vulkan.
    #[cfg(not(target_arch = "wasm32"))]
    Cooperative,
    /// Chromium's experimental subgroup matrices in WGSL.
    Subgroup,
    /// The instructions of PTX, for CUDA.
    #[cfg(not(target_arch = "wasm32"))]
    Ptx,
}

impl Caps {
    /// Where another form of an operand goes that is kept; None of one of which none is.
    pub(crate) fn kept(&self, operand: Slot) -> Option<Slot> {
        match operand {
            Slot::Input(at @ 0..2) if self.keeps[usize::from(at)] => Some(Slot::Kept(at)),
            _ => None,
        }
    }

    /// No limit at all: what the CPU has, and what a test starts from.
    pub const UNLIMITED: Self = Self {
        max_buffer_bytes: u64::MAX,
        max_binding_bytes: u64::MAX,
        binding_alignment_bytes: 16,
        max_workgroups_per_dimension: u32::MAX,
        max_workgroup_invocations: u32::MAX,
        max_cluster_workgroups: 1,
        max_workgroup_bytes: u32::MAX,
        max_texture_size: u32::MAX,
        tuned: Tuned::NONE,
        f16: false,
        stores_f16: false,
        packed_dot: false,
        matrix_unit: None,
        keeps: [false; 2],
    };

    /// The same with workgroups of at most so many invocations, but never fewer than the smallest kernel has.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn with_workgroup_hint(self, most: Option<u32>) -> Self {
        let most = most.unwrap_or(u32::MAX).max(crate::plan::matmul::SMALLEST_WORKGROUP);
        Self { max_workgroup_invocations: self.max_workgroup_invocations.min(most), ..self }
    }
}

/// Where memory lies that is allocated through [`compute`](crate::compute).
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The device's own, the fastest for kernels.
    Device,
    /// Memory that kernels and the host both reach: written and read without a copy on the way, slower for kernels.
    HostVisible,
    /// The host's, locked in place, for copies that run while the host and kernels do other things. Kernels do not see it.
    Pinned,
}

#[cfg(not(target_arch = "wasm32"))]
impl Memory {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::HostVisible => "host-visible",
            Self::Pinned => "pinned",
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a device can do beside products, for [`compute`](crate::compute): asked once.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Bytes of memory in all; None if the backend does not tell.
    pub memory_bytes: Option<u64>,
    /// What can be allocated.
    pub memories: &'static [Memory],
    /// The largest workgroup in x, y and z; CUDA calls it a block.
    pub max_workgroup_size: [u32; 3],
    /// Workgroup memory in bytes that a kernel may have at most; CUDA calls it shared memory of a block.
    pub max_workgroup_bytes: u32,
    /// The most workgroups of a launch in x, y and z.
    pub max_grid: [u32; 3],
    /// The most buffers of a kernel.
    pub max_storage_bindings: u32,
    /// The largest parameters of a kernel, in bytes.
    pub max_params_bytes: u32,
    /// Invocations that run in step, if the backend tells; CUDA calls them a warp.
    pub subgroup_size: Option<u32>,
    /// NVIDIA's number of what the GPU can do.
    pub compute_capability: Option<(u32, u32)>,
    /// Whether it computes in half precision.
    pub f16: bool,
    /// Whether it computes in double precision.
    pub f64: bool,
    /// Whether it computes with integers of 8 bits.
    pub int8: bool,
    /// The numbers that kernels can change atomically.
    pub atomics: &'static [&'static str],
    /// Whether it has units that multiply small matrices.
    pub matrix_units: bool,
    /// Whether streams run beside one another, rather than one after the other.
    pub concurrent_streams: bool,
    /// Whether events are timed by a clock of the device.
    pub device_clock: bool,
}

#[cfg(not(target_arch = "wasm32"))]
impl Capabilities {
    /// What WGSL and every driver of today have, from which backends start.
    pub(crate) const LEAST: Self = Self {
        memory_bytes: None,
        memories: &[Memory::Device],
        max_workgroup_size: [256, 256, 64],
        max_workgroup_bytes: 16_384,
        max_grid: [65_535; 3],
        max_storage_bindings: 4,
        max_params_bytes: 16_384,
        subgroup_size: None,
        compute_capability: None,
        f16: false,
        f64: false,
        int8: false,
        atomics: &["i32", "u32"],
        matrix_units: false,
        concurrent_streams: false,
        device_clock: false,
    };
}

/// Whether a backend that is not in use could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendState {
    /// It works; another was preferred.
    Available,
    /// It cannot be used here.
    Off,
    /// Nothing asked for it.
    Untried,
}

impl BackendState {
    /// The name that JavaScript sees.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::Off => "off",
            Self::Untried => "untried",
        }
    }
}

/// Why a backend is not the one in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherBackend {
    /// Which.
    pub backend: BackendId,
    /// Whether it could be used.
    pub state: BackendState,
    /// What is missing, or why another was preferred.
    pub reason: String,
    /// What would turn it on; empty if nothing would.
    pub remedy: String,
}

impl OtherBackend {
    pub(crate) fn new(backend: BackendId, state: BackendState, reason: &str, remedy: &str) -> Self {
        Self { backend, state, reason: reason.to_owned(), remedy: remedy.to_owned() }
    }

    /// One that cannot be used here.
    pub(crate) fn off(backend: BackendId, reason: &str, remedy: &str) -> Self {
        Self::new(backend, BackendState::Off, reason, remedy)
    }
}

impl From<OtherBackend> for Box<Error> {
    fn from(other: OtherBackend) -> Self {
        Box::new(Error::Unavailable { backend: other.backend, reason: other.reason, remedy: other.remedy })
    }
}

/// The device in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// What computes.
    pub backend: BackendId,
    /// The adapter's name; empty if the browser does not tell.
    pub name: String,
    /// The maker; empty if unknown.
    pub vendor: String,
    /// The chip's family; empty if unknown.
    pub architecture: String,
    /// What sort of hardware.
    pub kind: DeviceKind,
    /// The driver's name or version; empty if unknown.
    #[cfg(not(target_arch = "wasm32"))]
    pub driver: String,
    /// What drivers call this very card: the same in each backend that sees it. None if unknown.
    #[cfg(not(target_arch = "wasm32"))]
    pub uuid: Option<[u8; 16]>,
    /// The card's place on the PCI bus, e.g. `0000:65:00.0`: the same in each backend that sees it. Empty if unknown.
    #[cfg(not(target_arch = "wasm32"))]
    pub pci_address: String,
    /// Limits that plans rely on.
    pub caps: Caps,
    /// What else it can do.
    #[cfg(not(target_arch = "wasm32"))]
    pub capabilities: Capabilities,
    /// Features in use, or there to be used. Natively they have the same names on every backend:
    ///
    /// | name | the device has |
    /// |---|---|
    /// | `shader-f16` | kernels that store f16 and compute in it |
    /// | `shader-f64` | kernels that compute in double precision |
    /// | `shader-i8` | kernels that store integers of 8 bits and compute with them |
    /// | `integer-dot-product` | products of packed 8-bit integers, four in an instruction |
    /// | `subgroups` | all functions of a subgroup, which CUDA calls a warp: votes, ballots, sums, shuffles, quads |
    /// | `subgroup-arithmetic`, `subgroup-shuffle` | these of them |
    /// | `subgroup-size-32` | subgroups of so many invocations |
    /// | `cooperative-matrix` | units that multiply small matrices |
    /// | `cooperative-matrix-16x16x16-f16-f32` | them for that shape (m, n, k), type of A and B, and type of the sums |
    /// | `timestamp-query` | a clock by which events and kernels are timed |
    /// | `transfer-queue` | copies that run beside kernels |
    /// | `unified-memory` | the CPU's memory for its own |
    /// | `cublaslt` | NVIDIA's library, loaded; only once it is open |
    /// | `simd`, `threads` | vector instructions and several cores: the CPU |
    ///
    /// wgpu tells only of `shader-f16`, `shader-f64`, `timestamp-query` and `unified-memory`. In the browser there are, beside those that WebGPU
    /// has itself, `subgroup-matrix` for Chromium's matrix units and what WebGL2 and WebAssembly call their own.
    pub features: Vec<&'static str>,
    /// What would make more of the device and is not there, each with the reason and what would bring it: a maker's library.
    #[cfg(not(target_arch = "wasm32"))]
    pub notes: Vec<String>,
    /// Why this backend was chosen.
    pub reason: String,
    /// The others, each with the reason why it is not in use.
    pub others: Vec<OtherBackend>,
    /// Counts the devices of this handle: 1 at first, one more after each recovery from a loss.
    pub generation: u32,
}

impl DeviceInfo {
    /// Whether a CPU emulates the GPU.
    pub fn is_software(&self) -> bool {
        self.kind == DeviceKind::Software
    }
}

/// Whether an adapter's name is that of a known software renderer. Browsers do not always say so themselves.
#[cfg(any(all(feature = "vulkan", not(target_arch = "wasm32")), feature = "webgpu", all(feature = "webgl2", target_arch = "wasm32")))]
pub(crate) fn is_software_name(name: &str) -> bool {
    ["swiftshader", "llvmpipe", "lavapipe", "softpipe", "microsoft basic render", "warp"].iter().any(|known| has_word(name, known))
}

/// Whether it is somewhere in the name, in capitals or not. What the standard library has for that would be kilobytes of the npm package.
#[cfg(any(all(feature = "vulkan", not(target_arch = "wasm32")), feature = "webgpu", all(feature = "webgl2", target_arch = "wasm32")))]
pub(crate) fn has_word(name: &str, word: &str) -> bool {
    name.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// The maker by its PCI number, or by the one that Khronos gave it.
#[cfg(all(any(feature = "vulkan", feature = "webgpu"), not(target_arch = "wasm32")))]
pub(crate) fn vendor(id: u32) -> &'static str {
    match id {
        0x1002 => "amd",
        0x1010 => "imgtec",
        0x106B => "apple",
        0x10DE => "nvidia",
        0x13B5 => "arm",
        0x14E4 => "broadcom",
        0x1AE0 => "google",
        0x5143 => "qualcomm",
        0x8086 => "intel",
        0x1_0005 => "mesa",
        _ => "",
    }
}
