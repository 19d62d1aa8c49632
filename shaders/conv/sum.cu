// The end of a convolution whose sums are in parts: adds them up, always in the same order, and stores the result. A thread has one element.
//
//   parts   as many times the elements of the result

#include "told.cuh"

#define THREADS 128
// There are few threads and many parts: so many loads are under way at once.
#define BATCH 8u

extern "C" __global__ void __launch_bounds__(THREADS) conv(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const Told &told = told_by(words);
    const float *const parts = static_cast<const float *>(in_0);
    const u32 positions = told.y.steps * told.x.steps, filters = told.groups * told.filters;
    const size_t count = size_t(told.batch) * filters * positions, i = size_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= count) return;
    float sum = 0.0f;
#pragma unroll 1
    for (u32 part = 0; part < told.parts; part += BATCH) {
        float v[BATCH];
        // Past the last it is that one again, which is not added: a load without a condition waits for no other.
#pragma unroll
        for (u32 j = 0; j < BATCH; j++) v[j] = parts[min(part + j, told.parts - 1) * count + i];
#pragma unroll
        for (u32 j = 0; j < BATCH; j++) sum += part + j < told.parts ? v[j] : 0.0f;
    }
    finish(source, out, i / positions % filters, i, sum);
}
