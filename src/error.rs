//! The one error type. Each variant says who is at fault, with the numbers, and what would help; [`Error::code`] is a stable
//! name for it that JavaScript sees too.

use crate::info::BackendId;

/// A result of this crate. The error is boxed: it is rare, and what it holds would otherwise pass through every `?` by value.
pub type Result<T, E = Box<Error>> = std::result::Result<T, E>;

/// What went wrong. The text holds the numbers and the remedy; match on the variant or on [`Error::code`], not on the text.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The caller's fault: an argument is not of the documented type.
    #[error("{argument} must be {expected}, but it is {found}")]
    InvalidType {
        /// The argument's name.
        argument: String,
        /// What it must be.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// The caller's fault: a dimension or a stride is not a number that a matrix can have.
    #[error("{name} is {value}, but it must be {expected}")]
    InvalidDimension {
        /// `m`, `k`, `n`, `lda`, …
        name: &'static str,
        /// What was given.
        value: String,
        /// What it must be.
        expected: String,
    },
    /// The caller's fault: an array's length is not what the dimensions ask for.
    #[error("{argument} has {length} elements, but {formula} = {} are needed", counted(*.expected))]
    LengthMismatch {
        /// The array's name.
        argument: &'static str,
        /// Its length in elements.
        length: u64,
        /// The length needed.
        expected: u64,
        /// How that follows from the dimensions.
        formula: String,
    },
    /// The caller's fault: an option that does not exist, or has a value that it cannot have.
    #[error("{option} is {value}, but {expected}")]
    InvalidOption {
        /// The option's name.
        option: String,
        /// What was given.
        value: String,
        /// What is possible.
        expected: String,
    },
    /// The caller's fault: what is copied or launched does not fit together.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("{what} is {found}, but {expected}")]
    InvalidArgument {
        /// What it is of.
        what: String,
        /// What was given.
        found: String,
        /// What it has to be.
        expected: String,
    },
    /// The caller's fault: the source of a kernel does not compile.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("the kernel {kernel} does not compile from {language}: {log}")]
    Compile {
        /// The kernel's name.
        kernel: String,
        /// The source's language.
        language: &'static str,
        /// What the compiler said, lines included.
        log: String,
    },
    /// Nothing fitting is there.
    #[error("{backend} is not available: {reason}{}", remark(.remedy))]
    Unavailable {
        /// The backend asked for.
        backend: BackendId,
        /// What is missing.
        reason: String,
        /// What would bring it; empty if nothing would.
        remedy: String,
    },
    /// None of the devices has what a [`Selector`](crate::Selector) asks for.
    #[cfg(not(target_arch = "wasm32"))]
    #[error("no device fits: {}", list(.refused))]
    NoDevice {
        /// All that was looked at, and why it was refused.
        refused: Vec<crate::selector::Refused>,
    },
    /// Larger than this device or this crate can do.
    #[error("{what} is {}, but at most {max} can be done here; split the work, or use another backend", counted(*.requested))]
    LimitExceeded {
        /// The quantity.
        what: &'static str,
        /// How much was asked for.
        requested: u64,
        /// The most that is possible.
        max: u64,
    },
    /// The device or the host has not enough memory.
    #[cfg_attr(
        target_arch = "wasm32",
        error("out of memory: {bytes} bytes could not be had on {place}; free tensors that are not needed, or use smaller matrices")
    )]
    #[cfg_attr(
        not(target_arch = "wasm32"),
        error("out of memory: {} could not be had on {place}; free tensors that are not needed, or use smaller matrices", amount(*.bytes))
    )]
    OutOfMemory {
        /// How many bytes were asked for; natively 0 if that was for the driver's own use, of which it says nothing.
        bytes: u64,
        /// Where.
        place: &'static str,
    },
    /// The device went away during the call, and the call could not be replayed. The next call opens a fresh device.
    #[error("the device was lost: {reason}; call again, a fresh device will be opened")]
    DeviceLost {
        /// What the driver said.
        reason: String,
    },
    /// The caller's fault: the thing was freed before.
    #[error("this {what} was freed before the call; make a new one")]
    Disposed {
        /// What it was.
        what: &'static str,
    },
    /// The caller aborted the call.
    #[error("the call was aborted by its signal")]
    Aborted,
    /// Our fault.
    #[error("internal fault of lapidary, please report it: {detail}")]
    Internal {
        /// What was noticed.
        detail: String,
    },
}

impl Error {
    /// A stable name of the kind of error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidType { .. } => "invalid_type",
            Self::InvalidDimension { .. } => "invalid_dimension",
            Self::LengthMismatch { .. } => "length_mismatch",
            Self::InvalidOption { .. } => "invalid_option",
            #[cfg(not(target_arch = "wasm32"))]
            Self::InvalidArgument { .. } => "invalid_argument",
            #[cfg(not(target_arch = "wasm32"))]
            Self::Compile { .. } => "compile",
            Self::Unavailable { .. } => "unavailable",
            #[cfg(not(target_arch = "wasm32"))]
            Self::NoDevice { .. } => "no_device",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::OutOfMemory { .. } => "out_of_memory",
            Self::DeviceLost { .. } => "device_lost",
            Self::Disposed { .. } => "disposed",
            Self::Aborted => "aborted",
            Self::Internal { .. } => "internal",
        }
    }

    pub(crate) fn internal(detail: impl Into<String>) -> Box<Self> {
        Box::new(Self::Internal { detail: detail.into() })
    }
}

/// What was refused, one after another.
#[cfg(not(target_arch = "wasm32"))]
fn list(refused: &[crate::selector::Refused]) -> String {
    if refused.is_empty() {
        return "no backend was to be looked at".to_owned();
    }
    refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// A number that is counted no further than 64 bits hold.
fn counted(number: u64) -> String {
    if number == u64::MAX { "more than 2^63".to_owned() } else { number.to_string() }
}

/// So many bytes, or what cannot be counted.
#[cfg(not(target_arch = "wasm32"))]
fn amount(bytes: u64) -> String {
    if bytes == 0 { "memory for the driver's own use".to_owned() } else { format!("{bytes} bytes") }
}

/// A remedy as the end of a sentence.
fn remark(remedy: &str) -> String {
    if remedy.is_empty() { String::new() } else { format!("; {remedy}") }
}
