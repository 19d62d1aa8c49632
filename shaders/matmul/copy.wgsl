// Copies a matrix of f16 into rows that start at multiples of 8 elements, for kernels that read eight at once; the WGSL twin of copy.cu.
// What the rows of the copy have beyond the columns is zero. An invocation writes eight elements at a time.
//
//   binding  name    stored as
//   0        matrix  the items of a batch, each params.m rows of params.n elements, two to a word, lda apart
//   2        out     words of as many rows one behind the other, ldo apart, ldo at least n and a multiple of 8

@group(0) @binding(0) var<storage, read> matrix: array<u32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let across = params.ldo / 8u;
  let size = params.batch * params.m * across;
  for (var eight = invocation.x; eight < size; eight += groups.x * THREADS) {
    let row = eight / across;
    let column = eight % across * 8u;
    begin(row / params.m);
    let first = a_start() + row % params.m * params.lda + column;
    for (var word = 0u; word < 4u; word++) {
      let done = column + word * 2u;
      let left = select(0u, params.n - done, params.n > done);
      var pair = 0u;
      if (left > 0u) {
        // Elements that start in the middle of a word are of two words, of which the second is there only if it has one.
        pair = matrix[first / 2u + word] >> (first % 2u * 16u);
        if (left == 1u) {
          pair &= 0xffffu;
        } else if (first % 2u == 1u) {
          pair |= matrix[first / 2u + word + 1u] << 16u;
        }
      }
      out[eight * 4u + word] = pair;
    }
  }
}
