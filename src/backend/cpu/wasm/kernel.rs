//! The product of blocks on the CPU in the browser: a module of its own, with a memory of its own.
//!
//! An engine refuses a whole module for one instruction that it does not know. So `build.rs` compiles this file three times, without
//! SIMD, with it, and with relaxed SIMD's fused multiply-add, and the main module starts the best that the engine validates. It has no
//! allocator and no dependencies: blocks lie in fixed arrays, which the page's arrays are copied into and out of directly.
//!
//! ```text
//!               n                    in one call: A m x k and C m x n by rows,
//!      k  [     B     ]              B by rows, or packed: ceil(n/NR) panels of k x NR
//! m [ A ] [     C     ]  C += A·B
//! ```
//!
//! Blocks are multiplied as Goto and van de Geijn describe ("Anatomy of high-performance matrix multiplication", 2008), except that A is
//! never packed: the inner kernel broadcasts single elements of it, which `MR` rows give as well as a panel does.
//!
//! The arrays have room behind their last element for a whole tile. So packing and the inner kernel read, and packing also writes, past
//! the edge of a matrix; what comes of that is overwritten, or left in columns and rows that nobody reads.
#![no_std]
#![allow(static_mut_refs, reason = "one thread, and each array is borrowed by one exported function at a time")]

mod sizes;

use sizes::{BLOCK, DEPTH, EXACT, PANEL as NR, PANELS};

/// Columns of A at a time: so much of a panel of B and of `MR` rows of A stays in the first cache.
const KC: usize = 256;
/// Rows of C that the inner kernel holds, and two vectors of columns: so that the sums, two vectors of B and an element of A fit the 15
/// registers that V8 has on x86. `build.rs` has the compiler keep to the order in which a turn of the loop is written here, since with all of its
/// loads first more would be needed; hence no unrolling either. Without a fused multiply-add products take a register too.
const MR: usize = if cfg!(target_feature = "relaxed-simd") { 6 } else { 4 };
/// Rows of a smaller tile, for what is left of larger ones.
const FEW_ROWS: usize = 4;

static mut A: [f32; BLOCK + MR * DEPTH] = [0.0; BLOCK + MR * DEPTH];
static mut B: [f32; PANELS + NR * DEPTH] = [0.0; PANELS + NR * DEPTH];
static mut C: [f32; BLOCK] = [0.0; BLOCK];
/// What is on the way into A and B, and the C that is added.
static mut STAGED: [f32; BLOCK + NR * DEPTH] = [0.0; BLOCK + NR * DEPTH];
static mut C_EXACT: [f64; EXACT[0] * EXACT[1]] = [0.0; EXACT[0] * EXACT[1]];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

/// Where a block lies: 0 A, 1 B, 2 C, 3 what is staged, 4 C in double precision.
#[unsafe(no_mangle)]
extern "C" fn block(which: u32) -> *mut u8 {
    match which {
        0 => (&raw mut A).cast(),
        1 => (&raw mut B).cast(),
        2 => (&raw mut C).cast(),
        3 => (&raw mut STAGED).cast(),
        _ => (&raw mut C_EXACT).cast(),
    }
}

/// Brings what is staged, `k` rows of `m` elements, into A as `m` rows of `k`.
#[unsafe(no_mangle)]
unsafe extern "C" fn transpose_a(m: usize, k: usize) {
    // SAFETY: one thread; the caller staged a block that fits, and there is room behind it.
    unsafe { transpose((&raw const STAGED).cast(), m, (&raw mut A).cast(), k, m, k) };
}

/// Packs what is staged into B: `count` of its rows from row `first` on, `n` elements each; or transposed, `count` of its columns from column
/// `first` on, a multiple of `NR`, `k` elements each.
#[unsafe(no_mangle)]
unsafe extern "C" fn pack_b(first: usize, count: usize, k: usize, n: usize, transposed: bool) {
    let (staged, b) = (&raw const STAGED, &raw mut B);
    // SAFETY: one thread; the caller staged a part of a block that fits, and there is room behind it.
    unsafe {
        let (staged, b) = (staged.cast::<f32>(), b.cast::<f32>());
        if transposed {
            for j in (0..count).step_by(NR) {
                transpose(staged.add(j * k), k, b.add((first + j) * k), NR, k, NR);
            }
        } else {
            for j in (0..n).step_by(NR) {
                for p in 0..count {
                    let group = staged.add(p * n + j).cast::<[F32x4; 2]>().read_unaligned();
                    b.add(j * k + (first + p) * NR).cast::<[F32x4; 2]>().write_unaligned(group);
                }
            }
        }
    }
}

/// C ← A·B or C += A·B, in double precision if it is to be exact: tile by tile, down each panel of B.
#[unsafe(no_mangle)]
unsafe extern "C" fn multiply(m: usize, k: usize, n: usize, packed: bool, adds: bool, exact: bool) {
    let (width, size) = if exact { (NR / 2, size_of::<f64>()) } else { (NR, size_of::<f32>()) };
    // At the edges of C a tile of its own stands in, so that nothing past them is written.
    let mut edge = Edge([0; MR * NR * 4]);
    let mut p = 0;
    loop {
        let depth = KC.min(k - p);
        let adds = adds || p > 0;
        for j in (0..n).step_by(width) {
            let (b, ldb) = if packed { (j / NR * NR * k + p * NR + j % NR, NR) } else { (p * n + j, n) };
            let mut i = 0;
            while i < m {
                let at = (i * n + j) * size;
                let high = if exact || matches!(m - i, 0..=FEW_ROWS | 7..=8) { FEW_ROWS } else { MR };
                let (rows, columns) = (high.min(m - i), width.min(n - j));
                // SAFETY: one thread; the caller keeps to blocks that fit, and the arrays have room for the rest of a tile behind them.
                unsafe {
                    let (a, b) = ((&raw const A).cast::<f32>().add(i * k + p), (&raw const B).cast::<f32>().add(b));
                    let c = if exact { block(4) } else { block(2) }.add(at);
                    let inside = rows == high && columns == width;
                    let (to, ldc) = if inside { (c, n) } else { (edge.0.as_mut_ptr(), width) };
                    if !inside && adds {
                        copy_rows(c, n * size, to, width * size, rows, columns * size);
                    }
                    match (exact, high) {
                        (true, _) => tile::<F64x2, FEW_ROWS>(a, k, b, ldb, depth, to.cast(), ldc, adds),
                        (false, MR) => tile::<F32x4, MR>(a, k, b, ldb, depth, to.cast(), ldc, adds),
                        (false, _) => tile::<F32x4, FEW_ROWS>(a, k, b, ldb, depth, to.cast(), ldc, adds),
                    }
                    if !inside {
                        copy_rows(to, width * size, c, n * size, rows, columns * size);
                    }
                }
                i += high;
            }
        }
        p += depth;
        if p >= k {
            break;
        }
    }
}

/// A ← |A| and B ← |B|.
#[unsafe(no_mangle)]
extern "C" fn absolute() {
    // SAFETY: one thread, and the arrays are distinct.
    let (a, b) = unsafe { (&mut A, &mut B) };
    for x in a.iter_mut().chain(b) {
        *x = x.abs();
    }
}

/// C ← alpha·C + beta·staged, the latter only if it is read, for so many elements.
#[unsafe(no_mangle)]
extern "C" fn scale(length: usize, alpha: f32, beta: f32, reads_c: bool) {
    // SAFETY: one thread, and the arrays are distinct.
    let (c, added) = unsafe { (&mut C, &STAGED) };
    for (c, added) in c.iter_mut().zip(added).take(length) {
        *c = if reads_c { alpha * *c + beta * added } else { alpha * *c };
    }
}

/// A tile of C, aligned for either precision.
#[repr(align(16))]
struct Edge([u8; MR * NR * 4]);

/// # Safety
/// So many rows of so many bytes are there.
unsafe fn copy_rows(from: *const u8, from_stride: usize, to: *mut u8, to_stride: usize, rows: usize, bytes: usize) {
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe { to.add(row * to_stride).copy_from_nonoverlapping(from.add(row * from_stride), bytes) };
    }
}

/// The inner kernel: C ← A·B or C += A·B for `M` rows and two vectors of columns. A function of its own, since engines compile again, and
/// better, what is called often.
///
/// # Safety
/// `M` rows of A, `k` rows of B and the tile of C are there.
#[inline(never)]
#[allow(clippy::too_many_arguments, reason = "each in a register")]
unsafe fn tile<V: Lanes, const M: usize>(a: *const f32, lda: usize, b: *const f32, ldb: usize, k: usize, c: *mut V::Element, ldc: usize, adds: bool) {
    let mut sums = [[V::zero(); 2]; M];
    // SAFETY: the caller's promise.
    unsafe {
        for p in 0..k {
            let row = [V::load(b.add(p * ldb)), V::load(b.add(p * ldb + V::LANES))];
            for i in 0..M {
                let x = V::broadcast(a.add(i * lda + p));
                for j in 0..2 {
                    sums[i][j] = V::multiply_add(x, row[j], sums[i][j]);
                }
            }
        }
        for i in 0..M {
            for j in 0..2 {
                sums[i][j].store(c.add(i * ldc + j * V::LANES), adds);
            }
        }
    }
}

/// to ← fromᵀ, `rows` and `columns` being those of `to`, by squares of four. What a square writes past the end of a row, a later one overwrites:
/// hence from right to left, and within a square by rows.
///
/// # Safety
/// Both have room behind their last element for such squares.
#[inline(never)]
unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize, rows: usize, columns: usize) {
    for i in (0..rows).step_by(4) {
        for j in (0..columns).step_by(4).rev() {
            // SAFETY: the caller's promise.
            unsafe { transpose_square(from.add(j * from_stride + i), from_stride, to.add(i * to_stride + j), to_stride) };
        }
    }
}

/// A vector of sums.
trait Lanes: Copy {
    type Element;
    const LANES: usize;
    fn zero() -> Self;
    /// # Safety
    /// So many elements are there.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// The element is there.
    unsafe fn broadcast(from: *const f32) -> Self;
    fn multiply_add(a: Self, b: Self, c: Self) -> Self;
    /// Stores, or adds to what is there.
    ///
    /// # Safety
    /// So many elements are there.
    unsafe fn store(self, to: *mut Self::Element, adds: bool);
}

use lanes::{F32x4, F64x2, transpose_square};

/// Without SIMD.
#[cfg(not(target_feature = "simd128"))]
mod lanes {
    use super::Lanes;

    pub type F32x4 = [f32; 4];
    pub type F64x2 = [f64; 2];

    impl<T, const N: usize> Lanes for [T; N]
    where
        T: Copy + Default + From<f32> + core::ops::Add<Output = T> + core::ops::Mul<Output = T>,
    {
        type Element = T;
        const LANES: usize = N;

        fn zero() -> Self {
            [T::default(); N]
        }

        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller's promise.
            core::array::from_fn(|i| unsafe { *from.add(i) }.into())
        }

        unsafe fn broadcast(from: *const f32) -> Self {
            // SAFETY: the caller's promise.
            [unsafe { *from }.into(); N]
        }

        fn multiply_add(a: Self, b: Self, c: Self) -> Self {
            core::array::from_fn(|i| a[i] * b[i] + c[i])
        }

        unsafe fn store(self, to: *mut T, adds: bool) {
            for (i, value) in self.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { *to.add(i) = if adds { *to.add(i) + value } else { value } };
            }
        }
    }

    pub unsafe fn transpose_square(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        for i in 0..16 {
            // SAFETY: the caller's promise.
            unsafe { *to.add(i / 4 * to_stride + i % 4) = *from.add(i % 4 * from_stride + i / 4) };
        }
    }
}

#[cfg(target_feature = "simd128")]
mod lanes {
    use core::arch::wasm32::*;

    use super::Lanes;

    #[derive(Clone, Copy)]
    pub struct F32x4(v128);
    #[derive(Clone, Copy)]
    pub struct F64x2(v128);

    impl Lanes for F32x4 {
        type Element = f32;
        const LANES: usize = 4;

        fn zero() -> Self {
            Self(f32x4_splat(0.0))
        }

        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller's promise; wasm needs no alignment.
            Self(unsafe { v128_load(from.cast()) })
        }

        unsafe fn broadcast(from: *const f32) -> Self {
            // SAFETY: the caller's promise.
            Self(unsafe { v128_load32_splat(from.cast()) })
        }

        fn multiply_add(a: Self, b: Self, c: Self) -> Self {
            #[cfg(target_feature = "relaxed-simd")]
            return Self(f32x4_relaxed_madd(a.0, b.0, c.0));
            #[cfg(not(target_feature = "relaxed-simd"))]
            Self(f32x4_add(f32x4_mul(a.0, b.0), c.0))
        }

        unsafe fn store(self, to: *mut f32, adds: bool) {
            let to = to.cast::<v128>();
            // SAFETY: the caller's promise; wasm needs no alignment.
            unsafe { v128_store(to, if adds { f32x4_add(v128_load(to), self.0) } else { self.0 }) };
        }
    }

    impl Lanes for F64x2 {
        type Element = f64;
        const LANES: usize = 2;

        fn zero() -> Self {
            Self(f64x2_splat(0.0))
        }

        unsafe fn load(from: *const f32) -> Self {
            // SAFETY: the caller's promise; wasm needs no alignment.
            Self(f64x2_promote_low_f32x4(unsafe { v128_load64_zero(from.cast()) }))
        }

        unsafe fn broadcast(from: *const f32) -> Self {
            // SAFETY: the caller's promise.
            Self(f64x2_splat(unsafe { *from }.into()))
        }

        fn multiply_add(a: Self, b: Self, c: Self) -> Self {
            Self(f64x2_add(f64x2_mul(a.0, b.0), c.0))
        }

        unsafe fn store(self, to: *mut f64, adds: bool) {
            let to = to.cast::<v128>();
            // SAFETY: the caller's promise; wasm needs no alignment.
            unsafe { v128_store(to, if adds { f64x2_add(v128_load(to), self.0) } else { self.0 }) };
        }
    }

    pub unsafe fn transpose_square(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: the caller's promise; wasm needs no alignment.
        unsafe {
            let row = |i: usize| v128_load(from.add(i * from_stride).cast());
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            let (ab, cd) = (i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<0, 4, 1, 5>(c, d));
            v128_store(to.cast(), i64x2_shuffle::<0, 2>(ab, cd));
            v128_store(to.add(to_stride).cast(), i64x2_shuffle::<1, 3>(ab, cd));
            let (ab, cd) = (i32x4_shuffle::<2, 6, 3, 7>(a, b), i32x4_shuffle::<2, 6, 3, 7>(c, d));
            v128_store(to.add(2 * to_stride).cast(), i64x2_shuffle::<0, 2>(ab, cd));
            v128_store(to.add(3 * to_stride).cast(), i64x2_shuffle::<1, 3>(ab, cd));
        }
    }
}
