//! Expressions that are evaluated again and again, of the same tensors or of others like them, are lowered once: that takes longer than to
//! queue what they come to.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::super::known::is_same;
use super::{Part, decode, next};
use crate::backend::device::Opened;
use crate::expr::Lowered;
use crate::tensor::Tensor;

/// How many are known; the oldest is forgotten first.
const MOST: usize = 64;
/// The most numbers that tell one: what is larger takes long to compute, too.
const MOST_NUMBERS: usize = 512;

/// What was found out about an expression.
struct Known {
    key: Vec<f64>,
    home: Weak<Opened>,
    lowered: Arc<Lowered>,
    /// Which tensors it reads, in the order of its numbers for them.
    reads: Vec<usize>,
}

thread_local! {
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// What the expression comes to on that device, and the tensors that this reads; None if nothing is to be known of it.
pub(super) fn lowered(code: &[f64], tensors: &[Tensor], opened: &Arc<Opened>) -> Option<(Arc<Lowered>, Vec<Tensor>)> {
    let key = key(code, tensors)?;
    KNOWN.with_borrow_mut(|all| {
        let is_known = |known: &&Known| known.home.as_ptr() == Arc::as_ptr(opened) && is_same(&known.key, &key);
        if let Some(Known { lowered, reads, .. }) = all.iter().rev().find(is_known) {
            return Some((Arc::clone(lowered), reads.iter().map(|&at| tensors[at].clone()).collect()));
        }
        let (lowered, read) = Lowered::of(decode(code, tensors.to_vec()).ok()?.node().ok()?, opened).ok()?;
        let lowered = Arc::new(lowered);
        let reads = read.iter().map(|tensor| place(tensor, tensors)).collect::<Option<_>>()?;
        // What is of a device that is gone is of no use.
        all.retain(|known| known.home.strong_count() > 0);
        if all.len() == MOST {
            all.remove(0);
        }
        all.push(Known { key, home: Arc::downgrade(opened), lowered: Arc::clone(&lowered), reads });
        Some((lowered, read))
    })
}

/// The code with a place in the place of each tensor, and the tensors' types and shapes: all that counts when it is lowered.
fn key(code: &[f64], tensors: &[Tensor]) -> Option<Vec<f64>> {
    if code.len() > MOST_NUMBERS {
        return None;
    }
    let mut key = code.to_vec();
    let mut left = tensors.iter();
    let mut rest = code;
    while let Some((Part { what, .. }, behind)) = next(rest).ok()? {
        rest = behind;
        if what == 0 {
            let tensor = left.next()?;
            key[code.len() - rest.len() - 1] = place(tensor, tensors)? as f64;
            key.extend([tensor.dtype() as u32, tensor.shape().len() as u32].map(f64::from));
            key.extend(tensor.shape().iter().map(|&size| size as f64));
        }
    }
    Some(key)
}

/// The first that shares its memory: which do is a part of what an expression is.
fn place(tensor: &Tensor, tensors: &[Tensor]) -> Option<usize> {
    tensors.iter().position(|first| first.shares_memory_with(tensor))
}
