//! The discrete Fourier transform along one dimension, of any length.
//!
//! ```text
//! X[k] = Σ x[i] · exp(−2πi · i·k / n)          the inverse: x[i] = (1 / n) · Σ X[k] · exp(2πi · i·k / n)
//! ```

/// What lies along the dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Complex numbers, each two neighbours.
    Complex,
    /// Real numbers.
    Real,
    /// Of complex numbers those up to ⌊n / 2⌋: the others are their conjugates, n − k that of k.
    Half,
}

impl Form {
    /// Numbers of an element.
    pub fn parts(self) -> u64 {
        if self == Self::Real { 1 } else { 2 }
    }

    /// How many elements there are of a transform of so many.
    pub fn stored(self, length: u32) -> u32 {
        if self == Self::Half { length / 2 + 1 } else { length }
    }
}

/// A checked transform: of an array outer × length × inner, in f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Elements of the dimensions before.
    pub outer: u32,
    /// n.
    pub length: u32,
    /// Elements of the dimensions behind.
    pub inner: u32,
    /// How many elements the input has along the dimension: what lacks is zero, what is too much is not read.
    pub input: u32,
    /// Whether it is the inverse.
    pub inverse: bool,
    /// What the input is.
    pub reads: Form,
    /// What the result is.
    pub gives: Form,
}

impl Problem {
    /// Numbers of the result.
    pub fn elements(&self) -> u64 {
        self.lines() * u64::from(self.gives.stored(self.length)) * self.gives.parts()
    }

    /// Numbers of the input.
    pub fn inputs(&self) -> u64 {
        self.lines() * u64::from(self.input) * self.reads.parts()
    }

    /// Transforms.
    pub fn lines(&self) -> u64 {
        u64::from(self.outer) * u64::from(self.inner)
    }

    /// Multiplications, about as many as a power of two takes.
    pub fn multiplications(&self) -> u64 {
        self.lines() * u64::from(self.length) * 2 * u64::from(self.length.max(2).ilog2())
    }

    /// The least that a kernel moves: the input and the result.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn least_bytes(&self) -> u64 {
        (self.inputs() + self.elements()) * 4
    }
}
