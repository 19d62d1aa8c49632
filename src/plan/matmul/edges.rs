//! Products whose sides are a little more than whole tiles. The device computes tiles in rounds, so a row past the last whole tile can cost as
//! much as a hundred; where that is more than the launches take, what is past it is computed as strips of its own.
//!
//! ```text
//! ┌───────────┬─┐
//! │           │ │  columns: one is a product of a matrix by a vector
//! │   tiles   │ │
//! ├───────────┴─┤
//! └─────────────┘  rows, across all columns
//! ```

use super::parts::Piece;
use super::tile::Tile;
use super::{Params, vector};
use crate::dtype::DType;
use crate::info::Caps;
use crate::ops::matmul::{Precision, Problem};

/// What sides may be cut down to: multiples of the tiles' sides.
const SIDES: [u32; 3] = [128, 64, 32];

/// The most rows or columns that a strip is worth.
const MOST: u32 = 48;

/// What another launch costs, in the measure of the tiled kernel.
const LAUNCH: f64 = 7e5;

/// A product that takes less is left alone: it could save no more than the launches take.
const LEAST: f64 = 4e6;

/// What is saved should be so much of all, since the measures are of one device.
const GAIN: f64 = 0.04;

/// The pieces in which these rows and columns are computed, tiles first. `k` terms are summed up at once.
pub(super) fn pieces(problem: &Problem, [rows, columns]: Piece, k: u32, caps: &Caps) -> impl Iterator<Item = Piece> + use<> {
    let [m, n] = cut(problem, [rows.end - rows.start, k, columns.end - columns.start], caps);
    let (row, column) = (rows.start + m, columns.start + n);
    let pieces = [[rows.start..row, columns.start..column], [row..rows.end, columns.clone()], [rows.start..row, column..columns.end]];
    pieces.into_iter().filter(|piece| piece.iter().all(|side| !side.is_empty()))
}

/// The rows and columns that are left to tiles.
fn cut(problem: &Problem, [m, k, n]: [u32; 3], caps: &Caps) -> [u32; 2] {
    // Items of a batch lie behind one another only if they are whole; results of f16 whose rows start anywhere would be rounded strip by strip,
    // by matrix units strips took longer than they saved, and those of integers would have no kernel of their own.
    let is_plain = [problem.dtype, problem.result] == [DType::F32; 2] && problem.precision == Precision::F32 && problem.integers.is_none();
    let whole = if is_plain && problem.batch.count() == 1 { time(problem, [m, k, n], caps) } else { 0.0 };
    if whole < LEAST {
        return [m, n];
    }
    let inner = |side: u32| {
        let multiples = SIDES.map(|of| side / of * of);
        let is_new = move |i: usize| multiples[i] > 0 && side - multiples[i] <= MOST && !multiples[..i].contains(&multiples[i]);
        let strips = (0..SIDES.len()).filter(move |&i| is_new(i) && multiples[i] < side).map(move |i| multiples[i]);
        [side].into_iter().chain(strips)
    };
    let strip = |shape: [u32; 3]| if shape[0].min(shape[2]) > 0 { time(problem, shape, caps) + LAUNCH } else { 0.0 };
    let mut best = (whole * (1.0 - GAIN), [m, n]);
    for (rows, columns) in inner(m).flat_map(|rows| inner(n).map(move |columns| (rows, columns))) {
        let strips = f64::from(u8::from(rows < m)) + f64::from(u8::from(columns < n));
        let tiles = time(problem, [rows, k, columns], caps);
        // Most are out of the question before the strips are looked at.
        if strips == 0.0 || tiles + strips * LAUNCH >= best.0 {
            continue;
        }
        let all = tiles + strip([m - rows, k, n]) + strip([rows, k, n - columns]);
        if all < best.0 {
            best = (all, [rows, columns]);
        }
    }
    best.1
}

/// The time that a piece takes, in the measure of the tiled kernel: by whichever kernel computes it.
fn time(problem: &Problem, [m, k, n]: [u32; 3], caps: &Caps) -> f64 {
    let params = Params { m, k, n, batch: 1, inner: 1, ..Params::default() };
    vector::time(problem, &params, caps).or_else(|| Tile::choose([m, k, n], 1, 1.0, caps).ok().map(|(time, ..)| time)).unwrap_or_default()
}
