//! The CPU natively: the `gemm` crate's vector kernels on all cores, or the scalar path.

use super::scalar::{self, Matrix};
use crate::error::{Error, Result};
use crate::host::{HostSlice, HostVec};
use crate::kernels::Kernel;
use crate::plan::matmul::Params;

/// What would turn a missing path on.
pub(super) const REMEDY: &str = "";

/// Which path.
pub(crate) struct Engine {
    simd: bool,
}

impl Engine {
    #[expect(clippy::unused_async, reason = "the browser's engine starts a module")]
    pub(super) async fn open(simd: bool) -> Result<Self, String> {
        Ok(Self { simd })
    }

    pub(super) fn name() -> String {
        format!("{} CPU, {} threads", std::env::consts::ARCH, std::thread::available_parallelism().map_or(1, usize::from))
    }

    pub(super) fn features(&self) -> Vec<&'static str> {
        if self.simd { vec!["simd", "threads"] } else { Vec::new() }
    }

    pub(super) fn variant(&self) -> &'static str {
        if self.simd { "simd" } else { "scalar" }
    }

    pub(super) fn matmul(&self, params: &Params, kernel: &Kernel, operands: &[Option<HostSlice<'_>>; 3]) -> Result<HostVec> {
        let [a, b, c] = operands.each_ref().map(|operand| operand.as_ref().map_or(&[][..], |values| values.0));
        let (m, n) = (params.m as usize, params.n as usize);
        let mut out = zeroed(m * n)?;
        if kernel.constant("READS_C") != 0 {
            for (to, from) in out.chunks_exact_mut(n).zip(c.chunks(params.ldc as usize)) {
                to.copy_from_slice(&from[..n]);
            }
        }
        let a = Matrix::new(a, params.lda as usize, kernel.constant("TRANSPOSE_A") != 0);
        let b = Matrix::new(b, params.ldb as usize, kernel.constant("TRANSPOSE_B") != 0);
        #[cfg(feature = "simd")]
        if self.simd {
            simd(params, a, b, &mut out, kernel.constant("READS_C") != 0);
            return Ok(HostVec(out));
        }
        scalar::matmul(params, a, b, &mut out);
        Ok(HostVec(out))
    }
}

#[cfg(feature = "simd")]
fn simd(params: &Params, a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32], reads_c: bool) {
    let (m, k, n) = (params.m as usize, params.k as usize, params.n as usize);
    // A thread costs some microseconds to wake: small products stay on one.
    let parallelism = if m * n * k < 64 * 64 * 64 { gemm::Parallelism::None } else { gemm::Parallelism::Rayon(0) };
    // SAFETY: the op has checked that A and B span what the strides and dimensions reach, and `out` is packed m × n and borrowed
    // alone. Strides fit isize because slices do.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            reads_c,
            a.values.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.values.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            params.beta,
            params.alpha,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn zeroed(elements: usize) -> Result<Vec<f32>> {
    let mut out = Vec::new();
    out.try_reserve_exact(elements).map_err(|_| Box::new(Error::OutOfMemory { bytes: elements as u64 * 4, place: "the host" }))?;
    out.resize(elements, 0.0);
    Ok(out)
}

pub(super) fn copy(values: &HostSlice<'_>) -> Result<HostVec> {
    let mut out = zeroed(values.0.len())?;
    out.copy_from_slice(values.0);
    Ok(HostVec(out))
}

pub(super) fn borrow(values: &HostVec) -> HostSlice<'_> {
    HostSlice(&values.0)
}
