//! What a kernel's twin on the CPU sees of a launch.

use std::cell::Cell;
use std::sync::Arc;

use bytemuck::Pod;

use crate::error::{Error, Result};

/// A launch, to be done on the CPU at once.
pub struct Run<'a> {
    pub(super) grid: [u32; 3],
    pub(super) workgroup: [u32; 3],
    pub(super) params: &'a [u8],
}

impl Run<'_> {
    /// Workgroups in x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Invocations of a workgroup in x, y and z; 1 where no source says.
    pub fn workgroup(&self) -> [u32; 3] {
        self.workgroup
    }

    /// Invocations of the launch in x, y and z.
    pub fn invocations(&self) -> [u64; 3] {
        [0, 1, 2].map(|axis| u64::from(self.grid[axis]) * u64::from(self.workgroup[axis]))
    }

    /// The parameters. What the launch did not give is 0.
    pub fn params<P: Pod>(&self) -> P {
        let mut params = P::zeroed();
        let bytes = bytemuck::bytes_of_mut(&mut params);
        let given = bytes.len().min(self.params.len());
        bytes[..given].copy_from_slice(&self.params[..given]);
        params
    }
}

/// What a buffer holds, as far as the kernel sees it, from an address that suits every number.
pub struct Values<'a>(pub(crate) Part<'a>);

/// The bytes of a buffer.
pub(crate) enum Part<'a> {
    Read(&'a [u8]),
    ReadWrite(&'a mut [u8]),
}

impl<'a> Values<'a> {
    /// As many whole values as there are.
    pub fn read<T: Pod>(&self) -> &[T] {
        let bytes = match &self.0 {
            Part::Read(bytes) => bytes,
            Part::ReadWrite(bytes) => &**bytes,
        };
        let whole = if size_of::<T>() == 0 { 0 } else { bytes.len() / size_of::<T>() * size_of::<T>() };
        bytemuck::cast_slice(&bytes[..whole])
    }

    /// The same, to be changed.
    ///
    /// # Panics
    /// If the kernel's definition says that it only reads this buffer.
    pub fn write<T: Pod>(self) -> &'a mut [T] {
        let Part::ReadWrite(bytes) = self.0 else { panic!("a kernel's twin writes to a buffer that its definition only reads") };
        let whole = if size_of::<T>() == 0 { 0 } else { bytes.len() / size_of::<T>() * size_of::<T>() };
        bytemuck::cast_slice_mut(&mut bytes[..whole])
    }
}

thread_local! {
    /// Whether a twin runs on this thread.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Refuses what a twin asks of a device that waits for it.
pub(crate) fn outside() -> Result<()> {
    if !RUNS.get() {
        return Ok(());
    }
    Err(Box::new(Error::InvalidArgument {
        what: "a call".to_owned(),
        found: "made by a kernel's twin on the CPU".to_owned(),
        expected: "the device waits for the twin, which has what it needs in its arguments: call when it has returned".to_owned(),
    }))
}

/// Ends what a twin's run began, however it ends.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        RUNS.set(false);
    }
}

type Body = dyn Fn(&Run<'_>, Vec<Values<'_>>) + Send + Sync;

/// A twin of some number of buffers.
#[derive(Clone)]
pub(super) struct Twin {
    /// How many buffers it takes.
    pub buffers: usize,
    run: Arc<Body>,
}

impl Twin {
    pub(super) fn new<const N: usize>(twin: impl Fn(&Run<'_>, [Values<'_>; N]) + Send + Sync + 'static) -> Self {
        let run = move |run: &Run<'_>, values: Vec<Values<'_>>| {
            // A launch has been checked to have so many.
            if let Ok(values) = values.try_into() {
                twin(run, values);
            }
        };
        Self { buffers: N, run: Arc::new(run) }
    }

    pub(super) fn run(&self, run: &Run<'_>, values: Vec<Values<'_>>) {
        RUNS.set(true);
        let _ends = Ends;
        (self.run)(run, values);
    }
}
