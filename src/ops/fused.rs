//! An operation and what is computed of each element of its result, which one kernel does.

use super::{Op, map};

/// A checked pair.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// What comes first, of f32.
    pub core: Op,
    /// How many inputs it has; those of what follows come behind them.
    pub core_inputs: u8,
    /// What follows, whose first input is the first's result, element by element.
    pub end: map::Problem,
}

impl Fused {
    /// The least that kernels move: what comes between them does not.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn least_bytes(&self) -> u64 {
        let between = self.core.elements() * crate::dtype::DType::F32.bytes();
        (self.core.least_bytes() - between) + (self.end.least_bytes() - between)
    }
}
