// An elementwise operation by a fragment shader, as map.wgsl: each fragment is a texel of four elements one behind the other.
//
//   QUAD         the four are in one row of the result, and all inputs have all of them
//   RESULT_F16   they are rounded to f16, and stored as f32

out Texel texel;

//# if RESULT_F16
// To the nearest of f16, of two the even one, by its bits: of the language's own way the rounding is left open.
float half_of(float a) {
  if (is_nan(a)) return a;
  uint bits = floatBitsToUint(a);
  float size = abs(a);
  // Below the least normal one they are multiples of 2^-24.
  if (size < 6.103515625e-5) return roundEven(a * 16777216.0) / 16777216.0;
  float rounded = uintBitsToFloat((bits + 0xfffu + (bits >> 13u & 1u)) & 0xffffe000u);
  return size >= 65520.0 ? uintBitsToFloat(bits & 0x80000000u | 0x7f800000u) : rounded;
}
Texel texel_of(Results v) { return Texel(half_of(v.x), half_of(v.y), half_of(v.z), half_of(v.w)); }
//# else
Texel texel_of(Results v) { return Texel(v); }
//# end

uint[RANK] coordinates(uint index) {
  uint c[RANK];
  uint rest = index;
//# for d in RANK
  c[RANK - 1 - $d] = rest % params[1 + RANK - $d];
  rest /= params[1 + RANK - $d];
//# end
  return c;
}

void main() {
  uint first = (uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x)) * 4u;
  uint count = params[0];
  if (first >= count) discard;
  uint index = params[1] + first;
//# if QUAD
  texel = texel_of(four(coordinates(first), index));
//# else
  uint last = count - 1u;
  texel = texel_of(Results(
    value(coordinates(first), index),
    value(coordinates(min(first + 1u, last)), index + 1u),
    value(coordinates(min(first + 2u, last)), index + 2u),
    value(coordinates(min(first + 3u, last)), index + 3u)
  ));
//# end
}
