//! What tensors on the host are made of.

use super::{HostSlice, HostVec};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// What a tensor on the host may be made of: f32, [`half::f16`], i32, u32, bool, i8 or u8.
pub trait Element: sealed::Sealed + Sized {
    /// What a device calls it.
    const DTYPE: DType;
    #[doc(hidden)]
    fn slice(values: &[Self]) -> HostSlice<'_>;
    #[doc(hidden)]
    fn owned(values: Vec<Self>) -> HostVec;
    #[doc(hidden)]
    fn vec(values: HostVec) -> Option<Vec<Self>>;
}

pub(super) mod sealed {
    pub trait Sealed {}
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

impl<E: Element> From<Vec<E>> for HostVec {
    fn from(values: Vec<E>) -> Self {
        E::owned(values)
    }
}

impl HostVec {
    /// The values, if they are of that type: natively that costs nothing then, but for bool.
    ///
    /// # Errors
    /// [`Error::InvalidType`] if they are of another.
    pub fn into_typed<E: Element>(self) -> Result<Vec<E>> {
        let found = self.dtype();
        let fault = || Error::InvalidType { argument: "the result".to_owned(), expected: E::DTYPE.name(), found: found.to_string() };
        E::vec(self).ok_or_else(|| Box::new(fault()))
    }
}
