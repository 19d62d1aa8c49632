//! The product in plain code: the oracle that other paths are read against. It says what is meant and is not made fast.

use crate::ops::matmul::Activation;
use crate::plan::matmul::Params;

/// op(X) of a matrix stored by rows: element (i, j) is at i · `row_stride` + j · `column_stride`.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a, T = f32> {
    pub values: &'a [T],
    pub row_stride: usize,
    pub column_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    pub(super) fn new(values: &'a [T], stride: usize, transposed: bool) -> Self {
        let (row_stride, column_stride) = if transposed { (1, stride) } else { (stride, 1) };
        Self { values, row_stride, column_stride }
    }

    /// What begins with that element.
    #[cfg(feature = "simd")]
    pub(super) fn from(self, row: usize, column: usize) -> Self {
        Self { values: self.values.get(row * self.row_stride + column * self.column_stride..).unwrap_or_default(), ..self }
    }

    /// One of other values that lie as these.
    #[cfg(feature = "simd")]
    pub(super) fn of<U>(self, values: &[U]) -> Matrix<'_, U> {
        Matrix { values, row_stride: self.row_stride, column_stride: self.column_stride }
    }
}

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

/// What comes after the products: each row's bias, of which there may be none, and the activation.
pub(super) fn finish(params: &Params, bias: &[f32], out: &mut [f32]) {
    let activation = Activation::of_number(params.activation);
    if bias.is_empty() && activation.is_none() {
        return;
    }
    for row in out.chunks_exact_mut(params.n as usize) {
        for (x, bias) in row.iter_mut().zip(bias) {
            *x += bias;
        }
        if let Some(activation) = activation {
            row.iter_mut().for_each(|x| *x = activation.apply(f64::from(*x)) as f32);
        }
    }
}
