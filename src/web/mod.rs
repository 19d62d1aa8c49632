//! What JavaScript calls: convert, call, convert back. The package's entry, `npm/index.js`, gives these functions their classes and
//! their names; `npm/index.d.ts` says what they mean.
//!
//! Objects live here in registries and JavaScript holds their numbers, so that freeing one during a call, or twice, is harmless.
//! Every function reads its arguments before it returns its promise. `npm/options.js` has checked what they are; what they mean together
//! is checked where Rust's callers come by too.

#[cfg(feature = "npm")]
mod allocator;
mod convert;
mod expr;
#[cfg(feature = "webgpu")]
mod external;
mod known;
pub(crate) mod parts;
mod promise;
mod reference;
mod registry;
#[cfg(feature = "webgpu")]
mod tune;

use js_sys::{Float32Array, Object, Promise};
use wasm_bindgen::prelude::*;

use crate::backend::BoxFuture;
use crate::call::{Call, Operand};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Want};
use crate::host::HostVec;
use crate::ops::matmul::{Activation, Matmul, Precision};
use crate::options::{Choice, Options, PowerPreference};
use crate::random;
use crate::tensor::{Tensor, check_sizes};
use parts::Part;
use promise::{now_or_promise, promise, promise_of};
use registry::Registry;

thread_local! {
    static GPUS: Registry<Gpu> = const { Registry::new("handle") };
    static TENSORS: Registry<Tensor> = const { Registry::new("tensor") };
}

#[wasm_bindgen]
extern "C" {
    pub type Rejector;
    #[wasm_bindgen(method)]
    fn call(this: &Rejector, this_arg: &JsValue, message: &str);

    pub type Signal;
    #[wasm_bindgen(method, getter, catch)]
    fn aborted(this: &Signal) -> Result<bool, JsValue>;
}

/// Makes panics readable in the console, and tells JavaScript of them: a promise whose future panicked would wait for ever.
#[wasm_bindgen]
pub fn set_panic_handler(handler: Rejector) {
    std::panic::set_hook(Box::new(move |info| {
        console_error_panic_hook::hook(info);
        handler.call(&JsValue::NULL, &info.to_string());
    }));
}

/// Has the CPU's workers made by a function of a script's text, in place of the page's `Worker`, and how many threads there are at most.
#[wasm_bindgen]
pub fn set_worker(make: &js_sys::Function, most: u32) {
    crate::backend::cpu::wasm::set_worker(make, most);
}

/// Opens a device; gives the number of its handle.
#[wasm_bindgen]
pub fn open(backend: &str, power_preference: &str, pool_bytes: Option<f64>, threads: Option<u32>) -> Result<Promise, JsValue> {
    // Whose names the package has seen to.
    let backend = Choice::from_name(backend).ok_or_else(|| Error::internal(backend))?;
    let power_preference = PowerPreference::from_name(power_preference).unwrap_or_default();
    let pool_bytes = pool_bytes.map_or(Options::default().pool_bytes, |bytes| bytes as u64);
    let options = Options { backend, power_preference, pool_bytes, threads };
    Ok(promise(async move {
        let gpu = Gpu::open(options).await?;
        Ok(GPUS.with(|gpus| gpus.insert(gpu)).into())
    }))
}

/// What the device is.
#[wasm_bindgen]
pub fn info(gpu: u32) -> Result<JsValue, JsValue> {
    Ok(convert::device_info(&find_gpu(gpu)?.info()?))
}

/// Queues a product of tensors whose result is kept: its number, or 0 if there is something to wait for.
#[wasm_bindgen]
pub fn queue(gpu: u32, a: u32, b: u32, numbers: &[f64], c: Option<u32>, bias: Option<u32>) -> Result<u32, JsValue> {
    let gpu = find_gpu(gpu)?;
    let tensor = |number| find_tensor(number).map(Operand::Tensor);
    let operands = [Some(tensor(a)?), Some(tensor(b)?), c.map(tensor).transpose()?, bias.map(tensor).transpose()?];
    let queued = gpu.queue(&known::call(numbers, operands)?)?;
    Ok(queued.map_or(0, |queued| TENSORS.with(|tensors| tensors.insert(queued))))
}

/// A product of operands that are arrays or the numbers of tensors: a promise, unless the result is there already.
#[wasm_bindgen]
#[allow(clippy::too_many_arguments, reason = "JavaScript's names are worth more than a struct here")]
pub fn matmul(
    gpu: u32,
    a: JsValue,
    b: JsValue,
    numbers: &[f64],
    c: JsValue,
    bias: JsValue,
    report: bool,
    keep: bool,
) -> Result<JsValue, JsValue> {
    let gpu = find_gpu(gpu)?;
    let want = Want { timed: report, keep };
    let call = Call::new(&product(numbers, optional(c)?, optional(bias)?)?, operand(a)?, operand(b)?)?;
    let pending = gpu.begin(call, want)?;
    let is_over = pending.is_over();
    let report: BoxFuture<'static, _> = Box::pin(async move { convert::report(pending.finish().await?, want) });
    if is_over { now_or_promise(report) } else { Ok(promise_of(report).into()) }
}

/// Puts an array on the device; `dtype` is a place in [`DType::ALL`].
#[wasm_bindgen]
pub fn tensor(gpu: u32, data: Object, dtype: usize, shape: &[f64]) -> Result<Promise, JsValue> {
    let dtype = *DType::ALL.get(dtype).ok_or_else(|| Error::internal("a type of another number"))?;
    let shape = sizes(shape);
    check_sizes(&shape)?;
    let pending = find_gpu(gpu)?.begin_tensor(HostVec::new(data, dtype).into(), shape)?;
    Ok(promise(async move { Ok(convert::tensor(pending.finish().await?)) }))
}

/// Computes an expression: a promise, unless the result is there already, as it is where operations are only queued.
#[wasm_bindgen]
pub fn evaluate(gpu: u32, code: Vec<f64>) -> Result<JsValue, JsValue> {
    let (gpu, tensors) = (find_gpu(gpu)?, expr::tensors(&code)?);
    now_or_promise(Box::pin(async move {
        parts::load(Part::Operations).await?;
        Ok(convert::tensor(expr::evaluate(gpu, code, tensors).await?))
    }))
}

/// The same values in another shape: the number of one more tensor.
#[wasm_bindgen]
pub fn reshape(tensor: u32, shape: &[f64]) -> Result<u32, JsValue> {
    let reshaped = find_tensor(tensor)?.reshape(&sizes(shape))?;
    Ok(TENSORS.with(|tensors| tensors.insert(reshaped)))
}

/// Copies a tensor back.
#[wasm_bindgen]
pub fn tensor_to_array(tensor: u32) -> Result<Promise, JsValue> {
    let tensor = find_tensor(tensor)?;
    Ok(promise(async move { Ok(tensor.to_host().await?.into_array()?.into()) }))
}

/// Lets go of a tensor.
#[wasm_bindgen]
pub fn free_tensor(tensor: u32) {
    TENSORS.with(|tensors| tensors.remove(tensor));
}

/// Another number of a handle, which stays when the first is let go of: for calls that something has to be loaded for.
#[wasm_bindgen]
pub fn hold_gpu(gpu: u32) -> Result<u32, JsValue> {
    let gpu = find_gpu(gpu)?;
    Ok(GPUS.with(|gpus| gpus.insert(gpu)))
}

/// Lets go of a handle. It is not closed, since calls under way have it too and are to finish: its device goes with the last of them.
#[wasm_bindgen]
pub fn free_gpu(gpu: u32) {
    GPUS.with(|gpus| gpus.remove(gpu));
}

/// Times the kernel.
#[wasm_bindgen]
#[allow(clippy::too_many_arguments, reason = "JavaScript's names are worth more than a struct here")]
pub fn benchmark(
    gpu: u32,
    a: JsValue,
    b: JsValue,
    numbers: &[f64],
    c: JsValue,
    bias: JsValue,
    samples: u32,
    min_ms: f64,
    signal: Option<Signal>,
) -> Result<Promise, JsValue> {
    let gpu = find_gpu(gpu)?;
    let (operands, op) = ([operand(a)?, operand(b)?], product(numbers, optional(c)?, optional(bias)?)?);
    let work = 2.0 * op.k as f64 * crate::tensor::elements(&op.shape()?) as f64;
    Ok(promise(async move {
        let done = gpu.benchmark_between(operands, &op, samples, min_ms, async || turn(&signal).await).await?;
        Ok(convert::benchmark(&done, work))
    }))
}

/// Memory of the device and of this module.
#[wasm_bindgen]
pub fn memory_stats(gpu: u32) -> Result<JsValue, JsValue> {
    Ok(convert::memory(&find_gpu(gpu)?.memory()?))
}

/// Gives free pooled buffers back.
#[wasm_bindgen]
pub fn trim(gpu: u32) -> Result<(), JsValue> {
    Ok(find_gpu(gpu)?.trim()?)
}

/// A matrix from a seed, made in pieces so that it does not pass through this module's memory whole.
#[wasm_bindgen]
pub fn random_matrix(length: f64, seed: f64) -> Result<Float32Array, JsValue> {
    const PIECE: usize = 1 << 16;
    let (length, seed) = (length as u64, seed as u64);
    let out = crate::backend::cpu::wasm::new_array(length)?;
    let mut piece = vec![0.0; PIECE.min(length as usize)];
    for start in (0..length).step_by(PIECE) {
        let part = &mut piece[..(length - start).min(PIECE as u64) as usize];
        random::fill(seed, start, part);
        out.subarray(start as u32, start as u32 + part.len() as u32).copy_from(part);
    }
    Ok(out)
}

fn find_gpu(gpu: u32) -> Result<Gpu, JsValue> {
    Ok(GPUS.with(|gpus| gpus.get(gpu))?)
}

fn find_tensor(tensor: u32) -> Result<Tensor, JsValue> {
    Ok(TENSORS.with(|tensors| tensors.get(tensor))?)
}

/// A `Float32Array`, a `Float16Array`, or the number of a tensor.
fn operand(value: JsValue) -> Result<Operand<'static>, JsValue> {
    match value.as_f64() {
        None => Ok(Operand::Host(HostVec::of(value.unchecked_into()).into())),
        Some(tensor) => find_tensor(tensor as u32).map(Operand::Tensor),
    }
}

/// The same, or nothing.
fn optional(value: JsValue) -> Result<Option<Operand<'static>>, JsValue> {
    if value.is_undefined() { Ok(None) } else { operand(value).map(Some) }
}

fn sizes(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|&size| size as u64).collect()
}

/// A product as `product` in `npm/options.js` tells it. A stride or an offset that is not told is NaN.
fn product(numbers: &[f64], c: Option<Operand<'static>>, bias: Option<Operand<'static>>) -> Result<Matmul<'static>, JsValue> {
    let &[
        m,
        k,
        n,
        transpose_a,
        transpose_b,
        alpha,
        beta,
        lda,
        ldb,
        ldc,
        stride_a,
        stride_b,
        stride_c,
        offset_a,
        offset_b,
        offset_c,
        activation,
        result,
        precision,
        a_zero,
        b_zero,
        is_row,
        is_column,
        rank_a,
        ref batches @ ..,
    ] = numbers
    else {
        return Err(Error::internal("a product of other numbers").into());
    };
    let (batch_a, batch_b) = batches.split_at((rank_a as usize).min(batches.len()));
    let stride = |elements: f64| Some(elements as u64).filter(|_| !elements.is_nan());
    let mut op = Matmul::new(m as u64, k as u64, n as u64).transpose_a(transpose_a != 0.0).transpose_b(transpose_b != 0.0);
    (op.alpha, op.beta, op.c, op.bias) = (alpha as f32, beta as f32, c, bias);
    op.activation = Activation::of_number(activation as u32);
    // Left out it is −1.
    op.result = if result < 0.0 { None } else { DType::ALL.get(result as usize).copied() };
    op.zero_points = [a_zero as i32, b_zero as i32];
    op.precision = Precision::ALL.get(precision as usize).copied().unwrap_or_default();
    (op.lda, op.ldb, op.ldc) = (stride(lda), stride(ldb), stride(ldc));
    op.vectors = [is_row, is_column].map(|is_vector| is_vector != 0.0);
    Ok(op.batches(sizes(batch_a), sizes(batch_b), [stride_a, stride_b, stride_c].map(stride), [offset_a, offset_b, offset_c].map(stride)))
}

/// Lets the page or the worker do what else there is, such as hearing of an abort; an error if the signal is aborted then.
async fn turn(signal: &Option<Signal>) -> Result<()> {
    crate::clock::turn().await;
    if signal.as_ref().is_some_and(|signal| signal.aborted().unwrap_or(false)) { Err(Box::new(Error::Aborted)) } else { Ok(()) }
}
