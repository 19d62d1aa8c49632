//! Products that several threads compute. [`submit`](crate::backend::Backend::submit) shares them out, and where memory is not shared does the
//! calling thread's share; what is left for [`finish`](crate::backend::Backend::finish) is to wait until all is done.

use std::sync::{Arc, OnceLock};

use js_sys::Promise;
use wasm_bindgen_futures::{JsFuture, spawn_local};

use super::{After, Engine, Job};
use crate::backend::Finished;
use crate::backend::pool::Pooled;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::host::HostVec;

/// A tensor's values, once they are there.
pub(crate) type Values = Arc<OnceLock<Pooled<HostVec>>>;

/// Where a result goes.
pub(crate) enum Target {
    Host(HostVec),
    /// What it is to be the values of, and their memory.
    Kept(Values, Pooled<HostVec>),
}

impl Target {
    pub(crate) fn array(&self) -> &HostVec {
        match self {
            Self::Host(array) => array,
            Self::Kept(_, array) => array,
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
        self.after.apply(target.array());
        let data = match target {
            Target::Host(array) => Some(array),
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
