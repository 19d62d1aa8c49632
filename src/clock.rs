//! Time as a report states it: milliseconds of a clock that never goes back.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) struct Stopwatch(std::time::Instant);

#[cfg(not(target_arch = "wasm32"))]
impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    pub(crate) fn ms(&self) -> f64 {
        self.0.elapsed().as_secs_f64() * 1e3
    }
}

#[cfg(target_arch = "wasm32")]
pub(crate) struct Stopwatch(f64);

#[cfg(target_arch = "wasm32")]
#[wasm_bindgen::prelude::wasm_bindgen]
extern "C" {
    // The same in a page, a worker and Node.
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
}

#[cfg(target_arch = "wasm32")]
impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(now())
    }

    pub(crate) fn ms(&self) -> f64 {
        now() - self.0
    }
}
