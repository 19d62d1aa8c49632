// C = alpha * op(A) * op(B) + beta * C in f32, register-tiled; the CUDA twin of tiled.wgsl.
//
// A block computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K. Each step's slices of A and B lie in shared memory with
// k outermost, so that a thread reads its rows and columns as float4s. A thread owns ROWS x COLUMNS elements as blocks of 4 x 4,
// THREADS_M * 4 rows and THREADS_N * 4 columns apart: neighbours then read neighbouring float4s. Shared memory has two buffers. The
// next step's slices are fetched into registers before the present one is multiplied, which hides the latency of global memory,
// and go to the other buffer after it, so that one barrier a step is enough.
//
// Slices that lie wholly inside of matrices whose rows start at multiples of 4 elements are fetched unchecked as float4s, others element
// by element; the branch is the same for the whole block. What is outside counts as zero by selection, never by multiplication, so
// that a NaN there cannot spread.
//
//   TRANSPOSE_A   A is stored k x m, else m x k.
//   TRANSPOSE_B   B is stored n x k, else k x n.
//
// Layers of the grid are the items of a batch. With params.k_part there are so many layers for each part of k, which is so long, and
// layer z sums into the z-th of the matrices in out; sum.cu adds them up.
//
// An operand stored with k along its rows is turned on its way to shared memory, into rows padded against bank conflicts.
//
// scripts/ptx compiles each of these shapes in all four layouts into tiled.ptx:
//# shape 128x128x16 ROWS=8 COLUMNS=16
//# shape 64x64x16 ROWS=8 COLUMNS=4
//# shape 32x64x32 ROWS=4 COLUMNS=4
//# shape 32x32x16 ROWS=4 COLUMNS=4

#include "store.cuh"

#define THREADS_M (TILE_M / ROWS)
#define THREADS_N (TILE_N / COLUMNS)
#ifndef THREADS
#define THREADS (THREADS_M * THREADS_N)
#endif
#define A_LOADS (TILE_M * TILE_K / 4 / THREADS)
#define B_LOADS (TILE_N * TILE_K / 4 / THREADS)
#define A_STRIDE (TILE_M + (TRANSPOSE_A ? 0 : 4))
#define B_STRIDE (TILE_N + (TRANSPOSE_B ? 4 : 0))
#define A_SLICE (TILE_K * A_STRIDE)
#define B_SLICE (TILE_K * B_STRIDE)
// Tiles of so many rows run side by side, so that what they read of B is still in the L2 cache.
#define BAND 8u

static_assert(TILE_M % ROWS == 0 && TILE_N % COLUMNS == 0 && ROWS % 4 == 0 && COLUMNS % 4 == 0 && TILE_K % 4 == 0, "whole float4s");
static_assert(TILE_M * TILE_K / 4 % THREADS == 0 && TILE_N * TILE_K / 4 % THREADS == 0, "every thread fetches as much");
static_assert(2 * (A_SLICE + B_SLICE) >= THREADS_M * 4 * TILE_N, "what is stored at a time fits where the slices were");
static_assert(THREADS == THREADS_M * THREADS_N, "the tile is shared out evenly");
static_assert(THREADS_N % 8 == 0 && THREADS_M % 4 == 0, "a warp is 4 x 8 threads");

// Part of an operand's slice: rows and columns as stored, of which a thread fetches `LOADS` float4s.
template <int ROWS_STORED, int COLUMNS_STORED, int LOADS>
struct Slice {
    // Where float4 i of this thread is.
    static __device__ unsigned along(unsigned thread, int i) { return (thread + i * THREADS) % (COLUMNS_STORED / 4) * 4; }
    static __device__ unsigned across(unsigned thread, int i) { return (thread + i * THREADS) / (COLUMNS_STORED / 4); }

    // All inside, and aligned.
    static __device__ void fetch(float4 (&to)[LOADS], const float *from, size_t stride, unsigned thread) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            to[i] = *reinterpret_cast<const float4 *>(from + across(thread, i) * stride + along(thread, i));
        }
    }

    // Zero where outside of so many rows and columns.
    static __device__ void fetch_checked(
        float4 (&to)[LOADS], const float *from, size_t stride, unsigned thread, unsigned rows, unsigned columns
    ) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const unsigned row = across(thread, i), column = along(thread, i);
            const float *p = from + row * stride + column;
            const bool inside = row < rows;
            to[i].x = inside && column < columns ? p[0] : 0.0f;
            to[i].y = inside && column + 1 < columns ? p[1] : 0.0f;
            to[i].z = inside && column + 2 < columns ? p[2] : 0.0f;
            to[i].w = inside && column + 3 < columns ? p[3] : 0.0f;
        }
    }

    // Into rows of k: as it is, or turned.
    static __device__ void keep(float *slice, const float4 (&from)[LOADS], unsigned thread) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            *reinterpret_cast<float4 *>(slice + across(thread, i) * COLUMNS_STORED + along(thread, i)) = from[i];
        }
    }

    static __device__ void keep_turned(float *slice, const float4 (&from)[LOADS], unsigned thread) {
        const unsigned stride = ROWS_STORED + 4;
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            float *p = slice + along(thread, i) * stride + across(thread, i);
            p[0] = from[i].x;
            p[stride] = from[i].y;
            p[2 * stride] = from[i].z;
            p[3 * stride] = from[i].w;
        }
    }
};

typedef Slice<TRANSPOSE_A ? TILE_K : TILE_M, TRANSPOSE_A ? TILE_M : TILE_K, A_LOADS> SliceA;
typedef Slice<TRANSPOSE_B ? TILE_N : TILE_K, TRANSPOSE_B ? TILE_K : TILE_N, B_LOADS> SliceB;

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const float *__restrict__ a, const float *__restrict__ b, const void *__restrict__ c, const float *__restrict__ bias,
    OTHERS void *__restrict__ out, const Params params
) {
    __shared__ __align__(16) float shared[2 * A_SLICE + 2 * B_SLICE];
    float *const a_slices = shared, *const b_slices = shared + 2 * A_SLICE;

    const unsigned thread = threadIdx.x;
    // A quarter of a warp, which reads shared memory at once, is 2 x 4 threads: both operands' reads are then the fewest.
    const unsigned lane = thread % 32, warp = thread / 32;
    const unsigned tx = warp % (THREADS_N / 8) * 8 + lane / 16 * 4 + lane / 2 % 4;
    const unsigned ty = warp / (THREADS_N / 8) * 4 + lane / 8 % 2 * 2 + lane % 2;

    const unsigned tiles_m = (params.m - 1) / TILE_M + 1, tiles_n = (params.n - 1) / TILE_N + 1;
    const unsigned band = blockIdx.x / (BAND * tiles_n), in_band = blockIdx.x % (BAND * tiles_n);
    const unsigned band_m = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const unsigned row0 = (band * BAND + in_band % band_m) * TILE_M, column0 = in_band / band_m * TILE_N;
    // What is left from there, which cannot overflow as a sum may.
    const unsigned rows = params.m - row0, columns = params.n - column0;
    const unsigned steps = params.a_outer | params.b_outer | params.a_inner | params.b_inner;
    const bool vec4 = (params.lda | params.ldb | params.a_start | params.b_start | steps) % 4 == 0;
    const bool unchecked = vec4 && rows >= TILE_M && columns >= TILE_N;

    const size_t lda = params.lda, ldb = params.ldb;
    const unsigned item = blockIdx.z % params.batch, k0 = blockIdx.z / params.batch * params.k_part;
    a += start(params, item, params.a_outer, params.a_inner);
    b += start(params, item, params.b_outer, params.b_inner);
    const float *a_next = a + params.a_start + (TRANSPOSE_A ? k0 * lda + row0 : row0 * lda + k0);
    const float *b_next = b + params.b_start + (TRANSPOSE_B ? column0 * ldb + k0 : k0 * ldb + column0);
    const size_t a_step = TRANSPOSE_A ? TILE_K * lda : TILE_K, b_step = TRANSPOSE_B ? TILE_K : TILE_K * ldb;

    float4 a_fetched[A_LOADS], b_fetched[B_LOADS];
    float sum[ROWS][COLUMNS] = {};

    // The first turn only fetches; each other multiplies what the one before it has fetched.
    unsigned left = params.k - k0;
    if (params.k_part > 0 && left > params.k_part) {
        left = params.k_part;
    }
    for (unsigned turn = 0;; turn++) {
        const bool fetches = left > 0;
        if (fetches) {
            if (unchecked && left >= TILE_K) {
                SliceA::fetch(a_fetched, a_next, lda, thread);
                SliceB::fetch(b_fetched, b_next, ldb, thread);
            } else {
                SliceA::fetch_checked(a_fetched, a_next, lda, thread, TRANSPOSE_A ? left : rows, TRANSPOSE_A ? rows : left);
                SliceB::fetch_checked(b_fetched, b_next, ldb, thread, TRANSPOSE_B ? columns : left, TRANSPOSE_B ? left : columns);
            }
            left -= left < TILE_K ? left : TILE_K;
            a_next += a_step;
            b_next += b_step;
        }
        if (turn > 0) {
            const float *a_slice = a_slices + (turn + 1) % 2 * A_SLICE + ty * 4, *b_slice = b_slices + (turn + 1) % 2 * B_SLICE + tx * 4;
#pragma unroll
            for (int p = 0; p < TILE_K; p++) {
                float x[ROWS], y[COLUMNS];
#pragma unroll
                for (int i = 0; i < ROWS; i += 4) {
                    const float4 v = *reinterpret_cast<const float4 *>(a_slice + p * A_STRIDE + i * THREADS_M);
                    x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
                }
#pragma unroll
                for (int j = 0; j < COLUMNS; j += 4) {
                    const float4 v = *reinterpret_cast<const float4 *>(b_slice + p * B_STRIDE + j * THREADS_N);
                    y[j] = v.x, y[j + 1] = v.y, y[j + 2] = v.z, y[j + 3] = v.w;
                }
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; j++) {
                        sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
                    }
                }
            }
        }
        if (!fetches) {
            break;
        }
        if (TRANSPOSE_A) {
            SliceA::keep(a_slices + turn % 2 * A_SLICE, a_fetched, thread);
        } else {
            SliceA::keep_turned(a_slices + turn % 2 * A_SLICE, a_fetched, thread);
        }
        if (TRANSPOSE_B) {
            SliceB::keep_turned(b_slices + turn % 2 * B_SLICE, b_fetched, thread);
        } else {
            SliceB::keep(b_slices + turn % 2 * B_SLICE, b_fetched, thread);
        }
        __syncthreads();
    }

    // Sums go out through shared memory, a block of 4 rows of each thread at a time: threads then write whole rows, and the code for
    // edges, for C and for activations is there once and not for every register.
    // Parts are read as whole float4s.
    const unsigned columns_stored = params.k_part > 0 ? params.ldo - column0 : columns;
#pragma unroll 1
    for (int i = 0; i < ROWS; i += 4) {
        __syncthreads();
        // Only with a constant index are sums registers.
#pragma unroll
        for (int own = 0; own < ROWS; own += 4) {
            if (own == i) {
#pragma unroll
                for (int r = 0; r < 4; r++) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; j += 4) {
                        const float *v = &sum[own + r][j];
                        float *const to = shared + (ty * 4 + r) * TILE_N + j * THREADS_N + tx * 4;
                        *reinterpret_cast<float4 *>(to) = make_float4(v[0], v[1], v[2], v[3]);
                    }
                }
            }
        }
        __syncthreads();
#pragma unroll 1
        for (unsigned at = thread * 4; at < THREADS_M * 4 * TILE_N; at += THREADS * 4) {
            const unsigned row = i * THREADS_M + at / TILE_N, column = at % TILE_N;
            if (row < rows && column < columns) {
                const float4 v = *reinterpret_cast<const float4 *>(shared + at);
                store(params, c, bias, out, blockIdx.z, item, row0 + row, column0 + column, columns_stored - column, v SOURCE(a, b, c));
            }
        }
    }
}
