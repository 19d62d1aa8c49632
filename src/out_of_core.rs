//! A product that the device has not the memory for, computed in parts of its result: items of a batch, then rows and columns of one.
//!
//! Only what a part reads of A and B is on the device at a time, so a part takes less than the whole in every way. Operands are read
//! again for each, which is possible where they are on the host; and so a part during which the device is lost is computed by a fresh one.

use std::ops::Range;
use std::sync::Arc;

use crate::backend::Backend;
use crate::backend::device::Opened;
use crate::call::Call;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Output, Report, Want};
use crate::host::HostVec;
use crate::ops::Op;
use crate::pending::{complete, start};

/// A part is not made smaller than so many rows and columns: a device that has no room for that has none.
const LEAST: u32 = 64;

/// A part of a result: items of its batch, and rows and columns of each.
#[derive(Debug, Clone, PartialEq)]
struct Block {
    items: Range<u64>,
    rows: Range<u32>,
    columns: Range<u32>,
}

impl Block {
    /// Two of half the size: of several items half of them each, of one by its longer side; None of what is small. `inner` are the items of
    /// one turn of the outer loop, which are kept together as long as there are several turns.
    fn halves(&self, inner: u64) -> Option<[Self; 2]> {
        let (m, n, items) = (self.rows.len() as u32, self.columns.len() as u32, self.items.end - self.items.start);
        if items > 1 {
            let middle = self.items.start + if items > inner { (items / inner / 2) * inner } else { items / 2 };
            let part = |items| Self { items, ..self.clone() };
            return Some([part(self.items.start..middle), part(middle..self.items.end)]);
        }
        let half = |side: &Range<u32>| side.start + (side.len() as u32 / 2).next_multiple_of(LEAST);
        if m.max(n) <= LEAST {
            None
        } else if m >= n {
            let middle = half(&self.rows);
            let part = |rows| Self { rows, ..self.clone() };
            Some([part(self.rows.start..middle), part(middle..self.rows.end)])
        } else {
            let middle = half(&self.columns);
            let part = |columns| Self { columns, ..self.clone() };
            Some([part(self.columns.start..middle), part(middle..self.columns.end)])
        }
    }
}

/// The product in parts, after `error` said that the whole does not fit; that error if parts do not either, or cannot be made.
pub(crate) async fn in_parts(gpu: &Gpu, call: &Call<'_>, opened: &Arc<Opened>, want: Want, error: Box<Error>) -> Result<Report<Output>> {
    let clock = Stopwatch::start();
    let Op::Matmul(problem) = &call.op else { return Err(error) };
    let (m, n, inner) = (u64::from(problem.m), u64::from(problem.n), u64::from(problem.batch.inner.count));
    let whole = Block { items: 0..problem.batch.count(), rows: 0..m as u32, columns: 0..n as u32 };
    let (Some(halves), true) = (whole.halves(inner), !want.keep && call.is_replayable()) else { return Err(error) };
    // The first one last.
    let mut left: Vec<Block> = halves.into_iter().rev().collect();
    let mut result = HostVec::zeros(call.op.extent())?;
    let mut all: Option<Report<()>> = None;
    let (mut opened, mut parts, mut replayed) = (Arc::clone(opened), 0, false);
    while let Some(block) = left.pop() {
        let Some(part) = call.part(block.items.clone(), block.rows.clone(), block.columns.clone()) else { return Err(error) };
        // What the last attempt had is given back first.
        let done = match opened.device.synchronize().await {
            Ok(()) => {
                opened.device.trim();
                complete(gpu, &part, &opened, start(gpu, &part, &opened, want), &Stopwatch::start()).await
            }
            Err(error) => Err(error),
        };
        let report = match done {
            Err(failed) if matches!(*failed, Error::OutOfMemory { .. }) => {
                left.extend(block.halves(inner).ok_or(failed)?.into_iter().rev());
                continue;
            }
            Err(failed) if matches!(*failed, Error::DeviceLost { .. }) => {
                opened = gpu.reopen(&opened).await?;
                // Once, as a whole product is.
                if std::mem::replace(&mut replayed, true) {
                    return Err(failed);
                }
                left.push(block);
                continue;
            }
            done => done?,
        };
        parts += 1;
        if let Output::Host(values) = &report.data {
            result.paste(values, n, block.items.start * m + u64::from(block.rows.start), block.columns.clone())?;
        }
        let report = report.map(drop);
        all = Some(match all {
            None => report,
            Some(all) => Report {
                upload_ms: all.upload_ms + report.upload_ms,
                kernel_ms: all.kernel_ms + report.kernel_ms,
                download_ms: all.download_ms + report.download_ms,
                ..report
            },
        });
    }
    let report = all.ok_or(error)?;
    Ok(Report { kernel: format!("{}, in {parts} parts for want of memory", report.kernel), total_ms: clock.ms(), replayed, ..report }
        .map(|()| Output::Host(result)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_up_the_whole_and_end() {
        let mut blocks = vec![Block { items: 0..1, rows: 0..1000, columns: 0..300 }];
        let (mut elements, mut smallest) = (0, 0);
        while let Some(block) = blocks.pop() {
            assert!(!block.rows.is_empty() && !block.columns.is_empty(), "{block:?}");
            match block.halves(1) {
                Some(halves) => blocks.extend(halves),
                None => {
                    elements += block.rows.len() * block.columns.len();
                    smallest += 1;
                }
            }
        }
        assert_eq!((elements, smallest), (300_000, 16 * 5));
    }

    #[test]
    fn items_are_taken_apart_by_whole_turns_first() {
        for (outer, inner) in [(1, 1), (5, 1), (1, 7), (2, 3), (5, 6), (7, 1000)] {
            let mut blocks = vec![Block { items: 0..outer * inner, rows: 0..64, columns: 0..64 }];
            let mut seen = 0;
            while let Some(Block { items, .. }) = blocks.last() {
                assert_eq!(items.start, seen.max(items.start), "in order, and none twice");
                let count = items.end - items.start;
                let whole_turns = count.is_multiple_of(inner) && items.start.is_multiple_of(inner);
                assert!(whole_turns || items.start / inner == (items.end - 1) / inner, "{items:?} of {outer} turns of {inner}");
                match blocks.pop().and_then(|block| block.halves(inner)) {
                    Some(halves) => blocks.extend(halves.into_iter().rev()),
                    None => seen += 1,
                }
            }
            assert_eq!(seen, outer * inner);
        }
    }
}
