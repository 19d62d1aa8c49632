//! Opens a context that can draw to float textures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::commands::{About, Commands, NoContext};
use super::{WebGl2, faults::Found, pipeline::Programs};
use crate::backend::pool::Pool;
use crate::info::{BackendId, Caps, DeviceInfo, DeviceKind, OtherBackend, has_word, is_software_name};
use crate::options::{Options, PowerPreference};
use crate::plan::matmul::FragmentCaps;
use crate::web::parts::{self, Part};

fn off(reason: &str, remedy: &str) -> OtherBackend {
    OtherBackend::off(BackendId::WebGl2, reason, remedy)
}

/// Opens a device, or says why there is none.
pub(crate) async fn open(options: &Options) -> Result<(WebGl2, DeviceInfo), OtherBackend> {
    parts::load_backend(Part::WebGl2, BackendId::WebGl2).await?;
    open_context(options)
}

/// Leads into the part of the package.
#[inline(never)]
fn open_context(options: &Options) -> Result<(WebGl2, DeviceInfo), OtherBackend> {
    let taken_away = || off("the browser took the WebGL2 context away at once", "reload the page, or restart the browser");
    let commands = Commands::open(match options.power_preference {
        PowerPreference::HighPerformance => "high-performance",
        PowerPreference::LowPower => "low-power",
    });
    let commands = commands.map_err(|why| match why {
        NoContext::Refused => {
            off("no WebGL2 context was given", "turn on hardware acceleration in the browser's settings, or update the graphics driver")
        }
        NoContext::Lost => taken_away(),
    })?;
    let About { draws_to_floats, fragment, side, name, vendor } = commands.describe();
    if side == 0 {
        return Err(taken_away());
    }
    if !draws_to_floats {
        return Err(off("the GPU cannot draw to float textures (EXT_color_buffer_float)", "update the browser or the graphics driver"));
    }
    let side_texels = u64::from(side);
    let caps = Caps { max_texture_size: side, max_buffer_bytes: side_texels * side_texels * 16, ..Caps::UNLIMITED };
    let device = WebGl2 {
        fragment: known_to_pay(fragment, &name),
        caps: caps.clone(),
        programs: Programs::default(),
        pool: Pool::new(options.pool_bytes),
        is_pool_sound: Cell::new(true),
        verdict: RefCell::default(),
        found: Found::default(),
        queue: RefCell::default(),
        commands: Rc::new(commands),
    };
    let info = DeviceInfo {
        backend: BackendId::WebGl2,
        kind: if is_software_name(&name) { DeviceKind::Software } else { DeviceKind::Gpu },
        name,
        vendor,
        architecture: String::new(),
        caps,
        features: vec!["EXT_color_buffer_float"],
        reason: String::new(),
        others: Vec::new(),
        generation: 1,
    };
    Ok((device, info))
}

/// Of what there is, what is known to make products faster: it was measured on NVIDIA's GPUs, and where a CPU emulates one. Other GPUs have
/// fewer registers for larger blocks, and read uniforms that are indexed in a loop as they read textures. By way of Direct3D a buffer that was
/// written on the GPU goes through the host to become one of uniforms.
fn known_to_pay(fragment: FragmentCaps, name: &str) -> FragmentCaps {
    match name {
        _ if is_software_name(name) => fragment,
        _ if !has_word(name, "nvidia") => FragmentCaps { targets: 4, ..fragment },
        _ if has_word(name, "direct3d") => FragmentCaps { block_bytes: 0, ..fragment },
        _ => fragment,
    }
}
