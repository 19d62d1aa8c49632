//! Tuning in the browser: measured on request, kept in its cache storage, which pages and workers share, and read when a device is opened.
//!
//! What is kept is text for each device and version of the crate. Text that is none of these tiles, storage that is denied or full: all of it counts as
//! nothing kept, and is never an error.

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::{SCHEMA, Trial, decide, measure};
use crate::backend::Backend;
use crate::backend::device::{Device, Opened};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::info::DeviceInfo;
use crate::plan::tuned::Tuned;

#[wasm_bindgen(module = "/src/tune/storage.js")]
extern "C" {
    fn read() -> js_sys::Promise;
    fn find(all: &JsValue, key: &str) -> JsValue;
    fn keep(key: &str, tiles: &str) -> js_sys::Promise;
}

/// How long storage may take to answer before its word does not count.
const PATIENCE_MS: u32 = 500;

/// What is between tiles, of which those that are the planner's to choose are empty.
const BETWEEN: &str = ",";

/// What tells a device and a version of the crate from others.
fn key(info: &DeviceInfo) -> String {
    let DeviceInfo { backend, name, vendor, architecture, .. } = info;
    [&SCHEMA.to_string(), env!("CARGO_PKG_VERSION"), backend.name(), vendor, architecture, name].join("/")
}

/// What is kept, on its way.
pub(crate) struct Kept(js_sys::Promise);

impl Kept {
    /// Asks for it.
    pub(crate) fn read() -> Self {
        Self(read())
    }

    /// What there is of a device that has these tiles.
    pub(crate) async fn find(self, info: &DeviceInfo, tiles: &[String]) -> Tuned {
        let all = crate::clock::within(PATIENCE_MS, JsFuture::from(self.0)).await;
        let text = all.and_then(Result::ok).and_then(|all| find(&all, &key(info)).as_string());
        let named = |text: String| Tuned::of_names(text.split(BETWEEN).map(Some), tiles);
        text.and_then(named).unwrap_or_default()
    }
}

async fn kept(info: &DeviceInfo, tuned: &Tuned, tiles: &[String]) -> bool {
    let names = tuned.names(tiles).map(Option::unwrap_or_default);
    let kept = crate::clock::within(4 * PATIENCE_MS, JsFuture::from(keep(&key(info), &names.join(BETWEEN)))).await;
    matches!(kept, Some(Ok(kept)) if kept.is_truthy())
}

impl Gpu {
    /// Measures, takes what is faster than the defaults from now on, and keeps it; tells the trials, what was decided, and whether it is kept.
    pub(crate) async fn tune(&self, between: impl AsyncFn() -> Result<()>) -> Result<(Vec<Trial>, Tuned, bool)> {
        let mut opened = self.current()?;
        if opened.device.lost().is_some() {
            opened = self.reopen(&opened).await?;
        }
        let (trials, _) = measure(self, &opened, between).await?;
        let tuned = decide(&trials);
        Ok((trials, tuned, take(&opened, tuned).await))
    }

    /// Goes back to the defaults; tells whether what was kept is no more.
    pub(crate) async fn clear_tuning(&self) -> Result<bool> {
        Ok(take(&*self.current()?, Tuned::NONE).await)
    }
}

/// Has a device use these tiles, and keeps them.
async fn take(opened: &Opened, tuned: Tuned) -> bool {
    let Device::WebGpu(device) = &opened.device else { return false };
    device.set_tuned(tuned);
    kept(&opened.info, &tuned, &device.tiles()).await
}
