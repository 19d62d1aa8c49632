//! Compiled pipelines kept on disk, so that a driver compiles a kernel once and not in each process.
//!
//! ```text
//! <the folder that the options name>/vulkan-<vendor>-<device>-<driver's version>-<UUID>.bin
//!   0  "lapidary"      8  driver's version, u32     12  length of the data, u32     16  FNV-1a hash of the data, u64     24  data
//! ```
//!
//! A file that is not just so, or whose data another driver wrote, counts as none, since not every driver survives data that it did
//! not write. Files are replaced whole, by renaming. Nothing here is an error: without a cache a driver compiles again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use ash::vk;

use super::context::Context;
use crate::error::Result;
use crate::files::replace;

const MAGIC: &[u8; 8] = b"lapidary";
const HEADER_BYTES: usize = 24;
/// More than any driver writes for the kernels of this crate.
const MAX_BYTES: u64 = 64 << 20;
/// The file is written anew after this many times as long as it took to write it last: however large it has become, that takes no more of the time.
const PAUSE: u32 = 50;

/// A cache of pipelines, and the file where it is kept.
pub(super) struct Cache {
    handle: vk::PipelineCache,
    /// None if there is no place for it.
    file: Option<PathBuf>,
    key: Key,
    /// Whether there may be more in the cache than in the file.
    has_more: AtomicBool,
    saved: Mutex<Saved>,
    context: Arc<Context>,
}

/// What was saved.
struct Saved {
    /// The hash of what the file holds.
    hash: u64,
    /// When it may be written again.
    due: Instant,
    /// Whether the cache, which only grows, is past what a file may hold.
    is_full: bool,
}

/// Whose pipelines they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub vendor: u32,
    pub device: u32,
    pub driver_version: u32,
    pub uuid: [u8; vk::UUID_SIZE],
}

impl Key {
    fn of(properties: &vk::PhysicalDeviceProperties) -> Self {
        let &vk::PhysicalDeviceProperties { vendor_id, device_id, driver_version, pipeline_cache_uuid, .. } = properties;
        Self { vendor: vendor_id, device: device_id, driver_version, uuid: pipeline_cache_uuid }
    }

    fn file_name(&self) -> String {
        let Self { vendor, device, driver_version, uuid } = self;
        format!("vulkan-{vendor:04x}-{device:04x}-{driver_version:08x}-{:032x}.bin", u128::from_be_bytes(*uuid))
    }

    /// The data of a file of this key, if that is what the bytes are.
    fn unwrap<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let word = |bytes: &[u8], at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let data = file.get(HEADER_BYTES..)?;
        let hash = u64::from_le_bytes(file.get(16..HEADER_BYTES)?.try_into().ok()?);
        let ours = file.starts_with(MAGIC) && word(file, 8)? == self.driver_version && u64::from(word(file, 12)?) == data.len() as u64;
        // The driver's own header (VkPipelineCacheHeaderVersionOne): its length, version, vendor, device, UUID.
        let theirs = word(data, 0)? >= 32
            && word(data, 4)? == vk::PipelineCacheHeaderVersion::ONE.as_raw() as u32
            && (word(data, 8)?, word(data, 12)?) == (self.vendor, self.device)
            && data.get(16..32)? == self.uuid;
        (ours && theirs && fnv1a(data) == hash).then_some(data)
    }

    /// A file that holds the data.
    fn wrap(&self, data: &[u8]) -> Option<Vec<u8>> {
        let length = u32::try_from(data.len()).ok().filter(|&length| u64::from(length) <= MAX_BYTES)?;
        let mut file = Vec::with_capacity(HEADER_BYTES + data.len());
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&self.driver_version.to_le_bytes());
        file.extend_from_slice(&length.to_le_bytes());
        file.extend_from_slice(&fnv1a(data).to_le_bytes());
        file.extend_from_slice(data);
        Some(file)
    }
}

impl Cache {
    /// The cache for a device, with what a file in that folder holds for it.
    pub(super) fn open(context: &Arc<Context>, properties: &vk::PhysicalDeviceProperties, folder: Option<&Path>) -> Result<Self> {
        let key = Key::of(properties);
        let file = folder.map(|folder| folder.join(key.file_name()));
        let bytes = file.as_deref().and_then(read).unwrap_or_default();
        let data = key.unwrap(&bytes).unwrap_or_default();
        let saved = Mutex::new(Saved { hash: fnv1a(data), due: Instant::now(), is_full: false });
        let create = |data| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: this driver wrote the data, or there is none.
            unsafe { context.device.create_pipeline_cache(&info, None) }
        };
        let handle = context.check("vkCreatePipelineCache", create(data).or_else(|_| create(&[])))?;
        Ok(Self { handle, file, key, has_more: AtomicBool::new(false), saved, context: Arc::clone(context) })
    }

    pub(super) fn handle(&self) -> vk::PipelineCache {
        self.handle
    }

    /// Takes note of a pipeline that was made.
    pub(super) fn added(&self) {
        self.has_more.store(true, Ordering::Relaxed);
        self.save_if_due();
    }

    /// Writes the file if there is more to write, and it was not written just before; what is left is written with the next of these calls, or in
    /// the end.
    pub(super) fn save_if_due(&self) {
        if !self.has_more.load(Ordering::Relaxed) {
            return;
        }
        // Where another thread is at it, the next call will do.
        if let Ok(mut saved) = self.saved.try_lock()
            && Instant::now() >= saved.due
        {
            self.save(&mut saved);
        }
    }

    fn save(&self, saved: &mut Saved) {
        // What is added from here on is seen by the next.
        self.has_more.store(false, Ordering::Relaxed);
        let Some(file) = self.file.as_ref().filter(|_| !saved.is_full) else { return };
        let start = Instant::now();
        // SAFETY: the cache is this device's.
        let Ok(data) = (unsafe { self.context.device.get_pipeline_cache_data(self.handle) }) else { return };
        let hash = fnv1a(&data);
        if hash != saved.hash {
            // What cannot be written now is not tried again until there is more.
            saved.hash = hash;
            match self.key.wrap(&data) {
                Some(bytes) => _ = replace(file, &bytes),
                None => saved.is_full = true,
            }
        }
        saved.due = Instant::now() + start.elapsed() * PAUSE;
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if self.has_more.load(Ordering::Relaxed)
            && let Ok(mut saved) = self.saved.try_lock()
        {
            self.save(&mut saved);
        }
        // SAFETY: nothing is being compiled.
        unsafe { self.context.device.destroy_pipeline_cache(self.handle, None) };
    }
}

fn read(file: &Path) -> Option<Vec<u8>> {
    if fs::metadata(file).ok()?.len() > MAX_BYTES + HEADER_BYTES as u64 {
        return None;
    }
    fs::read(file).ok()
}

/// The hash of Fowler, Noll and Vo, 64 bits: enough to notice what a crash or a disk did to a file.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::pipeline::Pipelines;
    use super::super::tests::device;
    use crate::backend::Backend;
    use crate::call::Call;
    use crate::ops::matmul::Matmul;

    const KEY: Key = Key { vendor: 0x10de, device: 0x2335, driver_version: 7, uuid: [9; 16] };

    /// What a driver could have written.
    fn data() -> Vec<u8> {
        let words = [32u32, 1, KEY.vendor, KEY.device].map(u32::to_le_bytes);
        [words.as_flattened(), &KEY.uuid, b"pipelines"].concat()
    }

    #[test]
    fn only_a_whole_file_of_the_same_driver_is_used() {
        let file = KEY.wrap(&data()).unwrap();
        assert_eq!(KEY.unwrap(&file), Some(&*data()));
        for at in 0..file.len() {
            assert_eq!(KEY.unwrap(&file[..at]), None, "cut at {at}");
            let mut flipped = file.clone();
            flipped[at] ^= 1;
            assert_eq!(KEY.unwrap(&flipped), None, "flipped at {at}");
        }
        for other in [Key { vendor: 1, ..KEY }, Key { device: 1, ..KEY }, Key { driver_version: 1, ..KEY }, Key { uuid: [1; 16], ..KEY }] {
            assert_eq!(other.unwrap(&file), None);
            assert_ne!(other.file_name(), KEY.file_name());
        }
    }

    #[test]
    fn what_is_not_saved_at_once_is_in_the_end() {
        let Some((device, _)) = device() else { return };
        let folder = std::env::temp_dir().join(format!("lapidary-cache-later-{}", std::process::id()));
        let properties = vk::PhysicalDeviceProperties::default();
        let kernels = [4, 8].map(|n| {
            let values = vec![0.0f32; (n * n) as usize];
            let call = Call::new(&Matmul::new(n, n, n), (&values).into(), (&values).into()).unwrap();
            device.plan(&call.op).unwrap().dispatches[0].kernel.clone()
        });
        let open = || Cache::open(&device.context, &properties, Some(&folder)).unwrap();
        let files = || fs::read_dir(&folder).map_or(0, Iterator::count);
        let cache = open();
        // As if it had taken long to write what there is.
        cache.saved.lock().unwrap().due += std::time::Duration::from_secs(3600);
        let pipelines = Pipelines::new(&device.context, cache, false);
        for kernel in kernels.iter().chain(&kernels) {
            pipelines.get(kernel).unwrap();
        }
        assert_eq!(files(), 0, "it is not written for each kernel");
        drop(pipelines);
        assert_eq!(files(), 1, "it is written in the end");
        fs::remove_dir_all(&folder).unwrap();
        let pipelines = Pipelines::new(&device.context, open(), false);
        pipelines.get(&kernels[0]).unwrap();
        assert_eq!(files(), 1, "of one kernel it is written at once");
        fs::remove_dir_all(folder).unwrap();
    }
}
