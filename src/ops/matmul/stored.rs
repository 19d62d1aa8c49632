//! How a matrix lies in memory, and whether an array is long enough for it.

use super::within;
use crate::error::{Error, Result};

/// A matrix stored by rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Rows as stored.
    pub rows: u32,
    /// Columns as stored.
    pub columns: u32,
    /// Elements from one row to the next.
    pub stride: u64,
}

impl Stored {
    /// Elements from the first to the last, all between included.
    pub fn span(&self) -> u64 {
        if self.rows == 0 || self.columns == 0 { 0 } else { u64::from(self.rows - 1) * self.stride + u64::from(self.columns) }
    }

    /// The same of many, the last of which starts so far behind the first.
    pub(super) fn span_of(&self, reach: u64) -> u64 {
        match self.span() {
            0 => 0,
            span => reach + span,
        }
    }

    pub(super) fn new(argument: &'static str, stride_name: &'static str, rows: u32, columns: u32, stride: Option<u64>) -> Result<Self> {
        let stored = Self { rows, columns, stride: stride.unwrap_or(u64::from(columns)) };
        // Kernels are told it in 32 bits.
        let most = u32::MAX;
        if stored.stride < u64::from(columns) || stored.stride > most.into() {
            let expected = format!("a whole number from {columns}, the columns of {argument} as stored, to {most}");
            return Err(Box::new(Error::InvalidDimension { name: stride_name, value: stored.stride.to_string(), expected }));
        }
        Ok(stored)
    }

    /// Checks the length of an operand that has so many such matrices, the last of which starts so far behind the first.
    pub(super) fn check(&self, argument: &'static str, is_window: bool, (items, reach): (u64, u64), length: u64) -> Result<()> {
        let &Self { rows, columns, stride } = self;
        let span = self.span();
        let expected = match (items.min(span), is_window) {
            (0, _) => 0,
            (_, false) => items.saturating_mul(span),
            (_, true) => reach.saturating_add(span),
        };
        within("the number of elements an operand spans", expected)?;
        // With a stride of its own a matrix may be a window of a larger one; without, the length has to fit.
        let fits = if is_window { length >= expected } else { length == expected };
        if fits {
            return Ok(());
        }
        let of_batch = if items == 1 { String::new() } else { format!("{items} · ") };
        let formula = match (is_window, reach) {
            (false, _) => format!("{of_batch}{rows} · {columns}"),
            (true, 0) => format!("at least ({rows} - 1) · {stride} + {columns}"),
            (true, _) => format!("at least {reach} + ({rows} - 1) · {stride} + {columns}"),
        };
        Err(Box::new(Error::LengthMismatch { argument, length, expected, formula }))
    }
}
