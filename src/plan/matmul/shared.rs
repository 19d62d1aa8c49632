//! Products of matrices that lie in the scratch with their results.

use super::step::{End, Step};
use super::tile::tiled_with;
use super::{Params, whole};
use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::KernelId;
use crate::ops::matmul::Matmul;
use crate::plan::{Binding, Plan};

/// Adds so many products of m x k by k x n, each behind the one before it: where the operands and the results begin in the binding is told.
/// All sizes but m are multiples of four.
pub(in crate::plan) fn shared(
    plan: &mut Plan,
    [m, k, n]: [u32; 3],
    items: u32,
    [a_start, b_start, out_start]: [u32; 3],
    scratch: Binding,
    caps: &Caps,
) -> Result<()> {
    let [rows, terms, columns] = [m, k, n].map(u64::from);
    let problem = Matmul::new(rows, terms, columns).check([DType::F32; 2], rows * terms, terms * columns)?;
    let params = Params { a_start, b_start, out_start, batch: items, inner: items, a_inner: m * k, b_inner: k * n, ..whole(&problem) };
    let out = Binding { index: 2, ..scratch };
    let mut step = Step { parts: 1, ..tiled_with(&problem, params, [out; 2], 1.0, false, caps)? };
    step.kernel.id = KernelId::ConvWinogradProduct;
    let end = End { out, added: [None; 2], bias_step: 0, bias_rows: false, dtype: DType::F32, is_first: true, is_last: true };
    let before = plan.dispatches.len();
    step.add_to(plan, &end);
    plan.dispatches.iter_mut().skip(before).for_each(|dispatch| dispatch.bindings = vec![out]);
    Ok(())
}
