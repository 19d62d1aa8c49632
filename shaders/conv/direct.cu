// Convolution where a group has few filters: each thread computes up to FILTERS of them at one position, and reads what it needs where it is.

#include "told.cuh"

#define THREADS 128u
#define FILTERS 4u

extern "C" __global__ void __launch_bounds__(THREADS) conv(
    const void *__restrict__ images, const void *__restrict__ filters, const float *__restrict__ bias, void *__restrict__ out, const Told told
) {
    const u32 positions = told.y.steps * told.x.steps, blocks = (told.filters + FILTERS - 1) / FILTERS;
    const size_t count = size_t(told.batch) * told.groups * blocks * positions;
    const size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= count) return;
    const u32 position = i % positions, plane = i / positions, block = plane % blocks, group = plane / blocks % told.groups;
    const u32 row0 = block * FILTERS, rows = min(told.filters - row0, FILTERS);
    const u32 y0 = position / told.x.steps * told.y.stride - told.y.before, x0 = position % told.x.steps * told.x.stride - told.x.before;
    const u32 pixels = told.y.input * told.x.input, taps = told.y.taps * told.x.taps, k_end = told.channels * taps;
    const size_t image = plane / blocks / told.groups;
    const size_t first = (image * told.groups + group) * told.channels * pixels, first_filter = (size_t(group) * told.filters + row0) * k_end;
    float sum[FILTERS] = {};
    for (u32 c = 0; c < told.channels; c++) {
        // Sums of sums lose less than one long sum.
        float some[FILTERS] = {};
        for (u32 ty = 0; ty < told.y.taps; ty++) {
            const u32 y = y0 + ty * told.y.dilation;
            if (y >= told.y.input) continue;
            for (u32 tx = 0; tx < told.x.taps; tx++) {
                const u32 x = x0 + tx * told.x.dilation;
                if (x >= told.x.input) continue;
                const float v = element(told, images, first + size_t(c) * pixels + y * told.x.input + x);
                const size_t k = size_t(c) * taps + ty * told.x.taps + tx;
#pragma unroll
                for (u32 r = 0; r < FILTERS; r++) {
                    // A row outside repeats the last one, and is not stored.
                    some[r] = fmaf(element(told, filters, first_filter + size_t(min(r, rows - 1)) * k_end + k), v, some[r]);
                }
            }
        }
#pragma unroll
        for (u32 r = 0; r < FILTERS; r++) sum[r] += some[r];
    }
#pragma unroll
    for (u32 r = 0; r < FILTERS; r++) {
        if (r >= rows) continue;
        const u32 filter = group * told.filters + row0 + r;
        const size_t to = (image * told.groups * told.filters + filter) * positions + position;
        finish(told, bias, out, filter, to, sum[r]);
    }
}
