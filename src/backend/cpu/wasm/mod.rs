//! The CPU in the browser: starts the best module of `kernel.rs` that the engine validates, decides how a product is cut into blocks, and
//! into how many threads. `walk.js` walks the blocks, `crew.js` has the threads.
//!
//! Operands and results of a product stay where they are, in the page's arrays or in this module's memory; only blocks of them pass through a
//! kernel's memory of about 6 MB.
//!
//! ```text
//! for each block of columns
//!   for each part of k             B's block is brought, and packed
//!     for each block of rows       A's block is brought, multiplied, and C's block taken out
//! ```
//!
//! Each element of C is summed in the same order whatever the number of threads, since they share rows or columns and never k: the bits are
//! the same.

mod arrays;
mod memory;
mod operations;
mod sizes;
pub(super) mod threads;
pub(super) mod vectorized;

use js_sys::{Float32Array, Float64Array, Object, Promise, Uint8Array, Uint32Array, WebAssembly};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::dtype::{DType, Extent};
use crate::error::{Error, Result};
use crate::host::HostVec;
use crate::kernels::Kernel;
use crate::ops::matmul::Problem;
use crate::options::Options;
use crate::plan::matmul::Params;
pub(super) use arrays::{array, copy, given, into_array, readable};
use arrays::{countable, fill, zeros};
pub(crate) use arrays::{from, new_array};
pub(super) use memory::{Memory, Operand, borrow};
use memory::{Own, Place, steady};
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
pub(super) const REMEDY: &str = "use a browser that has it: Chrome 96, Edge 96, Firefox 90, Safari 16.4";

/// A block of B is narrow enough for so many rows of A and C to go with it: fewer would not be worth bringing it.
const ROWS: u32 = 128;
/// Most rows of a block of A: a transposition reads up to three more of what is staged, and there is room for that.
const MOST_ROWS: u32 = 4096;

#[wasm_bindgen(module = "/src/backend/cpu/wasm/walk.js")]
extern "C" {
    /// A product by blocks: the operands, how they are stored, and how far.
    #[derive(Clone)]
    pub(crate) type Job;
    #[allow(clippy::too_many_arguments, reason = "JavaScript names them")]
    fn job(
        a: &Float32Array,
        b: &Float32Array,
        c: &Float32Array,
        out: &Float32Array,
        m: u32,
        k: u32,
        n: u32,
        lda: u32,
        ldb: u32,
        ldc: u32,
        ldo: u32,
        alpha: f32,
        beta: f32,
        transpose_a: bool,
        transpose_b: bool,
        reads_c: bool,
        columns: u32,
        depth: u32,
        rows: u32,
        starts: Option<Uint32Array>,
    ) -> Job;
    fn finish(values: &Float32Array, columns: u32, bias: Option<&Float32Array>, activation: u32);
    #[wasm_bindgen(catch)]
    fn counted_from(zero_point: i32, values: &Object) -> Result<Float32Array, JsValue>;
    fn add(to: &Object, start: f64, from: &Float32Array);
}

#[wasm_bindgen(module = "/src/backend/cpu/wasm/crew.js")]
extern "C" {
    /// A kernel started in this thread, and the threads that help it.
    type Crew;
    #[wasm_bindgen(catch)]
    async fn start(module: &[u8], sizes: &[u32], most: u32) -> Result<JsValue, JsValue>;
    #[wasm_bindgen(method)]
    fn name(this: &Crew) -> String;
    #[wasm_bindgen(method)]
    fn threads(this: &Crew, m: u32, k: u32, n: u32, items: u32) -> u32;
    #[wasm_bindgen(method)]
    fn kept(this: &Crew, length: f64) -> Option<Float32Array>;
    #[wasm_bindgen(method, getter)]
    fn is_short(this: &Crew) -> bool;
    #[wasm_bindgen(method)]
    fn catch_up(this: &Crew) -> Promise;
    #[wasm_bindgen(method)]
    fn compute(this: &Crew, job: &Job);
    #[wasm_bindgen(method)]
    fn share(this: &Crew, job: &Job, threads: u32, repeats: u32) -> Promise;
    #[wasm_bindgen(method)]
    fn exact(this: &Crew, job: &Job, i: u32, j: u32, m: u32, n: u32, sums: &Float64Array, magnitudes: &Float64Array);
    #[wasm_bindgen(method)]
    fn free(this: &Crew);

    /// Bytes of the memories of all started kernels.
    pub(crate) fn memory_bytes() -> f64;
    /// How workers are made where the page's own way is not to be had, and how many threads there are at most.
    pub(crate) fn set_worker(make: &js_sys::Function, most: u32);
}

/// A started kernel.
pub(crate) struct Engine {
    crew: Crew,
    level: &'static Level,
    /// In place of an operand that is not read.
    none: Float32Array,
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.crew.free();
    }
}

/// The first of each part of `whole`, and how many it has; one part without any where there is nothing.
fn parts(whole: u32, part: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..whole.max(1)).step_by(part as usize).map(move |first| (first, part.min(whole - first)))
}

/// As many as fit, in whole panels, but one panel at least.
fn fitting(elements: usize, by: u32) -> u32 {
    (elements as u32 / by / PANEL as u32).max(1) * PANEL as u32
}

/// How operands are stored, and whether C is read.
fn flags(kernel: &Kernel) -> [bool; 3] {
    ["TRANSPOSE_A", "TRANSPOSE_B", "READS_C"].map(|name| kernel.constant(name) != 0)
}

/// A product by blocks as `walk.js` takes it.
fn job_of(
    params: &Params,
    [transpose_a, transpose_b, reads_c]: [bool; 3],
    operands: [&Float32Array; 3],
    out: &Float32Array,
    depth: Option<u32>,
    starts: Option<Uint32Array>,
) -> Job {
    let &Params { m, k, n, lda, ldb, ldc, ldo, alpha, beta, .. } = params;
    // Many rows share a block of B, and few are all there: then it may be as wide as the matrix, and is brought in one piece.
    let columns = fitting(BLOCK, m.clamp(1, ROWS));
    let depth = depth.unwrap_or((PANELS as u32 / n.clamp(1, columns).next_multiple_of(PANEL as u32)).min(DEPTH as u32));
    let rows = fitting(BLOCK, k.min(depth).max(1)).min(fitting(BLOCK, n.clamp(1, columns))).min(MOST_ROWS);
    let [a, b, c] = operands;
    job(a, b, c, out, m, k, n, lda, ldb, ldc, ldo, alpha, beta, transpose_a, transpose_b, reads_c, columns, depth, rows, starts)
}

impl Engine {
    pub(super) async fn open(simd: bool, options: &Options) -> Result<Self, String> {
        let levels = if simd { SIMD } else { SCALAR };
        // The one without features needs no asking.
        let known = |level: &&Level| level.features.is_empty() || WebAssembly::validate(&Uint8Array::from(level.module)).unwrap_or(false);
        let level = levels.iter().find(known).ok_or("this engine has no WebAssembly SIMD")?;
        let sizes = [BLOCK, PANELS, BLOCK, BLOCK, EXACT[0] * EXACT[1]].map(|elements| elements as u32);
        let started = start(level.module, &sizes, options.threads.unwrap_or(0)).await.map_err(|_| "the kernel did not start".to_owned())?;
        Ok(Self { crew: started.unchecked_into(), level, none: Float32Array::new_with_length(0) })
    }

    /// How many threads there are at most, and if there is only one, why.
    pub(super) fn name(&self) -> String {
        self.crew.name()
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        self.level.features.to_vec()
    }

    pub(super) fn variant(&self) -> &'static str {
        self.level.name
    }

    /// How many threads are to compute a product or a batch: as many as pay, of those that have started.
    pub(super) fn threads(&self, problem: &Problem) -> u32 {
        // What is rounded in the end is done here.
        match u32::try_from(problem.batch.count()) {
            Ok(items @ 1..) if problem.reads_operands() && problem.result == DType::F32 => {
                self.crew.threads(problem.m, problem.k, problem.n, items)
            }
            _ => 1,
        }
    }

    /// Whether the last product should have had threads that have not answered yet.
    pub(super) fn is_short(&self) -> bool {
        self.crew.is_short()
    }

    /// Lets the page hear of threads that are missed.
    pub(super) async fn hear(&self) {
        if self.is_short() {
            // It only resolves.
            let _ = JsFuture::from(self.crew.catch_up()).await;
        }
    }

    /// All of a product or a batch.
    pub(super) fn shared_job(&self, params: &Params, kernel: &Kernel, operands: &[Option<Operand<'_>>; 4], out: &mut Memory) -> Job {
        if params.batch == 1 {
            return steady(|| self.job(params, kernel, operands, out, 0));
        }
        let starts: Vec<u32> = (0..params.batch).flat_map(|item| params.starts(item).map(|start| start as u32)).collect();
        steady(|| {
            let [a, b, c] = self.shown(operands);
            job_of(params, flags(kernel), [&a, &b, &c], out.shown().f32(), None, Some(Uint32Array::from(&starts[..])))
        })
    }

    /// The arrays of A, B and C, to be read at once.
    fn shown(&self, operands: &[Option<Operand<'_>>; 4]) -> [Float32Array; 3] {
        [0, 1, 2].map(|i| operands[i].as_ref().map_or_else(|| self.none.clone(), |values| values.shown().f32().clone()))
    }

    /// One product of a batch.
    fn job(&self, params: &Params, kernel: &Kernel, operands: &[Option<Operand<'_>>; 4], out: &mut Memory, item: u32) -> Job {
        let starts = params.starts(item);
        let operands = self.shown(operands);
        let [a, b, c] = [0, 1, 2].map(|i| from(&operands[i], starts[i]));
        let out = from(out.shown().f32(), u64::from(item) * u64::from(params.m) * u64::from(params.n));
        job_of(params, flags(kernel), [&a, &b, &c], &out, None, None)
    }

    /// Products of 8-bit integers, in this thread: by the kernel of f32, in which sums of so many terms are exact, and the sums in i32.
    fn integers(&self, params: &Params, kernel: &Kernel, operands: &[Option<Operand<'_>>; 4], out: &mut Memory) -> Result<()> {
        // 255² · 256 < 2²⁴.
        const EXACT_TERMS: u32 = 256;
        out.shown().bytes().fill(0, 0, u32::MAX);
        let [Some(a), Some(b), ..] = operands else { return Ok(()) };
        let zero_points = [params.zero_points as i16, (params.zero_points >> 16) as i16];
        let counted = |values: &Operand<'_>, zero_point: i16| {
            let fault = |_| Box::new(Error::OutOfMemory { bytes: values.len() * 4, place: "the host" });
            counted_from(zero_point.into(), values.shown().array()).map_err(fault)
        };
        let (a, b) = (counted(a, zero_points[0])?, counted(b, zero_points[1])?);
        let [transpose_a, transpose_b, _] = flags(kernel);
        let elements = u64::from(params.m) * u64::from(params.n);
        let sums = new_array(elements)?;
        for item in 0..params.batch {
            let [a_start, b_start, _] = params.starts(item);
            for (p, k) in parts(params.k, EXACT_TERMS) {
                let step = |along: bool, stride: u32| u64::from(p) * if along { 1 } else { u64::from(stride) };
                let a = from(&a, a_start + step(!transpose_a, params.lda));
                let b = from(&b, b_start + step(transpose_b, params.ldb));
                let part = Params { k, ..*params };
                self.crew.compute(&job_of(&part, [transpose_a, transpose_b, false], [&a, &b, &self.none], &sums, None, None));
                add(out.shown().array(), (u64::from(item) * elements) as f64, &sums);
            }
        }
        Ok(())
    }

    /// Computes in this thread.
    pub(super) fn matmul(&self, params: &Params, kernel: &Kernel, operands: &[Option<Operand<'_>>; 4], out: &mut Memory) -> Result<()> {
        if out.dtype() == DType::I32 {
            return if out.len() > 0 { self.integers(params, kernel, operands, out) } else { Ok(()) };
        }
        if out.dtype() == DType::F16 {
            let mut wide = array(Extent { elements: out.len(), dtype: DType::F32 })?;
            self.matmul(params, kernel, operands, &mut wide)?;
            let mut words = zeros(wide.len())?;
            wide.shown().f32().copy_to(bytemuck::cast_slice_mut(&mut words));
            return fill(out, &words);
        }
        if out.len() > 0 {
            for item in 0..params.batch {
                self.crew.compute(&steady(|| self.job(params, kernel, operands, out, item)));
            }
            After::new(params, operands[3].as_ref())?.apply(&out.shown());
        }
        Ok(())
    }

    /// One block of op(A)·op(B) in double precision and of |op(A)|·|op(B)|, into packed arrays of the whole.
    pub(crate) fn reference_block(&self, job: &Job, (i, j, m, n): (u32, u32, u32, u32), exact: &Float64Array, magnitude: &Float64Array) {
        self.crew.exact(job, i, j, m, n, exact, magnitude);
    }

    /// The blocks of a reference: first row and column, rows and columns.
    pub(crate) fn blocks(&self, m: u32, n: u32) -> impl Iterator<Item = (u32, u32, u32, u32)> + use<> {
        let [rows, columns] = EXACT.map(|side| side as u32);
        parts(n, columns).flat_map(move |(j, n)| parts(m, rows).map(move |(i, m)| (i, j, m, n)))
    }

    /// Memory for what stays on the device.
    pub(super) fn kept(&self, extent: Extent) -> Result<Memory> {
        Own::new(extent).map_or_else(|| self.lasting(extent), |own| Ok(Memory::new(Place::Own(own))))
    }

    /// The same that stays where it is while other calls are made: where threads share it, if there may be any and the page is isolated.
    pub(super) fn lasting(&self, extent: Extent) -> Result<Memory> {
        self.shared(extent).map_or_else(|| array(extent), |shared| Ok(Memory::new(Place::Page(shared))))
    }

    fn shared(&self, extent: Extent) -> Option<HostVec> {
        let is_countable = extent.dtype == DType::F32 && countable(extent.bytes()).is_ok();
        self.crew.kept(extent.elements as f64).filter(|_| is_countable).map(HostVec::from)
    }

    /// What threads read: where they share it, if that can be, or where it stays while other calls are made, if it is to be read `again`.
    pub(super) fn lasting_all<'a>(&self, mut inputs: [Option<Operand<'a>>; 4], again: bool) -> Result<[Option<Operand<'a>>; 4]> {
        for values in inputs.iter_mut().flatten() {
            if let Some(shared) = values.in_array(|extent| self.shared(extent)) {
                *values = shared;
            } else if let (Operand::Own(_, dtype, _), true) = (&*values, again) {
                let mut copied = HostVec::zeros(Extent { elements: values.len(), dtype: *dtype })?;
                copied.fill_from(&values.shown());
                *values = Operand::Page(copied.into(), None);
            }
        }
        Ok(inputs)
    }
}

/// What is done to a result in the end.
pub(crate) struct After {
    columns: u32,
    bias: Option<Float32Array>,
    activation: u32,
}

impl After {
    /// The bias is copied, since the end may come after the caller has gone on.
    pub(super) fn new(params: &Params, bias: Option<&Operand<'_>>) -> Result<Self> {
        let copied = |values: &Operand<'_>| {
            let copy = new_array(values.len())?;
            copy.set(values.shown().f32(), 0);
            Ok::<_, Box<Error>>(copy)
        };
        Ok(Self { columns: params.n, bias: bias.map(copied).transpose()?, activation: params.activation })
    }

    fn apply(&self, out: &HostVec) {
        if self.bias.is_some() || self.activation > 0 {
            finish(out.f32(), self.columns, self.bias.as_ref(), self.activation);
        }
    }
}

/// A job for the blocks of a reference.
pub(crate) fn reference_job(a: &Float32Array, b: &Float32Array, params: &Params, transposed: [bool; 2]) -> Job {
    let none = Float32Array::new_with_length(0);
    job_of(params, [transposed[0], transposed[1], false], [a, b, &none], &none, Some((BLOCK / EXACT[0]) as u32), None)
}
