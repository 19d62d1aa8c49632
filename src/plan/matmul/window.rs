//! Products with what windows see of images: filters are A, an image is B, and nothing of the matrix that B stands for is in memory.

mod direct;

pub(in crate::plan) use direct::{FOURS_OF_LINE, LINES, ROOM};

use super::batch::{self, Launch};
use super::parts::{matrix_step, padded, window};
use super::step::End;
use super::tile::{TILES, tiled_with};
use super::{Params, result, whole, within_buffers};
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::KernelId;
use crate::ops::matmul::{Problem, Stored};
use crate::ops::window::Window;
use crate::plan::{Plan, Slot};

/// What a term costs beside one of a product, since four neighbours of an image are four readings: measured on an NVIDIA H200.
const EFFORT: f64 = 1.7;

/// A plan for a product whose B is what windows see of images, if they are windows of more than one element: A is m filters × k taps, the outer
/// loop of the batch counts images, the inner one groups. Each row of the result has a number of the bias.
pub(in crate::plan) fn windowed(problem: &Problem, windows: &[Window; 2], caps: &Caps) -> Result<Plan> {
    within_buffers(problem, caps)?;
    let mut plan = Plan::default();
    let is_direct = direct::is_cheaper(problem, windows, caps);
    let (outer, inner) = fitting(problem, is_direct, caps);
    let pieces = pieces(problem, windows, is_direct, caps);
    for items in batch::launches(&problem.batch, outer, inner) {
        for piece in &pieces {
            let filters = piece.filters(problem, &items, caps);
            for first in (0..problem.m).step_by(filters as usize) {
                let rows = [first, filters.min(problem.m - first)];
                piece.dispatch(problem, windows, rows, &items, caps, &mut plan)?;
            }
        }
    }
    Ok(plan)
}

/// Some of the positions of windows: whole rows of them, or a part of one row.
struct Piece {
    /// Along y and x.
    first: [u32; 2],
    steps: [u32; 2],
    /// By the direct kernel.
    is_direct: bool,
}

/// Bytes that the data of a binding may have, wherever in it they begin.
fn room_bytes(caps: &Caps) -> u64 {
    caps.max_binding_bytes.saturating_sub(caps.binding_alignment_bytes + 16).max(64)
}

/// All positions, in pieces that a grid has workgroups for and whose results fit a binding. The direct kernel lays out its grid as it likes.
fn pieces(problem: &Problem, [y, x]: &[Window; 2], is_direct: bool, caps: &Caps) -> Vec<Piece> {
    let grid = if is_direct { u32::MAX } else { TILES[TILES.len() - 1].n.saturating_mul(caps.max_workgroups_per_dimension) };
    // In whole fours, of which rows that are kept to be rounded are.
    let most = u32::try_from(room_bytes(caps) / 16 * 4).unwrap_or(u32::MAX).min(grid).max(1);
    if problem.n <= most {
        return vec![Piece { first: [0; 2], steps: [y.steps, x.steps], is_direct }];
    }
    let (rows, columns) = ((most / x.steps).max(1), most.min(x.steps));
    let starts =
        (0..y.steps).step_by(rows as usize).flat_map(|row| (0..x.steps).step_by(columns as usize).map(move |column| [row, column]));
    let steps = |[row, column]: [u32; 2]| [rows.min(y.steps - row), columns.min(x.steps - column)];
    starts.map(|first| Piece { first, steps: steps(first), is_direct }).collect()
}

impl Piece {
    /// How many filters' results of these items fit a binding: all, or of one item some. Sums may be kept in f32 until they are rounded.
    fn filters(&self, problem: &Problem, items: &Launch, caps: &Caps) -> u32 {
        if items.batch.count() > 1 {
            return problem.m.max(1);
        }
        let [rows, columns] = self.steps.map(u64::from);
        let further = (room_bytes(caps) / 4).saturating_sub(rows * columns) / u64::from(problem.n.max(1));
        let kept = room_bytes(caps) / 4 / padded(problem, rows * columns).max(1);
        u32::try_from(kept.min(further + 1)).unwrap_or(u32::MAX).min(problem.m).max(1)
    }

    /// Adds what computes it of so many filters, from one on, and of some items of a batch.
    fn dispatch(
        &self,
        problem: &Problem,
        windows: &[Window; 2],
        [first_filter, m]: [u32; 2],
        items: &Launch,
        caps: &Caps,
        plan: &mut Plan,
    ) -> Result<()> {
        let [y, x] = windows;
        let &Self { first: [row, column], steps: [rows, columns], is_direct } = self;
        let (at, n) = (row * x.steps + column, rows * columns);
        let is_plain = is_plain(windows) && !is_direct;
        let batch = items.batch;
        let (starts, reaches) = (problem.batch.starts(items.first), batch.reaches());
        let [a_items, b_items] = [0, 1].map(|operand| (starts[operand], reaches[operand]));
        let of_result = u64::from(problem.m) * u64::from(problem.n);
        let (b_at, b_columns) = if is_plain { (at, n) } else { (0, problem.b.columns) };
        let (a, a_start) = window(Slot::A, 0, (&problem.a, problem.dtype), a_items, (first_filter, 0), (m, problem.k), caps);
        let (b, b_start) = window(Slot::B, 1, (&problem.b, problem.dtype), b_items, (0, b_at), (problem.b.rows, b_columns), caps);
        let out_items = (items.first * of_result, (batch.count() - 1) * of_result);
        let (out, out_start) = window(Slot::Out, 2, (&result(problem), problem.result), out_items, (first_filter, at), (m, n), caps);
        // Groups are the inner loop, and of all images the same.
        let groups = problem.batch.inner.count;
        let first_group = (items.first % u64::from(groups.max(1))) as u32 * problem.m;
        let has_groups = problem.batch.inner.a > 0;
        let all = Stored {
            rows: 1,
            columns: if has_groups { groups * problem.m } else { problem.m },
            stride: u64::from(groups) * u64::from(problem.m),
        };
        let at = first_filter + if has_groups { first_group } else { 0 };
        let bias =
            problem.bias.then(|| window(Slot::BIAS, 5, (&all, crate::dtype::DType::F32), (0, 0), (0, at), (1, all.columns - at), caps));
        // What is before an image wraps round in the kernels, and so does what a piece begins behind.
        let before = |window: &Window, first: u32| window.before.wrapping_sub(first * window.stride);
        let params = Params {
            n,
            a_start,
            b_start,
            out_start,
            bias_start: bias.map_or(0, |(_, start)| start),
            bias_inner: if has_groups { problem.m } else { 0 },
            height: y.input,
            width: x.input,
            out_width: columns,
            before_y: before(y, row),
            before_x: before(x, column),
            ..whole(&Problem { batch, m, ..*problem })
        };
        let step = if is_plain {
            matrix_step(&Problem { m, ..*problem }, params, [a, b], false, caps)?
        } else {
            let mut step = tiled_with(problem, params, [a, b], EFFORT, false, caps)?;
            if is_direct {
                direct::direct(&mut step, windows, problem.result, caps)
            } else {
                step.kernel.id = KernelId::ConvTiled
            }
            step.kernel.constants.retain(|(name, _)| !["WINDOW", "B_VEC4", "B_FOURS"].contains(name));
            step.kernel.constants.extend(constants(windows));
            step
        };
        let added = [None, bias.map(|(binding, _)| binding)];
        let before = plan.dispatches.len();
        step.add_to(plan, &End { out, added, bias_step: 0, bias_rows: true, dtype: problem.result, is_first: true, is_last: true });
        // The direct kernel counts items along x and y.
        for dispatch in plan.dispatches.iter_mut().skip(before).filter(|dispatch| dispatch.kernel.id == KernelId::ConvDirect) {
            dispatch.grid[2] = 1;
            // Fours of a row of positions begin anywhere in that of the product, then.
            if dispatch.kernel.constant("LINES") > 0 && !columns.is_multiple_of(4) {
                dispatch.kernel.constants.iter_mut().filter(|(name, _)| *name == "OUT_VEC4").for_each(|(_, value)| *value = 0);
            }
        }
        Ok(())
    }
}

/// Whether each pixel is a window of its own.
fn is_plain(windows: &[Window; 2]) -> bool {
    windows.iter().all(Window::is_plain)
}

/// The constants of a window's shape.
fn constants([y, x]: &[Window; 2]) -> [(&'static str, u32); 10] {
    [
        ("WINDOW", 1),
        ("B_VEC4", 0),
        ("B_FOURS", 1),
        ("TAPS", y.taps * x.taps),
        ("TAPS_Y", y.taps),
        ("TAPS_X", x.taps),
        ("STRIDE_Y", y.stride),
        ("STRIDE_X", x.stride),
        ("DILATION_Y", y.dilation),
        ("DILATION_X", x.dilation),
    ]
}

/// The most images and groups of a launch.
fn fitting(problem: &Problem, is_direct: bool, caps: &Caps) -> (u32, u32) {
    let (mut outer, mut inner) = if is_direct {
        // The direct kernel counts what it computes in 31 bits.
        let most = (1u64 << 31) / (u64::from(problem.m.max(1)) * u64::from(problem.n.max(1)).next_multiple_of(4)).max(1);
        batch::fitting(&problem.batch, most.clamp(1, u32::MAX.into()) as u32)
    } else {
        batch::fitting(&problem.batch, caps.max_workgroups_per_dimension)
    };
    let room_bytes = room_bytes(caps);
    while outer * inner > 1 {
        let batch = batch::part(&problem.batch, outer, inner);
        let [_, b_reach, _] = batch.reaches();
        let b_bytes = (b_reach + problem.b.span()) * problem.dtype.bytes();
        // Sums may be kept in f32 until they are rounded.
        let out_bytes = batch.count() * u64::from(problem.m) * padded(problem, problem.n.into()) * 4;
        if b_bytes.max(out_bytes) <= room_bytes {
            break;
        }
        let level = if outer > 1 { &mut outer } else { &mut inner };
        *level = level.div_ceil(2);
    }
    (outer, inner)
}
