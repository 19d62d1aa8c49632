// Pools by a fragment shader: each fragment four elements of the result, one behind the other, each from its own window. Words and
// constants are those of pool.wgsl.
//
//   RESULT_F16   results are rounded to f16

//# if PLACE
#define Texel uvec4
#define Output u32
//# else
#define Texel vec4
#define Output f32
//# end
out Texel texel;

Output value(uint index) {
  const uint z = 3u;
  const uint y = 10u;
  const uint x = 17u;
  uint plane = index / (steps_of(x) * steps_of(y) * steps_of(z));
  ivec3 start = ivec3(
    start_of(x, index % steps_of(x)),
    start_of(y, index / steps_of(x) % steps_of(y)),
    start_of(z, index / (steps_of(x) * steps_of(y)) % steps_of(z))
  );
  uvec3 first = uvec3(first_tap(x, start.x, 0u), first_tap(y, start.y, 0u), first_tap(z, start.z, 0u));
  uvec3 end = uvec3(first_tap(x, start.x, input_of(x)), first_tap(y, start.y, input_of(y)), first_tap(z, start.z, input_of(z)));
//# if MAX
  f32 best = uintBitsToFloat(params[2]);
  // The first of the plane, if there is none.
  uint place = plane * input_of(z) * input_of(y) * input_of(x);
  bool found = false;
//# else
  f32 sum = 0.0;
//# end
  for (uint h = first.z; h < end.z; h++) {
    uint layer = plane * input_of(z) + uint(start.z + int(h * dilation_of(z)));
    for (uint i = first.y; i < end.y; i++) {
      uint line = (layer * input_of(y) + uint(start.y + int(i * dilation_of(y)))) * input_of(x);
//# if MAX
//# else
      f32 of_line = 0.0;
//# end
      for (uint j = first.x; j < end.x; j++) {
        uint at = line + uint(start.x + int(j * dilation_of(x)));
        f32 v = image_at(at);
//# if MAX
        if (!found || (!is_nan(best) && (is_nan(v) || v > best))) {
          best = v;
          place = at;
          found = true;
        }
//# else
        of_line += v;
//# end
      }
//# if MAX
//# else
      sum += of_line;
//# end
    }
  }
//# if PLACE
  return place + params[1];
//# else
//# if MAX
  return best;
//# else
//# if PADDED
  float count = f32(first_tap(z, start.z, input_of(z) + after_of(z))) * f32(first_tap(y, start.y, input_of(y) + after_of(y)))
    * f32(first_tap(x, start.x, input_of(x) + after_of(x)));
//# else
  float count = f32(end.z - first.z) * f32(end.y - first.y) * f32(end.x - first.x);
//# end
//# if RESULT_F16
  return nearest_f16(sum / count);
//# else
  return sum / count;
//# end
//# end
//# end
}

void main() {
  uint first = (uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x)) * 4u;
  if (first >= params[0]) discard;
  uint last = params[0] - 1u;
  texel = Texel(value(first), value(min(first + 1u, last)), value(min(first + 2u, last)), value(min(first + 3u, last)));
}
