//! Finds the physical devices, takes the best that works, and says what it can do.

use std::ffi::CStr;
use std::sync::{Arc, Mutex};

use ash::{ext, khr, vk};
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings};

use super::cache::Cache;
use super::context::Context;
use super::features;
use super::instance::{Instance, NO_DRIVER_REMEDY, Off, version_text};
use super::pipeline::Pipelines;
use super::queue::Queue;
use super::submit::PROOF_BYTES;
use super::{Clock, Vulkan};
use crate::backend::pool::Pool;
use crate::devices::{AdapterInfo, no_such_adapter};
use crate::info::{
    BackendId, BackendState, Capabilities, Caps, DeviceInfo, DeviceKind, MatrixUnit, Memory, OtherBackend, is_software_name, vendor,
};
use crate::options::{Options, PowerPreference};
use crate::plan::tuned::Tuned;

/// Opens the best device, or the one that is asked for, or says why there is none.
pub(crate) fn open(options: &Options) -> Result<(Vulkan, DeviceInfo), OtherBackend> {
    if let Some(index) = options.adapter {
        let count = Instance::shared(options.validation).and_then(|instance| read_all(&instance)).map_err(off)?.len();
        if index as usize >= count {
            return Err(no_such_adapter(BackendId::Vulkan, index, count));
        }
    }
    Instance::shared(options.validation).and_then(|instance| find_and_open(&instance, options)).map_err(off)
}

/// The devices as the drivers list them, or why there are none.
pub(crate) fn list() -> Result<Vec<AdapterInfo>, OtherBackend> {
    let list = || {
        let instance = Instance::shared(false)?;
        let read = |read: Result<Card, Refused>| match read {
            Ok(card) => AdapterInfo::new(card.describe(&instance), card.index, Some(card.heap_bytes)),
            Err(Refused { index, name, fault }) => AdapterInfo::faulty(BackendId::Vulkan, index, name, format!("it {fault}")),
        };
        let found: Vec<_> = read_all(&instance)?.into_iter().map(read).collect();
        if found.is_empty() { Err(no_device()) } else { Ok(found) }
    };
    list().map_err(off)
}

pub(super) fn off((reason, remedy): Off) -> OtherBackend {
    Instance::forget_but(&Context::forget_lost());
    OtherBackend { backend: BackendId::Vulkan, state: BackendState::Off, reason, remedy: remedy.to_owned() }
}

fn no_device() -> Off {
    ("no driver has a device".to_owned(), NO_DRIVER_REMEDY)
}

/// Opens the best of an instance's devices.
pub(super) fn find_and_open(instance: &Arc<Instance>, options: &Options) -> Result<(Vulkan, DeviceInfo), Off> {
    let mut faults = Vec::new();
    for card in cards(instance, options.power_preference, options.adapter, &mut faults)? {
        let make = || card.create(instance).and_then(|device| card.context(instance, device));
        match Context::shared(instance, card.physical, make).and_then(|context| card.assemble(instance, context, options)) {
            Ok(opened) => return Ok(opened),
            Err(fault) => faults.push(format!("{} {fault}", card.name)),
        }
    }
    Err(if faults.is_empty() { no_device() } else { (faults.join("; "), NO_DRIVER_REMEDY) })
}

/// A physical device that can be used.
pub(super) struct Card {
    /// Its place in the drivers' list.
    index: u32,
    pub physical: vk::PhysicalDevice,
    pub name: String,
    /// What it is and can do.
    pub properties: vk::PhysicalDeviceProperties,
    extensions: Vec<vk::ExtensionProperties>,
    kind: DeviceKind,
    driver: String,
    /// Whether it is NVIDIA's own.
    is_nvidias: bool,
    uuid: [u8; vk::UUID_SIZE],
    pci_address: String,
    family: u32,
    /// The family of queues for copies alone, if there is one.
    copies_family: Option<u32>,
    clock: Option<Clock>,
    max_buffer_bytes: u64,
    max_allocation_bytes: u64,
    heap_bytes: u64,
}

/// A physical device that cannot be used.
struct Refused {
    index: u32,
    name: String,
    /// What is wrong with it, to stand after its name.
    fault: String,
}

/// All that the drivers list, in their order.
fn read_all(instance: &Instance) -> Result<Vec<Result<Card, Refused>>, Off> {
    // SAFETY: the instance lives.
    let devices = unsafe { instance.raw.enumerate_physical_devices() };
    let devices = devices.map_err(|result| (format!("the drivers list no devices ({result})"), NO_DRIVER_REMEDY))?;
    Ok((0..).zip(devices).map(|(index, physical)| Card::read(instance, index, physical)).collect())
}

/// Those that can be used, the best first, or the one of that index; why others cannot goes to `faults`.
pub(super) fn cards(
    instance: &Instance,
    preference: PowerPreference,
    only: Option<u32>,
    faults: &mut Vec<String>,
) -> Result<Vec<Card>, Off> {
    let is_meant = |index: u32| only.is_none_or(|only| only == index);
    let mut cards = Vec::new();
    for read in read_all(instance)? {
        match read {
            Ok(card) if is_meant(card.index) => cards.push(card),
            Err(Refused { index, name, fault }) if is_meant(index) => faults.push(format!("{name} {fault}")),
            _ => {}
        }
    }
    // Stable: of equals the first that the drivers list.
    cards.sort_by_key(|card| std::cmp::Reverse(card.score(preference)));
    Ok(cards)
}

impl Card {
    fn read(instance: &Instance, index: u32, physical: vk::PhysicalDevice) -> Result<Self, Refused> {
        let raw = &instance.raw;
        // SAFETY: the physical device is the instance's.
        let properties = unsafe { raw.get_physical_device_properties(physical) };
        let name = text(properties.device_name_as_c_str());
        let version = properties.api_version;
        if version < vk::API_VERSION_1_2 {
            return Err(Refused { index, name, fault: format!("has Vulkan {}, and 1.2 is needed", version_text(version)) });
        }
        // SAFETY: as above.
        let extensions = unsafe { raw.enumerate_device_extension_properties(physical) }.unwrap_or_default();
        let mut ids = vk::PhysicalDeviceVulkan11Properties::default();
        let mut makers = vk::PhysicalDeviceDriverProperties::default();
        let mut sizes = vk::PhysicalDeviceMaintenance4Properties::default();
        let mut place = vk::PhysicalDevicePCIBusInfoPropertiesEXT::default();
        let mut asked = vk::PhysicalDeviceProperties2::default().push_next(&mut ids).push_next(&mut makers);
        if version >= vk::API_VERSION_1_3 {
            asked = asked.push_next(&mut sizes);
        }
        let has_place = has(&extensions, ext::pci_bus_info::NAME);
        if has_place {
            asked = asked.push_next(&mut place);
        }
        // SAFETY: as above; each struct in the chain is one that the device knows.
        unsafe { raw.get_physical_device_properties2(physical, &mut asked) };
        // SAFETY: as above.
        let families = unsafe { raw.get_physical_device_queue_family_properties(physical) };
        // One that does not draw leaves the screen alone.
        let draws = |family: &vk::QueueFamilyProperties| family.queue_flags.contains(vk::QueueFlags::GRAPHICS);
        let computes = |family: &vk::QueueFamilyProperties| family.queue_flags.contains(vk::QueueFlags::COMPUTE);
        let best = (0u32..).zip(&families).filter(|(_, family)| computes(family)).min_by_key(|(_, family)| draws(family));
        let Some((family, queues)) = best else {
            return Err(Refused { index, name, fault: "has no queue for compute shaders".to_owned() });
        };
        let copies_alone = |family: &vk::QueueFamilyProperties| {
            let extras = vk::QueueFlags::SPARSE_BINDING | vk::QueueFlags::PROTECTED;
            family.queue_flags & !extras == vk::QueueFlags::TRANSFER
        };
        let copies_family = (0u32..).zip(&families).find(|(_, family)| copies_alone(family)).map(|(index, _)| index);
        let clock = Clock::new(queues.timestamp_valid_bits, properties.limits.timestamp_period);
        // SAFETY: as above.
        let memory = unsafe { raw.get_physical_device_memory_properties(physical) };
        let local = |heap: &&vk::MemoryHeap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL);
        let heap_bytes = memory.memory_heaps_as_slice().iter().filter(local).map(|heap| heap.size).max().unwrap_or(0);
        let software = properties.device_type == vk::PhysicalDeviceType::CPU || is_software_name(&name);
        let kind = match properties.device_type {
            _ if software => DeviceKind::Software,
            vk::PhysicalDeviceType::DISCRETE_GPU => DeviceKind::Discrete,
            vk::PhysicalDeviceType::INTEGRATED_GPU => DeviceKind::Integrated,
            _ => DeviceKind::Gpu,
        };
        let vk::PhysicalDevicePCIBusInfoPropertiesEXT { pci_domain, pci_bus, pci_device, pci_function, .. } = place;
        let max_buffer_bytes = match sizes.max_buffer_size {
            0 => heap_bytes,
            most => most.saturating_sub(PROOF_BYTES).min(heap_bytes),
        };
        Ok(Self {
            index,
            physical,
            name,
            properties,
            extensions,
            kind,
            driver: [text(makers.driver_name_as_c_str()), text(makers.driver_info_as_c_str())].join(" ").trim().to_owned(),
            is_nvidias: makers.driver_id == vk::DriverId::NVIDIA_PROPRIETARY,
            uuid: ids.device_uuid,
            pci_address: if has_place {
                format!("{pci_domain:04x}:{pci_bus:02x}:{pci_device:02x}.{pci_function:x}")
            } else {
                String::new()
            },
            family,
            copies_family,
            clock,
            max_buffer_bytes,
            max_allocation_bytes: ids.max_memory_allocation_size,
            heap_bytes,
        })
    }

    /// Orders devices: by what they are, then by their memory.
    fn score(&self, preference: PowerPreference) -> (u32, u64) {
        let thrifty = preference == PowerPreference::LowPower;
        let rank = match self.kind {
            DeviceKind::Discrete => 4 - u32::from(thrifty) * 2,
            DeviceKind::Integrated => 3,
            DeviceKind::Gpu => 1,
            _ => 0,
        };
        (rank, self.heap_bytes)
    }

    fn families(&self) -> impl Iterator<Item = u32> {
        [self.family].into_iter().chain(self.copies_family)
    }

    /// A device with a queue of each of the families.
    pub(super) fn create(&self, instance: &Instance) -> Result<ash::Device, String> {
        let priorities = [1.0];
        let queue = |family| vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&priorities);
        let queues: Vec<_> = self.families().map(queue).collect();
        // Every device of version 1.2 has them.
        let mut timelines = vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(true);
        let mut info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut timelines);
        // What the kernel for matrix units takes; f16 and f64 the caller's kernels may use too.
        let mut f16 = vk::PhysicalDeviceShaderFloat16Int8Features::default().shader_float16(true);
        let mut storage = vk::PhysicalDevice16BitStorageFeatures::default()
            .storage_buffer16_bit_access(true)
            .uniform_and_storage_buffer16_bit_access(true);
        let mut memory = vk::PhysicalDeviceVulkanMemoryModelFeatures::default().vulkan_memory_model(true);
        let mut sizes = vk::PhysicalDeviceSubgroupSizeControlFeatures::default().subgroup_size_control(true).compute_full_subgroups(true);
        let mut matrices = vk::PhysicalDeviceCooperativeMatrixFeaturesKHR::default().cooperative_matrix(true);
        let mut subgroups = vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures::default().shader_subgroup_extended_types(true);
        // And that for 8-bit integers.
        let mut dots = vk::PhysicalDeviceShaderIntegerDotProductFeatures::default().shader_integer_dot_product(true);
        let mut extensions = Vec::new();
        let features = features::read(instance, self.physical, |extension| has(&self.extensions, extension));
        let core = vk::PhysicalDeviceFeatures::default().shader_float64(features.contains(&features::F64_NAME));
        info = info.enabled_features(&core);
        if features.contains(&features::PACKED_DOT) {
            extensions.push(khr::shader_integer_dot_product::NAME.as_ptr());
            info = info.push_next(&mut dots);
        }
        if features.contains(&features::F16_NAME) {
            info = info.push_next(&mut f16).push_next(&mut storage);
            if features.contains(&features::SUBGROUPS_NAME) {
                info = info.push_next(&mut subgroups);
            }
        }
        // Of which f16 is a part.
        if self.matrix_unit(instance).is_some() {
            extensions.push(khr::cooperative_matrix::NAME.as_ptr());
            info = info.push_next(&mut memory).push_next(&mut sizes).push_next(&mut matrices);
        }
        // A device that has it, such as one over Metal, is to be told that its gaps are known of.
        if has(&self.extensions, khr::portability_subset::NAME) {
            extensions.push(khr::portability_subset::NAME.as_ptr());
        }
        let info = info.enabled_extension_names(&extensions);
        // SAFETY: what the info points at lives until the call returns.
        unsafe { instance.raw.create_device(self.physical, &info, None) }.map_err(|result| format!("gives no device ({result})"))
    }

    /// What handles of a device share.
    pub(super) fn context(&self, instance: &Arc<Instance>, device: ash::Device) -> Result<Arc<Context>, String> {
        // Small products need little; a matrix of more than a block gets memory of its own. One block of a sort is kept once all are free.
        let sizes = AllocationSizes::new(16 << 20, 16 << 20).with_max_device_memblock_size(64 << 20).with_max_host_memblock_size(64 << 20);
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: instance.raw.clone(),
            device: device.clone(),
            physical_device: self.physical,
            debug_settings: AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: sizes,
        });
        match allocator {
            Ok(allocator) => {
                let families = self.families().collect();
                let instance = Arc::clone(instance);
                Ok(Arc::new(Context::new(instance, device, families, allocator, self.max_allocation_bytes, self.is_nvidias)))
            }
            Err(error) => {
                // SAFETY: nothing was made from it.
                unsafe { device.destroy_device(None) };
                Err(format!("gives no memory ({error})"))
            }
        }
    }

    /// All that belongs to a handle of a device.
    pub(super) fn assemble(&self, instance: &Instance, context: Arc<Context>, options: &Options) -> Result<(Vulkan, DeviceInfo), String> {
        let info = self.describe(instance);
        let failed = |error: Box<crate::Error>| format!("fails at first use ({error})");
        let cache = Cache::open(&context, &self.properties, options.pipeline_cache.folder().as_deref()).map_err(failed)?;
        let opened = Vulkan {
            queue: Queue::new(&context, self.family).map_err(failed)?,
            transfer: self.copies_family.map(|family| Queue::new(&context, family)).transpose().map_err(failed)?,
            order: Mutex::default(),
            pipelines: Pipelines::new(&context, cache, info.caps.packed_dot),
            memory: Pool::new(options.pool_bytes),
            host_memory: Pool::new(options.pool_bytes.min(super::HOST_POOL_BYTES)),
            caps: Caps {
                tuned: crate::tune::load(options, &info, &crate::plan::matmul::tiles()),
                ..info.caps.clone().with_workgroup_hint(options.workgroup_hint)
            },
            clock: self.clock,
            context,
        };
        Ok((opened, info))
    }

    fn matrix_unit(&self, instance: &Instance) -> Option<MatrixUnit> {
        features::matrix_unit(instance, self.physical, self.properties.api_version, |extension| has(&self.extensions, extension))
    }

    fn describe(&self, instance: &Instance) -> DeviceInfo {
        let limits = &self.properties.limits;
        let [groups_x, groups_y, groups_z] = limits.max_compute_work_group_count;
        let [size_x, size_y, _] = limits.max_compute_work_group_size;
        let mut features = features::read(instance, self.physical, |extension| has(&self.extensions, extension));
        let caps = Caps {
            max_buffer_bytes: self.max_buffer_bytes,
            // Ranges are of whole vec4s.
            max_binding_bytes: u64::from(limits.max_storage_buffer_range) / 16 * 16,
            binding_alignment_bytes: limits.min_storage_buffer_offset_alignment.max(256),
            max_workgroups_per_dimension: groups_x.min(groups_y).min(groups_z),
            max_workgroup_invocations: limits.max_compute_work_group_invocations.min(size_x).min(size_y),
            max_workgroup_bytes: limits.max_compute_shared_memory_size,
            max_cluster_workgroups: 1,
            max_texture_size: u32::MAX,
            tuned: Tuned::NONE,
            f16: false,
            stores_f16: features.contains(&features::F16_NAME),
            packed_dot: features.contains(&features::PACKED_DOT),
            matrix_unit: self.matrix_unit(instance),
            keeps: [false; 2],
        };
        if self.clock.is_some() {
            features.push("timestamp-query");
        }
        if self.copies_family.is_some() {
            features.push("transfer-queue");
        }
        if self.kind.shares_memory() {
            features.push("unified-memory");
        }
        let capabilities = self.capabilities(&features);
        DeviceInfo {
            backend: BackendId::Vulkan,
            name: self.name.clone(),
            vendor: vendor(self.properties.vendor_id).to_owned(),
            architecture: String::new(),
            kind: self.kind,
            driver: self.driver.clone(),
            uuid: Some(self.uuid),
            pci_address: self.pci_address.clone(),
            caps,
            capabilities,
            features,
            notes: Vec::new(),
            reason: String::new(),
            others: Vec::new(),
            generation: 1,
        }
    }
}

impl Card {
    /// What it can do beside products.
    fn capabilities(&self, names: &[&'static str]) -> Capabilities {
        let limits = &self.properties.limits;
        let has = |name: &str| names.contains(&name);
        Capabilities {
            memory_bytes: Some(self.heap_bytes),
            memories: &[Memory::Device, Memory::HostVisible, Memory::Pinned],
            max_workgroup_size: limits.max_compute_work_group_size,
            max_workgroup_bytes: limits.max_compute_shared_memory_size,
            max_grid: limits.max_compute_work_group_count,
            max_storage_bindings: limits.max_per_stage_descriptor_storage_buffers.min(limits.max_descriptor_set_storage_buffers),
            max_params_bytes: limits.max_uniform_buffer_range,
            subgroup_size: names.iter().find_map(|name| name.strip_prefix("subgroup-size-")?.parse().ok()),
            f16: has(features::F16_NAME),
            f64: has(features::F64_NAME),
            int8: has("shader-i8"),
            matrix_units: has("cooperative-matrix"),
            device_clock: self.clock.is_some(),
            ..Capabilities::LEAST
        }
    }
}

fn has(extensions: &[vk::ExtensionProperties], name: &CStr) -> bool {
    extensions.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

fn text(name: Result<&CStr, std::ffi::FromBytesUntilNulError>) -> String {
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
