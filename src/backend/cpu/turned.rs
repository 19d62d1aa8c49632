//! Transposition, by squares that are turned in registers where the CPU has instructions for it.

use bytemuck::Pod;

/// Elements of which squares are turned.
pub(super) trait Turned: Pod + Send + Sync {
    /// Side of the squares.
    const SIDE: usize = 1;

    /// Turns a square, rows of which are so far apart.
    ///
    /// # Safety
    /// It lies within both.
    #[inline(always)]
    unsafe fn turn_square(from: *const Self, _apart: usize, to: *mut Self, _step: usize) {
        // SAFETY: the caller's promise.
        unsafe { *to = *from };
    }
}

impl Turned for u8 {}
#[cfg(not(target_arch = "x86_64"))]
impl Turned for u16 {}
#[cfg(not(target_arch = "x86_64"))]
impl Turned for u32 {}
#[cfg(not(target_arch = "x86_64"))]
impl Turned for [u32; 2] {}

/// By rounds in which rows that are half a square apart are put between one another: as many of them as double to a side.
#[cfg(target_arch = "x86_64")]
macro_rules! turned {
    ($($word:ty: $side:literal, $rounds:literal, $low:ident, $high:ident;)+) => { $(
        impl Turned for $word {
            const SIDE: usize = $side;

            #[inline(always)]
            unsafe fn turn_square(from: *const Self, apart: usize, to: *mut Self, step: usize) {
                use std::arch::x86_64::{_mm_loadu_si128, _mm_storeu_si128, $high, $low};
                // SAFETY: the caller's promise. Every x86-64 has SSE2.
                unsafe {
                    let mut rows: [_; $side] = std::array::from_fn(|row| _mm_loadu_si128(from.add(row * apart).cast()));
                    for _ in 0..$rounds {
                        rows = std::array::from_fn(|row| {
                            let (upper, lower) = (rows[row / 2], rows[row / 2 + $side / 2]);
                            if row % 2 == 0 { $low(upper, lower) } else { $high(upper, lower) }
                        });
                    }
                    for (column, values) in rows.into_iter().enumerate() {
                        _mm_storeu_si128(to.add(column * step).cast(), values);
                    }
                }
            }
        }
    )+ };
}

#[cfg(target_arch = "x86_64")]
turned! {
    u16: 8, 3, _mm_unpacklo_epi16, _mm_unpackhi_epi16;
    u32: 4, 2, _mm_unpacklo_epi32, _mm_unpackhi_epi32;
    [u32; 2]: 2, 1, _mm_unpacklo_epi64, _mm_unpackhi_epi64;
}

/// Rows of which lines stay in the cache until all columns have been read.
const TILE: usize = 64;
/// Bytes of a line of the cache.
const LINE_BYTES: usize = 64;

/// Turns so many rows and columns: `to[j, i] = from[i, j]`, rows of either so far apart.
pub(super) fn turn<T: Turned>(from: &[T], apart: usize, to: &mut [T], step: usize, [rows, columns]: [usize; 2]) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!((rows - 1) * apart + columns <= from.len() && (columns - 1) * step + rows <= to.len(), "a square past its ends");
    if rows < T::SIDE || columns < T::SIDE {
        for i in 0..rows {
            for j in 0..columns {
                to[j * step + i] = from[i * apart + j];
            }
        }
        return;
    }
    // Of few rows all of a line is turned at once; of more what is written lies together rather.
    let line = if rows < TILE { LINE_BYTES / size_of::<T>() } else { T::SIDE };
    for first in (0..rows).step_by(TILE) {
        for block in (0..columns).step_by(line) {
            for i in (first..rows.min(first + TILE)).step_by(T::SIDE) {
                for j in (block..columns.min(block + line)).step_by(T::SIDE) {
                    // What is left of whole squares is in one with some before it, which are turned once more.
                    let (i, j) = (i.min(rows - T::SIDE), j.min(columns - T::SIDE));
                    // SAFETY: all squares lie within both, as was checked just now.
                    unsafe { T::turn_square(from.as_ptr().add(i * apart + j), apart, to.as_mut_ptr().add(j * step + i), step) };
                }
            }
        }
    }
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
            let pairs: Vec<_> = words.iter().map(|&word| [word, !word]).collect();
            let (mut turned, mut turned_halves, mut turned_bytes, mut turned_pairs) = (
                vec![u32::MAX; columns * step],
                vec![u16::MAX; columns * step],
                vec![u8::MAX; columns * step],
                vec![[u32::MAX, 0]; columns * step],
            );
            turn(&words, apart, &mut turned, step, [rows, columns]);
            turn(&halves, apart, &mut turned_halves, step, [rows, columns]);
            turn(&bytes, apart, &mut turned_bytes, step, [rows, columns]);
            turn(&pairs, apart, &mut turned_pairs, step, [rows, columns]);
            for at in 0..columns * step {
                let (j, i) = (at / step, at % step);
                let expected = if i < rows { words[i * apart + j] } else { u32::MAX };
                let found = (turned[at], turned_halves[at], turned_bytes[at], turned_pairs[at]);
                assert_eq!(
                    found,
                    (expected, expected as u16, expected as u8, [expected, !expected]),
                    "row {j}, column {i} of {rows} x {columns}"
                );
            }
        }
    }
}
