// The end of a product whose result is of f16 and whose rows start anywhere: adds up the parts of its sums, always in the same order, and
// rounds them. Two elements share a word and may be of different rows, so that each word is one invocation's.
//
//   binding  name    stored as
//   0        parts   params.k matrices of m rows of lda elements, in f32
//   2        out     m x n in f16, rows ldo apart; what lies between is left as it is
//   3        params
//   4        c       m x n in f16, only if READS_C

struct Params {
  m: u32, k: u32, n: u32,
  lda: u32, ldb: u32, ldc: u32, ldo: u32,
  a_start: u32, b_start: u32, c_start: u32, out_start: u32,
  alpha: f32, beta: f32,
  k_part: u32,
}

@group(0) @binding(0) var<storage, read> parts: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;
@group(0) @binding(3) var<uniform> params: Params;
//# if READS_C
@group(0) @binding(4) var<storage, read> c: array<u32>;
//# end

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let end = params.out_start + (params.m - 1u) * params.ldo + params.n;
  for (var word = params.out_start / 2u + invocation.x; word <= (end - 1u) / 2u; word += groups.x * THREADS) {
    var pair = unpack2x16float(out[word]);
    for (var half = 0u; half < 2u; half++) {
      let at = word * 2u + half;
      if (at < params.out_start || at >= end) { continue; }
      let row = (at - params.out_start) / params.ldo;
      let column = (at - params.out_start) % params.ldo;
      if (column >= params.n) { continue; }
      var sum = 0.0;
      for (var part = 0u; part < params.k; part++) {
        sum += parts[(part * params.m + row) * params.lda + column];
      }
      sum *= params.alpha;
//# if READS_C
      let i = params.c_start + row * params.ldc + column;
      sum += params.beta * unpack2x16float(c[i / 2u])[i % 2u];
//# end
      pair[half] = sum;
    }
    out[word] = pack2x16float(pair);
  }
}
