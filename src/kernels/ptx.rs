//! What `scripts/ptx` has compiled, one module for each variant, so that a driver compiles those alone that run.

const FILES: [&str; 24] = [
    include_str!("../../shaders/map/interpreted.ptx"),
    include_str!("../../shaders/conv/tiled.ptx"),
    include_str!("../../shaders/conv/direct.ptx"),
    include_str!("../../shaders/conv/sum.ptx"),
    include_str!("../../shaders/pool/pool.ptx"),
    include_str!("../../shaders/fft/fft.ptx"),
    include_str!("../../shaders/reduce/plain.ptx"),
    include_str!("../../shaders/normalize/plain.ptx"),
    include_str!("../../shaders/matmul/tiled.ptx"),
    include_str!("../../shaders/matmul/cooperative.ptx"),
    include_str!("../../shaders/matmul/split.ptx"),
    include_str!("../../shaders/matmul/split_units.ptx"),
    include_str!("../../shaders/matmul/int8.ptx"),
    include_str!("../../shaders/matmul/int8_units.ptx"),
    include_str!("../../shaders/matmul/int8_vector.ptx"),
    include_str!("../../shaders/matmul/int8_copy.ptx"),
    include_str!("../../shaders/matmul/int8_sum.ptx"),
    include_str!("../../shaders/matmul/direct.ptx"),
    include_str!("../../shaders/matmul/rows.ptx"),
    include_str!("../../shaders/matmul/vector.ptx"),
    include_str!("../../shaders/matmul/sum.ptx"),
    include_str!("../../shaders/matmul/copy.ptx"),
    include_str!("../../shaders/ceiling/copy.ptx"),
    include_str!("../../shaders/ceiling/fma.ptx"),
];

/// The module under the line with that kernel's name.
pub(super) fn module(name: &str) -> Option<&'static str> {
    let line = format!("\n//# {name}\n");
    let (_, from) = FILES.iter().find_map(|file| file.split_once(&line))?;
    Some(from.split_once("\n//#").map_or(from, |(module, _)| module))
}
