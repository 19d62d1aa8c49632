// What the values of each row are told (normalize.wgsl), by a fragment shader: joins the states of a row's parts, as merge.frag does; a fragment is
// a row, and its texel what normalize.frag reads.
//
//   LAYER   the mean as its distance from a value, the factor, the value
//   RMS     two factors
//   else    the pivot, and by what powers are multiplied, or with LOGARITHMS what is taken away

uniform usampler2D input_0;
out uvec4 texel;

vec4 measure(State s) {
//# if LAYER
  return vec4(s.z, 1.0 / sqrt(s.y * (s.x / divisor()) + uintBitsToFloat(params[EPSILON])), s.w, 0.0);
//# else
//# if RMS
  // As normalize.wgsl.
  f32 by = bits_of(s.x) != 0u ? 0.25 : 1.0;
  f32 root = finish(vec3(s.x * 0.0625, s.y * by * by, s.z));
  return vec4(by, 1.0 / (root < 1.0e18 ? max(root, sqrt(root * root + uintBitsToFloat(params[EPSILON]) * by * by)) : root), 0.0, 0.0);
//# else
  // No number is in proportion to an infinity, to NaN, or to zeros alone.
  bool none = s.x <= 0x007fffffu || s.x >= 0xff800000u;
  f32 sum = of_bits(s.y);
//# if LOGARITHMS
  return vec4(pivot(s.x), none ? nan_of(sum) : log(sum), 0.0, 0.0);
//# else
  return vec4(pivot(s.x), none ? nan_of(sum) : 1.0 / sum, 0.0, 0.0);
//# end
//# end
//# end
}

void main() {
  uint row = uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x);
  if (row >= params[0]) discard;
  uint i = row * params[5];
  uint end = i + params[5];
  State state = empty();
  while (i < end) {
    State some = empty();
    for (uint stop = min(i + 64u, end); i < stop; i += 1u) {
      some = join(some, loaded(texelFetch(input_0, ivec2(i & params[66], i >> params[65]), 0)));
    }
    state = join(state, some);
  }
  texel = floatBitsToUint(measure(state));
}
