// What generated programs are made of, as prelude.wgsl has it, and how values lie in memory. Of WGSL's names those that C++ lacks.

typedef float f32;
typedef unsigned u32;

// An integer that wraps around, where int's overflow would leave the compiler free to assume that there is none.
struct i32 {
    int v;
    i32() = default;
    __device__ __forceinline__ explicit i32(int v) : v(v) {}
};

#define WRAPS(op) \
    static __device__ __forceinline__ i32 operator op(i32 a, i32 b) { return i32(int(u32(a.v) op u32(b.v))); }
WRAPS(+)
WRAPS(-)
WRAPS(*)
WRAPS(&)
WRAPS(|)
WRAPS(^)
#undef WRAPS

#define COMPARES(op) \
    static __device__ __forceinline__ bool operator op(i32 a, i32 b) { return a.v op b.v; }
COMPARES(==)
COMPARES(!=)
COMPARES(<)
COMPARES(<=)
COMPARES(>)
COMPARES(>=)
#undef COMPARES

static __device__ __forceinline__ i32 operator-(i32 a) { return i32(int(0u - u32(a.v))); }
static __device__ __forceinline__ i32 operator/(i32 a, i32 b) { return b.v == -1 ? -a : i32(a.v / b.v); }
static __device__ __forceinline__ i32 operator%(i32 a, i32 b) { return i32(b.v == -1 ? 0 : a.v % b.v); }

template <typename T>
static __device__ __forceinline__ T select(T no, T yes, bool condition) { return condition ? yes : no; }

static __device__ __forceinline__ bool both(bool a, bool b) { return a && b; }
static __device__ __forceinline__ bool either(bool a, bool b) { return a || b; }
static __device__ __forceinline__ bool is_nan(f32 a) { return (__float_as_uint(a) & 0x7fffffffu) > 0x7f800000u; }
static __device__ __forceinline__ bool is_finite(f32 a) { return (__float_as_uint(a) & 0x7f800000u) != 0x7f800000u; }
static __device__ __forceinline__ bool is_negative(f32 a) { return __float_as_uint(a) >> 31 != 0; }
static __device__ __forceinline__ f32 nan_of(f32 a) { return __uint_as_float(__float_as_uint(a) | 0x7fc00000u); }
static __device__ __forceinline__ f32 zero_of(f32 a) { return __uint_as_float(__float_as_uint(a) & 0x80000000u); }
static __device__ __forceinline__ f32 round_even(f32 a) { return rintf(a); }
static __device__ __forceinline__ u32 shift_left(u32 a, u32 b) { return a << (b & 31); }
static __device__ __forceinline__ u32 shift_right(u32 a, u32 b) { return a >> (b & 31); }

// As the hardware has them: a power to within |a| / 2^24 of itself, a logarithm of 1 to 2 to within 2^-22, a reciprocal to its last digit, and
// zero for what is less than the least normal number.
static __device__ __forceinline__ f32 quick_exp(f32 a) {
    f32 e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(a * 1.44269504f));
    return e;
}

static __device__ __forceinline__ f32 quick_log(f32 a) {
    f32 l;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(l) : "f"(a));
    return l * 0.693147181f;
}

static __device__ __forceinline__ f32 quick_reciprocal(f32 a) {
    f32 r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}

static __device__ __forceinline__ f32 exponential(f32 a) { return expf(a); }
static __device__ __forceinline__ f32 logarithm(f32 a) { return logf(a); }
static __device__ __forceinline__ f32 log_1p(f32 a) { return log1pf(a); }

// Long ones, of which one is enough.
static __device__ __noinline__ f32 remainder(f32 a, f32 b) { return fmodf(a, b); }
static __device__ __noinline__ f32 power(f32 a, f32 b) { return powf(a, b); }
static __device__ __forceinline__ f32 arctangent(f32 a) { return atanf(a); }

static __device__ __noinline__ u32 power_u32(u32 a, u32 b) {
    u32 result = 1;
    for (; b > 0; b >>= 1, a *= a) {
        if (b & 1) result *= a;
    }
    return result;
}

static __device__ __forceinline__ i32 power_i32(i32 a, i32 b) {
    // Of a negative exponent only 1 and -1 have a whole power.
    if (b.v < 0) return i32(a.v == 1 ? 1 : a.v != -1 ? 0 : b.v & 1 ? -1 : 1);
    return i32(int(power_u32(u32(a.v), u32(b.v))));
}

static __device__ __forceinline__ f32 f32_of_f32(f32 a) { return a; }
static __device__ __forceinline__ f32 f32_of_i32(i32 a) { return f32(a.v); }
static __device__ __forceinline__ f32 f32_of_u32(u32 a) { return f32(a); }
static __device__ __forceinline__ f32 f32_of_bool(bool a) { return a ? 1.0f : 0.0f; }
static __device__ __forceinline__ i32 i32_of_f32(f32 a) { return i32(__float2int_rz(a)); }
static __device__ __forceinline__ i32 i32_of_i32(i32 a) { return a; }
static __device__ __forceinline__ i32 i32_of_u32(u32 a) { return i32(int(a)); }
static __device__ __forceinline__ i32 i32_of_bool(bool a) { return i32(a ? 1 : 0); }
static __device__ __forceinline__ u32 u32_of_f32(f32 a) { return __float2uint_rz(a); }
static __device__ __forceinline__ u32 u32_of_i32(i32 a) { return u32(a.v); }
static __device__ __forceinline__ u32 u32_of_u32(u32 a) { return a; }
static __device__ __forceinline__ u32 u32_of_bool(bool a) { return a ? 1 : 0; }
static __device__ __forceinline__ bool bool_of_f32(f32 a) { return a != 0.0f; }
static __device__ __forceinline__ bool bool_of_i32(i32 a) { return a.v != 0; }
static __device__ __forceinline__ bool bool_of_u32(u32 a) { return a != 0; }
static __device__ __forceinline__ bool bool_of_bool(bool a) { return a; }

// Values as the words in which they lie.
template <typename T>
static __device__ T of_word(u32 word);
template <>
__device__ __forceinline__ f32 of_word<f32>(u32 word) { return __uint_as_float(word); }
template <>
__device__ __forceinline__ i32 of_word<i32>(u32 word) { return i32(int(word)); }
template <>
__device__ __forceinline__ u32 of_word<u32>(u32 word) { return word; }
template <>
__device__ __forceinline__ bool of_word<bool>(u32 word) { return word != 0; }

static __device__ __forceinline__ u32 word_of(f32 a) { return __float_as_uint(a); }
static __device__ __forceinline__ u32 word_of(i32 a) { return u32(a.v); }
static __device__ __forceinline__ u32 word_of(u32 a) { return a; }
static __device__ __forceinline__ u32 word_of(bool a) { return a ? 1 : 0; }

// An f16 in the lower half of a word.
static __device__ __forceinline__ f32 widened(u32 bits) {
    f32 a;
    asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"((unsigned short)bits));
    return a;
}

static __device__ __forceinline__ u32 rounded(f32 a) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(a));
    return bits;
}

static __device__ __forceinline__ f32 nearest_f16(f32 a) { return widened(rounded(a)); }

// Four neighbours.
template <typename T>
struct Four {
    T x[4];
};

// What a kernel is told (src/plan/words.rs).
struct Words {
    u32 word[64];
};
