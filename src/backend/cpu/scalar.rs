//! The product in plain code: the oracle that other paths are read against. It says what is meant and is not made fast.

use super::native::Matrix;
use crate::plan::matmul::Params;

/// out ← α·op(A)·op(B) + β·out. The sums run over k in order.
pub(super) fn matmul(params: &Params, a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32]) {
    let n = params.n as usize;
    let mut sums = vec![0.0f32; n];
    for (i, row) in out.chunks_exact_mut(n).enumerate() {
        sums.fill(0.0);
        for p in 0..params.k as usize {
            let x = a.values[i * a.row_stride + p * a.column_stride];
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum += x * b.values[p * b.row_stride + j * b.column_stride];
            }
        }
        for (c, sum) in row.iter_mut().zip(&sums) {
            // C is not read unless it is there: without it the row holds zeros, and β is 0.
            *c = params.alpha * sum + if params.ldc > 0 { params.beta * *c } else { 0.0 };
        }
    }
}
