//! Large operands go to the device through a ring of buffers that the page writes into; `ring.js` turns it.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "/src/backend/webgpu/ring.js")]
extern "C" {
    type State;
    fn open_ring(device: &JsValue, most: u32) -> State;
    fn ring_bytes(ring: &State) -> f64;
    fn write_by(ring: &State, to: &JsValue, bytes: &Uint8Array) -> u32;
    fn trim_ring(ring: &State);
}

/// From this size on an operand is worth it.
const LEAST_BYTES: u32 = 1 << 18;
/// The most that the ring has, as far as the pool's budget goes.
const MOST_BYTES: u64 = 1 << 26;

/// A device's ring.
pub(super) struct Ring(State);

impl Ring {
    /// A ring without buffers, which never has more than a quarter of the pool's budget.
    pub(super) fn new(device: &wgpu::Device, pool_bytes: u64) -> Self {
        let device = device.as_webgpu().map_or(JsValue::UNDEFINED, |device| device.clone().into());
        Self(open_ring(&device, ((pool_bytes / 4).min(MOST_BYTES) >> 20) as u32))
    }

    /// Writes as much as there is room for to the start of a buffer; gives how many bytes that is.
    pub(super) fn write(&self, to: &JsValue, bytes: &Uint8Array) -> u32 {
        if bytes.length() < LEAST_BYTES { 0 } else { write_by(&self.0, to, bytes) }
    }

    /// Bytes of its buffers.
    pub(super) fn bytes(&self) -> u64 {
        ring_bytes(&self.0) as u64
    }

    /// Gives what lies idle back to the system.
    pub(super) fn trim(&self) {
        trim_ring(&self.0);
    }
}
