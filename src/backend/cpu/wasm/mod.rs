//! The CPU in the browser: starts the best module of `kernel.rs` that the engine validates, and walks the blocks of a product.
//!
//! Operands and results stay in the page's arrays; only blocks of them pass through the kernel's memory of about 6 MB.
//!
//! ```text
//! for each block of columns
//!   for each part of k             B's block is brought, and packed
//!     for each block of rows       A's block is brought, multiplied, and C's block taken out
//! ```

mod sizes;

use std::cell::Cell;

use js_sys::{Float32Array, Float64Array, Object, Reflect, Uint8Array, WebAssembly};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::kernels::Kernel;
use crate::options::Options;
use crate::plan::matmul::Params;
use sizes::{BLOCK, DEPTH, EXACT, PANEL, PANELS};

/// The kernel compiled for some instructions.
struct Level {
    module: &'static [u8],
    /// What reports call it.
    name: &'static str,
    features: &'static [&'static str],
}

macro_rules! level {
    ($name:literal, $features:expr) => {
        Level { module: include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".wasm")), name: $name, features: $features }
    };
}

const SCALAR: &[Level] = &[level!("scalar", &[])];
/// The best first.
#[cfg(feature = "simd")]
const SIMD: &[Level] = &[level!("fma", &["simd128", "relaxed-simd"]), level!("simd", &["simd128"])];
#[cfg(not(feature = "simd"))]
const SIMD: &[Level] = &[];

/// What would turn a missing path on.
pub(super) const REMEDY: &str = "use a browser of 2022 or later";

/// Up to so many rows of A, B is not packed: each element of it is read too few times.
const UNPACKED_ROWS: u32 = 16;
/// Up to so many elements of B it is not packed either: it stays in the first cache as it is.
const UNPACKED_ELEMENTS: u32 = 8192;
/// A block of B is narrow enough for so many rows of A and C to go with it: fewer would not be worth bringing it.
const ROWS: u32 = 128;
/// Most rows of a block of A: a transposition reads up to three more of what is staged, and there is room for that.
const MOST_ROWS: u32 = 4096;

#[wasm_bindgen(module = "/src/backend/cpu/wasm/rows.js")]
extern "C" {
    fn finish(values: &Float32Array, columns: u32, bias: &Float32Array, activation: u32);
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
    fn transpose_a(this: &Exports, m: u32, k: u32);
    #[wasm_bindgen(method)]
    fn pack_b(this: &Exports, first: u32, count: u32, k: u32, n: u32, transposed: bool);
    #[wasm_bindgen(method)]
    fn multiply(this: &Exports, m: u32, k: u32, n: u32, packed: bool, adds: bool, exact: bool);
    #[wasm_bindgen(method)]
    fn absolute(this: &Exports);
    #[wasm_bindgen(method)]
    fn scale(this: &Exports, length: u32, alpha: f32, beta: f32, reads_c: bool);

    #[wasm_bindgen(js_name = Float32Array)]
    type NewFloat32Array;
    #[wasm_bindgen(constructor, catch, js_class = "Float32Array")]
    fn new(length: f64) -> Result<NewFloat32Array, JsValue>;
}

/// A started kernel.
pub(crate) struct Engine {
    exports: Exports,
    level: &'static Level,
    a: Float32Array,
    b: Float32Array,
    c: Float32Array,
    staged: Float32Array,
    c_exact: Float64Array,
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

/// The first of each part of `whole`, and how many it has; one part without any where there is nothing.
fn parts(whole: u32, part: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..whole.max(1)).step_by(part as usize).map(move |first| (first, part.min(whole - first)))
}

/// As many as fit, in whole panels, but one panel at least.
fn fitting(elements: usize, by: u32) -> u32 {
    (elements as u32 / by / PANEL as u32).max(1) * PANEL as u32
}

impl Engine {
    pub(super) async fn open(simd: bool, _: &Options) -> Result<Self, String> {
        let levels = if simd { SIMD } else { SCALAR };
        // The one without features needs no asking.
        let known = |level: &&Level| level.features.is_empty() || WebAssembly::validate(&Uint8Array::from(level.module)).unwrap_or(false);
        let level = levels.iter().find(known).ok_or("this engine has no WebAssembly SIMD")?;
        let started = JsFuture::from(WebAssembly::instantiate_buffer(level.module, &Object::new())).await;
        let exports: Exports = started
            .and_then(|started| Reflect::get(&started, &"instance".into()))
            .and_then(|instance| Reflect::get(&instance, &"exports".into()))
            .map_err(|_| "the kernel did not start".to_owned())?
            .unchecked_into();
        let memory = exports.memory().buffer();
        let floats = |which, length: usize| Float32Array::new_with_byte_offset_and_length(&memory, exports.block(which), length as u32);
        let c_exact = Float64Array::new_with_byte_offset_and_length(&memory, exports.block(4), (EXACT[0] * EXACT[1]) as u32);
        let engine =
            Self { a: floats(0, BLOCK), b: floats(1, PANELS), c: floats(2, BLOCK), staged: floats(3, BLOCK), c_exact, exports, level };
        MEMORY_BYTES.set(MEMORY_BYTES.get() + engine.bytes());
        Ok(engine)
    }

    fn bytes(&self) -> f64 {
        f64::from(self.a.buffer().unchecked_into::<js_sys::ArrayBuffer>().byte_length())
    }

    pub(super) fn name(&self) -> String {
        "CPU, one thread".to_owned()
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        self.level.features.to_vec()
    }

    pub(super) fn variant(&self) -> &'static str {
        self.level.name
    }

    pub(super) fn matmul(
        &self,
        params: &Params,
        kernel: &Kernel,
        operands: &[Option<HostSlice<'_>>; 4],
        HostVec(out): &mut HostVec,
    ) -> Result<()> {
        let none = Float32Array::new_with_length(0);
        let [a, b, c, bias] = operands.each_ref().map(|operand| operand.as_ref().map_or(&none, |values| &values.0));
        let c = (kernel.constant("READS_C") != 0).then_some(c);
        let (transpose_a, transpose_b) = (kernel.constant("TRANSPOSE_A") != 0, kernel.constant("TRANSPOSE_B") != 0);
        if out.length() == 0 {
            return Ok(());
        }
        for item in 0..params.batch {
            let starts = params.starts(item);
            let [a, b] = [(a, starts[0]), (b, starts[1])].map(|(values, start)| from(values, start));
            let c = c.map(|c| from(c, starts[2]));
            let operands = Operands { a: &a, b: &b, params, transpose_a, transpose_b };
            self.product(&operands, c.as_ref(), &from(out, u64::from(item) * u64::from(params.m) * u64::from(params.n)));
        }
        finish(out, params.n, bias, params.activation);
        Ok(())
    }

    /// One product of a batch.
    fn product(&self, operands: &Operands<'_>, c: Option<&Float32Array>, out: &Float32Array) {
        let &Params { m, k, n, ldc, alpha, beta, .. } = operands.params;
        // Many rows share a block of B, and few are all there: then it may be as wide as the matrix, and is brought in one piece.
        let columns = fitting(BLOCK, m.clamp(1, ROWS));
        let depth = (PANELS as u32 / n.min(columns).next_multiple_of(PANEL as u32)).min(DEPTH as u32);
        let rows = fitting(BLOCK, k.min(depth).max(1)).min(fitting(BLOCK, n.min(columns))).min(MOST_ROWS);
        for (j, n) in parts(n, columns) {
            for (p, k) in parts(k, depth) {
                let (adds, last) = (p > 0, p + k == operands.params.k);
                let packed = self.bring_b(operands, (p, j, k, n));
                for (i, m) in parts(m, rows) {
                    let block = (i, j, m, n);
                    self.bring_a(operands, (i, p, m, k));
                    if adds {
                        bring(out, operands.params.n, block, &self.c);
                    }
                    self.exports.multiply(m, k, n, packed, adds, false);
                    if last && (alpha != 1.0 || c.is_some()) {
                        if let Some(c) = c {
                            bring(c, ldc, block, &self.staged);
                        }
                        self.exports.scale(m * n, alpha, beta, c.is_some());
                    }
                    take(&self.c, out, operands.params.n, block);
                }
            }
        }
    }

    /// One block of op(A)·op(B) in double precision and of |op(A)|·|op(B)|, into packed arrays of the whole.
    pub(crate) fn reference_block(
        &self,
        operands: &Operands<'_>,
        block: (u32, u32, u32, u32),
        exact: &Float64Array,
        magnitude: &Float32Array,
    ) {
        let (i, j, m, n) = block;
        for (p, k) in parts(operands.params.k, (BLOCK / EXACT[0]) as u32) {
            let packed = self.bring_b(operands, (p, j, k, n));
            self.bring_a(operands, (i, p, m, k));
            self.exports.multiply(m, k, n, packed, p > 0, true);
            self.exports.absolute();
            self.exports.multiply(m, k, n, packed, p > 0, false);
        }
        take(&self.c_exact, exact, operands.params.n, block);
        take(&self.c, magnitude, operands.params.n, block);
    }

    /// The blocks of a reference: first row and column, rows and columns.
    pub(crate) fn blocks(&self, m: u32, n: u32) -> impl Iterator<Item = (u32, u32, u32, u32)> + use<> {
        let [rows, columns] = EXACT.map(|side| side as u32);
        parts(n, columns).flat_map(move |(j, n)| parts(m, rows).map(move |(i, m)| (i, j, m, n)))
    }

    /// Brings a block of op(A), first row and column, rows and columns.
    fn bring_a(&self, Operands { a, params, transpose_a, .. }: &Operands<'_>, (i, p, m, k): (u32, u32, u32, u32)) {
        if *transpose_a {
            bring(a, params.lda, (p, i, k, m), &self.staged);
            self.exports.transpose_a(m, k);
        } else {
            bring(a, params.lda, (i, p, m, k), &self.a);
        }
    }

    /// Brings a block of op(B); gives whether it is packed.
    fn bring_b(&self, Operands { b, params, transpose_b, .. }: &Operands<'_>, (p, j, k, n): (u32, u32, u32, u32)) -> bool {
        let packed = *transpose_b || (params.m > UNPACKED_ROWS && k * n > UNPACKED_ELEMENTS);
        if !packed {
            bring(b, params.ldb, (p, j, k, n), &self.b);
        } else if *transpose_b {
            for (first, count) in parts(n, fitting(BLOCK, k.max(1))) {
                bring(b, params.ldb, (j + first, p, count, k), &self.staged);
                self.exports.pack_b(first, count, k, n, true);
            }
        } else {
            for (first, count) in parts(k, BLOCK as u32 / n) {
                bring(b, params.ldb, (p + first, j, count, n), &self.staged);
                self.exports.pack_b(first, count, k, n, false);
            }
        }
        packed
    }
}

/// Copies a block of a stored matrix into the kernel's memory: first row and column, rows and columns.
fn bring(from: &Float32Array, stride: u32, (row, column, rows, columns): (u32, u32, u32, u32), to: &Float32Array) {
    copy_rows(from, f64::from(row) * f64::from(stride) + f64::from(column), stride.into(), to, 0.0, columns.into(), rows, columns);
}

/// Copies a block out of the kernel's memory to its place in a packed matrix of `stride` columns.
fn take(from: &Object, to: &Object, stride: u32, (i, j, m, n): (u32, u32, u32, u32)) {
    copy_rows(from, 0.0, n.into(), to, f64::from(i) * f64::from(stride) + f64::from(j), stride.into(), m, n);
}

/// An array from an element on; what is not read is empty, wherever it would start.
pub(crate) fn from(values: &Float32Array, start: u64) -> Float32Array {
    values.subarray(start as u32, u32::MAX)
}

/// A zeroed array of the page, or an error where the page has no room.
pub(crate) fn new_array(elements: u64) -> Result<Float32Array> {
    let array = NewFloat32Array::new(elements as f64).map_err(|_| Error::OutOfMemory { bytes: elements * 4, place: "the host" })?;
    Ok(array.unchecked_into())
}

pub(super) fn array(elements: u64) -> Result<HostVec> {
    new_array(elements).map(HostVec)
}

pub(super) fn copy(from: &HostSlice<'_>, to: &mut HostVec) {
    to.0.set(&from.0, 0);
}

pub(super) fn borrow(values: &HostVec) -> HostSlice<'static> {
    HostSlice::from(values.0.clone())
}
