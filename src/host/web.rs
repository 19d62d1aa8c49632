//! Typed arrays of the page.

use std::marker::PhantomData;

use half::f16;
use half::vec::HalfFloatVecExt;
use js_sys::{ArrayBuffer, Float32Array, Int8Array, Int32Array, Object, Uint8Array, Uint16Array, Uint32Array};
use wasm_bindgen::prelude::*;

use super::element::{Element, sealed};
use crate::backend::cpu::wasm::new_array;
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};

/// Row-major values that the caller holds: a slice, an array or a vector of f32, [`half::f16`], i32, u32, bool, i8 or u8, which is copied, or a
/// `Float32Array`, which is not.
#[derive(Debug, Clone)]
pub struct HostSlice<'a> {
    array: HostVec,
    lifetime: PhantomData<&'a [f32]>,
}

impl HostSlice<'_> {
    /// Length in elements.
    pub fn len(&self) -> u64 {
        self.array.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the elements are.
    pub fn dtype(&self) -> DType {
        self.array.dtype
    }

    /// The array, which is one of f32.
    pub(crate) fn f32(&self) -> &Float32Array {
        self.array.f32()
    }

    /// The array, of whatever type.
    pub(crate) fn array(&self) -> &Object {
        self.array.array()
    }

    /// The values for devices that compute in f32 alone: those of f16 are widened, which changes none.
    pub(crate) fn widened(&self) -> Result<HostSlice<'static>> {
        if self.dtype() != DType::F16 {
            return Ok(self.array.clone().into());
        }
        let wide = new_array(self.len())?;
        put(&self.array.array, &wide);
        Ok(wide.into())
    }

    /// The values as they lie in a device's memory.
    pub(crate) fn bytes(&self) -> Uint8Array {
        self.array.bytes()
    }

    /// The values as words, those of f16 as their bits, and those of 8 bits as bytes.
    pub(crate) fn bits(&self) -> Object {
        bits_of(self.array())
    }

    /// A copy of the values, which are of f32, in this module's memory.
    pub(crate) fn to_vec(&self) -> Vec<f32> {
        self.f32().to_vec()
    }

    /// Tells a changed array from an unchanged one by its length and values spread over it: cheap, and meant for the rare
    /// replay after a device loss only.
    pub(crate) fn fingerprint(&self) -> u64 {
        const SAMPLES: u32 = 64;
        let bytes = self.bytes();
        let length = bytes.length();
        let step = (length / SAMPLES).max(1) | 1;
        let mut hash = u64::from(length);
        for index in (0..length).step_by(step as usize).chain(length.checked_sub(1)) {
            hash = (hash.rotate_left(7) ^ u64::from(bytes.get_index(index))).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        hash
    }
}

impl From<HostVec> for HostSlice<'static> {
    fn from(array: HostVec) -> Self {
        Self { array, lifetime: PhantomData }
    }
}

impl From<Float32Array> for HostSlice<'static> {
    fn from(values: Float32Array) -> Self {
        HostVec::from(values).into()
    }
}

impl From<&HostVec> for HostSlice<'static> {
    fn from(values: &HostVec) -> Self {
        values.clone().into()
    }
}

/// Slices are copied: one of this module's memory would move when the memory grows.
macro_rules! elements {
    ($($name:ident: $element:ty as $array:ty),+) => { $(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const DTYPE: DType = DType::$name;

            fn slice(values: &[Self]) -> HostSlice<'_> {
                HostVec::new(<$array>::from(values).into(), Self::DTYPE).into()
            }

            fn owned(values: Vec<Self>) -> HostVec {
                HostVec::new(<$array>::from(&values[..]).into(), Self::DTYPE)
            }

            fn vec(values: HostVec) -> Option<Vec<Self>> {
                (values.dtype == Self::DTYPE).then(|| values.array.unchecked_ref::<$array>().to_vec())
            }
        }
    )+ };
}

elements!(F32: f32 as Float32Array, I32: i32 as Int32Array, U32: u32 as Uint32Array, I8: i8 as Int8Array, U8: u8 as Uint8Array);

impl sealed::Sealed for f16 {}
impl Element for f16 {
    const DTYPE: DType = DType::F16;

    fn slice(values: &[Self]) -> HostSlice<'_> {
        let bits = Uint16Array::from(bytemuck::cast_slice::<_, u16>(values));
        HostVec::new(halves(&bits.buffer(), values.len() as u32), Self::DTYPE).into()
    }

    fn owned(values: Vec<Self>) -> HostVec {
        Self::slice(&values).array
    }

    fn vec(values: HostVec) -> Option<Vec<Self>> {
        let bits = || bits_of(&values.array).unchecked_into::<Uint16Array>().to_vec();
        (values.dtype == Self::DTYPE).then(|| bytemuck::cast_vec(bits()))
    }
}

impl sealed::Sealed for bool {}
impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn slice(values: &[Self]) -> HostSlice<'_> {
        let words: Vec<u32> = values.iter().map(|&value| value.into()).collect();
        HostVec::new(Uint32Array::from(&words[..]).into(), Self::DTYPE).into()
    }

    fn owned(values: Vec<Self>) -> HostVec {
        Self::slice(&values).array
    }

    fn vec(values: HostVec) -> Option<Vec<Self>> {
        let words = || values.array.unchecked_ref::<Uint32Array>().to_vec();
        (values.dtype == Self::DTYPE).then(|| words().into_iter().map(|word| word != 0).collect())
    }
}

#[wasm_bindgen(module = "/src/host/web.js")]
extern "C" {
    /// A `Float16Array` over the start of some memory, or where the engine has none, one of its bits.
    fn halves(buffer: &ArrayBuffer, length: u32) -> Object;
    /// Puts the numbers of one array into another, which may be of another type; those of f16 may be told as bits, but for a `Float32Array` alone.
    fn put(from: &Object, to: &Object);
    fn place_of_type(array: &Object) -> usize;
    fn bytes_of(array: &Object) -> Uint8Array;
    fn bits_of(array: &Object) -> Object;
    #[wasm_bindgen(catch)]
    fn truths(words: &Object) -> std::result::Result<Object, JsValue>;
}

/// Row-major values that a call gives. `array` is a `Float32Array`, a `Float16Array`, an `Int32Array`, a `Uint32Array`, a `Uint32Array` of 0 and 1,
/// an `Int8Array` or a `Uint8Array`.
#[derive(Debug, Clone)]
pub struct HostVec {
    array: Object,
    dtype: DType,
}

/// Of the same type, and the same numbers.
impl PartialEq for HostVec {
    fn eq(&self, other: &Self) -> bool {
        self.dtype == other.dtype
            && match self.dtype {
                DType::F32 => self.f32().to_vec() == other.f32().to_vec(),
                DType::F16 => f16::vec(self.clone()) == f16::vec(other.clone()),
                _ => self.bytes().to_vec() == other.bytes().to_vec(),
            }
    }
}

impl From<Float32Array> for HostVec {
    fn from(values: Float32Array) -> Self {
        Self { array: values.into(), dtype: DType::F32 }
    }
}

impl HostVec {
    /// No values.
    pub(crate) fn empty(dtype: DType) -> Self {
        Self::over(&Float32Array::new_with_length(0), 0, dtype)
    }

    /// So many zeros, or an error where the page has no room.
    pub(crate) fn zeros(extent: Extent) -> Result<Self> {
        Ok(Self::over(&new_array(extent.bytes().div_ceil(4))?, extent.elements as u32, extent.dtype))
    }

    /// The memory of an array as so many elements of a type.
    fn over(words: &Float32Array, elements: u32, dtype: DType) -> Self {
        let buffer = words.buffer();
        let array: Object = match dtype {
            DType::F32 => return words.clone().into(),
            DType::F16 => halves(&buffer, elements),
            DType::I32 => Int32Array::new_with_byte_offset_and_length(&buffer, 0, elements).into(),
            DType::U32 | DType::Bool => Uint32Array::new_with_byte_offset_and_length(&buffer, 0, elements).into(),
            DType::I8 => Int8Array::new_with_byte_offset_and_length(&buffer, 0, elements).into(),
            DType::U8 => Uint8Array::new_with_byte_offset_and_length(&buffer, 0, elements).into(),
        };
        Self { array, dtype }
    }

    /// An array that the caller made, as this type keeps it.
    pub(crate) fn new(array: Object, dtype: DType) -> Self {
        Self { array, dtype }
    }

    /// An operand that the caller made: a `Float32Array`, a `Float16Array`, an `Int8Array` or a `Uint8Array`.
    pub(crate) fn of(array: Object) -> Self {
        let dtype = DType::ALL.get(place_of_type(&array)).copied().unwrap_or(DType::F32);
        Self { array, dtype }
    }

    /// Puts the values of another array in place of these, rounded where these are of f16 and those of f32.
    pub(crate) fn fill_from(&mut self, from: &HostSlice<'_>) {
        put(&from.array.array, &self.array);
    }

    /// The array as one of that type: itself, or a copy.
    #[cfg(feature = "webgl2")]
    pub(crate) fn narrowed(self, extent: Extent) -> Result<Self> {
        if extent.dtype == self.dtype {
            return Ok(self);
        }
        let mut narrowed = Self::zeros(extent)?;
        narrowed.fill_from(&self.into());
        Ok(narrowed)
    }

    /// Length in elements.
    pub fn len(&self) -> u64 {
        u64::from(self.bytes_length()) / self.dtype.bytes()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn bytes_length(&self) -> u32 {
        // All typed arrays have the same getter.
        self.array.unchecked_ref::<Uint8Array>().byte_length()
    }

    /// What the elements are.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The array, which is one of f32.
    pub(crate) fn f32(&self) -> &Float32Array {
        self.array.unchecked_ref()
    }

    /// The array, of whatever type.
    pub(crate) fn array(&self) -> &Object {
        &self.array
    }

    /// The same words as elements of another type of that size.
    #[cfg(feature = "webgl2")]
    pub(crate) fn cast(self, dtype: DType) -> Self {
        Self::over(self.f32(), self.len() as u32, dtype)
    }

    /// The array as JavaScript gets it: truths take a byte each there, for which the page may have no room.
    pub(crate) fn into_array(self) -> Result<Object> {
        if self.dtype != DType::Bool {
            return Ok(self.array);
        }
        truths(&self.array).map_err(|_| Box::new(Error::OutOfMemory { bytes: self.len(), place: "the host" }))
    }

    /// The values as they lie in a device's memory.
    pub(crate) fn bytes(&self) -> Uint8Array {
        bytes_of(&self.array)
    }

    /// The values in f32, copied into this module's memory. It changes none of f16, and rounds integers; true is 1.
    pub fn into_vec(self) -> Vec<f32> {
        fn typed<E: Element>(values: HostVec, to_f32: impl Fn(E) -> f32) -> Vec<f32> {
            E::vec(values).unwrap_or_default().into_iter().map(to_f32).collect()
        }
        match self.dtype {
            DType::F32 => self.f32().to_vec(),
            DType::F16 => typed(self, f16::to_f32),
            DType::I32 => typed(self, |value: i32| value as f32),
            DType::U32 => typed(self, |value: u32| value as f32),
            DType::Bool => typed(self, |value: bool| u8::from(value).into()),
            DType::I8 => typed(self, <f32 as From<i8>>::from),
            DType::U8 => typed(self, <f32 as From<u8>>::from),
        }
    }

    /// The values in f16: those of other types are rounded to the nearest, of two to the even one.
    pub fn into_f16(self) -> Vec<f16> {
        match self.dtype {
            DType::F16 => f16::vec(self).unwrap_or_default(),
            _ => Vec::from_f32_slice(&self.into_vec()),
        }
    }
}
