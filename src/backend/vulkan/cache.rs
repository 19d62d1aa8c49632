//! Compiled pipelines kept on disk, so that a driver compiles a kernel once and not in each process.
//!
//! ```text
//! <the folder that the options name>/vulkan-<vendor>-<device>-<driver's version>-<UUID>.bin
//!   0  "lapidary"      8  driver's version, u32     12  length of the data, u32     16  FNV-1a hash of the data, u64     24  data
//! ```
//!
//! A file that is not just so, or whose data another driver wrote, counts as none, since not every driver survives data that it did
//! not write. Files are replaced whole, by renaming. Nothing here is an error: without a cache a driver compiles again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io, process};

use ash::vk;

use super::context::Context;
use crate::error::Result;

const MAGIC: &[u8; 8] = b"lapidary";
const HEADER_BYTES: usize = 24;
/// More than any driver writes for the kernels of this crate.
const MAX_BYTES: u64 = 64 << 20;

/// A cache of pipelines, and the file where it is kept.
pub(super) struct Cache {
    handle: vk::PipelineCache,
    /// None if there is no place for it.
    file: Option<PathBuf>,
    key: Key,
    /// The hash of what the file holds.
    saved: Mutex<u64>,
    context: Arc<Context>,
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
        let saved = Mutex::new(fnv1a(data));
        let create = |data| {
            let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
            // SAFETY: this driver wrote the data, or there is none.
            unsafe { context.device.create_pipeline_cache(&info, None) }
        };
        let handle = context.check("vkCreatePipelineCache", create(data).or_else(|_| create(&[])))?;
        Ok(Self { handle, file, key, saved, context: Arc::clone(context) })
    }

    pub(super) fn handle(&self) -> vk::PipelineCache {
        self.handle
    }

    /// Writes the file, if the driver has added to the cache.
    pub(super) fn save(&self) {
        let Some(file) = &self.file else { return };
        // SAFETY: the cache is this device's.
        let Ok(data) = (unsafe { self.context.device.get_pipeline_cache_data(self.handle) }) else { return };
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = fnv1a(&data);
        if hash == *saved {
            return;
        }
        // What cannot be written now is not tried again until there is more.
        *saved = hash;
        if let Some(bytes) = self.key.wrap(&data) {
            let _ = replace(file, &bytes);
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
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

/// Writes a file under a name of its own and gives it the right one then: nobody ever reads half of it.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = file.with_extension(format!("{}-{}.tmp", process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    let written = fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// The hash of Fowler, Noll and Vo, 64 bits: enough to notice what a crash or a disk did to a file.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_file_is_replaced_whole_and_leaves_nothing_beside_it() {
        let folder = std::env::temp_dir().join(format!("lapidary-cache-{}", process::id()));
        let file = folder.join("below").join("file.bin");
        for bytes in [b"first".as_slice(), b"second"] {
            replace(&file, bytes).unwrap();
            assert_eq!(read(&file).unwrap(), bytes);
        }
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
        assert!(replace(&file.join("a file is no folder"), b"x").is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
