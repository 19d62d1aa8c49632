// Made of the table in src/ops/elementwise/function.rs: LAPIDARY_BLESS=1 cargo test --lib interpretation
static __device__ __forceinline__ f32 add_f32(f32 a, f32 b) {
return a + b;
}
static __device__ __forceinline__ i32 add_i32(i32 a, i32 b) {
return a + b;
}
static __device__ __forceinline__ u32 add_u32(u32 a, u32 b) {
return a + b;
}
static __device__ __forceinline__ f32 sub_f32(f32 a, f32 b) {
return a - b;
}
static __device__ __forceinline__ i32 sub_i32(i32 a, i32 b) {
return a - b;
}
static __device__ __forceinline__ u32 sub_u32(u32 a, u32 b) {
return a - b;
}
static __device__ __forceinline__ f32 mul_f32(f32 a, f32 b) {
return a * b;
}
static __device__ __forceinline__ i32 mul_i32(i32 a, i32 b) {
return a * b;
}
static __device__ __forceinline__ u32 mul_u32(u32 a, u32 b) {
return a * b;
}
static __device__ __forceinline__ f32 div_f32(f32 a, f32 b) {
return a / b;
}
static __device__ __forceinline__ i32 div_i32(i32 a, i32 b) {
i32 d = select(b, i32(1), either(b == i32(0), b == i32(-1)));
return select(select(a / d, -a, b == i32(-1)), i32(0), b == i32(0));
}
static __device__ __forceinline__ u32 div_u32(u32 a, u32 b) {
u32 d = select(b, u32(1), b == u32(0));
return select(a / d, u32(0), b == u32(0));
}
static __device__ __forceinline__ f32 rem_f32(f32 a, f32 b) {
return remainder(a, b);
}
static __device__ __forceinline__ i32 rem_i32(i32 a, i32 b) {
i32 d = select(b, i32(1), either(b == i32(0), b == i32(-1)));
return select(a - a / d * d, i32(0), b == i32(0));
}
static __device__ __forceinline__ u32 rem_u32(u32 a, u32 b) {
u32 d = select(b, u32(1), b == u32(0));
return select(a % d, u32(0), b == u32(0));
}
static __device__ __forceinline__ f32 mod_f32(f32 a, f32 b) {
f32 r = remainder(a, b);
return select(select(r, r + b, (r < 0.0f) != (b < 0.0f)), zero_of(b), r == 0.0f);
}
static __device__ __forceinline__ i32 mod_i32(i32 a, i32 b) {
i32 d = select(b, i32(1), either(b == i32(0), b == i32(-1)));
i32 r = a - a / d * d;
return select(select(r, r + b, both(r != i32(0), (r < i32(0)) != (b < i32(0)))),
i32(0), b == i32(0));
}
static __device__ __forceinline__ u32 mod_u32(u32 a, u32 b) {
u32 d = select(b, u32(1), b == u32(0));
return select(a % d, u32(0), b == u32(0));
}
static __device__ __forceinline__ f32 pow_f32(f32 a, f32 b) {
f32 p = select(power(abs(a), b), 1.0f, abs(a) == 1.0f);
f32 s = select(p, -p,
both(both(is_negative(a), floor(b) == b), floor(0.5f * b) != 0.5f * b));
return select(select(select(s, nan_of(a),
either(is_nan(a),
both(both(a < 0.0f, floor(b) != b), both(is_finite(a), is_finite(b))))),
nan_of(b), is_nan(b)), 1.0f, either(b == 0.0f, a == 1.0f));
}
static __device__ __forceinline__ i32 pow_i32(i32 a, i32 b) {
return power_i32(a, b);
}
static __device__ __forceinline__ u32 pow_u32(u32 a, u32 b) {
return power_u32(a, b);
}
static __device__ __forceinline__ f32 min_f32(f32 a, f32 b) {
return select(select(b, a, a < b), a + b, either(is_nan(a), is_nan(b)));
}
static __device__ __forceinline__ i32 min_i32(i32 a, i32 b) {
return select(b, a, a < b);
}
static __device__ __forceinline__ u32 min_u32(u32 a, u32 b) {
return select(b, a, a < b);
}
static __device__ __forceinline__ f32 max_f32(f32 a, f32 b) {
return select(select(b, a, a > b), a + b, either(is_nan(a), is_nan(b)));
}
static __device__ __forceinline__ i32 max_i32(i32 a, i32 b) {
return select(b, a, a > b);
}
static __device__ __forceinline__ u32 max_u32(u32 a, u32 b) {
return select(b, a, a > b);
}
static __device__ __forceinline__ f32 neg_f32(f32 a) {
return -a;
}
static __device__ __forceinline__ i32 neg_i32(i32 a) {
return -a;
}
static __device__ __forceinline__ f32 abs_f32(f32 a) {
return abs(a);
}
static __device__ __forceinline__ i32 abs_i32(i32 a) {
return select(a, -a, a < i32(0));
}
static __device__ __forceinline__ u32 abs_u32(u32 a) {
return a;
}
static __device__ __forceinline__ f32 sign_f32(f32 a) {
return select(select(abs(a), -1.0f, a < 0.0f), 1.0f, a > 0.0f);
}
static __device__ __forceinline__ i32 sign_i32(i32 a) {
return select(select(i32(0), i32(-1), a < i32(0)), i32(1), a > i32(0));
}
static __device__ __forceinline__ u32 sign_u32(u32 a) {
return select(u32(0), u32(1), a > u32(0));
}
static __device__ __forceinline__ f32 square_f32(f32 a) {
return a * a;
}
static __device__ __forceinline__ i32 square_i32(i32 a) {
return a * a;
}
static __device__ __forceinline__ u32 square_u32(u32 a) {
return a * a;
}
static __device__ __forceinline__ f32 reciprocal_f32(f32 a) {
return 1.0f / a;
}
static __device__ __forceinline__ f32 sqrt_f32(f32 a) {
return sqrt(a);
}
static __device__ __forceinline__ f32 exp_f32(f32 a) {
return exponential(a);
}
static __device__ __forceinline__ f32 log_f32(f32 a) {
return logarithm(a);
}
static __device__ __forceinline__ f32 sin_f32(f32 a) {
return sin(a);
}
static __device__ __forceinline__ f32 cos_f32(f32 a) {
return cos(a);
}
static __device__ __forceinline__ f32 tan_f32(f32 a) {
return tan(a);
}
static __device__ __forceinline__ f32 asin_f32(f32 a) {
return asin(a);
}
static __device__ __forceinline__ f32 acos_f32(f32 a) {
return acos(a);
}
static __device__ __forceinline__ f32 atan_f32(f32 a) {
return arctangent(a);
}
static __device__ __forceinline__ f32 sinh_f32(f32 a) {
f32 s = a * a;
f32 e = exponential(a);
f32 h = exponential(0.5f * abs(a));
return select(select(0.5f * e - 0.5f / e, select(0.5f, -0.5f, a < 0.0f) * h * h, abs(a) >
87.0f), a + a * s * (0.16666667f + s * (0.008333334f + s * 0.0001984127f)), abs(a)
< 0.5f);
}
static __device__ __forceinline__ f32 cosh_f32(f32 a) {
f32 e = exponential(a);
f32 h = exponential(0.5f * abs(a));
return select(0.5f * e + 0.5f / e, 0.5f * h * h, abs(a) > 87.0f);
}
static __device__ __forceinline__ f32 tanh_f32(f32 a) {
f32 s = a * a;
f32 e = quick_exp(-2.0f * abs(a));
f32 t = (1.0f - e) * quick_reciprocal(1.0f + e);
return select(select(t, -t, a < 0.0f), a *
(1.0f - s * (0.33333333f - s * (0.13333333f - s * 0.053968254f))), abs(a) < 0.125f);
}
static __device__ __forceinline__ f32 asinh_f32(f32 a) {
f32 m = abs(a);
f32 s = a * a;
f32 l = select(log_1p(m + s / (1.0f + sqrt(s + 1.0f))), logarithm(m) + 0.6931472f, m >
1.0e8f);
return select(select(l, -l, a < 0.0f), a, a == 0.0f);
}
static __device__ __forceinline__ f32 acosh_f32(f32 a) {
f32 d = a - 1.0f;
return select(select(log_1p(d + sqrt(d * (a + 1.0f))), logarithm(a) + 0.6931472f, a >
1.0e8f), nan_of(a), a < 1.0f);
}
static __device__ __forceinline__ f32 atanh_f32(f32 a) {
f32 s = a * a;
return select(0.5f * logarithm((1.0f + a) / (1.0f - a)), a + a * s *
(0.33333333f + s * (0.2f + s * 0.14285714f)), abs(a) < 0.125f);
}
static __device__ __forceinline__ f32 sigmoid_f32(f32 a) {
f32 e = quick_exp(-abs(a));
return select(1.0f, e, a < 0.0f) * quick_reciprocal(1.0f + e);
}
static __device__ __forceinline__ f32 silu_f32(f32 a) {
f32 e = quick_exp(-abs(a));
return a * select(1.0f, e, a < 0.0f) * quick_reciprocal(1.0f + e);
}
static __device__ __forceinline__ f32 gelu_tanh_f32(f32 a) {
f32 e = quick_exp(-abs(a) * (1.5957691f + 0.071354816f * a * a));
return a * select(1.0f, e, a < 0.0f) * quick_reciprocal(1.0f + e);
}
static __device__ __forceinline__ f32 relu_f32(f32 a) {
return select(select(a, 0.0f, a < 0.0f), a, is_nan(a));
}
static __device__ __forceinline__ i32 relu_i32(i32 a) {
return select(a, i32(0), a < i32(0));
}
static __device__ __forceinline__ f32 softplus_f32(f32 a) {
f32 l = log_1p(quick_exp(-abs(a)));
return select(l, a + l, a > 0.0f);
}
static __device__ __forceinline__ f32 erf_f32(f32 a) {
f32 s = a * a;
f32 m = abs(a);
f32 t = 1.0f * quick_reciprocal(1.0f + 0.3275911f * m);
f32 r = 1.0f - t *
(0.2548296f + t *
(-0.28449672f + t * (1.4214138f + t * (-1.4531521f + t * 1.0614054f)))) *
quick_exp(-s);
return select(select(r, -r, a < 0.0f), a *
(1.1283792f + s *
(-0.37612639f + s *
(0.11283792f + s *
(-0.026866171f + s *
(0.0052239776f + s *
(-0.0008548327f + s *
(0.00012055333f + s *
(-0.00001492565f + s * (0.0000016462114f + s * -0.00000016365845f))))))))), m <
1.0f);
}
static __device__ __forceinline__ f32 floor_f32(f32 a) {
return floor(a);
}
static __device__ __forceinline__ f32 ceil_f32(f32 a) {
return ceil(a);
}
static __device__ __forceinline__ f32 round_f32(f32 a) {
return round_even(a);
}
static __device__ __forceinline__ f32 trunc_f32(f32 a) {
return trunc(a);
}
static __device__ __forceinline__ f32 round_to_f16_f32(f32 a) {
return nearest_f16(a);
}
static __device__ __forceinline__ bool equal_f32(f32 a, f32 b) {
return a == b;
}
static __device__ __forceinline__ bool equal_i32(i32 a, i32 b) {
return a == b;
}
static __device__ __forceinline__ bool equal_u32(u32 a, u32 b) {
return a == b;
}
static __device__ __forceinline__ bool equal_bool(bool a, bool b) {
return a == b;
}
static __device__ __forceinline__ bool not_equal_f32(f32 a, f32 b) {
return !(a == b);
}
static __device__ __forceinline__ bool not_equal_i32(i32 a, i32 b) {
return a != b;
}
static __device__ __forceinline__ bool not_equal_u32(u32 a, u32 b) {
return a != b;
}
static __device__ __forceinline__ bool not_equal_bool(bool a, bool b) {
return a != b;
}
static __device__ __forceinline__ bool less_f32(f32 a, f32 b) {
return a < b;
}
static __device__ __forceinline__ bool less_i32(i32 a, i32 b) {
return a < b;
}
static __device__ __forceinline__ bool less_u32(u32 a, u32 b) {
return a < b;
}
static __device__ __forceinline__ bool less_equal_f32(f32 a, f32 b) {
return a <= b;
}
static __device__ __forceinline__ bool less_equal_i32(i32 a, i32 b) {
return a <= b;
}
static __device__ __forceinline__ bool less_equal_u32(u32 a, u32 b) {
return a <= b;
}
static __device__ __forceinline__ bool greater_f32(f32 a, f32 b) {
return a > b;
}
static __device__ __forceinline__ bool greater_i32(i32 a, i32 b) {
return a > b;
}
static __device__ __forceinline__ bool greater_u32(u32 a, u32 b) {
return a > b;
}
static __device__ __forceinline__ bool greater_equal_f32(f32 a, f32 b) {
return a >= b;
}
static __device__ __forceinline__ bool greater_equal_i32(i32 a, i32 b) {
return a >= b;
}
static __device__ __forceinline__ bool greater_equal_u32(u32 a, u32 b) {
return a >= b;
}
static __device__ __forceinline__ bool is_nan_f32(f32 a) {
return is_nan(a);
}
static __device__ __forceinline__ bool is_inf_f32(f32 a) {
return both(!is_nan(a), !is_finite(a));
}
static __device__ __forceinline__ i32 and_i32(i32 a, i32 b) {
return a & b;
}
static __device__ __forceinline__ u32 and_u32(u32 a, u32 b) {
return a & b;
}
static __device__ __forceinline__ bool and_bool(bool a, bool b) {
return both(a, b);
}
static __device__ __forceinline__ i32 or_i32(i32 a, i32 b) {
return a | b;
}
static __device__ __forceinline__ u32 or_u32(u32 a, u32 b) {
return a | b;
}
static __device__ __forceinline__ bool or_bool(bool a, bool b) {
return either(a, b);
}
static __device__ __forceinline__ i32 xor_i32(i32 a, i32 b) {
return a ^ b;
}
static __device__ __forceinline__ u32 xor_u32(u32 a, u32 b) {
return a ^ b;
}
static __device__ __forceinline__ bool xor_bool(bool a, bool b) {
return a != b;
}
static __device__ __forceinline__ i32 not_i32(i32 a) {
return a ^ i32(-1);
}
static __device__ __forceinline__ u32 not_u32(u32 a) {
return a ^ u32(4294967295u);
}
static __device__ __forceinline__ bool not_bool(bool a) {
return !a;
}
static __device__ __forceinline__ u32 shift_left_u32(u32 a, u32 b) {
return select(shift_left(a, b), u32(0), b > u32(31));
}
static __device__ __forceinline__ u32 shift_right_u32(u32 a, u32 b) {
return select(shift_right(a, b), u32(0), b > u32(31));
}

static __device__ __forceinline__ uint4 apply(u32 code, uint4 a, uint4 b) {
    switch (code) {
        case 32: return each(add_f32, a, b);
        case 33: return each(add_i32, a, b);
        case 34: return each(add_u32, a, b);
        case 36: return each(sub_f32, a, b);
        case 37: return each(sub_i32, a, b);
        case 38: return each(sub_u32, a, b);
        case 40: return each(mul_f32, a, b);
        case 41: return each(mul_i32, a, b);
        case 42: return each(mul_u32, a, b);
        case 44: return in_turns(div_f32, a, b);
        case 45: return in_turns(div_i32, a, b);
        case 46: return in_turns(div_u32, a, b);
        case 48: return in_turns(rem_f32, a, b);
        case 49: return in_turns(rem_i32, a, b);
        case 50: return in_turns(rem_u32, a, b);
        case 52: return in_turns(mod_f32, a, b);
        case 53: return in_turns(mod_i32, a, b);
        case 54: return in_turns(mod_u32, a, b);
        case 56: return in_turns(pow_f32, a, b);
        case 57: return in_turns(pow_i32, a, b);
        case 58: return in_turns(pow_u32, a, b);
        case 60: return each(min_f32, a, b);
        case 61: return each(min_i32, a, b);
        case 62: return each(min_u32, a, b);
        case 64: return each(max_f32, a, b);
        case 65: return each(max_i32, a, b);
        case 66: return each(max_u32, a, b);
        case 68: return each(neg_f32, a, b);
        case 69: return each(neg_i32, a, b);
        case 72: return each(abs_f32, a, b);
        case 73: return each(abs_i32, a, b);
        case 74: return each(abs_u32, a, b);
        case 76: return each(sign_f32, a, b);
        case 77: return each(sign_i32, a, b);
        case 78: return each(sign_u32, a, b);
        case 80: return each(square_f32, a, b);
        case 81: return each(square_i32, a, b);
        case 82: return each(square_u32, a, b);
        case 84: return in_turns(reciprocal_f32, a, b);
        case 88: return in_turns(sqrt_f32, a, b);
        case 92: return each(exp_f32, a, b);
        case 96: return each(log_f32, a, b);
        case 100: return in_turns(sin_f32, a, b);
        case 104: return in_turns(cos_f32, a, b);
        case 108: return in_turns(tan_f32, a, b);
        case 112: return in_turns(asin_f32, a, b);
        case 116: return in_turns(acos_f32, a, b);
        case 120: return in_turns(atan_f32, a, b);
        case 124: return in_turns(sinh_f32, a, b);
        case 128: return in_turns(cosh_f32, a, b);
        case 132: return in_turns(tanh_f32, a, b);
        case 136: return in_turns(asinh_f32, a, b);
        case 140: return in_turns(acosh_f32, a, b);
        case 144: return in_turns(atanh_f32, a, b);
        case 148: return in_turns(sigmoid_f32, a, b);
        case 152: return in_turns(silu_f32, a, b);
        case 156: return in_turns(gelu_tanh_f32, a, b);
        case 160: return each(relu_f32, a, b);
        case 161: return each(relu_i32, a, b);
        case 164: return in_turns(softplus_f32, a, b);
        case 168: return in_turns(erf_f32, a, b);
        case 172: return each(floor_f32, a, b);
        case 176: return each(ceil_f32, a, b);
        case 180: return each(round_f32, a, b);
        case 184: return each(trunc_f32, a, b);
        case 188: return each(round_to_f16_f32, a, b);
        case 192: return each(equal_f32, a, b);
        case 193: return each(equal_i32, a, b);
        case 194: return each(equal_u32, a, b);
        case 195: return each(equal_bool, a, b);
        case 196: return each(not_equal_f32, a, b);
        case 197: return each(not_equal_i32, a, b);
        case 198: return each(not_equal_u32, a, b);
        case 199: return each(not_equal_bool, a, b);
        case 200: return each(less_f32, a, b);
        case 201: return each(less_i32, a, b);
        case 202: return each(less_u32, a, b);
        case 204: return each(less_equal_f32, a, b);
        case 205: return each(less_equal_i32, a, b);
        case 206: return each(less_equal_u32, a, b);
        case 208: return each(greater_f32, a, b);
        case 209: return each(greater_i32, a, b);
        case 210: return each(greater_u32, a, b);
        case 212: return each(greater_equal_f32, a, b);
        case 213: return each(greater_equal_i32, a, b);
        case 214: return each(greater_equal_u32, a, b);
        case 216: return each(is_nan_f32, a, b);
        case 220: return each(is_inf_f32, a, b);
        case 225: return each(and_i32, a, b);
        case 226: return each(and_u32, a, b);
        case 227: return each(and_bool, a, b);
        case 229: return each(or_i32, a, b);
        case 230: return each(or_u32, a, b);
        case 231: return each(or_bool, a, b);
        case 233: return each(xor_i32, a, b);
        case 234: return each(xor_u32, a, b);
        case 235: return each(xor_bool, a, b);
        case 237: return each(not_i32, a, b);
        case 238: return each(not_u32, a, b);
        case 239: return each(not_bool, a, b);
        case 242: return each(shift_left_u32, a, b);
        case 246: return each(shift_right_u32, a, b);
        default: return a;
    }
}
