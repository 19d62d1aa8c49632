//! Option objects, read strictly: what is not known is named.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

use super::convert::{describe, floats, get, stranger, whole};
use crate::call::Operand;
use crate::error::{Error, Result};
use crate::gpu::Want;
use crate::host::HostSlice;
use crate::info::BackendId;
use crate::ops::matmul::Matmul;
use crate::options::{Choice, Options, PowerPreference};

const PRODUCT: &str = "m, k, n, transpose_a, transpose_b, alpha, beta, c, lda, ldb, ldc, signal";

/// An option object whose names are all known; undefined counts as empty.
fn known(value: &JsValue, names: &str) -> Result<()> {
    if value.is_undefined() {
        return Ok(());
    }
    if !value.is_object() || js_sys::Array::is_array(value) {
        return Err(Error::InvalidType { argument: "options".to_owned(), expected: "an object", found: describe(value) });
    }
    match stranger(value, names) {
        None => Ok(()),
        Some(option) => {
            Err(Error::InvalidOption { option, value: "not an option".to_owned(), expected: format!("the options are {names}") })
        }
    }
}

/// An option that is there: neither undefined nor left out.
fn option(options: &JsValue, name: &str) -> Option<JsValue> {
    Some(get(options, name)).filter(|value| !value.is_undefined())
}

fn invalid(name: &str, value: &JsValue, expected: &str) -> Error {
    Error::InvalidOption { option: name.to_owned(), value: describe(value), expected: expected.to_owned() }
}

fn boolean(options: &JsValue, name: &str) -> Result<bool> {
    match option(options, name) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| invalid(name, &value, "it must be true or false")),
    }
}

fn number(options: &JsValue, name: &str) -> Result<Option<f64>> {
    match option(options, name) {
        None => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| invalid(name, &value, "it must be a number")),
    }
}

fn stride(options: &JsValue, name: &'static str) -> Result<Option<u64>> {
    option(options, name).map(|value| whole(name, &value)).transpose()
}

/// An error if the signal is aborted already.
pub(super) fn signal(options: &JsValue) -> Result<()> {
    match option(options, "signal") {
        None => Ok(()),
        Some(signal) => match get(&signal, "aborted").as_bool() {
            Some(true) => Err(Error::Aborted),
            Some(false) => Ok(()),
            None => Err(invalid("signal", &signal, "it must be an AbortSignal")),
        },
    }
}

/// Lets the page or the worker do what else there is, such as hearing of an abort; an error if the signal is aborted then.
pub(super) async fn turn(options: &JsValue) -> Result<()> {
    crate::clock::sleep(0).await;
    signal(options)
}

pub(super) fn init(options: &JsValue) -> Result<Options> {
    known(options, "backend, power_preference, pool_bytes, signal")?;
    signal(options)?;
    let mut out = Options::default();
    if let Some(value) = option(options, "backend") {
        out.backend = match value.as_string().as_deref() {
            Some("auto") => Choice::Auto,
            Some("cpu") => Choice::Cpu,
            name => {
                let id = name.and_then(BackendId::from_name);
                Choice::Only(id.ok_or_else(|| invalid("backend", &value, "it must be auto, webgpu, webgl2, simd, scalar or cpu"))?)
            }
        };
    }
    if let Some(value) = option(options, "power_preference") {
        out.power_preference = match value.as_string().as_deref() {
            Some("high-performance") => PowerPreference::HighPerformance,
            Some("low-power") => PowerPreference::LowPower,
            _ => return Err(invalid("power_preference", &value, "it must be high-performance or low-power")),
        };
    }
    if let Some(value) = option(options, "pool_bytes") {
        out.pool_bytes = whole("pool_bytes", &value).map_err(|_| invalid("pool_bytes", &value, "it must be a whole number of bytes"))?;
    }
    Ok(out)
}

/// A product as JavaScript describes it.
pub(super) struct Product {
    pub op: Matmul<'static>,
    pub want: Want,
}

/// Reads a product's options. Dimensions may be left out where a tensor's shape tells them.
pub(super) fn product(options: &JsValue, operands: [&Operand<'_>; 2], more: &str) -> Result<Product> {
    known(options, &[PRODUCT, more].concat())?;
    signal(options)?;
    let (transpose_a, transpose_b) = (boolean(options, "transpose_a")?, boolean(options, "transpose_b")?);
    let shape = |operand: &Operand<'_>, transposed: bool| match operand {
        Operand::Tensor(tensor) if transposed => Some((tensor.columns(), tensor.rows())),
        Operand::Tensor(tensor) => Some((tensor.rows(), tensor.columns())),
        Operand::Host(_) => None,
    };
    let (a, b) = (shape(operands[0], transpose_a), shape(operands[1], transpose_b));
    let m = dimension(options, "m", [a.map(|a| a.0), None])?;
    let k = dimension(options, "k", [a.map(|a| a.1), b.map(|b| b.0)])?;
    let n = dimension(options, "n", [b.map(|b| b.1), None])?;
    let mut op = Matmul::new(m, k, n).transpose_a(transpose_a).transpose_b(transpose_b);
    op.alpha = number(options, "alpha")?.unwrap_or(1.0) as f32;
    op.beta = number(options, "beta")?.unwrap_or(0.0) as f32;
    op.c = option(options, "c").map(|c| floats("c", &c)).transpose()?.map(HostSlice::from);
    (op.lda, op.ldb, op.ldc) = (stride(options, "lda")?, stride(options, "ldb")?, stride(options, "ldc")?);
    let want = Want { timed: boolean(options, "report")?, keep: boolean(options, "keep")? };
    Ok(Product { op, want })
}

/// A dimension from the options, or from the tensors; both must agree.
fn dimension(options: &JsValue, name: &'static str, known: [Option<u64>; 2]) -> Result<u64> {
    let given = get(options, name);
    let told = known.into_iter().flatten();
    let value = match (given.is_undefined(), told.clone().next()) {
        (true, Some(told)) => told,
        _ => whole(name, &given)?,
    };
    for told in told {
        if told != value {
            return Err(Error::InvalidDimension {
                name,
                value: value.to_string(),
                expected: format!("{told}, as the tensor's shape says"),
            });
        }
    }
    Ok(value)
}

/// Samples and shortest time of a benchmark.
pub(super) fn benchmark(options: &JsValue) -> Result<(u32, f64)> {
    let samples = number(options, "samples")?.unwrap_or(5.0);
    if !(1.0..=1000.0).contains(&samples) || samples.fract() != 0.0 {
        return Err(invalid("samples", &samples.into(), "it must be a whole number from 1 to 1000"));
    }
    let min_ms = number(options, "min_ms")?.unwrap_or(50.0);
    if !(0.0..=10_000.0).contains(&min_ms) {
        return Err(invalid("min_ms", &min_ms.into(), "it must be from 0 to 10000"));
    }
    Ok((samples as u32, min_ms))
}

/// `[rows, columns]`.
pub(super) fn shape(shape: &JsValue) -> Result<(u64, u64)> {
    let side = |index: u32, name| whole(name, &Reflect::get_u32(shape, index).unwrap_or(JsValue::UNDEFINED));
    if !js_sys::Array::is_array(shape) || get(shape, "length").as_f64() != Some(2.0) {
        return Err(Error::InvalidType { argument: "shape".to_owned(), expected: "an array [rows, columns]", found: describe(shape) });
    }
    Ok((side(0, "rows")?, side(1, "columns")?))
}
