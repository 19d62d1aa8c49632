// An elementwise operation by a fragment shader, as map.wgsl: each fragment is a texel of four elements one behind the other.
//
//   QUAD         the four are in one row of the result, and all inputs have all of them
//   RESULT_F16   they are rounded to f16, and stored as f32

out Texel texel;

//# if RESULT_F16
Texel texel_of(Results v) { return Texel(nearest_f16(v.x), nearest_f16(v.y), nearest_f16(v.z), nearest_f16(v.w)); }
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
