//! What lies around a tensor.

use std::sync::Arc;

use super::node::{Node, What};
use super::number::number;
use super::{Expr, shape};
use crate::error::{Error, Result};

/// What is put around a tensor's elements, along each dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Padding {
    /// A number of the elements' type.
    Constant(f64),
    /// The element at the edge: 1 1 | 1 2 3 | 3 3.
    Edge,
    /// The elements mirrored at the one at the edge: 3 2 | 1 2 3 | 2 1. It has to be wider than what is put around it.
    Reflect,
    /// The elements from the other end: 2 3 | 1 2 3 | 1 2. There have to be as many.
    Wrap,
}

impl Expr {
    /// With something around it: so many elements before and behind along each dimension.
    #[must_use]
    pub fn pad(&self, widths: &[[u64; 2]], padding: Padding) -> Self {
        self.then(|node| {
            if widths.len() != node.shape.len() {
                let (value, expected) = (widths.len().to_string(), format!("{}, one for each dimension", node.shape.len()));
                return Err(Box::new(Error::InvalidDimension { name: "the number of pairs of widths", value, expected }));
            }
            let grown = |(&size, &[before, behind]): (&u64, &[u64; 2])| size.saturating_add(before).saturating_add(behind);
            let shape: Vec<_> = node.shape.iter().zip(widths).map(grown).collect();
            shape::check(&shape)?;
            let Padding::Constant(value) = padding else { return self.repeated_around(widths, padding) };
            let around = number(value, node.dtype)?;
            let before = widths.iter().map(|[before, _]| *before).collect();
            Ok(Node::new(shape, node.dtype, What::Pad(Arc::clone(node), before, around)))
        })
    }

    /// The same with its own elements: one dimension after the other, each with a part before it and one behind.
    fn repeated_around(&self, widths: &[[u64; 2]], padding: Padding) -> Result<Node> {
        let mut whole = self.clone();
        for (axis, &width) in widths.iter().enumerate() {
            let size = whole.shape()?[axis] as i64;
            let most = match padding {
                Padding::Reflect => size - 1,
                Padding::Wrap => size,
                _ if size == 0 => 0,
                _ => i64::MAX,
            };
            let [before, behind] = width.map(|width| i64::try_from(width).unwrap_or(i64::MAX));
            if before.max(behind) > most.max(0) {
                let (value, expected) =
                    (before.max(behind).to_string(), format!("at most {} along axis {axis}, which has {size}", most.max(0)));
                return Err(Box::new(Error::InvalidDimension { name: "a width", value, expected }));
            }
            let mut parts = Vec::new();
            let axis = axis as i64;
            let edge = |at: i64, times: i64| -> Result<Self> {
                let mut shape = whole.shape()?.to_vec();
                shape[axis as usize] = times.cast_unsigned();
                Ok(whole.slice(axis, at, at + 1, 1).broadcast_to(&shape))
            };
            if before > 0 {
                parts.push(match padding {
                    Padding::Reflect => whole.slice(axis, 1, before + 1, 1).flip(Some(&[axis])),
                    Padding::Wrap => whole.slice(axis, size - before, size, 1),
                    _ => edge(0, before)?,
                });
            }
            parts.push(whole.clone());
            if behind > 0 {
                parts.push(match padding {
                    Padding::Reflect => whole.slice(axis, size - 1 - behind, size - 1, 1).flip(Some(&[axis])),
                    Padding::Wrap => whole.slice(axis, 0, behind, 1),
                    _ => edge(size - 1, behind)?,
                });
            }
            if parts.len() > 1 {
                whole = Self::concat(&parts, axis);
            }
        }
        let node = whole.node()?;
        Ok(Node::new(node.shape.clone(), node.dtype, What::Reshape(Arc::clone(node))))
    }
}
