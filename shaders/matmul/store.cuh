// How a product's sums become its result, for kernels that end in it; the CUDA twin of store.wgsl.
// tiled.cu and sum.cu are compiled at run time behind what is generated where something is computed of the result.

#include "params.cuh"
#include "activate.cuh"

#if END
static_assert(sizeof(Params) == sizeof(Words), "the words of what follows are behind these");
// Where it reads, before the result in the kernel's parameters; and itself, which `store` takes last.
#define OTHERS const void *in_4, const void *in_5, const void *in_6,
#define SOURCE_OF(in_0, in_1, in_2) {in_0, in_1, in_2, in_4, in_5, in_6, reinterpret_cast<const Words &>(params)}
#define SOURCE(in_0, in_1, in_2) , Source SOURCE_OF(in_0, in_1, in_2)
#else
#define OTHERS
#define SOURCE(in_0, in_1, in_2)
#endif

// What params.result may be: what C and the result are of.
#define F32 0
#define F16 1

// An f16, of which the compiler's headers are not to be had everywhere.
struct Half {
    unsigned short bits;
};

static __device__ float widened(float x) { return x; }

static __device__ float widened(Half x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

static __device__ Half half_of(float x) {
    Half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

static __device__ void put(float *to, float x) { *to = x; }

static __device__ void put(Half *to, float x) { *to = half_of(x); }

static __device__ void put_four(float *to, float4 v) { *reinterpret_cast<float4 *>(to) = v; }

static __device__ void put_four(Half *to, float4 v) {
    *reinterpret_cast<ushort4 *>(to) = make_ushort4(half_of(v.x).bits, half_of(v.y).bits, half_of(v.z).bits, half_of(v.w).bits);
}

// Four elements from one on, or as many of them as are left.
template <typename T>
static __device__ float4 four_of(const T *from, unsigned left) {
    return make_float4(
        widened(from[0]), left > 1 ? widened(from[1]) : 0.0f, left > 2 ? widened(from[2]) : 0.0f, left > 3 ? widened(from[3]) : 0.0f
    );
}

template <typename T>
static __device__ void put_some(T *to, bool aligned, unsigned left, float4 v) {
    if (left > 3 && aligned) {
        put_four(to, v);
    } else {
        put(to, v.x);
        if (left > 1) put(to + 1, v.y);
        if (left > 2) put(to + 2, v.z);
        if (left > 3) put(to + 3, v.w);
    }
}

// What is made of the sums of four elements of a row from a column on, or fewer where no more are left of the row. C, of the batch's item of that
// number, and the bias, which is for a whole row, are read if there are any.
static __device__ float4 made(
    const Params &params, const void *c, const float *bias, unsigned item, unsigned row, unsigned column, unsigned left, float4 sum
) {
    float4 v = make_float4(params.alpha * sum.x, params.alpha * sum.y, params.alpha * sum.z, params.alpha * sum.w);
    if (c) {
        const size_t at = start(params, item, params.c_outer, params.c_inner) + params.c_start + size_t(row) * params.ldc + column;
        const float4 added =
            params.result == F16 ? four_of(static_cast<const Half *>(c) + at, left) : four_of(static_cast<const float *>(c) + at, left);
        v.x = fmaf(params.beta, added.x, v.x), v.y = fmaf(params.beta, added.y, v.y);
        v.z = fmaf(params.beta, added.z, v.z), v.w = fmaf(params.beta, added.w, v.w);
    }
    if (bias) {
        const float4 added = four_of(bias + params.bias_start + column, left);
        v.x += added.x, v.y += added.y, v.z += added.z, v.w += added.w;
    }
    if (params.activation > 0) {
        // One after the other, each making room for the next: the code of all activations is there once.
#pragma unroll 1
        for (int i = 0; i < 4; i++) {
            v = make_float4(v.y, v.z, v.w, activate(params.activation, v.x));
        }
    }
    return v;
}

// Puts them into layer z of the result, which is an item of a batch or a part of one.
static __device__ void store(
    const Params &params, const void *c, const float *bias, void *out, unsigned z, unsigned item, unsigned row, unsigned column,
    unsigned left, float4 sum
#if END
    , const Source &source
#endif
) {
#if END
    // Without C what follows may be bound in its place.
    if (!READS_C) c = nullptr;
#endif
    float4 v = made(params, c, bias, item, row, column, left, sum);
    const size_t at = size_t(z) * params.m * params.ldo + params.out_start + size_t(row) * params.ldo + column;
#if END
    const Four<f32> ended = source.ended_four(at, {v.x, v.y, v.z, v.w});
    v = make_float4(ended.x[0], ended.x[1], ended.x[2], ended.x[3]);
#endif
    const bool aligned = params.ldo % 4 == 0 && params.out_start % 4 == 0;
    if (params.result == F16) {
        put_some(static_cast<Half *>(out) + at, aligned, left, v);
    } else {
        put_some(static_cast<float *>(out) + at, aligned, left, v);
    }
}
