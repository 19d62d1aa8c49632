// Copies a matrix of f16 into rows that start at multiples of 8 elements, for kernels that read eight at once; the WGSL twin of copy.cu.
// What the rows of the copy have beyond the columns is zero.
//
//   binding  name    stored as
//   0        matrix  the items of a batch, each params.m rows of params.n elements, two to a word, lda apart
//   2        out     words of as many rows one behind the other, ldo apart, ldo at least n and a multiple of 8
//
//   LANES    invocations that share a row. Neighbours read and write neighbouring words, and have four of them under way.

@group(0) @binding(0) var<storage, read> matrix: array<u32>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32, @builtin(num_workgroups) groups: vec3<u32>,
) {
  const rows_at_once = THREADS / LANES;
  let across = params.ldo / 2u;
  let last = arrayLength(&matrix) - 1u;
  for (var row = group.x * rows_at_once + thread / LANES; row < params.batch * params.m; row += groups.x * rows_at_once) {
    begin(row / params.m);
    let first = a_start() + row % params.m * params.lda;
    for (var word = thread % LANES; word < across; word += 4u * LANES) {
      // Elements that start in the middle of a word are of two words. What lies past the end is not used, whatever it is.
//# for u in 4
      let low_$u = matrix[min(first / 2u + word + $uu * LANES, last)];
      let high_$u = matrix[min(first / 2u + word + $uu * LANES + 1u, last)];
//# end
//# for u in 4
      if (word + $uu * LANES < across) {
        let pair = select(low_$u, (low_$u >> 16u) | (high_$u << 16u), first % 2u == 1u);
        let left = i32(params.n) - i32(2u * (word + $uu * LANES));
        out[row * across + word + $uu * LANES] = select(select(pair, pair & 0xffffu, left < 2), 0u, left < 1);
      }
//# end
    }
  }
}
