//! The seam to Chromium's subgroup matrix, which is asked of the browser past wgpu: that neither requests the feature nor reads WGSL there, so
//! that kernels may use what is experimental. `matrix.js` does the asking, or takes the device that the package has had made early. Where the feature is gone, or its names have
//! changed, there is no unit, and nothing else changes.

use std::cell::RefCell;

use js_sys::Function;
use wasm_bindgen::prelude::*;

use crate::dtype::DType;
use crate::info::{Dialect, MatrixUnit};
use crate::options::PowerPreference;
use crate::web::parts::{self, Loader, Part};

#[wasm_bindgen(module = "/src/backend/webgpu/matrix.js")]
extern "C" {
    fn ask_for_matrix_units(load: Option<&Loader>, part: &str, make: Option<&Function>, saves_power: bool);
    #[wasm_bindgen(js_name = matrix_unit)]
    fn subgroup_of_unit(device: &JsValue) -> u32;
    /// Whether WGSL has functions for packed 8-bit integers here, which wgpu does not ask either.
    pub(super) fn has_packed_dot() -> bool;
}

thread_local! {
    /// The package's function that gives the device which it has had made, if that is what a descriptor asks for, or asks for another.
    static MAKER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Has devices made by that function, of a descriptor and a function that asks the browser.
#[wasm_bindgen]
pub fn set_maker(maker: Function) {
    MAKER.set(Some(maker));
}

/// Has the request for a device that is made next ask for matrix units too. Where the adapter has them, what multiplies by them is loaded while
/// the browser makes the device.
pub(super) fn ask(power_preference: PowerPreference) {
    let saves_power = power_preference == PowerPreference::LowPower;
    MAKER.with_borrow(|maker| parts::with_loader(|loader| ask_for_matrix_units(loader, Part::Matrix.name(), maker.as_ref(), saves_power)));
}

/// The unit that kernels can use, if the device came with one.
pub(super) fn unit(device: &wgpu::Device) -> Option<MatrixUnit> {
    let subgroup_size = subgroup_of_unit(device.as_webgpu()?);
    (subgroup_size > 0).then_some(MatrixUnit {
        m: 16,
        n: 16,
        k: 16,
        operands: DType::F16,
        sums: DType::F32,
        subgroup_size,
        dialect: Dialect::Subgroup,
    })
}
