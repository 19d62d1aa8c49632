//! Plans for convolutions of 3 x 3 windows by Winograd's method, `shaders/conv/winograd.wgsl`: a quarter of the multiplications, for two and a
//! half times the reading and writing and three launches more.
//!
//! ```text
//! filters ─► 36 matrices of filters × channels ─┐
//! images  ─► 36 matrices of channels × tiles   ─┴─► 36 products ─► result
//! ```
//!
//! What the kernels but the product's are told is a row of words:
//!
//! ```text
//! filters, channels, tiles, the same as a multiple of four, tiles of an image and of a row of it, height and width of an image, padding
//! above and to the left, height and width of the result, in scratch: where the images' matrices are and the products, in their bindings:
//! where the images are and the result
//! ```

use crate::dtype::DType;
use crate::error::Result;
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::conv::Problem;
use crate::ops::matmul::Activation;
use crate::ops::window::Window;
use crate::plan::matmul::shared;
use crate::plan::{Binding, Dispatch, Plan, Slot, Words, spread};

/// Results of a tile along each side.
const TILE: u32 = 4;
/// Matrices: elements of a tile with what is round it.
const ITEMS: u32 = (TILE + 2) * (TILE + 2);
/// Invocations of a workgroup of the kernels round the products.
const THREADS: u32 = 64;

/// Channels and filters, and multiplications, below which the way there and back costs more than it saves: measured on an NVIDIA H200. Less
/// work will do where there are more tiles than filters, so that these cost little.
const LEAST_SIDE: u32 = 32;
const LEAST_WORK: u64 = 1 << 28;
const LEAST_WORK_OF_TILES: u64 = 1 << 26;
/// More room than this is not asked for: images then go in several turns.
const MOST_BYTES: u64 = 1 << 28;

/// How many images go through the scratch at once, if the method is for this convolution.
pub(super) fn images(problem: &Problem, caps: &Caps) -> Option<u32> {
    let &Problem { batch, groups, channels, filters, dtype, .. } = problem;
    let is_shape = |window: &Window| (window.taps, window.stride, window.dilation) == (3, 1, 1);
    let [_, _, tiles] = Part { problem, first: 0, images: batch, caps }.tiles();
    let least = if tiles / 2 >= filters { LEAST_WORK_OF_TILES } else { LEAST_WORK };
    let pays = channels.min(filters) >= LEAST_SIDE && problem.multiplications() >= least;
    if !problem.windows.iter().all(is_shape) || groups != 1 || dtype != DType::F32 || !channels.is_multiple_of(4) || !pays {
        return None;
    }
    let room_bytes = caps.max_binding_bytes.saturating_sub(caps.binding_alignment_bytes + 16);
    let mut images = batch;
    loop {
        let part = Part { problem, first: 0, images, caps };
        let [channel, results] = [problem.pixels() * u64::from(channels), problem.positions() * u64::from(filters)];
        let bound = u64::from(images) * channel.max(results) * 4;
        if part.scratch_bytes() <= MOST_BYTES.min(room_bytes) && bound <= room_bytes {
            return Some(images);
        }
        if images == 1 {
            return None;
        }
        images = images.div_ceil(2);
    }
}

/// The plan, so many images at once.
pub(super) fn winograd(problem: &Problem, images: u32, caps: &Caps) -> Result<Plan> {
    let mut plan = Plan::default();
    for first in (0..problem.batch).step_by(images.max(1) as usize) {
        Part { problem, first, images: images.min(problem.batch - first), caps }.add_to(&mut plan)?;
    }
    Ok(plan)
}

/// Some of the images.
struct Part<'a> {
    problem: &'a Problem,
    first: u32,
    images: u32,
    caps: &'a Caps,
}

impl Part<'_> {
    /// Tiles of a row, of an image and of all.
    fn tiles(&self) -> [u32; 3] {
        let [y, x] = self.problem.windows.map(|window| window.steps.div_ceil(TILE));
        [x, x * y, x * y * self.images]
    }

    /// Elements of the filters' matrices, of the images' and of the products.
    fn elements(&self) -> [u64; 3] {
        let &Problem { channels, filters, .. } = self.problem;
        let [_, _, tiles] = self.tiles();
        let tiles = tiles.next_multiple_of(4);
        [(filters, channels), (channels, tiles), (filters, tiles)]
            .map(|(rows, columns)| u64::from(ITEMS) * u64::from(rows) * u64::from(columns))
    }

    fn scratch_bytes(&self) -> u64 {
        self.elements().iter().sum::<u64>() * 4
    }

    fn add_to(&self, plan: &mut Plan) -> Result<()> {
        let &Problem { channels, filters, windows: [y, x], bias, activation, .. } = self.problem;
        let [of_row, of_image, tiles] = self.tiles();
        let columns = tiles.next_multiple_of(4);
        let [of_filters, of_images, _] = self.elements();
        let [images_at, sums_at] = [of_filters as u32, (of_filters + of_images) as u32];
        let scratch =
            |index| Binding { slot: Slot::Scratch, index, offset_bytes: 0, size_bytes: self.scratch_bytes().next_multiple_of(16) };
        plan.scratch_bytes = plan.scratch_bytes.max(scratch(0).size_bytes);
        let (images, images_start) = self.bound(Slot::Input(0), 0, u64::from(channels) * self.problem.pixels());
        let (out, out_start) = self.bound(Slot::Out, 2, u64::from(filters) * self.problem.positions());
        let mut words = Words::default();
        let told = [filters, channels, tiles, columns, of_image, of_row, y.input, x.input, y.before, x.before, y.steps, x.steps];
        told.into_iter().chain([images_at, sums_at, images_start, out_start]).try_for_each(|word| words.push(word))?;
        let launch = |id, invocations: u32, constants: &[_], bindings| {
            let constants = [&[("THREADS", THREADS)], constants].concat();
            let [x, y] = spread(invocations.div_ceil(THREADS), self.caps.max_workgroups_per_dimension);
            let kernel = Kernel { id, variant: String::new(), constants, source: None };
            Dispatch { kernel, params: words.into(), bindings, grid: [x, y, 1] }
        };
        // They are the same for all images.
        if self.first == 0 {
            let size_bytes = (u64::from(filters) * u64::from(channels) * 36).next_multiple_of(16);
            let taps = Binding { slot: Slot::Input(1), index: 0, offset_bytes: 0, size_bytes };
            plan.dispatches.push(launch(KernelId::ConvWinogradFilters, filters * channels, &[], vec![taps, scratch(2)]));
        }
        plan.dispatches.push(launch(KernelId::ConvWinogradImages, channels * columns, &[], vec![images, scratch(2)]));
        shared(plan, [filters, channels, columns], ITEMS, [0, images_at, sums_at], scratch(2), self.caps)?;
        let constants = [
            ("READS_BIAS", u32::from(bias)),
            ("ACTIVATION", Activation::number(activation)),
            ("OUT_VEC4", u32::from(x.steps.is_multiple_of(4) && out_start.is_multiple_of(4))),
        ];
        let mut bindings = vec![scratch(0), out];
        if bias {
            let size_bytes = (u64::from(filters) * 4).next_multiple_of(16);
            bindings.push(Binding { slot: Slot::Input(2), index: 5, offset_bytes: 0, size_bytes });
        }
        plan.dispatches.push(launch(KernelId::ConvWinogradResult, filters * columns, &constants, bindings));
        Ok(())
    }

    /// Where so many elements of each image are bound, and where the first is in that.
    fn bound(&self, slot: Slot, index: u32, of_image: u64) -> (Binding, u32) {
        let alignment = (self.caps.binding_alignment_bytes.max(16)) / 4;
        let first = u64::from(self.first) * of_image;
        let start = first % alignment;
        let size_bytes = ((start + u64::from(self.images) * of_image) * 4).next_multiple_of(16);
        (Binding { slot, index, offset_bytes: (first - start) * 4, size_bytes }, start as u32)
    }
}
