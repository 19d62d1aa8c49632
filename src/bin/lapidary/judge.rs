//! Whether a product is right: every element, or where that would take minutes, rows spread over it. The bounds are the library's.

use std::fmt;

use lapidary::verify::{Reference, Verdict};
use lapidary::{Matmul, Result};

/// Rows judged of a large product.
const ROWS: u64 = 16;

/// Up to so many multiplications every element is judged: about a second.
const ALL_UP_TO: u64 = 1 << 27;

/// How much of a result is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Every element of what is small, rows of what is large.
    Auto,
    All,
    None,
}

/// A product in double precision, or rows of it.
pub struct Judge {
    reference: Option<Reference>,
    shape: [u64; 3],
    rows: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// None if nothing was judged.
    pub verdict: Option<Verdict>,
    pub rows: u64,
    pub of_rows: u64,
}

impl Judge {
    pub fn new(a: &[f32], b: &[f32], shape: [u64; 3], extent: Extent) -> Result<Self> {
        let [m, k, n] = shape;
        // Rows without elements take their time, too.
        let steps = m.saturating_mul(k.max(1)).saturating_mul(n.max(1));
        let rows = match extent {
            Extent::None => 0,
            Extent::All => m,
            Extent::Auto => {
                if steps <= ALL_UP_TO {
                    m
                } else {
                    m.min(ROWS)
                }
            }
        };
        let reference = match extent {
            Extent::None => None,
            _ => Some(Reference::new(&spread(a, k, m, rows), b, &[], &Matmul::new(rows, k, n))?),
        };
        Ok(Self { reference, shape, rows })
    }

    pub fn judge(&self, result: &[f32]) -> Result<Judgement> {
        let [m, _, n] = self.shape;
        let verdict = match &self.reference {
            None => None,
            Some(reference) => Some(reference.check(&spread(result, n, m, self.rows))?),
        };
        Ok(Judgement { verdict, rows: self.rows, of_rows: m })
    }
}

/// So many rows of a matrix, evenly spread, the last one among them.
fn spread(matrix: &[f32], columns: u64, rows: u64, judged: u64) -> Vec<f32> {
    let row = |index: u64| {
        let row = (u128::from(index) * u128::from(rows) / u128::from(judged)) as usize - 1;
        &matrix[row * columns as usize..][..columns as usize]
    };
    (1..=judged).flat_map(row).copied().collect()
}

impl Judgement {
    /// Nothing that was judged is wrong.
    pub fn is_right(&self) -> bool {
        self.verdict.is_none_or(|verdict| verdict.is_right())
    }
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict {
            None => return f.write_str("not judged"),
            Some(verdict) if verdict.is_right() => f.write_str("right")?,
            Some(verdict) => write!(f, "WRONG: {} of {} elements", verdict.wrong, verdict.elements)?,
        }
        if self.rows == self.of_rows { Ok(()) } else { write!(f, " ({} of {} rows)", self.rows, self.of_rows) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_and_a_wrong_one_is_seen() {
        assert_eq!(spread(&[0.0, 1.0, 2.0, 3.0, 4.0], 1, 5, 5), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(spread(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 1, 6, 2), [2.0, 5.0]);
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 1.0]);
        let judge = Judge::new(&a, &b, [2, 2, 1], Extent::Auto).unwrap();
        assert_eq!(judge.judge(&[3.0, 7.0]).unwrap().to_string(), "right");
        let wrong = judge.judge(&[3.0, 7.5]).unwrap();
        assert!(!wrong.is_right());
        assert_eq!(wrong.to_string(), "WRONG: 1 of 2 elements");
        assert_eq!(Judge::new(&a, &b, [2, 2, 1], Extent::None).unwrap().judge(&[]).unwrap().to_string(), "not judged");
        assert!(Judge::new(&[], &[], [0, 2, 0], Extent::All).unwrap().judge(&[]).unwrap().is_right());
    }
}
