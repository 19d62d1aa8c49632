//! The threads that compute beside the caller, natively.
//!
//! A product of some hundred rows takes tens of microseconds, which is as long as it takes to wake a thread. Threads that have worked therefore
//! look out for more for a moment before they sleep, and work is handed over to all of them at once:
//!
//! ```text
//! caller     opens a place, rouses a thread, takes blocks ──────────┐ closes the place: nobody reads it any more
//! thread 1   sees it, rouses two more, takes its own blocks ─ others'┤
//! thread 2   …                        its own blocks ─ others' ──────┘
//! ```
//!
//! Who shares work out takes part in it, and so it ends without any other thread too: one that comes late, or is busy with the work of another
//! caller, finds nothing left. Each thread begins with the same blocks of the same number of them, whose operands its cache may still hold.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, TryLockError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::cores;

/// For so long a thread that has worked looks out for more.
const LOOKOUT: Duration = Duration::from_micros(60);
/// For so long a caller looks out for the end of what others are still at.
const PATIENCE: Duration = Duration::from_millis(1);
/// Looks before a thread lets others have its core.
const LOOKS: usize = 64;
/// Calls follow one another if there is less than this between them.
const OFTEN_US: u64 = 100;
/// Callers that share work out at once; any more compute alone.
const PLACES: usize = 8;
/// A thread that has left its caller's core stays where it is for so long: moving takes some microseconds, and where all cores are busy there may
/// be none that is better.
const SETTLED: Duration = Duration::from_millis(1);
/// Parts of items that each thread takes, if there are as many: so many more than one that all end at about the same time.
const PARTS: usize = 4;

/// Runs a function for each block, on so many threads at most; the caller's is one of them. A panic in a block is the caller's. What is not long
/// is over before a thread has woken: those that sleep are left asleep, unless such calls follow one another.
pub(super) fn share(threads: usize, blocks: usize, is_long: bool, run: impl Fn(usize) + Sync) {
    static CREW: OnceLock<Crew> = OnceLock::new();
    if threads.min(blocks) < 2 {
        return (0..blocks).for_each(run);
    }
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    CREW.get_or_init(|| Crew::start(&CREW, cores() - 1)).share(threads, blocks, is_long, &run);
}

/// Runs what is short with how many of so many threads are at hand: all if such calls follow one another, so that others look out for more. Else the
/// caller is alone, and need not cut what it computes.
pub(super) fn short(threads: usize, run: impl FnOnce(usize)) {
    static START: OnceLock<Instant> = OnceLock::new();
    /// Until when a call follows the last one.
    static UNTIL_US: AtomicU64 = AtomicU64::new(0);
    let now_us = || START.get_or_init(Instant::now).elapsed().as_micros() as u64;
    run(if now_us() < UNTIL_US.load(Ordering::Relaxed) { threads } else { 1 });
    UNTIL_US.store(now_us() + OFTEN_US, Ordering::Relaxed);
}

/// Runs a function for each piece of so many items, given its number.
pub(super) fn each<T: Send>(items: &mut [T], size: usize, threads: usize, run: impl Fn(usize, &mut [T]) + Sync) {
    each_with(items, size, threads, || (), |(), number, items| run(number, items));
}

/// The same with something that pieces use one after the other.
pub(super) fn each_with<T: Send, S>(
    items: &mut [T],
    size: usize,
    threads: usize,
    start: impl Fn() -> S + Sync,
    run: impl Fn(&mut S, usize, &mut [T]) + Sync,
) {
    if threads < 2 {
        let mut state = start();
        return items.chunks_mut(size).enumerate().for_each(|(number, items)| run(&mut state, number, items));
    }
    let pieces = items.len().div_ceil(size);
    let together = pieces.div_ceil(threads * PARTS).max(1);
    let parts: Vec<_> = items.chunks_mut(together * size).map(Mutex::new).collect();
    share(threads, parts.len(), true, |part| {
        let (mut items, mut state) = (parts[part].lock().unwrap_or_else(PoisonError::into_inner), start());
        items.chunks_mut(size).zip(part * together..).for_each(|(items, number)| run(&mut state, number, items));
    });
}

/// Threads, which sleep when there is nothing to do, and never end.
struct Crew {
    workers: Vec<Worker>,
    places: [Place; PLACES],
    calls: Apart<Calls>,
    /// When work was last shared out, in microseconds from the start on.
    last_us: AtomicU64,
    start: Instant,
}

/// What a thread that looks out for work looks at.
struct Calls {
    /// How often work was shared out.
    count: AtomicUsize,
    /// On which core that was last.
    core: AtomicUsize,
}

/// The core of a caller that does not know it.
const NO_CORE: usize = usize::MAX;

struct Worker {
    thread: Thread,
    /// What it is at.
    state: Apart<AtomicU8>,
}

const LOOKING: u8 = 0;
const WORKING: u8 = 1;
const ASLEEP: u8 = 2;

/// Where a caller's work is found. Who works on it holds the lock for reading.
#[derive(Default)]
struct Place {
    /// Threads that should take part, 0 if it is empty.
    threads: Apart<AtomicUsize>,
    work: Apart<RwLock<Option<&'static Work<'static>>>>,
}

/// Blocks, of which each thread has a run of its own to begin with.
struct Work<'a> {
    run: &'a (dyn Fn(usize) + Sync),
    blocks: usize,
    /// The next of each run.
    next: Vec<Apart<AtomicUsize>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// In lines of the cache of its own: what one thread writes does not slow down who reads its neighbour.
#[derive(Default)]
#[repr(align(128))]
struct Apart<T>(T);

impl Crew {
    /// Starts so many threads, or as many as the system gives.
    fn start(crew: &'static OnceLock<Self>, workers: usize) -> Self {
        let start = |number: usize| {
            let thread = thread::Builder::new().name(format!("lapidary {number}"));
            let started = thread.spawn(move || crew.wait().work(number)).ok()?;
            Some(Worker { thread: started.thread().clone(), state: Apart::default() })
        };
        Self {
            workers: (0..workers).map_while(start).collect(),
            places: Default::default(),
            calls: Apart(Calls { count: AtomicUsize::new(0), core: AtomicUsize::new(NO_CORE) }),
            last_us: AtomicU64::new(0),
            start: Instant::now(),
        }
    }

    fn share(&self, threads: usize, blocks: usize, is_long: bool, run: &(dyn Fn(usize) + Sync)) {
        let threads = threads.min(blocks).min(self.workers.len() + 1);
        let work = Work::new(run, blocks, threads);
        let wakes = is_long || self.now_us().saturating_sub(self.last_us.load(Ordering::Relaxed)) < OFTEN_US;
        let open = (threads > 1).then(|| self.open(&work, wakes)).flatten();
        work.take_part(0);
        // Once it is closed, nobody else is at a block.
        drop(open);
        self.last_us.store(self.now_us(), Ordering::Relaxed);
        if let Some(panic) = work.panic.into_inner().unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }

    fn now_us(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// Puts work where others find it, if there is room, for as long as what is returned lives, and wakes who sleeps if that is worth it.
    fn open<'a>(&'a self, work: &'a Work<'_>, wakes: bool) -> Option<Open<'a>> {
        // SAFETY: only the lifetime changes. The reference lies in the place alone, is copied out of it only by who holds its lock for reading,
        // and no longer than that. `Open`, which cannot outlive the work, and which no caller of this file forgets, takes it away under the lock
        // for writing: not before everybody who reads it is done.
        let work: &'static Work<'static> = unsafe { std::mem::transmute::<&Work<'_>, &'static Work<'static>>(work) };
        let threads = work.next.len();
        for (at, place) in self.places.iter().enumerate() {
            let Ok(mut free) = place.work.0.try_write() else { continue };
            if free.is_none() {
                *free = Some(work);
                drop(free);
                place.threads.0.store(threads, Ordering::Release);
                self.calls.0.core.store(cores::current().unwrap_or(NO_CORE), Ordering::Relaxed);
                self.calls.0.count.fetch_add(1, Ordering::SeqCst);
                if wakes {
                    self.rouse(at, 0, threads);
                }
                return Some(Open(place));
            }
        }
        None
    }

    /// Which thread has the seat of that number at a place. Seat 0 is the caller's.
    fn worker_at(&self, place: usize, seat: usize) -> usize {
        (seat - 1 + place * self.workers.len() / PLACES) % self.workers.len()
    }

    fn seat_of(&self, place: usize, worker: usize) -> usize {
        let workers = self.workers.len();
        1 + (worker + workers - place * workers / PLACES % workers) % workers
    }

    /// Wakes who sleeps of those that the thread on a seat has to see to: each of two more, so that no one wakes many, and the caller of one.
    fn rouse(&self, place: usize, seat: usize, threads: usize) {
        for next in [2 * seat, 2 * seat + 1].into_iter().filter(|next| (1..threads).contains(next)) {
            let worker = &self.workers[self.worker_at(place, next)];
            match worker.state.0.load(Ordering::SeqCst) {
                ASLEEP if worker.state.0.swap(LOOKING, Ordering::SeqCst) == ASLEEP => worker.thread.unpark(),
                WORKING => self.rouse(place, next, threads),
                _ => {}
            }
        }
    }

    /// What a thread does all its life.
    fn work(&self, number: usize) {
        let Some(Worker { state: Apart(state), .. }) = self.workers.get(number) else { return };
        let (mut seen, mut moved) = (0, None::<Instant>);
        loop {
            let mut since = Instant::now();
            while since.elapsed() < LOOKOUT {
                for _ in 0..LOOKS {
                    let calls = self.calls.0.count.load(Ordering::SeqCst);
                    if calls != seen {
                        seen = calls;
                        state.store(WORKING, Ordering::SeqCst);
                        let core = self.calls.0.core.load(Ordering::Relaxed);
                        if cores::current() == Some(core) && moved.is_none_or(|at| at.elapsed() > SETTLED) {
                            cores::leave(core);
                            moved = Some(Instant::now());
                        }
                        if self.visit(number) {
                            since = Instant::now();
                        }
                        state.store(LOOKING, Ordering::SeqCst);
                    }
                    std::hint::spin_loop();
                }
                thread::yield_now();
            }
            // Who shares work out either sees that this thread sleeps, or is seen by it.
            state.store(ASLEEP, Ordering::SeqCst);
            while state.load(Ordering::SeqCst) == ASLEEP && self.calls.0.count.load(Ordering::SeqCst) == seen {
                thread::park();
            }
            state.store(LOOKING, Ordering::SeqCst);
        }
    }

    /// Takes part in all that has a seat for a thread; whether it found any block.
    fn visit(&self, number: usize) -> bool {
        let mut worked = false;
        for (at, place) in self.places.iter().enumerate() {
            let (threads, seat) = (place.threads.0.load(Ordering::Acquire), self.seat_of(at, number));
            if seat >= threads {
                continue;
            }
            let Ok(work) = place.work.0.try_read() else { continue };
            // By now it may be another's.
            if let Some(work) = work.filter(|work| seat < work.next.len()) {
                self.rouse(at, seat, threads);
                worked |= work.take_part(seat);
            }
        }
        worked
    }
}

/// A place with work at it.
struct Open<'a>(&'a Place);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let Place { threads, work: Apart(work) } = self.0;
        threads.0.store(0, Ordering::Release);
        let since = Instant::now();
        loop {
            for _ in 0..LOOKS {
                match work.try_write() {
                    Ok(mut work) => return *work = None,
                    Err(TryLockError::Poisoned(work)) => return *work.into_inner() = None,
                    Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
                }
            }
            if since.elapsed() > PATIENCE {
                return *work.write().unwrap_or_else(PoisonError::into_inner) = None;
            }
            thread::yield_now();
        }
    }
}

impl<'a> Work<'a> {
    fn new(run: &'a (dyn Fn(usize) + Sync), blocks: usize, threads: usize) -> Self {
        let next = (0..threads).map(|seat| Apart(AtomicUsize::new(seat * blocks / threads))).collect();
        Self { run, blocks, next, panic: Mutex::default() }
    }

    /// Takes the blocks of a seat, then what is left of others'; whether there was any.
    fn take_part(&self, seat: usize) -> bool {
        let (threads, mut worked) = (self.next.len(), false);
        for seat in (seat..threads).chain(0..seat) {
            let (next, end) = (&self.next[seat].0, (seat + 1) * self.blocks / threads);
            while next.load(Ordering::Relaxed) < end {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= end {
                    break;
                }
                worked = true;
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.run)(block))) {
                    self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
                }
            }
        }
        worked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crew of its own, however many cores there are.
    fn crew(workers: usize) -> &'static Crew {
        let crew: &'static OnceLock<Crew> = Box::leak(Box::default());
        crew.get_or_init(|| Crew::start(crew, workers))
    }

    fn counts(crew: &Crew, threads: usize, blocks: usize) -> Vec<usize> {
        let counts: Vec<_> = (0..blocks).map(|_| AtomicUsize::new(0)).collect();
        crew.share(threads, blocks, true, &|block| {
            counts[block].fetch_add(1, Ordering::Relaxed);
        });
        counts.into_iter().map(AtomicUsize::into_inner).collect()
    }

    #[test]
    fn each_block_is_computed_once() {
        for workers in [0, 1, 3, 7] {
            let crew = crew(workers);
            for (threads, blocks) in (1..=9).flat_map(|threads| [0, 1, 2, 7, 100].map(|blocks| (threads, blocks))) {
                assert_eq!(counts(crew, threads, blocks), vec![1; blocks], "{blocks} blocks on {threads} threads beside {workers} workers");
            }
        }
    }

    #[test]
    fn threads_that_slept_are_woken() {
        let crew = crew(3);
        let all = std::sync::Barrier::new(4);
        for _ in 0..20 {
            thread::sleep(4 * LOOKOUT);
            // No thread takes a second block before each has one.
            crew.share(4, 4, true, &|_| {
                all.wait();
            });
        }
    }

    #[test]
    fn threads_sleep_when_there_is_nothing_to_do() {
        let crew = crew(3);
        counts(crew, 4, 64);
        let until = Instant::now() + Duration::from_secs(20);
        while !crew.workers.iter().all(|worker| worker.state.0.load(Ordering::SeqCst) == ASLEEP) {
            assert!(Instant::now() < until, "threads look out for work for 20 s");
            thread::sleep(Duration::from_millis(1));
        }
        // What is short leaves them asleep, unless it comes often.
        thread::sleep(Duration::from_micros(2 * OFTEN_US));
        crew.share(4, 4, false, &|_| ());
        assert!(crew.workers.iter().all(|worker| worker.state.0.load(Ordering::SeqCst) == ASLEEP));
        while crew.workers.iter().all(|worker| worker.state.0.load(Ordering::SeqCst) == ASLEEP) {
            assert!(Instant::now() < until, "calls for 20 s have woken nobody");
            crew.share(4, 4, false, &|_| ());
        }
    }

    #[test]
    fn threads_are_at_hand_when_calls_follow_one_another() {
        let at_hand = || {
            let mut found = 0;
            short(3, |threads| found = threads);
            found
        };
        let until = Instant::now() + Duration::from_secs(20);
        for expected in [3, 1] {
            // Other tests compute too.
            while at_hand() != expected {
                assert!(Instant::now() < until, "for 20 s there were never {expected}");
                if expected == 1 {
                    thread::sleep(Duration::from_micros(2 * OFTEN_US));
                }
            }
        }
    }

    #[test]
    fn no_more_threads_take_part_than_were_asked_for() {
        let crew = crew(7);
        for threads in 1..=8 {
            let seen = Mutex::new(std::collections::HashSet::new());
            for _ in 0..50 {
                crew.share(threads, 64, true, &|_| {
                    seen.lock().unwrap().insert(thread::current().id());
                    thread::yield_now();
                });
            }
            let seen = seen.into_inner().unwrap().len();
            assert!(seen <= threads, "{seen} threads where {threads} were asked for");
        }
    }

    #[test]
    fn many_callers_share_at_once_and_within_one_another() {
        let crew = crew(3);
        thread::scope(|scope| {
            for _ in 0..3 * PLACES {
                scope.spawn(|| {
                    for _ in 0..20 {
                        crew.share(4, 8, true, &|_| assert_eq!(counts(crew, 4, 5), [1; 5]));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_is_the_callers_and_the_rest_goes_on() {
        let crew = crew(3);
        for bad in [0, 5, 31] {
            let panic = catch_unwind(|| crew.share(4, 32, true, &|block| assert_ne!(block, bad, "this block is bad"))).unwrap_err();
            assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("this block is bad")));
            assert_eq!(counts(crew, 4, 32), [1; 32]);
        }
        assert!(crew.places.iter().all(|place| place.work.0.try_read().is_ok_and(|work| work.is_none())));
    }

    #[test]
    fn pieces_have_their_numbers() {
        for (threads, length, size) in [(1, 10, 3), (2, 1, 5), (3, 1000, 7), (4, 64, 1), (2, 0, 1)] {
            let mut items = vec![0; length];
            each(&mut items, size, threads, |number, items| items.fill(number));
            assert!(items.iter().enumerate().all(|(at, &number)| number == at / size), "{length} items by {size}");
        }
    }
}
