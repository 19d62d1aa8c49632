//! Plans for pools: `shaders/pool`, each invocation four elements, or four neighbours each of several rows, of which what windows share is
//! read and reckoned once.
//!
//! What the kernel is told is a row of words:
//!
//! ```text
//! elements, the number of the input's first element, −∞
//! the window along the depth: input, taps, stride, dilation, before, after, steps
//! the windows along the height and the width
//! ```

#[cfg(not(target_arch = "wasm32"))]
use super::Params;
use super::matmul::{FOURS_OF_LINE, LINES, ROOM, fold};
use super::words::Words;
use super::{Binding, Dispatch, Plan, Slot, spread};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::pool::{Kind, Problem};
use crate::ops::window::Window;

/// Invocations of a workgroup.
const THREADS: u32 = 64;
/// The most results of a launch, which are counted in 32 bits, those of the last workgroup that are not there included.
const MOST: u64 = (1 << 32) - 4 * THREADS as u64;

/// Planes of a launch are such a multiple, so that it begins at a multiple of every alignment of bindings, wherever a plane does.
const PLANES: u32 = 128;

/// The words before the windows.
const HEAD: usize = 3;

/// The most elements of a row that it reads at once.
const MOST_SEEN: u32 = 40;

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    planned(problem, Block::of(problem), caps)
}

fn planned(problem: &Problem, block: Option<Block>, caps: &Caps) -> Result<Plan> {
    let mut plan = Plan::default();
    if problem.elements() == 0 {
        return Ok(plan);
    }
    let (inputs, results) = (problem.inputs() / u64::from(problem.planes), problem.elements() / u64::from(problem.planes));
    let bytes =
        |planes: u32| (u64::from(planes) * inputs * problem.dtype.bytes()).max(u64::from(planes) * results * problem.result().bytes()) + 16;
    let mut planes = problem.planes;
    while bytes(planes) > caps.max_binding_bytes || u64::from(planes) * results > MOST {
        if planes <= PLANES {
            let (what, requested, max) = if bytes(planes) > caps.max_binding_bytes {
                ("bytes of 128 channels that a kernel sees at once", bytes(planes), caps.max_binding_bytes)
            } else {
                ("the results of 128 channels", u64::from(planes) * results, MOST)
            };
            return Err(Box::new(Error::LimitExceeded { what, requested, max }));
        }
        planes = (planes / 2).next_multiple_of(PLANES);
    }
    for first in (0..problem.planes).step_by(planes as usize) {
        let count = planes.min(problem.planes - first);
        let part = Problem { planes: count, ..*problem };
        let (before, input) = (u64::from(first) * results, u64::from(first) * inputs);
        let binding = |slot, index, first: u64, elements: u64, dtype: DType| Binding {
            slot,
            index,
            offset_bytes: first * dtype.bytes(),
            size_bytes: (elements * dtype.bytes()).next_multiple_of(16),
        };
        let bindings = vec![
            binding(Slot::A, 0, input, part.inputs(), problem.dtype),
            binding(Slot::Out, 7, before, part.elements(), problem.result()),
        ];
        let invocations = block.as_ref().map_or_else(|| part.elements().div_ceil(4), |block| block.invocations(&part));
        let workgroups = invocations.div_ceil(THREADS.into()) as u32;
        let [x, y] = spread(workgroups, caps.max_workgroups_per_dimension);
        let mut kernel = kernel(KernelId::Pool, problem, String::new());
        kernel.variant = block.as_ref().map_or(String::new(), |block| format!("{} lines", block.lines));
        kernel.constants.extend(constants(block.as_ref()));
        plan.dispatches.push(Dispatch { kernel, params: words(&part, input)?.into(), bindings, grid: [x, y, 1] });
    }
    Ok(plan)
}

/// What an invocation computes where it has neighbours in several rows.
struct Block {
    lines: u32,
    y: Window,
    x: Window,
}

impl Block {
    /// None where there is nothing to share, or no way to store a part of four elements.
    fn of(problem: &Problem) -> Option<Self> {
        let [z, y, x] = problem.windows;
        let overlap = y.stride < y.extent(1);
        let block = |lines| Self { lines, y, x };
        let fits = problem.kind != Kind::MaxPlace
            && z.is_plain()
            && x.extent(4) <= MOST_SEEN
            && x.steps > 1
            && (problem.dtype == DType::F32 || x.steps.is_multiple_of(4));
        let most = if overlap { x.steps.div_ceil(4 * FOURS_OF_LINE) } else { 1 };
        let lines = LINES.into_iter().find(|&lines| lines == 1 || lines <= most && block(lines).invocations(problem) >= ROOM)?;
        fits.then(|| block(lines))
    }

    fn invocations(&self, problem: &Problem) -> u64 {
        let planes = u64::from(problem.planes) * u64::from(problem.windows[0].steps);
        planes * u64::from(self.y.steps.div_ceil(self.lines)) * u64::from(self.x.steps.div_ceil(4))
    }
}

/// What `shaders/pool/pool.wgsl` is told of it.
fn constants(block: Option<&Block>) -> [(&'static str, u32); 8] {
    let is_vec4 = block.is_none_or(|block| block.x.steps.is_multiple_of(4));
    let of_x = |number: fn(&Window) -> u32| block.map_or(0, |block| number(&block.x));
    [
        ("LINES", block.map_or(0, |block| block.lines)),
        ("OUT_VEC4", is_vec4.into()),
        ("SEEN_Y", block.map_or(0, |block| block.y.extent(block.lines))),
        ("DILATION_Y", block.map_or(0, |block| block.y.dilation)),
        ("SEEN_X", of_x(|x| x.extent(4))),
        ("MORE_X", of_x(|x| x.taps - 1)),
        ("STRIDE_X", of_x(|x| x.stride)),
        ("DILATION_X", of_x(|x| x.dilation)),
    ]
}

/// A plan for CUDA with its compiler: that of compute shaders where windows share what they see.
#[cfg(not(target_arch = "wasm32"))]
pub fn cuda(problem: &Problem, caps: &Caps) -> Result<Plan> {
    if Block::of(problem).is_some() { compute(problem, caps) } else { plain(problem, caps) }
}

/// A plan for CUDA whose kernel is one for all, and comes with the crate: it is told in one word more what elsewhere are constants.
#[cfg(not(target_arch = "wasm32"))]
pub fn plain(problem: &Problem, caps: &Caps) -> Result<Plan> {
    let mut plan = planned(problem, None, caps)?;
    for Dispatch { kernel, params, .. } in &mut plan.dispatches {
        let Params::Words(words) = params else { return Err(Error::internal("a pool of another operation's parameters")) };
        words.push((0..).zip(["MAX", "PLACE", "PADDED", "OPERANDS_F16"]).map(|(bit, flag)| kernel.constant(flag) << bit).sum())?;
        kernel.constants.retain(|(name, _)| *name == "THREADS");
    }
    Ok(plan)
}

/// The only launch on a CPU.
pub fn cpu(problem: &Problem, variant: &str) -> Result<Plan> {
    let kernel = kernel(KernelId::PoolCpu, problem, variant.to_owned());
    Ok(Plan::of(Dispatch { kernel, params: words(problem, 0)?.into(), bindings: Vec::new(), grid: [1; 3] }))
}

/// A drawing by a fragment shader: a texel of the target is four elements of the result.
pub fn fragment(problem: &Problem, caps: &Caps) -> Result<Plan> {
    if problem.elements() == 0 {
        return Ok(Plan::default());
    }
    let mut kernel = kernel(KernelId::PoolFragment, problem, String::new());
    kernel.constants.extend([("RESULT_F16", u32::from(problem.dtype == DType::F16)), ("SCALARS", 0)]);
    let (width, height) = fold(problem.elements().div_ceil(4), caps)?;
    Ok(Plan::of(Dispatch { kernel, params: words(problem, 0)?.into(), bindings: Vec::new(), grid: [width, height, 1] }))
}

fn kernel(id: KernelId, problem: &Problem, variant: String) -> Kernel {
    let flag = |yes: bool| u32::from(yes);
    let constants = vec![
        ("THREADS", THREADS),
        ("OPERANDS_F16", flag(problem.dtype == DType::F16)),
        ("MAX", flag(matches!(problem.kind, Kind::Max | Kind::MaxPlace))),
        ("PLACE", flag(problem.kind == Kind::MaxPlace)),
        ("PADDED", flag(problem.kind == Kind::MeanPadded)),
    ];
    Kernel { id, variant, constants, source: None }
}

fn words(problem: &Problem, first: u64) -> Result<Words> {
    let mut words = Words::default();
    let head: [u32; HEAD] = [problem.elements() as u32, first as u32, f32::NEG_INFINITY.to_bits()];
    head.into_iter().chain(problem.windows.iter().flat_map(Window::words)).try_for_each(|word| words.push(word))?;
    Ok(words)
}

/// What the words of a CPU's launch say.
pub(crate) fn told(kernel: &Kernel, words: &[u32], dtype: DType) -> Result<Problem> {
    let fault = || Error::internal("a pool that was told something else");
    let (&[elements, ..], windows) = words.split_first_chunk::<HEAD>().ok_or_else(fault)?;
    let all: Vec<_> = windows.chunks(Window::WORDS).map_while(Window::of_words).collect();
    let windows = <[Window; 3]>::try_from(all).map_err(|_| fault())?;
    let of_plane = windows.iter().map(|window| window.steps).product();
    let kind = match ["PLACE", "MAX", "PADDED"].map(|name| kernel.constant(name) > 0) {
        [true, ..] => Kind::MaxPlace,
        [_, true, _] => Kind::Max,
        [_, _, true] => Kind::MeanPadded,
        _ => Kind::Mean,
    };
    Ok(Problem { kind, planes: elements.checked_div(of_plane).unwrap_or(0), windows, dtype })
}
