//! The CPU in the browser: starts the best module of `kernel.rs` that the engine validates, and walks the blocks of a product.
//!
//! Operands and results stay in the page's arrays; only blocks of them pass through the kernel's memory of about 4 MB.

use std::cell::Cell;

use js_sys::{Float32Array, Float64Array, Object, Reflect, Uint8Array, WebAssembly};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::kernels::Kernel;
use crate::plan::matmul::Params;

const SCALAR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scalar.wasm"));
#[cfg(feature = "simd")]
const SIMD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simd.wasm"));
#[cfg(not(feature = "simd"))]
const SIMD: &[u8] = &[];

/// What would turn a missing path on.
pub(super) const REMEDY: &str = "use a browser of 2022 or later";

#[wasm_bindgen(module = "/src/backend/cpu/wasm/rows.js")]
extern "C" {
    fn copy_rows(from: &Object, from_start: f64, from_stride: f64, to: &Object, to_start: f64, to_stride: f64, rows: u32, columns: u32);
}

#[wasm_bindgen]
extern "C" {
    /// The kernel's exports, as `kernel.rs` declares them.
    type Exports;
    #[wasm_bindgen(method, getter)]
    fn memory(this: &Exports) -> WebAssembly::Memory;
    #[wasm_bindgen(method)]
    fn block(this: &Exports, which: u32) -> u32;
    #[wasm_bindgen(method)]
    fn block_size(this: &Exports, which: u32) -> u32;
    #[wasm_bindgen(method)]
    fn clear(this: &Exports);
    #[wasm_bindgen(method)]
    fn multiply(this: &Exports, m: u32, k: u32, n: u32, transpose_a: bool, transpose_b: bool, absolute: bool);
    #[wasm_bindgen(method)]
    fn multiply_exact(this: &Exports, m: u32, k: u32, n: u32, transpose_a: bool, transpose_b: bool);
    #[wasm_bindgen(method)]
    fn scale(this: &Exports, m: u32, n: u32, alpha: f32, beta: f32, reads_c: bool);

    #[wasm_bindgen(js_name = Float32Array)]
    type NewFloat32Array;
    #[wasm_bindgen(constructor, catch, js_class = "Float32Array")]
    fn new(length: f64) -> Result<NewFloat32Array, JsValue>;
}

/// A started kernel.
pub(crate) struct Engine {
    exports: Exports,
    simd: bool,
    a: Float32Array,
    b: Float32Array,
    c: Float32Array,
    c_added: Float32Array,
    c_exact: Float64Array,
    rows: u32,
    depth: u32,
    columns: u32,
}

thread_local! {
    static MEMORY_BYTES: Cell<f64> = const { Cell::new(0.0) };
}

/// Bytes of the memories of all started kernels.
pub(crate) fn memory_bytes() -> f64 {
    MEMORY_BYTES.get()
}

impl Drop for Engine {
    fn drop(&mut self) {
        MEMORY_BYTES.set(MEMORY_BYTES.get() - self.bytes());
    }
}

/// A product by blocks: the operands, how they are stored, and how far.
pub(crate) struct Operands<'a> {
    pub a: &'a Float32Array,
    pub b: &'a Float32Array,
    pub params: &'a Params,
    pub transpose_a: bool,
    pub transpose_b: bool,
}

impl Engine {
    pub(super) async fn open(simd: bool) -> Result<Self, String> {
        let bytes = Uint8Array::from(if simd { SIMD } else { SCALAR });
        if simd && !WebAssembly::validate(&bytes).unwrap_or(false) {
            return Err("this engine has no WebAssembly SIMD".to_owned());
        }
        let started = JsFuture::from(WebAssembly::instantiate_buffer(&bytes.to_vec(), &Object::new())).await;
        let exports: Exports = started
            .and_then(|started| Reflect::get(&started, &"instance".into()))
            .and_then(|instance| Reflect::get(&instance, &"exports".into()))
            .map_err(|_| "the kernel did not start".to_owned())?
            .unchecked_into();
        let memory = exports.memory().buffer();
        let (rows, depth, columns) = (exports.block_size(0), exports.block_size(1), exports.block_size(2));
        let floats = |which, length| Float32Array::new_with_byte_offset_and_length(&memory, exports.block(which), length);
        let engine = Self {
            a: floats(0, rows * depth),
            b: floats(1, depth * columns),
            c: floats(2, rows * columns),
            c_added: floats(3, rows * columns),
            c_exact: Float64Array::new_with_byte_offset_and_length(&memory, exports.block(4), rows * columns),
            exports,
            simd,
            rows,
            depth,
            columns,
        };
        MEMORY_BYTES.set(MEMORY_BYTES.get() + engine.bytes());
        Ok(engine)
    }

    fn bytes(&self) -> f64 {
        f64::from(self.a.buffer().unchecked_into::<js_sys::ArrayBuffer>().byte_length())
    }

    pub(super) fn name() -> String {
        "CPU, one thread".to_owned()
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        if self.simd { vec!["simd128"] } else { Vec::new() }
    }

    pub(super) fn variant(&self) -> &'static str {
        if self.simd { "simd" } else { "scalar" }
    }

    pub(super) fn matmul(&self, params: &Params, kernel: &Kernel, operands: &[Option<HostSlice<'_>>; 3]) -> Result<HostVec> {
        let none = Float32Array::new_with_length(0);
        let [a, b, c] = operands.each_ref().map(|operand| operand.as_ref().map_or(&none, |values| &values.0));
        let reads_c = kernel.constant("READS_C") != 0;
        let operands =
            Operands { a, b, params, transpose_a: kernel.constant("TRANSPOSE_A") != 0, transpose_b: kernel.constant("TRANSPOSE_B") != 0 };
        let out = new_array(u64::from(params.m) * u64::from(params.n))?;
        for (i, j, m, n) in self.blocks(params.m, params.n) {
            self.exports.clear();
            self.sum(&operands, (i, j, m, n), |m, k, n| self.exports.multiply(m, k, n, operands.transpose_a, operands.transpose_b, false));
            if reads_c {
                let start = f64::from(i) * f64::from(params.ldc) + f64::from(j);
                copy_rows(c, start, params.ldc.into(), &self.c_added, 0.0, self.columns.into(), m, n);
            }
            self.exports.scale(m, n, params.alpha, params.beta, reads_c);
            self.take(&self.c, &out, params.n, (i, j, m, n));
        }
        Ok(HostVec(out))
    }

    /// One block of op(A)·op(B) in double precision and of |op(A)|·|op(B)|, into packed arrays of the whole.
    pub(crate) fn reference_block(
        &self,
        operands: &Operands<'_>,
        block: (u32, u32, u32, u32),
        exact: &Float64Array,
        magnitude: &Float32Array,
    ) {
        let (transpose_a, transpose_b) = (operands.transpose_a, operands.transpose_b);
        self.exports.clear();
        self.sum(operands, block, |m, k, n| {
            self.exports.multiply_exact(m, k, n, transpose_a, transpose_b);
            self.exports.multiply(m, k, n, transpose_a, transpose_b, true);
        });
        self.take(&self.c_exact, exact, operands.params.n, block);
        self.take(&self.c, magnitude, operands.params.n, block);
    }

    /// The blocks of a result: first row and column, rows and columns.
    pub(crate) fn blocks(&self, m: u32, n: u32) -> impl Iterator<Item = (u32, u32, u32, u32)> + use<> {
        let (rows, columns) = (self.rows, self.columns);
        (0..n)
            .step_by(columns as usize)
            .flat_map(move |j| (0..m).step_by(rows as usize).map(move |i| (i, j, rows.min(m - i), columns.min(n - j))))
    }

    /// Brings the blocks of A and B that a block of C is the sum of, and has each pair multiplied.
    fn sum(&self, operands: &Operands<'_>, (i, j, m, n): (u32, u32, u32, u32), multiply: impl Fn(u32, u32, u32)) {
        let Operands { a, b, params, .. } = operands;
        for p in (0..params.k).step_by(self.depth as usize) {
            let k = self.depth.min(params.k - p);
            bring(a, params.lda, if operands.transpose_a { (p, i, k, m) } else { (i, p, m, k) }, &self.a);
            bring(b, params.ldb, if operands.transpose_b { (j, p, n, k) } else { (p, j, k, n) }, &self.b);
            multiply(m, k, n);
        }
    }

    /// Copies a block out of the kernel's memory to its place in a packed matrix of `stride` columns.
    fn take(&self, from: &Object, to: &Object, stride: u32, (i, j, m, n): (u32, u32, u32, u32)) {
        copy_rows(from, 0.0, self.columns.into(), to, f64::from(i) * f64::from(stride) + f64::from(j), stride.into(), m, n);
    }
}

/// Copies a block of a stored matrix into the kernel's memory, packed.
fn bring(from: &Float32Array, stride: u32, (row, column, rows, columns): (u32, u32, u32, u32), to: &Float32Array) {
    copy_rows(from, f64::from(row) * f64::from(stride) + f64::from(column), stride.into(), to, 0.0, columns.into(), rows, columns);
}

/// A zeroed array of the page, or an error where the page has no room.
pub(crate) fn new_array(elements: u64) -> Result<Float32Array> {
    let array = NewFloat32Array::new(elements as f64).map_err(|_| Error::OutOfMemory { bytes: elements * 4, place: "the host" })?;
    Ok(array.unchecked_into())
}

pub(super) fn copy(values: &HostSlice<'_>) -> Result<HostVec> {
    let copy = new_array(values.len())?;
    copy.set(&values.0, 0);
    Ok(HostVec(copy))
}

pub(super) fn borrow(values: &HostVec) -> HostSlice<'static> {
    HostSlice::from(values.0.clone())
}
