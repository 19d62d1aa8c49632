//! Products of small matrices, natively: multiplied where they lie, since to pack them takes as long.
//!
//! ```text
//!               columns of a panel
//!              [ |    |    ]  B, whose panel stays in the cache while all rows go over it
//!   rows  [ ]  [ |    |    ]
//!       A [ ]  [ | at |    ]  C: so many sums of a tile are in registers at once
//!         [ ]  [ |once|    ]
//! ```

use super::scalar::Matrix;

/// The most columns, and elements of B, for which this is no slower; and terms, which the library adds up in the same order up to as many.
const COLUMNS: usize = 256;
const ELEMENTS: usize = 48 << 10;
const TERMS: usize = 512;

/// C ← A·B of m × k by k × n, where B lies row by row. Each sum runs over k in order.
#[derive(Clone, Copy)]
pub(super) struct Product<'a> {
    pub sizes: [usize; 3],
    pub a: Matrix<'a>,
    pub b: Matrix<'a>,
    /// The first element of C, and how far its rows are apart.
    pub out: *mut f32,
    pub stride: usize,
}

impl Product<'_> {
    /// Computes it if it is quicker by this; whether it was. That hangs on B alone, so that C may be cut: a part of what is taken is, too.
    ///
    /// # Safety
    /// The operands and C reach as far as the sizes and strides say, and nobody else has C.
    pub(super) unsafe fn compute(self) -> bool {
        let [_, k, n] = self.sizes;
        let is_small = k <= TERMS && n <= COLUMNS && k * n <= ELEMENTS;
        self.b.column_stride == 1 && is_small && pulp::Arch::new().dispatch(self)
    }
}

impl pulp::WithSimd for Product<'_> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) -> bool {
        // As many sums as there are registers for, beside what is loaded of B: of sixteen lanes there are 32, else 16.
        if S::F32_LANES == 16 {
            self.panels::<S, 8, 3>(simd);
        } else if S::F32_LANES == 8 {
            self.panels::<S, 6, 2>(simd);
        }
        S::F32_LANES >= 8
    }
}

impl Product<'_> {
    /// Panels of so many vectors at most, so many rows at a time.
    #[inline(always)]
    fn panels<S: pulp::Simd, const ROWS: usize, const MOST: usize>(&self, simd: S) {
        let [_, _, n] = self.sizes;
        // What is left of sixteen lanes, if it fits eight; and what is too little for sixteen.
        #[cfg(target_arch = "x86_64")]
        let by_eights = match n {
            8..16 if S::F32_LANES == 16 => n,
            16.. if S::F32_LANES == 16 && n % 16 <= 8 => n % 16,
            _ => 0,
        };
        #[cfg(not(target_arch = "x86_64"))]
        let by_eights = 0;
        let (mut first, whole) = (0, n - by_eights);
        #[cfg(target_arch = "x86_64")]
        if by_eights > 0
            && let Some(eights) = pulp::x86::V3::try_new()
        {
            if by_eights > 8 {
                pulp::Simd::vectorize(eights, Panel::<ROWS, 2, false> { product: self, first: whole });
            } else {
                pulp::Simd::vectorize(eights, Panel::<ROWS, 1, false> { product: self, first: whole });
            }
        }
        if (1..S::F32_LANES).contains(&whole) {
            return simd.vectorize(Panel::<ROWS, 1, true> { product: self, first: 0 });
        }
        while first < whole {
            let vectors = (whole - first).div_ceil(S::F32_LANES);
            // Two panels of two are better than one of three and one of one.
            let width = if vectors == 4 { 2 } else { vectors.min(MOST) };
            match width {
                3 if MOST > 2 => simd.vectorize(Panel::<ROWS, 3, false> { product: self, first }),
                2 => simd.vectorize(Panel::<ROWS, 2, false> { product: self, first }),
                _ => simd.vectorize(Panel::<ROWS, 1, false> { product: self, first }),
            }
            first += width * S::F32_LANES;
        }
    }
}

/// All rows of a panel: a function of its own, in which the compiler keeps sums in registers.
struct Panel<'a, const ROWS: usize, const VECTORS: usize, const IS_SHORT: bool> {
    product: &'a Product<'a>,
    first: usize,
}

impl<const ROWS: usize, const VECTORS: usize, const IS_SHORT: bool> pulp::WithSimd for Panel<'_, ROWS, VECTORS, IS_SHORT> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self { product, first } = self;
        let [m, _, n] = product.sizes;
        let columns = Columns::<VECTORS, IS_SHORT>::of::<S>(first, n);
        let mut row = 0;
        while row < m {
            row += match m - row {
                left if left >= ROWS => product.tile::<S, ROWS, VECTORS, IS_SHORT>(simd, row, columns),
                4.. => product.tile::<S, 4, VECTORS, IS_SHORT>(simd, row, columns),
                3 => product.tile::<S, 3, VECTORS, IS_SHORT>(simd, row, columns),
                2 => product.tile::<S, 2, VECTORS, IS_SHORT>(simd, row, columns),
                _ => product.tile::<S, 1, VECTORS, IS_SHORT>(simd, row, columns),
            };
        }
    }
}

impl Product<'_> {
    /// One tile of sums; gives how many rows it has.
    #[inline(always)]
    fn tile<S: pulp::Simd, const ROWS: usize, const VECTORS: usize, const IS_SHORT: bool>(
        &self,
        simd: S,
        row: usize,
        columns: Columns<VECTORS, IS_SHORT>,
    ) -> usize {
        let &Self { sizes: [_, k, _], a, b, out, stride } = self;
        let mut sums = [[simd.splat_f32s(0.0); VECTORS]; ROWS];
        let mut rows = [a.values.as_ptr(); ROWS];
        for (i, of_row) in rows.iter_mut().enumerate() {
            *of_row = of_row.wrapping_add((row + i) * a.row_stride);
        }
        // SAFETY: whoever called `compute` promised that the operands and C reach as far.
        unsafe {
            for p in 0..k {
                let of_b = columns.load(simd, b.values.as_ptr().add(p * b.row_stride));
                for (sums, of_row) in sums.iter_mut().zip(rows) {
                    add(simd, sums, *of_row.add(p * a.column_stride), of_b);
                }
            }
            for (i, sums) in sums.into_iter().enumerate() {
                columns.store(simd, sums, out.add((row + i) * stride));
            }
        }
        ROWS
    }
}

/// The columns of a panel.
#[derive(Clone, Copy)]
struct Columns<const VECTORS: usize, const IS_SHORT: bool> {
    first: usize,
    /// Where its last vector begins: it ends with the row, and so has columns of the one before it where the row ends within it.
    last: usize,
    /// All columns of the row.
    count: usize,
}

impl<const VECTORS: usize, const IS_SHORT: bool> Columns<VECTORS, IS_SHORT> {
    #[inline(always)]
    fn of<S: pulp::Simd>(first: usize, count: usize) -> Self {
        Self { first, last: (first + (VECTORS - 1) * S::F32_LANES).min(count.saturating_sub(S::F32_LANES)), count }
    }

    /// Those of a row of B.
    ///
    /// # Safety
    /// The row has them.
    #[inline(always)]
    unsafe fn load<S: pulp::Simd>(self, simd: S, row: *const f32) -> [S::f32s; VECTORS] {
        let mut all = [simd.splat_f32s(0.0); VECTORS];
        // SAFETY: the caller's promise.
        unsafe {
            if IS_SHORT {
                all[0] = simd.partial_load_f32s(std::slice::from_raw_parts(row, self.count));
                return all;
            }
            if VECTORS > 1 {
                all[0] = row.add(self.first).cast::<S::f32s>().read_unaligned();
            }
            if VECTORS > 2 {
                all[1] = row.add(self.first + S::F32_LANES).cast::<S::f32s>().read_unaligned();
            }
            all[VECTORS - 1] = row.add(self.last).cast::<S::f32s>().read_unaligned();
        }
        all
    }

    /// Puts sums into a row of C.
    ///
    /// # Safety
    /// The row has those columns, and is nobody else's.
    #[inline(always)]
    unsafe fn store<S: pulp::Simd>(self, simd: S, sums: [S::f32s; VECTORS], row: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe {
            if IS_SHORT {
                return simd.partial_store_f32s(std::slice::from_raw_parts_mut(row, self.count), sums[0]);
            }
            if VECTORS > 1 {
                row.add(self.first).cast::<S::f32s>().write_unaligned(sums[0]);
            }
            if VECTORS > 2 {
                row.add(self.first + S::F32_LANES).cast::<S::f32s>().write_unaligned(sums[1]);
            }
            row.add(self.last).cast::<S::f32s>().write_unaligned(sums[VECTORS - 1]);
        }
    }
}

/// Adds the products of an element of A with those of B.
#[inline(always)]
fn add<S: pulp::Simd, const VECTORS: usize>(simd: S, sums: &mut [S::f32s; VECTORS], x: f32, of_b: [S::f32s; VECTORS]) {
    let x = simd.splat_f32s(x);
    for (sum, y) in sums.iter_mut().zip(of_b) {
        *sum = simd.mul_add_f32s(x, y, *sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, factor: u32) -> Vec<f32> {
        (0..count as u32).map(|at| (at.wrapping_mul(factor) >> 8) as f32 / (1 << 23) as f32 - 1.0).collect()
    }

    /// By vectors of all widths that the CPU has.
    fn widths(product: Product<'_>, mut check: impl FnMut()) {
        // SAFETY: the caller's operands and result are as large as the sizes say.
        if unsafe { product.compute() } {
            check();
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(eights) = pulp::x86::V3::try_new() {
            assert!(pulp::Simd::vectorize(eights, product));
            check();
        }
    }

    #[test]
    fn sums_are_right_for_all_columns_and_rows_and_touch_nothing_else() {
        const NONE: f32 = -77.0;
        let sizes = (1..70).map(|n| [1 + n % 23, 1 + n * 7 % 31, n]).chain((1..26).map(|m| [m, 9, 53])).chain([[5, 512, 90]]);
        for (case, [m, k, n]) in sizes.enumerate() {
            let (turned, gap) = (case % 2 == 1, case % 3);
            let (a_stride, b_stride, stride) = (if turned { m } else { k } + gap, n + gap, n + 2 * gap);
            let (a, b) = (numbers(m.max(k) * a_stride, 2_654_435_761), numbers(k * b_stride, 1_640_531_527));
            let (a, b) = (Matrix::new(&a, a_stride, turned), Matrix::new(&b, b_stride, false));
            let mut out = vec![NONE; m * stride];
            let (start, all) = (out.as_mut_ptr(), out.len());
            widths(Product { sizes: [m, k, n], a, b, out: start, stride }, || {
                // SAFETY: the product is done with it, and it lives on below.
                let out = unsafe { std::slice::from_raw_parts_mut(start, all) };
                for (at, found) in out.iter().enumerate() {
                    let [i, j] = [at / stride, at % stride];
                    if j >= n {
                        assert_eq!(*found, NONE, "{m} x {k} x {n} writes beyond its rows");
                        continue;
                    }
                    let term =
                        |p: usize| f64::from(a.values[i * a.row_stride + p * a.column_stride]) * f64::from(b.values[p * b_stride + j]);
                    let expected = (0..k).map(term).sum::<f64>();
                    let most = 1e-6 * (1.0 + (0..k).map(|p| term(p).abs()).sum::<f64>());
                    assert!((f64::from(*found) - expected).abs() < most, "{m} x {k} x {n} at {i}, {j}: {found}, not {expected}");
                }
                out.fill(NONE);
            });
        }
    }

    #[test]
    fn what_is_large_or_lies_otherwise_is_left() {
        let values = vec![1.0; 513 * 512];
        let mut out = vec![0.0; 513 * 512];
        let mut takes = |[k, n]: [usize; 2], turned: bool| {
            let (a, b) = (Matrix::new(&values, k, false), Matrix::new(&values, if turned { k } else { n }, turned));
            // SAFETY: all are larger.
            unsafe { Product { sizes: [3, k, n], a, b, out: out.as_mut_ptr(), stride: n }.compute() }
        };
        #[cfg(target_arch = "x86_64")]
        assert_eq!(takes([20, 20], false), pulp::x86::V3::try_new().is_some());
        for (size, turned) in [([513, 20], false), ([20, 257], false), ([300, 200], false), ([20, 20], true)] {
            assert!(!takes(size, turned), "{size:?}");
        }
    }
}
