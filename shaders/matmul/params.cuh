// What a product's kernels are told; the CUDA twin of params.wgsl.

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
    unsigned result;
    unsigned bias_inner;
    // Of vector.cu alone; windows have other things there.
    unsigned x_element, x_vector, out_width, lanes, tall;
    // Of 8-bit integers: A's in the low half, B's in the high one.
    unsigned zero_points;
#if END
    // The words of what follows are these and all before them.
    unsigned more[32];
#endif
};

// Where an item of a batch starts in an operand of those strides.
static __device__ size_t start(const Params &params, unsigned item, unsigned outer, unsigned inner) {
    return size_t(item / params.inner) * outer + size_t(item % params.inner) * inner;
}
