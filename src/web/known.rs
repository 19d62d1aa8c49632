//! Products that are queued again and again are checked once: engines run code slowly until it has run some thousand times, and a queue is often
//! over before.

use std::cell::RefCell;

use wasm_bindgen::JsValue;

use super::product;
use crate::call::{Call, Operand};
use crate::dtype::DType;
use crate::ops::Op;

/// How many are known; the oldest is forgotten first.
const MOST: usize = 8;

/// What was found out about a product, by what was asked.
struct Known {
    numbers: Vec<f64>,
    operands: [Option<(DType, u64)>; 4],
    op: Op,
    shape: Vec<u64>,
    /// Which operands it reads.
    reads: [bool; 4],
}

thread_local! {
    static KNOWN: RefCell<Vec<Known>> = const { RefCell::new(Vec::new()) };
}

/// Whether these are the same numbers, NaN and −0 included.
#[inline(never)]
pub(super) fn is_same(one: &[f64], other: &[f64]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(x, y)| x.to_bits() == y.to_bits())
}

/// The product that the numbers tell, of A, B, C and a bias.
pub(super) fn call(numbers: &[f64], mut operands: [Option<Operand<'static>>; 4]) -> Result<Call<'static>, JsValue> {
    let about = operands.each_ref().map(|operand| operand.as_ref().map(|operand| (operand.dtype(), operand.elements())));
    KNOWN.with_borrow_mut(|all| {
        let same = |known: &&Known| known.operands == about && is_same(&known.numbers, numbers);
        if let Some(known) = all.iter().rev().find(same) {
            for (operand, reads) in operands.iter_mut().zip(known.reads) {
                if !reads {
                    *operand = None;
                }
            }
            return Ok(Call { op: known.op.clone(), shape: known.shape.clone(), inputs: operands });
        }
        let [Some(a), Some(b), c, bias] = operands else { return Err(crate::error::Error::internal("a product of one").into()) };
        let call = Call::new(&product(numbers, c, bias)?, a, b)?;
        if all.len() == MOST {
            all.remove(0);
        }
        let reads = call.inputs.each_ref().map(Option::is_some);
        all.push(Known { numbers: numbers.to_vec(), operands: about, op: call.op.clone(), shape: call.shape.clone(), reads });
        Ok(call)
    })
}
