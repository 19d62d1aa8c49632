// Convolution where a group has few filters: each thread computes up to FILTERS of them at one position, and reads what it needs where it is.

#include "told.cuh"

#define THREADS 128
#define FILTERS 4u

extern "C" __global__ void __launch_bounds__(THREADS) conv(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const Told &told = told_by(words);
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
                const float v = element(told, in_0, first + size_t(c) * pixels + y * told.x.input + x);
                const size_t k = size_t(c) * taps + ty * told.x.taps + tx;
#pragma unroll
                for (u32 r = 0; r < FILTERS; r++) {
                    // A row outside repeats the last one, and is not stored.
                    some[r] = fmaf(element(told, in_1, first_filter + size_t(min(r, rows - 1)) * k_end + k), v, some[r]);
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
        finish(source, out, filter, to, sum[r]);
    }
}
