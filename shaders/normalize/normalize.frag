// Rows put into proportion by a fragment shader, as normalize.wgsl: each fragment is four elements of the result one behind the other, which are
// computed from the values anew, and from what measure.frag tells of each one's row.
//
//   QUAD         the four are neighbours in one row
//   LAYER, RMS, LOGARITHMS, SCALE, BIAS   as in normalize.wgsl
//   RESULT_F16   results are rounded to f16
//   END          more is computed of each, as map/end.frag has it

uniform usampler2D input_6;
out vec4 texel;

// Where an element of the result is among the values: dimensions of rows, and then of the values in each.
uint[RANK] coordinates(uint element) {
  uint c[RANK];
//# for d in RANK
  c[$d] = element / max(params[OUT_AT + 1 + $d], 1u) % params[SIZES + $d];
//# end
  return c;
}

// The number of a value.
uint number(uint c[RANK]) {
  uint index = 0u;
//# for d in RANK
  index = index * params[SIZES + $d] + c[$d];
//# end
  return index;
}

vec4 measure(uint index) {
  uint row = index / params[2];
  return uintBitsToFloat(texelFetch(input_6, ivec2(row & params[66 + 2 * MEASURES], row >> params[65 + 2 * MEASURES]), 0));
}

f32 made(f32 v, vec4 m) {
//# if LAYER
  return ((v - m.z) - m.x) * m.y;
//# else
//# if RMS
  return v * m.x * m.y;
//# else
//# if LOGARITHMS
  return (v - m.x) - m.y;
//# else
  return (v - m.x > -104.0 ? exp(v - m.x) : 0.0) * m.y;
//# end
//# end
//# end
}

//# if QUAD
//# else
f32 result(uint element) {
  uint c[RANK] = coordinates(element);
  uint index = number(c);
  f32 result = made(value(c, index), measure(index));
//# if SCALE
  result *= scale_one(c);
//# end
//# if BIAS
  result += bias_one(c);
//# end
//# if END
  return ended(element, result);
//# else
  return result;
//# end
}
//# end

void main() {
  uint first = (uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x)) * 4u;
  if (first >= params[0]) discard;
//# if QUAD
  uint c[RANK] = coordinates(first);
  uint index = number(c);
  vec4 v = four(c, index);
  vec4 m = measure(index);
  texel = vec4(made(v.x, m), made(v.y, m), made(v.z, m), made(v.w, m));
//# if SCALE
  texel *= scale_four(c);
//# end
//# if BIAS
  texel += bias_four(c);
//# end
//# if END
  texel = ended_four(first, texel);
//# end
//# else
  uint last = params[0] - 1u;
  texel = vec4(result(first), result(min(first + 1u, last)), result(min(first + 2u, last)), result(min(first + 3u, last)));
//# end
//# if RESULT_F16
  texel = vec4(nearest_f16(texel.x), nearest_f16(texel.y), nearest_f16(texel.z), nearest_f16(texel.w));
//# end
}
