// The operands of matmul/tiled.wgsl where they lie in the buffer that it writes to, elsewhere: WebGPU takes a buffer that is written for one
// binding alone.

alias Number = f32;
fn a_four(i: u32) -> vec4<f32> { return out[i]; }
fn b_four(i: u32) -> vec4<f32> { return out[i]; }
