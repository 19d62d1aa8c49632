//! Memory: the device's and the host's that it can reach by itself, both pooled, and the copies between them.
//!
//! All work of a device is in one stream, in order. So what a call gives back to the pool can serve the next one although the device is not
//! yet done with it. Operands pass through pinned pieces: the caller's memory is free again when `upload` returns, and while one piece is
//! under way the next is filled.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr, CUresult};

use super::Cuda;
use super::driver::{Event, Fault, Stream, check};
use crate::backend::pool::{Pool, Pooled};
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec, Read};

/// The largest piece of an operand under way at once, and how many there may be.
pub(super) const PIECE_BYTES: usize = 8 << 20;
pub(super) const PIECES: usize = 4;
/// Where so much is copied, several threads do it: one does not fill the bus.
const SHARE_BYTES: usize = 2 << 20;
const MOST_THREADS: usize = 4;

/// A block of memory, freed when dropped.
pub(super) struct Raw {
    memory: Memory,
    stream: Arc<Stream>,
}

enum Memory {
    Device(CUdeviceptr),
    /// Of the host, at an address that does not change.
    Pinned(*mut c_void),
}

// SAFETY: memory belongs to a context, not to a thread, and the host's is only reached through the calls below.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

impl Raw {
    pub(super) fn device(stream: &Arc<Stream>, bytes: u64) -> Result<Self, Fault> {
        let _current = stream.context.enter()?;
        let mut address = 0;
        // SAFETY: the context is current, and the driver writes one address.
        check("cuMemAlloc_v2", unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes as usize) })?;
        Ok(Self { memory: Memory::Device(address), stream: Arc::clone(stream) })
    }

    pub(super) fn pinned(stream: &Arc<Stream>, bytes: u64) -> Result<Self, Fault> {
        let _current = stream.context.enter()?;
        let mut address = std::ptr::null_mut();
        // SAFETY: the context is current, and the driver writes one address.
        check("cuMemAllocHost_v2", unsafe { sys::cuMemAllocHost_v2(&raw mut address, bytes as usize) })?;
        Ok(Self { memory: Memory::Pinned(address), stream: Arc::clone(stream) })
    }

    /// Where it is on the device; 0 for memory of the host.
    pub(super) fn address(&self) -> CUdeviceptr {
        match self.memory {
            Memory::Device(address) => address,
            Memory::Pinned(_) => 0,
        }
    }

    /// Where kernels and copies find it: the driver gives pinned memory one address for the host and the device.
    pub(super) fn kernel_address(&self) -> CUdeviceptr {
        match self.memory {
            Memory::Device(address) => address,
            Memory::Pinned(address) => address.expose_provenance() as CUdeviceptr,
        }
    }

    /// Where it is on the host; null for memory of the device.
    fn host(&self) -> *mut c_void {
        match self.memory {
            Memory::Device(_) => std::ptr::null_mut(),
            Memory::Pinned(address) => address,
        }
    }
}

impl Raw {
    /// Copies bytes into pinned memory from that byte on, which nobody uses now; those that it has room for.
    pub(super) fn fill(&self, at_bytes: usize, bytes: &[u8]) {
        if let Memory::Pinned(address) = self.memory {
            // SAFETY: the block is at least as long as was asked for, which the range lies in; nobody else writes or reads it now.
            let to = unsafe { std::slice::from_raw_parts_mut(address.cast::<std::mem::MaybeUninit<u8>>().add(at_bytes), bytes.len()) };
            copy(bytes, to);
        }
    }

    /// Copies pinned memory from its start into `out`, which is no longer than it. The device has written that much, and writes no more.
    pub(super) fn empty_into(&self, out: &mut [u8]) {
        if let Memory::Pinned(address) = self.memory {
            // SAFETY: so much of the block was written before the event that was waited for.
            let from = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), out.len()) };
            // SAFETY: bytes that are there may be taken for bytes that may not be.
            let to = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<std::mem::MaybeUninit<u8>>(), out.len()) };
            copy(from, to);
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // What is in the stream may use it still.
        let _ = self.stream.synchronize();
        let Ok(_current) = self.stream.context.enter() else { return };
        // SAFETY: it was allocated in this context, and nobody has it any more. After a fatal fault the call does nothing.
        let _ = unsafe {
            match self.memory {
                Memory::Device(address) => sys::cuMemFree_v2(address),
                Memory::Pinned(address) => sys::cuMemFreeHost(address),
            }
        };
    }
}

/// Memory of the device.
pub(crate) struct Buffer(pub(super) Arc<Pooled<Raw>>);

/// The uses that the pool keeps apart.
const DEVICE: u32 = 0;
const PINNED: u32 = 1;

/// A result on its way to the host.
pub(super) struct Staging {
    memory: Pooled<Raw>,
    extent: Extent,
}

/// The pieces through which operands pass.
#[derive(Default)]
pub(super) struct Pieces(Mutex<Ring>);

#[derive(Default)]
struct Ring {
    /// The one to use next first.
    pieces: std::collections::VecDeque<Piece>,
}

struct Piece {
    memory: Raw,
    /// When the device has read it; None if it reads nothing of it.
    read: Option<Event>,
}

impl Cuda {
    /// Room for a matrix.
    pub(super) fn storage(&self, bytes: u64) -> Result<Buffer> {
        self.take(DEVICE, bytes, "the GPU", Raw::device).map(|raw| Buffer(Arc::new(raw)))
    }

    fn take(&self, kind: u32, bytes: u64, place: &'static str, make: fn(&Arc<Stream>, u64) -> Result<Raw, Fault>) -> Result<Pooled<Raw>> {
        // An empty matrix has an address too.
        let bytes = bytes.next_multiple_of(256).max(256);
        if bytes > self.caps.max_buffer_bytes {
            return Err(Box::new(Error::LimitExceeded {
                what: "the size of a buffer in bytes",
                requested: bytes,
                max: self.caps.max_buffer_bytes,
            }));
        }
        take_or_trim(&self.pool, kind, bytes, || make(&self.stream, bytes)).map_err(|fault| {
            if fault.is(CUresult::CUDA_ERROR_OUT_OF_MEMORY) { Box::new(Error::OutOfMemory { bytes, place }) } else { self.judge(&fault) }
        })
    }

    /// Does something; out of memory, once more when what lies idle has been given back.
    pub(super) fn with_room<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if matches!(*error, Error::OutOfMemory { .. }) && self.pool.stats().pooled_bytes > 0 => {
                self.pool.trim();
                work()
            }
            done => done,
        }
    }

    /// Room on the host, locked for the device.
    pub(super) fn pinned(&self, bytes: u64) -> Result<Pooled<Raw>> {
        self.take(PINNED, bytes, "the host, locked for the GPU", Raw::pinned)
    }

    /// Copies values to the device; they may change as soon as this returns.
    pub(super) fn write(&self, buffer: &Buffer, values: &HostSlice<'_>) -> Result<()> {
        self.send_all(&self.stream, buffer.0.address(), values.bytes())
    }

    /// Copies bytes to the device in a stream of it; they may change as soon as this returns.
    pub(super) fn send_all(&self, stream: &Arc<Stream>, to: CUdeviceptr, bytes: &[u8]) -> Result<()> {
        let mut ring = self.pieces.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, part) in bytes.chunks(PIECE_BYTES).enumerate() {
            let mut piece = self.next_piece(&mut ring)?;
            let to = to + (index * PIECE_BYTES) as u64;
            let sent = send(stream, &piece.memory, part, to);
            piece.read = sent.as_ref().ok().and_then(|()| Event::record(stream, false).ok());
            if piece.read.is_none() {
                // Without an event nobody knows when it is free: it is given up, once nothing uses it.
                let _ = stream.synchronize();
                drop(piece);
            } else {
                ring.pieces.push_back(piece);
            }
            sent.map_err(|fault| self.judge(&fault))?;
        }
        Ok(())
    }

    /// A piece that the device does not read: one that there is, else a new one, else the one that is free first.
    fn next_piece(&self, ring: &mut Ring) -> Result<Piece> {
        let judge = |fault: Fault| self.judge(&fault);
        let oldest_is_free = match ring.pieces.front().and_then(|piece| piece.read.as_ref()) {
            Some(read) => read.is_done().map_err(judge)?,
            None => false,
        };
        if !oldest_is_free && ring.pieces.len() < PIECES {
            match Raw::pinned(&self.stream, PIECE_BYTES as u64) {
                Ok(memory) => return Ok(Piece { memory, read: None }),
                // With one piece it goes on, if slower.
                Err(fault) if fault.is(CUresult::CUDA_ERROR_OUT_OF_MEMORY) && !ring.pieces.is_empty() => {}
                Err(fault) if fault.is(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => {
                    return Err(Box::new(Error::OutOfMemory { bytes: PIECE_BYTES as u64, place: "the host, locked for the GPU" }));
                }
                Err(fault) => return Err(judge(fault)),
            }
        }
        let piece = ring.pieces.pop_front().ok_or_else(|| Error::internal("no piece to copy through"))?;
        if let Some(read) = &piece.read {
            read.wait().map_err(judge)?;
        }
        Ok(piece)
    }

    /// Sends a result on its way, after all that is in the stream.
    pub(super) fn stage(&self, from: &Buffer, extent: Extent) -> Result<Staging> {
        let bytes = extent.bytes();
        let memory = self.pinned(bytes)?;
        let copied = self.stream.context.enter().and_then(|_current| {
            // SAFETY: both are at least so long, and both live until the copy is done: memory is only freed after the stream's work.
            let code = unsafe { sys::cuMemcpyDtoHAsync_v2(memory.host(), from.0.address(), bytes as usize, self.stream.raw()) };
            check("cuMemcpyDtoHAsync_v2", code)
        });
        copied.map_err(|fault| self.judge(&fault))?;
        Ok(Staging { memory, extent })
    }
}

impl Staging {
    /// The result, which has come.
    pub(super) fn read(&self) -> Result<HostVec> {
        HostVec::read(self.extent.dtype, self)
    }
}

impl Read for &Staging {
    fn read<T: bytemuck::AnyBitPattern>(self) -> Result<Vec<T>> {
        let (elements, bytes) = (self.extent.elements as usize, self.extent.bytes() as usize);
        let mut out: Vec<T> = Vec::new();
        out.try_reserve_exact(elements).map_err(|_| Error::OutOfMemory { bytes: bytes as u64, place: "the host" })?;
        // SAFETY: the device has written so many bytes there before the event that was waited for, and writes no more.
        let from = unsafe { std::slice::from_raw_parts(self.memory.host().cast::<u8>(), bytes) };
        // SAFETY: T is what the extent counts, the vector has room for so many, and nobody else has it.
        copy(from, unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<std::mem::MaybeUninit<u8>>(), bytes) });
        // SAFETY: the copy has written every byte, and every pattern of bits is a value.
        unsafe { out.set_len(elements) };
        Ok(out)
    }
}

/// Out of memory, it is tried once more when what lies idle has been given back.
fn take_or_trim(pool: &Pool<Raw>, kind: u32, bytes: u64, make: impl Fn() -> Result<Raw, Fault>) -> Result<Pooled<Raw>, Fault> {
    match pool.take(kind, bytes, &make) {
        Err(fault) if fault.is(CUresult::CUDA_ERROR_OUT_OF_MEMORY) && pool.stats().pooled_bytes > 0 => {
            pool.trim();
            pool.take(kind, bytes, make)
        }
        taken => taken,
    }
}

/// Puts a part into a piece and the piece on its way.
fn send(stream: &Stream, piece: &Raw, part: &[u8], to: CUdeviceptr) -> Result<(), Fault> {
    let host = piece.host();
    // SAFETY: a piece is at least as long as a part, and the device does not read it now.
    copy(part, unsafe { std::slice::from_raw_parts_mut(host.cast(), part.len()) });
    let _current = stream.context.enter()?;
    // SAFETY: the buffer has room for the operand. The piece stays as it is until its event is done.
    check("cuMemcpyHtoDAsync_v2", unsafe { sys::cuMemcpyHtoDAsync_v2(to, host, part.len(), stream.raw()) })
}

/// Copies as many bytes, on several threads where it is worth it.
fn copy(from: &[u8], to: &mut [std::mem::MaybeUninit<u8>]) {
    let plain = |from: &[u8], to: &mut [std::mem::MaybeUninit<u8>]| {
        // SAFETY: both are of one length, and a mutable slice overlaps with nothing.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), from.len().min(to.len())) };
    };
    let threads = (from.len() / SHARE_BYTES).min(MOST_THREADS).min(std::thread::available_parallelism().map_or(1, usize::from));
    if threads < 2 {
        return plain(from, to);
    }
    let share = from.len().div_ceil(threads).next_multiple_of(4096);
    let shares = Mutex::new(from.chunks(share).zip(to.chunks_mut(share)));
    let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some((from, to)) = next() {
            plain(from, to);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Where no thread can be had, the others do more.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    #[test]
    fn threads_copy_every_byte() {
        for length in [0, 1, SHARE_BYTES, 2 * SHARE_BYTES + 1, 9 * SHARE_BYTES + 4097] {
            let from: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let mut to = vec![MaybeUninit::new(255u8); length];
            copy(&from, &mut to);
            // SAFETY: every byte was set when the vector was made.
            assert!(to.iter().zip(&from).all(|(to, from)| unsafe { to.assume_init() } == *from), "{length}");
        }
    }
}
