// Convolution by a fragment shader: each fragment four elements of the result, one behind the other, each a sum over what its window sees.
// The words are those of a CPU's launch (src/plan/conv.rs): images, groups, channels and filters of a group, activation, two windows.
//
//   QUAD         the four are of one filter; with SLIDES they are in one row, and windows lie side by side
//   BIAS         each filter has a number that is added
//   ACTIVATION   as in matmul/store.wgsl
//   RESULT_F16   results are rounded to f16
//   END          more is computed of each, as map/end.frag has it

uniform sampler2D input_1;
f32 weight_at(uint i) { return texelFetch(input_1, ivec2(i >> 2u & params[68], i >> 2u >> params[67]), 0)[i & 3u]; }
//# if BIAS
uniform sampler2D input_2;
f32 bias_at(uint i) { return texelFetch(input_2, ivec2(i >> 2u & params[70], i >> 2u >> params[69]), 0)[i & 3u]; }
//# end

out vec4 texel;

f32 activate(f32 x) {
#if ACTIVATION == 1
  return x < 0.0 && !is_nan(x) ? 0.0 : x;
#elif ACTIVATION == 2
  return x / (1.0 + exp(-x * (1.59576912 + 0.0713548163 * x * x)));
#elif ACTIVATION == 3
  // Of NaN some drivers know a power.
  return is_nan(x) ? x : 1.0 / (1.0 + exp(-x));
#elif ACTIVATION == 4
  f32 e = exp(-2.0 * abs(x));
  f32 s = x * x;
  return abs(x) < 0.125 ? x * (1.0 + s * (-0.333333333 + s * (0.133333333 - s * 0.0539682540))) : sign(x) * (1.0 - e) / (1.0 + e);
#elif ACTIVATION == 5
  return x / (1.0 + exp(-x));
#else
  return x;
#endif
}

f32 finished(uint index, f32 sum, f32 bias) {
//# if END
  return ended(index, activate(sum + bias));
//# else
//# if RESULT_F16
  return nearest_f16(activate(sum + bias));
//# else
  return activate(sum + bias);
//# end
//# end
}

//# if QUAD
// Four neighbours of one filter's results, for which each weight is fetched once.
vec4 values(uint index) {
  const uint y = 5u;
  const uint x = 12u;
  uint of_image = params[1] * params[3];
  uint of_plane = steps_of(x) * steps_of(y);
  uint plane = index / of_plane;
  uint row = plane % of_image;
  uint image = (plane / of_image * params[1] + row / params[3]) * params[2];
  ivec4 start_x;
  ivec4 start_y;
//# for l in 4
  start_x[$l] = start_of(x, (index + $lu) % steps_of(x));
  start_y[$l] = start_of(y, (index + $lu) % of_plane / steps_of(x));
//# end
  // Taps that any of the four has.
  uint first = first_tap(y, start_y.w, 0u);
  uint end = first_tap(y, start_y.x, input_of(y));
  vec4 sum = vec4(0.0);
  for (uint c = 0u; c < params[2]; c++) {
    // Sums of sums lose less than one long sum.
    vec4 some = vec4(0.0);
    for (uint i = first; i < end; i++) {
      uint weight = ((row * params[2] + c) * taps_of(y) + i) * taps_of(x);
      uvec4 at_y = uvec4(start_y + int(i * dilation_of(y)));
      uvec4 line = ((image + c) * input_of(y) + at_y) * input_of(x);
//# if SLIDES
      // All are in one row, each begins where the one before it has its second tap.
      int at = start_x.x;
      vec4 v = vec4(0.0, image_at(line.x + uint(at)), image_at(line.x + uint(at + 1)), image_at(line.x + uint(at + 2)));
      for (uint j = 0u; j < taps_of(x); j++) {
        v = vec4(v.yzw, image_at(line.x + uint(at + 3)));
        // What lies outside is selected away, since no weight times zero need be zero.
        some += mix(vec4(0.0), weight_at(weight + j) * v, lessThan(uvec4(at + ivec4(0, 1, 2, 3)), uvec4(input_of(x))));
        at++;
      }
//# else
      uvec4 outside = uvec4(greaterThanEqual(at_y, uvec4(input_of(y)))) * 0xffffffffu;
      for (uint j = 0u; j < taps_of(x); j++) {
        uvec4 at = uvec4(start_x + int(j * dilation_of(x)));
        vec4 v = vec4(image_at(line.x + at.x), image_at(line.y + at.y), image_at(line.z + at.z), image_at(line.w + at.w));
        some += mix(vec4(0.0), weight_at(weight + j) * v, lessThan(at | outside, uvec4(input_of(x))));
      }
//# end
    }
    sum += some;
  }
  f32 bias = 0.0;
//# if BIAS
  bias = bias_at(row);
//# end
//# if END
  sum += bias;
  return ended_four(index, vec4(activate(sum.x), activate(sum.y), activate(sum.z), activate(sum.w)));
//# else
  return vec4(
    finished(index, sum.x, bias),
    finished(index + 1u, sum.y, bias),
    finished(index + 2u, sum.z, bias),
    finished(index + 3u, sum.w, bias)
  );
//# end
}
//# else
f32 value(uint index) {
  const uint y = 5u;
  const uint x = 12u;
  uint of_image = params[1] * params[3];
  uint plane = index / (steps_of(x) * steps_of(y));
  uint row = plane % of_image;
  uint image = (plane / of_image * params[1] + row / params[3]) * params[2];
  ivec2 start = ivec2(start_of(x, index % steps_of(x)), start_of(y, index / steps_of(x) % steps_of(y)));
  uvec2 first = uvec2(first_tap(x, start.x, 0u), first_tap(y, start.y, 0u));
  uvec2 end = uvec2(first_tap(x, start.x, input_of(x)), first_tap(y, start.y, input_of(y)));
  f32 sum = 0.0;
  for (uint c = 0u; c < params[2]; c++) {
    // Sums of sums lose less than one long sum.
    f32 some = 0.0;
    for (uint i = first.y; i < end.y; i++) {
      uint line = ((image + c) * input_of(y) + uint(start.y + int(i * dilation_of(y)))) * input_of(x);
      uint weight = ((row * params[2] + c) * taps_of(y) + i) * taps_of(x);
      for (uint j = first.x; j < end.x; j++) {
        some += weight_at(weight + j) * image_at(line + uint(start.x + int(j * dilation_of(x))));
      }
    }
    sum += some;
  }
  f32 bias = 0.0;
//# if BIAS
  bias = bias_at(row);
//# end
  return finished(index, sum, bias);
}
//# end

void main() {
  uint first = (uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x)) * 4u;
  uint last = params[0] * params[1] * params[3] * steps_of(5u) * steps_of(12u) - 1u;
  if (first > last) discard;
//# if QUAD
  texel = values(first);
//# else
  texel = vec4(value(first), value(min(first + 1u, last)), value(min(first + 2u, last)), value(min(first + 3u, last)));
//# end
}
