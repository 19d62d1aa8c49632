//! Results as JavaScript has them: plain objects.

use wasm_bindgen::prelude::*;

use super::{TENSORS, Want};
use crate::backend::MemoryStats;
use crate::benchmark::Benchmark;
use crate::error::Error;
use crate::gpu::{Output, Report};
use crate::info::{Caps, DeviceInfo};
use crate::tensor::Tensor;
use crate::verify::Verdict;

/// Made there, because objects are shorter to write in JavaScript.
mod values {
    use super::*;

    #[wasm_bindgen(module = "/src/web/values.js")]
    #[rustfmt::skip]
    extern "C" {
        pub(super) type Device;

        pub(super) fn fault(code: &str, message: &str) -> JsValue;
        pub(super) fn tensor(number: u32, shape: &[f64], dtype: u32, backend: u32) -> JsValue;
        pub(super) fn plain(data: JsValue) -> JsValue;
        pub(super) fn report(
            data: JsValue, backend: &str, device: &str, software: bool, kernel: &str,
            upload_ms: f64, kernel_ms: f64, download_ms: f64, total_ms: f64, kernel_clock: &str, replayed: bool,
        ) -> JsValue;
        pub(super) fn benchmark(
            backend: &str, kernel: &str, samples_ms: &[f64], median_ms: f64, gflops: f64, dispatches: u32,
        ) -> JsValue;
        pub(super) fn memory(used_bytes: f64, pooled_bytes: f64, peak_bytes: f64, buffers: f64, wasm_bytes: f64) -> JsValue;
        pub(super) fn verdict(
            ok: bool, elements: f64, wrong: f64, max_abs_error: f64, worst_ratio: f64,
            row: f64, column: f64, value: f32, expected: f64, bound: f64,
        ) -> JsValue;
        pub(super) fn device(
            backend: &str, name: &str, vendor: &str, architecture: &str, kind: &str, software: bool, reason: &str, generation: u32,
        ) -> Device;
        pub(super) fn add_limit(device: &Device, name: &str, number: f64);
        pub(super) fn add_feature(device: &Device, name: &str);
        pub(super) fn add_other(device: &Device, backend: &str, state: &str, reason: &str, remedy: &str);
    }
}

/// A real `Error` with a stable `code`.
impl From<Box<Error>> for JsValue {
    fn from(error: Box<Error>) -> Self {
        values::fault(error.code(), &error.to_string())
    }
}

pub(super) fn device_info(info: &DeviceInfo) -> JsValue {
    let DeviceInfo { backend, name, vendor, architecture, kind, reason, generation, .. } = info;
    let out = values::device(backend.name(), name, vendor, architecture, kind.name(), info.is_software(), reason, *generation);
    limits(&info.caps, &out);
    for feature in &info.features {
        values::add_feature(&out, feature);
    }
    for other in &info.others {
        values::add_other(&out, other.backend.name(), other.state.name(), &other.reason, &other.remedy);
    }
    out.into()
}

/// Only limits that there are.
fn limits(caps: &Caps, out: &values::Device) {
    let numbers = [
        ("max_buffer_bytes", caps.max_buffer_bytes),
        ("max_binding_bytes", caps.max_binding_bytes),
        ("max_workgroups_per_dimension", caps.max_workgroups_per_dimension.into()),
        ("max_workgroup_invocations", caps.max_workgroup_invocations.into()),
        ("max_workgroup_bytes", caps.max_workgroup_bytes.into()),
        ("max_texture_size", caps.max_texture_size.into()),
    ];
    for (name, number) in numbers {
        if number != u64::MAX && number != u64::from(u32::MAX) {
            values::add_limit(out, name, number as f64);
        }
    }
}

pub(super) fn report(report: Report<Output>, want: Want) -> Result<JsValue, JsValue> {
    let Report { data, backend, device, software, kernel, upload_ms, kernel_ms, download_ms, total_ms, device_clock, replayed } = report;
    let data = match data {
        Output::Host(data) => data.into_array()?.into(),
        Output::Tensor(data) => tensor(data),
    };
    if !want.timed {
        return Ok(values::plain(data));
    }
    let clock = if device_clock { "timestamp" } else { "wall" };
    Ok(values::report(data, backend.name(), &device, software, &kernel, upload_ms, kernel_ms, download_ms, total_ms, clock, replayed))
}

/// A tensor that JavaScript holds from here on. It knows names by their places, since to tell a string takes as long as to queue an operation.
pub(super) fn tensor(tensor: Tensor) -> JsValue {
    let shape: Vec<_> = tensor.shape().iter().map(|&size| size as f64).collect();
    let (dtype, backend) = (tensor.dtype() as u32, tensor.backend() as u32);
    values::tensor(TENSORS.with(|tensors| tensors.insert(tensor)), &shape, dtype, backend)
}

pub(super) fn benchmark(benchmark: &Benchmark, flops: f64) -> JsValue {
    let median = benchmark.median_ms();
    let gflops = if median > 0.0 { flops / median / 1e6 } else { 0.0 };
    values::benchmark(benchmark.backend.name(), &benchmark.kernel, &benchmark.samples_ms, median, gflops, benchmark.dispatches)
}

pub(super) fn memory(stats: &MemoryStats) -> JsValue {
    let MemoryStats { used_bytes, pooled_bytes, peak_bytes, buffers } = *stats;
    let own = core::arch::wasm32::memory_size::<0>() as f64 * 65536.0;
    let wasm_bytes = own + crate::backend::cpu::wasm::memory_bytes();
    values::memory(used_bytes as f64, pooled_bytes as f64, peak_bytes as f64, buffers as f64, wasm_bytes)
}

pub(super) fn verdict(verdict: &Verdict, columns: u32) -> JsValue {
    let Verdict { elements, wrong, max_abs_error, worst_ratio, worst, value, expected, bound } = *verdict;
    let n = u64::from(columns).max(1);
    let (row, column) = ((worst / n) as f64, (worst % n) as f64);
    let ok = verdict.is_right();
    values::verdict(ok, elements as f64, wrong as f64, max_abs_error, worst_ratio, row, column, value, expected, bound)
}
