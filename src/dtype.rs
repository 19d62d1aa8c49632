//! What the elements of a tensor are.

use std::fmt;

/// The type of a tensor's elements. Sums of floating-point elements are f32 in each case, those of 8-bit integers i32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16: 11 bits of precision, magnitudes up to 65,504.
    F16,
    /// Signed integers of 32 bits; sums and products wrap around.
    I32,
    /// Unsigned integers of 32 bits; sums and products wrap around.
    U32,
    /// True or false: what comparisons give. On a device each is a word, 0 or 1.
    Bool,
    /// Signed integers of 8 bits, for products alone.
    I8,
    /// Unsigned integers of 8 bits, for products alone.
    U8,
}

impl DType {
    /// All of them.
    pub const ALL: &[Self] = &[Self::F32, Self::F16, Self::I32, Self::U32, Self::Bool, Self::I8, Self::U8];

    /// Those that expressions compute with: all but integers of 8 bits.
    pub const COMPUTED: &[Self] = &[Self::F32, Self::F16, Self::I32, Self::U32, Self::Bool];

    /// Bytes of an element on a device.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F16 => 2,
            Self::I8 | Self::U8 => 1,
            _ => 4,
        }
    }

    /// Whether its elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16)
    }

    /// Whether its elements are integers of 8 bits, which products take and nothing else does.
    pub const fn is_byte(self) -> bool {
        matches!(self, Self::I8 | Self::U8)
    }

    /// The name that reports and the command line use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::U8 => "u8",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How much a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub elements: u64,
    pub dtype: DType,
}

impl Extent {
    /// So many elements of f32.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) const fn f32(elements: u64) -> Self {
        Self { elements, dtype: DType::F32 }
    }

    /// Bytes of all of it.
    pub(crate) fn bytes(self) -> u64 {
        self.elements * self.dtype.bytes()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.elements == 0
    }
}
