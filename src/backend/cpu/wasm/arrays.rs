//! The page's arrays, which hold operands and results, and what of them is in this module's own memory.

use std::borrow::Cow;

use half::f16;
use half::slice::HalfFloatSliceExt;
use js_sys::{Float32Array, Uint32Array};
use wasm_bindgen::prelude::*;

use super::memory::{Memory, Operand, Place, steady};
use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = Float32Array)]
    type NewFloat32Array;
    #[wasm_bindgen(constructor, catch, js_class = "Float32Array")]
    fn new(length: f64) -> Result<NewFloat32Array, JsValue>;
}

/// An array from an element on; what is not read is empty, wherever it would start. A view costs as much as a small product.
pub(crate) fn from(values: &Float32Array, start: u64) -> Float32Array {
    if start == 0 { values.clone() } else { values.subarray(start as u32, u32::MAX) }
}

/// Of typed arrays the bytes are counted in 32 bits here.
pub(super) fn countable(requested: u64) -> Result<()> {
    let max = u32::MAX.into();
    if requested > max { Err(Box::new(Error::LimitExceeded { what: "the size of an array in bytes", requested, max })) } else { Ok(()) }
}

/// A zeroed array of the page, or an error where the page has no room.
pub(crate) fn new_array(elements: u64) -> Result<Float32Array> {
    countable(elements.saturating_mul(4))?;
    let array = NewFloat32Array::new(elements as f64).map_err(|_| Error::OutOfMemory { bytes: elements * 4, place: "the host" })?;
    Ok(array.unchecked_into())
}

pub(in super::super) fn array(extent: Extent) -> Result<Memory> {
    HostVec::zeros(extent).map(|array| Memory::new(Place::Page(array)))
}

pub(in super::super) fn into_array(values: Memory) -> Option<HostVec> {
    match values.place {
        Place::Page(array) => Some(array),
        Place::Own(_) => None,
    }
}

/// Between memories of the same type, but that f32 is rounded to f16.
pub(in super::super) fn copy(from: &Operand<'_>, to: &mut Memory) {
    match (from, &mut to.place) {
        (Operand::Own(from, ..), Place::Own(to)) => to.words_mut().copy_from_slice(from),
        (Operand::Page(from, _), Place::Own(to)) => from.bits().unchecked_ref::<Uint32Array>().copy_to(to.words_mut()),
        _ => {
            let (from, mut to) = steady(|| (from.shown(), to.shown()));
            to.fill_from(&from);
        }
    }
}

pub(in super::super) fn given<'a>(values: &HostSlice<'a>) -> Operand<'a> {
    Operand::Page(values.clone(), None)
}

/// The values as kernels read them: in f32.
pub(in super::super) fn readable<'a>(values: &Operand<'a>) -> Result<Operand<'a>> {
    Ok(match values {
        Operand::Page(values, other) => Operand::Page(values.widened()?, other.filter(|_| values.dtype() != DType::F16)),
        own => own.clone(),
    })
}

/// Makes room in this module's memory, which may have none: what is made there without asking ends the module.
pub(super) fn room_for<T>(count: u64) -> Result<Vec<T>> {
    let mut room = Vec::new();
    let fault = || Error::OutOfMemory { bytes: count.saturating_mul(size_of::<T>() as u64), place: "the host" };
    room.try_reserve_exact(usize::try_from(count).map_err(|_| fault())?).map_err(|_| fault())?;
    Ok(room)
}

/// Whether there is room for so many bytes more, which then are made without asking.
pub(super) fn has_room(bytes: u64) -> Result<()> {
    // Seen by nobody it would not be asked for.
    drop(std::hint::black_box(room_for::<u8>(bytes)?));
    Ok(())
}

pub(super) fn zeros(words: u64) -> Result<Vec<u32>> {
    let mut zeros = room_for(words)?;
    zeros.resize(words as usize, 0);
    Ok(zeros)
}

/// Operands in f32, and words for a result.
pub(super) type Brought<'a> = ([Cow<'a, [f32]>; 3], Vec<u32>);

/// Three operands in f32 in this module's own memory, of which those that are not there are empty, and so many words for a result, beside
/// which there is room for so many bytes.
pub(super) fn brought<'a>(inputs: &[Option<Operand<'a>>], elements: u64, more_bytes: u64) -> Result<Brought<'a>> {
    let mut operands: [Cow<'a, [f32]>; 3] = Default::default();
    for (operand, values) in operands.iter_mut().zip(inputs) {
        let Some(values) = values else { continue };
        *operand = if let Some(words) = values.words() {
            Cow::Borrowed(bytemuck::cast_slice(words))
        } else {
            let mut words = zeros(values.len())?;
            values.shown().widened()?.f32().copy_to(bytemuck::cast_slice_mut(&mut words));
            Cow::Owned(bytemuck::cast_vec(words))
        };
    }
    let result = zeros(elements)?;
    has_room(more_bytes)?;
    Ok((operands, result))
}

/// Puts the words of a result where it is to be, rounded if that is of f16.
pub(super) fn fill(out: &mut Memory, result: &[u32]) -> Result<()> {
    match &mut out.place {
        Place::Own(own) => own.words_mut().copy_from_slice(result),
        Place::Page(array) if array.dtype() == DType::F16 => {
            let mut narrow = room_for::<f16>(result.len() as u64)?;
            narrow.resize(result.len(), f16::ZERO);
            narrow.convert_from_f32_slice(bytemuck::cast_slice(result));
            array.bytes().copy_from(bytemuck::cast_slice(&narrow));
        }
        Place::Page(array) => array.bytes().copy_from(bytemuck::cast_slice(result)),
    }
    Ok(())
}
