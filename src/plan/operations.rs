//! Plans for all but products, by language. On the web these are a part of the package that is loaded when it is first needed, and the
//! functions here, which are not inlined, lead into it.

#[cfg(all(feature = "webgl2", target_arch = "wasm32"))]
use super::matmul::{self, FragmentCaps};
use super::{Plan, conv, fft, fused, map, normalize, pool, reduce};
use crate::error::{Error, Result};
use crate::info::Caps;
use crate::ops::Op;

fn not_a_product() -> Box<Error> {
    Error::internal("a product among the other operations")
}

fn fuses_nothing() -> Box<Error> {
    Error::internal("two operations at once on a backend that does them one by one")
}

/// For compute shaders.
#[inline(never)]
pub(crate) fn compute(op: &Op, caps: &Caps) -> Result<Plan> {
    match op {
        Op::Matmul(_) => Err(not_a_product()),
        Op::Map(problem) => map::compute(problem, caps),
        Op::Conv(problem) => conv::compute(problem, caps),
        Op::Pool(problem) => pool::compute(problem, caps),
        Op::Fft(problem) => fft::compute(problem, caps),
        Op::Reduce(problem) => reduce::compute(problem, caps),
        Op::Normalize(problem) => normalize::compute(problem, caps),
        Op::Fused(fused) => fused::compute(fused, caps),
    }
}

/// For fragment shaders.
#[cfg(all(feature = "webgl2", target_arch = "wasm32"))]
#[inline(never)]
pub(crate) fn fragment(op: &Op, caps: &Caps, products: &FragmentCaps) -> Result<Plan> {
    match op {
        Op::Matmul(_) => Err(not_a_product()),
        Op::Map(problem) => map::fragment(problem, caps),
        Op::Conv(problem) => conv::fragment(problem, caps),
        Op::Pool(problem) => pool::fragment(problem, caps),
        Op::Fft(problem) => fft::fragment(problem, caps),
        Op::Reduce(problem) => reduce::fragment(problem, caps),
        Op::Normalize(problem) => normalize::fragment(problem, caps),
        Op::Fused(fused) => match &fused.core {
            Op::Matmul(problem) => fused::fragment(fused, matmul::fragment(problem, caps, products)?),
            core => fused::fragment(fused, fused::drawn(core, caps)?),
        },
    }
}

/// For the CPU.
#[inline(never)]
pub(crate) fn cpu(op: &Op, variant: &str) -> Result<Plan> {
    match op {
        Op::Matmul(_) => Err(not_a_product()),
        Op::Map(problem) => map::cpu(problem, variant),
        Op::Conv(problem) => conv::cpu(problem, variant),
        Op::Pool(problem) => pool::cpu(problem, variant),
        Op::Fft(problem) => fft::cpu(problem, variant),
        Op::Reduce(problem) => reduce::cpu(problem, variant),
        Op::Normalize(problem) => normalize::cpu(problem, variant),
        Op::Fused(_) => Err(fuses_nothing()),
    }
}
