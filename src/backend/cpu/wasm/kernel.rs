//! The product of blocks on the CPU in the browser: a module of its own, with a memory of its own.
//!
//! An engine refuses a whole module for one instruction that it does not know. So `build.rs` compiles this file twice, without SIMD and
//! with it, and the main module starts what the engine validates. (Relaxed SIMD with its fused multiply-add was no faster.) It has
//! no allocator and no dependencies: blocks lie in fixed arrays, which the page's arrays are copied into and out of directly.
//!
//! Blocks are multiplied as Goto and van de Geijn describe ("Anatomy of high-performance matrix multiplication", 2008): both are packed
//! into panels that the inner kernel reads in order, A by `MR` rows and B by `NR` columns, zero past the edges.
//!
//! ```text
//!            NC                         packed, k outermost in each panel
//!     KC  [ B block ]                   A: ceil(MC/MR) panels of KC x MR
//! MC [A]  [ C block ]  C += A·B         B: ceil(NC/NR) panels of KC x NR
//! ```
#![no_std]
#![allow(static_mut_refs, reason = "one thread, and each array is borrowed by one exported function at a time")]

/// Rows of a block of A and C.
const MC: usize = 256;
/// Columns of a block of A, rows of one of B.
const KC: usize = 256;
/// Columns of a block of B and C.
const NC: usize = 512;
/// Rows of C that the inner kernel holds.
const MR: usize = 4;
/// Columns of C that the inner kernel holds.
const NR: usize = 16;
/// The same in double precision.
const MR64: usize = 4;
const NR64: usize = 4;

static mut A: [f32; MC * KC] = [0.0; MC * KC];
static mut B: [f32; KC * NC] = [0.0; KC * NC];
static mut C: [f32; MC * NC] = [0.0; MC * NC];
static mut C_ADDED: [f32; MC * NC] = [0.0; MC * NC];
// The packed panels; in double precision they need twice the room.
static mut A_PACKED: [f64; MC * KC] = [0.0; MC * KC];
static mut B_PACKED: [f64; KC * NC] = [0.0; KC * NC];
static mut C_EXACT: [f64; MC * NC] = [0.0; MC * NC];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

/// Where a block lies: 0 A, 1 B, 2 C, 3 the C that is added, 4 C in double precision.
#[unsafe(no_mangle)]
extern "C" fn block(which: u32) -> *mut u8 {
    match which {
        0 => (&raw mut A).cast(),
        1 => (&raw mut B).cast(),
        2 => (&raw mut C).cast(),
        3 => (&raw mut C_ADDED).cast(),
        _ => (&raw mut C_EXACT).cast(),
    }
}

/// The largest blocks: 0 rows of A, 1 columns of A, 2 columns of B. Rows of C are stored 2 apart.
#[unsafe(no_mangle)]
extern "C" fn block_size(which: u32) -> u32 {
    [MC, KC, NC][which as usize % 3] as u32
}

/// Begins a block of C: all zero.
#[unsafe(no_mangle)]
extern "C" fn clear() {
    // SAFETY: one thread, no other borrow lives.
    unsafe {
        C.fill(0.0);
        C_EXACT.fill(0.0);
    }
}

/// C += op(A)·op(B), or |op(A)|·|op(B)|. A is stored m × k by rows, or k × m if transposed; B k × n, or n × k.
#[unsafe(no_mangle)]
extern "C" fn multiply(m: usize, k: usize, n: usize, transpose_a: bool, transpose_b: bool, absolute: bool) {
    let (m, k, n) = (m.min(MC), k.min(KC), n.min(NC));
    let sign = |x: f32| if absolute { x.abs() } else { x };
    // SAFETY: one thread, and the arrays are distinct; an array of f64 has room for as many f32.
    let (a, b, c, a_packed, b_packed) =
        unsafe { (&A, &B, &mut C, as_f32(&mut A_PACKED), as_f32(&mut B_PACKED)) };
    pack::<f32, MR>(a, a_packed, m, k, !transpose_a, sign);
    pack::<f32, NR>(b, b_packed, n, k, transpose_b, sign);
    for j in (0..n).step_by(NR) {
        let b_panel = &b_packed[j * k..][..NR * k];
        for i in (0..m).step_by(MR) {
            let a_panel = &a_packed[i * k..][..MR * k];
            // Blocks are whole panels, so the inner kernel may write past m and n.
            inner::add(a_panel, b_panel, &mut c[i * NC + j..]);
        }
    }
}

/// The same in double precision, into the exact C.
#[unsafe(no_mangle)]
extern "C" fn multiply_exact(m: usize, k: usize, n: usize, transpose_a: bool, transpose_b: bool) {
    let (m, k, n) = (m.min(MC), k.min(KC), n.min(NC));
    // SAFETY: one thread, and the arrays are distinct.
    let (a, b, c, a_packed, b_packed) = unsafe { (&A, &B, &mut C_EXACT, &mut A_PACKED, &mut B_PACKED) };
    pack::<f64, MR64>(a, a_packed, m, k, !transpose_a, f64::from);
    pack::<f64, NR64>(b, b_packed, n, k, transpose_b, f64::from);
    for j in (0..n).step_by(NR64) {
        let b_panel = &b_packed[j * k..][..NR64 * k];
        for i in (0..m).step_by(MR64) {
            inner::add_exact(&a_packed[i * k..][..MR64 * k], b_panel, &mut c[i * NC + j..]);
        }
    }
}

/// C ← alpha·C + beta·C_ADDED, the latter only if it is read.
#[unsafe(no_mangle)]
extern "C" fn scale(m: usize, n: usize, alpha: f32, beta: f32, reads_c: bool) {
    // SAFETY: one thread, and the arrays are distinct.
    let (c, added) = unsafe { (&mut C, &C_ADDED) };
    for row in 0..m.min(MC) {
        for i in row * NC..row * NC + n.min(NC) {
            c[i] = if reads_c { alpha * c[i] + beta * added[i] } else { alpha * c[i] };
        }
    }
}

fn as_f32(packed: &mut [f64]) -> &mut [f32] {
    // SAFETY: every f64 is two f32, aligned; the borrow passes on.
    unsafe { core::slice::from_raw_parts_mut(packed.as_mut_ptr().cast(), packed.len() * 2) }
}

/// Packs `lines` of `k` elements into panels of `P` lines, k outermost: a line is a row of A or a column of B. Lines are the stored
/// rows if `by_rows`, else the stored columns.
#[inline(always)]
fn pack<T: Copy + Default, const P: usize>(from: &[f32], to: &mut [T], lines: usize, k: usize, by_rows: bool, value: impl Fn(f32) -> T) {
    for first in (0..lines).step_by(P) {
        let panel = &mut to[first * k..][..P * k];
        let present = P.min(lines - first);
        if by_rows {
            for line in 0..P {
                if line < present {
                    let row = &from[(first + line) * k..][..k];
                    for (p, &x) in row.iter().enumerate() {
                        panel[p * P + line] = value(x);
                    }
                } else {
                    for p in 0..k {
                        panel[p * P + line] = T::default();
                    }
                }
            }
        } else {
            for (p, group) in panel.chunks_exact_mut(P).enumerate() {
                let row = &from[p * lines + first..][..present];
                for line in 0..P {
                    group[line] = if line < present { value(row[line]) } else { T::default() };
                }
            }
        }
    }
}

/// C[MR × NR] += A panel · B panel, without SIMD.
#[cfg(not(target_feature = "simd128"))]
mod inner {
    use super::{MR, MR64, NC, NR, NR64};

    pub fn add(a: &[f32], b: &[f32], c: &mut [f32]) {
        let mut sum = [[0.0f32; NR]; MR];
        for (a, b) in a.chunks_exact(MR).zip(b.chunks_exact(NR)) {
            for i in 0..MR {
                for j in 0..NR {
                    sum[i][j] += a[i] * b[j];
                }
            }
        }
        for i in 0..MR {
            for j in 0..NR {
                c[i * NC + j] += sum[i][j];
            }
        }
    }

    pub fn add_exact(a: &[f64], b: &[f64], c: &mut [f64]) {
        let mut sum = [[0.0f64; NR64]; MR64];
        for (a, b) in a.chunks_exact(MR64).zip(b.chunks_exact(NR64)) {
            for i in 0..MR64 {
                for j in 0..NR64 {
                    sum[i][j] += a[i] * b[j];
                }
            }
        }
        for i in 0..MR64 {
            for j in 0..NR64 {
                c[i * NC + j] += sum[i][j];
            }
        }
    }
}

/// C[MR × NR] += A panel · B panel, four columns a vector.
#[cfg(target_feature = "simd128")]
mod inner {
    use core::arch::wasm32::*;

    use super::{MR, MR64, NC, NR, NR64};

    pub fn add(a: &[f32], b: &[f32], c: &mut [f32]) {
        const VECTORS: usize = NR / 4;
        let k = (a.len() / MR).min(b.len() / NR);
        let c = &mut c[..(MR - 1) * NC + NR];
        let mut sum = [[f32x4_splat(0.0); VECTORS]; MR];
        let (mut a, mut b) = (a.as_ptr(), b.as_ptr());
        for _ in 0..k {
            // SAFETY: the panels hold k groups of MR and NR elements.
            unsafe {
                let mut row = [f32x4_splat(0.0); VECTORS];
                for (j, v) in row.iter_mut().enumerate() {
                    *v = v128_load(b.add(j * 4).cast());
                }
                for i in 0..MR {
                    let x = v128_load32_splat(a.add(i).cast());
                    for j in 0..VECTORS {
                        sum[i][j] = f32x4_add(f32x4_mul(x, row[j]), sum[i][j]);
                    }
                }
                a = a.add(MR);
                b = b.add(NR);
            }
        }
        for i in 0..MR {
            for j in 0..VECTORS {
                let at = c[i * NC + j * 4..][..4].as_mut_ptr().cast::<v128>();
                // SAFETY: four elements, and wasm loads need no alignment.
                unsafe { v128_store(at, f32x4_add(v128_load(at), sum[i][j])) };
            }
        }
    }

    pub fn add_exact(a: &[f64], b: &[f64], c: &mut [f64]) {
        const VECTORS: usize = NR64 / 2;
        let k = (a.len() / MR64).min(b.len() / NR64);
        let c = &mut c[..(MR64 - 1) * NC + NR64];
        let mut sum = [[f64x2_splat(0.0); VECTORS]; MR64];
        let (mut a, mut b) = (a.as_ptr(), b.as_ptr());
        for _ in 0..k {
            // SAFETY: the panels hold k groups of MR64 and NR64 elements.
            unsafe {
                let mut row = [f64x2_splat(0.0); VECTORS];
                for (j, v) in row.iter_mut().enumerate() {
                    *v = v128_load(b.add(j * 2).cast());
                }
                for i in 0..MR64 {
                    let x = v128_load64_splat(a.add(i).cast());
                    for j in 0..VECTORS {
                        sum[i][j] = f64x2_add(f64x2_mul(x, row[j]), sum[i][j]);
                    }
                }
                a = a.add(MR64);
                b = b.add(NR64);
            }
        }
        for i in 0..MR64 {
            for j in 0..VECTORS {
                let at = c[i * NC + j * 2..][..2].as_mut_ptr().cast::<v128>();
                // SAFETY: two elements, and wasm loads need no alignment.
                unsafe { v128_store(at, f64x2_add(v128_load(at), sum[i][j])) };
            }
        }
    }
}
