// A step of Fourier transforms by a fragment shader: by the method of fft.wgsl, but without memory that fragments share. Each fragment has the sums
// of its own elements, two complex numbers or four real ones: behind steps of L elements together the step of R is
//
//   X[k] = sum over r of x[k / (L * R) * L + k % L + r * n / R] * exp(-2 pi i * r * (k % (L * R)) / (L * R))
//
// Between steps a texel is the bits of two complex numbers.
//
//   SOURCE_CALLER, SOURCE_REAL, SOURCE_HALF   the input, of real numbers, of those of which the others are conjugates
//   SOURCE_SCRATCH, SOURCE_CHIRP              a step before, the chirp itself
//   TARGET_REAL, TARGET_SCRATCH               real numbers of the result, a step behind
//   CHIRP_IN, CHIRP_OUT, FILTERED, CONJUGATE_IN, CONJUGATE_OUT   as in fft.wgsl

//# if SOURCE_CALLER
uniform sampler2D input_0;
//# end
//# if SOURCE_SCRATCH
uniform usampler2D input_0;
//# end
//# if FILTERED
uniform usampler2D input_1;
//# end
//# if TARGET_SCRATCH
out uvec4 texel;
//# else
out vec4 texel;
//# end

vec2 times(vec2 a, vec2 b) { return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
vec2 conjugate(vec2 a) { return vec2(a.x, -a.y); }

// exp(-2 pi i * m / n), as fft.wgsl has it.
vec2 root(uint m, uint n) {
  uint eighth = 8u * m / n;
  uint rest = 8u * m - eighth * n;
  float x = float((eighth & 1u) != 0u ? n - rest : rest) / float(n) * 0.785398163397;
  float z = x * x;
  float sine = x + x * z * (-0.16666654611 + z * (0.0083321608736 - z * 0.00019515295891));
  float cosine = 1.0 - 0.5 * z + z * z * (0.041666645683 + z * (-0.0013887316255 + z * 0.000024433157118));
  vec2 v = ((eighth + 1u) & 2u) != 0u ? vec2(sine, cosine) : vec2(cosine, sine);
  return vec2(((eighth + 2u) & 4u) != 0u ? -v.x : v.x, eighth >= 4u ? v.y : -v.y);
}

//# if CHIRP
// a * a % m, for a < m.
uint square(uint a, uint m) {
  if (a < 65536u) return a * a % m;
  uint sum = 0u;
  uint twice = a;
  for (uint rest = a; rest > 0u; rest >>= 1u) {
    if ((rest & 1u) != 0u) sum = (sum + twice) % m;
    twice = twice * 2u % m;
  }
  return sum;
}
vec2 chirp(uint a) { return root(square(a, 2u * params[8]), 2u * params[8]); }
//# end

// The complex number of two in a texel.
vec2 half_texel(vec4 t, uint i) { return (i & 1u) != 0u ? t.zw : t.xy; }

// Element i of a line.
vec2 fetched(uint o, uint i, uint c) {
  vec2 v = vec2(0.0);
//# if SOURCE_SCRATCH
  uint e = (o * params[2] + i) * params[1] + c;
  v = half_texel(uintBitsToFloat(texelFetch(input_0, ivec2(e >> 1u & params[66], e >> 1u >> params[65]), 0)), e);
//# end
//# if SOURCE_CHIRP
  uint far = min(i, params[2] - i);
  if (far < params[8]) v = uintBitsToFloat(params[7]) * conjugate(chirp(far));
//# end
//# if SOURCE_CALLER
  uint at = i;
//# if SOURCE_HALF
  bool is_mirrored = i > params[8] / 2u;
  if (is_mirrored) at = i < params[8] ? params[8] - i : params[5];
//# end
  if (at < params[5]) {
    uint e = (o * params[5] + at) * params[1] + c;
//# if SOURCE_REAL
    v.x = texelFetch(input_0, ivec2(e >> 2u & params[66], e >> 2u >> params[65]), 0)[e & 3u];
//# else
    v = half_texel(texelFetch(input_0, ivec2(e >> 1u & params[66], e >> 1u >> params[65]), 0), e);
//# end
  }
//# if SOURCE_HALF
  if (is_mirrored) v = conjugate(v);
  // What is its own mirror image is real, whatever stands there.
  if (at == 0u || 2u * at == params[8]) v.y = 0.0;
//# end
//# end
//# if CONJUGATE_IN
  v = conjugate(v);
//# end
//# if CHIRP_IN
  v = i < params[8] ? times(v, chirp(i)) : vec2(0.0);
//# end
//# if FILTERED
  v = conjugate(times(v, half_texel(uintBitsToFloat(texelFetch(input_1, ivec2(i >> 1u & params[68], i >> 1u >> params[67]), 0)), i)));
//# end
  return v;
}

// An element of the target, which is outer x params[6] x inner.
vec2 result(uint element) {
  uint c = element % params[1];
  uint k = element / params[1] % params[6];
  uint o = element / params[1] / params[6];
  uint l = params[3];
  uint whole = l * params[4];
  uint m = k % whole;
  uint i = k / whole * l + k % l;
  uint apart = params[2] / params[4];
  vec2 v = fetched(o, i, c);
  // Every fourth root is computed anew: each product of roots is a little further off.
  vec2 first = root(m, whole);
  vec2 w = first;
  for (uint r = 1u; r < params[4]; r++) {
    v += times(fetched(o, i + r * apart, c), w);
    w = (r & 3u) == 3u ? root((r + 1u) * m % whole, whole) : times(w, first);
  }
//# if TARGET_SCRATCH
  return v;
//# else
//# if CHIRP_OUT
  v = times(conjugate(v), chirp(k));
//# end
//# if CONJUGATE_OUT
  v = conjugate(v);
//# end
  return v * uintBitsToFloat(params[7]);
//# end
}

void main() {
  uint at = uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x);
  uint last = params[0] - 1u;
//# if TARGET_REAL
  uint first = at * 4u;
  if (first > last) discard;
  texel = vec4(result(first).x, result(min(first + 1u, last)).x, result(min(first + 2u, last)).x, result(min(first + 3u, last)).x);
//# else
  uint first = at * 2u;
  if (first > last) discard;
  vec4 both = vec4(result(first), result(min(first + 1u, last)));
//# if TARGET_SCRATCH
  texel = floatBitsToUint(both);
//# else
  texel = both;
//# end
//# end
}
