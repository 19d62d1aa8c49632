//! Plans for convolutions: products of filters with what windows see (`plan/matmul/window.rs`), without a window's matrix in memory; few
//! filters directly, and many of 3 x 3 by Winograd's method.

mod winograd;

#[cfg(not(target_arch = "wasm32"))]
mod cuda;

use super::words::Words;
use super::{Dispatch, Plan, Slot, matmul};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::kernels::{Kernel, KernelId};
use crate::ops::conv::Problem;
use crate::ops::matmul::{Activation, Batch, Level, Matmul, Problem as Product, Stored};
use crate::ops::window::Window;
#[cfg(not(target_arch = "wasm32"))]
pub use cuda::cuda;

/// A plan for compute shaders.
pub fn compute(problem: &Problem, caps: &Caps) -> Result<Plan> {
    if problem.elements() == 0 {
        return Ok(Plan::default());
    }
    if let Some(images) = winograd::images(problem, caps) {
        return winograd::winograd(problem, images, caps);
    }
    let product = product(problem)?;
    for (rows, columns) in [(product.a.rows, product.a.columns), (product.b.rows, product.b.columns)] {
        let requested = u64::from(rows) * u64::from(columns) * problem.dtype.bytes() + caps.binding_alignment_bytes + 16;
        if requested > caps.max_binding_bytes.max(64) {
            let what = "bytes of a group's filters, or of what they are applied to in an image, that a kernel sees at once";
            return Err(Box::new(Error::LimitExceeded { what, requested, max: caps.max_binding_bytes }));
        }
    }
    let mut plan = matmul::windowed(&product, &problem.windows, caps)?;
    // The images are the first operand, the filters the second, the bias the third.
    for binding in plan.dispatches.iter_mut().flat_map(|dispatch| &mut dispatch.bindings) {
        binding.slot = match binding.slot {
            Slot::A => Slot::Input(1),
            Slot::B => Slot::Input(0),
            Slot::BIAS => Slot::Input(2),
            other => other,
        };
    }
    Ok(plan)
}

/// The product that a convolution is: for each image and each group filters × taps by taps × positions. B's rows are as stored, channels of
/// pixels.
fn product(problem: &Problem) -> Result<Product> {
    let &Problem { batch, groups, channels, filters, dtype, .. } = problem;
    let sizes = [problem.terms(), problem.positions(), problem.pixels()];
    let [k, n, pixels] = sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX));
    if let Some(&requested) = sizes.iter().find(|&&size| size >= u32::MAX.into()) {
        let what = "the terms of a sum, the positions of a filter or the pixels of an image";
        return Err(Box::new(Error::LimitExceeded { what, requested, max: u64::from(u32::MAX) - 1 }));
    }
    let weights = u64::from(filters) * u64::from(k);
    // B as such is nowhere: what is stored of it is the images.
    let plain = Matmul::new(filters.into(), k.into(), 1).result(dtype).check([dtype; 2], weights, k.into())?;
    let images = u64::from(channels) * u64::from(pixels);
    let per_image = Level { count: batch, a: 0, b: images * u64::from(groups), c: 0 };
    let batch = if groups == 1 {
        Batch { inner: per_image, ..Batch::ONE }
    } else {
        Batch { outer: per_image, inner: Level { count: groups, a: weights, b: images, c: 0 }, ..Batch::ONE }
    };
    let b = Stored { rows: channels, columns: pixels, stride: pixels.into() };
    Ok(Product { n, batch, b, bias: problem.bias, activation: problem.activation, ..plain })
}

/// The only launch on a CPU, which is told all in words.
pub fn cpu(problem: &Problem, variant: &str) -> Result<Plan> {
    let kernel = Kernel { id: KernelId::ConvCpu, variant: variant.to_owned(), constants: Vec::new(), source: None };
    Ok(Plan::of(Dispatch { kernel, params: words(problem)?.into(), bindings: Vec::new(), grid: [1; 3] }))
}

/// What kernels are told that are no products' own.
fn words(problem: &Problem) -> Result<Words> {
    let mut words = Words::default();
    let &Problem { batch, groups, channels, filters, windows: [y, x], .. } = problem;
    let activation = Activation::number(problem.activation);
    for word in [batch, groups, channels, filters, activation].into_iter().chain(y.words()).chain(x.words()) {
        words.push(word)?;
    }
    Ok(words)
}

/// A drawing by a fragment shader, which is told the same words: a texel of the target is four elements of the result.
pub fn fragment(problem: &Problem, caps: &Caps) -> Result<Plan> {
    if problem.elements() == 0 {
        return Ok(Plan::default());
    }
    let mut plan = cpu(problem, "")?;
    let (width, height) = matmul::fold(problem.elements().div_ceil(4), caps)?;
    let [y, x] = problem.windows;
    let of_one_filter = (u64::from(y.steps) * u64::from(x.steps)).is_multiple_of(4);
    let slides = of_one_filter && x.steps.is_multiple_of(4) && x.stride == 1 && x.dilation == 1;
    for Dispatch { kernel, grid, .. } in &mut plan.dispatches {
        kernel.id = KernelId::ConvFragment;
        kernel.constants = vec![
            ("QUAD", of_one_filter.into()),
            ("SLIDES", slides.into()),
            ("BIAS", problem.bias.into()),
            ("ACTIVATION", Activation::number(problem.activation)),
            ("RESULT_F16", u32::from(problem.dtype == DType::F16)),
            ("SCALARS", 0),
        ];
        *grid = [width, height, 1];
    }
    Ok(plan)
}

/// What the words of a CPU's launch say; whether there is a bias is seen by its values.
pub(crate) fn told(words: &[u32], bias: bool) -> Result<Problem> {
    let fault = || Error::internal("a convolution that was told something else");
    let (&[batch, groups, channels, filters, activation], windows) = words.split_first_chunk().ok_or_else(fault)?;
    let all: Vec<_> = windows.chunks(Window::WORDS).map_while(Window::of_words).collect();
    let windows = <[Window; 2]>::try_from(all).map_err(|_| fault())?;
    Ok(Problem { batch, groups, channels, filters, windows, dtype: DType::F32, bias, activation: Activation::of_number(activation) })
}
