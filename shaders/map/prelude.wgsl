// What generated programs are made of; the same names are in prelude.cuh and prelude.glsl. Numbers are honest as far as the hardware
// is: what is not a number is told by its bits, since WGSL lets a compiler take comparisons for granted.

// Without a branch, as && and || would have.
fn both(a: bool, b: bool) -> bool { return a & b; }
fn either(a: bool, b: bool) -> bool { return a | b; }
fn is_nan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }
fn is_finite(a: f32) -> bool { return (bitcast<u32>(a) & 0x7f800000u) != 0x7f800000u; }
fn is_negative(a: f32) -> bool { return (bitcast<u32>(a) >> 31u) != 0u; }
fn nan_of(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) | 0x7fc00000u); }
fn zero_of(a: f32) -> f32 { return bitcast<f32>(bitcast<u32>(a) & 0x80000000u); }
// Of a division by infinity all remains, and not 0 times infinity; and 0 has the sign of a.
fn remainder(a: f32, b: f32) -> f32 {
  let r = select(a % b, a, both(is_finite(a), (bitcast<u32>(b) & 0x7fffffffu) == 0x7f800000u));
  return select(r, zero_of(a), r == 0.0);
}
// Of 0 some drivers know no power, and others that of a small number.
fn power(a: f32, b: f32) -> f32 { return select(pow(a, b), bitcast<f32>(select(0u, 0x7f800000u, b < 0.0)), a == 0.0); }
// Of NaN some have a number, and of what is not above 0 a logarithm.
fn exponential(a: f32) -> f32 { return select(exp(a), a, is_nan(a)); }
// ln a, of which d is a - 1: near 1, where the language promises digits behind the point alone, by the series of 2 artanh(d / (2 + d)).
fn logarithm_of(a: f32, d: f32) -> f32 {
  let z = d / (2.0 + d);
  let q = z * z;
  let near = 2.0 * z * (1.0 + q * (0.33333333 + q * (0.2 + q * (0.14285714 + q * (0.11111111 + q * 0.09090909)))));
  return select(select(bitcast<f32>(select(0x7fc00000u, 0xff800000u, a == 0.0)), log(a), a > 0.0), near, both(d > -0.3, d < 0.5));
}
fn logarithm(a: f32) -> f32 { return logarithm_of(a, a - 1.0); }
fn log_1p(a: f32) -> f32 { return logarithm_of(1.0 + a, a); }
// Nor do they know what NaN has, nor the sign of 0.
fn arctangent(a: f32) -> f32 { return select(atan(a), a, either(is_nan(a), a == 0.0)); }
fn round_even(a: f32) -> f32 { return round(a); }
// To the nearest of f16, of two the even one, by its bits: of the language's own way the rounding is left open.
fn nearest_f16(a: f32) -> f32 {
  let bits = bitcast<u32>(a);
  let size = bits & 0x7fffffffu;
  let rounded = bitcast<f32>((bits + 0xfffu + ((bits >> 13u) & 1u)) & 0xffffe000u);
  // Below the least normal one they are multiples of 2^-24.
  let tiny = round(a * 16777216.0) / 16777216.0;
  let large = bitcast<f32>((bits & 0x80000000u) | 0x7f800000u);
  return select(select(select(rounded, tiny, size < 0x38800000u), large, size >= 0x477ff000u), a, size > 0x7f800000u);
}
fn shift_left(a: u32, b: u32) -> u32 { return a << (b & 31u); }
fn shift_right(a: u32, b: u32) -> u32 { return a >> (b & 31u); }
fn power_u32(a: u32, b: u32) -> u32 {
  var result = 1u;
  var square = a;
  for (var rest = b; rest > 0u; rest >>= 1u) {
    if ((rest & 1u) != 0u) { result *= square; }
    square *= square;
  }
  return result;
}
fn power_i32(a: i32, b: i32) -> i32 {
  // Of a negative exponent only 1 and -1 have a whole power.
  if (b < 0) { return select(select(0, select(1, -1, (b & 1) != 0), a == -1), 1, a == 1); }
  return bitcast<i32>(power_u32(bitcast<u32>(a), bitcast<u32>(b)));
}

fn f32_of_f32(a: f32) -> f32 { return a; }
fn f32_of_i32(a: i32) -> f32 { return f32(a); }
fn f32_of_u32(a: u32) -> f32 { return f32(a); }
fn f32_of_bool(a: bool) -> f32 { return select(0.0, 1.0, a); }
// The least float that does not fit has no neighbour that does, and of NaN the language leaves open what comes out.
fn i32_of_f32(a: f32) -> i32 { return select(select(i32(a), 2147483647, a >= 2147483648.0), 0, is_nan(a)); }
fn i32_of_u32(a: u32) -> i32 { return bitcast<i32>(a); }
fn i32_of_bool(a: bool) -> i32 { return select(0, 1, a); }
fn u32_of_f32(a: f32) -> u32 { return select(select(u32(a), 4294967295u, a >= 4294967296.0), 0u, is_nan(a)); }
fn u32_of_i32(a: i32) -> u32 { return bitcast<u32>(a); }
fn u32_of_bool(a: bool) -> u32 { return select(0u, 1u, a); }
fn bool_of_f32(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) != 0u; }
fn bool_of_i32(a: i32) -> bool { return a != 0; }
fn bool_of_u32(a: u32) -> bool { return a != 0u; }
