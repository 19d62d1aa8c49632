//! ONNX's own test cases of operators, on one device. A case counts as
//!
//! - passed, if every result is within ONNX's own tolerance of what the case expects (1e-7 + 1e-3 of it; integers and truths exactly; of a
//!   Fourier transform, whose zeros are sums in f32 of what is not, 1e-7 of the largest result instead),
//! - skipped, if it uses a type or an operator that this crate does not have, which is named,
//! - failed, if anything else happens.
//!
//! Cases of operators that are not among those of [`SCOPE`] are not looked at.

mod format;
mod operators;
mod reductions;
mod windows;

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use format::{Data, Graph, Model, Tensor};
use lapidary::{Expr, Gpu, HostVec};
use operators::{Call, Refused, Value};
use prost::Message;

use crate::bounds;

/// The operators that this crate takes upon itself.
const SCOPE: &str = "MatMul MatMulInteger Gemm \
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Div \
    Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean \
    Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan \
    Tanh ThresholdedRelu Where Xor \
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ArgMax ArgMin \
    Softmax LogSoftmax BatchNormalization LayerNormalization RMSNormalization Conv MaxPool AveragePool GlobalAveragePool GlobalMaxPool DFT \
    Transpose Slice Concat Pad Reshape Flatten Squeeze Unsqueeze Expand Split Constant Shape Size";

/// A case's files of one set of data, by their names.
pub type Set = HashMap<String, Vec<u8>>;

pub struct Case {
    pub name: String,
    graph: Graph,
    sets: Vec<Set>,
}

async fn value(gpu: &Gpu, shape: Vec<u64>, data: Data) -> Result<Value, Refused> {
    match data {
        Data::Int64(values) => Ok(Value::Int64(shape, values)),
        Data::Values(values) => {
            let tensor = gpu.tensor(&values, 1, values.len()).await?;
            Ok(Value::Expr(Expr::from(&tensor.reshape(&shape)?)))
        }
    }
}

impl Case {
    /// What such a model is a case of; None if that is not looked at.
    pub fn new(name: String, model: &[u8], sets: Vec<Set>) -> Option<Self> {
        let graph = Model::decode(model).expect("a model of ONNX").graph?;
        let is_known = graph.nodes.iter().all(|node| SCOPE.split_whitespace().any(|operator| operator == node.operator));
        is_known.then_some(Self { name, graph, sets })
    }

    fn read(&self, set: &Set, file: &str) -> Result<Option<(Vec<u64>, Data)>, Refused> {
        let Some(bytes) = set.get(file) else { return Ok(None) };
        let tensor = Tensor::decode(&bytes[..]).map_err(|error| Refused::Unsupported(format!("a value that is no tensor ({error})")))?;
        let data = if self.is_product() { tensor.data_of_products() } else { tensor.data() };
        let data = data.map_err(|kind| Refused::Unsupported(format!("values of {kind}")))?;
        // A sequence has its tensors where a tensor has other things.
        let length = match &data {
            Data::Int64(values) => values.len() as u64,
            Data::Values(values) => values.len(),
        };
        if length != tensor.shape().iter().product::<u64>() {
            return Err(Refused::Unsupported("a value that is no tensor".to_owned()));
        }
        Ok(Some((tensor.shape(), data)))
    }

    /// Whether values may be of 8 bits.
    fn is_product(&self) -> bool {
        self.graph.nodes.iter().all(|node| node.operator == "MatMulInteger")
    }

    fn is_transform(&self) -> bool {
        self.graph.nodes.iter().any(|node| node.operator == "DFT")
    }

    async fn run(&self, gpu: &Gpu) -> Result<(), Refused> {
        for set in &self.sets {
            let mut values = HashMap::new();
            for initializer in &self.graph.initializers {
                let data = initializer.data().map_err(|kind| Refused::Unsupported(format!("values of {kind}")))?;
                values.insert(initializer.name.clone(), value(gpu, initializer.shape(), data).await?);
            }
            for (number, input) in self.graph.inputs.iter().enumerate() {
                if let Some((shape, data)) = self.read(set, &format!("input_{number}.pb"))? {
                    values.insert(input.name.clone(), value(gpu, shape, data).await?);
                }
            }
            for node in &self.graph.nodes {
                let results = Call::new(gpu, node, &values)?.run().await?;
                values.extend(node.outputs.iter().cloned().zip(results));
            }
            for (number, output) in self.graph.outputs.iter().enumerate() {
                let Some((shape, expected)) = self.read(set, &format!("output_{number}.pb"))? else { continue };
                let Some(got) = values.get(&output.name) else {
                    return Err(Refused::Unsupported(format!("the output {}", output.name)));
                };
                let what = format!("output {number}");
                match (got, expected) {
                    (Value::Int64(_, got), Data::Int64(expected)) if *got == expected => {}
                    (Value::Expr(expr), expected) => compare(gpu, expr, &shape, &expected, (&what, self.is_transform())).await?,
                    _ => return Err(Refused::Failed(format!("{what} is of another type"))),
                }
            }
        }
        Ok(())
    }
}

async fn compare(gpu: &Gpu, expr: &Expr, shape: &[u64], expected: &Data, (what, is_transform): (&str, bool)) -> Result<(), Refused> {
    let tensor = gpu.evaluate(expr).await?;
    if tensor.shape() != shape {
        return Err(Refused::Failed(format!("{what} has the shape {:?}, not {shape:?}", tensor.shape())));
    }
    let got = tensor.to_host().await?;
    let dtype = got.dtype();
    let is_float = dtype.is_float();
    let expected: Vec<f64> = match expected {
        // Indices, which this crate gives in 32 bits.
        Data::Int64(values) => values.iter().map(|&value| value as f64).collect(),
        Data::Values(values) if values.dtype() == dtype => wide(values.clone()),
        Data::Values(values) => return Err(Refused::Failed(format!("{what} is of {dtype}, not {}", values.dtype()))),
    };
    let largest = if is_transform { expected.iter().fold(1.0f64, |largest, value| largest.max(value.abs())) } else { 1.0 };
    for (at, (got, expected)) in wide(got).into_iter().zip(expected).enumerate() {
        let bound = if is_float { bounds::onnx(largest) } else { bounds::EXACT };
        let same = got == expected || (got.is_nan() && expected.is_nan());
        if !same && (!bound.holds(got, expected) || !got.is_finite() || !expected.is_finite()) {
            return Err(Refused::Failed(format!("{what} is {got} at {at}, not {expected}")));
        }
    }
    Ok(())
}

/// Each value in f64, which holds all of them.
fn wide(values: HostVec) -> Vec<f64> {
    match values.dtype() {
        lapidary::DType::I32 => values.into_typed::<i32>().expect("of i32").into_iter().map(f64::from).collect(),
        lapidary::DType::U32 => values.into_typed::<u32>().expect("of u32").into_iter().map(f64::from).collect(),
        _ => values.into_vec().into_iter().map(f64::from).collect(),
    }
}

/// What became of cases.
#[derive(Default)]
pub struct Report {
    pub passed: usize,
    /// The cases, and what is wrong.
    pub failed: Vec<String>,
    /// Cases by what this crate does not have.
    skipped: BTreeMap<String, Vec<String>>,
}

impl Report {
    pub async fn of(gpu: &Gpu, cases: &[Case]) -> Self {
        let mut report = Self::default();
        for case in cases {
            match case.run(gpu).await {
                Ok(()) => report.passed += 1,
                Err(Refused::Unsupported(what)) => report.skipped.entry(what).or_default().push(case.name.clone()),
                Err(Refused::Failed(what)) => report.failed.push(format!("{}: {what}", case.name)),
            }
        }
        report
    }

    pub fn skipped(&self) -> usize {
        self.skipped.values().map(Vec::len).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, names) in &self.skipped {
            writeln!(f, "skipped {} for {what}: {}", names.len(), names.join(" "))?;
        }
        for what in &self.failed {
            writeln!(f, "failed {what}")?;
        }
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped())
    }
}
