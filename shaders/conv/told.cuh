// What convolutions are told (src/plan/conv.rs), and how sums become their result; bound are the images, the filters and the bias, if there is
// one. Compiled at run time behind what is generated where something is computed of the result.

#include "../map/prelude.cuh"
#include "../matmul/activate.cuh"

// src/ops/window.rs has the same.
struct Window {
    u32 input, taps, stride, dilation, before, after, steps;
};

struct Told {
    u32 batch, groups, channels, filters, activation;
    Window y, x;
    // Of a sum in parts: how many, and the terms of each; and the neighbouring positions of a thread of direct.cu.
    u32 is_f16, parts, part, columns;
};

template <bool IS_F16>
static __device__ __forceinline__ float element(const void *from, size_t at) {
    return IS_F16 ? widened(__ldg(static_cast<const unsigned short *>(from) + at)) : __ldg(static_cast<const float *>(from) + at);
}

static __device__ __forceinline__ float element(const Told &told, const void *from, size_t at) {
    return told.is_f16 ? element<true>(from, at) : element<false>(from, at);
}

static __device__ __forceinline__ const Told &told_by(const Words &words) { return reinterpret_cast<const Told &>(words); }

#if END
// Puts a sum of a filter's, counted over all groups.
static __device__ __forceinline__ void finish(const Source &source, void *out, u32 filter, size_t at, float sum) {
#if BIAS
    sum += static_cast<const float *>(source.bound_2)[filter];
#endif
    static_cast<float *>(out)[at] = source.ended(at, activate(told_by(source.words).activation, sum));
}

// The same of four that begin at a multiple of four.
static __device__ __forceinline__ void finish_four(const Source &source, void *out, u32 filter, size_t at, const float (&sum)[4]) {
    float v[4];
#pragma unroll
    for (u32 q = 0; q < 4; q++) {
        v[q] = sum[q];
#if BIAS
        v[q] += static_cast<const float *>(source.bound_2)[filter];
#endif
        v[q] = source.ended(at + q, activate(told_by(source.words).activation, v[q]));
    }
    static_cast<float4 *>(out)[at / 4] = make_float4(v[0], v[1], v[2], v[3]);
}
#else
struct Source {
    const void *bound_0, *bound_1, *bound_2, *bound_4, *bound_5, *bound_6;
    const Words &words;
};

// One copy of it is enough.
static __device__ __noinline__ void put(u32 activation, u32 is_f16, const float *bias, void *out, u32 filter, size_t at, float sum) {
    const float x = activate(activation, bias ? sum + bias[filter] : sum);
    if (is_f16) {
        static_cast<unsigned short *>(out)[at] = rounded(x);
    } else {
        static_cast<float *>(out)[at] = x;
    }
}

static __device__ __forceinline__ void finish(const Source &source, void *out, u32 filter, size_t at, float sum) {
    const Told &told = told_by(source.words);
    put(told.activation, told.is_f16, static_cast<const float *>(source.bound_2), out, filter, at, sum);
}

// The same of four that begin at a multiple of four.
static __device__ __forceinline__ void finish_four(const Source &source, void *out, u32 filter, size_t at, const float (&sum)[4]) {
    const Told &told = told_by(source.words);
    const float *bias = static_cast<const float *>(source.bound_2);
    const float added = bias ? bias[filter] : 0.0f;
    float v[4] = {sum[0] + added, sum[1] + added, sum[2] + added, sum[3] + added};
    if (told.activation) {
#pragma unroll 1
        for (u32 q = 0; q < 4; q++) {
            const float x = activate(told.activation, v[0]);
            v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = x;
        }
    }
    if (told.is_f16) {
        static_cast<uint2 *>(out)[at / 4] = make_uint2(rounded(v[0]) | u32(rounded(v[1])) << 16, rounded(v[2]) | u32(rounded(v[3])) << 16);
    } else {
        static_cast<float4 *>(out)[at / 4] = make_float4(v[0], v[1], v[2], v[3]);
    }
}
#endif
