//! cuBLASLt, NVIDIA's own products, where it is installed.
//!
//! It stores matrices by columns, and a matrix stored by rows is its transpose stored by columns. So what it is asked for is
//! Cᵀ = op(B)ᵀ·op(A)ᵀ: the operands change places, and nothing is moved. Sums are in f32 throughout, without TF32.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::cublaslt::sys::{
    self, cublasComputeType_t, cublasLtHandle_t, cublasLtMatmulAlgo_t, cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
    cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, cublasStatus_t, cudaDataType_t,
};

use super::Cuda;
use super::buffer::Raw;
use super::driver::{Context, Stream};
use super::load;
use super::submit::Addresses;
use crate::error::{Error, Result};
use crate::plan::{Dispatch, matmul};

/// What NVIDIA recommends for Hopper; earlier GPUs gain nothing by it.
const WORKSPACE_BYTES: u64 = 32 << 20;
/// Shapes whose algorithm is kept.
const MOST_SHAPES: usize = 256;

/// The library, opened for one device.
pub(super) struct CublasLt {
    handle: cublasLtHandle_t,
    /// Scratch of whatever runs: products come one after another, so one is enough. It counts as nobody's memory.
    workspace: Option<Raw>,
    /// The latest last.
    shapes: Mutex<VecDeque<(Shape, Option<Arc<Algorithm>>)>>,
    context: Arc<Context>,
}

// SAFETY: the library says that a handle may be used by several threads at once.
unsafe impl Send for CublasLt {}
// SAFETY: as above.
unsafe impl Sync for CublasLt {}

/// All that the choice of an algorithm depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    m: u32,
    k: u32,
    n: u32,
    lda: u32,
    ldb: u32,
    ldc: u32,
    ldo: u32,
    transpose_a: bool,
    transpose_b: bool,
    reads_c: bool,
    batch: u32,
    /// Elements from one item of a batch to the next, of A, B and C.
    steps: [u32; 3],
    /// Of A and B, and of C and the result.
    operands: cudaDataType_t,
    result: cudaDataType_t,
}

/// How the library computes a shape. Its descriptors are destroyed with it.
pub(super) struct Algorithm {
    algorithm: cublasLtMatmulAlgo_t,
    workspace_bytes: usize,
    product: Product,
    layouts: [Layout; 4],
}

// SAFETY: descriptors are plain memory of the library's, and are only read once they are made.
unsafe impl Send for Algorithm {}
// SAFETY: as above.
unsafe impl Sync for Algorithm {}

struct Product(cublasLtMatmulDesc_t);
struct Layout(cublasLtMatrixLayout_t);
struct Preference(sys::cublasLtMatmulPreference_t);

/// What the library said to that call.
fn check(call: &'static str, status: cublasStatus_t) -> Result<(), String> {
    // Compared as a number, because a newer library may have statuses that the binding has no name for.
    let number = status as u32;
    let name = match number {
        0 => return Ok(()),
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        3 => "CUBLAS_STATUS_ALLOC_FAILED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        _ => return Err(format!("{call}: cuBLAS status {number}")),
    };
    Err(format!("{call}: {name}"))
}

const INSTALL: &str = "install NVIDIA's CUDA toolkit, or only its cuBLAS (on Debian and Ubuntu with NVIDIA's archive: libcublas-13-0; from PyPI: \
                       nvidia-cublas) where the system looks for libraries";

impl CublasLt {
    /// Opens the library if the options allow it, or says why products do without, and what would help.
    pub(super) fn open_if(is_allowed: bool, stream: &Arc<Stream>) -> Result<Self, String> {
        if !is_allowed {
            return Err("cuBLASLt is not used, as the option vendor_libraries says".to_owned());
        }
        Self::open(stream).map_err(|reason| format!("cuBLASLt is not used: {reason}; {INSTALL}"))
    }

    fn open(stream: &Arc<Stream>) -> Result<Self, String> {
        load::cublaslt()?;
        let context = Arc::clone(&stream.context);
        let mut handle = std::ptr::null_mut();
        {
            let _current = context.enter().map_err(|fault| fault.to_string())?;
            // SAFETY: the context is current, and the library writes one handle.
            check("cublasLtCreate", unsafe { sys::cublasLtCreate(&raw mut handle) })?;
        }
        // Without it fewer algorithms are to be had.
        let workspace = Raw::device(stream, WORKSPACE_BYTES).ok();
        Ok(Self { handle, workspace, shapes: Mutex::default(), context })
    }

    /// How the library would compute this, if it would; asked once for each shape.
    pub(super) fn algorithm(&self, dispatch: &Dispatch) -> Option<Arc<Algorithm>> {
        let shape = Shape::of(dispatch).ok()?;
        let mut shapes = self.shapes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, algorithm)) = shapes.iter().rev().find(|(known, _)| *known == shape) {
            return algorithm.clone();
        }
        // What it failed at once it may not fail at again.
        let algorithm = self.find(&shape).ok()?.map(Arc::new);
        if shapes.len() >= MOST_SHAPES {
            shapes.pop_front();
        }
        shapes.push_back((shape, algorithm.clone()));
        algorithm
    }

    /// None if it has none.
    fn find(&self, shape: &Shape) -> Result<Option<Algorithm>, String> {
        let _current = self.context.enter().map_err(|fault| fault.to_string())?;
        let product = Product::new(shape)?;
        let layouts = shape.layouts()?;
        let bytes = if self.workspace.is_some() { WORKSPACE_BYTES as usize } else { 0 };
        let preference = Preference::new(bytes)?;
        let mut found = sys::cublasLtMatmulHeuristicResult_t {
            algo: cublasLtMatmulAlgo_t { data: [0; 8] },
            workspaceSize: 0,
            state: cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED,
            wavesCount: 0.0,
            reserved: [0; 4],
        };
        let mut count = 0;
        let [a, b, c, d] = &layouts;
        // SAFETY: handle and descriptors are alive, and there is room for the one result that is asked for.
        let status = unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(self.handle, product.0, a.0, b.0, c.0, d.0, preference.0, 1, &raw mut found, &raw mut count)
        };
        if status == cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED || count < 1 && status == cublasStatus_t::CUBLAS_STATUS_SUCCESS {
            return Ok(None);
        }
        check("cublasLtMatmulAlgoGetHeuristic", status)?;
        check("cublasLtMatmulAlgoGetHeuristic", found.state)?;
        Ok(Some(Algorithm { algorithm: found.algo, workspace_bytes: found.workspaceSize, product, layouts }))
    }
}

impl Drop for CublasLt {
    fn drop(&mut self) {
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: nobody has the handle any more.
        let _ = unsafe { sys::cublasLtDestroy(self.handle) };
    }
}

impl Shape {
    fn of(dispatch: &Dispatch) -> Result<Self> {
        let &matmul::Params { m, k, n, lda, ldb, ldc, ldo, batch, a_inner, b_inner, c_inner, .. } = dispatch.params.matmul()?;
        let constant = |name| dispatch.kernel.constant(name) != 0;
        let (transpose_a, transpose_b, reads_c) = (constant("TRANSPOSE_A"), constant("TRANSPOSE_B"), constant("READS_C"));
        let steps = [a_inner, b_inner, c_inner];
        let of = |name| if constant(name) { cudaDataType_t::CUDA_R_16F } else { cudaDataType_t::CUDA_R_32F };
        let (operands, result) = (of("OPERANDS_F16"), of("RESULT_F16"));
        Ok(Self { m, k, n, lda, ldb, ldc, ldo, transpose_a, transpose_b, reads_c, batch, steps, operands, result })
    }

    /// Of the library's A, B, C and D: our B, A, C and result. Its rows are our stored columns.
    fn layouts(&self) -> Result<[Layout; 4], String> {
        let swap = |yes: bool, (rows, columns): (u32, u32)| if yes { (columns, rows) } else { (rows, columns) };
        let (a_rows, a_columns) = swap(self.transpose_a, (self.m, self.k));
        let (b_rows, b_columns) = swap(self.transpose_b, (self.k, self.n));
        let layout = |of, rows, columns, stride, step: u64| Layout::new(of, rows, columns, stride)?.of_batch(self.batch, step);
        let [a_step, b_step, c_step] = self.steps.map(u64::from);
        let out = || layout(self.result, self.n, self.m, self.ldo, u64::from(self.m) * u64::from(self.ldo));
        let c = if self.reads_c { layout(self.result, self.n, self.m, self.ldc, c_step)? } else { out()? };
        let a = layout(self.operands, a_columns, a_rows, self.lda, a_step)?;
        Ok([layout(self.operands, b_columns, b_rows, self.ldb, b_step)?, a, c, out()?])
    }
}

impl Product {
    fn new(shape: &Shape) -> Result<Self, String> {
        use cublasLtMatmulDescAttributes_t as Attribute;
        let mut product = Self(std::ptr::null_mut());
        // SAFETY: the library writes one handle.
        check("cublasLtMatmulDescCreate", unsafe {
            sys::cublasLtMatmulDescCreate(&raw mut product.0, cublasComputeType_t::CUBLAS_COMPUTE_32F, cudaDataType_t::CUDA_R_32F)
        })?;
        let transposes =
            [(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_b), (Attribute::CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_a)];
        for (attribute, transposed) in transposes {
            // CUBLAS_OP_N and CUBLAS_OP_T.
            let operation = i32::from(transposed);
            // SAFETY: the attribute is a number of 32 bits, which is read before the call returns.
            check("cublasLtMatmulDescSetAttribute", unsafe {
                sys::cublasLtMatmulDescSetAttribute(product.0, attribute, (&raw const operation).cast(), size_of::<i32>())
            })?;
        }
        Ok(product)
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // SAFETY: nobody has the descriptor any more. The library takes none for nothing to do.
        let _ = unsafe { sys::cublasLtMatmulDescDestroy(self.0) };
    }
}

impl Layout {
    fn new(of: cudaDataType_t, rows: u32, columns: u32, stride: u32) -> Result<Self, String> {
        let mut layout = Self(std::ptr::null_mut());
        // The stride of a single row or column may be anything; the library wants one that could be.
        let stride = stride.max(rows).max(1);
        // SAFETY: the library writes one handle.
        check("cublasLtMatrixLayoutCreate", unsafe {
            sys::cublasLtMatrixLayoutCreate(&raw mut layout.0, of, rows.into(), columns.into(), stride.into())
        })?;
        Ok(layout)
    }

    /// The same for so many matrices, their starts so many elements apart.
    fn of_batch(self, count: u32, step: u64) -> Result<Self, String> {
        use cublasLtMatrixLayoutAttribute_t as Attribute;
        if count == 1 {
            return Ok(self);
        }
        // The library's numbers of 32 and 64 bits, both with a sign.
        let (count, step) = (count.cast_signed(), step.cast_signed());
        // SAFETY: the attribute is a number of 32 bits, which is read before the call returns.
        check("cublasLtMatrixLayoutSetAttribute", unsafe {
            let attribute = Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT;
            sys::cublasLtMatrixLayoutSetAttribute(self.0, attribute, (&raw const count).cast(), size_of::<i32>())
        })?;
        // SAFETY: as above, of 64 bits.
        check("cublasLtMatrixLayoutSetAttribute", unsafe {
            let attribute = Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET;
            sys::cublasLtMatrixLayoutSetAttribute(self.0, attribute, (&raw const step).cast(), size_of::<i64>())
        })?;
        Ok(self)
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: as for the product's descriptor.
        let _ = unsafe { sys::cublasLtMatrixLayoutDestroy(self.0) };
    }
}

impl Preference {
    fn new(workspace_bytes: usize) -> Result<Self, String> {
        let mut preference = Self(std::ptr::null_mut());
        // SAFETY: the library writes one handle.
        check("cublasLtMatmulPreferenceCreate", unsafe { sys::cublasLtMatmulPreferenceCreate(&raw mut preference.0) })?;
        let attribute = cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
        let bytes = workspace_bytes as u64;
        // SAFETY: the attribute is a number of 64 bits, which is read before the call returns.
        check("cublasLtMatmulPreferenceSetAttribute", unsafe {
            sys::cublasLtMatmulPreferenceSetAttribute(preference.0, attribute, (&raw const bytes).cast(), size_of::<u64>())
        })?;
        Ok(preference)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: as for the product's descriptor.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}

impl Cuda {
    /// Puts a product of the library into the stream.
    pub(super) fn launch_cublaslt(&self, algorithm: &Algorithm, dispatch: &Dispatch, addresses: &Addresses) -> Result<()> {
        let library = self.cublaslt.as_ref().ok_or_else(|| Error::internal("a plan for cuBLASLt, which is not there"))?;
        let pointer = |address| std::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        // By their places: the filters of a convolution are A, and its second operand; a result that something follows is in the scratch.
        let [a, b, c, out] = [0, 1, 2, 4].map(|index| {
            let binding = dispatch.bindings.iter().find(|binding| binding.index == index);
            pointer(binding.map_or(0, |binding| addresses.of(binding.slot) + binding.offset_bytes))
        });
        let &matmul::Params { alpha, beta, .. } = dispatch.params.matmul()?;
        let beta = if c.is_null() { 0.0 } else { beta };
        let c = if c.is_null() { out } else { c };
        let workspace = library.workspace.as_ref().map_or(0, Raw::address);
        let [a_layout, b_layout, c_layout, out_layout] = &algorithm.layouts;
        let current = self.stream.context.enter().map_err(|fault| self.judge(&fault))?;
        // SAFETY: the layouts are those of the operands, which the op has checked against their lengths; α and β are read before the call
        // returns; the workspace is at least as long as was told when the algorithm was chosen. The stream's type is declared once for each
        // library, of the same pointer.
        let status = unsafe {
            sys::cublasLtMatmul(
                library.handle,
                algorithm.product.0,
                (&raw const alpha).cast(),
                b,
                a_layout.0,
                a,
                b_layout.0,
                (&raw const beta).cast(),
                c,
                c_layout.0,
                out,
                out_layout.0,
                &raw const algorithm.algorithm,
                std::ptr::with_exposed_provenance_mut(workspace as usize),
                algorithm.workspace_bytes,
                self.stream.raw().cast(),
            )
        };
        drop(current);
        check("cublasLtMatmul", status).map_err(|said| match self.stream.fault() {
            // The library only says that something failed; the driver knows what.
            Some(fault) => self.judge(&fault),
            None => Error::internal(said),
        })
    }
}
