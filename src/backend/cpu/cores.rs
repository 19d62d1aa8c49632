//! On which core a thread runs, where the system tells.
//!
//! Linux wakes a thread on the core where it last ran, or on that of whoever wakes it, and on machines of two cores does not look for an idle one
//! while the other is busy (`select_idle_cpu`). A thread that was once put beside its caller would so stay there, where it has no time before the
//! caller is done, until the system balances its load some milliseconds later, if it does.

/// That of the calling thread.
#[cfg(target_os = "linux")]
pub(super) fn current() -> Option<usize> {
    // SAFETY: it takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Goes on with the calling thread on another core that it may run on, if there is one. It may come back: the set of its cores stays as it is.
#[cfg(target_os = "linux")]
pub(super) fn leave(core: usize) {
    let Some(all) = allowed() else { return };
    let mut others = all;
    // SAFETY: the sets are as long as they are said to be, thread 0 is the calling one, and a core of a system whose cores all fit a set is within it.
    // Where the system forbids this, nothing changes.
    unsafe {
        libc::CPU_CLR(core, &mut others);
        if libc::CPU_COUNT(&others) > 0 && libc::sched_setaffinity(0, size_of_val(&others), &others) == 0 {
            libc::sched_setaffinity(0, size_of_val(&all), &all);
        }
    }
}

/// Where the calling thread may run. None where the system does not tell, as if it has cores past the end of a set.
#[cfg(target_os = "linux")]
fn allowed() -> Option<libc::cpu_set_t> {
    // SAFETY: bits, of which each value is one.
    let mut set = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as long as it is said to be, and thread 0 is the calling one.
    (unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) } == 0).then_some(set)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn current() -> Option<usize> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn leave(_core: usize) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_leaves_its_core_and_may_come_back() {
        let before = allowed().unwrap();
        // Between the two the system may put it back.
        let left = (0..100).any(|_| {
            let core = current().unwrap();
            leave(core);
            current() != Some(core)
        });
        let after = allowed().unwrap();
        // SAFETY: both are whole sets.
        let (choice, same) = unsafe { (libc::CPU_COUNT(&before) > 1, libc::CPU_EQUAL(&before, &after)) };
        assert_eq!((left, same), (choice, true));
    }
}
