// What convolutions are told (src/plan/conv.rs), and how sums become their result.

typedef unsigned u32;

// src/ops/window.rs has the same.
struct Window {
    u32 input, taps, stride, dilation, before, after, steps;
};

struct Told {
    u32 batch, groups, channels, filters, activation;
    Window y, x;
    u32 is_f16;
};

static __device__ __forceinline__ float widened(u32 bits) {
    float a;
    asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"((unsigned short)bits));
    return a;
}

static __device__ __forceinline__ unsigned short rounded(float a) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(a));
    return bits;
}

static __device__ __forceinline__ float element(const Told &told, const void *from, size_t at) {
    return told.is_f16 ? widened(__ldg(static_cast<const unsigned short *>(from) + at)) : __ldg(static_cast<const float *>(from) + at);
}

// The function of a number in src/ops/matmul/activation.rs.
static __device__ float activate(u32 activation, float x) {
    switch (activation) {
        // A NaN is no less than zero, and stays.
        case 1: return x < 0.0f ? 0.0f : x;
        case 2: return x / (1.0f + expf(-x * (1.59576912f + 0.0713548163f * x * x)));
        case 3: return 1.0f / (1.0f + expf(-x));
        case 4: return tanhf(x);
        case 5: return x / (1.0f + expf(-x));
        default: return x;
    }
}

// Puts a sum of a filter's, counted over all groups. One copy of it is enough.
static __device__ __noinline__ void finish(const Told &told, const float *bias, void *out, u32 filter, size_t at, float sum) {
    const float x = activate(told.activation, bias ? sum + bias[filter] : sum);
    if (told.is_f16) {
        static_cast<unsigned short *>(out)[at] = rounded(x);
    } else {
        static_cast<float *>(out)[at] = x;
    }
}
