//! Batches: many products of one shape as one. What the operands' batch shapes have in common, and what is broadcast, is decided here once,
//! by NumPy's rules (["Broadcasting"](https://numpy.org/doc/stable/user/basics.broadcasting.html)); below here a batch is two nested loops.
//!
//! Dimensions that lie one behind the other in every operand are one dimension, so that nearly all batches are a single loop.

use super::{MAX_ELEMENTS, dimension};
use crate::error::{Error, Result};
use crate::tensor::joined;

/// One loop of a batch: so many items, and the elements from one of them to the next in A, B and C; 0 where all of them share one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as the operands are")]
pub struct Level {
    /// How many.
    pub count: u32,
    pub a: u64,
    pub b: u64,
    pub c: u64,
}

impl Level {
    /// No loop.
    pub const ONE: Self = Self { count: 1, a: 0, b: 0, c: 0 };
}

/// A batch. Its results lie packed, item after item; item i is `i / inner.count` in the outer loop and `i % inner.count` in the inner one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Where the first item starts in A, B and C, in elements.
    pub first: [u64; 3],
    /// More than one item only where one loop does not do.
    pub outer: Level,
    /// The loop, or the inner one of two.
    pub inner: Level,
}

impl Batch {
    /// A single product.
    pub const ONE: Self = Self { first: [0; 3], outer: Level::ONE, inner: Level::ONE };

    /// How many products.
    pub fn count(&self) -> u64 {
        u64::from(self.outer.count) * u64::from(self.inner.count)
    }

    /// How many matrices A, B and C have of their own: what all items of a loop share counts once.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn matrices(&self) -> [u64; 3] {
        let of = |step: fn(&Level) -> u64| -> u64 {
            [self.outer, self.inner].iter().filter(|level| step(level) > 0).map(|level| u64::from(level.count)).product()
        };
        [of(|level| level.a), of(|level| level.b), of(|level| level.c)]
    }

    /// Elements from the first item of A, B and C to the last.
    #[inline(never)]
    pub fn reaches(&self) -> [u64; 3] {
        let (outer, inner) = (self.outer.count.saturating_sub(1), self.inner.count.saturating_sub(1));
        self.offsets(outer.into(), inner.into())
    }

    /// Where an item starts in A, B and C.
    #[inline(never)]
    pub fn starts(&self, item: u64) -> [u64; 3] {
        let inner = u64::from(self.inner.count.max(1));
        let [a, b, c] = self.offsets(item / inner, item % inner);
        [self.first[0].saturating_add(a), self.first[1].saturating_add(b), self.first[2].saturating_add(c)]
    }

    /// So many items, of which the first starts where its operands do: some of one turn of the outer loop, or all of several turns.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn part(&self, items: u64) -> Self {
        let inner = u64::from(self.inner.count.max(1));
        if items < inner {
            Self { outer: Level::ONE, inner: Level { count: items as u32, ..self.inner }, ..Self::ONE }
        } else {
            Self { outer: Level { count: (items / inner) as u32, ..self.outer }, inner: self.inner, ..Self::ONE }
        }
    }

    fn offsets(&self, outer: u64, inner: u64) -> [u64; 3] {
        let of = |outer_step: u64, inner_step: u64| outer.saturating_mul(outer_step).saturating_add(inner.saturating_mul(inner_step));
        [of(self.outer.a, self.inner.a), of(self.outer.b, self.inner.b), of(self.outer.c, self.inner.c)]
    }
}

/// What is told of a batch, before it is checked.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    /// The batch shapes of A and B.
    pub shapes: [Vec<u64>; 2],
    /// Elements from one item of A, B and C to the next, where they are not packed.
    pub strides: [Option<u64>; 3],
    /// Elements before the first item of each, where they are windows of something larger.
    pub first: [Option<u64>; 3],
}

const STRIDES: [&str; 3] = ["stride_a", "stride_b", "stride_c"];

impl Told {
    /// The batch shape of the result.
    pub fn shape(&self) -> Result<Vec<u64>> {
        let [a, b] = &self.shapes;
        let rank = a.len().max(b.len());
        let mut shape = Vec::with_capacity(rank);
        for i in 0..rank {
            shape.push(match (size(a, i, rank), size(b, i, rank)) {
                (1, size) | (size, 1) => size,
                (x, y) if x == y => x,
                _ => {
                    let expected =
                        format!("one that goes with {} of a: counted from the last, each dimension the same, or one of them 1", list(a));
                    return Err(Box::new(Error::InvalidDimension { name: "the batch of b", value: list(b), expected }));
                }
            });
        }
        Ok(shape)
    }

    /// The loops, and how many items A, B and C have themselves. `packed` are the elements from one item to the next where nothing else is told.
    pub fn resolve(&self, packed: [u64; 3], reads_c: bool) -> Result<(Batch, [u64; 3])> {
        let shape = self.shape()?;
        let rank = shape.len();
        let mut next = packed;
        for ((next, stride), name) in next.iter_mut().zip(self.strides).zip(STRIDES) {
            let Some(stride) = stride else { continue };
            if rank == 0 {
                let expected = "left out where there is no batch".to_owned();
                return Err(Box::new(Error::InvalidDimension { name, value: stride.to_string(), expected }));
            }
            if stride > MAX_ELEMENTS || (stride > 0 && rank > 1) {
                let one = if rank > 1 { "0: a batch of several dimensions is packed, or shared by all" } else { "at most 4294967296" };
                return Err(Box::new(Error::InvalidDimension { name, value: stride.to_string(), expected: one.to_owned() }));
            }
            *next = stride;
        }
        let mut items = [1u64; 3];
        let mut levels: Vec<Level> = Vec::with_capacity(2);
        for (i, &count) in shape.iter().enumerate().rev() {
            let own = [size(&self.shapes[0], i, rank), size(&self.shapes[1], i, rank), count];
            let mut steps = [0; 3];
            for x in 0..3 {
                if own[x] != 1 {
                    steps[x] = next[x];
                    next[x] = next[x].saturating_mul(own[x]);
                    items[x] = items[x].saturating_mul(own[x]);
                }
            }
            let [a, b, c] = steps;
            let level = Level { count: dimension("the batch", count)?, a, b, c: if reads_c { c } else { 0 } };
            match levels.last_mut() {
                _ if count == 1 => {}
                Some(last) if follows(last, &level) => {
                    last.count = dimension("the batch", u64::from(last.count).saturating_mul(count))?;
                }
                _ => levels.push(level),
            }
        }
        for (items, stride) in items.iter_mut().zip(self.strides) {
            if stride == Some(0) {
                *items = (*items).min(1);
            }
        }
        let mut first = self.first.map(Option::unwrap_or_default);
        if !reads_c {
            first[2] = 0;
        }
        let batch = match levels[..] {
            _ if shape.contains(&0) => Batch { inner: Level { count: 0, ..Level::ONE }, ..Batch::ONE },
            [] => Batch { first, ..Batch::ONE },
            [inner] => Batch { first, outer: Level::ONE, inner },
            [inner, outer] => Batch { first, outer, inner },
            _ => {
                return Err(Box::new(Error::LimitExceeded {
                    what: "the number of batch dimensions, neighbours that are broadcast alike counted once",
                    requested: levels.len() as u64,
                    max: 2,
                }));
            }
        };
        Ok((batch, items))
    }
}

/// A shape in brackets.
fn list(shape: &[u64]) -> String {
    format!("[{}]", joined(shape, ", "))
}

/// A dimension of a shape that is counted from the last: 1 where it has none.
fn size(shape: &[u64], i: usize, rank: usize) -> u64 {
    (i + shape.len()).checked_sub(rank).map_or(1, |i| shape[i])
}

/// Whether a level goes on where the one inside it ends, in each operand.
fn follows(inner: &Level, outer: &Level) -> bool {
    let ends = |step: u64| step.saturating_mul(inner.count.into());
    outer.a == ends(inner.a) && outer.b == ends(inner.b) && outer.c == ends(inner.c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(a: &[u64], b: &[u64]) -> Told {
        Told { shapes: [a.to_vec(), b.to_vec()], ..Told::default() }
    }

    #[test]
    fn dimensions_merge_where_every_operand_goes_on() {
        let batch = |a: &[u64], b: &[u64], reads_c| told(a, b).resolve([6, 8, 12], reads_c).map(|(batch, _)| batch);
        let level = |count, a, b, c| Level { count, a, b, c };
        assert_eq!(batch(&[], &[], true).unwrap(), Batch::ONE);
        assert_eq!(batch(&[1, 1], &[1], true).unwrap(), Batch::ONE);
        assert_eq!(batch(&[2, 3], &[2, 3], true).unwrap(), Batch { inner: level(6, 6, 8, 12), ..Batch::ONE });
        assert_eq!(batch(&[2, 3], &[], false).unwrap(), Batch { inner: level(6, 6, 0, 0), ..Batch::ONE });
        let windows = Told { first: [Some(5), None, Some(7)], ..told(&[2], &[2]) };
        let of = |reads_c| windows.resolve([6, 8, 12], reads_c).map(|(batch, _)| batch.starts(1)).unwrap();
        assert_eq!((of(true), of(false)), ([11, 8, 19], [11, 8, 0]));
        // Heads that share their group's keys.
        assert_eq!(batch(&[2, 3], &[2, 1], false).unwrap(), Batch { outer: level(2, 18, 8, 0), inner: level(3, 6, 0, 0), ..Batch::ONE });
        assert_eq!(batch(&[2, 1], &[1, 3], false).unwrap(), Batch { outer: level(2, 6, 0, 0), inner: level(3, 0, 8, 0), ..Batch::ONE });
        assert_eq!(
            batch(&[5, 1, 2, 3], &[3], false).unwrap(),
            Batch { outer: level(10, 18, 0, 0), inner: level(3, 6, 8, 0), ..Batch::ONE }
        );
        assert_eq!(batch(&[0], &[1], false).unwrap().count(), 0);
        let error = batch(&[2, 1, 2], &[1, 3, 1], false).unwrap_err();
        assert_eq!(error.code(), "limit_exceeded");
        let alone = Told { strides: [None, Some(9), None], ..Told::default() };
        let error = alone.resolve([6, 8, 12], true).unwrap_err().to_string();
        assert!(error.contains("stride_b is 9") && error.contains("no batch"), "{error}");
        let error = batch(&[2, 3], &[2], false).unwrap_err().to_string();
        assert!(error.contains("the batch of b is [2]") && error.contains("[2, 3] of a"), "{error}");
    }

    #[test]
    fn items_start_where_their_loops_say() {
        let batch = Batch { outer: Level { count: 2, a: 18, b: 8, c: 0 }, inner: Level { count: 3, a: 6, b: 0, c: 0 }, ..Batch::ONE };
        assert_eq!((0..6).map(|item| batch.starts(item)[0]).collect::<Vec<_>>(), [0, 6, 12, 18, 24, 30]);
        assert_eq!((0..6).map(|item| batch.starts(item)[1]).collect::<Vec<_>>(), [0, 0, 0, 8, 8, 8]);
        assert_eq!((batch.count(), batch.reaches()), (6, [30, 8, 0]));
    }
}
