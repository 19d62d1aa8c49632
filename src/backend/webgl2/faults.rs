//! What went wrong, and with whom: WebGL tells of an error once, and not whose it is.
//!
//! ```text
//! commands ─► commands ─► look: an error? ─► all since the last look have failed by it, or none
//! ```
//!
//! A look waits for the browser's GPU process. So nothing is looked at when it is queued, but when it is read.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use web_sys::WebGl2RenderingContext;

use super::WebGl2;
use crate::backend::Backend;
use crate::error::{Error, Result};

/// What there is to know of the commands between two looks: nothing before the second.
#[derive(Default)]
pub(super) struct Verdict(OnceCell<Result<()>>);

impl Verdict {
    /// The fault, if there is one that is known.
    pub(super) fn get(&self) -> Result<()> {
        self.0.get().cloned().unwrap_or(Ok(()))
    }
}

/// The looks of a device that found a fault: how many there were, and what the last one found.
pub(super) struct Found(RefCell<(u32, Result<()>)>);

impl Default for Found {
    fn default() -> Self {
        Self(RefCell::new((0, Ok(()))))
    }
}

impl WebGl2 {
    /// That of what was asked for last.
    pub(super) fn verdict(&self) -> Rc<Verdict> {
        Rc::clone(&self.verdict.borrow())
    }

    /// What some work gives, unless a look in the middle of it found a fault: that may be of what the work had asked for by then.
    pub(super) fn as_one<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.shortages();
        let done = work()?;
        self.check_memory(before).map(|()| done)
    }

    /// How often a look found a fault.
    pub(crate) fn shortages(&self) -> u32 {
        self.found.0.borrow().0
    }

    /// The last of them, if there was one since: of whom it is nobody knows.
    pub(crate) fn check_memory(&self, before: u32) -> Result<()> {
        let (now, last) = &*self.found.0.borrow();
        if *now == before { Ok(()) } else { last.clone() }
    }

    /// An error if WebGL has one to tell, of this command or one before it. `bytes` is what was asked for.
    pub(super) fn check(&self, bytes: u64) -> Result<()> {
        let found = match self.commands.fault() {
            0 => Ok(()),
            glow::OUT_OF_MEMORY => Err(Box::new(Error::OutOfMemory { bytes, place: "the GPU" })),
            WebGl2RenderingContext::CONTEXT_LOST_WEBGL => Err(Box::new(Error::DeviceLost { reason: self.lost().unwrap_or_default() })),
            code => Err(Error::internal(format!("WebGL error {code}"))),
        };
        let judged = self.verdict.take();
        // The one that follows it is new.
        let _ = judged.0.set(found.clone());
        if found.is_err() {
            // Memory that was not to be had may lie in the pool, which may be at work just now.
            self.is_pool_sound.set(false);
            let now = self.shortages() + 1;
            *self.found.0.borrow_mut() = (now, found.clone());
        }
        found
    }

    /// Judges what was asked for so far, if anybody will want to know. `bytes` is what is in use.
    pub(super) fn look(&self, bytes: u64) {
        if Rc::strong_count(&self.verdict.borrow()) > 1 {
            // Told by what it befell.
            let _ = self.check(bytes);
        }
    }

    /// Whether commands went well, once they are done.
    pub(super) fn judge(&self, verdict: &Verdict) -> Result<()> {
        if verdict.0.get().is_none() {
            // It is that of what was asked for last: with a look it gets its end, and there is a new one.
            let _ = self.check(self.pool.stats().used_bytes);
        }
        verdict.get()?;
        match self.lost() {
            Some(reason) => Err(Box::new(Error::DeviceLost { reason })),
            None => Ok(()),
        }
    }
}
