// The end of a product that was split over k: adds up the parts, always in the same order, and stores the result; the CUDA twin of
// sum.wgsl. A thread adds up four elements of a row.
//
//   parts   params.k times the matrices of all items of a batch, each m rows of lda elements, lda a multiple of 4

#include "store.cuh"

#define THREADS 64
// There are few threads and many parts: so many loads are under way at once.
#define BATCH 16

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const float4 *__restrict__ parts, const void *in_1, const void *__restrict__ c, const float *__restrict__ bias,
    OTHERS void *__restrict__ out, const Params params
) {
    const unsigned across = params.lda / 4, size = params.batch * params.m * across;
    const unsigned i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) {
        return;
    }
    const float4 *const from = parts + i;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (unsigned part = 0; part < params.k; part += BATCH) {
        float4 v[BATCH];
#pragma unroll
        for (unsigned j = 0; j < BATCH; j++) {
            // Past the last it is that one again, which is not added: a load without a condition waits for no other.
            const unsigned at = part + j < params.k ? part + j : params.k - 1;
            v[j] = from[size_t(at) * size];
        }
#pragma unroll
        for (unsigned j = 0; j < BATCH; j++) {
            if (part + j < params.k) {
                sum.x += v[j].x, sum.y += v[j].y, sum.z += v[j].z, sum.w += v[j].w;
            }
        }
    }
    const unsigned row = i / across, column = i % across * 4;
    const unsigned item = row / params.m;
    store(params, c, bias, out, item, item, row % params.m, column, params.n - column, sum SOURCE(parts, in_1, c));
}
