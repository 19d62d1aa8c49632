//! Tensors' values: in this module's own memory, where operations read and write them as they lie, or in arrays of the page, where threads share
//! them, where they have 16 bits or 8, and where there is no room for them here.

use core::arch::wasm32::memory_size;
use std::cell::Cell;

use js_sys::{Float32Array, Int32Array, Object, Uint32Array};

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
pub(crate) enum Memory {
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
    pub(super) fn dtype(&self) -> DType {
        match self {
            Self::Page(array) => array.dtype(),
            Self::Own(own) => own.dtype,
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Page(array) => array.len(),
            Self::Own(own) => own.words.len() as u64,
        }
    }

    /// An array to be written at once: it may show this module's memory.
    pub(super) fn shown(&mut self) -> HostVec {
        match self {
            Self::Page(array) => array.clone(),
            Self::Own(Own { words, dtype }) => show(words.as_mut_ptr(), words.len(), *dtype),
        }
    }
}

pub(in crate::backend::cpu) fn borrow(values: &Memory) -> Operand<'_> {
    match values {
        Memory::Page(array) => Operand::Page(array.into()),
        Memory::Own(own) => Operand::Own(&own.words, own.dtype),
    }
}

/// What an operation reads.
#[derive(Clone)]
pub(crate) enum Operand<'a> {
    Page(HostSlice<'a>),
    Own(&'a [u32], DType),
}

impl Operand<'_> {
    pub(in crate::backend::cpu) fn len(&self) -> u64 {
        match self {
            Self::Page(values) => values.len(),
            Self::Own(words, _) => words.len() as u64,
        }
    }

    pub(in crate::backend::cpu) fn dtype(&self) -> DType {
        match self {
            Self::Page(values) => values.dtype(),
            Self::Own(_, dtype) => *dtype,
        }
    }

    /// An array to be read at once: it may show this module's memory.
    pub(super) fn shown(&self) -> HostSlice<'static> {
        match self {
            Self::Page(values) => HostVec::new(values.array().clone(), values.dtype()).into(),
            Self::Own(words, dtype) => show(words.as_ptr().cast_mut(), words.len(), *dtype).into(),
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
