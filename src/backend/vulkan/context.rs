//! The device itself, which everything made from it keeps alive, and what has become of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ash::vk;
use gpu_allocator::vulkan::Allocator;

use super::instance::Instance;
use crate::error::{Error, Result};

/// An open device.
pub(super) struct Context {
    pub device: ash::Device,
    /// The families of its queues: that of kernels, and that of copies alone if it has one.
    pub families: Vec<u32>,
    /// More than this at once a driver may refuse, even if it has it.
    pub max_allocation_bytes: u64,
    /// None only while the device goes.
    allocator: Mutex<Option<Allocator>>,
    /// Bytes of all buffers there are.
    pub allocated_bytes: AtomicU64,
    lost: Mutex<Option<String>>,
    /// Dropped last.
    instance: Arc<Instance>,
}

impl Context {
    pub(super) fn new(
        instance: Arc<Instance>,
        device: ash::Device,
        families: Vec<u32>,
        allocator: Allocator,
        max_allocation_bytes: u64,
    ) -> Self {
        let allocator = Mutex::new(Some(allocator));
        Self { device, families, max_allocation_bytes, allocator, allocated_bytes: AtomicU64::new(0), lost: Mutex::new(None), instance }
    }

    pub(super) fn allocator(&self) -> MutexGuard<'_, Option<Allocator>> {
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the device lost. The first reason stays.
    pub(super) fn lose(&self, reason: String) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
    }

    pub(super) fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An error if the device is lost, or if the validation layer complained.
    pub(super) fn settled(&self) -> Result<()> {
        if let Some(reason) = self.lost() {
            return Err(Box::new(Error::DeviceLost { reason }));
        }
        match self.instance.complaint() {
            Some(complaint) => Err(Error::internal(format!("Vulkan validation: {complaint}"))),
            None => Ok(()),
        }
    }

    /// What a call gave, as a result of this crate; a loss is remembered.
    pub(super) fn check<T>(&self, call: &str, result: Result<T, vk::Result>) -> Result<T> {
        result.map_err(|fault| self.fault(call, fault, self.allocated_bytes.load(Ordering::Relaxed)))
    }

    /// A failed call's result as an error of this crate; `bytes` is what an error about memory will state.
    pub(super) fn fault(&self, call: &str, fault: vk::Result, bytes: u64) -> Box<Error> {
        Box::new(match fault {
            vk::Result::ERROR_DEVICE_LOST => {
                self.lose(format!("the driver said so at {call}"));
                Error::DeviceLost { reason: self.lost().unwrap_or_default() }
            }
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_POOL_MEMORY => Error::OutOfMemory { bytes, place: "the GPU" },
            vk::Result::ERROR_OUT_OF_HOST_MEMORY => Error::OutOfMemory { bytes, place: "the host" },
            fault => return Error::internal(format!("{call} failed ({fault})")),
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        drop(self.allocator().take());
        // SAFETY: whatever was made from the device held this context, and is gone.
        unsafe { self.device.destroy_device(None) };
    }
}
