//! What operands are read from, natively: f32 as it lies, and f16, some of which is made wide at a time, while it is in a cache.

use std::borrow::Cow;

use half::f16;

use super::simd::widen;
use super::turned::turn;

/// A number of an operand.
pub(super) trait Number: Copy + Into<f32> + Sync {
    /// So many of some lines are read at once where each is read once.
    const AT_ONCE: usize;

    /// The same lines in f32, in that room where it is needed.
    fn read<'a, const N: usize>(lines: [&'a [Self]; N], room: &'a mut Vec<f32>) -> [&'a [f32]; N];

    /// Puts as many numbers into f32.
    fn widen(from: &[Self], to: &mut [f32]);

    /// So many lines of so many numbers, lines so far apart, as columns of rows in f32, by way of that room.
    fn turn(from: &[Self], apart: usize, to: &mut [f32], size: [usize; 2], room: &mut Vec<Self>);

    /// The same where they are of f32 as they lie.
    fn plain(values: &[Self]) -> Option<&[f32]>;

    /// All of them in f32.
    fn all(values: &[Self]) -> Cow<'_, [f32]> {
        let wide = || {
            let mut wide = vec![0.0; values.len()];
            Self::widen(values, &mut wide);
            Cow::Owned(wide)
        };
        Self::plain(values).map_or_else(wide, Cow::Borrowed)
    }
}

impl Number for f32 {
    const AT_ONCE: usize = usize::MAX;

    #[inline(always)]
    fn read<'a, const N: usize>(lines: [&'a [Self]; N], _: &'a mut Vec<f32>) -> [&'a [f32]; N] {
        lines
    }

    fn widen(from: &[Self], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    fn turn(from: &[Self], apart: usize, to: &mut [f32], size: [usize; 2], _: &mut Vec<Self>) {
        turn(bytemuck::cast_slice(from), apart, bytemuck::cast_slice_mut::<_, u32>(to), size[0], size);
    }

    fn plain(values: &[Self]) -> Option<&[f32]> {
        Some(values)
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

    fn widen(from: &[Self], to: &mut [f32]) {
        widen(from, to);
    }

    fn turn(from: &[Self], apart: usize, to: &mut [f32], size: [usize; 2], room: &mut Vec<Self>) {
        room.resize(to.len(), f16::ZERO);
        turn(bytemuck::cast_slice(from), apart, bytemuck::cast_slice_mut::<_, u16>(room), size[0], size);
        widen(room, to);
    }

    fn plain(_: &[Self]) -> Option<&[f32]> {
        None
    }
}
