//! The way to the drivers: the loader, opened at run time, and an instance.
//!
//! [`Options::validation`](crate::Options::validation), or `LAPIDARY_VALIDATION=1` for all of a process, turns the Khronos validation layer on,
//! synchronization validation too. What it says goes to stderr, and the calls of the devices end in an error from then on, so that no test
//! passes over it.

use std::ffi::{CStr, c_void};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use ash::{ext, vk};

/// What is missing, and what would bring it.
pub(super) type Off = (String, &'static str);

const LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";
const NO_LOADER_REMEDY: &str = "install a graphics driver that has Vulkan, and its loader (on Debian and Ubuntu: libvulkan1)";
pub(super) const NO_DRIVER_REMEDY: &str = "install a graphics driver that has Vulkan 1.2";

/// A Vulkan instance, which keeps the loader and the drivers loaded.
pub(super) struct Instance {
    pub raw: ash::Instance,
    pub entry: ash::Entry,
    validation: Option<Validation>,
}

struct Validation {
    functions: ext::debug_utils::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    /// Boxed, because the messenger has its address.
    messages: Box<Messages>,
}

/// What the validation layer has said.
type Messages = Mutex<Vec<String>>;

/// The instances that all devices share, without validation and with it. Without them the loader would load and unload the drivers for
/// each device, at which some of them leave memory and open files behind.
static SHARED: Mutex<[Option<Arc<Instance>>; 2]> = Mutex::new([None, None]);

/// Whether the whole process is to be validated.
pub(super) fn all_validated() -> bool {
    std::env::var_os("LAPIDARY_VALIDATION").is_some_and(|value| value == "1")
}

impl Instance {
    /// The process's instance of that sort, made at its first use.
    pub(super) fn shared(validated: bool) -> Result<Arc<Self>, Off> {
        let validated = validated || all_validated();
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = &mut shared[usize::from(validated)];
        if let Some(instance) = shared {
            return Ok(Arc::clone(instance));
        }
        let instance = Arc::new(Self::new(validated)?);
        *shared = Some(Arc::clone(&instance));
        Ok(instance)
    }

    /// Has the next uses make fresh ones, which sees what has come or changed since, but for these.
    pub(super) fn forget_but(kept: &[vk::Instance]) {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let forgotten = shared.each_mut().map(|shared| shared.take_if(|instance| !kept.contains(&instance.raw.handle())));
        drop(shared);
        drop(forgotten);
    }

    /// One that nobody else has.
    pub(super) fn new(validated: bool) -> Result<Self, Off> {
        // SAFETY: this runs the initializers of the system's Vulkan loader, which has none that could do harm.
        let entry = unsafe { ash::Entry::load() }.map_err(|error| (format!("there is no Vulkan loader ({error})"), NO_LOADER_REMEDY))?;
        // SAFETY: the loader is loaded.
        let version = unsafe { entry.try_enumerate_instance_version() }.ok().flatten().unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_2 {
            return Err((format!("the Vulkan loader is of version {}, and 1.2 is needed", version_text(version)), NO_LOADER_REMEDY));
        }
        let application = vk::ApplicationInfo::default().engine_name(c"lapidary").api_version(vk::API_VERSION_1_3);
        let create = |info: vk::InstanceCreateInfo<'_>| {
            // SAFETY: what `info` points at lives until the call returns.
            unsafe { entry.create_instance(&info.application_info(&application), None) }.map_err(|result| match result {
                vk::Result::ERROR_INCOMPATIBLE_DRIVER => ("the Vulkan loader finds no driver".to_owned(), NO_DRIVER_REMEDY),
                vk::Result::ERROR_LAYER_NOT_PRESENT => (
                    "validation is asked for, and the Khronos validation layer is not installed".to_owned(),
                    "install it (on Debian and Ubuntu: vulkan-validationlayers), or leave Options::validation and LAPIDARY_VALIDATION alone",
                ),
                result => (format!("the Vulkan loader gives no instance ({result})"), NO_DRIVER_REMEDY),
            })
        };
        if !validated {
            return Ok(Self { raw: create(vk::InstanceCreateInfo::default())?, entry, validation: None });
        }
        let messages = Box::<Messages>::default();
        let mut messenger = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::WARNING | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(note))
            .user_data(std::ptr::from_ref::<Messages>(&messages).cast_mut().cast());
        // Newer layers are told by settings, and look at what shaders read and write only then; older ones know features instead.
        let yes = vk::TRUE.to_ne_bytes();
        let settings = [c"validate_sync", c"syncval_submit_time_validation", c"syncval_shader_accesses_heuristic"].map(|name| {
            let setting = vk::LayerSettingEXT::default().layer_name(LAYER).setting_name(name).ty(vk::LayerSettingTypeEXT::BOOL32);
            vk::LayerSettingEXT { value_count: 1, ..setting.values(&yes) }
        });
        let mut settings = vk::LayerSettingsCreateInfoEXT::default().settings(&settings);
        let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
        // SAFETY: the loader is loaded.
        let known = unsafe { entry.enumerate_instance_extension_properties(Some(LAYER)) }.unwrap_or_default();
        let takes_settings = known.iter().any(|extension| extension.extension_name_as_c_str() == Ok(ext::layer_settings::NAME));
        let (layers, extensions) = ([LAYER.as_ptr()], [ext::debug_utils::NAME.as_ptr()]);
        let info = vk::InstanceCreateInfo::default().enabled_layer_names(&layers).enabled_extension_names(&extensions);
        let info = if takes_settings { info.push_next(&mut settings) } else { info.push_next(&mut features) };
        // The messenger in the chain hears what happens while the instance is made and destroyed.
        let raw = create(info.push_next(&mut messenger))?;
        let functions = ext::debug_utils::Instance::new(&entry, &raw);
        messenger.p_next = std::ptr::null();
        // SAFETY: the instance has the extension; `messages` stays where it is until the messenger is destroyed.
        let messenger = unsafe { functions.create_debug_utils_messenger(&messenger, None) };
        let messenger = messenger.map_err(|result| (format!("validation cannot report ({result})"), NO_LOADER_REMEDY))?;
        Ok(Self { raw, entry, validation: Some(Validation { functions, messenger, messages }) })
    }

    /// The first thing that the validation layer found wrong.
    pub(super) fn complaint(&self) -> Option<String> {
        let validation = self.validation.as_ref()?;
        validation.messages.lock().unwrap_or_else(PoisonError::into_inner).first().cloned()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: all that was made from the instance is gone; the messages outlive both calls.
        unsafe {
            if let Some(Validation { functions, messenger, .. }) = &self.validation {
                functions.destroy_debug_utils_messenger(*messenger, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}

/// Called by the validation layer.
///
/// # Safety
/// `data` and `messages` are what the layer was told to pass.
unsafe extern "system" fn note(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    messages: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: the layer passes valid data.
    let text = unsafe { data.as_ref().and_then(|data| data.message_as_c_str()) };
    let text = text.map_or_else(String::new, |text| text.to_string_lossy().into_owned());
    // Not by a macro: what they print is kept back while a test runs.
    let _ = writeln!(std::io::stderr(), "vulkan validation: {text}");
    // SAFETY: the messages outlive the messenger and the instance.
    if let Some(messages) = unsafe { messages.cast::<Messages>().as_ref() } {
        messages.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
    vk::FALSE
}

/// A version as people write it.
pub(super) fn version_text(version: u32) -> String {
    let (major, minor, patch) = (vk::api_version_major(version), vk::api_version_minor(version), vk::api_version_patch(version));
    format!("{major}.{minor}.{patch}")
}
