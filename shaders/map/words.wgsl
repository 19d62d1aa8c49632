// What kernels are told at run time: a row of words, whose meaning is each plan's.

@group(0) @binding(3) var<uniform> params: array<vec4<u32>, 16>;
fn word(i: u32) -> u32 { return params[i / 4u][i % 4u]; }
