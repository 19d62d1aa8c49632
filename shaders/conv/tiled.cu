// Convolution as a product of filters with what windows see: rows are the filters of a group, columns the positions of all images, and k the
// taps of all channels. Nothing of the second matrix is in memory: each thread looks up elements of one column where they are.
//
// A block computes TILE_M x TILE_N, walking k in steps of TILE_K. Each step's slices lie in shared memory with k outermost, in two buffers:
// the next step's are fetched into registers before the present one is multiplied. Where an element of k is, relative to a window's first, is
// worked out once for all columns, a step earlier still. Layers of the grid are groups, of each part of the sums if they are in parts: those
// are written one after the other for sum.cu.
//
// scripts/ptx compiles each of these into tiled.ptx:
//# variant 128x128x8 TILE_M=128 TILE_N=128 TILE_K=8 ROWS=8 COLUMNS=8
//# variant 64x64x16 TILE_M=64 TILE_N=64 TILE_K=16 ROWS=4 COLUMNS=4
//# variant 32x128x16 TILE_M=32 TILE_N=128 TILE_K=16 ROWS=4 COLUMNS=4

#include "told.cuh"

#define THREADS 256
#define THREADS_N (TILE_N / COLUMNS)
#define A_LOADS (TILE_M * TILE_K / THREADS)
#define B_LOADS (TILE_N * TILE_K / THREADS)
#define A_STRIDE (TILE_M + 4)

static_assert(TILE_M / ROWS * THREADS_N == THREADS && THREADS % TILE_N == 0 && TILE_K <= THREADS, "every thread has one column");

// An element of k: where it is behind a window's first, in the image and along each dimension; outside of all images behind the last one.
struct Tap {
    u32 at, y, x;
};

static __device__ __forceinline__ Tap tap_of(const Told &told, u32 k, u32 end) {
    const u32 taps = told.y.taps * told.x.taps, channel = k / taps, i = k % taps / told.x.taps, j = k % taps % told.x.taps;
    const u32 y = i * told.y.dilation, x = j * told.x.dilation;
    return {(channel * told.y.input + y) * told.x.input + x, k < end ? y : 0x40000000u, x};
}

extern "C" __global__ void __launch_bounds__(THREADS) conv(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const Told &told = told_by(words);
    __shared__ __align__(16) float a_slices[2][TILE_K * A_STRIDE];
    __shared__ __align__(16) float b_slices[2][TILE_K * TILE_N];
    __shared__ Tap taps[2][TILE_K];

    const u32 thread = threadIdx.x, group = blockIdx.z % told.groups, part = blockIdx.z / told.groups;
    const u32 tiles_m = (told.filters + TILE_M - 1) / TILE_M;
    const u32 row0 = blockIdx.x % tiles_m * TILE_M, column0 = blockIdx.x / tiles_m * TILE_N;
    const u32 positions = told.y.steps * told.x.steps, columns = told.batch * positions;
    const u32 pixels = told.y.input * told.x.input, terms = told.channels * told.y.taps * told.x.taps;
    const u32 k_first = part * told.part, k_end = min(k_first + told.part, terms);

    // The column that this thread fetches: where its window begins. What is before an image wraps round, and so counts as far behind it; among the
    // elements of an image, which are fewer than 2^32, it comes back by what is added.
    const u32 column = min(column0 + thread % TILE_N, columns - 1), image = column / positions, position = column % positions;
    const u32 y0 = position / told.x.steps * told.y.stride - told.y.before, x0 = position % told.x.steps * told.x.stride - told.x.before;
    const size_t first = size_t(image * told.groups + group) * told.channels * pixels;
    const u32 begin = y0 * told.x.input + x0;
    const size_t first_filter = size_t(group) * told.filters * terms;

    float a_fetched[A_LOADS], b_fetched[B_LOADS];
    const auto fetch = [&](u32 k, const Tap *tap) {
#pragma unroll
        for (u32 i = 0; i < A_LOADS; i++) {
            const u32 e = thread + i * THREADS, row = row0 + e / TILE_K, at = k + e % TILE_K;
            a_fetched[i] = row < told.filters && at < k_end ? element(told, in_1, first_filter + size_t(row) * terms + at) : 0.0f;
        }
#pragma unroll
        for (u32 i = 0; i < B_LOADS; i++) {
            const Tap t = tap[thread / TILE_N + i * (THREADS / TILE_N)];
            const bool inside = y0 + t.y < told.y.input && x0 + t.x < told.x.input;
            b_fetched[i] = inside ? element(told, in_0, first + (begin + t.at)) : 0.0f;
        }
    };
    const auto keep = [&](float *a, float *b) {
#pragma unroll
        for (u32 i = 0; i < A_LOADS; i++) {
            const u32 e = thread + i * THREADS;
            a[e % TILE_K * A_STRIDE + e / TILE_K] = a_fetched[i];
        }
#pragma unroll
        for (u32 i = 0; i < B_LOADS; i++) b[thread + i * THREADS] = b_fetched[i];
    };

    if (thread < TILE_K) taps[0][thread] = tap_of(told, k_first + thread, k_end);
    __syncthreads();

    const u32 tx = thread % THREADS_N, ty = thread / THREADS_N;
    float sum[ROWS][COLUMNS] = {};
    // The first turn only fetches; each other multiplies what the one before it has fetched.
#pragma unroll 1
    for (u32 k = k_first, turn = 0;; k += TILE_K, turn ^= 1) {
        const bool fetches = k < k_end;
        if (fetches) fetch(k, taps[turn]);
        if (thread < TILE_K) taps[turn ^ 1][thread] = tap_of(told, k + TILE_K + thread, k_end);
        const float *a = a_slices[turn ^ 1] + ty * 4, *b = b_slices[turn ^ 1] + tx * 4;
        if (k > k_first) {
#pragma unroll
            for (u32 p = 0; p < TILE_K; p++) {
                float x[ROWS], y[COLUMNS];
#pragma unroll
                for (u32 i = 0; i < ROWS; i += 4) {
                    const float4 v = *reinterpret_cast<const float4 *>(a + p * A_STRIDE + i * (TILE_M / ROWS));
                    x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
                }
#pragma unroll
                for (u32 j = 0; j < COLUMNS; j += 4) {
                    const float4 v = *reinterpret_cast<const float4 *>(b + p * TILE_N + j * THREADS_N);
                    y[j] = v.x, y[j + 1] = v.y, y[j + 2] = v.z, y[j + 3] = v.w;
                }
#pragma unroll
                for (u32 i = 0; i < ROWS; i++) {
#pragma unroll
                    for (u32 j = 0; j < COLUMNS; j++) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
                }
            }
        }
        if (!fetches) break;
        // Nobody reads these buffers any more: all are past the barrier behind their last use.
        keep(a_slices[turn], b_slices[turn]);
        __syncthreads();
    }

#pragma unroll
    for (u32 j = 0; j < COLUMNS; j++) {
        const u32 at = column0 + j / 4 * (THREADS_N * 4) + tx * 4 + j % 4;
        if (at >= columns) continue;
        const size_t of_image = (size_t(at / positions) * told.groups + group) * told.filters * positions + at % positions;
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            const u32 row = row0 + i / 4 * (TILE_M / ROWS * 4) + ty * 4 + i % 4;
            if (row >= told.filters) continue;
            const size_t to = of_image + size_t(row) * positions;
            if (told.parts > 1) {
                static_cast<float *>(out)[size_t(part) * told.groups * told.filters * columns + to] = sum[i][j];
            } else {
                finish(source, out, group * told.filters + row, to, sum[i][j]);
            }
        }
    }
}
