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
    unsigned bias_start, activation;
};

// Where an item of a batch starts in an operand of those strides.
static __device__ size_t start(const Params &params, unsigned item, unsigned outer, unsigned inner) {
    return size_t(item / params.inner) * outer + size_t(item % params.inner) * inner;
}

// The function of a number in src/ops/matmul/activation.rs.
static __device__ float activate(unsigned activation, float x) {
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

// Puts four elements of a row from a column on into the result, or fewer where no more are left of the row. C and the bias, which is for
// a whole row, are read if there are any.
static __device__ void store(const Params &params, const float *c, const float *bias, float *out, unsigned row, unsigned column, unsigned left, float4 sum) {
    float4 v = make_float4(params.alpha * sum.x, params.alpha * sum.y, params.alpha * sum.z, params.alpha * sum.w);
    if (c) {
        const float *added = c + params.c_start + size_t(row) * params.ldc + column;
        v.x = fmaf(params.beta, added[0], v.x);
        v.y = left > 1 ? fmaf(params.beta, added[1], v.y) : 0.0f;
        v.z = left > 2 ? fmaf(params.beta, added[2], v.z) : 0.0f;
        v.w = left > 3 ? fmaf(params.beta, added[3], v.w) : 0.0f;
    }
    if (bias) {
        const float *added = bias + params.bias_start + column;
        v.x += added[0];
        v.y += left > 1 ? added[1] : 0.0f;
        v.z += left > 2 ? added[2] : 0.0f;
        v.w += left > 3 ? added[3] : 0.0f;
    }
    if (params.activation > 0) {
        v.x = activate(params.activation, v.x), v.y = activate(params.activation, v.y);
        v.z = activate(params.activation, v.z), v.w = activate(params.activation, v.w);
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
