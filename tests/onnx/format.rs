//! What is read of ONNX's files: the messages and fields of `onnx.proto` (onnx 1.22, Apache 2.0) that test cases of operators use.

use half::f16;
use lapidary::{DType, HostVec};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<Node>,
    #[prost(message, repeated, tag = "5")]
    pub initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub inputs: Vec<Value>,
    #[prost(message, repeated, tag = "12")]
    pub outputs: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Value {
    #[prost(string, tag = "1")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, repeated, tag = "1")]
    pub inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    #[prost(string, tag = "4")]
    pub operator: String,
    #[prost(message, repeated, tag = "5")]
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(float, tag = "2")]
    pub float: f32,
    #[prost(int64, tag = "3")]
    pub int: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub string: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    pub tensor: Option<Tensor>,
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub shape: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub kind: i32,
    #[prost(float, repeated, tag = "4")]
    pub floats: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub int32s: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub int64s: Vec<i64>,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(bytes = "vec", tag = "9")]
    pub raw: Vec<u8>,
    #[prost(uint64, repeated, tag = "11")]
    pub uint64s: Vec<u64>,
}

/// What a tensor holds, as far as this crate has it; 64-bit integers are where operators have their axes, sizes and places.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    Values(HostVec),
    Int64(Vec<i64>),
}

impl Tensor {
    pub fn shape(&self) -> Vec<u64> {
        self.shape.iter().map(|&size| size.cast_unsigned()).collect()
    }

    /// The values; the name of their type if this crate does not have it.
    pub fn data(&self) -> Result<Data, String> {
        let count = self.shape.iter().product::<i64>() as usize;
        let raw = |bytes: usize| self.raw.chunks_exact(bytes).take(count);
        let is_raw = !self.raw.is_empty();
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        let values = match self.kind {
            1 if is_raw => raw(4).map(|b| f32::from_bits(word(b))).collect::<Vec<_>>().into(),
            1 => self.floats.clone().into(),
            6 if is_raw => raw(4).map(|b| word(b).cast_signed()).collect::<Vec<_>>().into(),
            6 => self.int32s.clone().into(),
            12 if is_raw => raw(4).map(word).collect::<Vec<_>>().into(),
            12 => self.uint64s.iter().map(|&v| v as u32).collect::<Vec<_>>().into(),
            9 if is_raw => raw(1).map(|b| b[0] != 0).collect::<Vec<_>>().into(),
            9 => self.int32s.iter().map(|&v| v != 0).collect::<Vec<_>>().into(),
            10 if is_raw => raw(2).map(|b| f16::from_le_bytes([b[0], b[1]])).collect::<Vec<_>>().into(),
            10 => self.int32s.iter().map(|&v| f16::from_bits(v as u16)).collect::<Vec<_>>().into(),
            7 if is_raw => return Ok(Data::Int64(raw(8).map(|b| i64::from_le_bytes(b.try_into().expect("eight bytes"))).collect())),
            7 => return Ok(Data::Int64(self.int64s.clone())),
            kind => return Err(name_of(kind).to_owned()),
        };
        Ok(Data::Values(values))
    }
}

impl Tensor {
    /// The values, those of 8 bits among them, which products alone take.
    pub fn data_of_products(&self) -> Result<Data, String> {
        let count = self.shape.iter().product::<i64>() as usize;
        let bytes = || match self.raw.is_empty() {
            true => self.int32s.iter().map(|&v| v as u8).collect::<Vec<_>>(),
            false => self.raw[..count].to_vec(),
        };
        match self.kind {
            2 => Ok(Data::Values(bytes().into())),
            3 => Ok(Data::Values(bytes().into_iter().map(u8::cast_signed).collect::<Vec<_>>().into())),
            _ => self.data(),
        }
    }
}

/// The type of that number in ONNX, if this crate has it.
pub fn dtype_of(kind: i64) -> Result<DType, String> {
    match kind {
        1 => Ok(DType::F32),
        6 => Ok(DType::I32),
        9 => Ok(DType::Bool),
        10 => Ok(DType::F16),
        12 => Ok(DType::U32),
        kind => Err(name_of(kind as i32).to_owned()),
    }
}

pub fn name_of(kind: i32) -> &'static str {
    const NAMES: [&str; 17] = [
        "undefined",
        "float",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "int32",
        "int64",
        "string",
        "bool",
        "float16",
        "double",
        "uint32",
        "uint64",
        "complex64",
        "complex128",
        "bfloat16",
    ];
    NAMES.get(kind as usize).copied().unwrap_or("a type of 8 bits or less")
}
