// What is applied to the elements of a result in the end.
//
//   ACTIVATION  the number of a function in src/ops/matmul/activation.rs, or 0

//# if ACTIVATION
fn activate(x: vec4<f32>) -> vec4<f32> {
  // A NaN stays. By bits, those of -0 to -infinity, since drivers take a comparison of floats for a maximum, which drops it.
  if (ACTIVATION == 1u) { return select(x, vec4<f32>(), bitcast<vec4<u32>>(x) - vec4<u32>(1u << 31u) <= vec4<u32>(0x7f800000u)); }
  if (ACTIVATION == 2u) { return x / (1.0 + exp(-x * (1.59576912 + 0.0713548163 * x * x))); }
  // Of NaN some drivers know a power.
  if (ACTIVATION == 3u) { return select(1.0 / (1.0 + exp(-x)), x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u)); }
  if (ACTIVATION == 5u) { return x / (1.0 + exp(-x)); }
  // tanh: near zero by its series, where the other way would lose digits.
  let e = exp(-2.0 * abs(x));
  let y = (1.0 - e) / (1.0 + e);
  let s = x * x;
  let near = x * (1.0 + s * (-0.333333333 + s * (0.133333333 - s * 0.0539682540)));
  return select(select(y, -y, x < vec4<f32>()), near, abs(x) < vec4<f32>(0.125));
}
//# end
