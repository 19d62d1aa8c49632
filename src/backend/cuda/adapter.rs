//! Finds the GPUs, chooses one and opens it.

use std::sync::Arc;

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute};

use super::cublaslt::CublasLt;
use super::driver::{Context, Fault, Stream, check, ended, text};
use super::{Cuda, load};
use crate::backend::pool::Pool;
use crate::devices::{AdapterInfo, no_such_adapter};
use crate::dtype::DType;
use crate::info::{BackendId, BackendState, Capabilities, Caps, DeviceInfo, DeviceKind, Dialect, MatrixUnit, Memory, OtherBackend};
use crate::options::{Options, PowerPreference};
use crate::plan::tuned::Tuned;

/// The oldest GPUs that the kernels are compiled for.
const OLDEST_COMPUTE_CAPABILITY: (i32, i32) = (5, 2);

/// The oldest GPUs that multiply packed integers of 8 bits.
const PACKED_COMPUTE_CAPABILITY: (i32, i32) = (6, 1);

/// The oldest GPUs with matrix units that `shaders/matmul/cooperative.cu` and `int8_units.cu` can use, and what these are.
const UNITS_COMPUTE_CAPABILITY: (i32, i32) = (8, 0);

/// From which on blocks of a cluster see one another's memory, and how many of them there may be on every such GPU.
pub(super) const CLUSTER_COMPUTE_CAPABILITY: (i32, i32) = (9, 0);
const CLUSTER: u32 = 8;
const UNIT: MatrixUnit =
    MatrixUnit { m: 16, n: 8, k: 16, operands: DType::F16, sums: DType::F32, subgroup_size: 32, dialect: Dialect::Ptx };

/// What GPUs have, and since which compute capability. The shapes are those of `wmma` and `mma`.
const FEATURES: [(&str, (i32, i32)); 18] = [
    ("timestamp-query", (0, 0)),
    ("shader-f16", (5, 3)),
    ("shader-f64", (0, 0)),
    ("shader-i8", (0, 0)),
    ("integer-dot-product", (6, 1)),
    ("subgroups", (0, 0)),
    ("subgroup-arithmetic", (0, 0)),
    ("subgroup-shuffle", (0, 0)),
    ("subgroup-size-32", (0, 0)),
    ("cooperative-matrix", (7, 0)),
    ("cooperative-matrix-16x16x16-f16-f32", (7, 0)),
    ("cooperative-matrix-16x16x16-f16-f16", (7, 0)),
    ("cooperative-matrix-16x16x16-i8-i32", (7, 2)),
    ("cooperative-matrix-16x8x16-f16-f32", (8, 0)),
    ("cooperative-matrix-16x8x16-f16-f16", (8, 0)),
    ("cooperative-matrix-16x8x16-bf16-f32", (8, 0)),
    ("cooperative-matrix-16x8x32-i8-i32", (8, 0)),
    ("cooperative-matrix-8x8x4-f64-f64", (8, 0)),
];

/// A GPU, as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    ordinal: i32,
    device: CUdevice,
    compute_capability: (i32, i32),
    multiprocessors: i32,
    memory_bytes: u64,
    integrated: bool,
}

/// Opens the best GPU, or the one that is asked for, or says why there is none.
pub(crate) fn open(options: &Options) -> Result<(Cuda, DeviceInfo), OtherBackend> {
    let driver_version = load::driver().map_err(missing)?;
    let mut found = find().map_err(failed)?;
    if let Some(index) = options.adapter {
        if index as usize >= found.len() {
            return Err(no_such_adapter(BackendId::Cuda, index, found.len()));
        }
        found = vec![found.swap_remove(index as usize)];
    }
    let (mut usable, mut refused) = (Vec::new(), None);
    for found in found {
        match found.map_err(failed).and_then(|found| found.refusal().map_or(Ok(found), Err)) {
            Ok(found) => usable.push(found),
            Err(refusal) => refused = refused.or(Some(refusal)),
        }
    }
    // One that cannot be opened, as where another process has all of its memory, leaves the others.
    let mut fault = None;
    while let Some(best) = choose(&usable, options.power_preference).cloned() {
        match Context::retain(best.device, best.ordinal).and_then(|context| assemble(context, &best, driver_version, options)) {
            Ok(opened) => return Ok(opened),
            Err(failure) => fault = fault.or(Some(failed(failure))),
        }
        usable.retain(|found| *found != best);
    }
    Err(fault.or(refused).unwrap_or_else(no_gpu))
}

/// The GPUs as the driver counts them, or why there are none.
pub(crate) fn list() -> Result<Vec<AdapterInfo>, OtherBackend> {
    let driver_version = load::driver().map_err(missing)?;
    let found = find().map_err(failed)?;
    let describe = |(index, found): (u32, Result<Found, Fault>)| {
        let described = found.and_then(|found| {
            let info = found.info(driver_version)?;
            let fault = found.refusal().map(|refusal| refusal.reason);
            Ok(AdapterInfo { fault, ..AdapterInfo::new(info, index, Some(found.memory_bytes)) })
        });
        described.unwrap_or_else(|fault| AdapterInfo::faulty(BackendId::Cuda, index, String::new(), fault.to_string()))
    };
    if found.is_empty() { Err(no_gpu()) } else { Ok((0..).zip(found).map(describe).collect()) }
}

fn off(reason: String, remedy: &str) -> OtherBackend {
    OtherBackend { backend: BackendId::Cuda, state: BackendState::Off, reason, remedy: remedy.to_owned() }
}

#[expect(clippy::needless_pass_by_value, reason = "it stands where an error is passed on")]
fn failed(fault: Fault) -> OtherBackend {
    off(fault.to_string(), load::SEE)
}

fn missing(missing: load::Missing) -> OtherBackend {
    off(missing.reason, missing.remedy)
}

fn no_gpu() -> OtherBackend {
    off(load::NO_GPU.to_owned(), load::SEE)
}

impl Found {
    /// Why it cannot be used, if it cannot.
    fn refusal(&self) -> Option<OtherBackend> {
        let ((major, minor), (oldest_major, oldest_minor)) = (self.compute_capability, OLDEST_COMPUTE_CAPABILITY);
        if self.compute_capability < OLDEST_COMPUTE_CAPABILITY {
            let needs = format!("the GPU has compute capability {major}.{minor}, but {oldest_major}.{oldest_minor} is needed");
            return Some(off(needs, ""));
        }
        let reason = ended(self.ordinal)?;
        Some(off(format!("a fault has ended CUDA for this process ({reason})"), "start the program again"))
    }

    /// What it can do beside products.
    fn capabilities(&self) -> Result<Capabilities, Fault> {
        use CUdevice_attribute as Attribute;
        let most = |what| attribute(self.device, what).map(i32::cast_unsigned);
        let (major, minor) = self.compute_capability;
        Ok(Capabilities {
            memory_bytes: Some(self.memory_bytes),
            memories: &[Memory::Device, Memory::HostVisible, Memory::Pinned],
            max_workgroup_size: [
                most(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                most(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                most(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_workgroup_bytes: most(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            max_grid: [
                most(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                most(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                most(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            // Arguments take 4 KiB: pointers of 8 bytes, and the parameters.
            max_storage_bindings: 256,
            max_params_bytes: 2048,
            subgroup_size: Some(most(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?),
            compute_capability: Some((major.cast_unsigned(), minor.cast_unsigned())),
            f16: (major, minor) >= (5, 3),
            f64: true,
            int8: (major, minor) >= PACKED_COMPUTE_CAPABILITY,
            atomics: if major >= 6 { &["i32", "u32", "u64", "f32", "f64"] } else { &["i32", "u32", "u64", "f32"] },
            matrix_units: major >= 7,
            concurrent_streams: true,
            device_clock: true,
        })
    }

    /// Names of what it has.
    fn features(&self) -> Result<Vec<&'static str>, Fault> {
        let has_copy_engine = attribute(self.device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)? > 0;
        let others = [("transfer-queue", has_copy_engine), ("unified-memory", self.integrated)];
        let all = FEATURES.iter().map(|&(name, since)| (name, self.compute_capability >= since)).chain(others);
        Ok(all.filter_map(|(name, there)| there.then_some(name)).collect())
    }

    /// What can be said of it before it is opened.
    fn info(&self, driver_version: i32) -> Result<DeviceInfo, Fault> {
        let most = |what| attribute(self.device, what).map(i32::cast_unsigned);
        let (major, minor) = self.compute_capability;
        Ok(DeviceInfo {
            backend: BackendId::Cuda,
            name: name(self.device)?,
            vendor: "nvidia".to_owned(),
            architecture: format!("sm_{major}{minor}"),
            kind: if self.integrated { DeviceKind::Integrated } else { DeviceKind::Discrete },
            driver: format!("CUDA {}", load::dotted(driver_version)),
            uuid: Some(uuid(self.device)?),
            pci_address: pci_address(self.device)?,
            caps: Caps {
                max_buffer_bytes: self.memory_bytes,
                max_binding_bytes: self.memory_bytes,
                binding_alignment_bytes: 256,
                max_workgroups_per_dimension: i32::MAX as u32,
                max_workgroup_invocations: most(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
                max_workgroup_bytes: most(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
                max_cluster_workgroups: if self.compute_capability >= CLUSTER_COMPUTE_CAPABILITY { CLUSTER } else { 1 },
                max_texture_size: u32::MAX,
                tuned: Tuned::NONE,
                f16: false,
                stores_f16: true,
                packed_dot: self.compute_capability >= PACKED_COMPUTE_CAPABILITY,
                matrix_unit: (self.compute_capability >= UNITS_COMPUTE_CAPABILITY).then_some(UNIT),
                keeps: [false; 2],
            },
            capabilities: self.capabilities()?,
            features: self.features()?,
            notes: Vec::new(),
            reason: String::new(),
            others: Vec::new(),
            generation: 1,
        })
    }
}

fn assemble(context: Arc<Context>, found: &Found, driver_version: i32, options: &Options) -> Result<(Cuda, DeviceInfo), Fault> {
    let stream = Arc::new(Stream::new(Arc::clone(&context))?);
    let mut info = found.info(driver_version)?;
    let cublaslt = match CublasLt::open_if(options.vendor_libraries, &stream) {
        Ok(library) => {
            info.features.push("cublaslt");
            Some(library)
        }
        Err(why) => {
            info.notes.push(why);
            None
        }
    };
    let cuda = Cuda {
        turn: Default::default(),
        pieces: Default::default(),
        pool: Pool::new(options.pool_bytes),
        kernels: Default::default(),
        generated: Default::default(),
        may_compile: options.vendor_libraries,
        cublaslt,
        multiprocessors: found.multiprocessors.cast_unsigned(),
        compute_capability: (found.compute_capability.0.cast_unsigned(), found.compute_capability.1.cast_unsigned()),
        max_shared_bytes: info.capabilities.max_workgroup_bytes,
        order: Default::default(),
        caps: Caps {
            tuned: crate::tune::load(options, &info, &crate::plan::matmul::cuda_tiles()),
            ..info.caps.clone().with_workgroup_hint(options.workgroup_hint)
        },
        stream,
    };
    Ok((cuda, info))
}

/// All GPUs, each by itself: that one cannot be described does not concern the others.
fn find() -> Result<Vec<Result<Found, Fault>>, Fault> {
    let mut count = 0;
    // SAFETY: the driver is started, and writes one number.
    check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
    Ok((0..count).map(describe).collect())
}

fn describe(ordinal: i32) -> Result<Found, Fault> {
    use CUdevice_attribute as Attribute;
    let mut device = 0;
    // SAFETY: the driver is started, and writes one handle.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut device, ordinal) })?;
    let mut memory_bytes = 0;
    // SAFETY: the device is one that the driver gave, and it writes one number.
    check("cuDeviceTotalMem_v2", unsafe { sys::cuDeviceTotalMem_v2(&raw mut memory_bytes, device) })?;
    Ok(Found {
        ordinal,
        device,
        compute_capability: (
            attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory_bytes: memory_bytes as u64,
        integrated: attribute(device, Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0,
    })
}

/// The fastest, or the one that draws the least: the newer, the larger, the one with more memory; the first of equals.
fn choose(found: &[Found], preference: PowerPreference) -> Option<&Found> {
    let strength = |found: &&Found| (!found.integrated, found.compute_capability, found.multiprocessors, found.memory_bytes);
    match preference {
        PowerPreference::HighPerformance => found.iter().rev().max_by_key(strength),
        PowerPreference::LowPower => found.iter().min_by_key(|found| (!found.integrated, found.multiprocessors, found.memory_bytes)),
    }
}

fn attribute(device: CUdevice, attribute: CUdevice_attribute) -> Result<i32, Fault> {
    let mut value = 0;
    // SAFETY: the device is one that the driver gave, and it writes one number.
    check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) })?;
    Ok(value)
}

fn name(device: CUdevice) -> Result<String, Fault> {
    let mut buffer = [0u8; 256];
    // SAFETY: the device is one that the driver gave; it writes a text of at most the length told, its zero included.
    check("cuDeviceGetName", unsafe { sys::cuDeviceGetName(buffer.as_mut_ptr().cast(), buffer.len() as i32, device) })?;
    Ok(text(&buffer))
}

fn uuid(device: CUdevice) -> Result<[u8; 16], Fault> {
    let mut uuid = sys::CUuuid { bytes: [0; 16] };
    // SAFETY: the device is one that the driver gave, and it writes 16 bytes.
    check("cuDeviceGetUuid_v2", unsafe { sys::cuDeviceGetUuid_v2(&raw mut uuid, device) })?;
    Ok(uuid.bytes.map(|byte| byte as u8))
}

/// As other backends write it: domain, bus, device and function.
fn pci_address(device: CUdevice) -> Result<String, Fault> {
    let mut buffer = [0u8; 32];
    // SAFETY: as for the name.
    check("cuDeviceGetPCIBusId", unsafe { sys::cuDeviceGetPCIBusId(buffer.as_mut_ptr().cast(), buffer.len() as i32, device) })?;
    Ok(text(&buffer).to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ordinal: i32, compute_capability: (i32, i32), multiprocessors: i32, memory_gib: u64, integrated: bool) -> Found {
        Found { ordinal, device: ordinal, compute_capability, multiprocessors, memory_bytes: memory_gib << 30, integrated }
    }

    #[test]
    fn the_newest_and_largest_is_the_fastest_and_the_smallest_draws_the_least() {
        let all = [
            found(0, (8, 7), 16, 64, true),
            found(1, (8, 6), 46, 8, false),
            found(2, (9, 0), 132, 141, false),
            found(3, (9, 0), 132, 141, false),
        ];
        let ordinal = |all: &[Found], preference| choose(all, preference).map(|found| found.ordinal);
        assert_eq!(ordinal(&all, PowerPreference::HighPerformance), Some(2));
        assert_eq!(ordinal(&all, PowerPreference::LowPower), Some(0));
        assert_eq!(ordinal(&all[1..], PowerPreference::LowPower), Some(1));
        assert_eq!(ordinal(&[], PowerPreference::HighPerformance), None);
    }
}
