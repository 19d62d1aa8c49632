//! The judging of whole results in the browser: the exact product by blocks in the CPU kernel's module, kept in the page's arrays.

use std::rc::Rc;

use js_sys::{Float32Array, Float64Array, Promise};
use wasm_bindgen::prelude::*;

use super::registry::Registry;
use super::{Signal, convert, optional, product, promise, turn};
use crate::backend::cpu;
use crate::backend::cpu::wasm::{from, reference_job};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::BackendId;
use crate::ops::matmul::Problem;
use crate::options::Options;
use crate::plan::matmul::Params;
use crate::verify::{Tolerance, Verdict, shortfall};

/// Elements judged at a time.
const PIECE: u32 = 1 << 16;

struct Reference {
    problem: Problem,
    exact: Float64Array,
    magnitude: Float64Array,
    c: Option<Float32Array>,
    bias: Option<Float32Array>,
}

thread_local! {
    static REFERENCES: Registry<Rc<Reference>> = const { Registry::new("reference") };
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_name = Float64Array)]
    type NewFloat64Array;
    #[wasm_bindgen(constructor, catch, js_class = "Float64Array")]
    fn new(length: f64) -> Result<NewFloat64Array, JsValue>;
}

/// Computes a reference; gives its number.
#[wasm_bindgen]
pub fn reference(
    a: Float32Array,
    b: Float32Array,
    numbers: &[f64],
    c: JsValue,
    bias: JsValue,
    signal: Option<Signal>,
) -> Result<Promise, JsValue> {
    let mut op = product(numbers, optional(c.clone())?, optional(bias.clone())?)?;
    // The package has widened C too.
    let (result, precision) = (op.result.take().unwrap_or(DType::F32), std::mem::take(&mut op.precision));
    if !result.is_float() {
        let (argument, found) = ("the result".to_owned(), format!("of {result}"));
        return Err(Box::new(Error::InvalidType { argument, expected: "of f32 or f16, which can be judged", found }).into());
    }
    let problem = Problem { result, precision, ..op.check([DType::F32; 2], a.length().into(), b.length().into())? };
    // The package has seen to it that they are arrays.
    let [c, bias] = [(problem.c.is_some(), c), (problem.bias, bias)].map(|(read, values)| read.then(|| values.unchecked_into()));
    Ok(promise(async move {
        let reference = compute(problem, &a, &b, [c, bias], &signal).await?;
        Ok(REFERENCES.with(|references| references.insert(Rc::new(reference))).into())
    }))
}

/// Lets go of a reference.
#[wasm_bindgen]
pub fn free_reference(reference: u32) {
    REFERENCES.with(|references| references.remove(reference));
}

async fn compute(
    problem: Problem,
    a: &Float32Array,
    b: &Float32Array,
    [c, bias]: [Option<Float32Array>; 2],
    signal: &Option<Signal>,
) -> Result<Reference> {
    let elements = problem.elements();
    let doubles = || {
        let made = NewFloat64Array::new(elements as f64);
        let made = made.map_err(|_| Box::new(Error::OutOfMemory { bytes: elements * 8, place: "the host" }))?;
        Ok::<Float64Array, Box<Error>>(made.unchecked_into())
    };
    let (exact, magnitude) = (doubles()?, doubles()?);
    let options = Options { threads: Some(1), ..Options::default() };
    let (cpu, _) = match cpu::open(BackendId::Simd, &options).await {
        Ok(opened) => opened,
        Err(_) => cpu::open(BackendId::Scalar, &options).await?,
    };
    let params = Params {
        m: problem.m,
        k: problem.k,
        n: problem.n,
        lda: problem.a.stride as u32,
        ldb: problem.b.stride as u32,
        ..Params::default()
    };
    let mut clock = crate::clock::Stopwatch::start();
    // There may be no elements of very many.
    let items = if elements == 0 { 0 } else { problem.batch.count() };
    for item in 0..items {
        let [a_start, b_start, _] = problem.batch.starts(item);
        let job = reference_job(&from(a, a_start), &from(b, b_start), &params, [problem.transpose_a, problem.transpose_b]);
        let start = (item * u64::from(problem.m) * u64::from(problem.n)) as u32;
        let (exact, magnitude) = (exact.subarray(start, u32::MAX), magnitude.subarray(start, u32::MAX));
        for block in cpu.engine().blocks(problem.m, problem.n) {
            cpu.engine().reference_block(&job, block, &exact, &magnitude);
            // The page or the worker has other things to do as well: a message to stop, for one.
            if clock.ms() > 50.0 {
                turn(signal).await?;
                clock = crate::clock::Stopwatch::start();
            }
        }
    }
    Ok(Reference { problem, exact, magnitude, c, bias })
}

/// Judges a result.
#[wasm_bindgen]
pub fn check(reference: u32, result: Float32Array) -> Result<JsValue, JsValue> {
    let reference = REFERENCES.with(|references| references.get(reference))?;
    let Reference { problem, exact, magnitude, c, bias } = &*reference;
    let (length, expected) = (u64::from(result.length()), problem.elements());
    if length != expected {
        return Err(Box::new(Error::LengthMismatch {
            argument: "result",
            length,
            expected,
            formula: format!("{} · {} · {}", problem.batch.count(), problem.m, problem.n),
        })
        .into());
    }
    let tolerance = Tolerance::of(problem);
    // The magnitudes were summed in f32.
    let (beta, shortfall) = (f64::from(problem.beta), shortfall(problem.k.into()));
    let added = |index: u64| match (c, problem.c) {
        (Some(c), Some(stored)) => {
            let n = u64::from(problem.n);
            let (item, row) = (index / n / u64::from(problem.m), index / n % u64::from(problem.m));
            let at = problem.batch.starts(item)[2] + row * stored.stride + index % n;
            beta * f64::from(c.get_index(at as u32))
        }
        _ => 0.0,
    };
    let mut verdict = Verdict::default();
    for start in (0..result.length()).step_by(PIECE as usize) {
        let end = start.saturating_add(PIECE).min(result.length());
        let (values, exact, magnitude) =
            (result.subarray(start, end).to_vec(), exact.subarray(start, end).to_vec(), magnitude.subarray(start, end).to_vec());
        for (i, ((value, exact), magnitude)) in values.into_iter().zip(exact).zip(magnitude).enumerate() {
            let index = u64::from(start) + i as u64;
            let bias = bias.as_ref().map_or(0.0, |bias| f64::from(bias.get_index((index % u64::from(problem.n)) as u32)));
            let (exact, bound) = tolerance.element(problem, [exact, shortfall * magnitude], added(index), bias);
            verdict.add(value, exact, bound, tolerance.largest);
        }
    }
    Ok(convert::verdict(&verdict, problem.n))
}
