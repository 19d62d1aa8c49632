// How fast arithmetic is: chains of fused multiply-adds that wait for nothing but themselves.
//
//   binding  name    stored as
//   1        out     a vec4 for each invocation
//   3        params
//
// An invocation has CHAINS chains of vec4s, each of UNROLL * params.steps links.

struct Params { count: u32, steps: u32, x: f32, y: f32 }

@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>) {
  let x = vec4<f32>(params.x);
  let y = vec4<f32>(params.y);
//# for i in CHAINS
  var sum_$i = vec4<f32>(f32(invocation.x) + $i.0);
//# end
  for (var step = 0u; step < params.steps; step++) {
//# for u in UNROLL
//# for i in CHAINS
    sum_$i = fma(sum_$i, x, y);
//# end
//# end
  }
  var sum = vec4<f32>();
//# for i in CHAINS
  sum += sum_$i;
//# end
  out[invocation.x] = sum;
}
