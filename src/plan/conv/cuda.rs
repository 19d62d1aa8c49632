//! Plans for CUDA: what is a product alone is left to the product's kernels, the rest to those of `shaders/conv`, each of which is one for
//! all windows.

use super::{product, words};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::conv::Problem;
use crate::ops::matmul::Problem as Product;
use crate::ops::window::Window;
use crate::plan::{Binding, Dispatch, Plan, Slot};

/// Filters of a group below which each thread computes some of them.
const FEW: u32 = 16;
/// Of the kernel for few filters: threads of a block, and filters of a thread.
const DIRECT_THREADS: u32 = 128;
const DIRECT_FILTERS: u32 = 4;
/// Of the other one.
const THREADS: u32 = 256;
/// Its tiles: filters, positions, and elements of k at a time.
const TILES: [[u32; 3]; 3] = [[128, 128, 8], [64, 64, 16], [32, 128, 16]];

/// The most layers of a grid, which are groups.
const MOST_LAYERS: u32 = 65_535;

/// A plan for CUDA, on a GPU of so many multiprocessors. `products` plans what is a product alone, or does not.
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
    let columns = u64::from(batch) * problem.positions();
    let most = u64::from(u32::MAX >> 1);
    // Its kernels count what a group sees of an image, and positions, in 32 bits.
    for (what, requested) in [
        ("the elements of a group's channels in an image", u64::from(channels) * problem.pixels()),
        ("the positions of a filter in all images", columns),
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
    let mut bindings = vec![bind(Slot::Input(0), 0, images, dtype), bind(Slot::Input(1), 1, weights, dtype)];
    if problem.bias {
        bindings.push(bind(Slot::Input(2), 2, u64::from(groups) * u64::from(filters), DType::F32));
    }
    bindings.push(bind(Slot::Out, 3, problem.elements(), dtype));
    let mut words = words(problem)?;
    words.push(u32::from(dtype == DType::F16))?;
    let is_direct = filters < FEW || groups > MOST_LAYERS;
    let (id, variant, threads, grid) = if is_direct {
        let threads = u64::from(batch) * u64::from(groups) * u64::from(filters.div_ceil(DIRECT_FILTERS)) * problem.positions();
        let blocks = threads.div_ceil(DIRECT_THREADS.into());
        if blocks > u64::from(caps.max_workgroups_per_dimension) {
            let what = "the blocks of a convolution";
            return Err(Box::new(Error::LimitExceeded { what, requested: blocks, max: caps.max_workgroups_per_dimension.into() }));
        }
        (KernelId::ConvDirect, String::new(), DIRECT_THREADS, [blocks as u32, 1, 1])
    } else {
        let blocks = |[m, n, _]: [u32; 3]| u64::from(filters.div_ceil(m)) * columns.div_ceil(n.into());
        let tile = match TILES {
            [large, ..] if filters > 64 && blocks(large) * u64::from(groups) >= u64::from(multiprocessors) => large,
            [_, _, low] if filters <= 32 => low,
            [_, small, _] => small,
        };
        let [m, n, k] = tile;
        (KernelId::ConvTiled, format!("{m}x{n}x{k}"), THREADS, [blocks(tile) as u32, 1, groups])
    };
    let kernel = Kernel { id, variant, constants: vec![("THREADS", threads)], source: None };
    Ok(Plan::of(Dispatch { kernel, params: words.into(), bindings, grid }))
}
