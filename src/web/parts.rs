//! What of the package is loaded when it is first needed: `scripts/split.mjs` cuts the module into a core that multiplies and these parts,
//! of which `scripts/parts.json` says what is in them.
//!
//! A part is entered by its gates alone, functions that are not inlined. Whoever calls one has loaded its part before: Rust those below,
//! and JavaScript those whose gates are exports, or products of 8-bit integers.

use std::cell::{Cell, RefCell};

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::backend::BoxFuture;
use crate::info::{BackendId, OtherBackend};

/// A part by its name. What a backend has of the operations are parts too, which the loader adds to those of the two.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// All operations but products, and expressions.
    Operations,
    /// The CPU's backend.
    Cpu,
    /// The backend of that name.
    #[cfg(feature = "webgl2")]
    WebGl2,
    /// Products by the matrix units that some GPUs have.
    #[cfg(feature = "webgpu")]
    Matrix,
}

impl Part {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Cpu => "cpu",
            #[cfg(feature = "webgl2")]
            Self::WebGl2 => "webgl2",
            #[cfg(feature = "webgpu")]
            Self::Matrix => "matrix",
        }
    }
}

#[wasm_bindgen]
extern "C" {
    /// The package's function that loads a part by its name: nothing for one that is there, else a promise, which an `Error` may reject.
    pub type Loader;
    #[wasm_bindgen(method)]
    fn call(this: &Loader, this_arg: &JsValue, name: &str) -> Option<Promise>;
}

thread_local! {
    /// None where the module is whole.
    static LOADER: RefCell<Option<Loader>> = const { RefCell::new(None) };
    /// A bit for each part that is there: to ask JavaScript takes as long as a small operation does.
    static LOADED: Cell<u32> = const { Cell::new(0) };
}

/// Has parts loaded by that function.
#[wasm_bindgen]
pub fn set_loader(loader: Loader) {
    LOADER.set(Some(loader));
}

/// Hands the function that loads parts to others that call it; None where the module is whole.
#[cfg(feature = "webgpu")]
pub(crate) fn with_loader(then: impl FnOnce(Option<&Loader>)) {
    LOADER.with_borrow(|loader| then(loader.as_ref()));
}

/// Loads a part, unless it is there. It fails with an `Error` that says why.
pub(crate) fn load(part: Part) -> BoxFuture<'static, Result<(), JsValue>> {
    Box::pin(async move {
        if LOADED.get() >> part as u32 & 1 != 0 {
            return Ok(());
        }
        if let Some(loading) = LOADER.with_borrow(|loader| loader.as_ref().and_then(|loader| loader.call(&JsValue::NULL, part.name()))) {
            JsFuture::from(loading).await?;
        }
        LOADED.set(LOADED.get() | 1 << part as u32);
        Ok(())
    })
}

/// Loads the part that a backend is in, or says why it is not there.
pub(crate) async fn load_backend(part: Part, backend: BackendId) -> Result<(), OtherBackend> {
    load(part).await.map_err(|error| {
        let reason: String = js_sys::Error::from(error).message().into();
        OtherBackend::off(backend, &reason, "try again when the page is online")
    })
}
