//! What of a result whole tiles cover. The device computes tiles in rounds, so a row past the last whole tile can cost as much as a hundred:
//! few of them are left to workgroups of the same launch that share out blocks of 4 x 4 elements, `shaders/matmul/edges.wgsl`.
//!
//! ```text
//! ┌───────────┬─┐
//! │           │ │  blocks beside the tiles
//! │   tiles   │ │
//! ├───────────┴─┤
//! └─────────────┘  blocks below, across all columns
//! ```

use super::Params;
use super::tile::{MULTIPROCESSORS, Tile};
use crate::info::Caps;

/// The most rows or columns that tiles leave.
const MOST: u32 = 16;

/// Terms of a block that an invocation fetches at once: it waits for little else.
pub(super) const TERMS: u32 = 4;

/// Invocations that share a block: with fewer they go on when the tiles are done, and with more they take too much of what tiles fetch by.
const SHARING: u32 = 16;

/// Workgroups, where each multiprocessor has one tile at most: with as many as all multiprocessors have room for, an NVIDIA H200 puts two neighbours on
/// one, and half of them have no tile. Products of 1032³ then took half as long again, and those of 1028³, which leave half as many blocks, did not.
const SPREAD: u64 = 2 * MULTIPROCESSORS - 8;

/// What workgroups of blocks cost for each part of k, and what each block does for each term, in multiplications of the first tile. Measured on an
/// NVIDIA H200: of 524 with three rows of blocks it is worth them and of 528 with four it is not, and for 1025 one part was best of those tried.
const LAUNCH: f64 = 1.08e8;
const BLOCK: f64 = 75.0;

/// Tiles and blocks that make up a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cover {
    /// Along m and along n.
    pub(super) tiles: [u32; 2],
    /// Rows and columns past them.
    pub(super) past: [u32; 2],
    pub(super) blocks: u64,
    /// Blocks of a workgroup.
    pub(super) in_workgroup: u32,
}

impl Cover {
    /// Of a result by tiles of that size, which leave what is past them where that is little and they are to be `cut`.
    pub(super) fn of([m, n]: [u32; 2], tile: &Tile, cut: bool) -> Self {
        let past = |side: u32, tile: u32| if cut && side > tile && side % tile <= MOST { side % tile } else { 0 };
        let [rows, columns] = [past(m, tile.m), past(n, tile.n)];
        let blocks = |rows: u32, columns: u32| u64::from(rows.div_ceil(4)) * u64::from(columns.div_ceil(4));
        Self {
            tiles: [(m - rows).div_ceil(tile.m), (n - columns).div_ceil(tile.n)],
            past: [rows, columns],
            blocks: blocks(m - rows, columns) + blocks(rows, n),
            in_workgroup: tile.threads() / SHARING,
        }
    }

    /// Whether tiles may start so far before the end that all of each lies in the result: where four rows or four columns are fetched at once, as
    /// is said, they start at multiples of four.
    pub(super) fn may_overlap(&self, tile: &Tile, params: &Params, fours: [u32; 2]) -> bool {
        let fits = |side: u32, tile: u32, past: u32, fours: u32| {
            side >= tile && (past > 0 || side.is_multiple_of(tile) || fours == 0 || side.is_multiple_of(4))
        };
        fits(params.m, tile.m, self.past[0], fours[0]) && fits(params.n, tile.n, self.past[1], fours[1])
    }

    /// Workgroups in x and y of so many products, or parts of some: those of blocks come last, where multiprocessors are left over. They are so few
    /// that tiles are spread, and go on to further blocks.
    pub(super) fn grid(&self, items: u64) -> [u32; 2] {
        let [tiles_m, tiles_n] = self.tiles;
        let (tiles, items) = (u64::from(tiles_m) * u64::from(tiles_n), items.max(1));
        let mut edges = self.blocks.div_ceil(self.in_workgroup.into());
        if tiles.saturating_mul(items) <= MULTIPROCESSORS {
            let most = (SPREAD / items).saturating_sub(tiles).max(1);
            edges = edges.div_ceil(edges.div_ceil(most).max(1));
        }
        let rows = edges.div_ceil(tiles_n.max(1).into());
        [tiles_n, tiles_m.saturating_add(u32::try_from(rows).unwrap_or(u32::MAX))]
    }

    /// What its blocks cost, in multiplications of the first tile.
    pub(super) fn cost(&self, k: u32, parts: u32) -> f64 {
        if self.blocks == 0 { 0.0 } else { LAUNCH * f64::from(parts) + BLOCK * self.blocks as f64 * f64::from(k) }
    }

    /// Whether its grid may be launched. Without blocks it is cut to that by `PartSize`.
    pub(super) fn fits(&self, caps: &Caps) -> bool {
        self.grid(u64::MAX)[1] <= caps.max_workgroups_per_dimension
    }
}
