//! One type for the device of any backend, so that what runs on it is compiled once. Each arm only passes on.

use std::future::ready;

#[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
use super::cuda;
#[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
use super::vulkan;
#[cfg(all(feature = "webgl2", target_arch = "wasm32"))]
use super::webgl2;
#[cfg(feature = "webgpu")]
use super::webgpu;
use super::{Backend, Bound, BoxFuture, Finished, How, MemoryStats, cpu};
#[cfg(not(target_arch = "wasm32"))]
use crate::devices::{AdapterInfo, no_such_adapter};
use crate::dtype::Extent;
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::info::{BackendId, Caps, DeviceInfo, OtherBackend};
use crate::ops::Op;
use crate::ops::map::MOST_INPUTS;
use crate::options::Options;
use crate::plan::Plan;

macro_rules! backends {
    ($( $(#[$cfg:meta])? $name:ident: $module:ident::$device:ident, )+) => {
        /// An open device: one a handle.
        #[allow(clippy::large_enum_variant, reason = "boxing would cost each call more than it saves")]
        pub(crate) enum Device { $( $(#[$cfg])? $name($module::$device), )+ }

        /// Memory of a device.
        pub(crate) enum Buffer { $( $(#[$cfg])? $name($module::Buffer), )+ }

        /// Work under way on a device: as many as there are calls, and moved twice.
        #[allow(clippy::large_enum_variant, reason = "boxing would cost each call more than it saves")]
        pub(crate) enum Running { $( $(#[$cfg])? $name($module::Running), )+ }

        impl Backend for Device {
            type Buffer = Buffer;
            type Running = Running;

            fn plan(&self, op: &Op) -> Result<Plan> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.plan(op), )+ }
            }

            #[cfg(target_arch = "wasm32")]
            fn plan_soon(&self, op: &Op) -> Result<Plan> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.plan_soon(op), )+ }
            }

            #[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
            fn tiles(&self) -> Vec<String> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.tiles(), )+ }
            }

            #[cfg(any(feature = "webgpu", not(target_arch = "wasm32")))]
            fn plan_tuned(&self, op: &Op, tuned: crate::plan::tuned::Tuned) -> Result<Plan> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.plan_tuned(op, tuned), )+ }
            }

            fn upload(&self, values: &HostSlice<'_>) -> Result<Buffer> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.upload(values).map(Buffer::$name), )+ }
            }

            fn keep(&self, values: &HostSlice<'_>) -> Result<Buffer> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.keep(values).map(Buffer::$name), )+ }
            }

            #[cfg(not(target_arch = "wasm32"))]
            fn upload_timed(&self, values: &HostSlice<'_>) -> Result<(Buffer, Option<super::Timer>)> {
                match self {
                    $( $(#[$cfg])? Self::$name(device) => device.upload_timed(values).map(|(buffer, timer)| (Buffer::$name(buffer), timer)), )+
                }
            }

            fn allocate(&self, plan: &Plan, op: &Op) -> Result<Buffer> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.allocate(plan, op).map(Buffer::$name), )+ }
            }

            fn submit(&self, plan: &Plan, operands: &[Option<Bound<'_, Buffer>>], out: &Buffer, how: How) -> Result<Running> {
                match (self, out) {
                    $( $(#[$cfg])? (Self::$name(device), Buffer::$name(out)) => {
                        let mut own = Vec::with_capacity(operands.len());
                        for operand in operands {
                            own.push(match operand {
                                None => None,
                                Some(Bound::Host(values)) => Some(Bound::Host(values.clone())),
                                Some(Bound::Buffer(Buffer::$name(buffer))) => Some(Bound::Buffer(buffer)),
                                #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                                Some(Bound::Buffer(_)) => return Err(foreign()),
                            });
                        }
                        device.submit(plan, &own, out, how).map(Running::$name)
                    } )+
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    _ => Err(foreign()),
                }
            }

            fn queue(&self, op: &Op, operands: &[Option<&Buffer>]) -> Result<Option<Buffer>> {
                // With what follows an operation on textures there may be more: they are submitted.
                if operands.len() > MOST_INPUTS {
                    return Ok(None);
                }
                match self {
                    $( $(#[$cfg])? Self::$name(device) => {
                        let mut own = [None; MOST_INPUTS];
                        for (own, operand) in own.iter_mut().zip(operands) {
                            *own = match *operand {
                                None => None,
                                Some(Buffer::$name(buffer)) => Some(buffer),
                                #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                                Some(_) => return Err(foreign()),
                            };
                        }
                        Ok(device.queue(op, &own[..operands.len()])?.map(Buffer::$name))
                    } )+
                }
            }

            fn finish(&self, running: Running) -> impl Future<Output = Result<Finished>> {
                let finished: BoxFuture<'_, _> = match (self, running) {
                    $( $(#[$cfg])? (Self::$name(device), Running::$name(running)) => Box::pin(device.finish(running)), )+
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    _ => Box::pin(ready(Err(foreign()))),
                };
                finished
            }

            async fn download(&self, buffer: &Buffer, extent: Extent) -> Result<HostVec> {
                let downloaded: BoxFuture<'_, _> = match (self, buffer) {
                    $( $(#[$cfg])? (Self::$name(device), Buffer::$name(buffer)) => Box::pin(device.download(buffer, extent)), )+
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    _ => Box::pin(ready(Err(foreign()))),
                };
                downloaded.await
            }

            #[cfg(not(target_arch = "wasm32"))]
            async fn download_timed(&self, buffer: &Buffer, extent: Extent) -> Result<(HostVec, Option<f64>)> {
                let downloaded: BoxFuture<'_, _> = match (self, buffer) {
                    $( $(#[$cfg])? (Self::$name(device), Buffer::$name(buffer)) => Box::pin(device.download_timed(buffer, extent)), )+
                    #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                    _ => Box::pin(ready(Err(foreign()))),
                };
                downloaded.await
            }

            fn synchronize(&self) -> impl Future<Output = Result<()>> {
                let synchronized: BoxFuture<'_, _> = match self { $( $(#[$cfg])? Self::$name(device) => Box::pin(device.synchronize()), )+ };
                synchronized
            }

            fn lost(&self) -> Option<String> {
                match self { $( $(#[$cfg])? Self::$name(device) => device.lost(), )+ }
            }

            fn memory(&self) -> MemoryStats {
                match self { $( $(#[$cfg])? Self::$name(device) => device.memory(), )+ }
            }

            fn trim(&self) {
                match self { $( $(#[$cfg])? Self::$name(device) => device.trim(), )+ }
            }
        }
    };
}

backends! {
    Cpu: cpu::Cpu,
    #[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
    Cuda: cuda::Cuda,
    #[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
    Vulkan: vulkan::Vulkan,
    #[cfg(feature = "webgpu")]
    WebGpu: webgpu::WebGpu,
    #[cfg(all(feature = "webgl2", target_arch = "wasm32"))]
    WebGl2: webgl2::WebGl2,
}

/// A device in use, and what it is.
pub(crate) struct Opened {
    pub device: Device,
    pub info: DeviceInfo,
}

/// Why a backend that is not part of this build is not.
fn absent(id: BackendId) -> OtherBackend {
    let off = |reason: &str, remedy: &str| OtherBackend::off(id, reason, remedy);
    #[cfg(not(any(target_os = "linux", target_os = "windows", target_arch = "wasm32")))]
    if id == BackendId::Cuda {
        return off("NVIDIA has no CUDA for this system", "");
    }
    if id == BackendId::WebGl2 && cfg!(not(target_arch = "wasm32")) {
        off("WebGL2 is the browser's", "")
    } else {
        off("this build leaves it out", &format!("build with the feature {id}"))
    }
}

fn foreign() -> Box<Error> {
    Error::internal("a buffer of another backend")
}

impl Device {
    /// Opens that backend, or says why it is not there.
    pub(crate) async fn open(id: BackendId, options: &Options) -> Result<Opened, OtherBackend> {
        let (device, info) = match id {
            #[cfg(not(target_arch = "wasm32"))]
            BackendId::Simd | BackendId::Scalar if options.adapter.is_some_and(|index| index > 0) => {
                Err(no_such_adapter(id, options.adapter.unwrap_or_default(), 1))
            }
            BackendId::Simd | BackendId::Scalar => cpu::open(id, options).await.map(|(device, info)| (Self::Cpu(device), info)),
            #[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
            BackendId::Cuda => cuda::open(options).map(|(device, info)| (Self::Cuda(device), info)),
            #[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
            BackendId::Vulkan => vulkan::open(options).map(|(device, info)| (Self::Vulkan(device), info)),
            #[cfg(feature = "webgpu")]
            BackendId::WebGpu => webgpu::open(options).await.map(|(device, info)| (Self::WebGpu(device), info)),
            #[cfg(all(feature = "webgl2", target_arch = "wasm32"))]
            BackendId::WebGl2 => webgl2::open(options).await.map(|(device, info)| (Self::WebGl2(device), info)),
            #[allow(unreachable_patterns, reason = "with all backends built in there is no other")]
            other => {
                let _ = options;
                Err(absent(other))
            }
        }?;
        Ok(Opened { device, info })
    }

    /// What an operation makes on a CPU, where it is there when this returns.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn make(&self, plan: &Plan, extent: Extent, inputs: &[Option<&Buffer>]) -> Result<Buffer> {
        #[allow(irrefutable_let_patterns, reason = "with one backend there is no other")]
        let Self::Cpu(cpu) = self else { return Err(foreign()) };
        let mut own = [None; MOST_INPUTS];
        for (own, input) in own.iter_mut().zip(inputs) {
            *own = match *input {
                None => None,
                Some(Buffer::Cpu(buffer)) => Some(buffer),
                #[allow(unreachable_patterns, reason = "with one backend there is no other")]
                Some(_) => return Err(foreign()),
            };
        }
        cpu.make(plan, extent, &own[..inputs.len().min(MOST_INPUTS)]).map(Buffer::Cpu)
    }

    /// The devices of that backend, none of them opened, or why there are none.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn list(id: BackendId) -> Result<Vec<AdapterInfo>, OtherBackend> {
        match id {
            BackendId::Simd | BackendId::Scalar => cpu::list(id),
            #[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
            BackendId::Cuda => cuda::list(),
            #[cfg(feature = "vulkan")]
            BackendId::Vulkan => vulkan::list(),
            #[cfg(feature = "webgpu")]
            BackendId::WebGpu => webgpu::list(),
            #[allow(unreachable_patterns, reason = "with all backends built in there is no other")]
            other => Err(absent(other)),
        }
    }

    /// What it is called by now, if that may have changed: threads may have failed since it was opened.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn name(&self) -> Option<String> {
        #[allow(irrefutable_let_patterns, reason = "with one backend there is no other")]
        if let Self::Cpu(cpu) = self { Some(cpu.name()) } else { None }
    }

    /// The device as it is now.
    pub(crate) fn update(&self, info: &mut DeviceInfo) {
        #[cfg(target_arch = "wasm32")]
        if let Some(name) = self.name() {
            info.name = name;
        }
        #[cfg(not(target_arch = "wasm32"))]
        let _ = info;
    }

    /// Whether a product that is done may be given at once.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn gives_at_once(&self) -> bool {
        #[allow(irrefutable_let_patterns, reason = "with one backend there is no other")]
        if let Self::Cpu(cpu) = self { !cpu.is_short() } else { false }
    }

    /// How often there was no memory for what nobody waits for.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn shortages(&self) -> u32 {
        match self {
            #[cfg(feature = "webgpu")]
            Self::WebGpu(device) => device.shortages(),
            #[cfg(feature = "webgl2")]
            Self::WebGl2(device) => device.shortages(),
            _ => 0,
        }
    }

    /// An error if that was once more since.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn check_memory(&self, before: u32) -> Result<()> {
        match self {
            #[cfg(feature = "webgpu")]
            Self::WebGpu(device) => device.check_memory(before),
            #[cfg(feature = "webgl2")]
            Self::WebGl2(device) => device.check_memory(before),
            _ => {
                let _ = before;
                Ok(())
            }
        }
    }

    /// What kernels are planned by that compute what follows an operation, too: where plans depend on what was tuned, more than the device's
    /// description says. None if there are no such kernels.
    pub(crate) fn fuses(&self, info: &DeviceInfo) -> Option<Caps> {
        match self {
            #[cfg(all(feature = "cuda", any(target_os = "linux", target_os = "windows")))]
            Self::Cuda(device) => device.fuses().then(|| info.caps.clone()),
            #[cfg(all(feature = "vulkan", not(target_arch = "wasm32")))]
            Self::Vulkan(device) => Some(device.planned_by()),
            #[cfg(feature = "webgpu")]
            Self::WebGpu(device) => Some(device.planned_by()),
            _ => info.backend.fuses().then(|| info.caps.clone()),
        }
    }

    /// Whether kernels read operands where the host has them.
    pub(crate) fn reads_host_memory(&self) -> bool {
        matches!(self, Self::Cpu(_))
    }
}
