//! What JavaScript calls: convert, call, convert back. The package's entry, `npm/index.js`, gives these functions their classes and
//! their names; `npm/index.d.ts` says what they mean.
//!
//! Objects live here in registries and JavaScript holds their numbers, so that freeing one during a call, or twice, is harmless.
//! Every function reads its arguments before it returns its promise.

#[cfg(feature = "npm")]
mod allocator;
mod convert;
mod error;
mod options;
mod reference;
mod registry;

use std::future::Future;
use std::pin::Pin;

use js_sys::Promise;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::call::{Call, Operand};
use crate::error::Result;
use crate::gpu::{Gpu, Output, Report, Want};
use crate::host::HostSlice;
use crate::random;
use crate::tensor::Tensor;
use convert::{floats, object};
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
}

/// Makes panics readable in the console, and tells JavaScript of them: a promise whose future panicked would wait for ever.
#[wasm_bindgen]
pub fn set_panic_handler(handler: Rejector) {
    std::panic::set_hook(Box::new(move |info| {
        console_error_panic_hook::hook(info);
        handler.call(&JsValue::NULL, &info.to_string());
    }));
}

/// Opens a device; gives the number of its handle.
#[wasm_bindgen]
pub fn open(options: JsValue) -> Result<Promise, JsValue> {
    let options = options::init(&options)?;
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

/// A product. An operand that is a tensor comes as its number, 0 standing for none.
#[wasm_bindgen]
pub fn matmul(gpu: u32, a: &JsValue, a_tensor: u32, b: &JsValue, b_tensor: u32, options: &JsValue) -> Result<Promise, JsValue> {
    let gpu = find_gpu(gpu)?;
    let (a, b) = (operand("a", a, a_tensor)?, operand("b", b, b_tensor)?);
    let options::Product { op, want } = options::product(options, [&a, &b], ", report, keep")?;
    let pending = gpu.begin(Call::new(&op, a, b)?, want)?;
    Ok(promise(async move { Ok(report(pending.finish().await?, want)) }))
}

/// Puts a matrix on the device.
#[wasm_bindgen]
pub fn tensor(gpu: u32, data: &JsValue, shape: &JsValue) -> Result<Promise, JsValue> {
    let gpu = find_gpu(gpu)?;
    let (rows, columns) = options::shape(shape)?;
    let pending = gpu.begin_tensor(floats("data", data)?.into(), rows, columns)?;
    Ok(promise(async move { Ok(register(pending.finish().await?)) }))
}

/// Copies a tensor back.
#[wasm_bindgen]
pub fn tensor_to_array(tensor: u32) -> Result<Promise, JsValue> {
    let tensor = TENSORS.with(|tensors| tensors.get(tensor))?;
    Ok(promise(async move { Ok(tensor.to_host().await?.0.into()) }))
}

/// Lets go of a tensor.
#[wasm_bindgen]
pub fn free_tensor(tensor: u32) {
    TENSORS.with(|tensors| tensors.remove(tensor));
}

/// Lets go of a handle.
#[wasm_bindgen]
pub fn free_gpu(gpu: u32) {
    if let Some(gpu) = GPUS.with(|gpus| gpus.remove(gpu)) {
        gpu.close();
    }
}

/// Times the kernel.
#[wasm_bindgen]
pub fn benchmark(gpu: u32, a: &JsValue, a_tensor: u32, b: &JsValue, b_tensor: u32, options: &JsValue) -> Result<Promise, JsValue> {
    let gpu = find_gpu(gpu)?;
    let (a, b) = (operand("a", a, a_tensor)?, operand("b", b, b_tensor)?);
    let (samples, min_ms) = options::benchmark(options)?;
    let options::Product { op, .. } = options::product(options, [&a, &b], ", samples, min_ms")?;
    let options = options.clone();
    Ok(promise(async move {
        let done = gpu.benchmark_between([a, b], &op, samples, min_ms, async || options::turn(&options).await).await?;
        Ok(convert::benchmark(&done, 2.0 * op.m as f64 * op.k as f64 * op.n as f64))
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
pub fn random_matrix(length: &JsValue, seed: &JsValue) -> Result<JsValue, JsValue> {
    const PIECE: usize = 1 << 16;
    let (length, seed) = (convert::whole("length", length)?, convert::whole("seed", seed)?);
    let out = crate::backend::cpu::wasm::new_array(length)?;
    let mut piece = vec![0.0; PIECE.min(length as usize)];
    for start in (0..length).step_by(PIECE) {
        let part = &mut piece[..(length - start).min(PIECE as u64) as usize];
        random::fill(seed, start, part);
        out.subarray(start as u32, start as u32 + part.len() as u32).copy_from(part);
    }
    Ok(out.into())
}

/// A promise of what the future gives, with errors as JavaScript has them. Boxed, so that the machinery is compiled once.
fn promise(future: impl Future<Output = Result<JsValue>> + 'static) -> Promise {
    let future: Pin<Box<dyn Future<Output = Result<JsValue>>>> = Box::pin(future);
    future_to_promise(async move { future.await.map_err(JsValue::from) })
}

fn find_gpu(gpu: u32) -> Result<Gpu> {
    GPUS.with(|gpus| gpus.get(gpu))
}

fn operand(name: &'static str, value: &JsValue, tensor: u32) -> Result<Operand<'static>> {
    match tensor {
        0 => Ok(Operand::Host(HostSlice::from(floats(name, value)?))),
        tensor => TENSORS.with(|tensors| tensors.get(tensor)).map(Operand::Tensor),
    }
}

fn register(tensor: Tensor) -> JsValue {
    let (rows, columns, backend) = (tensor.rows() as f64, tensor.columns() as f64, tensor.backend().name());
    let number = TENSORS.with(|tensors| tensors.insert(tensor));
    object(&[("tensor", number.into()), ("rows", rows.into()), ("columns", columns.into()), ("backend", backend.into())])
}

fn report(report: Report<Output>, want: Want) -> JsValue {
    let report = report.map(|output| match output {
        Output::Host(values) => values.0.into(),
        Output::Tensor(tensor) => register(tensor),
    });
    if want.timed { convert::report(&report) } else { object(&[("data", report.data)]) }
}
