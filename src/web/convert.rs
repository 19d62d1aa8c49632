//! Values from JavaScript, checked strictly, and values to it. What wasm-bindgen would coerce in silence (a number for an array, −1
//! for 4294967295, "12" for [1, 2]) is an error here.

use js_sys::{Float32Array, Object, Reflect};
use wasm_bindgen::prelude::*;

use crate::backend::MemoryStats;
use crate::benchmark::Benchmark;
use crate::error::{Error, Result};
use crate::gpu::Report;
use crate::info::{Caps, DeviceInfo, OtherBackend};

/// An object's property; undefined if it has none, or a getter throws.
pub(super) fn get(object: &JsValue, name: &str) -> JsValue {
    Reflect::get(object, &name.into()).unwrap_or(JsValue::UNDEFINED)
}

pub(super) fn set(object: &JsValue, name: &str, value: JsValue) {
    // Fails on frozen objects and proxies only, and these objects are our own.
    let _ = Reflect::set(object, &name.into(), &value);
}

pub(super) fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in entries {
        set(&object, name, value.clone());
    }
    object.into()
}

#[wasm_bindgen(module = "/src/web/values.js")]
extern "C" {
    /// What a value is, for a message.
    pub(super) fn describe(value: &JsValue) -> String;
    #[wasm_bindgen(js_name = floats)]
    fn is_floats(value: &JsValue) -> u8;
    /// The first name of an object's own that is not in the list.
    pub(super) fn stranger(object: &JsValue, names: &str) -> Option<String>;
}

/// A `Float32Array`, of whatever realm, that is not detached and not longer than its length can be counted.
pub(super) fn floats(argument: &'static str, value: &JsValue) -> Result<Float32Array> {
    let fault = |found: String| Error::InvalidType { argument: argument.to_owned(), expected: "a Float32Array", found };
    match is_floats(value) {
        1 => {}
        2 => return Err(fault("detached: it was transferred elsewhere".to_owned())),
        _ => return Err(fault(describe(value))),
    }
    let length = get(value, "length").as_f64().unwrap_or(0.0);
    if length > f64::from(u32::MAX) {
        return Err(Error::LimitExceeded { what: "the length of an array", requested: length as u64, max: u64::from(u32::MAX) });
    }
    Ok(value.unchecked_ref::<Float32Array>().clone())
}

/// A whole number from 0 to 2⁵³ − 1.
pub(super) fn whole(name: &'static str, value: &JsValue) -> Result<u64> {
    const MAX: f64 = 9_007_199_254_740_991.0;
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 && (0.0..=MAX).contains(&number) => Ok(number as u64),
        _ => Err(Error::InvalidDimension { name, value: describe(value), expected: "a whole number, 0 or more".to_owned() }),
    }
}

pub(super) fn device_info(info: &DeviceInfo) -> JsValue {
    let strings = |strings: &[&'static str]| js_sys::Array::from_iter(strings.iter().map(|text| JsValue::from(*text)));
    let other = |other: &OtherBackend| {
        object(&[
            ("backend", other.backend.name().into()),
            ("state", other.standing.name().into()),
            ("reason", other.reason.as_str().into()),
            ("remedy", other.remedy.as_str().into()),
        ])
    };
    object(&[
        ("backend", info.backend.name().into()),
        ("name", info.name.as_str().into()),
        ("vendor", info.vendor.as_str().into()),
        ("architecture", info.architecture.as_str().into()),
        ("kind", info.kind.name().into()),
        ("software", info.is_software().into()),
        ("limits", limits(&info.caps)),
        ("features", strings(&info.features).into()),
        ("reason", info.reason.as_str().into()),
        ("others", js_sys::Array::from_iter(info.others.iter().map(other)).into()),
        ("generation", info.generation.into()),
    ])
}

/// Only limits that there are.
fn limits(caps: &Caps) -> JsValue {
    let limits = object(&[]);
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
            set(&limits, name, (number as f64).into());
        }
    }
    limits
}

pub(super) fn report(report: &Report<JsValue>) -> JsValue {
    object(&[
        ("data", report.data.clone()),
        ("backend", report.backend.name().into()),
        ("device", report.device.as_str().into()),
        ("software", report.software.into()),
        ("kernel", report.kernel.as_str().into()),
        ("upload_ms", report.upload_ms.into()),
        ("kernel_ms", report.kernel_ms.into()),
        ("download_ms", report.download_ms.into()),
        ("total_ms", report.total_ms.into()),
        ("kernel_clock", if report.device_clock { "timestamp" } else { "wall" }.into()),
        ("replayed", report.replayed.into()),
    ])
}

pub(super) fn benchmark(benchmark: &Benchmark, flops: f64) -> JsValue {
    let median = benchmark.median_ms();
    object(&[
        ("backend", benchmark.backend.name().into()),
        ("kernel", benchmark.kernel.as_str().into()),
        ("samples_ms", js_sys::Array::from_iter(benchmark.samples_ms.iter().map(|&ms| JsValue::from(ms))).into()),
        ("median_ms", median.into()),
        ("gflops", if median > 0.0 { flops / median / 1e6 } else { 0.0 }.into()),
        ("dispatches", benchmark.dispatches.into()),
    ])
}

pub(super) fn memory(stats: &MemoryStats) -> JsValue {
    let own = get(&get(&wasm_bindgen::memory(), "buffer"), "byteLength").as_f64().unwrap_or(0.0);
    object(&[
        ("used_bytes", (stats.used_bytes as f64).into()),
        ("pooled_bytes", (stats.pooled_bytes as f64).into()),
        ("peak_bytes", (stats.peak_bytes as f64).into()),
        ("buffers", (stats.buffers as f64).into()),
        ("wasm_bytes", (own + crate::backend::cpu::wasm::memory_bytes()).into()),
    ])
}
