//! Buffers kept for reuse: making one costs a trip to the driver, and WebGPU clears each new one.
//!
//! A free buffer serves again where at most an eighth of it would be idle. Free buffers are kept as far as the budget goes; beyond it the longest
//! unused are given back. Where a new one is made, the budget is for those in use too, but what was free for a short time alone stays then: beside
//! tensors as large as the budget, what is computed again and again would else push out its own buffers. `T` is a backend's own buffer; `kind` keeps
//! apart buffers of different uses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MemoryStats;

/// Buffers taken, while a free one counts as needed again.
const RECENT: u64 = 256;

/// The free buffers of a device, and the count of those in use.
pub(crate) struct Pool<T> {
    inner: Arc<Mutex<Inner<T>>>,
}

/// Another name of the same pool.
impl<T> Clone for Pool<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

struct Inner<T> {
    /// Oldest first.
    free: Vec<Entry<T>>,
    budget_bytes: u64,
    /// Counts how often buffers were retired.
    turn: u32,
    /// Counts how often one was taken.
    taken: u64,
    stats: MemoryStats,
}

struct Entry<T> {
    kind: u32,
    bytes: u64,
    /// How many had been taken when it became free.
    free_since: u64,
    buffer: T,
}

impl<T> Entry<T> {
    fn fits(&self, kind: u32, bytes: u64) -> bool {
        self.kind == kind && self.bytes >= bytes && self.bytes - bytes <= bytes / 8
    }
}

/// A buffer from the pool, which goes back when dropped.
pub(crate) struct Pooled<T> {
    entry: Option<Entry<T>>,
    /// When it was taken; it serves again in the same turn. Never if it is not sound.
    turn: u32,
    home: Arc<Mutex<Inner<T>>>,
}

impl<T> Inner<T> {
    /// Takes out free buffers, the longest unused first, until the rest are so many bytes at most. They are to be dropped when nobody is kept from
    /// the pool: a backend may wait for its device then.
    fn shrink_to(&mut self, bytes: u64) -> Vec<Entry<T>> {
        self.shrink(bytes, u64::MAX)
    }

    /// The same of those that were free before so many were taken.
    fn shrink(&mut self, bytes: u64, before: u64) -> Vec<Entry<T>> {
        // What others have counted as idle is not here to be given back.
        let mut count = 0;
        while self.stats.pooled_bytes > bytes && self.free.get(count).is_some_and(|entry| entry.free_since < before) {
            self.stats.pooled_bytes -= self.free[count].bytes;
            count += 1;
        }
        let kept = self.free.split_off(count);
        std::mem::replace(&mut self.free, kept)
    }
}

impl<T> Pool<T> {
    pub(crate) fn new(budget_bytes: u64) -> Self {
        let inner = Inner { free: Vec::new(), budget_bytes, turn: 0, taken: 0, stats: MemoryStats::default() };
        Self { inner: Arc::new(Mutex::new(inner)) }
    }

    /// A free buffer of the kind and about the size, or one that `make` makes.
    pub(crate) fn take<E>(&self, kind: u32, bytes: u64, make: impl FnOnce() -> Result<T, E>) -> Result<Pooled<T>, E> {
        let mut inner = lock(&self.inner);
        inner.taken += 1;
        // The one that was used last, if it is just right: a queue of like products looks no further.
        let exact = inner.free.iter().rposition(|entry| entry.kind == kind && entry.bytes == bytes);
        let smallest = || (0..inner.free.len()).filter(|&i| inner.free[i].fits(kind, bytes)).min_by_key(|&i| inner.free[i].bytes);
        let best = exact.or_else(smallest);
        let entry = match best {
            Some(index) => {
                let entry = inner.free.remove(index);
                inner.stats.pooled_bytes -= entry.bytes;
                #[cfg(not(target_arch = "wasm32"))]
                {
                    inner.stats.hits += 1;
                }
                entry
            }
            None => {
                // What lies idle makes room first.
                let room = inner.budget_bytes.saturating_sub(inner.stats.used_bytes + bytes);
                let before = inner.taken.saturating_sub(RECENT);
                let idle = inner.shrink(room, before);
                drop(inner);
                drop(idle);
                let buffer = make()?;
                inner = lock(&self.inner);
                #[cfg(not(target_arch = "wasm32"))]
                {
                    inner.stats.misses += 1;
                }
                Entry { kind, bytes, free_since: 0, buffer }
            }
        };
        inner.stats.used_bytes += entry.bytes;
        inner.stats.buffers += 1;
        inner.stats.peak_bytes = inner.stats.peak_bytes.max(inner.stats.used_bytes);
        let turn = inner.turn;
        drop(inner);
        Ok(Pooled { entry: Some(entry), turn, home: Arc::clone(&self.inner) })
    }

    /// Whether no free buffer is of the kind and about the size.
    #[cfg(all(feature = "webgpu", target_arch = "wasm32"))]
    pub(crate) fn lacks(&self, kind: u32, bytes: u64) -> bool {
        !lock(&self.inner).free.iter().any(|entry| entry.fits(kind, bytes))
    }

    /// Gives free buffers back, and has those in use never serve again: one of them may be what there was no memory for.
    #[cfg(feature = "webgpu")]
    pub(crate) fn retire(&self) {
        let mut inner = lock(&self.inner);
        inner.turn += 1;
        let idle = inner.shrink_to(0);
        drop(inner);
        drop(idle);
    }

    pub(crate) fn stats(&self) -> MemoryStats {
        lock(&self.inner).stats
    }

    pub(crate) fn trim(&self) {
        let idle = lock(&self.inner).shrink_to(0);
        drop(idle);
    }

    /// Counts memory that is not the pool's: by how much the bytes in use, those that are idle, and the buffers in use have changed. Gives
    /// whether what is idle is more than the budget.
    #[cfg(feature = "webgpu")]
    pub(crate) fn count(&self, used_bytes: i64, idle_bytes: i64, buffers: i64) -> bool {
        let Inner { stats, budget_bytes, .. } = &mut *lock(&self.inner);
        stats.used_bytes = stats.used_bytes.wrapping_add_signed(used_bytes);
        stats.pooled_bytes = stats.pooled_bytes.wrapping_add_signed(idle_bytes);
        stats.buffers = stats.buffers.wrapping_add_signed(buffers);
        stats.peak_bytes = stats.peak_bytes.max(stats.used_bytes);
        stats.pooled_bytes > *budget_bytes
    }
}

impl<T> Pooled<T> {
    /// The buffer is not to serve again.
    #[cfg(any(feature = "webgpu", target_arch = "wasm32"))]
    pub(crate) fn discard(&mut self) {
        self.turn = u32::MAX;
    }
}

impl<T> std::ops::Deref for Pooled<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // `entry` is only taken in `drop`.
        &self.entry.as_ref().expect("a pooled buffer outlives its use").buffer
    }
}

impl<T> std::ops::DerefMut for Pooled<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.entry.as_mut().expect("a pooled buffer outlives its use").buffer
    }
}

impl<T> Drop for Pooled<T> {
    fn drop(&mut self) {
        let Some(mut entry) = self.entry.take() else { return };
        let mut inner = lock(&self.home);
        inner.stats.used_bytes -= entry.bytes;
        inner.stats.buffers -= 1;
        if self.turn != inner.turn {
            return;
        }
        inner.stats.pooled_bytes += entry.bytes;
        entry.free_since = inner.taken;
        inner.free.push(entry);
        let budget_bytes = inner.budget_bytes;
        let idle = inner.shrink_to(budget_bytes);
        drop(inner);
        drop(idle);
    }
}

fn lock<T>(inner: &Mutex<Inner<T>>) -> MutexGuard<'_, Inner<T>> {
    // The counts are changed together and nothing between can panic: a poisoned lock still guards a sound state.
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn take(pool: &Pool<u64>, kind: u32, bytes: u64) -> Pooled<u64> {
        pool.take(kind, bytes, || Ok::<_, Infallible>(bytes)).unwrap()
    }

    #[test]
    fn a_dropped_buffer_serves_again_if_kind_and_size_fit() {
        let pool = Pool::new(1000);
        drop(take(&pool, 0, 100));
        assert_eq!(*take(&pool, 0, 96), 100);
        assert_eq!(*take(&pool, 1, 100), 100);
        assert_eq!(pool.stats().pooled_bytes, 200);
        assert_eq!(*take(&pool, 0, 50), 50, "more than an eighth would be idle");
    }

    #[cfg(feature = "webgpu")]
    #[test]
    fn what_is_retired_does_not_serve_again() {
        let pool = Pool::new(1000);
        let (kept, free) = (take(&pool, 0, 100), take(&pool, 0, 200));
        drop(free);
        pool.retire();
        drop(kept);
        assert_eq!((pool.stats().pooled_bytes, pool.stats().used_bytes), (0, 0));
        drop(take(&pool, 0, 100));
        assert_eq!(pool.stats().pooled_bytes, 100);
    }

    #[test]
    fn the_budget_holds_and_counts_return_to_nothing() {
        let pool = Pool::new(150);
        let (x, y) = (take(&pool, 0, 100), take(&pool, 0, 100));
        assert_eq!(pool.stats(), MemoryStats { used_bytes: 200, pooled_bytes: 0, peak_bytes: 200, buffers: 2, hits: 0, misses: 2 });
        drop((x, y));
        assert_eq!(pool.stats().pooled_bytes, 100);
        drop(take(&pool, 0, 120));
        assert_eq!(pool.stats().pooled_bytes, 120, "the longest unused goes");
        pool.trim();
        assert_eq!(pool.stats(), MemoryStats { peak_bytes: 200, misses: 3, ..MemoryStats::default() });
        drop(take(&pool, 0, 10));
        drop(take(&pool, 0, 10));
        assert_eq!((pool.stats().hits, pool.stats().misses), (1, 4));
    }

    #[test]
    fn what_is_long_unused_makes_room_for_new_buffers() {
        let pool = Pool::new(150);
        let kept = take(&pool, 0, 150);
        drop(take(&pool, 0, 100));
        for _ in 0..RECENT {
            drop(take(&pool, 1, 10));
        }
        assert_eq!((pool.stats().pooled_bytes, pool.stats().misses), (110, 3), "new ones do not push out each other's buffers");
        drop(take(&pool, 2, 20));
        assert_eq!(pool.stats().pooled_bytes, 30);
        drop(kept);
        assert_eq!(pool.stats().pooled_bytes, 150, "and the budget holds");
    }
}
