//! Finds an adapter and opens a device on it with the limits that plans use.

use std::sync::Arc;
#[cfg(not(target_arch = "wasm32"))]
use std::sync::{Mutex, PoisonError};

use super::{Health, WebGpu, batch::Batches, pipeline::Pipelines, slab::Slabs};
use crate::backend::pool::Pool;
#[cfg(not(target_arch = "wasm32"))]
use crate::devices::AdapterInfo;
#[cfg(not(target_arch = "wasm32"))]
use crate::info::vendor;
use crate::info::{BackendId, Caps, DeviceInfo, DeviceKind, OtherBackend, is_software_name};
use crate::ops::map::MOST_INPUTS;
use crate::options::{Options, PowerPreference};
#[cfg(target_arch = "wasm32")]
use crate::web::parts::{self, Part};

/// Opens a device on a fresh adapter (an adapter is used up by its first device), or says why there is none.
pub(crate) async fn open(options: &Options) -> Result<(WebGpu, DeviceInfo), OtherBackend> {
    #[cfg(target_arch = "wasm32")]
    web::check().map_err(|(reason, remedy)| off(reason, remedy))?;
    // Looked up while the browser makes a device.
    #[cfg(target_arch = "wasm32")]
    let kept = crate::tune::Kept::read();
    let (adapter, open) = obtain(options).await?;
    let Open { device, queue, health } = open;
    let about = adapter.get_info();
    #[cfg(target_arch = "wasm32")]
    let maker = web::vendor_and_architecture(&device);
    #[cfg(not(target_arch = "wasm32"))]
    let maker = vendor_and_api(&about);
    #[cfg_attr(not(target_arch = "wasm32"), expect(unused_mut, reason = "natively matrix units are Vulkan's own backend's"))]
    let mut info = describe(about, maker, device.features(), &device.limits());
    #[cfg(target_arch = "wasm32")]
    if let Some(unit) = super::matrix::unit(&device)
        && parts::load(Part::Matrix).await.is_ok()
    {
        info.caps.matrix_unit = Some(unit);
        info.features.push("subgroup-matrix");
    }
    let timestamp_period_ns = device.features().contains(wgpu::Features::TIMESTAMP_QUERY).then(|| queue.get_timestamp_period());
    let caps = info.caps.clone();
    #[cfg(not(target_arch = "wasm32"))]
    let caps = Caps {
        tuned: crate::tune::load(options, &info, &crate::plan::matmul::tiles()),
        ..caps.with_workgroup_hint(options.workgroup_hint)
    };
    let pool = Pool::new(options.pool_bytes);
    let forms = super::forms::All::new(&pool, options.pool_bytes);
    let slabs = Slabs::new(&device, &caps, &pool, options.pool_bytes);
    let device = WebGpu {
        caps,
        timestamp_period_ns,
        pipelines: Pipelines::default(),
        pool,
        batches: Batches::new(&device, &queue, slabs, info.is_software()),
        forms,
        #[cfg(target_arch = "wasm32")]
        ring: super::ring::Ring::new(&device, options.pool_bytes),
        #[cfg(target_arch = "wasm32")]
        tuned: std::cell::Cell::new(kept.find(&info, &crate::plan::matmul::tiles()).await),
        #[cfg(target_arch = "wasm32")]
        is_pages: std::cell::Cell::new(false),
        #[cfg(not(target_arch = "wasm32"))]
        attendants: Default::default(),
        device,
        queue,
        health,
    };
    Ok((device, info))
}

/// A device that is not known to be lost.
#[cfg_attr(not(target_arch = "wasm32"), derive(Clone))]
struct Open {
    device: wgpu::Device,
    queue: wgpu::Queue,
    health: Arc<Health>,
}

impl Open {
    fn new((device, queue): (wgpu::Device, wgpu::Queue)) -> Self {
        let health = Arc::new(Health::default());
        device.set_device_lost_callback({
            let health = Arc::clone(&health);
            move |_, message| health.lose(if message.is_empty() { "the driver gave no reason".to_owned() } else { message })
        });
        // What an error scope does not catch is remembered for the call that fails by it.
        #[cfg(target_arch = "wasm32")]
        super::external::note_shortages(&device, &health);
        // Without a handler wgpu panics.
        #[cfg(not(target_arch = "wasm32"))]
        device.on_uncaptured_error(Arc::new({
            let health = Arc::clone(&health);
            move |error| {
                if matches!(error, wgpu::Error::OutOfMemory { .. }) {
                    health.note_shortage();
                }
            }
        }));
        Self { device, queue, health }
    }
}

/// Devices that handles share natively, and that stay when the last handle goes: those of Vulkan, whose drivers may lock up where one is destroyed
/// while others compute (see `backend/vulkan`).
#[cfg(not(target_arch = "wasm32"))]
static OPEN: Mutex<Shared> = Mutex::new(Shared { open: Vec::new(), lost: Vec::new() });

#[cfg(not(target_arch = "wasm32"))]
struct Shared {
    /// Each with its adapter, and whether it is validated.
    open: Vec<(wgpu::AdapterInfo, bool, Open)>,
    /// NVIDIA's that were lost, which stay until the process ends.
    lost: Vec<Open>,
}

/// Lets go of NVIDIA's devices when the process ends (see `backend/vulkan`).
#[cfg(not(target_arch = "wasm32"))]
extern "C" fn drop_all() {
    // A process that is opening one ends without.
    let Ok(mut shared) = OPEN.try_lock() else { return };
    let Shared { open, lost } = &mut *shared;
    let nvidias: Vec<_> = open.extract_if(.., |(about, ..)| about.driver == NVIDIA).map(|(.., open)| open).chain(lost.drain(..)).collect();
    // By another thread: wgpu needs what this one has taken apart already.
    if let Ok(dropping) = std::thread::Builder::new().spawn(move || drop(nvidias)) {
        let _ = dropping.join();
    }
}

/// How wgpu names NVIDIA's own driver of Vulkan's.
#[cfg(not(target_arch = "wasm32"))]
const NVIDIA: &str = "NVIDIA";

/// A device of an adapter with all that is of use.
#[cfg(target_arch = "wasm32")]
async fn open_best(adapter: &wgpu::Adapter, options: &Options) -> Result<Open, wgpu::RequestDeviceError> {
    super::matrix::ask(options.power_preference);
    request_best(adapter).await.map(Open::new)
}

/// The same, or the one that others have open or left.
#[cfg(not(target_arch = "wasm32"))]
async fn open_best(adapter: &wgpu::Adapter, options: &Options) -> Result<Open, wgpu::RequestDeviceError> {
    let about = adapter.get_info();
    // Two cards alike are told apart by their places on the bus, and not at all where a driver does not give them.
    let is_known = about.device_type == wgpu::DeviceType::Cpu || !about.device_pci_bus_id.is_empty();
    if about.backend != wgpu::Backend::Vulkan || !is_known {
        return request_best(adapter).await.map(Open::new);
    }
    let mut shared = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let Shared { open, lost } = &mut *shared;
    let gone = open.extract_if(.., |(.., open)| open.health.lost().is_some());
    lost.extend(gone.filter(|(of, ..)| of.driver == NVIDIA).map(|(.., open)| open));
    if let Some((.., open)) = open.iter().find(|(of, validated, _)| *of == about && *validated == options.validation) {
        return Ok(open.clone());
    }
    // Natively the answer is there at once.
    let made = pollster::block_on(request_best(adapter)).map(Open::new)?;
    if about.driver == NVIDIA {
        crate::backend::exit::at_exit(drop_all);
    }
    open.push((about, options.validation, made.clone()));
    Ok(made)
}

/// An adapter and a device of it.
async fn obtain(options: &Options) -> Result<(wgpu::Adapter, Open), OtherBackend> {
    let adapter = find(options).await?;
    if let Ok(open) = open_best(&adapter, options).await {
        return Ok((adapter, open));
    }
    // Browsers differ in which limits they let one ask for: the defaults everybody has.
    let adapter = find(options).await?;
    let error = match request_device(&adapter, wgpu::Features::empty(), least_limits()).await {
        Ok(opened) => return Ok((adapter, Open::new(opened))),
        Err(error) => error,
    };
    // An adapter that no driver stands behind must not keep the others from use.
    #[cfg(not(target_arch = "wasm32"))]
    if options.adapter.is_none() {
        for other in adapters(options).await {
            if other.get_info() != adapter.get_info()
                && let Ok(open) = open_best(&other, options).await
            {
                return Ok((other, open));
            }
        }
    }
    Err(off(&format!("the adapter gave no device ({error})"), crate::select::UPDATE))
}

/// What kernels use where it is there; natively f16 and f64 are for those of the caller's. Not subgroups: wgpu then lets drivers vary their size
/// in every kernel.
const FEATURES: wgpu::Features = {
    let features = wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::SHADER_F16);
    if cfg!(target_arch = "wasm32") { features } else { features.union(wgpu::Features::SHADER_F64) }
};

/// A device with all that is of use.
async fn request_best(adapter: &wgpu::Adapter) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    request_device(adapter, adapter.features() & FEATURES, wanted_limits(&adapter.limits())).await
}

const NO_ADAPTER_REMEDY: &str = if cfg!(target_arch = "wasm32") {
    "turn on hardware acceleration in the browser's settings, or update the graphics driver"
} else if cfg!(windows) {
    "install a graphics driver with DX12 or Vulkan"
} else if cfg!(target_vendor = "apple") {
    "this machine has no GPU with Metal"
} else {
    "install a Vulkan driver"
};

fn off(reason: &str, remedy: &str) -> OtherBackend {
    OtherBackend::off(BackendId::WebGpu, reason, remedy)
}

#[cfg(target_arch = "wasm32")]
async fn preferred(_: &Options, request: &wgpu::RequestAdapterOptions<'_, '_>) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
    wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle()).request_adapter(request).await
}

/// OpenGL is for machines that have nothing else.
#[cfg(not(target_arch = "wasm32"))]
async fn preferred(options: &Options, request: &wgpu::RequestAdapterOptions<'_, '_>) -> Result<wgpu::Adapter, wgpu::RequestAdapterError> {
    match shared(options).request_adapter(request).await {
        Ok(adapter) => Ok(adapter),
        Err(_) => instance(options, wgpu::Backends::GL).request_adapter(request).await,
    }
}

/// All adapters, those of OpenGL last.
#[cfg(not(target_arch = "wasm32"))]
async fn adapters(options: &Options) -> Vec<wgpu::Adapter> {
    let mut all = shared(options).enumerate_adapters(wgpu::Backends::all()).await;
    all.extend(instance(options, wgpu::Backends::GL).enumerate_adapters(wgpu::Backends::GL).await);
    all
}

/// The instances that all devices share, without validation and with it. The last of an instance unloads drivers, whose threads may not all have
/// come to their end. OpenGL is not among them: its devices of one instance share a context, which two threads cannot have at a time.
#[cfg(not(target_arch = "wasm32"))]
static SHARED: Mutex<[Option<wgpu::Instance>; 2]> = Mutex::new([None, None]);

#[cfg(not(target_arch = "wasm32"))]
fn shared(options: &Options) -> wgpu::Instance {
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let instance = || instance(options, wgpu::Backends::all() - wgpu::Backends::GL);
    shared[usize::from(options.validation)].get_or_insert_with(instance).clone()
}

/// An instance for those backends of wgpu, as far as its own environment variables allow them.
#[cfg(not(target_arch = "wasm32"))]
fn instance(options: &Options, backends: wgpu::Backends) -> wgpu::Instance {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    descriptor.backends &= backends;
    if options.validation {
        descriptor.flags |= wgpu::InstanceFlags::debugging();
    }
    wgpu::Instance::new(descriptor)
}

/// An adapter by preference, or natively the one that is asked for.
async fn find(options: &Options) -> Result<wgpu::Adapter, OtherBackend> {
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(index) = options.adapter {
        let mut adapters = adapters(options).await;
        if index as usize >= adapters.len() {
            return Err(crate::devices::no_such_adapter(BackendId::WebGpu, index, adapters.len()));
        }
        return Ok(adapters.swap_remove(index as usize));
    }
    let power_preference = match options.power_preference {
        PowerPreference::HighPerformance => wgpu::PowerPreference::HighPerformance,
        PowerPreference::LowPower => wgpu::PowerPreference::LowPower,
    };
    let request = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
    preferred(options, &request).await.map_err(|_| off("no adapter was given", NO_ADAPTER_REMEDY))
}

/// The adapters of all that wgpu goes through, or why there are none.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn list() -> Result<Vec<AdapterInfo>, OtherBackend> {
    let adapters = pollster::block_on(adapters(&Options::default()));
    let describe = |(index, adapter): (u32, wgpu::Adapter)| {
        let computes = adapter.get_downlevel_capabilities().flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS);
        let about = adapter.get_info();
        let buffers = adapter.limits().max_storage_buffers_per_shader_stage;
        let fault = if !computes {
            Some("it has no compute shaders".to_owned())
        } else if buffers < STORAGE_BUFFERS {
            Some(format!("its kernels have {buffers} buffers at most, where {STORAGE_BUFFERS} are needed"))
        } else if about.backend == wgpu::Backend::Gl {
            // Beside another driver of the same card OpenGL's may list an adapter that then gives no device.
            pollster::block_on(request_best(&adapter)).err().map(|error| format!("it gives no device ({error})"))
        } else {
            None
        };
        let maker = vendor_and_api(&about);
        let info = describe(about, maker, adapter.features() & FEATURES, &adapter.limits());
        AdapterInfo { fault, ..AdapterInfo::new(info, index, None) }
    };
    let found: Vec<_> = (0..).zip(adapters).map(describe).collect();
    if found.is_empty() { Err(off("there is no adapter", NO_ADAPTER_REMEDY)) } else { Ok(found) }
}

async fn request_device(
    adapter: &wgpu::Adapter,
    features: wgpu::Features,
    limits: wgpu::Limits,
) -> Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError> {
    let descriptor =
        wgpu::DeviceDescriptor { label: Some("lapidary"), required_features: features, required_limits: limits, ..Default::default() };
    adapter.request_device(&descriptor).await
}

/// The limits that plans use, as high as the adapter goes; the rest as low as everybody has them.
fn wanted_limits(adapter: &wgpu::Limits) -> wgpu::Limits {
    wgpu::Limits {
        max_buffer_size: adapter.max_buffer_size,
        max_storage_buffer_binding_size: adapter.max_storage_buffer_binding_size,
        max_compute_workgroup_storage_size: adapter.max_compute_workgroup_storage_size,
        max_compute_invocations_per_workgroup: adapter.max_compute_invocations_per_workgroup,
        max_compute_workgroup_size_x: adapter.max_compute_workgroup_size_x,
        max_compute_workgroup_size_y: adapter.max_compute_workgroup_size_y,
        max_compute_workgroups_per_dimension: adapter.max_compute_workgroups_per_dimension,
        #[cfg(target_arch = "wasm32")]
        max_storage_buffers_per_shader_stage: adapter.max_storage_buffers_per_shader_stage.min(STORAGE_BUFFERS),
        // The caller's own kernels may have more of these than the crate's, which an adapter has to have.
        #[cfg(not(target_arch = "wasm32"))]
        max_compute_workgroup_size_z: adapter.max_compute_workgroup_size_z,
        #[cfg(not(target_arch = "wasm32"))]
        max_storage_buffers_per_shader_stage: adapter.max_storage_buffers_per_shader_stage.max(STORAGE_BUFFERS),
        ..wgpu::Limits::downlevel_defaults()
    }
}

/// The defaults that everybody has.
fn least_limits() -> wgpu::Limits {
    wgpu::Limits { max_storage_buffers_per_shader_stage: STORAGE_BUFFERS, ..wgpu::Limits::downlevel_defaults() }
}

/// A kernel's inputs and its result. WebGPU gives eight everywhere.
const STORAGE_BUFFERS: u32 = MOST_INPUTS as u32 + 1;

/// The maker, and what wgpu goes through, which it does not tell of the chip's family.
#[cfg(not(target_arch = "wasm32"))]
fn vendor_and_api(about: &wgpu::AdapterInfo) -> (String, String) {
    (vendor(about.vendor).to_owned(), format!("{:?}", about.backend).to_lowercase())
}

fn describe(
    about: wgpu::AdapterInfo,
    (vendor, architecture): (String, String),
    features: wgpu::Features,
    limits: &wgpu::Limits,
) -> DeviceInfo {
    let software =
        about.device_type == wgpu::DeviceType::Cpu || [&about.name, &architecture].into_iter().any(|name| is_software_name(name));
    let kind = match about.device_type {
        _ if software => DeviceKind::Software,
        wgpu::DeviceType::DiscreteGpu => DeviceKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceKind::Integrated,
        _ => DeviceKind::Gpu,
    };
    // Kernels count elements of a binding in 32 bits, of which the byte offset must not run over either.
    let addressable = u64::from(u32::MAX) / 256 * 256;
    let caps = Caps {
        max_buffer_bytes: limits.max_buffer_size,
        max_binding_bytes: limits.max_storage_buffer_binding_size.min(addressable),
        binding_alignment_bytes: u64::from(limits.min_storage_buffer_offset_alignment).max(256),
        max_workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
        max_workgroup_invocations: limits.max_compute_invocations_per_workgroup.min(limits.max_compute_workgroup_size_x),
        max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
        max_cluster_workgroups: 1,
        max_texture_size: u32::MAX,
        tuned: crate::plan::tuned::Tuned::NONE,
        // Natively the crate's own kernels do not.
        f16: cfg!(target_arch = "wasm32") && features.contains(wgpu::Features::SHADER_F16),
        stores_f16: features.contains(wgpu::Features::SHADER_F16),
        // naga does without where a device has not got it.
        #[cfg(not(target_arch = "wasm32"))]
        packed_dot: true,
        #[cfg(target_arch = "wasm32")]
        packed_dot: super::matrix::has_packed_dot(),
        matrix_unit: None,
        keeps: [false; 2],
    };
    #[cfg(not(target_arch = "wasm32"))]
    let capabilities = super::compute::capabilities(&about, features, limits);
    let mut names = Vec::new();
    for (feature, name) in [(wgpu::Features::TIMESTAMP_QUERY, "timestamp-query"), (wgpu::Features::SHADER_F16, "shader-f16")] {
        if features.contains(feature) {
            names.push(name);
        }
    }
    #[cfg(not(target_arch = "wasm32"))]
    names.extend(super::compute::features(kind, features));
    DeviceInfo {
        backend: BackendId::WebGpu,
        name: about.name,
        vendor,
        architecture,
        kind,
        #[cfg(not(target_arch = "wasm32"))]
        driver: [about.driver, about.driver_info].join(" ").trim().to_owned(),
        #[cfg(not(target_arch = "wasm32"))]
        uuid: None,
        #[cfg(not(target_arch = "wasm32"))]
        pci_address: about.device_pci_bus_id,
        caps,
        #[cfg(not(target_arch = "wasm32"))]
        capabilities,
        features: names,
        #[cfg(not(target_arch = "wasm32"))]
        notes: Vec::new(),
        reason: String::new(),
        others: Vec::new(),
        generation: 1,
    }
}

#[cfg(target_arch = "wasm32")]
mod web {
    use wasm_bindgen::JsValue;

    fn get(object: &JsValue, name: &str) -> JsValue {
        js_sys::Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
    }

    /// Whether this engine has WebGPU at all: reason and remedy if not.
    pub(super) fn check() -> Result<(), (&'static str, &'static str)> {
        let global = js_sys::global();
        let is_there = get(&get(&global, "navigator"), "gpu").is_object();
        // By which wgpu finds it.
        let is_pages = ["Window", "WorkerGlobalScope"].iter().any(|name| !get(&global, name).is_undefined());
        if is_there && is_pages {
            Ok(())
        } else if is_there {
            Err(("WebGPU is reached from pages and their workers only", "compute in a page, or natively with the Rust crate"))
        } else if get(&global, "isSecureContext").is_falsy() && !get(&global, "location").is_undefined() {
            Err(("browsers offer WebGPU to secure pages only", "serve the page over https or from localhost"))
        } else {
            Err((
                "this engine has no WebGPU (navigator.gpu is missing)",
                "use a browser that has it: Chrome 127, Edge 127, Safari 26, Firefox 141 on Windows",
            ))
        }
    }

    /// wgpu does not pass these on.
    pub(super) fn vendor_and_architecture(device: &wgpu::Device) -> (String, String) {
        let info = device.as_webgpu().map_or(JsValue::UNDEFINED, |device| get(device, "adapterInfo"));
        let text = |name| get(&info, name).as_string().unwrap_or_default();
        (text("vendor"), text("architecture"))
    }
}
