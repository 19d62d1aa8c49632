//! Device memory: pooled buffers, and operands copied to where they can be fetched from at once.
//!
//! A buffer goes back to its pool only when the GPU is done with it: what a submission uses, the queue holds until then. So a buffer
//! from a pool is free in every sense, and the host may write to it.

use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use gpu_allocator::{AllocationError, MemoryLocation};

use super::Vulkan;
use super::context::Context;
use super::submit::PROOF_BYTES;
use crate::backend::pool::Pooled;
use crate::error::{Error, Result};

/// A buffer and its memory.
pub(super) struct Raw {
    pub handle: vk::Buffer,
    bytes: u64,
    /// None only while the buffer goes.
    allocation: Option<Allocation>,
    context: Arc<Context>,
}

/// Memory of the device.
#[derive(Clone)]
pub(crate) struct Buffer(pub(super) Arc<Pooled<Raw>>);

/// The uses that the pools keep apart.
#[derive(Clone, Copy)]
enum Use {
    /// In the GPU's memory, for kernels.
    Storage,
    /// Written by the host, read by kernels once.
    Params,
    /// In the host's memory, cached, for copies in both directions.
    Staging,
    /// Where kernels and the host both reach it.
    Visible,
}

/// What is large is copied in pieces of this size: one by the GPU while the host fills the next, several of them at once, since one core does
/// not copy as fast as memory goes.
pub(super) const PIECE_BYTES: usize = 8 << 20;

/// What kernels use and is at least so long has an allocation of its own that the driver knows to be for one buffer: on an NVIDIA H200 a kernel
/// that read 256 MiB by columns took half of the time then.
const DEDICATED_BYTES: u64 = 16 << 20;

/// Cores that copy at once.
const COPIERS: usize = 4;

impl Vulkan {
    /// Room for a matrix, read and written by kernels.
    pub(super) fn storage(&self, bytes: u64) -> Result<Buffer> {
        self.take(Use::Storage, bytes)
    }

    /// Room that the host writes to and kernels use.
    pub(super) fn visible(&self, bytes: u64) -> Result<Buffer> {
        self.take(Use::Visible, bytes)
    }

    /// Room on the host for copies to and from the device.
    pub(super) fn staging(&self, bytes: u64) -> Result<Buffer> {
        self.take(Use::Staging, bytes)
    }

    /// Room for the parameters of dispatches.
    pub(super) fn params(&self, bytes: u64) -> Result<Buffer> {
        self.take(Use::Params, bytes)
    }

    fn take(&self, usage: Use, bytes: u64) -> Result<Buffer> {
        // Kernels read whole vec4s; a buffer cannot be empty.
        let bytes = bytes.next_multiple_of(16).max(16);
        // Behind the largest there is there is room for the proof of its copy.
        let beside = if matches!(usage, Use::Staging) { PROOF_BYTES } else { 0 };
        let max = self.caps.max_buffer_bytes;
        if bytes > max.saturating_add(beside) {
            return Err(Box::new(Error::LimitExceeded { what: "the size of a buffer in bytes", requested: bytes, max }));
        }
        self.reap();
        let pool = if matches!(usage, Use::Staging) { &self.host_memory } else { &self.memory };
        let make = || pool.take(usage as u32, bytes, || Raw::new(&self.context, usage, bytes));
        let made = make().or_else(|error| match *error {
            // What submissions hold is let go of when they are done.
            Error::OutOfMemory { .. } if matches!(usage, Use::Storage | Use::Visible) => {
                self.wait();
                self.reap();
                self.memory.trim();
                self.host_memory.trim();
                make()
            }
            _ => Err(error),
        });
        made.map(|buffer| Buffer(Arc::new(buffer)))
    }

    /// Copies values to the device, to where that byte is; they may change as soon as this returns.
    pub(super) fn write(&self, buffer: &Buffer, at_bytes: u64, values: &[u8]) -> Result<()> {
        self.send(values, |staging, start_bytes, bytes| {
            self.queue.copy_soon(&staging, buffer, at_bytes + start_bytes, bytes);
            if values.len() > PIECE_BYTES {
                self.queue.flush()?;
            }
            Ok(())
        })
    }

    /// Copies values to the host's room for copies, piece by piece, and has each piece of so many bytes, from that byte on, copied from there.
    pub(super) fn send(&self, values: &[u8], copy: impl Fn(Buffer, u64, u64) -> Result<()> + Sync) -> Result<()> {
        let pieces = || values.chunks(PIECE_BYTES).enumerate();
        let send = |(index, piece): (usize, &[u8])| {
            let staging = self.staging(piece.len() as u64)?;
            staging.0.write(0, piece)?;
            copy(staging, (index * PIECE_BYTES) as u64, piece.len() as u64)
        };
        at_once(pieces(), send).or_else(|error| match *error {
            // They are filled faster than the GPU copies them: one after another, then.
            Error::OutOfMemory { .. } => pieces().try_for_each(|piece| {
                self.wait();
                self.reap();
                self.host_memory.trim();
                send(piece)
            }),
            _ => Err(error),
        })
    }
}

impl Raw {
    fn new(context: &Arc<Context>, usage: Use, bytes: u64) -> Result<Self> {
        let copied = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let (name, flags, location) = match usage {
            Use::Storage => ("storage", vk::BufferUsageFlags::STORAGE_BUFFER | copied, MemoryLocation::GpuOnly),
            Use::Params => ("params", vk::BufferUsageFlags::UNIFORM_BUFFER, MemoryLocation::CpuToGpu),
            Use::Staging => ("staging", copied, MemoryLocation::GpuToCpu),
            Use::Visible => ("visible", vk::BufferUsageFlags::STORAGE_BUFFER | copied, MemoryLocation::CpuToGpu),
        };
        let info = vk::BufferCreateInfo::default().size(bytes).usage(flags).sharing_mode(vk::SharingMode::EXCLUSIVE);
        // Shared by the queues, so that none has to be handed over.
        let shared = info.sharing_mode(vk::SharingMode::CONCURRENT).queue_family_indices(&context.families);
        let info = if context.families.len() > 1 { shared } else { info };
        // SAFETY: the size is not 0 and within the device's limit.
        let handle = unsafe { context.device.create_buffer(&info, None) };
        let handle = handle.map_err(|fault| context.fault("vkCreateBuffer", fault, bytes))?;
        let mut raw = Self { handle, bytes, allocation: None, context: Arc::clone(context) };
        // SAFETY: the buffer is of this device.
        let requirements = unsafe { context.device.get_buffer_memory_requirements(handle) };
        let allocation_scheme = match usage {
            Use::Storage if bytes >= DEDICATED_BYTES => AllocationScheme::DedicatedBuffer(handle),
            _ => AllocationScheme::GpuAllocatorManaged,
        };
        let description = AllocationCreateDesc { name, requirements, location, linear: true, allocation_scheme };
        let allocated = match context.allocator().as_mut() {
            Some(allocator) => allocator.allocate(&description),
            None => Err(AllocationError::Internal("the device is being closed".to_owned())),
        };
        let place = if matches!(usage, Use::Staging) { "the host" } else { "the GPU" };
        let allocation = allocated.map_err(|error| match error {
            AllocationError::OutOfMemory if requirements.size > context.max_allocation_bytes => Error::LimitExceeded {
                what: "the size in bytes of memory in one piece",
                requested: requirements.size,
                max: context.max_allocation_bytes,
            },
            AllocationError::OutOfMemory => Error::OutOfMemory { bytes, place },
            AllocationError::FailedToMap(_) => Error::OutOfMemory { bytes, place: "the host" },
            AllocationError::Internal(said) if said.contains("OUT_OF_HOST_MEMORY") || said.contains("TOO_MANY_OBJECTS") => {
                Error::OutOfMemory { bytes, place: "the host" }
            }
            error => *Error::internal(format!("the allocator failed ({error})")),
        })?;
        let allocation = raw.allocation.insert(allocation);
        // SAFETY: the memory was allocated to the buffer's requirements, and nothing is bound to it yet.
        let bound = unsafe { context.device.bind_buffer_memory(handle, allocation.memory(), allocation.offset()) };
        context.check("vkBindBufferMemory", bound)?;
        Ok(raw)
    }

    /// Where the host sees so many bytes of the buffer.
    fn mapped(&self, offset_bytes: u64, bytes: usize) -> Result<NonNull<u8>> {
        let inside = offset_bytes.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes);
        let mapped = self.allocation.as_ref().and_then(Allocation::mapped_ptr).filter(|_| inside);
        let start = mapped.ok_or_else(|| Error::internal("a buffer is not mapped as far as that"))?;
        // SAFETY: the offset lies within the mapping.
        Ok(unsafe { start.cast::<u8>().add(offset_bytes as usize) })
    }

    /// Copies bytes into a buffer that the GPU does not use yet.
    pub(super) fn write(&self, offset_bytes: u64, bytes: &[u8]) -> Result<()> {
        let to = self.mapped(offset_bytes, bytes.len())?;
        // SAFETY: the mapping is that long, coherent, and apart from what the caller has.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        Ok(())
    }

    /// Copies bytes out of a buffer that the GPU is done with.
    pub(super) fn read_into(&self, offset_bytes: u64, out: &mut [u8]) -> Result<()> {
        let from = self.mapped(offset_bytes, out.len())?;
        // SAFETY: the mapping is that long, and nobody writes to it.
        let from = unsafe { std::slice::from_raw_parts(from.as_ptr(), out.len()) };
        at_once(out.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)), |(to, from)| {
            to.copy_from_slice(from);
            Ok(())
        })
    }

    /// The same into a vector of its own.
    pub(super) fn read<T: bytemuck::AnyBitPattern>(&self, offset_bytes: u64, count: usize) -> Result<Vec<T>> {
        let bytes = count * size_of::<T>();
        let from = self.mapped(offset_bytes, bytes)?;
        let mut out: Vec<T> = Vec::new();
        out.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes: bytes as u64, place: "the host" })?;
        // SAFETY: the mapping is that long, and nobody writes to it.
        let from = unsafe { std::slice::from_raw_parts(from.as_ptr(), bytes) };
        // SAFETY: the vector has that much room, and any bytes may be written there.
        let to = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<MaybeUninit<u8>>(), bytes) };
        at_once(to.chunks_mut(PIECE_BYTES).zip(from.chunks(PIECE_BYTES)), |(to, from)| {
            // SAFETY: both are of one length, and apart.
            unsafe { to.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            Ok(())
        })?;
        // SAFETY: all of it was written, and every pattern of bits is a value.
        unsafe { out.set_len(count) };
        Ok(out)
    }
}

/// Does the work for each piece, for several of them at once if there are many.
pub(super) fn at_once<T: Send>(pieces: impl ExactSizeIterator<Item = T> + Send, work: impl Fn(T) -> Result<()> + Sync) -> Result<()> {
    let copiers = pieces.len().min(COPIERS).min(std::thread::available_parallelism().map_or(1, usize::from));
    let pieces = Mutex::new(pieces);
    let copy = || {
        loop {
            let next = pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(piece) => work(piece)?,
                None => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        // A thread that the system does not give leaves its work to the others.
        let others: Vec<_> = (1..copiers).filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, copy).ok()).collect();
        let own = copy();
        others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(Error::internal("a copy panicked")))).fold(own, Result::and)
    })
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the queue holds what the GPU uses, so it does not use this.
        unsafe { self.context.device.destroy_buffer(self.handle, None) };
        if let (Some(allocation), Some(allocator)) = (self.allocation.take(), self.context.allocator().as_mut()) {
            // It fails only for memory of another allocator.
            let _ = allocator.free(allocation);
        }
    }
}
