//! Device memory: pooled buffers, and operands written straight from where the caller has them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

#[cfg(target_arch = "wasm32")]
use js_sys::Uint8Array;

use super::WebGpu;
#[cfg(not(target_arch = "wasm32"))]
use super::attend;
use super::batch::{Groups, Verdict};
use super::forms::Forms;
use super::slab::Slot;
use crate::backend::pool::Pooled;
use crate::error::{Error, Result};
use crate::host::HostSlice;

/// A buffer that gives its memory back when dropped, not when some collector comes by.
pub(super) struct Raw {
    buffer: wgpu::Buffer,
    /// No other buffer has or had it.
    pub id: u32,
    /// The last batch of recorded launches that uses it.
    pub used_in: AtomicU32,
    /// The bindings by which it was written last: the next product into it is often the same.
    pub groups: Mutex<Option<Groups>>,
}

impl Raw {
    pub(super) fn new(device: &wgpu::Device, bytes: u64, usage: wgpu::BufferUsages) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let descriptor = wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false };
        Self {
            buffer: device.create_buffer(&descriptor),
            id: LAST.fetch_add(1, Ordering::Relaxed),
            used_in: AtomicU32::new(0),
            groups: Mutex::new(None),
        }
    }
}

impl std::ops::Deref for Raw {
    type Target = wgpu::Buffer;

    fn deref(&self) -> &wgpu::Buffer {
        &self.buffer
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.buffer.destroy();
    }
}

/// A buffer from the pool, shared with recorded launches: what they use is not destroyed before they are submitted.
pub(super) type Room = Pooled<Arc<Raw>>;

/// Where a matrix is.
pub(super) enum Place {
    /// In a buffer of its own.
    Room(Room),
    /// In a part of one.
    Slot(Slot),
}

/// Memory of the device.
pub(crate) struct Buffer {
    pub(super) place: Place,
    /// What will be known of the batch that computes the values. Never set if they were known to be right before anybody had them.
    pub(super) verdict: OnceLock<Arc<Verdict>>,
    /// What is kept of it in other forms.
    pub(super) forms: Arc<Mutex<Forms>>,
}

impl Buffer {
    pub(super) fn new(place: Place) -> Self {
        Self { place, verdict: OnceLock::new(), forms: Arc::default() }
    }

    /// What it is in.
    pub(super) fn raw(&self) -> &Arc<Raw> {
        match &self.place {
            Place::Room(room) => room,
            Place::Slot(slot) => &slot.raw,
        }
    }

    /// Where it starts in that.
    pub(super) fn at_bytes(&self) -> u64 {
        match &self.place {
            Place::Room(_) => 0,
            Place::Slot(slot) => slot.at_bytes(),
        }
    }

    /// The last batch of recorded launches that uses it.
    pub(super) fn used_in(&self) -> &AtomicU32 {
        match &self.place {
            Place::Room(room) => &room.used_in,
            Place::Slot(slot) => &slot.used_in,
        }
    }

    /// It is not to serve again.
    pub(super) fn discard(&mut self) {
        // Slots of what was not to be had are not given any more: `Slabs::retire`.
        if let Place::Room(room) = &mut self.place {
            room.discard();
        }
    }
}

/// The uses that the pool keeps apart.
pub(super) const STORAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_DST).union(wgpu::BufferUsages::COPY_SRC);
const STAGING: wgpu::BufferUsages = wgpu::BufferUsages::MAP_READ.union(wgpu::BufferUsages::COPY_DST);
pub(super) const PARAMS: wgpu::BufferUsages = wgpu::BufferUsages::UNIFORM.union(wgpu::BufferUsages::COPY_DST);

/// An operand from this size on is worth a message of its own to the browser's GPU process.
#[cfg(target_arch = "wasm32")]
const FLUSHED_BYTES: u32 = 1 << 20;

/// From this size on a buffer that has to be made may lack the memory that others lie idle in.
#[cfg(target_arch = "wasm32")]
const LARGE_BYTES: u64 = 1 << 26;

impl WebGpu {
    /// Whether so much may have no room because of what lies idle. In the browser that shows only later: what is waited for is tried again then.
    #[cfg(target_arch = "wasm32")]
    pub(super) fn may_lack(&self, bytes: u64) -> bool {
        bytes >= LARGE_BYTES && self.pool.stats().pooled_bytes >= LARGE_BYTES && self.pool.lacks(STORAGE.bits(), bytes)
    }

    /// Room for a matrix, read and written by kernels.
    pub(super) fn storage(&self, bytes: u64) -> Result<Buffer> {
        Ok(Buffer::new(Place::Room(self.take(STORAGE, bytes)?)))
    }

    /// Room for what is uploaded as a tensor.
    pub(super) fn storage_of_tensor(&self, bytes: u64) -> Result<Buffer> {
        self.batches.slabs.take(false, bytes, &[]).map_or_else(|| self.storage(bytes), |slot| Ok(Buffer::new(Place::Slot(slot))))
    }

    /// Room for the result of a small product, in no buffer of these.
    pub(super) fn storage_of_result(&self, bytes: u64, others: &[u32]) -> Result<Buffer> {
        self.batches.slabs.take(true, bytes, others).map_or_else(|| self.storage(bytes), |slot| Ok(Buffer::new(Place::Slot(slot))))
    }

    /// Room that the host can read.
    pub(super) fn mappable(&self, bytes: u64) -> Result<Room> {
        self.take(STAGING, bytes)
    }

    /// Room for the parameters of dispatches.
    pub(super) fn params(&self, bytes: u64) -> Result<Room> {
        self.take(PARAMS, bytes)
    }

    fn take(&self, usage: wgpu::BufferUsages, bytes: u64) -> Result<Room> {
        // Kernels read whole vec4s; a binding cannot be empty.
        let bytes = bytes.next_multiple_of(16).max(16);
        if bytes > self.caps.max_buffer_bytes {
            return Err(Box::new(Error::LimitExceeded {
                what: "the size of a buffer in bytes",
                requested: bytes,
                max: self.caps.max_buffer_bytes,
            }));
        }
        self.pool.take(usage.bits(), bytes, || self.make(bytes, usage))
    }

    /// Whether there is room for it shows later.
    #[cfg(target_arch = "wasm32")]
    fn make(&self, bytes: u64, usage: wgpu::BufferUsages) -> Result<Arc<Raw>> {
        Ok(Arc::new(Raw::new(&self.device, bytes, usage)))
    }

    /// Handles share the device, so that each asks for itself whether there was room.
    #[cfg(not(target_arch = "wasm32"))]
    fn make(&self, bytes: u64, usage: wgpu::BufferUsages) -> Result<Arc<Raw>> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let raw = Raw::new(&self.device, bytes, usage);
        match pollster::block_on(scope.pop()) {
            None => Ok(Arc::new(raw)),
            Some(_) => Err(Box::new(Error::OutOfMemory { bytes, place: "the GPU" })),
        }
    }

    /// Gives the buffer with the values in it, which may change as soon as this returns.
    pub(super) fn put(&self, buffer: Buffer, values: &HostSlice<'_>) -> Result<Buffer> {
        self.write(&buffer, values)?;
        Ok(buffer)
    }

    /// Has whole words written, of which no more than two pieces wait for the device at a time: each takes as much of the host's memory as it is
    /// large, and where there is no more of it wgpu gives the device up.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn send(&self, to: &wgpu::Buffer, mut at: u64, words: &[u8]) {
        const PIECE_BYTES: usize = 1 << 26;
        let mut before = None;
        for piece in words.chunks(PIECE_BYTES) {
            self.queue.write_buffer(to, at, piece);
            at += piece.len() as u64;
            if words.len() > PIECE_BYTES
                && let Some(submission_index) = before.replace(self.queue.submit([]))
            {
                attend::poll(&self.health, || self.device.poll(attend::until(&self.device, Some(submission_index.clone()))));
            }
        }
    }

    /// Copies values to the device.
    #[cfg(not(target_arch = "wasm32"))]
    fn write(&self, buffer: &Buffer, values: &HostSlice<'_>) -> Result<()> {
        self.batches.submit_users(buffer);
        // Writes are of whole words, and the buffer has room for one.
        let (words, rest) = values.bytes().split_at(values.bytes().len() / 4 * 4);
        let at = buffer.at_bytes();
        self.send(buffer.raw(), at, words);
        if !rest.is_empty() {
            let mut word = [0; 4];
            word[..rest.len()].copy_from_slice(rest);
            self.queue.write_buffer(buffer.raw(), at + words.len() as u64, &word);
        }
        Ok(())
    }

    /// The same; the queue reads the page's array itself, so that nothing passes through this module's memory.
    #[cfg(target_arch = "wasm32")]
    fn write(&self, buffer: &Buffer, values: &HostSlice<'_>) -> Result<()> {
        self.batches.submit_users(buffer);
        let (Some(queue), Some(to)) = (self.queue.as_webgpu(), buffer.raw().as_webgpu()) else {
            return Err(Error::internal("wgpu runs on something other than WebGPU"));
        };
        let mut bytes = values.bytes();
        // Writes are of whole words, and the buffer has room for one.
        let length = bytes.length() / 4 * 4;
        // What the ring takes is larger than a slot.
        let at = buffer.at_bytes() as u32;
        if length < bytes.length() {
            let word = Uint8Array::new_with_length(4);
            word.set(&bytes.subarray(length, bytes.length()), 0);
            let written = queue.write_buffer_with_u32_and_buffer_source(to, at + length, &word);
            written.map_err(|_| Error::internal("the queue refused an operand"))?;
            bytes = bytes.subarray(0, length);
        }
        let written = self.ring.write(to, &bytes);
        if written == length {
            return Ok(());
        }
        let rest = bytes.subarray(written, length);
        if queue.write_buffer_with_u32_and_buffer_source(to, at + written, &rest).is_ok() {
            // The browser's GPU process takes it from here while the next operand is written.
            if rest.length() >= FLUSHED_BYTES {
                self.queue.submit([]);
            }
            return Ok(());
        }
        // Some queues take no array whose memory can be resized: a copy then, in pieces.
        const PIECE: u32 = 1 << 22;
        for start in (written..length).step_by(PIECE as usize) {
            let piece = bytes.slice(start, start.saturating_add(PIECE));
            let written = queue.write_buffer_with_f64_and_buffer_source(to, f64::from(at) + f64::from(start), &piece);
            written.map_err(|_| Error::internal("the queue refused an operand"))?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::super::tests::webgpu;
    use crate::backend::Backend;
    use crate::dtype::{DType, Extent};

    /// What is sent in pieces arrives whole, and what was sent before it does too.
    #[test]
    fn a_large_upload_arrives() {
        let Some((device, _)) = webgpu() else { return };
        const COUNT: u32 = 40_000_003;
        let values: Vec<half::f16> = (0..COUNT * 2 + 1).map(|i| half::f16::from_bits((i % 30_011) as u16)).collect();
        let small = device.upload(&(&values[..5]).into()).unwrap();
        let large = device.upload(&(&values[..]).into()).unwrap();
        for (buffer, count) in [(&small, 5), (&large, values.len())] {
            let extent = Extent { elements: count as u64, dtype: DType::F16 };
            let got = pollster::block_on(device.download(buffer, extent)).unwrap().into_f16();
            assert!(got == values[..count], "{count} values");
        }
    }
}
