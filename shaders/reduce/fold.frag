// What is kept of the values that were folded so far, as fold.wgsl tells and names it; and as a texel, which `stored` makes of it and `loaded` reads.

//# if OF_F32
#define Value f32
uint bits_of(f32 v) { return floatBitsToUint(v); }
f32 of_bits(uint bits) { return uintBitsToFloat(bits); }
//# else
//# if OF_I32
#define Value i32
//# else
#define Value u32
//# end
uint bits_of(Value v) { return uint(v); }
Value of_bits(uint bits) { return Value(bits); }
//# end
//# if ARG
#define Output u32
//# else
#define Output Value
//# end

f32 divisor() { return uintBitsToFloat(params[DIVISOR]); }

//# if KEYS
uint key(Value v) {
  uint bits = bits_of(v);
//# if OF_F32
  if (is_nan(v)) return 0xffffffffu;
  if (bits == 0x80000000u) bits = 0u;
  bits = bits >> 31u != 0u ? ~bits : bits | 0x80000000u;
//# else
//# if OF_I32
  bits ^= 0x80000000u;
//# end
//# end
//# if SMALLEST
  bits = ~bits;
//# end
  return bits;
}
Value value_of(uint key) {
//# if SMALLEST
  uint bits = ~key;
//# else
  uint bits = key;
//# end
//# if OF_F32
  if (key == 0xffffffffu) return of_bits(0x7fffffffu);
  return of_bits(bits >> 31u != 0u ? bits & 0x7fffffffu : ~bits);
//# else
//# if OF_I32
  return of_bits(bits ^ 0x80000000u);
//# else
  return bits;
//# end
//# end
}
//# end

//# if SUM
#define State Value
State empty() { return Value(0); }
State lift(Value v, uint i) { return v; }
State join(State a, State b) { return a + b; }
//# if DIVIDES
Output finish(State s) { return s / divisor(); }
//# else
Output finish(State s) { return s; }
//# end
uvec4 stored(State s) { return uvec4(bits_of(s), 0u, 0u, 0u); }
State loaded(uvec4 t) { return of_bits(t.x); }
//# end

//# if PROD
//# if OF_F32
// A number from 1 up to 2, and by which power of two: a product of some may be beyond all numbers where that of all is not.
#define State vec2
const f32 MOST_POWER = 8388608.0;
State parted(f32 v, f32 power) {
  uint exponent = (bits_of(v) >> 23u) & 255u;
  if (exponent - 1u >= 254u) return vec2(v, power);
  return vec2(of_bits((bits_of(v) & 0x807fffffu) | 0x3f800000u), power + f32(exponent) - 127.0);
}
State empty() { return vec2(1.0, 0.0); }
State lift(f32 v, uint i) {
  if ((bits_of(v) & 0x7f800000u) != 0u) return parted(v, 0.0);
  // What is below all normal numbers is a whole number of the least.
  f32 whole = f32(bits_of(v) & 0x7fffffu);
  return parted(bits_of(v) >> 31u != 0u ? -whole : whole, -149.0);
}
State join(State a, State b) { return parted(a.x * b.x, clamp(a.y + b.y, -MOST_POWER, MOST_POWER)); }
f32 power_of_two(int power) { return of_bits(uint(power + 127) << 23u); }
// In two steps, since the power alone may be beyond all numbers.
Output finish(State s) {
  int power = int(clamp(s.y, -160.0, 254.0));
  return s.x * power_of_two(power >> 1) * power_of_two(power - (power >> 1));
}
uvec4 stored(State s) { return uvec4(floatBitsToUint(s), 0u, 0u); }
State loaded(uvec4 t) { return uintBitsToFloat(t.xy); }
//# else
#define State Value
State empty() { return Value(1); }
State lift(Value v, uint i) { return v; }
State join(State a, State b) { return a * b; }
Output finish(State s) { return s; }
uvec4 stored(State s) { return uvec4(bits_of(s), 0u, 0u, 0u); }
State loaded(uvec4 t) { return of_bits(t.x); }
//# end
//# end

//# if EXTREME
#define State uint
State empty() { return 0u; }
State lift(Value v, uint i) { return key(v); }
State join(State a, State b) { return max(a, b); }
Output finish(State s) { return value_of(s); }
uvec4 stored(State s) { return uvec4(s, 0u, 0u, 0u); }
State loaded(uvec4 t) { return t.x; }
//# end

//# if ARG
// The key, and the place.
#define State uvec2
State empty() { return uvec2(0u, 0xffffffffu); }
State lift(Value v, uint i) { return uvec2(key(v), i); }
State join(State a, State b) { return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a; }
Output finish(State s) { return s.y; }
uvec4 stored(State s) { return uvec4(s, 0u, 0u); }
State loaded(uvec4 t) { return t.xy; }
//# end

//# if MOMENTS
// How many, the mean of squared distances from their mean, and the mean as its distance from a value.
#define State vec4
f32 pivot;
State empty() { return vec4(0.0); }
State lift(f32 v, uint i) { return vec4(1.0, is_finite(v) ? 0.0 : nan_of(v), v - pivot, pivot); }
State join(State a, State b) {
  if (a.x == 0.0) return b;
  if (b.x == 0.0) return a;
  f32 count = a.x + b.x;
  f32 share_a = a.x / count;
  f32 share_b = b.x / count;
  f32 distance = (b.z - a.z) + (b.w - a.w);
  f32 spread = a.y * share_a + b.y * share_b + (distance * share_a) * (distance * share_b);
  // As fold.wgsl: of two values the nearer is kept.
  f32 mean_a = a.z + distance * share_b;
  f32 mean_b = b.z - distance * share_a;
  return abs(mean_b) < abs(mean_a) ? vec4(count, spread, mean_b, b.w) : vec4(count, spread, mean_a, a.w);
}
//# if ROOT
Output finish(State s) { return sqrt(s.y * (s.x / divisor())); }
//# else
Output finish(State s) { return s.y * (s.x / divisor()); }
//# end
uvec4 stored(State s) { return floatBitsToUint(s); }
State loaded(uvec4 t) { return uintBitsToFloat(t); }
//# end

//# if NORM
// Squares of large numbers, of those between and of small ones.
#define State vec3
State empty() { return vec3(0.0); }
State lift(f32 v, uint i) {
  uint size = bits_of(v) & 0x7fffffffu;
  bool is_large = size > 0x57000000u;
  bool is_small = size < 0x20000000u;
  f32 s = v * (is_large ? 2.0679515e-25 : (is_small ? 3.7778932e22 : 1.0));
  return is_large ? vec3(s * s, 0.0, 0.0) : (is_small ? vec3(0.0, 0.0, s * s) : vec3(0.0, s * s, 0.0));
}
State join(State a, State b) { return a + b; }
Output finish(State s) {
//# if DIVIDES
  f32 share = 1.0 / divisor();
//# else
  f32 share = 1.0;
//# end
  if (bits_of(s.x) != 0u) return 4.8357033e24 * sqrt((s.x + s.y * 2.0679515e-25 * 2.0679515e-25) * share);
  f32 middle = sqrt(s.y);
  f32 small = 2.646978e-23 * sqrt(s.z);
  f32 larger = max(middle, small);
  f32 ratio = min(middle, small) / (larger > 0.0 ? larger : 1.0);
  return larger * sqrt((1.0 + ratio * ratio) * share);
}
uvec4 stored(State s) { return uvec4(floatBitsToUint(s), 0u); }
State loaded(uvec4 t) { return uintBitsToFloat(t.xyz); }
//# end

//# if EXPONENTIAL
// The largest value's key, and the bits of the sum of all powers by the largest.
#define State uvec2
f32 pivot(uint key) { return value_of(clamp(key, 0x00800000u, 0xff7fffffu)); }
f32 power_of(f32 v, f32 by) { return v - by > -104.0 ? exp(v - by) : 0.0; }
State empty() { return uvec2(0u); }
State lift(f32 v, uint i) { return uvec2(key(v), key(v) > 0x007fffffu ? floatBitsToUint(1.0) : 0u); }
State join(State a, State b) {
  uint k = max(a.x, b.x);
  f32 p = pivot(k);
  f32 sum = of_bits(a.y) * power_of(pivot(a.x), p) + of_bits(b.y) * power_of(pivot(b.x), p);
  return uvec2(k, bits_of(sum));
}
Output finish(State s) {
  if (s.x <= 0x007fffffu || s.x >= 0xff800000u) return value_of(s.x);
  return pivot(s.x) + log(of_bits(s.y));
}
uvec4 stored(State s) { return uvec4(s, 0u, 0u); }
State loaded(uvec4 t) { return t.xy; }
//# end
