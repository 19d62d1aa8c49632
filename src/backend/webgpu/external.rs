//! Buffers that the page made itself on this device: values are copied from them and into them by the GPU, which sees nothing of the host.
//! `npm/options.js` has checked their use and size, so what is left to find out is whose they are and whether they are still there.

use std::sync::Arc;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::batch::Verdict;
use super::buffer::Buffer;
use super::{Health, WebGpu};
use crate::backend::Backend;
use crate::error::{Error, Result};

#[wasm_bindgen(module = "/src/backend/webgpu/external.js")]
extern "C" {
    fn copy_between(device: &JsValue, from: &JsValue, from_bytes: f64, to: &JsValue, to_bytes: f64, bytes: f64) -> Promise;
    fn on_shortage(device: &JsValue, note: &JsValue);
}

/// Has shortages that no error scope is told remembered. wgpu's own listener panics at an error of a kind that it does not know, such as one inside
/// the driver.
pub(super) fn note_shortages(device: &wgpu::Device, health: &Arc<Health>) {
    let health = Arc::clone(health);
    let note = Closure::<dyn Fn()>::new(move || health.note_shortage());
    if let Some(device) = device.as_webgpu() {
        on_shortage(device, &note.into_js_value());
    }
}

/// A copy under way.
pub(crate) struct Copying {
    copy: Promise,
    /// How often there had been no memory before.
    shortages: u32,
    /// What is to be known of the values, if they were queued.
    queued: Option<Arc<Verdict>>,
}

impl WebGpu {
    /// The browser's device, for the page, whose own it is from now on too.
    pub(crate) fn lent(&self) -> JsValue {
        self.is_pages.set(true);
        self.handle()
    }

    fn handle(&self) -> JsValue {
        self.device.as_webgpu().map_or(JsValue::UNDEFINED, |device| device.clone().into())
    }

    /// A buffer with so many of the bytes of the page's, from one on.
    pub(crate) fn copy_from(&self, from: &JsValue, from_bytes: f64, bytes: u64) -> Result<(Buffer, Copying)> {
        let shortages = self.shortages();
        if self.may_lack(bytes) {
            // It cannot be tried again: by then the page may have written there.
            self.trim();
        }
        let buffer = self.storage(bytes)?;
        self.batches.submit_users(&buffer);
        let copy = copy_between(&self.handle(), from, from_bytes, browsers(&buffer)?, 0.0, words(bytes));
        Ok((buffer, Copying { copy, shortages, queued: None }))
    }

    /// The same once it is known that the copy went well.
    pub(crate) async fn copied_from(&self, (mut buffer, copying): (Buffer, Copying)) -> Result<Buffer> {
        let copied = self.copied(copying).await;
        if copied.is_err() {
            // It may be one that was not to be had.
            buffer.discard();
        }
        copied.map(|()| buffer)
    }

    /// Copies so many bytes of a buffer into the page's.
    pub(crate) fn copy_into(&self, buffer: &Buffer, to: &JsValue, to_bytes: f64, bytes: u64) -> Result<Copying> {
        self.batches.submit();
        let copy = copy_between(&self.handle(), browsers(buffer)?, buffer.at_bytes() as f64, to, to_bytes, words(bytes));
        Ok(Copying { copy, shortages: self.shortages(), queued: buffer.verdict.get().cloned() })
    }

    /// Waits until it is known whether a copy went well.
    pub(crate) async fn copied(&self, Copying { copy, shortages, queued }: Copying) -> Result<()> {
        let fault = JsFuture::from(copy).await.ok().and_then(|fault| fault.as_f64());
        if let Some(verdict) = queued {
            self.settle(&verdict).await?;
        }
        self.settled()?;
        match fault {
            Some(0.0) => Ok(()),
            // It may be the copy that there was no memory for.
            _ if self.shortages() != shortages => Err(self.out_of_memory()),
            Some(1.0) => Err(Box::new(Error::InvalidType {
                argument: "the GPUBuffer".to_owned(),
                expected: "one of the same device, which `device` of the handle gives",
                found: "one of another".to_owned(),
            })),
            _ => Err(Box::new(Error::Disposed { what: "GPUBuffer" })),
        }
    }
}

/// The browser's own name of a buffer.
fn browsers(buffer: &Buffer) -> Result<&JsValue> {
    Ok(buffer.raw().as_webgpu().ok_or_else(|| Error::internal("wgpu runs on something other than WebGPU"))?)
}

/// Copies are of whole words.
fn words(bytes: u64) -> f64 {
    bytes.next_multiple_of(4) as f64
}
