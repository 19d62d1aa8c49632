//! Tensors in the host's memory, borrowed and owned.
//!
//! Natively that is a slice and a `Vec`. In the browser both are typed arrays of the page, so that a queue can read an operand and
//! a result can be filled without either passing through this module's own memory.

mod element;
#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(target_arch = "wasm32")]
mod web;

pub use element::Element;
#[cfg(all(any(feature = "cuda", feature = "vulkan"), not(target_arch = "wasm32")))]
pub(crate) use native::Read;
#[cfg(not(target_arch = "wasm32"))]
pub use native::{HostSlice, HostVec};
#[cfg(target_arch = "wasm32")]
pub use web::{HostSlice, HostVec};
