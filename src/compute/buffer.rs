//! Memory of a device, by the byte.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::stream::{Stream, zeroed};
use crate::backend::Backend;
use crate::backend::compute::{Compute, Storage};
use crate::backend::device::Opened;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::info::{BackendId, Memory};

/// Offsets and lengths are of whole words, which is what every backend copies.
const WORD_BYTES: u64 = 4;

/// Memory of a device. Clones share it; it is given back with the last of them, when the device is done with it.
#[derive(Clone)]
pub struct Buffer(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub storage: Storage,
    pub bytes: u64,
    memory: Memory,
    /// Dropped last.
    pub home: Arc<Opened>,
}

/// A buffer as an argument of a launch: all of it, or a range.
#[derive(Debug, Clone)]
pub struct Argument<'a> {
    pub(super) buffer: &'a Buffer,
    pub(super) range: Range<u64>,
}

impl<'a> From<&'a Buffer> for Argument<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        Self { buffer, range: 0..buffer.bytes() }
    }
}

impl Argument<'_> {
    pub(super) fn bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

impl Gpu {
    /// Memory of the device in use, of so many bytes; what is in it is not specified.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a size that is not a positive multiple of 4; [`Error::LimitExceeded`] and [`Error::OutOfMemory`]
    /// with the numbers; [`Error::Unavailable`] for a sort of memory that the backend has not
    /// ([`Capabilities::memories`](crate::compute::Capabilities::memories)).
    pub fn allocate(&self, bytes: u64, memory: Memory) -> Result<Buffer> {
        let home = self.sound()?;
        if bytes == 0 || !bytes.is_multiple_of(WORD_BYTES) {
            return Err(invalid("the size of a buffer in bytes", bytes, "it has to be a positive multiple of 4"));
        }
        if !home.info.capabilities.memories.contains(&memory) {
            return Err(Box::new(Error::Unavailable {
                backend: home.info.backend,
                reason: format!("it has no {memory} memory for the taking"),
                remedy: "use Memory::Device, which every backend has".to_owned(),
            }));
        }
        let reserve = || home.device.reserve(memory, bytes);
        let storage = match reserve() {
            Err(error) if matches!(*error, Error::OutOfMemory { .. }) && home.device.memory().pooled_bytes > 0 => {
                home.device.trim();
                reserve()?
            }
            reserved => reserved?,
        };
        Ok(Buffer(Arc::new(Inner { storage, bytes, memory, home })))
    }

    /// The device in use; a fresh one after a loss.
    pub(super) fn sound(&self) -> Result<Arc<Opened>> {
        let opened = self.current()?;
        if opened.device.lost().is_none() { Ok(opened) } else { pollster::block_on(self.reopen(&opened)) }
    }
}

impl Buffer {
    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// What sort of memory.
    pub fn memory(&self) -> Memory {
        self.0.memory
    }

    /// Whose memory.
    pub fn backend(&self) -> BackendId {
        self.0.home.info.backend
    }

    /// A part of it in bytes, for a launch.
    pub fn slice(&self, range: Range<u64>) -> Argument<'_> {
        Argument { buffer: self, range }
    }

    /// Writes values from that byte on, and waits until they are there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if they do not fit, or do not start or end at a multiple of 4; the device's loss.
    pub async fn write<T: Pod>(&self, offset_bytes: u64, values: &[T]) -> Result<()> {
        let stream = Stream::shared(&self.0.home)?;
        stream.write(self, offset_bytes, values)?;
        stream.synchronize().await
    }

    /// [`write`](Self::write), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn write_blocking<T: Pod>(&self, offset_bytes: u64, values: &[T]) -> Result<()> {
        pollster::block_on(self.write(offset_bytes, values))
    }

    /// Reads so many values from that byte on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn read<T: Pod>(&self, offset_bytes: u64, count: usize) -> Result<Vec<T>> {
        Stream::shared(&self.0.home)?.read(self, offset_bytes, count)?.finish().await
    }

    /// [`read`](Self::read), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn read_blocking<T: Pod>(&self, offset_bytes: u64, count: usize) -> Result<Vec<T>> {
        pollster::block_on(self.read(offset_bytes, count))
    }

    /// Copies all of another buffer of the same device to the start of this one, and waits until it is there.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is longer, or of another device; the device's loss.
    pub async fn copy_from(&self, from: &Self) -> Result<()> {
        let stream = Stream::shared(&self.0.home)?;
        stream.copy(from, 0, self, 0, from.bytes())?;
        stream.synchronize().await
    }

    /// [`copy_from`](Self::copy_from), blocking.
    ///
    /// # Errors
    /// As there.
    pub fn copy_from_blocking(&self, from: &Self) -> Result<()> {
        pollster::block_on(self.copy_from(from))
    }

    /// Refuses a buffer of another device than that of a stream.
    pub(super) fn at_home(&self, home: &Arc<Opened>) -> Result<()> {
        if Arc::ptr_eq(&self.0.home, home) {
            return Ok(());
        }
        Err(match self.0.home.device.lost() {
            Some(reason) => Box::new(Error::DeviceLost { reason: format!("what a buffer held went with it ({reason}); make it anew") }),
            None => elsewhere("a buffer", &self.0.home, home),
        })
    }

    /// Refuses a range that is not within, or not of whole words.
    pub(super) fn within(&self, offset_bytes: u64, bytes: u64) -> Result<()> {
        let of_words = offset_bytes.is_multiple_of(WORD_BYTES) && bytes.is_multiple_of(WORD_BYTES);
        if of_words && offset_bytes.checked_add(bytes).is_some_and(|end| end <= self.0.bytes) {
            return Ok(());
        }
        let range = format!("{bytes} bytes from byte {offset_bytes} on");
        let expected = format!("it has to lie in the buffer's {} bytes, and to start and end at a multiple of 4", self.0.bytes);
        Err(invalid("a range", range, &expected))
    }

    /// What the buffer holds there, once the device has computed it, from an address that suits every number.
    pub(super) async fn copy_of(&self, range: &Range<u64>) -> Result<Vec<u128>> {
        let bytes = range.end - range.start;
        let mut out = zeroed::<u128>(bytes.div_ceil(16) as usize)?;
        let stream = Stream::shared(&self.0.home)?;
        let fetch = self.0.home.device.fetch(&stream.0.lane, &self.0.storage, range.start, bytes)?;
        self.0.home.device.fetched(fetch, &mut bytemuck::cast_slice_mut(&mut out)[..bytes as usize]).await?;
        Ok(out)
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer of {} bytes of {} memory on {}", self.bytes(), self.memory(), self.backend())
    }
}

pub(super) fn invalid(what: &str, found: impl ToString, expected: &str) -> Box<Error> {
    Box::new(Error::InvalidArgument { what: what.to_owned(), found: found.to_string(), expected: expected.to_owned() })
}

/// Something of one device where another's is needed.
pub(super) fn elsewhere(what: &str, at: &Opened, needed: &Opened) -> Box<Error> {
    let name = |opened: &Opened| format!("{} {}, opened as number {}", opened.info.backend, opened.info.name, opened.info.generation);
    let found = format!("of another device ({})", name(at));
    invalid(what, found, &format!("it has to be of the same handle's device ({})", name(needed)))
}
