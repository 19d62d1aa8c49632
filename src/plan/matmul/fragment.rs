//! Plans for fragment shaders.

use super::strips::{self, FragmentCaps};
use super::{Params, batch, constants_of_layout, packed, whole};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::template::Constant;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::{Activation, Batch, Integers, Level, Problem, Stored};
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// A plan for fragment shaders: a texel of the target is a row of four elements, and the target has a layer for each row of a block.
/// Targets are folded into lines of a power of two of texels, as [`fold`] tells, and `ldo` is the elements from one row of blocks to the
/// next. A binding's index is the sampler: a, b, c, bias. Where A is put into uniform blocks, the scratch is bound in its place.
pub fn fragment(problem: &Problem, caps: &Caps, fragment: &FragmentCaps) -> Result<Plan> {
    // Blocks have four columns: a single column is computed as a row, which is stored the same, from Cᵀ = op(B)ᵀ·op(A)ᵀ.
    let problem = &batch::merged(problem);
    let turned = problem.n == 1 && problem.m > 1 && problem.c.is_none_or(|c| c.stride == 1);
    let [first, second] = if turned { [Slot::B, Slot::A] } else { [Slot::A, Slot::B] };
    let bias_step = u32::from(problem.n > 1);
    let mut problem = if turned { transposed(problem) } else { *problem };
    if problem.m == 1 && problem.transpose_a && problem.a.stride == 1 {
        (problem.transpose_a, problem.a) = (false, column_as_row(problem.a));
    }
    let problem = &problem;
    let reads = problem.reads_operands();
    let bias_span = if bias_step == 0 { 1 } else { u64::from(problem.n) };
    let read = [
        (first, reads, problem.a_span()),
        (second, reads, problem.b_span()),
        (Slot::C, problem.c.is_some(), problem.c_span()),
        (Slot::BIAS, problem.bias, bias_span),
    ];
    let mut bindings = Vec::with_capacity(read.len());
    for (index, (slot, is_read, span)) in (0..).zip(read) {
        if is_read {
            let texels = span.div_ceil(4);
            fold(texels, caps)?;
            bindings.push(Binding { slot, index, offset_bytes: 0, size_bytes: texels * 16 });
        }
    }
    if let Some(plan) = strips::strips(problem, &bindings, caps, fragment) {
        return Ok(plan);
    }
    let single = problem.batch.count() <= 1;
    // A block belongs to one item of a batch.
    let rows = match problem.m {
        0 | 1 => 1,
        2 => 2,
        // Texels of Aᵀ hold four rows.
        m if single && !problem.transpose_a && fragment.targets >= strips::ROWS && u64::from(m) * u64::from(problem.n) >= LARGE_RESULT => {
            strips::ROWS
        }
        m if single || m.is_multiple_of(4) => 4,
        m if m.is_multiple_of(2) => 2,
        _ => 1,
    };
    let all_rows = u64::from(problem.m) * problem.batch.count();
    let (width, height) = fold(all_rows.div_ceil(rows.into()) * u64::from(problem.n.div_ceil(4)), caps)?;
    let Batch { outer, inner, first: [a_first, b_first, _] } = problem.batch;
    let (bytes, max) = (u64::from(width) * u64::from(height) * u64::from(rows) * 16, MOST_RESULT_BYTES);
    if bytes > max {
        return Err(Box::new(Error::LimitExceeded { what: "the size in bytes of a result of WebGL2", requested: bytes, max }));
    }
    let mut constants = constants_of_layout(problem);
    constants.extend([("ROWS", rows), ("BLOCKS", 0), ("LOOPS", 1), ("BATCHED", u32::from(!single))]);
    constants.extend(passes(problem.k));
    constants.extend([("BIAS_STEP", bias_step), ("ACTIVATION", Activation::number(problem.activation))]);
    constants.push(("RESULT_F16", u32::from(problem.result == DType::F16)));
    constants.push(("INT8", u32::from(problem.integers.is_some())));
    let mut zero_points = 0;
    if let Some(integers) = &problem.integers {
        let [a, b] = integers.dtypes.map(|dtype| u32::from(dtype == DType::I8));
        constants.extend([("A_SIGNED", a), ("B_SIGNED", b)]);
        zero_points = packed(integers.zero_points);
    }
    // Blocks of fewer than four rows begin within texels of Aᵀ.
    let within = problem.transpose_a && problem.m > rows && !rows.is_multiple_of(4);
    constants.extend([
        ("A_VEC4", if within { 0 } else { vec4_texels(&problem.a, [a_first, outer.a, inner.a]) }),
        ("B_VEC4", vec4_texels(&problem.b, [b_first, outer.b, inner.b])),
    ]);
    let params = Params { ldo: problem.n.div_ceil(4).saturating_mul(4), zero_points, ..whole(problem) };
    let kernel = Kernel { id: KernelId::MatmulPacked, variant: format!("{rows}x4"), source: None, constants };
    Ok(Plan::of(Dispatch { kernel, params: params.into(), bindings, grid: [width, height, rows] }))
}

/// Elements of a result from which on blocks of eight rows are enough of them to keep a large GPU busy.
const LARGE_RESULT: u64 = 1 << 18;

/// Of a result: places in its textures are counted in 32 bits.
const MOST_RESULT_BYTES: u64 = u32::MAX as u64;

/// Browsers give a buffer no more than this.
pub(super) const MOST_BUFFER_BYTES: u64 = (1 << 30) - 1;

/// The loops over k, four steps at a time: one more for what is left.
pub(super) fn passes(k: u32) -> [Constant; 3] {
    [("PASSES", if k.is_multiple_of(4) { 1 } else { 2 }), ("TAIL_0", 0), ("TAIL_1", 1)]
}

/// Whether the rows of matrices in a texture begin with texels, where the first matrix starts there and the items of a batch lie so far apart.
pub(super) fn vec4_texels(stored: &Stored, steps: [u64; 3]) -> u32 {
    u32::from((stored.stride.is_multiple_of(4) || stored.rows <= 1) && steps.iter().all(|step| step.is_multiple_of(4)))
}

/// The product whose result is the transpose of this one's, where C is a packed column if it is read.
fn transposed(problem: &Problem) -> Problem {
    let &Problem { m, n, batch, transpose_a, transpose_b, a, b, c, integers, .. } = problem;
    let turned = |level: Level| Level { a: level.b, b: level.a, ..level };
    let [a_first, b_first, c_first] = batch.first;
    let batch = Batch { first: [b_first, a_first, c_first], outer: turned(batch.outer), inner: turned(batch.inner) };
    let [transpose_a, transpose_b] = [!transpose_b, !transpose_a];
    let integers = integers.map(|Integers { dtypes: [x, y], zero_points: [x0, y0] }| Integers { dtypes: [y, x], zero_points: [y0, x0] });
    Problem { m: n, n: m, batch, transpose_a, transpose_b, a: b, b: a, c: c.map(column_as_row), integers, ..*problem }
}

/// A packed column is stored as a row is.
fn column_as_row(column: Stored) -> Stored {
    Stored { rows: column.columns, columns: column.rows, stride: column.rows.into() }
}

/// Width and height of a texture that holds so many texels: the width a power of two, so that a shader finds a texel by shifts, and as near to
/// the square root as that allows.
pub fn fold(texels: u64, caps: &Caps) -> Result<(u32, u32)> {
    let largest = 1u64 << u64::from(caps.max_texture_size).ilog2();
    let width = ((texels.max(1) as f64).sqrt().ceil() as u64).next_power_of_two().min(largest);
    let height = texels.max(1).div_ceil(width);
    if height > u64::from(caps.max_texture_size) {
        let max = largest * u64::from(caps.max_texture_size) * 4;
        return Err(Box::new(Error::LimitExceeded {
            what: "the number of elements of a matrix in one texture",
            requested: texels * 4,
            max,
        }));
    }
    Ok((width as u32, height as u32))
}
