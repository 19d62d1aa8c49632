//! `shaders/matmul/tiled.ptx`: what `scripts/ptx` has compiled, one module for each variant, so that a driver compiles those alone that run.

const MODULES: &str = include_str!("../../shaders/matmul/tiled.ptx");

/// The module under the line with that variant's name.
pub(super) fn module(variant: &str) -> Option<&'static str> {
    let (_, from) = MODULES.split_once(&format!("\n//# {variant}\n"))?;
    Some(from.split_once("\n//#").map_or(from, |(module, _)| module))
}
