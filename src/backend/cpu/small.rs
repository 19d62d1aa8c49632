//! Products of few terms and columns, natively: to begin with one of them takes a library for large products longer than to compute it.

use super::scalar::Matrix;
use crate::plan::matmul::Params;

/// The most columns and terms: above, the library is quicker.
const COLUMNS: u32 = 12;
const TERMS: u32 = 32;
/// The most rows of a single product, and columns of one with more.
const FEW_ROWS: u32 = 16;
const FEW_COLUMNS: u32 = 4;
/// Rows that are multiplied at once by what is loaded of B.
const ROWS: usize = 4;

/// Whether these are such products. A single one with a vector is left to others, and a tall one whose columns of A are long.
pub(super) fn takes(params: &Params, turns_a: bool) -> bool {
    let Params { m, k, n, batch, .. } = *params;
    let is_tall = m > FEW_ROWS && (turns_a || n > FEW_COLUMNS);
    !(batch == 1 && (m == 1 || n == 1 || is_tall)) && (1..=COLUMNS).contains(&n) && (1..=TERMS).contains(&k)
}

/// out ← α·op(A)·op(B) + β·C, or as many rows of it as there are in `out`. Without C it is not read. The sums run over k in order.
pub(super) fn multiply(params: &Params, [a, b]: [Matrix<'_>; 2], c: Option<&[f32]>, out: &mut [f32]) {
    pulp::Arch::new().dispatch(Product { params, a, b, c, out });
}

struct Product<'a> {
    params: &'a Params,
    a: Matrix<'a>,
    b: Matrix<'a>,
    c: Option<&'a [f32]>,
    out: &'a mut [f32],
}

impl pulp::WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        macro_rules! of_columns {
            ($($n:literal in $width:literal)+) => {
                match self.params.n {
                    $($n => self.rows::<S, $n, $width>(),)+
                    n => debug_assert!(false, "{n} columns"),
                }
            };
        }
        of_columns!(1 in 1 2 in 2 3 in 4 4 in 4 5 in 8 6 in 8 7 in 8 8 in 8 9 in 12 10 in 12 11 in 12 12 in 12);
    }
}

impl Product<'_> {
    #[inline(always)]
    fn rows<S: pulp::Simd, const N: usize, const WIDTH: usize>(self) {
        let Self { params, a, b, c, out } = self;
        let (rows, _) = out.as_chunks_mut::<N>();
        let (blocks, rest) = rows.as_chunks_mut::<ROWS>();
        let after = blocks.len() * ROWS;
        let ended = |row: usize, sums: &[f32; WIDTH], out: &mut [f32; N]| {
            let alpha = params.alpha;
            match c {
                None => out.iter_mut().zip(sums).for_each(|(out, sum)| *out = alpha * sum),
                Some(c) => {
                    let c = &c[row * params.ldc as usize..][..N];
                    out.iter_mut().zip(sums).zip(c).for_each(|((out, sum), c)| *out = alpha * sum + params.beta * c);
                }
            }
        };
        for (number, block) in blocks.iter_mut().enumerate() {
            let row = number * ROWS;
            let sums = sums::<S, N, WIDTH, ROWS>(params.k, [a, b], row);
            block.iter_mut().zip(&sums).zip(row..).for_each(|((out, sums), row)| ended(row, sums, out));
        }
        for (row, out) in (after..).zip(rest) {
            let [of_row] = sums::<S, N, WIDTH, 1>(params.k, [a, b], row);
            ended(row, &of_row, out);
        }
    }
}

/// The sums of some rows from one on, in vectors of which the rest is 0.
#[inline(always)]
fn sums<S: pulp::Simd, const N: usize, const WIDTH: usize, const R: usize>(
    k: u32,
    [a, b]: [Matrix<'_>; 2],
    row: usize,
) -> [[f32; WIDTH]; R] {
    let k = k as usize;
    let mut sums = [[0.0f32; WIDTH]; R];
    if a.column_stride == 1 {
        let mut rows: [&[f32]; R] = [&[]; R];
        for (i, values) in rows.iter_mut().enumerate() {
            *values = &a.values[(row + i) * a.row_stride..][..k];
        }
        for p in 0..k {
            let of_b = row_of::<N, WIDTH>(b, p);
            for (sums, row) in sums.iter_mut().zip(rows) {
                add::<S, WIDTH>(sums, row[p], &of_b);
            }
        }
    } else {
        for p in 0..k {
            let of_b = row_of::<N, WIDTH>(b, p);
            let column = &a.values[p * a.column_stride + row * a.row_stride..];
            for (i, sums) in sums.iter_mut().enumerate() {
                add::<S, WIDTH>(sums, column[i * a.row_stride], &of_b);
            }
        }
    }
    sums
}

/// A row of B.
#[inline(always)]
fn row_of<const N: usize, const WIDTH: usize>(b: Matrix<'_>, p: usize) -> [f32; WIDTH] {
    let mut row = [0.0; WIDTH];
    let from = &b.values[p * b.row_stride..];
    if b.column_stride == 1 {
        row[..N].copy_from_slice(&from[..N]);
    } else {
        row[..N].iter_mut().enumerate().for_each(|(j, to)| *to = from[j * b.column_stride]);
    }
    row
}

#[inline(always)]
fn add<S: pulp::Simd, const WIDTH: usize>(sums: &mut [f32; WIDTH], x: f32, row: &[f32; WIDTH]) {
    for (sum, y) in sums.iter_mut().zip(row) {
        // Without the instruction a library would be called for each.
        *sum = if S::IS_SCALAR { x * y + *sum } else { x.mul_add(*y, *sum) };
    }
}
