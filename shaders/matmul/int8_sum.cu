// The end of a product of 8-bit integers that was split over k: adds up the parts, modulo 2^32. A thread adds up one element.
//
//   parts   params.k times the matrices of all items of a batch, each params.m x params.n
//
//# kernel matmul/int8
//# variant sum THREADS=256

#include "params.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const unsigned *__restrict__ parts, unsigned *__restrict__ out, const Params params
) {
    const size_t size = size_t(params.batch) * params.m * params.n, i = size_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size) {
        return;
    }
    unsigned sum = 0;
    // So many loads are under way at once.
#pragma unroll 16
    for (unsigned part = 0; part < params.k; part++) {
        sum += parts[part * size + i];
    }
    out[params.out_start + i] = sum;
}
