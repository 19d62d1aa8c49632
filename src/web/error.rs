//! Errors as JavaScript has them: real `Error`s with a stable `code`.

use wasm_bindgen::JsValue;

use super::convert::set;
use crate::error::Error;

impl From<Error> for JsValue {
    fn from(error: Error) -> Self {
        let out = js_sys::Error::new(&error.to_string());
        out.set_name(if error == Error::Aborted { "AbortError" } else { "LapidaryError" });
        set(&out, "code", error.code().into());
        out.into()
    }
}
