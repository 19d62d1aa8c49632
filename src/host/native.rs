//! A slice of the caller's, and a vector for the caller.

use std::borrow::Cow;
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;

use super::element::{Element, sealed};
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};

/// Row-major values that the caller holds: a slice, an array or a vector of f32, [`half::f16`], i32, u32, bool, i8 or u8.
#[derive(Debug, Clone)]
pub struct HostSlice<'a>(Slice<'a>);

#[derive(Debug, Clone)]
enum Slice<'a> {
    F32(&'a [f32]),
    F16(&'a [f16]),
    I32(&'a [i32]),
    U32(&'a [u32]),
    /// Words of 0 and 1, as devices have them.
    Bool(Cow<'a, [u32]>),
    I8(&'a [i8]),
    U8(&'a [u8]),
    /// Bytes of 0 and 1, as the CPU keeps them.
    Bytes(&'a [u8]),
}

macro_rules! elements {
    ($($name:ident: $element:ty),+) => { $(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const DTYPE: DType = DType::$name;

            fn slice(values: &[Self]) -> HostSlice<'_> {
                HostSlice(Slice::$name(values))
            }

            fn owned(values: Vec<Self>) -> HostVec {
                HostVec(Values::$name(values))
            }

            fn vec(values: HostVec) -> Option<Vec<Self>> {
                if let Values::$name(values) = values.0 { Some(values) } else { None }
            }
        }
    )+ };
}

elements!(F32: f32, F16: f16, I32: i32, U32: u32, I8: i8, U8: u8);

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn slice(values: &[Self]) -> HostSlice<'_> {
        HostSlice(Slice::Bool(values.iter().map(|&value| u32::from(value)).collect()))
    }

    fn owned(values: Vec<Self>) -> HostVec {
        HostVec(Values::Bool(values.into_iter().map(u32::from).collect()))
    }

    fn vec(values: HostVec) -> Option<Vec<Self>> {
        if let Values::Bool(values) = values.0 { Some(values.into_iter().map(|word| word != 0).collect()) } else { None }
    }
}

/// The same for each type of elements, whose values are then slices or vectors.
macro_rules! each {
    ($on:expr, $kind:ident, $values:ident => $do:expr) => {
        match $on {
            $kind::F32($values) => $do,
            $kind::F16($values) => $do,
            $kind::I32($values) => $do,
            $kind::U32($values) => $do,
            $kind::Bool($values) => $do,
            $kind::I8($values) => $do,
            $kind::U8($values) => $do,
            $kind::Bytes($values) => $do,
        }
    };
}

impl<'a> HostSlice<'a> {
    /// Length in elements.
    pub fn len(&self) -> u64 {
        each!(&self.0, Slice, values => values.len() as u64)
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
            Slice::I32(_) => DType::I32,
            Slice::U32(_) => DType::U32,
            Slice::Bool(_) | Slice::Bytes(_) => DType::Bool,
            Slice::I8(_) => DType::I8,
            Slice::U8(_) => DType::U8,
        }
    }

    /// A copy of the values in f32.
    pub(crate) fn to_vec(&self) -> Vec<f32> {
        self.widened().into_owned()
    }

    /// So many values from one on, which are there.
    pub(crate) fn part(&self, start: u64, length: u64) -> HostSlice<'a> {
        let range = start as usize..(start + length) as usize;
        HostSlice(match &self.0 {
            Slice::F32(values) => Slice::F32(&values[range]),
            Slice::F16(values) => Slice::F16(&values[range]),
            Slice::I32(values) => Slice::I32(&values[range]),
            Slice::U32(values) => Slice::U32(&values[range]),
            Slice::Bool(Cow::Borrowed(values)) => Slice::Bool(Cow::Borrowed(&values[range])),
            Slice::Bool(Cow::Owned(values)) => Slice::Bool(values[range].to_vec().into()),
            Slice::I8(values) => Slice::I8(&values[range]),
            Slice::U8(values) => Slice::U8(&values[range]),
            Slice::Bytes(values) => Slice::Bytes(&values[range]),
        })
    }

    /// A borrowed slice cannot change during a call: nothing to compare.
    pub(crate) fn fingerprint(&self) -> u64 {
        0
    }

    /// The values as they lie in a device's memory.
    pub(crate) fn bytes(&self) -> &[u8] {
        each!(&self.0, Slice, values => bytemuck::cast_slice(values))
    }

    /// Bytes of each value.
    pub(crate) fn element_bytes(&self) -> usize {
        if let Slice::Bytes(_) = self.0 { 1 } else { self.dtype().bytes() as usize }
    }

    /// The values in f32, which holds each f16; integers are rounded, and true is 1.
    pub(crate) fn widened(&self) -> Cow<'a, [f32]> {
        match &self.0 {
            Slice::F32(values) => Cow::Borrowed(values),
            Slice::F16(values) => Cow::Owned(values.to_f32_vec()),
            Slice::I32(values) => values.iter().map(|&value| value as f32).collect(),
            Slice::U32(values) => values.iter().map(|&value| value as f32).collect(),
            Slice::Bool(values) => values.iter().map(|&value| value as f32).collect(),
            Slice::I8(values) => values.iter().map(|&value| value.into()).collect(),
            Slice::U8(values) => values.iter().map(|&value| value.into()).collect(),
            Slice::Bytes(values) => values.iter().map(|&value| value.into()).collect(),
        }
    }
}

/// Room for so many values.
#[cfg(feature = "webgpu")]
fn room<T>(extent: Extent) -> Result<Vec<T>> {
    let mut values = Vec::new();
    let full = |_| Error::OutOfMemory { bytes: extent.bytes(), place: "the host" };
    values.try_reserve_exact(extent.elements as usize).map_err(full)?;
    Ok(values)
}

/// So many zeros.
fn zeros<T: bytemuck::Zeroable>(extent: Extent) -> Result<Vec<T>> {
    let full = |()| Error::OutOfMemory { bytes: extent.bytes(), place: "the host" };
    Ok(bytemuck::allocation::try_zeroed_vec(extent.elements as usize).map_err(full)?)
}

impl<'a> From<&'a HostVec> for HostSlice<'a> {
    fn from(values: &'a HostVec) -> Self {
        Self(match &values.0 {
            Values::F32(values) => Slice::F32(values),
            Values::F16(values) => Slice::F16(values),
            Values::I32(values) => Slice::I32(values),
            Values::U32(values) => Slice::U32(values),
            Values::Bool(values) => Slice::Bool(Cow::Borrowed(values)),
            Values::I8(values) => Slice::I8(values),
            Values::U8(values) => Slice::U8(values),
            Values::Bytes(values) => Slice::Bytes(values),
        })
    }
}

/// Row-major values that a call gives.
#[derive(Debug, Clone, PartialEq)]
pub struct HostVec(Values);

#[derive(Debug, Clone, PartialEq)]
enum Values {
    F32(Vec<f32>),
    F16(Vec<f16>),
    I32(Vec<i32>),
    U32(Vec<u32>),
    /// Words of 0 and 1, as devices have them.
    Bool(Vec<u32>),
    I8(Vec<i8>),
    U8(Vec<u8>),
    /// Bytes of 0 and 1, as the CPU keeps them.
    Bytes(Vec<u8>),
}

impl HostVec {
    /// No values.
    pub(crate) fn empty(dtype: DType) -> Self {
        match dtype {
            DType::F32 => Vec::<f32>::new().into(),
            DType::F16 => Vec::<f16>::new().into(),
            DType::I32 => Vec::<i32>::new().into(),
            DType::U32 => Vec::<u32>::new().into(),
            DType::Bool => Self(Values::Bool(Vec::new())),
            DType::I8 => Vec::<i8>::new().into(),
            DType::U8 => Vec::<u8>::new().into(),
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

    /// So many zeros, if there is memory for them. The system makes a page of it zero when it is first written to, whoever does so.
    pub(crate) fn zeros(extent: Extent) -> Result<Self> {
        match extent.dtype {
            DType::F32 => zeros::<f32>(extent).map(Self::from),
            DType::F16 => zeros::<f16>(extent).map(Self::from),
            DType::I32 => zeros::<i32>(extent).map(Self::from),
            DType::U32 => zeros::<u32>(extent).map(Self::from),
            DType::Bool => zeros::<u32>(extent).map(|values| Self(Values::Bool(values))),
            DType::I8 => zeros::<i8>(extent).map(Self::from),
            DType::U8 => zeros::<u8>(extent).map(Self::from),
        }
    }

    /// The same as the CPU keeps them, truths as bytes.
    pub(crate) fn kept(extent: Extent) -> Result<Self> {
        match extent.dtype {
            DType::Bool => zeros::<u8>(extent).map(|values| Self(Values::Bytes(values))),
            _ => Self::zeros(extent),
        }
    }

    /// No values, and room for so many.
    #[cfg(feature = "webgpu")]
    pub(crate) fn with_room(extent: Extent) -> Result<Self> {
        match extent.dtype {
            DType::F32 => room::<f32>(extent).map(Self::from),
            DType::F16 => room::<f16>(extent).map(Self::from),
            DType::I32 => room::<i32>(extent).map(Self::from),
            DType::U32 => room::<u32>(extent).map(Self::from),
            DType::Bool => room::<u32>(extent).map(|values| Self(Values::Bool(values))),
            DType::I8 => room::<i8>(extent).map(Self::from),
            DType::U8 => room::<u8>(extent).map(Self::from),
        }
    }

    /// What a device gave: words for true and false, else what the elements are.
    #[cfg(any(feature = "cuda", feature = "vulkan"))]
    pub(crate) fn read(dtype: DType, words: impl Read) -> Result<Self> {
        match dtype {
            DType::F32 => words.read::<f32>().map(Self::from),
            DType::F16 => words.read::<f16>().map(Self::from),
            DType::I32 => words.read::<i32>().map(Self::from),
            DType::U32 => words.read::<u32>().map(Self::from),
            DType::Bool => words.read::<u32>().map(|values| Self(Values::Bool(values))),
            DType::I8 => words.read::<i8>().map(Self::from),
            DType::U8 => words.read::<u8>().map(Self::from),
        }
    }

    /// Adds values as they lie in a device's memory.
    #[cfg(feature = "webgpu")]
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        each!(&mut self.0, Values, values => values.extend_from_slice(bytemuck::cast_slice(bytes)));
    }

    /// The values as they lie in a device's memory.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        each!(&mut self.0, Values, values => bytemuck::cast_slice_mut(values))
    }

    /// Puts a packed block of the same type over the rows from `row` on and those columns of this matrix, which has rows of `stride`
    /// elements.
    pub(crate) fn paste(&mut self, block: &Self, stride: u64, row: u64, columns: Range<u32>) -> Result<()> {
        fn paste<T: Copy>(matrix: &mut [T], block: &[T], stride: u64, row: u64, columns: &Range<u32>) {
            let rows = matrix.chunks_mut(stride as usize).skip(row as usize);
            for (to, from) in rows.zip(block.chunks(columns.len())) {
                to[columns.start as usize..columns.end as usize].copy_from_slice(from);
            }
        }
        match (&mut self.0, &block.0) {
            (Values::F32(matrix), Values::F32(block)) => paste(matrix, block, stride, row, &columns),
            (Values::F16(matrix), Values::F16(block)) => paste(matrix, block, stride, row, &columns),
            (Values::I32(matrix), Values::I32(block)) => paste(matrix, block, stride, row, &columns),
            _ => return Err(Error::internal("a block of another type than its matrix")),
        }
        Ok(())
    }

    /// The values in f32: costs nothing if that is what they are. It changes none of f16, and rounds integers; true is 1.
    pub fn into_vec(self) -> Vec<f32> {
        match self.0 {
            Values::F32(values) => values,
            _ => HostSlice::from(&self).to_vec(),
        }
    }

    /// The values in f16: costs nothing if that is what they are; others are rounded to the nearest, of two to the even one.
    pub fn into_f16(self) -> Vec<f16> {
        match self.0 {
            Values::F16(values) => values,
            _ => Vec::from_f32_slice(&self.into_vec()),
        }
    }

    /// The values to be written, if they are f32.
    pub(crate) fn as_f32_mut(&mut self) -> Option<&mut [f32]> {
        if let Values::F32(values) = &mut self.0 { Some(values) } else { None }
    }

    /// Puts values of the same number in place of these: of the same type, or f32 rounded to f16, or f16 widened. Truths in words or bytes.
    pub(crate) fn fill_from(&mut self, from: &HostSlice<'_>) {
        match (&mut self.0, &from.0) {
            (Values::F32(to), Slice::F16(from)) => from.convert_to_f32_slice(to),
            (Values::F16(to), Slice::F32(from)) => to.convert_from_f32_slice(from),
            (Values::Bool(to), Slice::Bytes(from)) => to.iter_mut().zip(*from).for_each(|(to, &truth)| *to = truth.into()),
            (Values::Bytes(to), Slice::Bool(from)) => to.iter_mut().zip(&**from).for_each(|(to, &truth)| *to = truth as u8),
            _ => self.bytes_mut().copy_from_slice(from.bytes()),
        }
    }
}

/// What a device gave, of which it is known what it is.
#[cfg(any(feature = "cuda", feature = "vulkan"))]
pub(crate) trait Read {
    /// All of it.
    fn read<T: bytemuck::AnyBitPattern>(self) -> Result<Vec<T>>;
}
