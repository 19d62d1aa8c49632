// Copies a matrix of f16 into rows that start at multiples of 8 elements, for kernels that read eight at once; or into f32, for those that
// read nothing else. What the rows of the copy have beyond the columns is zero.
//
//   from    the items of a batch, each params.m rows of params.n elements, lda apart
//   out     as many rows one behind the other, ldo apart, ldo at least n and a multiple of 4

#include "store.cuh"

#define THREADS 64

extern "C" __global__ void __launch_bounds__(THREADS) matmul(const Half *__restrict__ from, void *__restrict__ out, const Params params) {
    const unsigned across = params.ldo / 4;
    const size_t size = size_t(params.batch) * params.m * across;
    for (size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x; i < size; i += size_t(gridDim.x) * THREADS) {
        const size_t row = i / across;
        const unsigned column = i % across * 4;
        const unsigned item = unsigned(row / params.m);
        const Half *v = from + params.a_start + start(params, item, params.a_outer, params.a_inner) + row % params.m * params.lda + column;
        const float4 four = make_float4(
            column < params.n ? widened(v[0]) : 0.0f, column + 1 < params.n ? widened(v[1]) : 0.0f,
            column + 2 < params.n ? widened(v[2]) : 0.0f, column + 3 < params.n ? widened(v[3]) : 0.0f
        );
        const size_t at = row * params.ldo + column;
        if (params.result == F16) {
            put_four(static_cast<Half *>(out) + at, four);
        } else {
            put_four(static_cast<float *>(out) + at, four);
        }
    }
}
