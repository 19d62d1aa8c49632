//! Matrices in the host's memory, borrowed and owned.
//!
//! Natively that is a slice and a `Vec`. In the browser both are `Float32Array`s of the page, so that a queue can read an operand and
//! a result can be filled without either passing through this module's own memory.

#[cfg(not(target_arch = "wasm32"))]
pub use native::{HostSlice, HostVec};
#[cfg(target_arch = "wasm32")]
pub use web::{HostSlice, HostVec};

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::ops::Range;

    use crate::error::{Error, Result};

    /// Row-major f32 values that the caller holds.
    #[derive(Debug, Clone)]
    pub struct HostSlice<'a>(pub(crate) &'a [f32]);

    impl<'a> HostSlice<'a> {
        /// Length in elements.
        pub fn len(&self) -> u64 {
            self.0.len() as u64
        }

        /// Whether there is nothing in it.
        pub fn is_empty(&self) -> bool {
            self.0.is_empty()
        }

        /// A copy of the values.
        pub(crate) fn to_vec(&self) -> Vec<f32> {
            self.0.to_vec()
        }

        /// So many values from one on, which are there.
        pub(crate) fn part(&self, start: u64, length: u64) -> HostSlice<'a> {
            Self(&self.0[start as usize..(start + length) as usize])
        }

        /// A borrowed slice cannot change during a call: nothing to compare.
        pub(crate) fn fingerprint(&self) -> u64 {
            0
        }
    }

    impl<'a, T: AsRef<[f32]> + ?Sized> From<&'a T> for HostSlice<'a> {
        fn from(values: &'a T) -> Self {
            Self(values.as_ref())
        }
    }

    /// Row-major f32 values that a call gives.
    #[derive(Debug, Clone, PartialEq)]
    pub struct HostVec(pub(crate) Vec<f32>);

    impl HostVec {
        /// No values.
        pub(crate) fn empty() -> Self {
            Self(Vec::new())
        }

        /// So many zeros, if there is memory for them.
        pub(crate) fn zeros(elements: u64) -> Result<Self> {
            let mut values = Vec::new();
            let full = |_| Error::OutOfMemory { bytes: elements.saturating_mul(4), place: "the host" };
            values.try_reserve_exact(elements as usize).map_err(full)?;
            values.resize(elements as usize, 0.0);
            Ok(Self(values))
        }

        /// Puts a packed block over the rows from `row` on and those columns of this matrix, which has rows of `stride` elements.
        pub(crate) fn paste(&mut self, block: &Self, stride: u64, row: u64, columns: Range<u32>) {
            let rows = self.0.chunks_mut(stride as usize).skip(row as usize);
            for (to, from) in rows.zip(block.0.chunks(columns.len())) {
                to[columns.start as usize..columns.end as usize].copy_from_slice(from);
            }
        }

        /// The values; costs nothing.
        pub fn into_vec(self) -> Vec<f32> {
            self.0
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod web {
    use std::marker::PhantomData;

    use js_sys::Float32Array;

    /// Row-major f32 values that the caller holds.
    #[derive(Debug, Clone)]
    pub struct HostSlice<'a>(pub(crate) Float32Array, PhantomData<&'a [f32]>);

    impl HostSlice<'_> {
        /// Length in elements.
        pub fn len(&self) -> u64 {
            u64::from(self.0.length())
        }

        /// Whether there is nothing in it.
        pub fn is_empty(&self) -> bool {
            self.0.length() == 0
        }

        /// A copy of the values, in this module's memory.
        pub(crate) fn to_vec(&self) -> Vec<f32> {
            self.0.to_vec()
        }

        /// Tells a changed array from an unchanged one by its length and values spread over it: cheap, and meant for the rare
        /// replay after a device loss only.
        pub(crate) fn fingerprint(&self) -> u64 {
            const SAMPLES: u32 = 64;
            let length = self.0.length();
            let step = (length / SAMPLES).max(1);
            let mut hash = u64::from(length);
            for index in (0..length).step_by(step as usize).chain(length.checked_sub(1)) {
                let bits = u64::from(self.0.get_index(index).to_bits());
                hash = (hash.rotate_left(7) ^ bits).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            }
            hash
        }
    }

    impl From<Float32Array> for HostSlice<'static> {
        fn from(values: Float32Array) -> Self {
            Self(values, PhantomData)
        }
    }

    impl<'a, T: AsRef<[f32]> + ?Sized> From<&'a T> for HostSlice<'a> {
        /// Copies: a slice of this module's memory would move when the memory grows.
        fn from(values: &'a T) -> Self {
            Self(Float32Array::from(values.as_ref()), PhantomData)
        }
    }

    /// Row-major f32 values that a call gives.
    #[derive(Debug, Clone)]
    pub struct HostVec(pub(crate) Float32Array);

    impl HostVec {
        /// No values.
        pub(crate) fn empty() -> Self {
            Self(Float32Array::new_with_length(0))
        }

        /// The values, copied into this module's memory.
        pub fn into_vec(self) -> Vec<f32> {
            self.0.to_vec()
        }
    }
}
