//! ONNX's own test cases of operators, on every backend that is there.
//!
//! `scripts/onnx` fetches the cases; without them there is nothing to run, which is said. A case counts as
//!
//! - passed, if every result is within ONNX's own tolerance of what the case expects (1e-7 + 1e-3 of it; integers and truths exactly; of a
//!   Fourier transform, whose zeros are sums in f32 of what is not, 1e-7 of the largest result instead),
//! - skipped, if it uses a type or an operator that this crate does not have, which is named,
//! - failed, if anything else happens.
//!
//! Cases of operators that are not among those of [`SCOPE`] are not looked at.
#![cfg(not(target_arch = "wasm32"))]

mod bounds;
mod devices;
#[path = "onnx/format.rs"]
mod format;
#[path = "onnx/operators.rs"]
mod operators;
#[path = "onnx/reductions.rs"]
mod reductions;
#[path = "onnx/windows.rs"]
mod windows;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use format::{Data, Graph, Model, Tensor};
use lapidary::{BackendId, Expr, Gpu, HostVec, Options};
use operators::{Call, Refused, Value};
use prost::Message;

/// The operators that this crate takes upon itself.
const SCOPE: &str = "MatMul MatMulInteger Gemm \
    Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Div \
    Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean \
    Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan \
    Tanh ThresholdedRelu Where Xor \
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare ArgMax ArgMin \
    Softmax LogSoftmax BatchNormalization LayerNormalization RMSNormalization Conv MaxPool AveragePool GlobalAveragePool GlobalMaxPool DFT \
    Transpose Slice Concat Pad Reshape Flatten Squeeze Unsqueeze Expand Split Constant Shape Size";

/// Of ONNX, as in `scripts/onnx`.
const VERSION: &str = "1.22.0";

/// There are some 1,700 cases: where there are fewer than these, most were lost.
const FEWEST: usize = 1000;

/// Where the cases are: `LAPIDARY_ONNX_CASES`, else where `scripts/onnx` has put them.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("LAPIDARY_ONNX_CASES").map(PathBuf::from);
    let is_named = named.is_some();
    let folder = named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("target/onnx-cases-{VERSION}")));
    if folder.is_dir() {
        // A folder of one's own may hold what one likes.
        let count = std::fs::read_dir(&folder).expect("a folder can be read").count();
        assert!(is_named || count >= FEWEST, "there are only {count} cases in {}: remove it and run scripts/onnx", folder.display());
        return Some(folder);
    }
    assert!(!devices::is_required("onnx"), "there are no cases in {}: run scripts/onnx", folder.display());
    eprintln!("skipped: there are no cases in {}: run scripts/onnx", folder.display());
    None
}

struct Case {
    name: String,
    graph: Graph,
    data: Vec<PathBuf>,
}

fn cases() -> Vec<Case> {
    let Some(folder) = folder() else { return Vec::new() };
    let scope: Vec<_> = SCOPE.split_whitespace().collect();
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("an entry can be read").path();
        let Ok(bytes) = std::fs::read(path.join("model.onnx")) else { continue };
        let model = Model::decode(&bytes[..]).expect("a model of ONNX");
        let Some(graph) = model.graph else { continue };
        if !graph.nodes.iter().all(|node| scope.contains(&node.operator.as_str())) {
            continue;
        }
        let sets = std::fs::read_dir(&path).expect("a folder can be read").map(|entry| entry.expect("an entry can be read").path());
        let data = sets.filter(|path| path.is_dir()).collect();
        cases.push(Case { name: path.file_name().expect("a name").to_string_lossy().into_owned(), graph, data });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

fn read(path: &Path, is_product: bool) -> Result<Option<(Vec<u64>, Data)>, Refused> {
    let Ok(bytes) = std::fs::read(path) else { return Ok(None) };
    let tensor = Tensor::decode(&bytes[..]).map_err(|error| Refused::Unsupported(format!("a value that is no tensor ({error})")))?;
    let data = if is_product { tensor.data_of_products() } else { tensor.data() };
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

fn value(gpu: &Gpu, shape: Vec<u64>, data: Data) -> Result<Value, Refused> {
    match data {
        Data::Int64(values) => Ok(Value::Int64(shape, values)),
        Data::Values(values) => {
            let tensor = gpu.tensor_blocking(&values, 1, values.len())?;
            Ok(Value::Expr(Expr::from(&tensor.reshape(&shape)?)))
        }
    }
}

impl Case {
    /// Whether values may be of 8 bits.
    fn is_product(&self) -> bool {
        self.graph.nodes.iter().all(|node| node.operator == "MatMulInteger")
    }

    fn is_transform(&self) -> bool {
        self.graph.nodes.iter().any(|node| node.operator == "DFT")
    }

    fn run(&self, gpu: &Gpu) -> Result<(), Refused> {
        for set in &self.data {
            let mut values = HashMap::new();
            for initializer in &self.graph.initializers {
                let data = initializer.data().map_err(|kind| Refused::Unsupported(format!("values of {kind}")))?;
                values.insert(initializer.name.clone(), value(gpu, initializer.shape(), data)?);
            }
            for (number, input) in self.graph.inputs.iter().enumerate() {
                if let Some((shape, data)) = read(&set.join(format!("input_{number}.pb")), self.is_product())? {
                    values.insert(input.name.clone(), value(gpu, shape, data)?);
                }
            }
            for node in &self.graph.nodes {
                let results = Call::new(gpu, node, &values)?.run()?;
                values.extend(node.outputs.iter().cloned().zip(results));
            }
            for (number, output) in self.graph.outputs.iter().enumerate() {
                let Some((shape, expected)) = read(&set.join(format!("output_{number}.pb")), self.is_product())? else { continue };
                let Some(got) = values.get(&output.name) else {
                    return Err(Refused::Unsupported(format!("the output {}", output.name)));
                };
                let what = format!("output {number}");
                match (got, expected) {
                    (Value::Int64(_, got), Data::Int64(expected)) if *got == expected => {}
                    (Value::Expr(expr), expected) => compare(gpu, expr, &shape, &expected, (&what, self.is_transform()))?,
                    _ => return Err(Refused::Failed(format!("{what} is of another type"))),
                }
            }
        }
        Ok(())
    }
}

fn compare(gpu: &Gpu, expr: &Expr, shape: &[u64], expected: &Data, (what, is_transform): (&str, bool)) -> Result<(), Refused> {
    let tensor = gpu.evaluate_blocking(expr)?;
    if tensor.shape() != shape {
        return Err(Refused::Failed(format!("{what} has the shape {:?}, not {shape:?}", tensor.shape())));
    }
    let got = tensor.to_host_blocking()?;
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

fn every_case_on(backend: BackendId, vendor_libraries: bool) {
    let Some(gpu) = devices::open(Options { vendor_libraries, ..Options::only(backend) }) else { return };
    let only = std::env::var("LAPIDARY_ONNX_ONLY").unwrap_or_default();
    let (mut passed, mut failed, mut skipped) = (0, Vec::new(), BTreeMap::<String, Vec<String>>::new());
    for case in cases().into_iter().filter(|case| case.name.contains(&only)) {
        match case.run(&gpu) {
            Ok(()) => passed += 1,
            Err(Refused::Unsupported(what)) => skipped.entry(what).or_default().push(case.name),
            Err(Refused::Failed(what)) => failed.push(format!("{}: {what}", case.name)),
        }
    }
    println!("on {backend}");
    for (what, names) in &skipped {
        println!("skipped {} for {what}: {}", names.len(), names.join(" "));
    }
    for what in &failed {
        println!("failed {what}");
    }
    let skipped: usize = skipped.values().map(Vec::len).sum();
    println!("{passed} passed, {} failed, {skipped} skipped", failed.len());
    assert!(failed.is_empty(), "{} cases failed on {backend}", failed.len());
    assert!(passed > 0 || skipped == 0 && only.is_empty(), "no case passed on {backend}");
}

macro_rules! backends {
    ($($test:ident: $backend:ident, $vendor_libraries:literal;)+) => { $(
        #[test]
        fn $test() {
            every_case_on(BackendId::$backend, $vendor_libraries);
        }
    )+ };
}

backends! {
    every_case_of_onnx_on_the_cpu: Simd, true;
    every_case_of_onnx_on_the_plain_cpu: Scalar, true;
    every_case_of_onnx_on_cuda: Cuda, true;
    every_case_of_onnx_on_cuda_by_own_kernels: Cuda, false;
    every_case_of_onnx_on_vulkan: Vulkan, true;
    every_case_of_onnx_on_webgpu: WebGpu, true;
}
