// Copies a matrix of bytes into rows that start at multiples of 16 of them, for kernels that read so many at once. A thread copies 16 bytes at a
// time, from words at whose bounds they need not lie.
//
//   from    the items of a batch, each params.m rows of params.n bytes, lda apart
//   out     as many rows one behind the other, ldo apart, ldo at least n and a multiple of 16; what is beyond n is of no meaning
//
//# kernel matmul/int8
//# variant copy THREADS=64

#include "params.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) matmul(const unsigned *__restrict__ from, uint4 *__restrict__ out, const Params params) {
    const unsigned across = params.ldo / 16;
    const size_t size = size_t(params.batch) * params.m * across;
    for (size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x; i < size; i += size_t(gridDim.x) * THREADS) {
        const size_t row = i / across;
        const unsigned column = i % across * 16, item = unsigned(row / params.m);
        const size_t first = params.a_start + start(params, item, params.a_outer, params.a_inner) + row % params.m * params.lda;
        // No word is read that has nothing of the row.
        const size_t at = first + column, last = (first + params.n - 1) / 4;
        unsigned word[5];
#pragma unroll
        for (int j = 0; j < 5; j++) {
            word[j] = from[at / 4 + j < last ? at / 4 + j : last];
        }
        const unsigned bits = at % 4 * 8;
        out[i] = make_uint4(
            __funnelshift_r(word[0], word[1], bits), __funnelshift_r(word[1], word[2], bits), __funnelshift_r(word[2], word[3], bits),
            __funnelshift_r(word[3], word[4], bits)
        );
    }
}
