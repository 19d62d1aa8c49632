//! A product that the device has not the memory for, computed in parts of its result.
//!
//! Only the parts' rows of A and columns of B are on the device at a time, so a part takes less than the whole in every way. Operands are read
//! again for each, which is possible where they are on the host.

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

/// Rows and columns of a result.
#[derive(Debug, Clone, PartialEq)]
struct Block {
    rows: Range<u32>,
    columns: Range<u32>,
}

impl Block {
    /// Two of half the size, along the longer side; None of what is small.
    fn halves(&self) -> Option<[Self; 2]> {
        let (m, n) = (self.rows.len() as u32, self.columns.len() as u32);
        let half = |side: &Range<u32>| side.start + (side.len() as u32 / 2).next_multiple_of(LEAST);
        if m.max(n) <= LEAST {
            None
        } else if m >= n {
            let middle = half(&self.rows);
            let part = |rows| Self { rows, columns: self.columns.clone() };
            Some([part(self.rows.start..middle), part(middle..self.rows.end)])
        } else {
            let middle = half(&self.columns);
            let part = |columns| Self { rows: self.rows.clone(), columns };
            Some([part(self.columns.start..middle), part(middle..self.columns.end)])
        }
    }
}

/// The product in parts, after `error` said that the whole does not fit; that error if parts do not either, or cannot be made.
pub(crate) async fn in_parts(gpu: &Gpu, call: &Call<'_>, opened: &Arc<Opened>, want: Want, error: Box<Error>) -> Result<Report<Output>> {
    let clock = Stopwatch::start();
    let Op::Matmul(problem) = &call.op else { return Err(error) };
    let (m, n) = (u64::from(problem.m), u64::from(problem.n));
    let whole = Block { rows: 0..m as u32, columns: 0..n as u32 };
    let (Some(halves), true) = (whole.halves(), !want.keep && call.part(0..1, 0..1).is_some()) else { return Err(error) };
    // The first one last.
    let mut left: Vec<Block> = halves.into_iter().rev().collect();
    let mut result = HostVec::zeros(call.op.extent())?;
    let mut all: Option<Report<()>> = None;
    let mut parts = 0;
    while let Some(block) = left.pop() {
        let Some(part) = call.part(block.rows.clone(), block.columns.clone()) else { return Err(error) };
        // What the last attempt had is given back first.
        opened.device.synchronize().await?;
        opened.device.trim();
        let done = complete(gpu, &part, opened, start(gpu, &part, opened, want), &Stopwatch::start()).await;
        let report = match done {
            Err(failed) if matches!(*failed, Error::OutOfMemory { .. }) => {
                left.extend(block.halves().ok_or(failed)?.into_iter().rev());
                continue;
            }
            done => done?,
        };
        parts += 1;
        let (upload_ms, kernel_ms, download_ms) = (report.upload_ms, report.kernel_ms, report.download_ms);
        let report = report.map(|data| {
            if let Output::Host(values) = data {
                result.paste(&values, n, block.rows.start.into(), block.columns.clone());
            }
        });
        all = Some(match all {
            None => report,
            Some(all) => Report {
                upload_ms: all.upload_ms + upload_ms,
                kernel_ms: all.kernel_ms + kernel_ms,
                download_ms: all.download_ms + download_ms,
                ..all
            },
        });
    }
    let report = all.ok_or(error)?;
    Ok(Report { kernel: format!("{}, in {parts} parts for want of memory", report.kernel), total_ms: clock.ms(), ..report }
        .map(|()| Output::Host(result)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_make_up_the_whole_and_end() {
        let mut blocks = vec![Block { rows: 0..1000, columns: 0..300 }];
        let (mut elements, mut smallest) = (0, 0);
        while let Some(block) = blocks.pop() {
            assert!(!block.rows.is_empty() && !block.columns.is_empty(), "{block:?}");
            match block.halves() {
                Some(halves) => blocks.extend(halves),
                None => {
                    elements += block.rows.len() * block.columns.len();
                    smallest += 1;
                }
            }
        }
        assert_eq!((elements, smallest), (300_000, 16 * 5));
    }
}
