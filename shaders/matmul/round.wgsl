// The end of a product whose result is of f16 and whose rows start anywhere: adds up the parts of its sums, always in the same order, and
// rounds them. Two elements share a word and may be of different rows, so that each word is one invocation's.
//
//   binding  name    stored as
//   0        parts   params.k times the matrices of all items of a batch in f32, each m rows of lda elements
//            and those of store.wgsl; of out, what lies between rows is left as it is

@group(0) @binding(0) var<storage, read> parts: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
  let rows = params.batch * params.m;
  let end = params.out_start + (rows - 1u) * params.ldo + params.n;
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
        sum += parts[(part * rows + row) * params.lda + column];
      }
      begin(row / params.m);
      pair[half] = finished(at, row % params.m, column, vec4<f32>(sum, 0.0, 0.0, 0.0)).x;
    }
    out[word] = pack(pair);
  }
}
