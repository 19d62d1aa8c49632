// How a product's sums become its result, for kernels that end in it: the kernel's parameters and `store`; the CUDA twin of store.wgsl.

// src/plan/matmul.rs has the same.
struct Params {
    unsigned m, k, n;
    unsigned lda, ldb, ldc, ldo;
    unsigned a_start, b_start, c_start, out_start;
    float alpha, beta;
    unsigned k_part;
    unsigned batch, inner;
    unsigned a_outer, b_outer, c_outer;
    unsigned a_inner, b_inner, c_inner;
};

// Where an item of a batch starts in an operand of those strides.
static __device__ size_t start(const Params &params, unsigned item, unsigned outer, unsigned inner) {
    return size_t(item / params.inner) * outer + size_t(item % params.inner) * inner;
}

// Puts four elements of a row from a column on into the result, or fewer where no more are left of the row. C is read if there is one.
static __device__ void store(const Params &params, const float *c, float *out, unsigned row, unsigned column, unsigned left, float4 sum) {
    float4 v = make_float4(params.alpha * sum.x, params.alpha * sum.y, params.alpha * sum.z, params.alpha * sum.w);
    if (c) {
        const float *added = c + params.c_start + size_t(row) * params.ldc + column;
        v.x = fmaf(params.beta, added[0], v.x);
        v.y = left > 1 ? fmaf(params.beta, added[1], v.y) : 0.0f;
        v.z = left > 2 ? fmaf(params.beta, added[2], v.z) : 0.0f;
        v.w = left > 3 ? fmaf(params.beta, added[3], v.w) : 0.0f;
    }
    float *to = out + params.out_start + size_t(row) * params.ldo + column;
    if (left > 3 && params.ldo % 4 == 0 && params.out_start % 4 == 0) {
        *reinterpret_cast<float4 *>(to) = v;
    } else {
        to[0] = v.x;
        if (left > 1) to[1] = v.y;
        if (left > 2) to[2] = v.z;
        if (left > 3) to[3] = v.w;
    }
}
