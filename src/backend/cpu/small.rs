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
        __m128, __m256, __m256i, __m512, __m512i, _mm_loadu_ps, _mm256_cmpgt_epi32, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_loadu_si256,
        _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_mul_ps, _mm256_permutevar8x32_ps, _mm256_set_m128, _mm256_set1_epi32,
        _mm256_set1_ps, _mm256_setr_epi32, _mm256_setzero_ps, _mm256_storeu_ps, _mm512_broadcast_f32x4, _mm512_fmadd_ps, _mm512_loadu_ps,
        _mm512_loadu_si512, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_mul_ps, _mm512_permutexvar_ps, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_storeu_ps,
    };

    use super::{Matrix, Params, row_of};

    /// Lanes of a row's sums.
    const WIDTH: usize = 4;

    /// Lanes of vectors.
    #[derive(Clone, Copy)]
    pub(super) enum Width {
        Eight,
        Sixteen,
    }

    impl Width {
        /// Those that the CPU has, the widest first.
        pub(super) fn all() -> impl Iterator<Item = Self> {
            let has_sixteen = std::arch::is_x86_feature_detected!("avx512f");
            let has_eight = std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
            [has_sixteen.then_some(Self::Sixteen), has_eight.then_some(Self::Eight)].into_iter().flatten()
        }
    }

    /// out ← α·A·B; false if it is no such product, or the CPU has no such vectors.
    pub(super) fn multiply(params: &Params, operands: [Matrix<'_>; 2], out: &mut [f32]) -> bool {
        // SAFETY: the CPU has them.
        Width::all().next().is_some_and(|width| unsafe { multiply_by(width, params, operands, out) })
    }

    /// The same by vectors of so many lanes.
    ///
    /// # Safety
    /// The CPU has them.
    pub(super) unsafe fn multiply_by(width: Width, params: &Params, [a, b]: [Matrix<'_>; 2], out: &mut [f32]) -> bool {
        if a.column_stride != 1 || a.row_stride != params.k as usize {
            return false;
        }
        macro_rules! of {
            ($rows:ident: $($n:literal $k:literal)+) => {
                match (params.n, params.k) {
                    // SAFETY: as the caller says.
                    $(($n, $k) => unsafe { $rows::<$n, $k>(params.alpha, a.values, b, out) },)+
                    _ => return false,
                }
            };
        }
        match width {
            Width::Sixteen => of!(sixteens: 2 2 2 3 2 4 3 2 3 3 3 4 4 2 4 3 4 4),
            Width::Eight => of!(eights: 2 2 2 3 2 4 3 2 3 3 3 4 4 2 4 3 4 4),
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
            $mul:ident $mul_add:ident $permute:ident $repeat:ident $load_part:ident $store_part:ident
        ) => {
            #[target_feature(enable = $features)]
            fn $name<const N: usize, const K: usize>(alpha: f32, a: &[f32], b: Matrix<'_>, out: &mut [f32]) {
                const LANES: usize = $lanes;
                const ROWS: usize = LANES / WIDTH;
                // SAFETY: each array is as long as a vector.
                let load = |places: &[u32; LANES]| unsafe { $load_numbers(places.as_ptr().cast()) };
                let packed = load(const { &Places::<N, K>::packed() });
                let (mut terms, mut of_b) = ([packed; K], [$zero(); K]);
                for p in 0..K {
                    terms[p] = load(const { &Places::<N, K>::terms::<LANES>() }.get(p).unwrap_or(&[0; LANES]));
                    let row = row_of::<N, WIDTH>(b, p);
                    // SAFETY: the row is as long as such a vector.
                    of_b[p] = $repeat(unsafe { _mm_loadu_ps(row.as_ptr()) });
                }
                let alpha = $splat(alpha);
                let computed = |values| {
                    let mut sums = $zero();
                    for (terms, of_b) in terms.iter().zip(of_b) {
                        sums = $mul_add($permute(values, *terms), of_b, sums);
                    }
                    $permute($mul(alpha, sums), packed)
                };
                for row in (0..(out.len() / N).min(a.len() / K)).step_by(ROWS) {
                    let (a, out) = (&a[row * K..], &mut out[row * N..]);
                    // What is too much in a vector belongs to rows that follow, which write over it.
                    if let (Some(values), Some(to)) = (a.first_chunk::<LANES>(), out.first_chunk_mut::<LANES>()) {
                        // SAFETY: both are as long as a vector.
                        unsafe { $store(to.as_mut_ptr(), computed($load(values.as_ptr()))) };
                    } else {
                        let rows = (a.len() / K).min(out.len() / N).min(ROWS);
                        $store_part(&mut out[..rows * N], computed($load_part(&a[..rows * K])));
                    }
                }
            }
        };
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn permuted(values: __m512, places: __m512i) -> __m512 {
        _mm512_permutexvar_ps(places, values)
    }

    #[inline]
    #[target_feature(enable = "avx")]
    fn twice(row: __m128) -> __m256 {
        _mm256_set_m128(row, row)
    }

    /// As many lanes as there are values.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn first_of_eight(count: usize) -> __m256i {
        _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_eight(values: &[f32]) -> __m256 {
        // SAFETY: only lanes are read that there are values for.
        unsafe { _mm256_maskload_ps(values.as_ptr(), first_of_eight(values.len())) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn store_eight(to: &mut [f32], values: __m256) {
        // SAFETY: only lanes are written that there is room for.
        unsafe { _mm256_maskstore_ps(to.as_mut_ptr(), first_of_eight(to.len()), values) };
    }

    /// The same of sixteen.
    fn first_of_sixteen(count: usize) -> u16 {
        ((1u32 << count.min(16)) - 1) as u16
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_sixteen(values: &[f32]) -> __m512 {
        // SAFETY: only lanes are read that there are values for.
        unsafe { _mm512_maskz_loadu_ps(first_of_sixteen(values.len()), values.as_ptr()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store_sixteen(to: &mut [f32], values: __m512) {
        // SAFETY: only lanes are written that there is room for.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first_of_sixteen(to.len()), values) };
    }

    rows!(eights by 8 with "avx2,fma": _mm256_loadu_ps _mm256_loadu_si256 _mm256_storeu_ps _mm256_setzero_ps _mm256_set1_ps
        _mm256_mul_ps _mm256_fmadd_ps _mm256_permutevar8x32_ps twice load_eight store_eight);
    rows!(sixteens by 16 with "avx512f": _mm512_loadu_ps _mm512_loadu_si512 _mm512_storeu_ps _mm512_setzero_ps _mm512_set1_ps
        _mm512_mul_ps _mm512_fmadd_ps permuted _mm512_broadcast_f32x4 load_sixteen store_sixteen);
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
            let (mut all, mut alone) = (vec![0.0; m * n + 1], vec![0.0; m * n + 1]);
            let b = Matrix::new(&b, n, false);
            multiply(&params, [Matrix::new(&a, k, false), b], None, &mut all[..m * n]);
            multiply(&params, [Matrix::new(&turned, m, true), b], None, &mut alone[..m * n]);
            assert_eq!(all, alone, "{m} x {k} x {n}");
            #[cfg(target_arch = "x86_64")]
            for width in together::Width::all() {
                let mut found = vec![0.0; m * n + 1];
                // SAFETY: the CPU has vectors of that width.
                if unsafe { together::multiply_by(width, &params, [Matrix::new(&a, k, false), b], &mut found[..m * n]) } {
                    assert_eq!(found, alone, "{m} x {k} x {n}");
                }
            }
        }
    }
}
