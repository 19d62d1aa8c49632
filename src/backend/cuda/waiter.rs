//! Threads that wait for events, one for each stream that is waited for: what comes later in another stream may be done sooner.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use futures_channel::oneshot;

use super::driver::{Event, Fault};

/// The thread of a stream, started when there is something to wait for. It ends with the stream and its events.
#[derive(Default)]
pub(super) struct Waiter(Mutex<Option<Sender<Wait>>>);

struct Wait {
    event: Arc<Event>,
    done: oneshot::Sender<Result<(), Fault>>,
}

impl Waiter {
    /// Has the event waited for. Gives it back if no thread can be had.
    pub(super) fn wait(&self, event: Arc<Event>) -> Result<oneshot::Receiver<Result<(), Fault>>, Arc<Event>> {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            let (new, waits) = mpsc::channel::<Wait>();
            let body = move || {
                for Wait { event, done } in waits {
                    // Nobody listens if the call was dropped.
                    let _ = done.send(event.wait());
                }
            };
            *sender = std::thread::Builder::new().name("lapidary-cuda".to_owned()).spawn(body).ok().map(|_| new);
        }
        let (done, receiver) = oneshot::channel();
        match sender.as_ref().map(|sender| sender.send(Wait { event: Arc::clone(&event), done })) {
            Some(Ok(())) => Ok(receiver),
            _ => Err(event),
        }
    }
}
