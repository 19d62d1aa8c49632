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

/// The most bytes of a slot.
const MOST_BYTES: u64 = 1 << 16;
/// Room for as many results of 64 x 64 as a batch has launches, and as many again.
const SLAB_BYTES: u64 = 1 << 22;
/// Slots start at multiples of this, where every adapter lets a binding start.
const UNIT_BYTES: u64 = 256;
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
    free: Free,
    /// What was given back and serves again once this batch is submitted.
    waiting: Vec<Range>,
    waits_for: u32,
    /// Slots that tensors have.
    slots: u32,
    /// Whether it gives slots.
    is_sound: bool,
}

/// Units from one to before another.
type Range = (u32, u32);

/// The units that are free, in order; no range touches another.
struct Free(Vec<Range>);

/// A part of a slab, given back when dropped.
pub(super) struct Slot {
    home: Arc<Shared>,
    pub raw: Arc<Raw>,
    range: Range,
    /// As much as was asked for.
    bytes: u64,
    /// The last batch of recorded launches that uses it.
    pub used_in: AtomicU32,
}

impl Slabs {
    pub(super) fn new(device: &wgpu::Device, caps: &Caps, pool: &Pool<Arc<Raw>>, budget_bytes: u64) -> Self {
        let is_on = budget_bytes / LEAST_SLABS >= SLAB_BYTES && caps.max_binding_bytes.min(caps.max_buffer_bytes) >= SLAB_BYTES;
        let (device, pool) = (device.clone(), pool.clone());
        Self(Arc::new(Shared { device, pool, is_on, slabs: Mutex::default(), over: AtomicU32::new(0) }))
    }

    /// A slot for a result, or for what is uploaded, in a slab that is none of these; None for what is better off in a buffer of its own.
    pub(super) fn take(&self, is_of_results: bool, bytes: u64, others: &[u32]) -> Option<Slot> {
        let home = &self.0;
        if !home.is_on || bytes > MOST_BYTES {
            return None;
        }
        let (bytes, units) = (bytes.next_multiple_of(16).max(16), bytes.div_ceil(UNIT_BYTES).max(1) as u32);
        let over = home.over.load(Ordering::Relaxed);
        let mut slabs = home.slabs();
        let fits = |slab: &mut Slab| {
            let suits = slab.is_of_results == is_of_results && !others.contains(&slab.raw.id);
            if suits { slab.take(units, over).map(|range| (range, Arc::clone(&slab.raw))) } else { None }
        };
        let (range, raw) = slabs.iter_mut().find_map(fits).unwrap_or_else(|| {
            let raw = Arc::new(Raw::new(&home.device, SLAB_BYTES, STORAGE));
            home.pool.count(0, SLAB_BYTES as i64, 0);
            let free = Free(vec![(units, (SLAB_BYTES / UNIT_BYTES) as u32)]);
            slabs.push(Slab { raw: Arc::clone(&raw), is_of_results, free, waiting: Vec::new(), waits_for: 0, slots: 1, is_sound: true });
            ((0, units), raw)
        });
        home.pool.count(bytes as i64, -(bytes as i64), 1);
        Some(Slot { home: Arc::clone(home), raw, range, bytes, used_in: AtomicU32::new(0) })
    }

    pub(super) fn is_on(&self) -> bool {
        self.0.is_on
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
                slabs.remove(at);
                self.pool.count(0, -(SLAB_BYTES as i64), 0);
            } else {
                at += 1;
            }
        }
    }
}

impl Slab {
    fn take(&mut self, units: u32, over: u32) -> Option<Range> {
        if !self.is_sound {
            return None;
        }
        self.end_wait(over);
        let range = self.free.take(units)?;
        self.slots += 1;
        Some(range)
    }

    /// Has what was given back serve again, if nothing waits any more that uses it.
    fn end_wait(&mut self, over: u32) {
        if self.waits_for <= over {
            for range in &self.waiting {
                self.free.put_back(*range);
            }
            self.waiting.clear();
        }
    }

    fn put_back(&mut self, range: Range, used_in: u32, over: u32) {
        self.slots -= 1;
        // Of a batch before the one that is open nothing waits any more.
        self.end_wait(over);
        if used_in > over {
            self.waits_for = used_in;
            self.waiting.push(range);
        } else {
            self.free.put_back(range);
        }
    }
}

impl Free {
    /// The first so many units that are free in one piece.
    fn take(&mut self, units: u32) -> Option<Range> {
        let at = self.0.iter().position(|(start, end)| end - start >= units)?;
        let (start, end) = self.0[at];
        if end - start == units {
            self.0.remove(at);
        } else {
            self.0[at].0 += units;
        }
        Some((start, start + units))
    }

    fn put_back(&mut self, (start, end): Range) {
        let at = self.0.iter().position(|(first, _)| *first > start).unwrap_or(self.0.len());
        let touches_next = self.0.get(at).is_some_and(|next| next.0 == end);
        if at > 0 && self.0[at - 1].1 == start {
            self.0[at - 1].1 = if touches_next { self.0.remove(at).1 } else { end };
        } else if touches_next {
            self.0[at].0 = start;
        } else {
            self.0.insert(at, (start, end));
        }
    }
}

impl Slot {
    /// Where it starts.
    pub(super) fn at_bytes(&self) -> u64 {
        u64::from(self.range.0) * UNIT_BYTES
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let home = &self.home;
        let is_over_budget = home.pool.count(-(self.bytes as i64), self.bytes as i64, -1);
        if let Some(slab) = home.slabs().iter_mut().find(|slab| slab.raw.id == self.raw.id) {
            slab.put_back(self.range, self.used_in.load(Ordering::Relaxed), home.over.load(Ordering::Relaxed));
        }
        home.shrink(is_over_budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_never_overlap_and_come_together_again() {
        let mut free = Free(vec![(0, 100)]);
        let mut taken: Vec<Range> = Vec::new();
        for turn in 0..5000u32 {
            let number = turn.wrapping_mul(0x9e37_79b9) >> 8;
            if number % 2 == 0
                && let Some((start, end)) = free.take(number / 2 % 9 + 1)
            {
                assert!(end <= 100 && taken.iter().all(|other| end <= other.0 || other.1 <= start), "{start}..{end} beside {taken:?}");
                taken.push((start, end));
            } else if !taken.is_empty() {
                free.put_back(taken.swap_remove(number as usize % taken.len()));
            }
            let units: u32 = free.0.iter().chain(&taken).map(|(start, end)| end - start).sum();
            assert!(units == 100 && free.0.is_sorted_by(|one, next| one.1 < next.0), "{:?} beside {taken:?}", free.0);
        }
        taken.into_iter().for_each(|range| free.put_back(range));
        assert_eq!(free.0, [(0, 100)]);
        assert_eq!(free.take(101), None);
        assert_eq!(free.take(100), Some((0, 100)));
        assert_eq!(free.take(1), None);
    }
}
