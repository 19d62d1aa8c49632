//! Tuning for JavaScript: what `Gpu::tune` found, as plain objects.

use js_sys::Promise;
use wasm_bindgen::prelude::*;

use super::{Signal, find_gpu, promise, turn};
use crate::plan::tuned::Tuned;

#[wasm_bindgen(module = "/src/web/values.js")]
extern "C" {
    type Tuning;
    fn tuning() -> Tuning;
    fn add_trial(tuning: &Tuning, size: u32, kernel: &str, ms: f64, is_default: bool, is_tuned: bool);
    fn set_kept(tuning: &Tuning, kept: bool);
}

/// Measures the tiles.
#[wasm_bindgen]
pub fn tune(gpu: u32, signal: Option<Signal>) -> Result<Promise, JsValue> {
    let gpu = find_gpu(gpu)?;
    Ok(promise(async move {
        let (trials, tuned, kept) = gpu.tune(async || turn(&signal).await).await?;
        let out = tuning();
        for trial in trials {
            let is_tuned = trial.tile.is_some() && trial.tile == tuned.tiles()[trial.class];
            add_trial(&out, Tuned::side(trial.class), &trial.kernel, trial.ms, trial.tile.is_none(), is_tuned);
        }
        set_kept(&out, kept);
        Ok(out.into())
    }))
}

/// Goes back to the defaults, and keeps nothing.
#[wasm_bindgen]
pub fn clear_tuning(gpu: u32) -> Result<Promise, JsValue> {
    let gpu = find_gpu(gpu)?;
    Ok(promise(async move { Ok(gpu.clear_tuning().await?.into()) }))
}
