//! The kernel that sums up what windows see straight from memory (`shaders/conv/direct.wgsl`): for few filters, or windows of few elements, of
//! which tiles would be idle for the most part.

use super::super::step::Step;
use super::super::tile::Tile;
use super::super::{Params, whole};
use super::{EFFORT, is_plain};
use crate::dtype::DType;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::matmul::Problem;
use crate::ops::window::Window;
use crate::plan::spread;

/// Filters that an invocation computes at once.
const FILTERS: u32 = 4;

/// Rows of the result of which it has four neighbours each, the most first; all fours of all filters that it has, at most; and the invocations that
/// there are to be if it has more than one row, which is as many as a large GPU has room for.
pub(in crate::plan) const LINES: [u32; 3] = [4, 2, 1];
const MOST_FOURS: u32 = 8;
pub(in crate::plan) const ROOM: u64 = 1 << 17;

/// How many fours a row of the result has for each row of an invocation's, at least: where neighbours are in other rows for the most part, they
/// read little that lies together.
pub(in crate::plan) const FOURS_OF_LINE: u32 = 4;

/// The most elements of a channel that it reads at once, and the most products of four elements that are written out for it.
const MOST_SEEN: u32 = 160;
const MOST_PRODUCTS: u32 = 256;

/// Invocations of its workgroups.
const THREADS: u32 = 64;

/// What a channel costs, in the measure of the tiles' costs: all of a GPU for each product, and however few there are, since it waits for memory, and for
/// each element and weight that is read. Measured on an NVIDIA H200.
const PRODUCT: f64 = 0.02;
const WAIT: f64 = 1.6e4;
const WAIT_OF_READING: f64 = 4.5e3;
/// The same where windows are read one by one: for each tap.
const PRODUCT_OF_ONE: f64 = 0.04;
const WAIT_OF_TAP: f64 = 1.7e4;

/// How an invocation's part of the result lies.
struct Block {
    filters: u32,
    /// Rows, if windows are read together.
    lines: Option<u32>,
    /// Invocations of a launch.
    invocations: u64,
}

impl Block {
    fn of(params: &Params, windows: &[Window; 2], result: DType) -> Self {
        let Params { m, n, batch, out_width, .. } = *params;
        let filters = FILTERS.min(m);
        let of_positions = |blocks: u64| u64::from(batch) * u64::from(m.div_ceil(filters)) * blocks;
        let across = out_width.div_ceil(4);
        let invocations = |lines: u32| of_positions(u64::from(across) * u64::from((n / out_width.max(1)).div_ceil(lines)));
        let taps = u64::from(windows[0].taps) * u64::from(windows[1].taps);
        let is_kept = |&lines: &u32| {
            let [y, x] = seen(windows, lines).map(u64::from);
            y.saturating_mul(x) <= MOST_SEEN.into() && taps * u64::from(lines * filters) <= MOST_PRODUCTS.into()
        };
        let is_worth = |&lines: &u32| {
            lines == 1 || lines * filters <= MOST_FOURS && lines <= across.div_ceil(FOURS_OF_LINE) && invocations(lines) >= ROOM
        };
        // Two elements of f16 in a word are of one invocation.
        let fits = result == DType::F32 || out_width.is_multiple_of(4);
        let lines = LINES.into_iter().filter(|_| fits).filter(is_kept).find(is_worth);
        Self { filters, lines, invocations: lines.map_or_else(|| of_positions(n.div_ceil(4).into()), invocations) }
    }

    /// What it all costs, of so many channels.
    fn cost(&self, windows: &[Window; 2], channels: u32) -> f64 {
        let taps = f64::from(windows[0].taps) * f64::from(windows[1].taps);
        let readings = |lines| f64::from(self.filters) * taps + seen(windows, lines).map(f64::from).iter().product::<f64>();
        let (product, wait) = match self.lines {
            Some(lines) => (PRODUCT * f64::from(lines), WAIT + WAIT_OF_READING * readings(lines)),
            None => (PRODUCT_OF_ONE, WAIT_OF_TAP * taps),
        };
        let products = product * self.invocations as f64 * f64::from(4 * self.filters) * taps;
        f64::from(channels) * products.max(wait)
    }
}

/// Rows and columns of what the windows of so many rows of four neighbours see.
fn seen([y, x]: &[Window; 2], lines: u32) -> [u32; 2] {
    [y.extent(lines), x.extent(4)]
}

/// Whether that is cheaper than tiles.
pub(super) fn is_cheaper(problem: &Problem, windows: &[Window; 2], caps: &Caps) -> bool {
    let params = Params { out_width: windows[1].steps, ..whole(problem) };
    let taps = windows[0].taps.saturating_mul(windows[1].taps).max(1);
    let effort = if is_plain(windows) { 1.0 } else { EFFORT };
    let cost = Block::of(&params, windows, problem.result).cost(windows, problem.k / taps);
    Tile::choose(problem, &params, effort, false, caps).is_ok_and(|of_tiles| cost < of_tiles.cost)
}

/// Makes a launch one of that kernel.
pub(super) fn direct(step: &mut Step, windows: &[Window; 2], result: DType, caps: &Caps) {
    let Block { filters, lines, invocations } = Block::of(&step.params, windows, result);
    let workgroups = invocations.div_ceil(u64::from(THREADS)) as u32;
    let [x, y] = spread(workgroups, caps.max_workgroups_per_dimension);
    let f16 = step.kernel.constant("OPERANDS_F16");
    let [seen_y, seen_x] = lines.map_or([0; 2], |lines| seen(windows, lines));
    let constants = vec![
        ("THREADS", THREADS),
        ("FILTERS", filters),
        ("A_VEC4", 0),
        ("OPERANDS_F16", f16),
        ("HALF", 0),
        ("LINES", lines.unwrap_or(0)),
        ("SEEN_Y", seen_y),
        ("SEEN_X", seen_x),
    ];
    let of_lines = lines.map_or(String::new(), |lines| format!(", {lines} lines"));
    step.kernel = Kernel { id: KernelId::ConvDirect, variant: format!("{filters} filters{of_lines}"), source: None, constants };
    (step.grid, step.parts) = ([x, y], 1);
}
