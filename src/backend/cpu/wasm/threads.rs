//! Products that several threads compute. [`submit`](crate::backend::Backend::submit) shares them out, and where memory is not shared does the
//! calling thread's share; what is left for [`finish`](crate::backend::Backend::finish) is to wait until all is done.

use std::sync::{Arc, OnceLock};

use js_sys::Promise;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::arrays::into_array;
use super::memory::Memory;
use super::{After, Engine, Job};
use crate::backend::Finished;
use crate::backend::pool::Pooled;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};

/// A tensor's values, once they are there.
pub(crate) type Values = Arc<OnceLock<Pooled<Memory>>>;

/// Where a result goes.
pub(crate) enum Target {
    Host(Memory),
    /// What it is to be the values of, and their memory: the page's, since threads write to it while other calls are made.
    Kept(Values, Pooled<Memory>),
}

impl Target {
    pub(crate) fn memory(&mut self) -> &mut Memory {
        match self {
            Self::Host(memory) => memory,
            Self::Kept(_, memory) => memory,
        }
    }
}

/// A product that other threads are at.
pub(crate) struct Underway {
    done: Promise,
    /// What must not serve again before the others are done: the result, and the tensors that are read. None once it is.
    held: Option<(Target, [Option<Values>; 3])>,
    after: After,
    stopwatch: Option<Stopwatch>,
}

impl Engine {
    /// Begins a product with so many threads.
    pub(crate) fn share(
        &self,
        job: &Job,
        threads: u32,
        repeats: u32,
        held: (Target, [Option<Values>; 3]),
        after: After,
        stopwatch: Option<Stopwatch>,
    ) -> Underway {
        Underway { done: self.crew.share(job, threads, repeats), held: Some(held), after, stopwatch }
    }
}

impl Underway {
    /// Waits for the result. An error if a worker failed: by now there are none, and the product has to be done again, alone.
    pub(crate) async fn finish(mut self) -> Result<Finished> {
        let succeeded = JsFuture::from(self.done.clone()).await.is_ok_and(|succeeded| succeeded.is_truthy());
        let Some((mut target, _)) = self.held.take() else { return Err(Error::internal("a product that was finished before")) };
        if !succeeded {
            // Its last writes may be on their way yet.
            if let Target::Kept(_, array) = &mut target {
                array.discard();
            }
            return Err(Box::new(Error::OutOfMemory { bytes: 0, place: "a worker" }));
        }
        self.after.apply(&target.memory().shown());
        let data = match target {
            Target::Host(memory) => into_array(memory),
            Target::Kept(values, array) => {
                // A second run of a benchmark gives the same values again.
                let _ = values.set(array);
                None
            }
        };
        Ok(Finished { data, kernel_ms: self.stopwatch.as_ref().map_or(0.0, Stopwatch::ms), device_clock: false })
    }
}

/// Whoever loses interest must not give memory back that others still read and write.
impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            let done = JsFuture::from(self.done.clone());
            spawn_local(async move {
                let _ = done.await;
                drop(held);
            });
        }
    }
}
