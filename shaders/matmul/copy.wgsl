// Copies matrices into rows that start at multiples of 8 elements, for kernels that read several at once, as they stand or turned. What the
// rows of a copy have beyond the elements of a row is zero. copy.cu does the same for CUDA, but turns nothing.
//
//   binding  name    stored as
//   0        matrix  the items of a batch, each params.m rows of params.n elements, lda apart; with HALF of f16
//   2        out     the copies one behind the other, their rows ldo apart, a multiple of 8: as many rows, or with TURNED params.n rows of
//                    params.m elements each
//
// A workgroup copies squares of 32 x 32 elements. Of those that are turned, it reads rows and writes columns by way of workgroup memory, padded
// by one element a row against bank conflicts.

//# if HALF
alias Number = f16;
//# else
alias Number = f32;
//# end
@group(0) @binding(0) var<storage, read> matrix: array<Number>;
//# if TURNED
@group(0) @binding(2) var<storage, read_write> out: array<vec4<Number>>;
var<workgroup> square: array<array<Number, 33>, 32>;
//# else
@group(0) @binding(2) var<storage, read_write> out: array<Number>;
//# end

const APART = THREADS / 32u;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
//# if TURNED
  let down = (params.ldo + 31u) / 32u;
  let across = (params.n + 31u) / 32u;
//# else
  let down = (params.m + 31u) / 32u;
  let across = (params.ldo + 31u) / 32u;
//# end
  let last = arrayLength(&matrix) - 1u;
  for (var i = group.x; i < params.batch * down * across; i += groups.x) {
    let item = i / (down * across);
    begin(item);
    let row0 = i / across % down * 32u;
    let column0 = i % across * 32u;
    let row = row0 + thread / 32u;
    let column = column0 + thread % 32u;
    let first = a_start() + row * params.lda + column;
    // All are on their way before the first is needed.
//# for r in ROWS
    let v_$r = select(Number(), matrix[min(first + $ru * APART * params.lda, last)], (row + $ru * APART < params.m) & (column < params.n));
//# end
//# if TURNED
//# for r in ROWS
    square[thread % 32u][thread / 32u + $ru * APART] = v_$r;
//# end
    workgroupBarrier();
    let to = row0 / 4u + thread % 8u;
    for (var down = thread / 8u; down < 32u && column0 + down < params.n; down += THREADS / 8u) {
      let start = thread % 8u * 4u;
      let four = vec4<Number>(square[down][start], square[down][start + 1u], square[down][start + 2u], square[down][start + 3u]);
      if (to < params.ldo / 4u) { out[(item * params.n + column0 + down) * (params.ldo / 4u) + to] = four; }
    }
    workgroupBarrier();
//# else
    let to = (item * params.m + row) * params.ldo + column;
    if (column < params.ldo) {
//# for r in ROWS
      if (row + $ru * APART < params.m) { out[to + $ru * APART * params.ldo] = v_$r; }
//# end
    }
//# end
  }
}
