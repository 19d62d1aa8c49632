//! How rows lie in memory, and what lanes find there: shared with softmax and the norms.

use crate::dtype::DType;
use crate::ops::map::View;
use crate::ops::reduce::Problem;
use crate::plan::map::QUAD;
use crate::plan::reduce::WARP;

/// Fours that every lane has of a row of so many values, if lanes have all of it: neighbours in fours, or one of them each.
pub(in crate::plan) fn whole_fours(values: u64, lanes: u32, is_quad: bool) -> u32 {
    let of_all = if is_quad { values / u64::from(QUAD * lanes) } else { values / u64::from(lanes) / u64::from(QUAD) };
    of_all as u32
}

/// What lies in rows behind one another as a single one.
pub(in crate::plan) fn as_one_row(view: &View) -> View {
    View { strides: view.strides.iter().map(|&stride| i64::from(stride == 1)).collect(), ..view.clone() }
}

/// Whether rows may be read neighbour by neighbour, whoever's they are, and folded from workgroup memory: those of so few lanes, of words, where no
/// more than two lanes ask one bank of that memory at once. On an NVIDIA H200 sums of rows of 31 moved 3.2 TB/s by their own lanes, and so 3.7.
pub(super) fn is_without_conflicts(problem: &Problem, lanes: u32) -> bool {
    const BANKS: u64 = 32;
    let mut asked = [0; BANKS as usize];
    for invocation in 0..WARP {
        let word = u64::from(invocation / lanes) * problem.count() + u64::from(invocation % lanes);
        asked[(word % BANKS) as usize] += 1;
    }
    let are_words = problem.values.inputs.iter().all(|input| input.dtype != DType::F16);
    are_words && (2..=4).contains(&lanes) && asked.iter().all(|&lanes| lanes <= 2)
}

/// Whether all that is read, from that row on, lies in one row behind the other and begins with a four.
pub(super) fn begins_with_fours(problem: &Problem, row: u64) -> bool {
    let Problem { values, kept, .. } = problem;
    let is_one_row = *kept == 0
        && values.shape.len() == 1
        && values.inputs.iter().all(|input| input.bounds.is_empty() && matches!(input.strides[..], [0 | 1]));
    let mut read = values.inputs.iter().filter(|input| input.strides.ends_with(&[1])).peekable();
    (is_one_row || values.lies_flat(*kept, []))
        && read.peek().is_some()
        && read.all(|input| (input.offset + (row * problem.count()) as i64) % i64::from(QUAD) == 0)
}
