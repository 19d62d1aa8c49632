// How fast memory is: copies, which read and write each byte once.
//
//   binding  name    stored as
//   0        source  params.count vec4s
//   1        out     as many
//   3        params

struct Params { count: u32, steps: u32, x: f32, y: f32 }

@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<f32>>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
  let stride = workgroups.x * THREADS;
  for (var i = invocation.x; i < params.count; i += stride) {
    out[i] = source[i];
  }
}
