//! Transposition, by squares that are turned in registers where the CPU has instructions for it.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _mm_loadu_ps, _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_epi16, _mm_unpacklo_epi16, _mm256_set_m128, _mm256_shuffle_ps,
    _mm256_storeu_ps, _mm256_unpackhi_ps, _mm256_unpacklo_ps,
};

use bytemuck::Pod;

/// Elements of which squares are turned.
pub(in crate::backend::cpu) trait Turned: Pod + Send + Sync {
    /// Turns squares of eight in registers, and gives the sides of what is done.
    ///
    /// # Safety
    /// So many rows and columns lie within both.
    unsafe fn turn_eights(_from: &[Self], _apart: usize, _to: &mut [Self], _step: usize, _sides: [usize; 2]) -> [usize; 2] {
        [0; 2]
    }
}

impl Turned for u8 {}
#[cfg(not(target_arch = "x86_64"))]
impl Turned for u16 {}
#[cfg(not(target_arch = "x86_64"))]
impl Turned for u32 {}

#[cfg(target_arch = "x86_64")]
impl Turned for u16 {
    unsafe fn turn_eights(from: &[Self], apart: usize, to: &mut [Self], step: usize, sides: [usize; 2]) -> [usize; 2] {
        let whole = sides.map(|side| side / 8 * 8);
        // SAFETY: the caller's promise. Every x86-64 has SSE2.
        unsafe { turn_halves(from.as_ptr(), apart, to.as_mut_ptr(), step, whole) };
        whole
    }
}

#[cfg(target_arch = "x86_64")]
impl Turned for u32 {
    unsafe fn turn_eights(from: &[Self], apart: usize, to: &mut [Self], step: usize, sides: [usize; 2]) -> [usize; 2] {
        if !std::arch::is_x86_feature_detected!("avx") {
            return [0; 2];
        }
        let whole = sides.map(|side| side / 8 * 8);
        // SAFETY: the caller's promise, and the CPU has the instructions.
        unsafe { turn_words(from.as_ptr().cast(), apart, to.as_mut_ptr().cast(), step, whole) };
        whole
    }
}

/// Turns so many rows and columns: `to[j, i] = from[i, j]`, rows of either so far apart.
pub(in crate::backend::cpu) fn turn<T: Turned>(from: &[T], apart: usize, to: &mut [T], step: usize, [rows, columns]: [usize; 2]) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!((rows - 1) * apart + columns <= from.len() && (columns - 1) * step + rows <= to.len(), "a square past its ends");
    // SAFETY: as was checked just now.
    let whole = unsafe { T::turn_eights(from, apart, to, step, [rows, columns]) };
    for i in 0..rows {
        let done = if i < whole[0] { whole[1] } else { 0 };
        for j in done..columns {
            to[j * step + i] = from[i * apart + j];
        }
    }
}

/// Does something for each square of eight, from row i and column j on: all columns of some rows, while their lines are in the cache.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn squares([rows, columns]: [usize; 2], turn: impl Fn(usize, usize)) {
    const TILE: usize = 64;
    for first in (0..rows).step_by(TILE) {
        for j in (0..columns).step_by(8) {
            (first..rows.min(first + TILE)).step_by(8).for_each(|i| turn(i, j));
        }
    }
}

/// Each square by halves of rows beside one another, so that only parts of four have to be turned in registers.
///
/// # Safety
/// So many rows and columns, multiples of eight, lie within both.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
unsafe fn turn_words(from: *const f32, apart: usize, to: *mut f32, step: usize, sides: [usize; 2]) {
    squares(sides, |i, j| {
        for j in [j, j + 4] {
            // SAFETY: the caller's promise.
            unsafe {
                let four = |row: usize| _mm_loadu_ps(from.add((i + row) * apart + j));
                let [a, b, c, d] = [0, 1, 2, 3].map(|row| _mm256_set_m128(four(row + 4), four(row)));
                let [ab, cd] = [_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d)];
                let [ab_high, cd_high] = [_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d)];
                let put = |column: usize, values| _mm256_storeu_ps(to.add((j + column) * step + i), values);
                put(0, _mm256_shuffle_ps::<0x44>(ab, cd));
                put(1, _mm256_shuffle_ps::<0xee>(ab, cd));
                put(2, _mm256_shuffle_ps::<0x44>(ab_high, cd_high));
                put(3, _mm256_shuffle_ps::<0xee>(ab_high, cd_high));
            }
        }
    });
}

/// Each square by three rounds in which rows that are four apart are put between one another.
///
/// # Safety
/// So many rows and columns, multiples of eight, lie within both.
#[cfg(target_arch = "x86_64")]
unsafe fn turn_halves(from: *const u16, apart: usize, to: *mut u16, step: usize, sides: [usize; 2]) {
    squares(sides, |i, j| {
        // SAFETY: the caller's promise. Every x86-64 has SSE2.
        unsafe {
            let mut rows = [0, 1, 2, 3, 4, 5, 6, 7].map(|row| _mm_loadu_si128(from.add((i + row) * apart + j).cast()));
            for _ in 0..3 {
                let [a, b, c, d] = [0, 1, 2, 3].map(|row| {
                    let (upper, lower) = (rows[row], rows[row + 4]);
                    [_mm_unpacklo_epi16(upper, lower), _mm_unpackhi_epi16(upper, lower)]
                });
                rows = [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]];
            }
            for (column, values) in rows.into_iter().enumerate() {
                _mm_storeu_si128(to.add((j + column) * step + i).cast(), values);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_turned_whatever_is_left_of_whole_ones() {
        for ([rows, columns], [apart, step]) in
            [([8, 8], [8, 8]), ([16, 24], [30, 17]), ([13, 19], [19, 14]), ([3, 40], [41, 3]), ([130, 9], [9, 131]), ([0, 5], [5, 1])]
        {
            let words: Vec<u32> = (0..(rows * apart) as u32).collect();
            let (halves, bytes): (Vec<_>, Vec<_>) = words.iter().map(|&word| (word as u16, word as u8)).unzip();
            let (mut turned, mut turned_halves, mut turned_bytes) =
                (vec![u32::MAX; columns * step], vec![u16::MAX; columns * step], vec![u8::MAX; columns * step]);
            turn(&words, apart, &mut turned, step, [rows, columns]);
            turn(&halves, apart, &mut turned_halves, step, [rows, columns]);
            turn(&bytes, apart, &mut turned_bytes, step, [rows, columns]);
            for at in 0..columns * step {
                let (j, i) = (at / step, at % step);
                let expected = if i < rows { words[i * apart + j] } else { u32::MAX };
                let found = (turned[at], turned_halves[at], turned_bytes[at]);
                assert_eq!(found, (expected, expected as u16, expected as u8), "row {j}, column {i} of {rows} x {columns}");
            }
        }
    }
}
