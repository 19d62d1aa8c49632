//! Plans for CUDA: what is a product alone is left to the product's kernels, the rest to those of `shaders/conv`, each of which is one for
//! all windows. Where there are too few sums for all multiprocessors, each is made in parts, which a second kernel adds up.

use super::{product, words};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::conv::Problem;
use crate::ops::matmul::Problem as Product;
use crate::ops::window::Window;
use crate::plan::map::OUT_BINDING;
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// Threads of a block of the kernel that reads windows where they are, and of that of tiles.
const DIRECT_THREADS: u32 = 128;
const THREADS: u32 = 256;
/// Its tiles: filters, positions, and elements of k at a time; and of what a thread has, filters and positions.
const TILES: [[u32; 5]; 3] = [[128, 128, 8, 8, 8], [64, 64, 16, 4, 4], [32, 128, 16, 4, 4]];

/// The most layers of a grid, which are groups.
const MOST_LAYERS: u32 = 65_535;

/// A plan for CUDA, on a GPU of so many multiprocessors; of none, one without parts. `products` plans what is a product alone, or does not.
pub fn cuda(problem: &Problem, caps: &Caps, multiprocessors: u32, products: impl FnOnce(&Product) -> Result<Option<Plan>>) -> Result<Plan> {
    if problem.elements() == 0 {
        return Ok(Plan::default());
    }
    let &Problem { batch, groups, channels, filters, windows, dtype, .. } = problem;
    // Refuses what is too large.
    let product = product(problem)?;
    let is_plain = windows.iter().all(Window::is_plain) && !problem.bias && problem.activation.is_none();
    if is_plain && let Some(mut plan) = products(&product)? {
        // The filters are the product's first operand.
        for binding in plan.dispatches.iter_mut().flat_map(|dispatch| &mut dispatch.bindings) {
            binding.slot = match binding.slot {
                Slot::A => Slot::Input(1),
                Slot::B => Slot::Input(0),
                other => other,
            };
        }
        return Ok(plan);
    }
    let images = u64::from(batch) * u64::from(groups) * u64::from(channels) * problem.pixels();
    let weights = u64::from(groups) * u64::from(filters) * problem.terms();
    let positions = u64::from(batch) * problem.positions();
    let most = u64::from(u32::MAX >> 1);
    // Its kernels count what a group sees of an image, and positions, in 32 bits.
    for (what, requested) in [
        ("the elements of a group's channels in an image", u64::from(channels) * problem.pixels()),
        ("the positions of a filter in all images", positions),
        ("the filters of all groups", u64::from(groups) * u64::from(filters)),
    ] {
        if requested > most {
            return Err(Box::new(Error::LimitExceeded { what, requested, max: most }));
        }
    }
    let bind = |slot, index, elements: u64, dtype: DType| Binding {
        slot,
        index,
        offset_bytes: 0,
        size_bytes: (elements * dtype.bytes()).next_multiple_of(16).max(16),
    };
    let blocks = |[m, n, ..]: [u32; 5]| u64::from(filters.div_ceil(m)) * positions.div_ceil(n.into());
    let tile = match TILES {
        [large, ..] if filters > 64 && blocks(large) * u64::from(groups) >= u64::from(multiprocessors) => large,
        [_, _, low] if filters <= 32 => low,
        [_, small, _] => small,
    };
    let [m, n, k, rows, columns] = tile;
    let parts = Parts::of(problem, [m, n, k], blocks(tile), multiprocessors);
    let direct = Some(Direct::of(problem)).filter(|direct| groups > MOST_LAYERS || direct.is_quicker(problem, &parts, multiprocessors));
    let parts = if direct.is_some() { Parts::whole(problem) } else { parts };
    let mut constants = vec![("BIAS", u32::from(problem.bias)), ("SCALARS", 0)];
    let (id, variant, grid) = if let Some(direct) = &direct {
        constants.push(("THREADS", DIRECT_THREADS));
        (KernelId::ConvDirect, String::new(), [blocks_of(direct.threads(problem), caps)?, 1, 1])
    } else {
        constants.extend([("TILE_M", m), ("TILE_N", n), ("TILE_K", k), ("ROWS", rows), ("COLUMNS", columns), ("THREADS", THREADS)]);
        (KernelId::ConvTiled, format!("{m}x{n}x{k}"), [blocks(tile) as u32, 1, groups * parts.count])
    };
    let mut words = words(problem)?;
    [u32::from(dtype == DType::F16), parts.count, parts.terms, direct.map_or(0, |direct| direct.columns)]
        .into_iter()
        .try_for_each(|word| words.push(word))?;
    let out = bind(Slot::Out, OUT_BINDING, problem.elements(), dtype);
    let bias = problem.bias.then(|| bind(Slot::Input(2), 2, u64::from(groups) * u64::from(filters), DType::F32));
    let mut bindings = vec![bind(Slot::Input(0), 0, images, dtype), bind(Slot::Input(1), 1, weights, dtype)];
    let sums = bind(Slot::Scratch, OUT_BINDING, u64::from(parts.count) * problem.elements(), DType::F32);
    let is_whole = parts.count == 1;
    bindings.extend(if is_whole { bias } else { None });
    bindings.push(if is_whole { out } else { sums });
    let kernel = Kernel { id, variant, constants, source: None };
    let mut plan = Plan::of(Dispatch { kernel, params: words.into(), bindings, grid });
    if !is_whole {
        let constants = vec![("BIAS", u32::from(problem.bias)), ("SCALARS", 0), ("THREADS", DIRECT_THREADS)];
        let kernel = Kernel { id: KernelId::ConvSum, variant: String::new(), constants, source: None };
        let bindings = [Binding { index: 0, ..sums }].into_iter().chain(bias).chain([out]).collect();
        let grid = [blocks_of(problem.elements(), caps)?, 1, 1];
        plan.dispatches.push(Dispatch { kernel, params: words.into(), bindings, grid });
        plan.scratch_bytes = sums.size_bytes;
    }
    Ok(plan)
}

/// The blocks of so many threads.
fn blocks_of(threads: u64, caps: &Caps) -> Result<u32> {
    let (requested, max) = (threads.div_ceil(DIRECT_THREADS.into()), caps.max_workgroups_per_dimension);
    if requested > max.into() {
        return Err(Box::new(Error::LimitExceeded { what: "the blocks of a convolution", requested, max: max.into() }));
    }
    Ok(requested as u32)
}

/// How `shaders/conv/direct.cu` shares out what it computes.
struct Direct {
    /// Of a thread: filters, and neighbouring positions.
    filters: u32,
    columns: u32,
}

impl Direct {
    const FILTERS: u32 = 4;
    /// Neighbours where windows are so wide, and one or two apart, without gaps between their elements.
    const COLUMNS: u32 = 4;
    const WIDTHS: [u32; 3] = [3, 5, 7];
    // Of an NVIDIA H200: the products that a multiprocessor does of neighbours and of single positions, and what a row of a channel's windows waits for
    // memory, or a single element of them.
    const PRODUCTS_PER_NS: f64 = 32.0;
    const SINGLE_PER_NS: f64 = 7.6;
    const ROW_NS: f64 = 500.0;
    const SINGLE_NS: f64 = 170.0;

    fn of(problem: &Problem) -> Self {
        let [_, x] = problem.windows;
        let are_usual = Self::WIDTHS.contains(&x.taps) && x.stride <= 2 && x.dilation == 1 && x.steps > 1;
        let columns = if are_usual { Self::COLUMNS } else { 1 };
        Self { filters: if are_usual && problem.filters == 1 { 1 } else { Self::FILTERS }, columns }
    }

    fn threads(&self, problem: &Problem) -> u64 {
        let &Problem { batch, groups, filters, windows: [y, x], .. } = problem;
        let fours = u64::from(y.steps) * u64::from(x.steps.div_ceil(self.columns));
        u64::from(batch) * u64::from(groups) * u64::from(filters.div_ceil(Self::FILTERS)) * fours
    }

    /// Whether it takes less time than tiles, taken in those parts.
    fn is_quicker(&self, problem: &Problem, parts: &Parts, multiprocessors: u32) -> bool {
        let [y, x] = problem.windows;
        let products = self.threads(problem) as f64 * f64::from(self.filters * self.columns) * problem.terms() as f64;
        let rows = f64::from(problem.channels) * f64::from(y.taps);
        let (per_ns, wait_ns) = if self.columns > 1 {
            (Self::PRODUCTS_PER_NS, Self::ROW_NS)
        } else {
            (Self::SINGLE_PER_NS, Self::SINGLE_NS * f64::from(x.taps))
        };
        (products / (per_ns * f64::from(multiprocessors.max(1)))).max(rows * wait_ns) < parts.ns as f64
    }
}

/// Sums in parts, so that a GPU is busy where there are few of them.
struct Parts {
    count: u32,
    /// Of each part but the last.
    terms: u32,
    /// How long it all takes.
    ns: u64,
}

impl Parts {
    const MOST: u64 = 64;
    // Of an NVIDIA H200, by which convolutions of a ResNet-50 take what they do to within a tenth: a step of a block that is alone on its
    // multiprocessor, what each other one there adds, a second kernel, and how many sums are written and read.
    const STEP_NS: u64 = 1200;
    const BESIDE_NS: u64 = 650;
    const KERNEL_NS: u64 = 4000;
    const SUMS_PER_NS: u64 = 100;
    /// The products of that step.
    const OF_STEP: u64 = 64 * 64 * 16;

    /// All of them at once.
    fn whole(problem: &Problem) -> Self {
        Self { count: 1, terms: problem.terms() as u32, ns: 0 }
    }

    /// What takes the least time on so many multiprocessors, where blocks of a tile, so many in each group, take some terms at a time. On none
    /// nothing is in parts.
    fn of(problem: &Problem, [m, n, k]: [u32; 3], blocks: u64, multiprocessors: u32) -> Self {
        let (terms, layers, sums) = (problem.terms() as u32, u64::from(problem.groups), problem.elements());
        let steps = u64::from(terms.div_ceil(k));
        let time_ns = |part: u64| {
            let count = steps.div_ceil(part);
            let beside = (blocks * layers * count).div_ceil(multiprocessors.max(1).into()).max(1) - 1;
            let products = u64::from(m) * u64::from(n) * u64::from(k);
            let computed = part * (Self::STEP_NS + Self::BESIDE_NS * beside) * products / Self::OF_STEP;
            computed + if count > 1 { Self::KERNEL_NS + count * sums / Self::SUMS_PER_NS } else { 0 }
        };
        let most = if multiprocessors > 0 { Self::MOST.min(steps).min(u64::from(MOST_LAYERS) / layers) } else { 1 };
        let part = (1..=most).map(|count| steps.div_ceil(count)).min_by_key(|&part| time_ns(part)).unwrap_or(steps);
        let ns = time_ns(part);
        let part = part as u32;
        if u64::from(part) < steps {
            Self { count: terms.div_ceil(part * k), terms: part * k, ns }
        } else {
            Self { ns, ..Self::whole(problem) }
        }
    }
}
