//! Pools: the largest element of each window, or its mean, channel by channel.

use super::window::Window;
use crate::dtype::DType;

/// What is made of a window's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The largest of those inside of the input; NaN if one of them is, −∞ if there is none.
    Max,
    /// Where the largest is, or the first NaN, counted row by row over the whole input.
    MaxPlace,
    /// The mean of those inside of the input.
    Mean,
    /// The mean, what is padded counting as zeros.
    MeanPadded,
}

/// A checked pool. What is of fewer dimensions has a depth and a height of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Problem {
    /// What is made of a window.
    pub kind: Kind,
    /// Channels of all images.
    pub planes: u32,
    /// Along the depth, the height and the width.
    pub windows: [Window; 3],
    /// What the input's elements are.
    pub dtype: DType,
}

impl Problem {
    /// Elements of the result.
    pub fn elements(&self) -> u64 {
        self.windows.iter().fold(self.planes.into(), |elements, window| elements * u64::from(window.steps))
    }

    /// Elements of the input.
    pub fn inputs(&self) -> u64 {
        self.windows.iter().fold(self.planes.into(), |elements, window| elements * u64::from(window.input))
    }

    /// Elements that windows see, all together.
    pub fn seen(&self) -> u64 {
        self.windows.iter().fold(self.elements(), |seen, window| seen.saturating_mul(window.taps.into()))
    }

    /// What the result's elements are.
    pub fn result(&self) -> DType {
        if self.kind == Kind::MaxPlace { DType::U32 } else { self.dtype }
    }

    /// The least that a kernel moves: the input and the result.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn least_bytes(&self) -> u64 {
        self.inputs() * self.dtype.bytes() + self.elements() * self.result().bytes()
    }
}
