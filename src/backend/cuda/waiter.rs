//! Threads that wait for events, of each stream that is waited for its own: what comes later in another stream may be done sooner.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use futures_channel::oneshot;

use super::driver::{Event, Fault};

/// The threads of a stream, started when there is something to wait for. They end with the stream and its events.
#[derive(Default)]
pub(super) struct Waiter(Mutex<Vec<Thread>>);

/// Waits for one event after the other.
struct Thread {
    sender: Sender<Wait>,
    /// The number of the last event that it was given.
    newest: u64,
    /// Events that it has not waited for yet.
    left: Arc<AtomicUsize>,
}

struct Wait {
    event: Arc<Event>,
    done: oneshot::Sender<Result<(), Fault>>,
}

impl Waiter {
    /// Has the event waited for, by a thread that waits for no later one. Gives it back if no thread can be had.
    pub(super) fn wait(&self, event: Arc<Event>) -> Result<oneshot::Receiver<Result<(), Fault>>, Arc<Event>> {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ready = |thread: &Thread| thread.newest <= event.number || thread.left.load(Ordering::Acquire) == 0;
        let at = match threads.iter().position(is_ready) {
            Some(at) => at,
            None => {
                let Some(thread) = Thread::start() else { return Err(event) };
                threads.push(thread);
                threads.len() - 1
            }
        };
        let (done, receiver) = oneshot::channel();
        let thread = &mut threads[at];
        thread.newest = event.number;
        thread.left.fetch_add(1, Ordering::Relaxed);
        match thread.sender.send(Wait { event: Arc::clone(&event), done }) {
            Ok(()) => Ok(receiver),
            Err(_) => Err(event),
        }
    }
}

impl Thread {
    fn start() -> Option<Self> {
        let (sender, waits) = mpsc::channel::<Wait>();
        let left = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&left);
        let body = move || {
            for Wait { event, done } in waits {
                let waited = event.wait();
                own.fetch_sub(1, Ordering::Release);
                // Nobody listens if the call was dropped.
                let _ = done.send(waited);
            }
        };
        std::thread::Builder::new().name("lapidary-cuda".to_owned()).spawn(body).ok()?;
        Some(Self { sender, newest: 0, left })
    }
}
