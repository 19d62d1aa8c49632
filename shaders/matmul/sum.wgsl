// The end of a product that was split over k: adds up the parts, always in the same order, and stores the result.
//
//   binding  name    stored as
//   0        parts   params.k times the matrices of all items of a batch, each m rows of lda elements, lda a multiple of 4
//            and those of store.wgsl
//
// An invocation adds up four elements of a row.

@group(0) @binding(0) var<storage, read> parts: array<vec4<f32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) invocation: vec3<u32>) {
  let across = params.lda / 4u;
  let size = params.batch * params.m * across;
  let i = invocation.x;
  if (i >= size) { return; }
  var sum = vec4<f32>();
  // Eight at a time are fetched before they are added.
  var part = 0u;
  for (; part + 8u <= params.k; part += 8u) {
//# for u in 8
    let part_$u = parts[(part + $uu) * size + i];
//# end
//# for u in 8
    sum += part_$u;
//# end
  }
  for (; part < params.k; part++) {
    sum += parts[part * size + i];
  }
  let row = i / across;
  let item = row / params.m;
  begin(item);
  store(item, row % params.m, i % across * 4u, sum);
}
