//! Shapes as NumPy has them.

use crate::error::{Error, Result};
use crate::tensor::joined;

/// The most elements of a tensor: kernels count in 32 bits.
pub(crate) const MOST_ELEMENTS: u64 = 1 << 32;

/// Refuses a shape that no tensor can have.
pub(crate) fn check(shape: &[u64]) -> Result<()> {
    // Beside a dimension of size 0 the others count all the same: what is there along some of them is multiplied, too.
    let requested = shape.iter().fold(1u64, |product, &size| product.saturating_mul(size.max(1)));
    if let Some(size) = shape.iter().find(|size| **size >= MOST_ELEMENTS) {
        let expected = format!("at most {}", MOST_ELEMENTS - 1);
        return Err(Box::new(Error::InvalidDimension { name: "a dimension of the shape", value: size.to_string(), expected }));
    }
    if requested >= MOST_ELEMENTS {
        return Err(Box::new(Error::LimitExceeded { what: "the number of elements of a tensor", requested, max: MOST_ELEMENTS - 1 }));
    }
    Ok(())
}

/// The shape to which both are repeated.
pub(crate) fn broadcast(a: &[u64], b: &[u64]) -> Result<Vec<u64>> {
    let rank = a.len().max(b.len());
    let size = |shape: &[u64], dimension: usize| (dimension + shape.len()).checked_sub(rank).map_or(1, |at| shape[at]);
    let mut shape = Vec::with_capacity(rank);
    for dimension in 0..rank {
        shape.push(match (size(a, dimension), size(b, dimension)) {
            (a, b) if a == b => a,
            (1, other) | (other, 1) => other,
            _ => {
                let expected = format!("the same as of [{}] in each dimension, counted from the last, or 1", joined(a, ", "));
                return Err(Box::new(Error::InvalidDimension { name: "a shape", value: format!("[{}]", joined(b, ", ")), expected }));
            }
        });
    }
    check(&shape)?;
    Ok(shape)
}

/// The dimension that an axis means: a negative one counts from the end.
pub(crate) fn axis(axis: i64, rank: usize) -> Result<usize> {
    let rank = rank as i64;
    if (-rank..rank).contains(&axis) {
        return Ok(axis.rem_euclid(rank) as usize);
    }
    let expected = if rank == 0 { "none, since a single number has no axes".to_owned() } else { format!("from {} to {}", -rank, rank - 1) };
    Err(Box::new(Error::InvalidDimension { name: "an axis", value: axis.to_string(), expected }))
}

/// The dimensions that axes mean, each of them once, in order; all if there are none given.
pub(crate) fn axes(given: Option<&[i64]>, rank: usize) -> Result<Vec<usize>> {
    let Some(given) = given else { return Ok((0..rank).collect()) };
    let mut axes = Vec::with_capacity(given.len());
    for &one in given {
        let one = axis(one, rank)?;
        if axes.contains(&one) {
            let (value, expected) = (one.to_string(), "each axis once".to_owned());
            return Err(Box::new(Error::InvalidDimension { name: "an axis", value, expected }));
        }
        axes.push(one);
    }
    Ok((0..rank).filter(|dimension| axes.contains(dimension)).collect())
}

/// Elements from one step to the next along each dimension, row by row.
pub(crate) fn strides(shape: &[u64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for dimension in (1..shape.len()).rev() {
        strides[dimension - 1] = strides[dimension] * shape[dimension].max(1) as i64;
    }
    strides
}
