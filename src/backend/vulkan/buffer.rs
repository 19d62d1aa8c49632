//! Device memory: pooled buffers, and operands copied to where they can be fetched from at once.
//!
//! A buffer goes back to its pool only when the GPU is done with it: what a submission uses, the queue holds until then. So a buffer
//! from a pool is free in every sense, and the host may write to it.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ash::vk;
use gpu_allocator::vulkan::{Allocation, AllocationCreateDesc, AllocationScheme};
use gpu_allocator::{AllocationError, MemoryLocation};

use super::Vulkan;
use super::context::Context;
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
}

/// Operands go to the device in pieces of this size: one is copied by the GPU while the host fills the next.
const PIECE_BYTES: usize = 8 << 20;

impl Vulkan {
    /// Room for a matrix, read and written by kernels.
    pub(super) fn storage(&self, bytes: u64) -> Result<Buffer> {
        self.take(Use::Storage, bytes)
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
        if bytes > self.caps.max_buffer_bytes {
            return Err(Error::LimitExceeded { what: "the size of a buffer in bytes", requested: bytes, max: self.caps.max_buffer_bytes });
        }
        self.queue.reap();
        let pool = if matches!(usage, Use::Staging) { &self.host_memory } else { &self.memory };
        pool.take(usage as u32, bytes, || Raw::new(&self.context, usage, bytes)).map(|buffer| Buffer(Arc::new(buffer)))
    }

    /// Copies values to the device; they may change as soon as this returns.
    pub(super) fn write(&self, buffer: &Buffer, values: &[u8]) -> Result<()> {
        for (index, piece) in values.chunks(PIECE_BYTES).enumerate() {
            let staging = self.staging(piece.len() as u64)?;
            staging.0.write(0, piece)?;
            let at = (index * PIECE_BYTES) as u64;
            self.queue.copy_soon(&staging, buffer, at, piece.len() as u64);
            if values.len() > PIECE_BYTES {
                self.queue.flush()?;
            }
        }
        Ok(())
    }
}

impl Raw {
    fn new(context: &Arc<Context>, usage: Use, bytes: u64) -> Result<Self> {
        let copied = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::TRANSFER_DST;
        let (name, flags, location) = match usage {
            Use::Storage => ("storage", vk::BufferUsageFlags::STORAGE_BUFFER | copied, MemoryLocation::GpuOnly),
            Use::Params => ("params", vk::BufferUsageFlags::UNIFORM_BUFFER, MemoryLocation::CpuToGpu),
            Use::Staging => ("staging", copied, MemoryLocation::GpuToCpu),
        };
        let info = vk::BufferCreateInfo::default().size(bytes).usage(flags).sharing_mode(vk::SharingMode::EXCLUSIVE);
        // SAFETY: the size is not 0 and within the device's limit.
        let handle = context.check("vkCreateBuffer", unsafe { context.device.create_buffer(&info, None) })?;
        let mut raw = Self { handle, bytes, allocation: None, context: Arc::clone(context) };
        context.allocated_bytes.fetch_add(bytes, Ordering::Relaxed);
        // SAFETY: the buffer is of this device.
        let requirements = unsafe { context.device.get_buffer_memory_requirements(handle) };
        let description =
            AllocationCreateDesc { name, requirements, location, linear: true, allocation_scheme: AllocationScheme::GpuAllocatorManaged };
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
            error => Error::internal(format!("the allocator failed ({error})")),
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
    pub(super) fn read<T: bytemuck::AnyBitPattern>(&self, offset_bytes: u64, count: usize) -> Result<Vec<T>> {
        let bytes = count * size_of::<T>();
        let from = self.mapped(offset_bytes, bytes)?;
        let mut out: Vec<T> = Vec::new();
        out.try_reserve_exact(count).map_err(|_| Error::OutOfMemory { bytes: bytes as u64, place: "the host" })?;
        // SAFETY: the mapping and the vector's room are that long and apart, and every pattern of bits is a value.
        unsafe {
            from.copy_to_nonoverlapping(NonNull::new_unchecked(out.as_mut_ptr().cast()), bytes);
            out.set_len(count);
        }
        Ok(out)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the queue holds what the GPU uses, so it does not use this.
        unsafe { self.context.device.destroy_buffer(self.handle, None) };
        if let (Some(allocation), Some(allocator)) = (self.allocation.take(), self.context.allocator().as_mut()) {
            // It fails only for memory of another allocator.
            let _ = allocator.free(allocation);
        }
        self.context.allocated_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
