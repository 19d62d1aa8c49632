//! What matrices are read from line by line, natively: f32 as it lies, and f16, which is made wide a few lines at a time, while they are in a cache.

use std::borrow::Cow;

use half::f16;
use half::slice::HalfFloatSliceExt as _;

use super::simd::widen;

/// A number of an operand.
pub(super) trait Number: Copy + Into<f32> + Sync {
    /// So many of some lines are read at once where each is read once.
    const AT_ONCE: usize;

    /// The same lines in f32, in that room where it is needed.
    fn read<'a, const N: usize>(lines: [&'a [Self]; N], room: &'a mut Vec<f32>) -> [&'a [f32]; N];

    /// All of them in f32.
    fn all(values: &[Self]) -> Cow<'_, [f32]>;
}

impl Number for f32 {
    const AT_ONCE: usize = usize::MAX;

    #[inline(always)]
    fn read<'a, const N: usize>(lines: [&'a [Self]; N], _: &'a mut Vec<f32>) -> [&'a [f32]; N] {
        lines
    }

    fn all(values: &[Self]) -> Cow<'_, [f32]> {
        Cow::Borrowed(values)
    }
}

impl Number for f16 {
    /// A multiple of what vectors of any CPU hold, few enough that eight lines fit the first cache.
    const AT_ONCE: usize = 512;

    fn read<'a, const N: usize>(lines: [&'a [Self]; N], room: &'a mut Vec<f32>) -> [&'a [f32]; N] {
        let length = lines.iter().map(|line| line.len()).max().unwrap_or(0);
        if room.len() < N * length {
            room.resize(N * length, 0.0);
        }
        let mut rooms = room.chunks_exact_mut(length.max(1));
        lines.map(|line| {
            let wide = rooms.next().map_or(&mut [][..], |room| &mut room[..line.len()]);
            widen(line, wide);
            &*wide
        })
    }

    fn all(values: &[Self]) -> Cow<'_, [f32]> {
        Cow::Owned(values.to_f32_vec())
    }
}
