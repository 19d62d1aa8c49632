// What generated programs are made of, as prelude.wgsl has it, and what every kernel is told, behind half.frag.
//
//   params  0-63  the words of src/plan/map.rs
//           64    the result's width in texels
//           65-   of each texture that is read the logarithm of its width, and the width less 1

#define f32 float
#define i32 int
#define u32 uint

uniform uint params[91];

f32 scalar_f32(uint i) { return uintBitsToFloat(params[uint(SCALARS) + i]); }
i32 scalar_i32(uint i) { return int(params[uint(SCALARS) + i]); }
u32 scalar_u32(uint i) { return params[uint(SCALARS) + i]; }
bool scalar_bool(uint i) { return params[uint(SCALARS) + i] != 0u; }

f32 select(f32 no, f32 yes, bool condition) { return condition ? yes : no; }
i32 select(i32 no, i32 yes, bool condition) { return condition ? yes : no; }
u32 select(u32 no, u32 yes, bool condition) { return condition ? yes : no; }
bool select(bool no, bool yes, bool condition) { return condition ? yes : no; }

bool both(bool a, bool b) { return a && b; }
bool either(bool a, bool b) { return a || b; }
bool is_finite(f32 a) { return (floatBitsToUint(a) & 0x7f800000u) != 0x7f800000u; }
bool is_negative(f32 a) { return floatBitsToUint(a) >> 31u != 0u; }
f32 nan_of(f32 a) { return uintBitsToFloat(floatBitsToUint(a) | 0x7fc00000u); }
f32 zero_of(f32 a) { return uintBitsToFloat(floatBitsToUint(a) & 0x80000000u); }
// Of a division by infinity all remains, and not 0 times infinity; and 0 has the sign of a.
f32 remainder(f32 a, f32 b) {
  f32 r = is_finite(a) && floatBitsToUint(abs(b)) == 0x7f800000u ? a : a - b * trunc(a / b);
  return r == 0.0 ? zero_of(a) : r;
}
// As prelude.wgsl.
f32 power(f32 a, f32 b) { return a == 0.0 ? uintBitsToFloat(b < 0.0 ? 0x7f800000u : 0u) : pow(a, b); }
f32 exponential(f32 a) { return is_nan(a) ? a : exp(a); }
f32 logarithm_of(f32 a, f32 d) {
  f32 z = d / (2.0 + d);
  f32 q = z * z;
  f32 near = 2.0 * z * (1.0 + q * (0.33333333 + q * (0.2 + q * (0.14285714 + q * (0.11111111 + q * 0.09090909)))));
  return d > -0.3 && d < 0.5 ? near : a > 0.0 ? log(a) : uintBitsToFloat(a == 0.0 ? 0xff800000u : 0x7fc00000u);
}
f32 logarithm(f32 a) { return logarithm_of(a, a - 1.0); }
f32 log_1p(f32 a) { return logarithm_of(1.0 + a, a); }
f32 arctangent(f32 a) { return is_nan(a) || a == 0.0 ? a : atan(a); }
f32 round_even(f32 a) { return roundEven(a); }
u32 shift_left(u32 a, u32 b) { return a << (b & 31u); }
u32 shift_right(u32 a, u32 b) { return a >> (b & 31u); }
u32 power_u32(u32 a, u32 b) {
  u32 result = 1u;
  for (; b > 0u; b >>= 1u) {
    if ((b & 1u) != 0u) result *= a;
    a *= a;
  }
  return result;
}
i32 power_i32(i32 a, i32 b) {
  // Of a negative exponent only 1 and -1 have a whole power.
  if (b < 0) return a == 1 ? 1 : (a == -1 ? ((b & 1) != 0 ? -1 : 1) : 0);
  return int(power_u32(uint(a), uint(b)));
}

f32 f32_of_f32(f32 a) { return a; }
f32 f32_of_i32(i32 a) { return f32(a); }
f32 f32_of_u32(u32 a) { return f32(a); }
f32 f32_of_bool(bool a) { return a ? 1.0 : 0.0; }
// Outside of what an integer can be the language leaves open what comes out.
i32 i32_of_f32(f32 a) {
  if (is_nan(a)) return 0;
  return a >= 2147483648.0 ? 0x7fffffff : (a < -2147483648.0 ? int(0x80000000u) : int(a));
}
i32 i32_of_u32(u32 a) { return int(a); }
i32 i32_of_bool(bool a) { return a ? 1 : 0; }
u32 u32_of_f32(f32 a) {
  if (is_nan(a) || a <= 0.0) return 0u;
  return a >= 4294967296.0 ? 0xffffffffu : uint(a);
}
u32 u32_of_i32(i32 a) { return uint(a); }
u32 u32_of_bool(bool a) { return a ? 1u : 0u; }
bool bool_of_f32(f32 a) { return a != 0.0; }
bool bool_of_i32(i32 a) { return a != 0; }
bool bool_of_u32(u32 a) { return a != 0u; }
