// What f16 is to kernels that compute in f32. Drivers may take what is not a number for any number: it is told by its bits.

precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;

bool is_nan(float a) { return (floatBitsToUint(a) & 0x7fffffffu) > 0x7f800000u; }
// To the nearest of f16, of two the even one, by its bits: of the language's own way the rounding is left open.
float nearest_f16(float a) {
  if (is_nan(a)) return a;
  uint bits = floatBitsToUint(a);
  float size = abs(a);
  // Below the least normal one they are multiples of 2^-24.
  if (size < 6.103515625e-5) return roundEven(a * 16777216.0) / 16777216.0;
  float rounded = uintBitsToFloat((bits + 0xfffu + (bits >> 13u & 1u)) & 0xffffe000u);
  return size >= 65520.0 ? uintBitsToFloat(bits & 0x80000000u | 0x7f800000u) : rounded;
}
