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
    #[cfg(target_arch = "x86_64")]
    if c.is_none() && together::multiply(params, [a, b], out) {
        return;
    }
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
                add_row::<S, WIDTH>(sums, row[p], &of_b);
            }
        }
    } else {
        for p in 0..k {
            let of_b = row_of::<N, WIDTH>(b, p);
            let column = &a.values[p * a.column_stride + row * a.row_stride..];
            for (i, sums) in sums.iter_mut().enumerate() {
                add_row::<S, WIDTH>(sums, column[i * a.row_stride], &of_b);
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
fn add_row<S: pulp::Simd, const WIDTH: usize>(sums: &mut [f32; WIDTH], x: f32, row: &[f32; WIDTH]) {
    for (sum, y) in sums.iter_mut().zip(row) {
        *sum = add::<S>(*sum, x, *y);
    }
}

/// A sum with a product.
#[inline(always)]
fn add<S: pulp::Simd>(sum: f32, x: f32, y: f32) -> f32 {
    // Without the instruction a library would be called.
    if S::IS_SCALAR { x * y + sum } else { x.mul_add(y, sum) }
}

/// Some rows at a time of two to four terms and columns, in one vector: all rows of A lie behind one another, and so do those of the result.
#[cfg(target_arch = "x86_64")]
mod together {
    use std::arch::x86_64::{
        __m512, __m512i, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256, _mm256_mul_ps, _mm256_permutevar8x32_ps, _mm256_set1_ps,
        _mm256_setzero_ps, _mm256_storeu_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_permutexvar_ps,
        _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::{Matrix, Params, row_of};

    /// Lanes of a row's sums.
    const WIDTH: usize = 4;

    /// out ← α·A·B; false if it is no such product, or the CPU has no such vectors.
    pub(super) fn multiply(params: &Params, [a, b]: [Matrix<'_>; 2], out: &mut [f32]) -> bool {
        if a.column_stride != 1 || a.row_stride != params.k as usize {
            return false;
        }
        macro_rules! of {
            ($rows:ident: $($n:literal $k:literal)+) => {
                match (params.n, params.k) {
                    // SAFETY: the CPU has the instructions, as is asked below.
                    $(($n, $k) => unsafe { $rows::<$n, $k>(params.alpha, a.values, b, out) },)+
                    _ => return false,
                }
            };
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            of!(sixteens: 2 2 2 3 2 4 3 2 3 3 3 4 4 2 4 3 4 4);
        } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            of!(eights: 2 2 2 3 2 4 3 2 3 3 3 4 4 2 4 3 4 4);
        } else {
            return false;
        }
        true
    }

    /// Where lanes find what they are of: of N columns and K terms.
    struct Places<const N: usize, const K: usize>;

    impl<const N: usize, const K: usize> Places<N, K> {
        /// A row's sums each of their terms.
        const fn terms<const LANES: usize>() -> [[u32; LANES]; K] {
            assert!(N <= WIDTH && K <= WIDTH);
            let mut terms = [[0; LANES]; K];
            let mut at = 0;
            while at < K * LANES {
                terms[at / LANES][at % LANES] = (at % LANES / WIDTH * K + at / LANES) as u32;
                at += 1;
            }
            terms
        }

        /// The result its sums.
        const fn packed<const LANES: usize>() -> [u32; LANES] {
            let mut packed = [0; LANES];
            let mut lane = 0;
            while lane < LANES {
                packed[lane] = ((lane / N * WIDTH + lane % N) % LANES) as u32;
                lane += 1;
            }
            packed
        }
    }

    /// A function that computes the same of K terms and N columns by vectors of so many lanes.
    macro_rules! rows {
        (
            $name:ident by $lanes:literal with $features:literal: $load:ident $load_numbers:ident $store:ident $zero:ident $splat:ident
            $mul:ident $mul_add:ident $permute:ident
        ) => {
            #[target_feature(enable = $features)]
            fn $name<const N: usize, const K: usize>(alpha: f32, a: &[f32], b: Matrix<'_>, out: &mut [f32]) {
                const LANES: usize = $lanes;
                const ROWS: usize = LANES / WIDTH;
                // SAFETY: each array is as long as a vector.
                let (terms, packed) = unsafe {
                    let load = |places: [u32; LANES]| $load_numbers(places.as_ptr().cast());
                    (const { Places::<N, K>::terms::<LANES>() }.map(load), load(const { Places::<N, K>::packed() }))
                };
                let of_b: [_; K] = std::array::from_fn(|p| {
                    let row = row_of::<N, WIDTH>(b, p);
                    let all: [f32; LANES] = std::array::from_fn(|lane| row[lane % WIDTH]);
                    // SAFETY: as above.
                    unsafe { $load(all.as_ptr()) }
                });
                let alpha = $splat(alpha);
                let computed = |values: &[f32; LANES], to: &mut [f32; LANES]| {
                    // SAFETY: both are as long as a vector.
                    let values = unsafe { $load(values.as_ptr()) };
                    let mut sums = $zero();
                    for (terms, of_b) in terms.iter().zip(of_b) {
                        sums = $mul_add($permute(values, *terms), of_b, sums);
                    }
                    // SAFETY: as above.
                    unsafe { $store(to.as_mut_ptr(), $permute($mul(alpha, sums), packed)) };
                };
                for row in (0..(out.len() / N).min(a.len() / K)).step_by(ROWS) {
                    let (a, out) = (&a[row * K..], &mut out[row * N..]);
                    if let (Some(values), Some(to)) = (a.first_chunk(), out.first_chunk_mut()) {
                        // What is too much in a vector belongs to rows that follow, which write over it.
                        computed(values, to);
                        continue;
                    }
                    let rows = (a.len() / K).min(out.len() / N).min(ROWS);
                    let [mut values, mut found] = [[0.0; LANES]; 2];
                    values[..rows * K].copy_from_slice(&a[..rows * K]);
                    computed(&values, &mut found);
                    out[..rows * N].copy_from_slice(&found[..rows * N]);
                }
            }
        };
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn permuted(values: __m512, places: __m512i) -> __m512 {
        _mm512_permutexvar_ps(places, values)
    }

    rows!(eights by 8 with "avx2,fma": _mm256_loadu_ps _mm256_loadu_si256 _mm256_storeu_ps _mm256_setzero_ps _mm256_set1_ps
        _mm256_mul_ps _mm256_fmadd_ps _mm256_permutevar8x32_ps);
    rows!(sixteens by 16 with "avx512f": _mm512_loadu_ps _mm512_loadu_si512 _mm512_storeu_ps _mm512_setzero_ps _mm512_set1_ps
        _mm512_mul_ps _mm512_fmadd_ps permuted);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows in one vector have the bits of those that are taken one by one, which a turned A's are.
    #[test]
    fn rows_have_the_same_bits_however_they_are_taken() {
        let numbers = |count: usize| -> Vec<f32> { (0..count).map(|at| (at as f32 * 0.7).sin()).collect() };
        for (m, k, n) in (1..22).flat_map(|m| (1..6).flat_map(move |k| (1..6).map(move |n| (m, k, n)))) {
            let (a, b) = (numbers(m * k), numbers(k * n));
            let turned: Vec<f32> = (0..m * k).map(|at| a[at % m * k + at / m]).collect();
            let [m_32, k_32, n_32] = [m, k, n].map(|size| size as u32);
            let params = Params { m: m_32, k: k_32, n: n_32, ldc: n_32, batch: 1, alpha: 1.5, ..Params::default() };
            let (mut together, mut alone) = (vec![0.0; m * n + 1], vec![0.0; m * n + 1]);
            let b = Matrix::new(&b, n, false);
            multiply(&params, [Matrix::new(&a, k, false), b], None, &mut together[..m * n]);
            multiply(&params, [Matrix::new(&turned, m, true), b], None, &mut alone[..m * n]);
            assert_eq!(together, alone, "{m} x {k} x {n}");
        }
    }
}
