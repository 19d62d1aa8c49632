// How a product's sums become its result, for kernels that end in it: the kernel's parameters and `store`; the CUDA twin of store.wgsl.

// src/plan/matmul.rs has the same.
struct Params {
    unsigned m, k, n;
    unsigned lda, ldb, ldc, ldo;
    unsigned a_start, b_start, c_start, out_start;
    float alpha, beta;
    unsigned k_part;
    unsigned result;
};

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

static __device__ void put(float *to, float x) { *to = x; }

static __device__ Half rounded(float x) {
    Half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}

static __device__ void put(Half *to, float x) { *to = rounded(x); }

static __device__ void put_four(float *to, float4 v) { *reinterpret_cast<float4 *>(to) = v; }

static __device__ void put_four(Half *to, float4 v) {
    *reinterpret_cast<ushort4 *>(to) = make_ushort4(rounded(v.x).bits, rounded(v.y).bits, rounded(v.z).bits, rounded(v.w).bits);
}

template <typename T>
static __device__ void store_as(const Params &params, const T *c, T *out, unsigned row, unsigned column, unsigned left, float4 sum) {
    float4 v = make_float4(params.alpha * sum.x, params.alpha * sum.y, params.alpha * sum.z, params.alpha * sum.w);
    if (c) {
        const T *added = c + params.c_start + size_t(row) * params.ldc + column;
        v.x = fmaf(params.beta, widened(added[0]), v.x);
        v.y = left > 1 ? fmaf(params.beta, widened(added[1]), v.y) : 0.0f;
        v.z = left > 2 ? fmaf(params.beta, widened(added[2]), v.z) : 0.0f;
        v.w = left > 3 ? fmaf(params.beta, widened(added[3]), v.w) : 0.0f;
    }
    T *to = out + params.out_start + size_t(row) * params.ldo + column;
    if (left > 3 && params.ldo % 4 == 0 && params.out_start % 4 == 0) {
        put_four(to, v);
    } else {
        put(to, v.x);
        if (left > 1) put(to + 1, v.y);
        if (left > 2) put(to + 2, v.z);
        if (left > 3) put(to + 3, v.w);
    }
}

// Puts four elements of a row from a column on into one of several matrices, or fewer where no more are left of the row. C is read if
// there is one.
static __device__ void store(
    const Params &params, const void *c, void *out, unsigned part, unsigned row, unsigned column, unsigned left, float4 sum
) {
    const size_t before = size_t(part) * params.m * params.ldo;
    if (params.result == F16) {
        store_as(params, static_cast<const Half *>(c), static_cast<Half *>(out) + before, row, column, left, sum);
    } else {
        store_as(params, static_cast<const float *>(c), static_cast<float *>(out) + before, row, column, left, sum);
    }
}
