//! Memory of a device, by the byte.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::stream::Stream;
use crate::backend::Backend;
use crate::backend::compute::{Compute, Storage};
use crate::backend::device::Opened;
use crate::blocking::block_on;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::info::{BackendId, Memory};
use crate::tensor::{Tensor, elements};

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

/// What a launch gives to a kernel: a buffer, a range of one, or a [`Tensor`], which the kernel reads and writes where it lies, row-major
/// and rounded up to whole words.
#[derive(Debug, Clone)]
pub struct Argument<'a> {
    pub(super) source: Source<'a>,
    pub(super) range: Range<u64>,
}

/// Whose memory.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    Buffer(&'a Buffer),
    Tensor(&'a Tensor),
}

/// Memory for one launch.
pub(super) enum Lent<'a> {
    Own(&'a Storage),
    Tensor(Storage),
}

impl<'a> From<&'a Buffer> for Argument<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        Self { source: Source::Buffer(buffer), range: 0..buffer.bytes() }
    }
}

impl<'a> From<&'a Tensor> for Argument<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        let bytes = elements(tensor.shape()) * tensor.dtype().bytes();
        Self { source: Source::Tensor(tensor), range: 0..bytes.next_multiple_of(WORD_BYTES) }
    }
}

impl<'a> Argument<'a> {
    pub(super) fn bytes(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// Refuses what is of another device, and a range that is not within the buffer.
    pub(super) fn check(&self, home: &Arc<Opened>) -> Result<()> {
        match self.source {
            Source::Buffer(buffer) => {
                buffer.at_home(home)?;
                buffer.within(self.range.start, self.bytes())
            }
            Source::Tensor(tensor) if Arc::ptr_eq(tensor.home(), home) => Ok(()),
            Source::Tensor(tensor) => Err(astray("a tensor", tensor.home(), home)),
        }
    }

    pub(super) fn is_pinned(&self) -> bool {
        matches!(self.source, Source::Buffer(buffer) if buffer.memory() == Memory::Pinned)
    }

    /// Whether both are of the same memory.
    pub(super) fn shares(&self, other: &Self) -> bool {
        match (self.source, other.source) {
            (Source::Buffer(one), Source::Buffer(other)) => Arc::ptr_eq(&one.0, &other.0),
            (Source::Tensor(one), Source::Tensor(other)) => one.shares_memory_with(other),
            _ => false,
        }
    }

    /// The memory, which is of that device.
    pub(super) fn lend(&self, home: &Opened) -> Result<Lent<'a>> {
        match self.source {
            Source::Buffer(buffer) => Ok(Lent::Own(&buffer.0.storage)),
            Source::Tensor(tensor) => home.device.adopt(tensor.buffer()).map(Lent::Tensor),
        }
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = Storage;

    fn deref(&self) -> &Storage {
        match self {
            Self::Own(storage) => storage,
            Self::Tensor(storage) => storage,
        }
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
        let max = home.info.caps.max_buffer_bytes;
        if bytes > max {
            return Err(Box::new(Error::LimitExceeded { what: "the size of a buffer in bytes", requested: bytes, max }));
        }
        let reserve = || home.device.reserve(memory, bytes);
        let storage = match reserve() {
            Err(error) if matches!(*error, Error::OutOfMemory { .. }) => {
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
        if opened.device.lost().is_none() { Ok(opened) } else { block_on(self.reopen(&opened)) }
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
        Argument { source: Source::Buffer(self), range }
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
        block_on(self.write(offset_bytes, values))
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
        block_on(self.read(offset_bytes, count))
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
        block_on(self.copy_from(from))
    }

    /// Refuses a buffer of another device than that of a stream.
    pub(super) fn at_home(&self, home: &Arc<Opened>) -> Result<()> {
        if Arc::ptr_eq(&self.0.home, home) { Ok(()) } else { Err(astray("a buffer", &self.0.home, home)) }
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
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer of {} bytes of {} memory on {}", self.bytes(), self.memory(), self.backend())
    }
}

pub(super) fn invalid(what: &str, found: impl ToString, expected: &str) -> Box<Error> {
    Box::new(Error::InvalidArgument { what: what.to_owned(), found: found.to_string(), expected: expected.to_owned() })
}

/// Memory of one device where another's is needed.
fn astray(what: &str, at: &Opened, needed: &Opened) -> Box<Error> {
    match at.device.lost() {
        Some(reason) => Box::new(Error::DeviceLost { reason: format!("what {what} held went with it ({reason}); make it anew") }),
        None => elsewhere(what, at, needed),
    }
}

/// Something of one device where another's is needed.
pub(super) fn elsewhere(what: &str, at: &Opened, needed: &Opened) -> Box<Error> {
    let name = |opened: &Opened| format!("{} {}, opened as number {}", opened.info.backend, opened.info.name, opened.info.generation);
    let found = format!("of another handle's device ({})", name(at));
    invalid(what, found, &format!("it has to be of this handle's ({})", name(needed)))
}
