//! A tensor's values natively. Who reads them keeps what was there when a kernel of the caller's puts others in their place.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::backend::pool::Pooled;
use crate::host::HostVec;

/// None until they are there.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Option<Arc<Pooled<HostVec>>>>);

impl Kept {
    pub(super) fn get(&self) -> Option<Arc<Pooled<HostVec>>> {
        self.lock().clone()
    }

    /// Gives what was there.
    pub(super) fn set(&self, values: Pooled<HostVec>) -> Option<Arc<Pooled<HostVec>>> {
        self.lock().replace(Arc::new(values))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Pooled<HostVec>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Pooled<HostVec>> for Kept {
    fn from(values: Pooled<HostVec>) -> Self {
        Self(Mutex::new(Some(Arc::new(values))))
    }
}
