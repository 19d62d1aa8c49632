//! Finds the physical devices, takes the best that works, and says what it can do.

use std::ffi::CStr;
use std::sync::Arc;

use ash::{ext, vk};
use gpu_allocator::vulkan::{Allocator, AllocatorCreateDesc};
use gpu_allocator::{AllocationSizes, AllocatorDebugSettings};

use super::cache::{self, Cache};
use super::context::Context;
use super::features;
use super::instance::{Instance, NO_DRIVER_REMEDY, Off, version_text};
use super::pipeline::Pipelines;
use super::queue::Queue;
use super::{Clock, Vulkan};
use crate::backend::pool::Pool;
use crate::info::{BackendId, Caps, DeviceInfo, DeviceKind, OtherBackend, Standing, is_software_name};
use crate::options::{Options, PowerPreference};

/// Opens the best device, or says why there is none.
pub(crate) fn open(options: &Options) -> Result<(Vulkan, DeviceInfo), OtherBackend> {
    find_and_open(options).map_err(|(reason, remedy)| {
        Instance::forget();
        OtherBackend { backend: BackendId::Vulkan, standing: Standing::Off, reason, remedy: remedy.to_owned() }
    })
}

fn find_and_open(options: &Options) -> Result<(Vulkan, DeviceInfo), Off> {
    let mut faults = Vec::new();
    let instance = Instance::shared()?;
    for card in cards(&instance, options.power_preference, &mut faults)? {
        let opened = card.create(&instance).and_then(|device| card.assemble(&instance, device, options));
        match opened {
            Ok(opened) => return Ok(opened),
            Err(fault) => faults.push(format!("{} {fault}", card.name)),
        }
    }
    let reason = if faults.is_empty() { "no driver has a device".to_owned() } else { faults.join("; ") };
    Err((reason, NO_DRIVER_REMEDY))
}

/// A physical device that can be used.
pub(super) struct Card {
    pub physical: vk::PhysicalDevice,
    pub name: String,
    /// What it is and can do.
    pub properties: vk::PhysicalDeviceProperties,
    extensions: Vec<vk::ExtensionProperties>,
    kind: DeviceKind,
    driver: String,
    uuid: [u8; vk::UUID_SIZE],
    pci_address: String,
    family: u32,
    clock: Option<Clock>,
    max_buffer_bytes: u64,
    max_allocation_bytes: u64,
    heap_bytes: u64,
}

/// Those that can be used, the best first; why others cannot goes to `faults`.
pub(super) fn cards(instance: &Instance, preference: PowerPreference, faults: &mut Vec<String>) -> Result<Vec<Card>, Off> {
    // SAFETY: the instance lives.
    let devices = unsafe { instance.raw.enumerate_physical_devices() };
    let devices = devices.map_err(|result| (format!("the drivers list no devices ({result})"), NO_DRIVER_REMEDY))?;
    let mut cards = Vec::new();
    for physical in devices {
        match Card::read(instance, physical) {
            Ok(card) => cards.push(card),
            Err(fault) => faults.push(fault),
        }
    }
    // Stable: of equals the first that the drivers list.
    cards.sort_by_key(|card| std::cmp::Reverse(card.score(preference)));
    Ok(cards)
}

impl Card {
    fn read(instance: &Instance, physical: vk::PhysicalDevice) -> Result<Self, String> {
        let raw = &instance.raw;
        // SAFETY: the physical device is the instance's.
        let properties = unsafe { raw.get_physical_device_properties(physical) };
        let name = text(properties.device_name_as_c_str());
        let version = properties.api_version;
        if version < vk::API_VERSION_1_2 {
            return Err(format!("{name} has Vulkan {}, and 1.2 is needed", version_text(version)));
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
        let (family, queues) = best.ok_or_else(|| format!("{name} has no queue for compute shaders"))?;
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
        let max_buffer_bytes = if sizes.max_buffer_size == 0 { heap_bytes } else { sizes.max_buffer_size.min(heap_bytes) };
        Ok(Self {
            physical,
            name,
            properties,
            extensions,
            kind,
            driver: [text(makers.driver_name_as_c_str()), text(makers.driver_info_as_c_str())].join(" ").trim().to_owned(),
            uuid: ids.device_uuid,
            pci_address: if has_place {
                format!("{pci_domain:04x}:{pci_bus:02x}:{pci_device:02x}.{pci_function:x}")
            } else {
                String::new()
            },
            family,
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

    /// A device with one queue.
    pub(super) fn create(&self, instance: &Instance) -> Result<ash::Device, String> {
        let priorities = [1.0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(self.family).queue_priorities(&priorities)];
        // Every device of version 1.2 has them.
        let mut timelines = vk::PhysicalDeviceTimelineSemaphoreFeatures::default().timeline_semaphore(true);
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).push_next(&mut timelines);
        // SAFETY: what the info points at lives until the call returns.
        unsafe { instance.raw.create_device(self.physical, &info, None) }.map_err(|result| format!("gives no device ({result})"))
    }

    /// All that belongs to an open device.
    pub(super) fn assemble(
        &self,
        instance: &Arc<Instance>,
        device: ash::Device,
        options: &Options,
    ) -> Result<(Vulkan, DeviceInfo), String> {
        let info = self.describe(instance);
        // Small products need little; a matrix of more than a block gets memory of its own.
        let sizes = AllocationSizes::new(16 << 20, 16 << 20).with_max_device_memblock_size(256 << 20).with_max_host_memblock_size(64 << 20);
        let allocator = Allocator::new(&AllocatorCreateDesc {
            instance: instance.raw.clone(),
            device: device.clone(),
            physical_device: self.physical,
            debug_settings: AllocatorDebugSettings::default(),
            buffer_device_address: false,
            allocation_sizes: sizes,
        });
        let allocator = match allocator {
            Ok(allocator) => allocator,
            Err(error) => {
                // SAFETY: nothing was made from it.
                unsafe { device.destroy_device(None) };
                return Err(format!("gives no memory ({error})"));
            }
        };
        let context = Arc::new(Context::new(Arc::clone(instance), device, self.family, allocator, self.max_allocation_bytes));
        let failed = |error: Box<crate::Error>| format!("fails at first use ({error})");
        let cache = Cache::open(&context, &self.properties, cache::folder().as_deref()).map_err(failed)?;
        let opened = Vulkan {
            queue: Queue::new(&context).map_err(failed)?,
            pipelines: Pipelines::new(&context, cache),
            memory: Pool::new(options.pool_bytes),
            host_memory: Pool::new(options.pool_bytes.min(super::HOST_POOL_BYTES)),
            caps: info.caps.clone(),
            clock: self.clock,
            context,
        };
        Ok((opened, info))
    }

    fn describe(&self, instance: &Instance) -> DeviceInfo {
        let limits = &self.properties.limits;
        let [groups_x, groups_y, _] = limits.max_compute_work_group_count;
        let [size_x, size_y, _] = limits.max_compute_work_group_size;
        let caps = Caps {
            max_buffer_bytes: self.max_buffer_bytes,
            // Ranges are of whole vec4s.
            max_binding_bytes: u64::from(limits.max_storage_buffer_range) / 16 * 16,
            binding_alignment_bytes: limits.min_storage_buffer_offset_alignment.max(256),
            max_workgroups_per_dimension: groups_x.min(groups_y),
            max_workgroup_invocations: limits.max_compute_work_group_invocations.min(size_x).min(size_y),
            max_workgroup_bytes: limits.max_compute_shared_memory_size,
            max_texture_size: u32::MAX,
        };
        let mut features = features::read(instance, self.physical, |extension| has(&self.extensions, extension));
        if self.clock.is_some() {
            features.push("timestamp-query");
        }
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
            features,
            reason: String::new(),
            others: Vec::new(),
            generation: 1,
        }
    }
}

fn has(extensions: &[vk::ExtensionProperties], name: &CStr) -> bool {
    extensions.iter().any(|extension| extension.extension_name_as_c_str() == Ok(name))
}

fn text(name: Result<&CStr, std::ffi::FromBytesUntilNulError>) -> String {
    name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The maker by its PCI number, or by the one that Khronos gave it.
fn vendor(id: u32) -> &'static str {
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
