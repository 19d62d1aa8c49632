//! Matrices in the host's memory, borrowed and owned.
//!
//! Natively that is a slice and a `Vec`. In the browser both are `Float32Array`s of the page, so that a queue can read an operand and
//! a result can be filled without either passing through this module's own memory.

#[cfg(not(target_arch = "wasm32"))]
pub use native::{Element, HostSlice, HostVec};
#[cfg(target_arch = "wasm32")]
pub use web::{HostSlice, HostVec};

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::borrow::Cow;
    use std::ops::Range;

    use half::f16;
    use half::slice::HalfFloatSliceExt;
    use half::vec::HalfFloatVecExt;

    use crate::dtype::{DType, Extent};
    use crate::error::{Error, Result};

    /// Row-major values that the caller holds: a slice, an array or a vector of f32 or of [`half::f16`].
    #[derive(Debug, Clone)]
    pub struct HostSlice<'a>(Slice<'a>);

    #[derive(Debug, Clone, Copy)]
    enum Slice<'a> {
        F32(&'a [f32]),
        F16(&'a [f16]),
    }

    /// What a matrix on the host may be made of.
    pub trait Element: sealed::Sealed + Sized {
        #[doc(hidden)]
        fn slice(values: &[Self]) -> HostSlice<'_>;
    }

    mod sealed {
        pub trait Sealed {}
        impl Sealed for f32 {}
        impl Sealed for half::f16 {}
    }

    impl Element for f32 {
        fn slice(values: &[Self]) -> HostSlice<'_> {
            HostSlice(Slice::F32(values))
        }
    }

    impl Element for f16 {
        fn slice(values: &[Self]) -> HostSlice<'_> {
            HostSlice(Slice::F16(values))
        }
    }

    impl<'a> HostSlice<'a> {
        /// Length in elements.
        pub fn len(&self) -> u64 {
            match self.0 {
                Slice::F32(values) => values.len() as u64,
                Slice::F16(values) => values.len() as u64,
            }
        }

        /// Whether there is nothing in it.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// What the elements are.
        pub fn dtype(&self) -> DType {
            match self.0 {
                Slice::F32(_) => DType::F32,
                Slice::F16(_) => DType::F16,
            }
        }

        /// A copy of the values in f32.
        pub(crate) fn to_vec(&self) -> Vec<f32> {
            self.widened().into_owned()
        }

        /// So many values from one on, which are there.
        pub(crate) fn part(&self, start: u64, length: u64) -> HostSlice<'a> {
            let range = start as usize..(start + length) as usize;
            match self.0 {
                Slice::F32(values) => f32::slice(&values[range]),
                Slice::F16(values) => f16::slice(&values[range]),
            }
        }

        /// A borrowed slice cannot change during a call: nothing to compare.
        pub(crate) fn fingerprint(&self) -> u64 {
            0
        }

        /// The values as they lie in memory.
        pub(crate) fn bytes(&self) -> &'a [u8] {
            match self.0 {
                Slice::F32(values) => bytemuck::cast_slice(values),
                Slice::F16(values) => bytemuck::cast_slice(values),
            }
        }

        /// The values in f32, which holds each f16.
        pub(crate) fn widened(&self) -> Cow<'a, [f32]> {
            match self.0 {
                Slice::F32(values) => Cow::Borrowed(values),
                Slice::F16(values) => Cow::Owned(values.to_f32_vec()),
            }
        }
    }

    /// Room for so many values.
    fn room<T>(extent: Extent) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let full = |_| Error::OutOfMemory { bytes: extent.bytes(), place: "the host" };
        values.try_reserve_exact(extent.elements as usize).map_err(full)?;
        Ok(values)
    }

    impl<'a, E: Element> From<&'a [E]> for HostSlice<'a> {
        fn from(values: &'a [E]) -> Self {
            E::slice(values)
        }
    }

    impl<'a, E: Element, const N: usize> From<&'a [E; N]> for HostSlice<'a> {
        fn from(values: &'a [E; N]) -> Self {
            E::slice(values)
        }
    }

    impl<'a, E: Element> From<&'a Vec<E>> for HostSlice<'a> {
        fn from(values: &'a Vec<E>) -> Self {
            E::slice(values)
        }
    }

    impl<'a> From<&'a HostVec> for HostSlice<'a> {
        fn from(values: &'a HostVec) -> Self {
            match &values.0 {
                Values::F32(values) => f32::slice(values),
                Values::F16(values) => f16::slice(values),
            }
        }
    }

    /// Row-major values that a call gives.
    #[derive(Debug, Clone, PartialEq)]
    pub struct HostVec(Values);

    #[derive(Debug, Clone, PartialEq)]
    enum Values {
        F32(Vec<f32>),
        F16(Vec<f16>),
    }

    impl HostVec {
        /// No values.
        pub(crate) fn empty(dtype: DType) -> Self {
            match dtype {
                DType::F32 => Vec::<f32>::new().into(),
                DType::F16 => Vec::<f16>::new().into(),
            }
        }

        /// Length in elements.
        pub fn len(&self) -> u64 {
            HostSlice::from(self).len()
        }

        /// Whether there is nothing in it.
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// What the elements are.
        pub fn dtype(&self) -> DType {
            HostSlice::from(self).dtype()
        }

        /// So many zeros, if there is memory for them.
        pub(crate) fn zeros(extent: Extent) -> Result<Self> {
            fn zeros<T: bytemuck::Zeroable + Clone>(extent: Extent) -> Result<Vec<T>> {
                let mut values = room(extent)?;
                values.resize(extent.elements as usize, T::zeroed());
                Ok(values)
            }
            match extent.dtype {
                DType::F32 => zeros::<f32>(extent).map(Self::from),
                DType::F16 => zeros::<f16>(extent).map(Self::from),
            }
        }

        /// No values, and room for so many.
        #[cfg(feature = "webgpu")]
        pub(crate) fn with_room(extent: Extent) -> Result<Self> {
            match extent.dtype {
                DType::F32 => room::<f32>(extent).map(Self::from),
                DType::F16 => room::<f16>(extent).map(Self::from),
            }
        }

        /// Adds values as they lie in memory.
        #[cfg(feature = "webgpu")]
        pub(crate) fn extend(&mut self, bytes: &[u8]) {
            match &mut self.0 {
                Values::F32(values) => values.extend_from_slice(bytemuck::cast_slice(bytes)),
                Values::F16(values) => values.extend_from_slice(bytemuck::cast_slice(bytes)),
            }
        }

        /// Puts a packed block of the same type over the rows from `row` on and those columns of this matrix, which has rows of `stride`
        /// elements.
        pub(crate) fn paste(&mut self, block: &Self, stride: u64, row: u64, columns: Range<u32>) {
            fn paste<T: Copy>(matrix: &mut [T], block: &[T], stride: u64, row: u64, columns: &Range<u32>) {
                let rows = matrix.chunks_mut(stride as usize).skip(row as usize);
                for (to, from) in rows.zip(block.chunks(columns.len())) {
                    to[columns.start as usize..columns.end as usize].copy_from_slice(from);
                }
            }
            match (&mut self.0, &block.0) {
                (Values::F32(matrix), Values::F32(block)) => paste(matrix, block, stride, row, &columns),
                (Values::F16(matrix), Values::F16(block)) => paste(matrix, block, stride, row, &columns),
                _ => {}
            }
        }

        /// The values in f32: costs nothing if that is what they are, and changes none.
        pub fn into_vec(self) -> Vec<f32> {
            match self.0 {
                Values::F32(values) => values,
                Values::F16(values) => values.to_f32_vec(),
            }
        }

        /// The values in f16: costs nothing if that is what they are; f32 is rounded to the nearest, of two to the even one.
        pub fn into_f16(self) -> Vec<f16> {
            match self.0 {
                Values::F32(values) => Vec::from_f32_slice(&values),
                Values::F16(values) => values,
            }
        }

        /// The values to be written, if they are f32.
        pub(crate) fn as_f32_mut(&mut self) -> Option<&mut [f32]> {
            match &mut self.0 {
                Values::F32(values) => Some(values),
                Values::F16(_) => None,
            }
        }

        /// The values as they lie in memory, to be written.
        pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
            match &mut self.0 {
                Values::F32(values) => bytemuck::cast_slice_mut(values),
                Values::F16(values) => bytemuck::cast_slice_mut(values),
            }
        }

        /// Puts values of the same number in place of these, rounded if these are f16.
        pub(crate) fn fill_from(&mut self, from: &HostSlice<'_>) {
            match (&mut self.0, from.0) {
                (Values::F32(to), Slice::F32(from)) => to.copy_from_slice(from),
                (Values::F32(to), Slice::F16(from)) => from.convert_to_f32_slice(to),
                (Values::F16(to), Slice::F32(from)) => to.convert_from_f32_slice(from),
                (Values::F16(to), Slice::F16(from)) => to.copy_from_slice(from),
            }
        }
    }

    impl From<Vec<f32>> for HostVec {
        fn from(values: Vec<f32>) -> Self {
            Self(Values::F32(values))
        }
    }

    impl From<Vec<f16>> for HostVec {
        fn from(values: Vec<f16>) -> Self {
            Self(Values::F16(values))
        }
    }
}

#[cfg(target_arch = "wasm32")]
mod web {
    use std::marker::PhantomData;

    use js_sys::Float32Array;

    use crate::dtype::DType;

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

        /// What the elements are.
        pub fn dtype(&self) -> DType {
            DType::F32
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
        pub(crate) fn empty(_: DType) -> Self {
            Self(Float32Array::new_with_length(0))
        }

        /// The values, copied into this module's memory.
        pub fn into_vec(self) -> Vec<f32> {
            self.0.to_vec()
        }
    }
}
