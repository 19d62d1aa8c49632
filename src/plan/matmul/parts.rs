//! The parts of a product that is too large for one dispatch: for a binding, for the workgroups of a grid, or for the items of a batch.

use super::batch::{self, Launch};
use super::cooperative;
use super::int8;
use super::rows;
use super::small;
use super::split;
use super::step::{End, Step};
use super::tile::{TILES, aligned, tiled};
use super::{Params, result, vector, whole};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::ops::matmul::{Problem, Stored};
use crate::plan::{Binding, Plan, Slot};

/// The largest parts that a dispatch can do.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartSize {
    /// Items of each loop of a batch. More than one only if their products are whole.
    pub(super) outer: u32,
    pub(super) inner: u32,
    m: u32,
    k: u32,
    n: u32,
    /// They are products whose blocks a launch takes one behind the other.
    are_small: bool,
}

impl PartSize {
    pub(super) fn choose(problem: &Problem, caps: &Caps) -> Self {
        let smallest = TILES[TILES.len() - 1];
        let most = |tile: u32| u32::try_from(u64::from(tile) * u64::from(caps.max_workgroups_per_dimension)).unwrap_or(u32::MAX);
        let (m, n) = (problem.m.min(most(smallest.m)).max(1), problem.n.min(most(smallest.n)).max(1));
        let whole = m >= problem.m && n >= problem.n;
        let small = small::most_items(problem, &super::whole(problem), caps);
        let most_items = small.unwrap_or(caps.max_workgroups_per_dimension);
        let (outer, inner) = if whole { batch::fitting(&problem.batch, most_items) } else { (1, 1) };
        let mut part = Self { outer, inner, m, k: problem.k.max(1), n, are_small: small.is_some() };
        // A binding starts at the alignment before its first element, and its length is rounded up to a vec4.
        let room_bytes = caps.max_binding_bytes.saturating_sub(caps.binding_alignment_bytes + 16).max(64);
        let room_bytes = split::room_bytes(problem, room_bytes, caps);
        // Sums may be kept in f32 until they are rounded, in rows of whole fours.
        let (operand_room, result_room) = (room_bytes / problem.dtype.bytes(), room_bytes / 4);
        loop {
            let Self { m, k, n, .. } = part;
            let launch = batch::part(&problem.batch, part.outer, part.inner);
            let span = |reach: u64, rows: u32, columns: u32, stride: u64| reach + u64::from(rows - 1) * stride + u64::from(columns);
            let (a_rows, a_columns) = if problem.transpose_a { (k, m) } else { (m, k) };
            let (b_rows, b_columns) = if problem.transpose_b { (n, k) } else { (k, n) };
            let reads = problem.reads_operands();
            let [a_reach, b_reach, c_reach] = launch.reaches();
            let a_is = reads && span(a_reach, a_rows, a_columns, problem.a.stride) > operand_room;
            let b_is = reads && span(b_reach, b_rows, b_columns, problem.b.stride) > operand_room;
            let c_is = problem.c.is_some_and(|c| span(c_reach, m, n, c.stride) > result_room);
            let out_is = span(launch.count().saturating_sub(1) * u64::from(m) * u64::from(n), m, n, problem.n.into()) > result_room
                || launch.count() * u64::from(m) * padded(problem, n.into()) > result_room;
            // Fewer rows make a range shorter by whole strides; fewer columns help only in a single row.
            if launch.count() > 1 && (a_is || b_is || c_is || out_is) {
                let level = if part.outer > 1 { &mut part.outer } else { &mut part.inner };
                *level = level.div_ceil(2);
            } else if a_is {
                halve(if (a_rows > 1) != problem.transpose_a { &mut part.m } else { &mut part.k });
            } else if b_is {
                halve(if (b_rows > 1) != problem.transpose_b { &mut part.k } else { &mut part.n });
            } else if c_is || out_is {
                halve(if m > 1 { &mut part.m } else { &mut part.n });
            } else {
                return part;
            }
        }
    }

    /// Whether that is all of it.
    pub(super) fn is_whole(&self, problem: &Problem) -> bool {
        let batch = &problem.batch;
        let is_whole = self.m >= problem.m && self.k >= problem.k && self.n >= problem.n;
        is_whole && self.outer >= batch.outer.count && self.inner >= batch.inner.count
    }

    /// Adds what computes some items of a batch, in parts.
    pub(super) fn dispatch(&self, problem: &Problem, items: &Launch, caps: &Caps, plan: &mut Plan) -> Result<()> {
        for m0 in (0..problem.m).step_by(self.m as usize) {
            for n0 in (0..problem.n).step_by(self.n as usize) {
                // A sum of no terms still has to be written.
                for k0 in (0..problem.k.max(1)).step_by(self.k as usize) {
                    let (m, k, n) = (self.m.min(problem.m - m0), self.k.min(problem.k - k0), self.n.min(problem.n - n0));
                    Part { m0, k0, n0, m, k, n, items, are_small: self.are_small }.dispatch(problem, caps, plan)?;
                }
            }
        }
        Ok(())
    }
}

/// What a row of the result takes where it may be kept in f32 until it is rounded.
pub(super) fn padded(problem: &Problem, columns: u64) -> u64 {
    if problem.result == DType::F16 { columns.next_multiple_of(4) } else { columns }
}

/// Half as much, in whole tiles where that is possible.
fn halve(part: &mut u32) {
    *part = if *part > 512 { (*part / 2).next_multiple_of(256) } else { part.div_ceil(2) };
}

/// One part of a split product, or whole products of a batch.
pub(super) struct Part<'a> {
    m0: u32,
    k0: u32,
    n0: u32,
    m: u32,
    k: u32,
    n: u32,
    items: &'a Launch,
    are_small: bool,
}

impl Part<'_> {
    /// Adds what computes this part.
    fn dispatch(&self, problem: &Problem, caps: &Caps, plan: &mut Plan) -> Result<()> {
        let in_order = |swap: bool, x: u32, y: u32| if swap { (y, x) } else { (x, y) };
        let a_at = in_order(problem.transpose_a, self.m0, self.k0);
        let b_at = in_order(problem.transpose_b, self.k0, self.n0);
        let a_size = in_order(problem.transpose_a, self.m, self.k);
        let b_size = in_order(problem.transpose_b, self.k, self.n);
        let Launch { first, batch } = self.items;
        let (starts, reaches) = (problem.batch.starts(*first), batch.reaches());
        let [a_items, b_items, c_items] = [0, 1, 2].map(|operand| (starts[operand], reaches[operand]));
        let of_result = u64::from(problem.m) * u64::from(problem.n);
        let (a, a_start) = window(Slot::A, 0, (&problem.a, problem.dtype), a_items, a_at, a_size, caps);
        let (b, b_start) = window(Slot::B, 1, (&problem.b, problem.dtype), b_items, b_at, b_size, caps);
        let (at, size) = ((self.m0, self.n0), (self.m, self.n));
        let out_items = (first * of_result, (batch.count() - 1) * of_result);
        let (out, out_start) = window(Slot::Out, 2, (&result(problem), problem.result), out_items, at, size, caps);
        let (is_first, is_last) = (self.k0 == 0, self.k0 + self.k >= problem.k);
        // The first part along k adds C, the later ones what the earlier ones wrote; or C waits for the sums to be rounded.
        let adds_c = if problem.result == DType::F16 { is_last } else { is_first };
        let c = problem.c.filter(|_| adds_c).map(|c| window(Slot::C, 4, (&c, problem.result), c_items, at, size, caps));
        let c_start = c.map_or(0, |(_, start)| start);
        let whole = whole(&Problem { batch: *batch, ..*problem });
        let params = Params { m: self.m, k: self.k, n: self.n, a_start, b_start, c_start, out_start, ..whole };
        // What comes after the sum is for the last part along k.
        let row = Stored { rows: 1, columns: problem.n, stride: problem.n.into() };
        let bias = (problem.bias && is_last).then(|| window(Slot::BIAS, 5, (&row, DType::F32), (0, 0), (0, self.n0), (1, self.n), caps));
        let bias_start = bias.map_or(0, |(_, start)| start);
        let params = Params { bias_start, activation: if is_last { params.activation } else { 0 }, ..params };
        let step = if let Some(step) = rows::step(problem, params, [a, b]) {
            step
        } else if self.are_small {
            small::step(problem, params, [a, b])
        } else if let Some(step) = vector::step(problem, params, [a, b], caps) {
            step
        } else {
            matrix_step(problem, params, [a, b], is_first && is_last, caps)?
        };
        let added = [c, bias].map(|window| window.map(|(binding, _)| binding));
        step.add_to(
            plan,
            &End { out, added, bias_step: u32::from(problem.n > 1), bias_rows: false, dtype: problem.result, is_first, is_last },
        );
        Ok(())
    }
}

/// The launch for a product of two matrices: by matrix units where there are any for its type, else by the register-tiled kernel; of 8-bit integers
/// by their own.
pub(super) fn matrix_step(problem: &Problem, params: Params, operands: [Binding; 2], whole: bool, caps: &Caps) -> Result<Step> {
    if let Some(integers) = &problem.integers {
        return int8::step(problem, integers, params, operands, caps);
    }
    if caps.matrix_unit.is_some()
        && let Some(step) = step_by_units(problem, params, operands, whole, caps)
    {
        return Ok(step);
    }
    if whole { aligned(problem, params, operands, caps) } else { tiled(problem, params, operands, caps) }
}

/// The same by matrix units alone. On the web it leads into a part of the package that devices with such units load.
#[inline(never)]
fn step_by_units(problem: &Problem, params: Params, operands: [Binding; 2], whole: bool, caps: &Caps) -> Option<Step> {
    split::step(problem, params, operands, caps).or_else(|| cooperative::step(problem, params, operands, whole, caps))
}

/// The binding that holds a part of a stored matrix, and the element of it at which the part starts. Of a batch, `items` tells where the first
/// matrix starts, and how far behind it the last one does.
#[allow(clippy::too_many_arguments, reason = "they are what a range is made of")]
#[inline(never)]
pub(super) fn window(
    slot: Slot,
    index: u32,
    (stored, dtype): (&Stored, DType),
    items: (u64, u64),
    at: (u32, u32),
    size: (u32, u32),
    caps: &Caps,
) -> (Binding, u32) {
    // An operand that is not read has no elements to point at.
    let is_read = size.0 > 0 && size.1 > 0;
    let first = if is_read { items.0 + u64::from(at.0) * stored.stride + u64::from(at.1) } else { 0 };
    let length = if is_read { items.1 + Stored { rows: size.0, columns: size.1, stride: stored.stride }.span() } else { 0 };
    let offset_bytes = first * dtype.bytes() / caps.binding_alignment_bytes * caps.binding_alignment_bytes;
    let start = first - offset_bytes / dtype.bytes();
    let size_bytes = ((start + length) * dtype.bytes()).next_multiple_of(16).max(16);
    (Binding { slot, index, offset_bytes, size_bytes }, start as u32)
}
