// Two numbers as f16 in a word. What is too large, from 65520 on, is infinite, which pack2x16float leaves open, and of NaN some make more than 16
// bits.
fn pack(v: vec2<f32>) -> u32 {
  let bits = bitcast<vec2<u32>>(v);
  let size = bits & vec2<u32>(0x7fffffffu);
  let large = size >= vec2<u32>(0x477ff000u);
  let infinite = select(vec2<u32>(0x7c00u), vec2<u32>(0x7e00u), size > vec2<u32>(0x7f800000u));
  let ends = select(vec2<u32>(), ((bits >> vec2<u32>(16u)) & vec2<u32>(0x8000u)) | infinite, large);
  return pack2x16float(select(v, vec2<f32>(), large)) | ends.x | (ends.y << 16u);
}

// The same of four, with one look at all of them: what is large is rare.
fn pack_four(v: vec4<f32>) -> vec2<u32> {
  let size = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
  if (max(max(size.x, size.y), max(size.z, size.w)) < 0x477ff000u) { return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)); }
  return vec2<u32>(pack(v.xy), pack(v.zw));
}
