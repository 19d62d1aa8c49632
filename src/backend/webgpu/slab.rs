//! Slabs: many small tensors in one buffer, so that one launch can see those of many products.
//!
//! A launch must not read one part of a buffer and write to another. So what is uploaded and what is computed lie in slabs of their own, and a
//! result gets its slot where none of its operands is. What is written from outside, or by a launch of many products at once, has to be read by
//! nothing that was recorded before: a slot that recorded launches use serves again only once they are submitted.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::buffer::{Raw, STORAGE};
use crate::backend::pool::Pool;
use crate::info::Caps;

/// The most bytes of a slot. The least are what every adapter lets bindings start at multiples of.
const MOST_BYTES: u64 = 1 << 16;
const LEAST_BYTES: u64 = 256;
/// The most bytes of a slab, and the most slots: as many as a batch has launches, and as many again.
const SLAB_BYTES: u64 = 1 << 22;
const SLOTS: u64 = 256;
/// Slabs that a pool's budget should have room for.
const LEAST_SLABS: u64 = 16;

/// The slabs of a device.
pub(super) struct Slabs(Arc<Shared>);

struct Shared {
    device: wgpu::Device,
    /// Where their bytes are counted.
    pool: Pool<Arc<Raw>>,
    /// Whether there are to be any.
    is_on: bool,
    slabs: Mutex<Vec<Slab>>,
    /// The last batch that was submitted or given up.
    over: AtomicU32,
}

struct Slab {
    raw: Arc<Raw>,
    is_of_results: bool,
    slot_bytes: u64,
    /// Where slots start that are free.
    free: Vec<u32>,
    /// Where those do that were given back and serve again once this batch is submitted.
    waiting: Vec<u32>,
    waits_for: u32,
    /// Slots that tensors have.
    slots: u32,
    /// Whether it gives slots.
    is_sound: bool,
}

/// A part of a slab, given back when dropped.
pub(super) struct Slot {
    home: Arc<Shared>,
    pub raw: Arc<Raw>,
    at_bytes: u32,
    /// As much as was asked for.
    bytes: i64,
    /// The last batch of recorded launches that uses it.
    pub used_in: AtomicU32,
}

impl Slabs {
    pub(super) fn new(device: &wgpu::Device, caps: &Caps, pool: &Pool<Arc<Raw>>, budget_bytes: u64) -> Self {
        let is_on = budget_bytes / LEAST_SLABS >= SLAB_BYTES && caps.max_binding_bytes.min(caps.max_buffer_bytes) >= SLAB_BYTES;
        let (device, pool) = (device.clone(), pool.clone());
        Self(Arc::new(Shared { device, pool, is_on, slabs: Mutex::default(), over: AtomicU32::new(0) }))
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_on
    }

    /// A slot for a result, or for what is uploaded, in a slab that is none of these; None for what is better off in a buffer of its own.
    pub(super) fn take(&self, is_of_results: bool, bytes: u64, others: &[u32]) -> Option<Slot> {
        let home = &self.0;
        if !home.is_on || bytes > MOST_BYTES {
            return None;
        }
        let slot_bytes = bytes.max(LEAST_BYTES).next_power_of_two();
        let mut slabs = home.slabs();
        let mut found = None;
        for (at, slab) in slabs.iter_mut().enumerate() {
            let suits = slab.is_sound && slab.is_of_results == is_of_results && slab.slot_bytes == slot_bytes;
            if suits && !others.contains(&slab.raw.id) {
                slab.end_wait(home.over.load(Ordering::Relaxed));
                if !slab.free.is_empty() {
                    found = Some(at);
                    break;
                }
            }
        }
        let at = found.unwrap_or_else(|| {
            slabs.push(Slab::new(&home.device, is_of_results, slot_bytes));
            home.pool.count(0, slabs[slabs.len() - 1].raw.size() as i64, 0);
            slabs.len() - 1
        });
        let slab = &mut slabs[at];
        let at_bytes = slab.free.pop()?;
        slab.slots += 1;
        let (raw, bytes) = (Arc::clone(&slab.raw), bytes.next_multiple_of(16).max(16) as i64);
        home.pool.count(bytes, -bytes, 1);
        Some(Slot { home: Arc::clone(home), raw, at_bytes, bytes, used_in: AtomicU32::new(0) })
    }

    /// Nothing waits any more for that batch or those before it.
    pub(super) fn end_batch(&self, number: u32) {
        self.0.over.store(number, Ordering::Relaxed);
    }

    /// Gives up slabs without tensors in them.
    pub(super) fn trim(&self) {
        self.0.shrink(true);
    }

    /// Takes no more slots from the slabs that there are, of which one may be a buffer that was not to be had. Each goes with its last tensor.
    pub(super) fn retire(&self) {
        self.0.slabs().iter_mut().for_each(|slab| slab.is_sound = false);
        self.0.shrink(false);
    }
}

impl Shared {
    fn slabs(&self) -> MutexGuard<'_, Vec<Slab>> {
        // Nothing that is locked here is left half done by a panic.
        self.slabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up slabs without tensors in them: all, or those that give no slots any more.
    fn shrink(&self, all: bool) {
        let mut slabs = self.slabs();
        let mut at = 0;
        while let Some(slab) = slabs.get(at) {
            if slab.slots == 0 && (all || !slab.is_sound) {
                self.pool.count(0, -(slab.raw.size() as i64), 0);
                slabs.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }
}

impl Slab {
    fn new(device: &wgpu::Device, is_of_results: bool, slot_bytes: u64) -> Self {
        let slots = SLOTS.min(SLAB_BYTES / slot_bytes) as u32;
        let raw = Arc::new(Raw::new(device, u64::from(slots) * slot_bytes, STORAGE));
        let mut free = Vec::new();
        for slot in (0..slots).rev() {
            free.push(slot * slot_bytes as u32);
        }
        Self { raw, is_of_results, slot_bytes, free, waiting: Vec::new(), waits_for: 0, slots: 0, is_sound: true }
    }

    /// Has what was given back serve again, if nothing waits any more that uses it.
    fn end_wait(&mut self, over: u32) {
        if self.waits_for <= over {
            self.free.append(&mut self.waiting);
        }
    }

    fn put_back(&mut self, at_bytes: u32, used_in: u32, over: u32) {
        self.slots -= 1;
        // Of a batch before the one that is open nothing waits any more.
        self.end_wait(over);
        if used_in > over {
            self.waits_for = used_in;
            self.waiting.push(at_bytes);
        } else {
            self.free.push(at_bytes);
        }
    }
}

impl Slot {
    /// Where it starts.
    pub(super) fn at_bytes(&self) -> u64 {
        self.at_bytes.into()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let home = &self.home;
        let is_over_budget = home.pool.count(-self.bytes, self.bytes, -1);
        if let Some(slab) = home.slabs().iter_mut().find(|slab| slab.raw.id == self.raw.id) {
            slab.put_back(self.at_bytes, self.used_in.load(Ordering::Relaxed), home.over.load(Ordering::Relaxed));
        }
        home.shrink(is_over_budget);
    }
}
