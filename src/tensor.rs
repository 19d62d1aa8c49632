//! A matrix that stays on the device.

use std::sync::Arc;

use crate::backend::Backend;
use crate::backend::device::{Buffer, Opened};
use crate::error::{Error, Result};
use crate::host::HostVec;
use crate::info::BackendId;
#[cfg(not(target_arch = "wasm32"))]
use crate::profile::{Operation, Profiler};

/// A row-major f32 matrix on the device, used in any number of products. Clones share the memory; it is given back with the last of
/// them.
#[derive(Clone)]
pub struct Tensor(Arc<Inner>);

struct Inner {
    rows: u64,
    columns: u64,
    buffer: Buffer,
    home: Arc<Opened>,
    #[cfg(not(target_arch = "wasm32"))]
    profiler: Option<Arc<Profiler>>,
}

impl Tensor {
    pub(crate) fn new(rows: u64, columns: u64, buffer: Buffer, home: Arc<Opened>) -> Self {
        Self(Arc::new(Inner {
            rows,
            columns,
            buffer,
            home,
            #[cfg(not(target_arch = "wasm32"))]
            profiler: None,
        }))
    }

    /// The same, of which nobody has a clone yet, its way to the host profiled where its handle's operations are.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn watched_by(mut self, profiler: &Arc<Profiler>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.profiler = Some(Arc::clone(profiler));
        }
        self
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        self.0.rows
    }

    /// Columns.
    pub fn columns(&self) -> u64 {
        self.0.columns
    }

    /// Where it is.
    pub fn backend(&self) -> BackendId {
        self.0.home.info.backend
    }

    /// Copies the matrix back, row-major.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] if the device is gone, and the values with it.
    pub async fn to_host(&self) -> Result<HostVec> {
        let Inner { rows, columns, buffer, home, .. } = &*self.0;
        if let Some(reason) = home.device.lost() {
            return Err(Box::new(Error::DeviceLost { reason }));
        }
        #[cfg(not(target_arch = "wasm32"))]
        let clock = crate::clock::Stopwatch::start();
        let values = home.device.download(buffer, rows * columns).await?;
        #[cfg(not(target_arch = "wasm32"))]
        if let Some(profiler) = self.0.profiler.as_ref().filter(|profiler| profiler.is_on()) {
            profiler.add(Operation::of_download((*rows, *columns), &home.info, clock.ms()));
        }
        Ok(values)
    }

    /// The memory, if it is on that device.
    pub(crate) fn buffer_on(&self, opened: &Opened) -> Result<&Buffer> {
        if std::ptr::eq(&*self.0.home, opened) {
            return Ok(&self.0.buffer);
        }
        Err(match self.0.home.device.lost() {
            Some(reason) => {
                Box::new(Error::DeviceLost { reason: format!("a tensor's values went with it ({reason}); make the tensor anew") })
            }
            None => Box::new(Error::InvalidType {
                argument: "a tensor".to_owned(),
                expected: "one of the same device",
                found: "one of another".to_owned(),
            }),
        })
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor {} × {} on {}", self.0.rows, self.0.columns, self.0.home.info.backend)
    }
}
