// Copies a matrix into rows that start at multiples of 8 elements, for kernels that read several at once; the WGSL twin of copy.cu. What the
// rows of the copy have beyond the columns is zero where they are of f16, and otherwise whatever lies there.
//
//   binding  name    stored as
//   0        matrix  the items of a batch, each params.m rows of params.n elements, lda apart; with RESULT_F16 of f16, two to a word
//   2        out     fours of as many rows one behind the other, ldo apart, ldo at least n and a multiple of 8
//
// An invocation copies four elements at a time.

//# if RESULT_F16
@group(0) @binding(0) var<storage, read> matrix: array<u32>;
//# else
@group(0) @binding(0) var<storage, read> matrix: array<f32>;
//# end

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let across = params.ldo / 4u;
  let all = params.batch * params.m * across;
  let last = arrayLength(&matrix) - 1u;
  for (var i = invocation.x; i < all; i += groups.x * THREADS) {
    let row = i / across;
    begin(row / params.m);
    let column = i % across * 4u;
    let first = a_start() + row % params.m * params.lda + column;
//# if RESULT_F16
    // Elements that start in the middle of a word are of three words. What lies past the end is not used, whatever it is.
    let low = vec2<u32>(matrix[min(first / 2u, last)], matrix[min(first / 2u + 1u, last)]);
    let high = vec2<u32>(low.y, matrix[min(first / 2u + 2u, last)]);
    let four = select(low, (low >> vec2<u32>(16u)) | (high << vec2<u32>(16u)), first % 2u == 1u);
    let left = vec2<i32>(i32(params.n) - i32(column)) - vec2<i32>(0, 2);
    out[i] = select(select(four, four & vec2<u32>(0xffffu), left < vec2<i32>(2)), vec2<u32>(), left < vec2<i32>(1));
//# else
    let at = min(vec4<u32>(first, first + 1u, first + 2u, first + 3u), vec4<u32>(last));
    out[i] = vec4<f32>(matrix[at.x], matrix[at.y], matrix[at.z], matrix[at.w]);
//# end
  }
}
