//! Tensors' values: in this module's own memory, where operations read and write them as they lie, or in arrays of the page, where threads write
//! them, where they have 16 bits or 8, and where there is no room for them here. What operations ask for in the one and products of several
//! threads in the other is copied once.

use core::arch::wasm32::memory_size;
use std::cell::{Cell, OnceCell};

use js_sys::{Float32Array, Int32Array, Object, Uint32Array};
use wasm_bindgen::JsCast;

use super::arrays::{has_room, zeros};
use crate::dtype::{DType, Extent};
use crate::host::{HostSlice, HostVec};

/// The most bytes of tensors in this module's memory, which has 4 GiB at most and is never given back to the page.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes beside a tensor for what is made without asking.
const BESIDE: u64 = 4 << 20;

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// A tensor's values.
pub(crate) struct Memory {
    pub(super) place: Place,
    /// The same in the other place, once somebody has asked for them there.
    other: OnceCell<Place>,
}

/// Where values are.
pub(crate) enum Place {
    Page(HostVec),
    Own(Own),
}

/// Values of 32 bits in this module's memory.
pub(crate) struct Own {
    words: Vec<u32>,
    dtype: DType,
}

impl Own {
    /// Zeros; None where they do not belong here.
    pub(super) fn new(Extent { elements, dtype }: Extent) -> Option<Self> {
        let bytes = elements * 4;
        if dtype.bytes() != 4 || BYTES.get() + bytes > MOST_BYTES || has_room(bytes + BESIDE).is_err() {
            return None;
        }
        let words = zeros(elements).ok()?;
        BYTES.set(BYTES.get() + bytes);
        Some(Self { words, dtype })
    }

    pub(super) fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        BYTES.set(BYTES.get() - self.words.len() as u64 * 4);
    }
}

impl Memory {
    pub(super) fn new(place: Place) -> Self {
        Self { place, other: OnceCell::new() }
    }

    pub(super) fn dtype(&self) -> DType {
        match &self.place {
            Place::Page(array) => array.dtype(),
            Place::Own(own) => own.dtype,
        }
    }

    pub(super) fn len(&self) -> u64 {
        match &self.place {
            Place::Page(array) => array.len(),
            Place::Own(own) => own.words.len() as u64,
        }
    }

    /// An array to be written at once: it may show this module's memory.
    pub(super) fn shown(&mut self) -> HostVec {
        match &mut self.place {
            Place::Page(array) => array.clone(),
            Place::Own(Own { words, dtype }) => show(words.as_mut_ptr(), words.len(), *dtype),
        }
    }

    /// Gives the copy in the other place back: other values are to come.
    pub(in crate::backend::cpu) fn forget_copy(&mut self) {
        self.other.take();
    }
}

pub(in crate::backend::cpu) fn borrow(values: &Memory) -> Operand<'_> {
    let other = Some(&values.other);
    match &values.place {
        Place::Page(array) => Operand::Page(array.into(), other),
        Place::Own(own) => Operand::Own(&own.words, own.dtype, other),
    }
}

/// Where a tensor's values are in the other place, or will be; None of what is no tensor's.
type Other<'a> = Option<&'a OnceCell<Place>>;

/// What an operation reads.
#[derive(Clone)]
pub(crate) enum Operand<'a> {
    Page(HostSlice<'a>, Other<'a>),
    Own(&'a [u32], DType, Other<'a>),
}

impl<'a> Operand<'a> {
    pub(in crate::backend::cpu) fn len(&self) -> u64 {
        match self {
            Self::Page(values, _) => values.len(),
            Self::Own(words, ..) => words.len() as u64,
        }
    }

    pub(in crate::backend::cpu) fn dtype(&self) -> DType {
        match self {
            Self::Page(values, _) => values.dtype(),
            Self::Own(_, dtype, _) => *dtype,
        }
    }

    /// An array to be read at once: it may show this module's memory.
    pub(super) fn shown(&self) -> HostSlice<'static> {
        match self {
            Self::Page(values, _) => HostVec::new(values.array().clone(), values.dtype()).into(),
            Self::Own(words, dtype, _) => show(words.as_ptr().cast_mut(), words.len(), *dtype).into(),
        }
    }

    /// The words in this module's memory, to which a tensor's are copied once, if there is room for them.
    pub(super) fn words(&self) -> Option<&'a [u32]> {
        let (values, other) = match self {
            Self::Own(words, ..) => return Some(words),
            Self::Page(values, other) => (values, (*other)?),
        };
        if other.get().is_none() {
            let mut own = Own::new(Extent { elements: values.len(), dtype: values.dtype() })?;
            values.bits().unchecked_ref::<Uint32Array>().copy_to(own.words_mut());
            let _ = other.set(Place::Own(own));
        }
        match other.get() {
            Some(Place::Own(own)) => Some(&own.words),
            _ => None,
        }
    }

    /// The values in an array that is made for them once, if one can be; None where the page has them already.
    pub(super) fn in_array(&self, make: impl FnOnce(Extent) -> Option<HostVec>) -> Option<Self> {
        let Self::Own(words, dtype, Some(other)) = *self else { return None };
        if other.get().is_none() {
            let mut array = make(Extent { elements: words.len() as u64, dtype })?;
            array.fill_from(&self.shown());
            let _ = other.set(Place::Page(array));
        }
        match other.get() {
            Some(Place::Page(array)) => Some(Self::Page(array.into(), None)),
            _ => None,
        }
    }
}

/// Makes what shows this module's memory, once more if that has grown meanwhile: what showed it before shows nothing then.
pub(super) fn steady<T>(mut show: impl FnMut() -> T) -> T {
    loop {
        let pages = memory_size::<0>();
        let shown = show();
        if memory_size::<0>() == pages {
            return shown;
        }
    }
}

fn show(words: *mut u32, count: usize, dtype: DType) -> HostVec {
    // SAFETY: it is used at once, while this module's memory stays as large as it is and whoever shows the words has lent them.
    let array: Object = steady(|| unsafe {
        match dtype {
            DType::F32 => Float32Array::view_mut_raw(words.cast(), count).into(),
            DType::I32 => Int32Array::view_mut_raw(words.cast(), count).into(),
            _ => Uint32Array::view_mut_raw(words, count).into(),
        }
    });
    HostVec::new(array, dtype)
}
