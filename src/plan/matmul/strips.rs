//! Plans for fragment shaders that have A in uniform blocks.
//!
//! A fragment shader's texture units fetch few texels a clock, and a block of 4 x 4 elements takes eight for four steps of k. All fragments
//! of one drawing read the same uniforms, by a path of their own; so a drawing computes a strip of eight rows of C, whose part of A lies
//! in uniform blocks, and only the four texels of B are fetched, for twice as many multiplications.

use super::fragment::{MOST_BUFFER_BYTES, fold, passes, vec4_texels};
use super::{Params, constants_of_layout, whole};
use crate::dtype::DType;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Activation, Problem};
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// What the larger blocks and strips take of a device, as far as they are known to be faster there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentCaps {
    /// How many textures a drawing should have for targets, at most.
    pub targets: u32,
    /// The largest uniform block; 0 if A should stay a texture.
    pub block_bytes: u32,
    /// What the offsets of uniform blocks in a buffer are multiples of.
    pub alignment_bytes: u32,
}

/// Rows of a strip. With four it would be no faster than a block of 4 x 4 with A in a texture.
pub(super) const ROWS: u32 = 8;

/// Lines of the targets that hold a strip. Fragments run four by four or eight by four, so fewer would leave some idle.
const LINES: u32 = 4;

/// Every WebGL2 has so many uniform blocks in a fragment shader.
const MOST_BLOCKS: u32 = 12;

/// The largest block used: a constant buffer of hardware, where drivers allow more.
pub const MOST_BLOCK_BYTES: u32 = 1 << 16;

/// Fewer rows or columns are not worth the drawings.
const LEAST_ROWS: u32 = 64;
const LEAST_COLUMNS: u32 = 128;

/// Nor is less of B: a strip should occupy the GPU for longer than it takes to ask for it, which is some microseconds. Of 512 x 512 a GPU that
/// multiplies 200 thousand million times a second has ten.
const LEAST_ELEMENTS: u64 = 1 << 18;

/// A plan of two launches, of which the first puts A into the scratch as strips; None if another kernel is better, or the only one. The
/// bindings are A's, if it is read at all, and then the others'.
pub(super) fn strips(problem: &Problem, bindings: &[Binding], caps: &Caps, fragment: &FragmentCaps) -> Option<Plan> {
    let &[a, ref others @ ..] = bindings else { return None };
    let &Problem { m, k, n, .. } = problem;
    let step_bytes = ROWS * 16;
    let alignment_bytes = fragment.alignment_bytes.max(step_bytes);
    let block_bytes = fragment.block_bytes.min(MOST_BLOCK_BYTES) / alignment_bytes * alignment_bytes;
    if problem.integers.is_some()
        || fragment.targets < ROWS
        || problem.batch.count() != 1
        || m < LEAST_ROWS
        || n < LEAST_COLUMNS
        || u64::from(n) * u64::from(k) < LEAST_ELEMENTS
        || k > block_bytes / step_bytes * 4 * MOST_BLOCKS
    {
        return None;
    }
    let strip_bytes = (k.div_ceil(4) * step_bytes).next_multiple_of(alignment_bytes);
    let blocks = strip_bytes.div_ceil(block_bytes);
    let count = m.div_ceil(ROWS);
    let scratch_bytes = u64::from(count) * u64::from(strip_bytes);
    let (width, height) = (n.div_ceil(4).div_ceil(LINES), u64::from(count) * u64::from(LINES));
    let result_bytes = u64::from(width) * height * u64::from(step_bytes);
    let side = caps.max_texture_size;
    if width > side || height > side.into() || scratch_bytes.max(result_bytes) > MOST_BUFFER_BYTES {
        return None;
    }
    let (scratch_width, scratch_height) = fold(scratch_bytes / 16, caps).ok()?;
    let strip = strip_bytes / 4;
    let lay = Dispatch {
        kernel: Kernel {
            id: KernelId::MatmulStrips,
            variant: String::new(),
            source: None,
            constants: vec![("ROWS", ROWS), ("TRANSPOSE_A", u32::from(problem.transpose_a))],
        },
        params: Params { ldo: strip, ..whole(problem) }.into(),
        bindings: vec![a],
        grid: [scratch_width, scratch_height, 1],
    };
    let mut constants = constants_of_layout(&Problem { transpose_a: false, ..*problem });
    constants.extend([
        ("ROWS", ROWS),
        ("BLOCKS", blocks),
        ("LOOPS", blocks),
        ("VECS", block_bytes / 16),
        ("A_VEC4", 1),
        ("B_VEC4", vec4_texels(&problem.b, [problem.batch.first[1], 0, 0])),
        ("BATCHED", 0),
        ("BIAS_STEP", 1),
        ("ACTIVATION", Activation::number(problem.activation)),
        ("RESULT_F16", u32::from(problem.result == DType::F16)),
        ("INT8", 0),
    ]);
    constants.extend(passes(k));
    let multiply = Dispatch {
        kernel: Kernel { id: KernelId::MatmulPacked, variant: format!("{ROWS}x4 in strips"), source: None, constants },
        params: Params { lda: strip, ldo: width * LINES * 4, ..whole(problem) }.into(),
        bindings: [Binding { slot: Slot::Scratch, index: 0, offset_bytes: 0, size_bytes: scratch_bytes }]
            .iter()
            .chain(others)
            .copied()
            .collect(),
        grid: [width, height as u32, ROWS],
    };
    Some(Plan { dispatches: vec![lay, multiply], scratch_bytes })
}
