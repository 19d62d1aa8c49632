//! Convolution as neural networks have it, which is a correlation: of images of channels, stored N × C × H × W, with filters stored
//! F × C / groups × taps × taps.
//!
//! ```text
//! out[n, f, y, x] = activation(bias[f] + Σ w[f, c, i, j] · in[n, first channel of f's group + c, place of (y, i), place of (x, j)])
//! ```

use super::window::Window;
use crate::dtype::DType;
use crate::ops::matmul::Activation;

/// A checked convolution. What is of one dimension has a height of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// Images.
    pub batch: u32,
    /// Parts of the channels, each of which has filters of its own.
    pub groups: u32,
    /// Channels of a group.
    pub channels: u32,
    /// Filters of a group.
    pub filters: u32,
    /// Along the height and along the width.
    pub windows: [Window; 2],
    /// What the input's, the filters' and the result's elements are.
    pub dtype: DType,
    /// Whether each filter has a number that is added.
    pub bias: bool,
    /// What is applied in the end.
    pub activation: Option<Activation>,
}

impl Problem {
    /// Places of a filter in an image.
    pub fn positions(&self) -> u64 {
        let [y, x] = self.windows;
        u64::from(y.steps) * u64::from(x.steps)
    }

    /// Elements of a channel.
    pub fn pixels(&self) -> u64 {
        let [y, x] = self.windows;
        u64::from(y.input) * u64::from(x.input)
    }

    /// Terms of each sum.
    pub fn terms(&self) -> u64 {
        let [y, x] = self.windows;
        u64::from(self.channels) * u64::from(y.taps) * u64::from(x.taps)
    }

    /// Elements of the result.
    pub fn elements(&self) -> u64 {
        u64::from(self.batch) * u64::from(self.groups) * u64::from(self.filters) * self.positions()
    }

    /// Multiplications to do, padding included.
    pub fn multiplications(&self) -> u64 {
        self.elements().saturating_mul(self.terms())
    }

    /// The least that kernels move: the images, the filters and the result.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn least_bytes(&self) -> u64 {
        let &Self { batch, groups, channels, filters, dtype, .. } = self;
        let images = u64::from(batch) * u64::from(groups) * u64::from(channels) * self.pixels();
        let weights = u64::from(groups) * u64::from(filters) * self.terms();
        (images + weights + self.elements()) * dtype.bytes()
    }
}
