//! An array that stays on the device.

use std::sync::Arc;

use crate::backend::Backend;
use crate::backend::device::{Buffer, Opened};
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::host::HostVec;
use crate::info::BackendId;
#[cfg(not(target_arch = "wasm32"))]
use crate::profile::{Operation, Profiler};

/// An array on the device, row-major, used in any number of products: a matrix, or a batch of them. Clones share the memory; it is given
/// back with the last of them.
#[derive(Clone)]
pub struct Tensor {
    shape: Arc<[u64]>,
    values: Arc<Values>,
}

struct Values {
    dtype: DType,
    buffer: Buffer,
    home: Arc<Opened>,
    #[cfg(not(target_arch = "wasm32"))]
    profiler: Option<Arc<Profiler>>,
}

/// How many elements an array of that shape has.
pub(crate) fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1, |product, &size| product.saturating_mul(size))
}

/// Refuses dimensions that kernels could not count.
pub(crate) fn check_sizes(shape: &[u64]) -> Result<()> {
    let Some(&size) = shape.iter().find(|&&size| size > u64::from(u32::MAX)) else { return Ok(()) };
    let expected = format!("at most {}", u32::MAX);
    Err(Box::new(Error::InvalidDimension { name: "a dimension of the shape", value: size.to_string(), expected }))
}

/// Refuses an array of another length than its shape says.
pub(crate) fn check_length(argument: &'static str, length: u64, shape: &[u64]) -> Result<()> {
    let expected = elements(shape);
    if length == expected {
        return Ok(());
    }
    let formula = if shape.is_empty() { "a single number".to_owned() } else { joined(shape, " · ") };
    Err(Box::new(Error::LengthMismatch { argument, length, expected, formula }))
}

/// The sizes with something between them.
pub(crate) fn joined(shape: &[u64], between: &str) -> String {
    let mut text = String::new();
    for size in shape {
        if !text.is_empty() {
            text += between;
        }
        text += &size.to_string();
    }
    text
}

impl Tensor {
    pub(crate) fn new(shape: impl Into<Arc<[u64]>>, dtype: DType, buffer: Buffer, home: Arc<Opened>) -> Self {
        let values = Values {
            dtype,
            buffer,
            home,
            #[cfg(not(target_arch = "wasm32"))]
            profiler: None,
        };
        Self { shape: shape.into(), values: Arc::new(values) }
    }

    /// The same, of which nobody has a clone yet, its way to the host profiled where its handle's operations are.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn watched_by(mut self, profiler: &Arc<Profiler>) -> Self {
        if let Some(values) = Arc::get_mut(&mut self.values) {
            values.profiler = Some(Arc::clone(profiler));
        }
        self
    }

    /// The sizes of all dimensions. The last one's elements are neighbours.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Rows of all matrices together: the elements, counted in rows of [`columns`](Self::columns).
    pub fn rows(&self) -> u64 {
        self.shape.split_last().map_or(1, |(_, others)| elements(others))
    }

    /// The last dimension's size.
    pub fn columns(&self) -> u64 {
        self.shape.last().copied().unwrap_or(1)
    }

    /// The same values in another shape, sharing the memory.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if that shape has another number of elements.
    pub fn reshape(&self, shape: &[u64]) -> Result<Self> {
        check_length("the tensor", elements(&self.shape), shape)?;
        Ok(Self { shape: shape.into(), values: Arc::clone(&self.values) })
    }

    /// Whether both are of the same memory, in whatever shape.
    pub(crate) fn shares_memory_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.values, &other.values)
    }

    /// What its elements are.
    pub fn dtype(&self) -> DType {
        self.values.dtype
    }

    /// Where it is.
    pub fn backend(&self) -> BackendId {
        self.values.home.info.backend
    }

    /// The device that it is on.
    #[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
    pub(crate) fn home(&self) -> &Arc<Opened> {
        &self.values.home
    }

    /// Its memory, whatever device that is of.
    #[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.values.buffer
    }

    /// Copies the values back, row-major.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] if the device is gone, and the values with it.
    pub async fn to_host(&self) -> Result<HostVec> {
        let Values { buffer, home, dtype, .. } = &*self.values;
        if let Some(reason) = home.device.lost() {
            return Err(Box::new(Error::DeviceLost { reason }));
        }
        let extent = Extent { elements: elements(&self.shape), dtype: *dtype };
        let mut again = false;
        loop {
            match self.download(buffer, extent).await {
                Err(error) if matches!(*error, Error::OutOfMemory { .. }) && !std::mem::replace(&mut again, true) => home.device.trim(),
                downloaded => return downloaded,
            }
        }
    }

    #[cfg(target_arch = "wasm32")]
    async fn download(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
        self.values.home.device.download(buffer, extent).await
    }

    /// As the device does it, and timed where somebody profiles.
    #[cfg(not(target_arch = "wasm32"))]
    async fn download(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
        let home = &self.values.home;
        let Some(profiler) = self.values.profiler.as_ref().filter(|profiler| profiler.is_on()) else {
            return home.device.download(buffer, extent).await;
        };
        let clock = crate::clock::Stopwatch::start();
        let (values, ms) = home.device.download_timed(buffer, extent).await?;
        profiler.add(Operation::of_download((self.rows(), self.columns()), extent.dtype, &home.info, ms, clock.ms()));
        Ok(values)
    }

    /// Whether it was left behind by a device that is lost, and that is not this one.
    pub(crate) fn is_left_by(&self, opened: &Opened) -> bool {
        !std::ptr::eq(&*self.values.home, opened) && self.values.home.device.lost().is_some()
    }

    /// The memory, if it is on that device.
    pub(crate) fn buffer_on(&self, opened: &Opened) -> Result<&Buffer> {
        let Values { buffer, home, .. } = &*self.values;
        if std::ptr::eq(&**home, opened) {
            return Ok(buffer);
        }
        Err(match home.device.lost() {
            Some(reason) => {
                Box::new(Error::DeviceLost { reason: format!("a tensor's values went with it ({reason}); make the tensor anew") })
            }
            None => Box::new(Error::InvalidType {
                argument: "a tensor".to_owned(),
                expected: "one of the same device; give that its values anew",
                found: "one of another".to_owned(),
            }),
        })
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor {:?} of {} on {}", self.shape, self.values.dtype, self.values.home.info.backend)
    }
}
