//! What launches are told, gathered into one buffer.

use std::sync::Arc;

use super::super::buffer::{PARAMS, Raw};
use super::super::launch::PARAMS_STRIDE_BYTES;

/// Launches whose parameters are on the device at once.
const PARAMS_SLOTS: usize = 256;

/// The parameters of launches. They are written at the end of a batch, and over others only once those are submitted.
#[derive(Default)]
pub(super) struct Params {
    pub buffer: Option<Arc<Raw>>,
    pub slots: usize,
    /// What the buffer has to hold.
    pub bytes: Vec<u8>,
    /// How much of it was written.
    written: usize,
    /// Counts the fillings.
    pub filling: u32,
}

impl Params {
    /// Empties the buffer, and makes one that has room for so many launches if it has not.
    pub(super) fn clear(&mut self, count: usize, device: &wgpu::Device) {
        self.bytes.clear();
        self.written = 0;
        self.filling += 1;
        if self.buffer.is_none() || self.slots < count {
            self.slots = count.max(PARAMS_SLOTS);
            self.buffer = Some(Arc::new(Raw::new(device, (self.slots * PARAMS_STRIDE_BYTES) as u64, PARAMS)));
        }
    }

    /// Lets go of the buffer, and of all that stands in it.
    pub(super) fn renew(&mut self) {
        *self = Self { filling: self.filling + 1, ..Self::default() };
    }

    /// Adds what one launch is told, in pieces that start at multiples of 16 bytes; gives where.
    pub(super) fn add(&mut self, pieces: [&[u8]; 2]) -> usize {
        let at = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
            self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(PARAMS_STRIDE_BYTES), 0);
        at
    }

    pub(super) fn write(&mut self, queue: &wgpu::Queue) {
        if let Some(buffer) = &self.buffer
            && self.written < self.bytes.len()
        {
            queue.write_buffer(buffer, self.written as u64, &self.bytes[self.written..]);
            self.written = self.bytes.len();
        }
    }
}
