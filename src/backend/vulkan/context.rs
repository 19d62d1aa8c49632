//! The device itself, which everything made from it keeps alive, and what has become of it.
//!
//! Handles of one physical device share it: a table keeps it for them and for those to come. A lost one is left to those who have it; the next
//! to open gets another.

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
    /// Its queues in the same order, each locked by whoever submits to it.
    queues: Vec<Mutex<vk::Queue>>,
    /// More than this at once a driver may refuse, even if it has it.
    pub max_allocation_bytes: u64,
    /// None only while the device goes.
    allocator: Mutex<Option<Allocator>>,
    lost: Mutex<Option<String>>,
    /// Whether it is destroyed only when the process ends.
    stays: bool,
    /// Dropped last.
    instance: Arc<Instance>,
}

/// A device that handles share.
struct Shared {
    instance: vk::Instance,
    physical: vk::PhysicalDevice,
    context: Arc<Context>,
}

/// Those that are not lost. They stay when the last handle goes.
static OPEN: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

/// Those that nobody has any more and that stay, with their instances.
static LEFT: Mutex<Vec<(ash::Device, Arc<Instance>)>> = Mutex::new(Vec::new());

impl Context {
    /// The device as others have it open or left it, or one that `make` makes, which others share from then on.
    pub(super) fn shared(
        instance: &Arc<Instance>,
        physical: vk::PhysicalDevice,
        make: impl FnOnce() -> Result<Arc<Self>, String>,
    ) -> Result<Arc<Self>, String> {
        let handle = instance.raw.handle();
        let is_that = |shared: &Shared| shared.instance == handle && shared.physical == physical;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = open.iter().find(|shared| is_that(shared) && shared.context.lost().is_none()) {
            return Ok(Arc::clone(&shared.context));
        }
        let context = make()?;
        open.retain(|shared| !is_that(shared));
        open.push(Shared { instance: handle, physical, context: Arc::clone(&context) });
        Ok(context)
    }

    /// Leaves the lost devices to the handles that have them. The others stay, and so do their instances, which it gives: a device that is not in
    /// the table goes with its last handle, while others compute.
    pub(super) fn forget_lost() -> Vec<vk::Instance> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let lost: Vec<_> = open.extract_if(.., |shared| shared.context.lost().is_some()).collect();
        let kept = open.iter().map(|shared| shared.instance).collect();
        drop(open);
        drop(lost);
        kept
    }

    /// A device of its own, with one queue of each of these families, that is destroyed when nobody has it any more, or, if it
    /// stays, when the process ends.
    pub(super) fn new(
        instance: Arc<Instance>,
        device: ash::Device,
        families: Vec<u32>,
        allocator: Allocator,
        max_allocation_bytes: u64,
        stays: bool,
    ) -> Self {
        // SAFETY: the device was made with one queue of each family.
        let queue = |&family: &u32| Mutex::new(unsafe { device.get_device_queue(family, 0) });
        let queues = families.iter().map(queue).collect();
        let (allocator, lost) = (Mutex::new(Some(allocator)), Mutex::new(None));
        if stays {
            crate::backend::exit::at_exit(destroy_all);
        }
        Self { device, families, queues, max_allocation_bytes, allocator, lost, stays, instance }
    }

    pub(super) fn allocator(&self) -> MutexGuard<'_, Option<Allocator>> {
        self.allocator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands work to the queue of a family.
    ///
    /// # Safety
    /// All of it is the device's, and lives until the device is done with it.
    pub(super) unsafe fn submit(&self, family: u32, work: &vk::SubmitInfo<'_>) -> Result<(), vk::Result> {
        let Some(queue) = self.families.iter().position(|&one| one == family).and_then(|at| self.queues.get(at)) else {
            return Err(vk::Result::ERROR_INITIALIZATION_FAILED);
        };
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: as the caller guarantees; the queue is locked.
        unsafe { self.device.queue_submit(*queue, std::slice::from_ref(work), vk::Fence::null()) }
    }

    /// Waits until a timeline has reached a value; if the device is lost, until nothing at all is under way.
    pub(super) fn wait(&self, timeline: vk::Semaphore, value: u64) {
        let (semaphores, values) = ([timeline], [value]);
        let info = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
        // SAFETY: the semaphore is a timeline of this device.
        let waited = unsafe { self.device.wait_semaphores(&info, u64::MAX) };
        if waited.is_err() || self.lost().is_some() {
            // What a lost device says of a timeline is no proof, and a submission that it refused may have begun.
            let _queues: Vec<_> = self.queues.iter().map(|queue| queue.lock().unwrap_or_else(PoisonError::into_inner)).collect();
            // SAFETY: the queues are locked.
            let _ = unsafe { self.device.device_wait_idle() };
        }
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
        result.map_err(|fault| self.fault(call, fault, 0))
    }

    /// A failed call's result as an error of this crate; `bytes` is what was asked for, 0 for what the driver needs itself.
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

/// Destroys the devices that nobody uses, when the process ends: NVIDIA's driver has threads for each, which otherwise may be under way still when
/// their code is unloaded.
extern "C" fn destroy_all() {
    // A process that is opening one ends without.
    let Ok(mut open) = OPEN.try_lock() else { return };
    open.extract_if(.., |shared| shared.context.stays && Arc::strong_count(&shared.context) == 1).for_each(drop);
    // Nobody opens one any more.
    std::mem::forget(open);
    for (device, instance) in LEFT.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // SAFETY: whatever was made from it is gone.
        unsafe { device.destroy_device(None) };
        // Its last one would unload the driver.
        std::mem::forget(instance);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        drop(self.allocator().take());
        if self.stays {
            let left = (self.device.clone(), Arc::clone(&self.instance));
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(left);
            return;
        }
        // SAFETY: whatever was made from the device held this context, and is gone.
        unsafe { self.device.destroy_device(None) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::instance::all_validated;
    use super::super::{Vulkan, adapter};
    use super::*;
    use crate::backend::device::{Device, Opened};
    use crate::gpu::Gpu;
    use crate::info::{BackendId, DeviceInfo};
    use crate::ops::matmul::Matmul;
    use crate::options::Options;

    /// An instance that no other test has, so that what is opened of it is shared with none.
    fn instance() -> Option<Arc<Instance>> {
        match Instance::new(all_validated()) {
            Ok(instance) => Some(Arc::new(instance)),
            Err((reason, _)) => {
                assert!(!crate::environment::is_required("vulkan"), "required: {reason}");
                eprintln!("skipped vulkan: {reason}");
                None
            }
        }
    }

    fn open(instance: &Arc<Instance>) -> (Vulkan, DeviceInfo) {
        adapter::find_and_open(instance, &Options::default()).unwrap()
    }

    fn gpu((device, info): (Vulkan, DeviceInfo)) -> Gpu {
        Gpu::with(Options::only(BackendId::Vulkan), Opened { device: Device::Vulkan(device), info })
    }

    /// Products of whole numbers, which have one right result.
    fn are_right(gpu: &Gpu, turns: usize) {
        for n in (0..turns).map(|turn| 17 + turn % 5) {
            let a: Vec<f32> = (0..n * n).map(|at| (at * 7 % 11) as f32 - 5.0).collect();
            let c = gpu.matmul_blocking(&a, &a, &Matmul::new(n as u64, n as u64, n as u64)).unwrap();
            let right = |at: usize| (0..n).map(|p| a[at / n * n + p] * a[p * n + at % n]).sum::<f32>();
            assert_eq!((0..n * n).find(|&at| c[at] != right(at)), None, "{n}");
        }
    }

    /// How many handles have an instance's device open.
    fn handles(instance: &Instance) -> usize {
        let open = OPEN.lock().unwrap();
        let shared = open.iter().find(|shared| shared.instance == instance.raw.handle()).expect("it stays");
        Arc::strong_count(&shared.context) - 1
    }

    #[test]
    fn handles_share_a_device_that_stays() {
        let Some(instance) = instance() else { return };
        let (first, second) = (open(&instance), open(&instance));
        assert!(Arc::ptr_eq(&first.0.context, &second.0.context), "one device");
        let other = open(&Arc::new(Instance::new(all_validated()).unwrap()));
        assert!(!Arc::ptr_eq(&first.0.context, &other.0.context), "another instance's");
        let (first, second) = (gpu(first), gpu(second));
        are_right(&first, 1);
        drop(first);
        are_right(&second, 1);
        drop(second);
        assert_eq!(handles(&instance), 0, "nothing else is left of them");
        are_right(&gpu(open(&instance)), 1);
    }

    #[test]
    fn a_lost_device_is_not_given_again() {
        let Some(instance) = instance() else { return };
        let (old, _) = open(&instance);
        old.context.lose("for a test".to_owned());
        let new = open(&instance);
        assert!(!Arc::ptr_eq(&old.context, &new.0.context) && new.0.context.lost().is_none());
        let also_new = open(&instance);
        assert!(Arc::ptr_eq(&new.0.context, &also_new.0.context));
        let gpu = gpu(new);
        drop((old, also_new));
        are_right(&gpu, 1);
    }

    /// That one handle cannot be opened is no reason for the others' device to go.
    #[test]
    fn a_device_stays_when_another_cannot_be_opened() {
        let Some(own) = instance() else { return };
        let opened = || adapter::open(&Options::default()).unwrap();
        let first = opened();
        adapter::off(("for a test".to_owned(), ""));
        assert!(Arc::ptr_eq(&first.0.context, &opened().0.context), "it is shared as before");
        let (lost, _) = open(&own);
        assert!(Context::forget_lost().contains(&own.raw.handle()));
        lost.context.lose("for a test".to_owned());
        assert!(!Context::forget_lost().contains(&own.raw.handle()), "what is lost is left to its handles");
    }

    #[test]
    fn handles_come_and_go_while_others_compute() {
        let Some(instance) = instance() else { return };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..15).for_each(|_| are_right(&gpu(open(&instance)), 1)));
            }
            let kept = gpu(open(&instance));
            std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| are_right(&kept, 20)))));
        });
        assert_eq!(handles(&instance), 0);
    }

    /// What it costs to open a device, and to open it again while it is open.
    #[test]
    #[ignore = "prints figures"]
    fn what_opening_costs() {
        let Some(instance) = instance() else { return };
        let mut kept = Vec::new();
        for which in ["first", "second", "third"] {
            let started = std::time::Instant::now();
            kept.push(gpu(open(&instance)));
            let opened_ms = started.elapsed().as_secs_f64() * 1e3;
            kept.iter().for_each(|gpu| are_right(gpu, 1));
            println!("{which}: opened in {opened_ms:.1} ms, with products in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
        }
    }
}
