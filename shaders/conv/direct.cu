// Convolution where a group has few filters: each thread computes up to FILTERS of them, and reads what it needs where it is: at one position,
// or at COLUMNS neighbouring ones, which share what their windows see, where windows are as wide and as far apart as is usual.

#include "told.cuh"

#define THREADS 128
#define FILTERS 4u
#define COLUMNS 4u

// Where a thread's windows begin; what is before an image wraps round, and so counts as far behind it.
struct Corner {
    size_t first, first_filter;
    u32 y, x;
};

// Sums of R filters' products with what COLUMNS windows see that are TAPS wide and STRIDE apart. A filter outside repeats the last one.
template <bool IS_F16, u32 R, u32 TAPS, u32 STRIDE>
static __device__ __forceinline__ void slide(const Told &told, const void *images, const void *filters, const Corner &at, u32 rows, float (&sum)[FILTERS][COLUMNS]) {
    const u32 pixels = told.y.input * told.x.input, taps = told.y.taps * TAPS, k_end = told.channels * taps;
    for (u32 c = 0; c < told.channels; c++) {
        // Sums of sums lose less than one long sum.
        float some[R][COLUMNS] = {};
        for (u32 ty = 0; ty < told.y.taps; ty++) {
            const u32 y = at.y + ty * told.y.dilation;
            if (y >= told.y.input) continue;
            const size_t line = at.first + size_t(c) * pixels + size_t(y) * told.x.input;
            float seen[(COLUMNS - 1) * STRIDE + TAPS];
#pragma unroll
            for (u32 i = 0; i < (COLUMNS - 1) * STRIDE + TAPS; i++) {
                seen[i] = at.x + i < told.x.input ? element<IS_F16>(images, line + (at.x + i)) : 0.0f;
            }
#pragma unroll
            for (u32 r = 0; r < R; r++) {
                const size_t k = at.first_filter + size_t(min(r, rows - 1)) * k_end + size_t(c) * taps + ty * TAPS;
#pragma unroll
                for (u32 tx = 0; tx < TAPS; tx++) {
                    const float weight = element<IS_F16>(filters, k + tx);
#pragma unroll
                    for (u32 q = 0; q < COLUMNS; q++) some[r][q] = fmaf(weight, seen[q * STRIDE + tx], some[r][q]);
                }
            }
        }
#pragma unroll
        for (u32 r = 0; r < R; r++) {
#pragma unroll
            for (u32 q = 0; q < COLUMNS; q++) sum[r][q] += some[r][q];
        }
    }
}

template <u32 TAPS, u32 STRIDE>
static __device__ __forceinline__ void slide(const Told &told, const void *images, const void *filters, const Corner &at, u32 rows, float (&sum)[FILTERS][COLUMNS]) {
    if (told.filters == 1) {
        if (told.is_f16) {
            slide<true, 1, TAPS, STRIDE>(told, images, filters, at, rows, sum);
        } else {
            slide<false, 1, TAPS, STRIDE>(told, images, filters, at, rows, sum);
        }
    } else if (told.is_f16) {
        slide<true, FILTERS, TAPS, STRIDE>(told, images, filters, at, rows, sum);
    } else {
        slide<false, FILTERS, TAPS, STRIDE>(told, images, filters, at, rows, sum);
    }
}

// The same of windows of any kind, at one position.
static __device__ __forceinline__ void look(const Told &told, const void *images, const void *filters, const Corner &at, u32 rows, float (&sum)[FILTERS][COLUMNS]) {
    const u32 pixels = told.y.input * told.x.input, taps = told.y.taps * told.x.taps, k_end = told.channels * taps;
    for (u32 c = 0; c < told.channels; c++) {
        float some[FILTERS] = {};
        for (u32 ty = 0; ty < told.y.taps; ty++) {
            const u32 y = at.y + ty * told.y.dilation;
            if (y >= told.y.input) continue;
            for (u32 tx = 0; tx < told.x.taps; tx++) {
                const u32 x = at.x + tx * told.x.dilation;
                if (x >= told.x.input) continue;
                const float v = element(told, images, at.first + size_t(c) * pixels + y * told.x.input + x);
                const size_t k = size_t(c) * taps + ty * told.x.taps + tx;
#pragma unroll
                for (u32 r = 0; r < FILTERS; r++) {
                    some[r] = fmaf(element(told, filters, at.first_filter + size_t(min(r, rows - 1)) * k_end + k), v, some[r]);
                }
            }
        }
#pragma unroll
        for (u32 r = 0; r < FILTERS; r++) sum[r][0] += some[r];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) conv(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const Told &told = told_by(words);
    const u32 columns = told.columns, across = (told.x.steps + columns - 1) / columns, positions = told.y.steps * told.x.steps;
    const u32 blocks = (told.filters + FILTERS - 1) / FILTERS;
    const size_t count = size_t(told.batch) * told.groups * blocks * told.y.steps * across;
    const size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= count) return;
    const size_t line = i / across, plane = line / told.y.steps, image = plane / blocks / told.groups;
    const u32 step_x = i % across * columns, step_y = line % told.y.steps, block = plane % blocks, group = plane / blocks % told.groups;
    const u32 row0 = block * FILTERS, rows = min(told.filters - row0, FILTERS);
    const u32 pixels = told.y.input * told.x.input, k_end = told.channels * told.y.taps * told.x.taps;
    const Corner at = {
        (image * told.groups + group) * told.channels * pixels, (size_t(group) * told.filters + row0) * k_end,
        step_y * told.y.stride - told.y.before, step_x * told.x.stride - told.x.before
    };
    float sum[FILTERS][COLUMNS] = {};
    // Which these are is known to src/plan/conv/cuda.rs as well.
    switch (columns > 1 ? told.x.taps * 2 + told.x.stride : 0) {
        case 3 * 2 + 1: slide<3, 1>(told, in_0, in_1, at, rows, sum); break;
        case 3 * 2 + 2: slide<3, 2>(told, in_0, in_1, at, rows, sum); break;
        case 5 * 2 + 1: slide<5, 1>(told, in_0, in_1, at, rows, sum); break;
        case 5 * 2 + 2: slide<5, 2>(told, in_0, in_1, at, rows, sum); break;
        case 7 * 2 + 1: slide<7, 1>(told, in_0, in_1, at, rows, sum); break;
        case 7 * 2 + 2: slide<7, 2>(told, in_0, in_1, at, rows, sum); break;
        default: look(told, in_0, in_1, at, rows, sum);
    }
    // Four at once where none of them is in another row, or in part of a vector.
    const bool is_whole = columns == COLUMNS && told.x.steps % COLUMNS == 0;
#pragma unroll
    for (u32 r = 0; r < FILTERS; r++) {
        if (r >= rows) continue;
        const u32 filter = group * told.filters + row0 + r;
        const size_t to = (image * told.groups * told.filters + filter) * positions + size_t(step_y) * told.x.steps + step_x;
        if (is_whole) {
            finish_four(source, out, filter, to, sum[r]);
            continue;
        }
#pragma unroll
        for (u32 q = 0; q < COLUMNS; q++) {
            if (q < columns && step_x + q < told.x.steps) finish(source, out, filter, to + q, sum[r][q]);
        }
    }
}
