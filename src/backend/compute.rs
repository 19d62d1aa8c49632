//! What a device does for kernels of the caller's: the rest of what the backends owe, natively. [`compute`](crate::compute) has checked all
//! that can be checked; what comes here fits the device and each other.

#[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
use super::cuda;
#[cfg(feature = "vulkan")]
use super::vulkan;
#[cfg(feature = "webgpu")]
use super::webgpu;
use super::{Backend, BoxFuture, cpu, device};
use crate::backend::device::Device;
use crate::compute::{KernelDefinition, Signature};
use crate::error::{Error, Result};
use crate::info::Memory;

/// Memory, kernels and streams of a device.
///
/// Each call takes effect after those before it that have to do with the same lane or the same memory. Whatever is dropped, a backend
/// keeps what its device still uses.
pub(crate) trait Compute: Backend {
    /// Memory.
    type Storage;
    /// A kernel.
    type Program;
    /// A queue of work.
    type Lane;
    /// A place in a lane.
    type Mark;
    /// A copy to the host under way.
    type Fetch;

    /// Memory of so many bytes, a multiple of 4, of a sort that the device has.
    fn reserve(&self, memory: Memory, bytes: u64) -> Result<Self::Storage>;

    /// The memory of a tensor as that of a buffer, for one call: what comes before it in the device's own lane comes before the call, and
    /// what comes after the call there comes after it.
    fn adopt(&self, tensor: &Self::Buffer) -> Result<Self::Storage>;

    /// Compiles the source that is this backend's.
    fn compile(&self, definition: &KernelDefinition, signature: &Signature) -> Result<Self::Program>;

    /// A lane of its own.
    fn lane(&self) -> Result<Self::Lane>;

    /// The lane of the device's other work.
    fn shared_lane(&self) -> Result<Self::Lane>;

    /// Copies bytes to the device. They are read before this returns.
    fn store(&self, lane: &Self::Lane, to: &Self::Storage, at_bytes: u64, bytes: &[u8]) -> Result<()>;

    /// Starts a copy to the host.
    fn fetch(&self, lane: &Self::Lane, from: &Self::Storage, at_bytes: u64, bytes: u64) -> Result<Self::Fetch>;

    /// Waits for the copy; `out` is as long as it.
    fn fetched<'a>(&'a self, fetch: Self::Fetch, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>>;

    /// Copies between two buffers, each from its byte on.
    fn copy(&self, lane: &Self::Lane, from: (&Self::Storage, u64), to: (&Self::Storage, u64), bytes: u64) -> Result<()>;

    /// Launches a kernel.
    fn launch(&self, lane: &Self::Lane, program: &Self::Program, launch: &Launch<'_, Self::Storage>) -> Result<()>;

    /// Marks what is in the lane by now.
    fn mark(&self, lane: &Self::Lane) -> Result<Self::Mark>;

    /// Has what comes later in the lane wait for the mark.
    fn wait(&self, lane: &Self::Lane, mark: &Self::Mark) -> Result<()>;

    /// Waits for the mark. An error if something went wrong before it.
    fn reached<'a>(&'a self, mark: &'a Self::Mark) -> BoxFuture<'a, Result<()>>;

    /// Milliseconds from one mark to another. Both have been reached.
    fn elapsed_ms(&self, from: &Self::Mark, to: &Self::Mark) -> Result<f64>;
}

/// A launch that has been checked.
pub(crate) struct Launch<'a, Storage> {
    /// In the order of the kernel's bindings.
    pub buffers: Vec<Bound<'a, Storage>>,
    pub params: &'a [u8],
    /// Nowhere 0.
    pub grid: [u32; 3],
}

/// A range of a buffer, as a kernel sees it.
pub(crate) struct Bound<'a, Storage> {
    pub storage: &'a Storage,
    pub index: u32,
    pub offset_bytes: u64,
    pub size_bytes: u64,
    pub is_written: bool,
}

fn foreign() -> Box<Error> {
    Error::internal("something of another backend")
}

macro_rules! backends {
    ($( $(#[$cfg:meta])? $name:ident: $module:ident::$device:ident, )+) => {
        /// Memory of a device.
        pub(crate) enum Storage { $( $(#[$cfg])? $name(<$module::$device as Compute>::Storage), )+ }
        /// A kernel of a device.
        pub(crate) enum Program { $( $(#[$cfg])? $name(<$module::$device as Compute>::Program), )+ }
        /// A queue of work of a device.
        pub(crate) enum Lane { $( $(#[$cfg])? $name(<$module::$device as Compute>::Lane), )+ }
        /// A place in a lane.
        pub(crate) enum Mark { $( $(#[$cfg])? $name(<$module::$device as Compute>::Mark), )+ }
        /// A copy to the host under way.
        pub(crate) enum Fetch { $( $(#[$cfg])? $name(<$module::$device as Compute>::Fetch), )+ }

        #[allow(unreachable_patterns, irrefutable_let_patterns, reason = "with one backend there is no other")]
        impl Compute for Device {
            type Storage = Storage;
            type Program = Program;
            type Lane = Lane;
            type Mark = Mark;
            type Fetch = Fetch;

            fn reserve(&self, memory: Memory, bytes: u64) -> Result<Storage> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.reserve(memory, bytes).map(Storage::$name), )+ }
            }

            fn adopt(&self, tensor: &device::Buffer) -> Result<Storage> {
                match (self, tensor) {
                    $( $(#[$cfg])? (Self::$name(device), device::Buffer::$name(tensor)) => device.adopt(tensor).map(Storage::$name), )+
                    _ => Err(foreign()),
                }
            }

            fn compile(&self, definition: &KernelDefinition, signature: &Signature) -> Result<Program> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.compile(definition, signature).map(Program::$name), )+ }
            }

            fn lane(&self) -> Result<Lane> {
                match self { $( $(#[$cfg])? Self::$name(device) => Compute::lane(device).map(Lane::$name), )+ }
            }

            fn shared_lane(&self) -> Result<Lane> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.shared_lane().map(Lane::$name), )+ }
            }

            fn store(&self, lane: &Lane, to: &Storage, at_bytes: u64, bytes: &[u8]) -> Result<()> {
                match (self, lane, to) {
                    $( $(#[$cfg])? (Self::$name(device), Lane::$name(lane), Storage::$name(to)) => device.store(lane, to, at_bytes, bytes), )+
                    _ => Err(foreign()),
                }
            }

            fn fetch(&self, lane: &Lane, from: &Storage, at_bytes: u64, bytes: u64) -> Result<Fetch> {
                match (self, lane, from) {
                    $( $(#[$cfg])? (Self::$name(device), Lane::$name(lane), Storage::$name(from)) => {
                        device.fetch(lane, from, at_bytes, bytes).map(Fetch::$name)
                    } )+
                    _ => Err(foreign()),
                }
            }

            fn fetched<'a>(&'a self, fetch: Fetch, out: &'a mut [u8]) -> BoxFuture<'a, Result<()>> {
                match (self, fetch) {
                    $( $(#[$cfg])? (Self::$name(device), Fetch::$name(fetch)) => device.fetched(fetch, out), )+
                    _ => Box::pin(std::future::ready(Err(foreign()))),
                }
            }

            fn copy(&self, lane: &Lane, from: (&Storage, u64), to: (&Storage, u64), bytes: u64) -> Result<()> {
                match (self, lane, from.0, to.0) {
                    $( $(#[$cfg])? (Self::$name(device), Lane::$name(lane), Storage::$name(source), Storage::$name(target)) => {
                        Compute::copy(device, lane, (source, from.1), (target, to.1), bytes)
                    } )+
                    _ => Err(foreign()),
                }
            }

            fn launch(&self, lane: &Lane, program: &Program, launch: &Launch<'_, Storage>) -> Result<()> {
                match (self, lane, program) {
                    $( $(#[$cfg])? (Self::$name(device), Lane::$name(lane), Program::$name(program)) => {
                        let mut buffers = Vec::with_capacity(launch.buffers.len());
                        for &Bound { storage, index, offset_bytes, size_bytes, is_written } in &launch.buffers {
                            let Storage::$name(storage) = storage else { return Err(foreign()) };
                            buffers.push(Bound { storage, index, offset_bytes, size_bytes, is_written });
                        }
                        Compute::launch(device, lane, program, &Launch { buffers, params: launch.params, grid: launch.grid })
                    } )+
                    _ => Err(foreign()),
                }
            }

            fn mark(&self, lane: &Lane) -> Result<Mark> {
                match (self, lane) {
                    $( $(#[$cfg])? (Self::$name(device), Lane::$name(lane)) => device.mark(lane).map(Mark::$name), )+
                    _ => Err(foreign()),
                }
            }

            fn wait(&self, lane: &Lane, mark: &Mark) -> Result<()> {
                match (self, lane, mark) {
                    $( $(#[$cfg])? (Self::$name(device), Lane::$name(lane), Mark::$name(mark)) => Compute::wait(device, lane, mark), )+
                    _ => Err(foreign()),
                }
            }

            fn reached<'a>(&'a self, mark: &'a Mark) -> BoxFuture<'a, Result<()>> {
                match (self, mark) {
                    $( $(#[$cfg])? (Self::$name(device), Mark::$name(mark)) => device.reached(mark), )+
                    _ => Box::pin(std::future::ready(Err(foreign()))),
                }
            }

            fn elapsed_ms(&self, from: &Mark, to: &Mark) -> Result<f64> {
                match (self, from, to) {
                    $( $(#[$cfg])? (Self::$name(device), Mark::$name(from), Mark::$name(to)) => device.elapsed_ms(from, to), )+
                    _ => Err(foreign()),
                }
            }
        }
    };
}

backends! {
    Cpu: cpu::Cpu,
    #[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
    Cuda: cuda::Cuda,
    #[cfg(feature = "vulkan")]
    Vulkan: vulkan::Vulkan,
    #[cfg(feature = "webgpu")]
    WebGpu: webgpu::WebGpu,
}

impl Storage {
    /// That of the CPU.
    pub(crate) fn on_the_cpu(&self) -> Result<&<cpu::Cpu as Compute>::Storage> {
        match self {
            Self::Cpu(storage) => Ok(storage),
            #[allow(unreachable_patterns, reason = "with one backend there is no other")]
            _ => Err(foreign()),
        }
    }
}
