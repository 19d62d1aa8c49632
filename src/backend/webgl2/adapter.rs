//! Opens a context that can draw to float textures.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::{Faults, Gl, WebGl2, pipeline::Programs};
use crate::backend::pool::Pool;
use crate::info::{BackendId, Caps, DeviceInfo, DeviceKind, OtherBackend, Standing, is_software_name};
use crate::options::{Options, PowerPreference};

#[wasm_bindgen(module = "/src/backend/webgl2/gl.js")]
extern "C" {
    fn context(power_preference: &str) -> Option<Gl>;
    fn describe(gl: &Gl) -> Array;
}

/// Opens a device, or says why there is none.
pub(crate) fn open(options: &Options) -> Result<(WebGl2, DeviceInfo), OtherBackend> {
    let off = |reason: &str, remedy: &str| OtherBackend {
        backend: BackendId::WebGl2,
        standing: Standing::Off,
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    };
    let gl = context(match options.power_preference {
        PowerPreference::HighPerformance => "high-performance",
        PowerPreference::LowPower => "low-power",
    });
    let Some(gl) = gl else {
        return Err(off(
            "no WebGL2 context was given",
            "turn on hardware acceleration in the browser's settings, or update the graphics driver",
        ));
    };
    let about = describe(&gl);
    let draws_to_floats = about.get(0).is_truthy();
    let side = about.get(1).as_f64().unwrap_or_default() as u32;
    let text = |index| about.get(index).as_string().unwrap_or_default();
    let side_texels = u64::from(side);
    let caps = Caps { max_texture_size: side, max_buffer_bytes: side_texels * side_texels * 16, ..Caps::UNLIMITED };
    // From here on dropping it gives the context back.
    let device =
        WebGl2 { caps: caps.clone(), programs: Programs::default(), pool: Pool::new(options.pool_bytes), faults: Faults::default(), gl };
    if side == 0 {
        return Err(off("the browser took the WebGL2 context away at once", "reload the page, or restart the browser"));
    }
    if !draws_to_floats {
        return Err(off("the GPU cannot draw to float textures (EXT_color_buffer_float)", "update the browser or the graphics driver"));
    }
    let name = text(2);
    let info = DeviceInfo {
        backend: BackendId::WebGl2,
        kind: if is_software_name(&name) { DeviceKind::Software } else { DeviceKind::Gpu },
        name,
        vendor: text(3),
        architecture: String::new(),
        caps,
        features: vec!["EXT_color_buffer_float"],
        reason: String::new(),
        others: Vec::new(),
        generation: 1,
    };
    Ok((device, info))
}
