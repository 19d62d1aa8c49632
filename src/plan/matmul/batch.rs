//! Plans for batches: what is one product in disguise, and what of a batch one launch takes.

use super::Params;
use crate::ops::matmul::{Batch, Level, Problem, Stored};

/// Some items of a batch, in the loops that count them.
pub(super) struct Launch {
    /// The first of them.
    pub first: u64,
    /// The loops of this launch.
    pub batch: Batch,
}

/// A batch in which all items share B, and whose A and C have their rows one behind the other, is a single taller product.
pub(super) fn merged(problem: &Problem) -> Problem {
    let &Problem { m, batch: Batch { outer, inner, first }, a, c, .. } = problem;
    // Rows lie a stride apart; a single one as far as the next item's.
    let rows_apart = |stored: &Stored, step: u64| match m {
        1 if step >= u64::from(stored.columns) => Some(step),
        _ if step == u64::from(m) * stored.stride => Some(stored.stride),
        _ => None,
    };
    let reads = problem.reads_operands();
    let all_rows =
        |stored: Stored, stride| u32::try_from(u64::from(m) * u64::from(inner.count)).ok().map(|rows| Stored { rows, stride, ..stored });
    let taller = |stored: Stored, step| rows_apart(&stored, step).and_then(|stride| all_rows(stored, stride));
    let a = if reads { taller(a, inner.a).filter(|_| !problem.transpose_a && inner.b == 0) } else { all_rows(a, a.stride) };
    let c = c.map(|c| taller(c, inner.c));
    match (inner.count, a, c) {
        (0 | 1, ..) | (_, None, _) | (.., Some(None)) => *problem,
        (_, Some(a), c) => Problem { m: a.rows, a, c: c.flatten(), batch: Batch { first, outer: Level::ONE, inner: outer }, ..*problem },
    }
}

/// The most items of each loop that make at most so many together.
pub(super) fn fitting(batch: &Batch, most: u32) -> (u32, u32) {
    let inner = batch.inner.count.clamp(1, most);
    ((most / inner).min(batch.outer.count).max(1), inner)
}

/// The loops with at most so many items each.
pub(super) fn part(batch: &Batch, outer: u32, inner: u32) -> Batch {
    let of = |level: Level, most: u32| Level { count: level.count.min(most), ..level };
    Batch { outer: of(batch.outer, outer), inner: of(batch.inner, inner), ..*batch }
}

/// All of a batch, so many items of each loop at a time.
pub(super) fn launches(batch: &Batch, outer: u32, inner: u32) -> impl Iterator<Item = Launch> + use<> {
    let batch = *batch;
    (0..batch.outer.count).step_by(outer as usize).flat_map(move |i| {
        (0..batch.inner.count).step_by(inner as usize).map(move |j| Launch {
            first: u64::from(i) * u64::from(batch.inner.count) + u64::from(j),
            batch: part(&batch, outer.min(batch.outer.count - i), inner.min(batch.inner.count - j)),
        })
    })
}

/// What a kernel is told of a batch.
pub(super) fn params(batch: &Batch) -> Params {
    let Batch { outer, inner, first: [a_start, b_start, c_start] } = *batch;
    Params {
        a_start: a_start as u32,
        b_start: b_start as u32,
        c_start: c_start as u32,
        batch: batch.count() as u32,
        inner: inner.count,
        a_outer: outer.a as u32,
        b_outer: outer.b as u32,
        c_outer: outer.c as u32,
        a_inner: inner.a as u32,
        b_inner: inner.b as u32,
        c_inner: inner.c as u32,
        ..Params::default()
    }
}
