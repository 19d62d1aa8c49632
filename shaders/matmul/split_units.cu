// C = alpha * op(A) * op(B) + beta * C by a GPU's matrix units, A and B in the two terms of f16 each that split.cu makes of f32: what cooperative.wgsl
// does with two terms. For GPUs from compute capability 8.0 on.
//
// A block computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K as slices.cuh has it, and a warp ROWS x COLUMNS pieces of it. Both
// operands lie along k, pieces of h and of l in turns: k, k_part and TILE_K count two elements for each of k. With params.k_part as in tiled.cu.
//
// Of the four products of terms the least is left out. Units cut off what f32 would round, which over a long k adds up: of h * h they sum up 16
// terms of k, and f32 those sums. The other two products are 2^11 times smaller, and so is what their sums lose.
//
// What is multiplied next is loaded before: the rows of A's pieces one after the other, and all columns of B's for 16 of k.
//
//# kernel matmul/cooperative
//# arch compute_80
//# variant f16x3-64x128x16 TILE_M=64 TILE_N=128 TILE_K=32 WARPS_M=2 WARPS_N=2 STAGES=4
//# variant f16x3-64x64x32 TILE_M=64 TILE_N=64 TILE_K=64 WARPS_M=2 WARPS_N=2 STAGES=3
//# variant f16x3-64x32x32 TILE_M=64 TILE_N=32 TILE_K=64 WARPS_M=2 WARPS_N=2 STAGES=3

#include "store.cuh"

using Element = unsigned short;

#define TRANSPOSE_A 0
#define TRANSPOSE_B 1
#include "slices.cuh"
#include "pieces.cuh"

// Times that 16 of k lie in a slice.
#define STEPS (TILE_K / 32)

static_assert(ROWS % 2 == 0 && (STEPS == 1 || STEPS % 2 == 0), "what is loaded takes turns");
static_assert(STAGES * SLICE_BYTES >= WARPS_M * 16 * TILE_N * 4 + (TILE_M + TILE_N) * 4, "what is stored at a time leaves room for exponents");

// An operand's exponents stand at the ends of its lines.
static __device__ int exponent_of(const Element *matrix, unsigned line, size_t stride) {
    return *reinterpret_cast<const int *>(matrix + (line + 1) * stride - PIECE);
}

// 2^e, for e from -126 to 127.
static __device__ float power(int e) { return __int_as_float((e + 127) << 23); }

// A sum with both powers of two taken out, in two steps, neither of which leaves the range of f32 unless the result does.
static __device__ float unscaled(float sum, int e) { return sum * power(e / 2) * power(e - e / 2); }

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const Element *__restrict__ a, const Element *__restrict__ b, const void *__restrict__ c, const float *__restrict__ bias,
    void *__restrict__ out, const Params params
) {
    __shared__ __align__(128) unsigned char shared[STAGES * SLICE_BYTES];

    const unsigned slices = static_cast<unsigned>(__cvta_generic_to_shared(shared));
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // Which of four matrices this lane gives the address of, and which line of it.
    const unsigned matrix = lane / 8, line = lane % 8;
    const unsigned a_line = warp / WARPS_N * (ROWS * 16) + matrix % 2 * 8 + line, b_line = warp % WARPS_N * (COLUMNS * 8) + matrix / 2 * 8 + line;
    const Block block(params);
    a += params.a_start + start(params, block.item, params.a_outer, params.a_inner);
    b += params.b_start + start(params, block.item, params.b_outer, params.b_inner);
    Slices<A_LINES, A_PIECES, true> a_slices;
    Slices<B_LINES, B_PIECES, true> b_slices;
    a_slices.start(a, params.lda, block.k0, block.row0, params.m);
    b_slices.start(b, params.ldb, block.k0, block.column0, params.n);
    const unsigned steps = block.steps();
    unsigned left = block.k;
    // The group of copies that belongs to a step is made in any case, so that they can be counted.
    const auto fetch = [&](unsigned step) {
        if (step < steps) {
            const unsigned to = slices + step % STAGES * SLICE_BYTES;
            a_slices.fetch(to, TILE_K, left);
            b_slices.fetch(to + SLICE_A_BYTES, TILE_K, left);
            left -= left < TILE_K ? left : TILE_K;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    // Both terms of 16 rows of A for step p of a slice, and of 16 columns of B.
    const auto load_rows = [&](unsigned (&x)[2][4], unsigned slice, int p, int i) {
#pragma unroll
        for (int term = 0; term < 2; term++) {
            load(x[term], slice + place<A_PIECES>(a_line + i * 16, p * 4 + matrix / 2 * 2 + term));
        }
    };
    const auto load_columns = [&](unsigned (&y)[COLUMNS / 2][2][4], unsigned slice, int p) {
#pragma unroll
        for (int at = 0; at < COLUMNS; at++) {
            load(y[at / 2][at % 2], slice + SLICE_A_BYTES + place<B_PIECES>(b_line + at / 2 * 16, p * 4 + matrix % 2 * 2 + at % 2));
        }
    };

    float sum[ROWS][COLUMNS][4] = {}, low[ROWS][COLUMNS][4] = {};
    // What is multiplied, and what is next.
    unsigned x[2][2][4], y[2][COLUMNS / 2][2][4];
#pragma unroll
    for (int stage = 0; stage < STAGES; stage++) {
        fetch(stage);
    }
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
    __syncthreads();
    load_rows(x[0], slices, 0, 0);
    load_columns(y[0], slices, 0);
    unsigned slice = slices;
#pragma unroll 1
    for (unsigned step = 0; step < steps; step++) {
        const unsigned next_slice = slices + (step + 1) % STAGES * SLICE_BYTES;
#pragma unroll
        for (int p = 0; p < STEPS; p++) {
            const bool is_last = p == STEPS - 1;
            const int now = p % 2;
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (i < ROWS - 1) {
                    load_rows(x[(i + 1) % 2], slice, p, i + 1);
                } else {
                    if (is_last) {
                        // All have what the next step needs, and have loaded what the next copies overwrite.
                        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
                        __syncthreads();
                        fetch(step + STAGES);
                    }
                    load_rows(x[0], is_last ? next_slice : slice, is_last ? 0 : p + 1, 0);
                    load_columns(y[1 - now], is_last ? next_slice : slice, is_last ? 0 : p + 1);
                }
                const auto add = [&](float (&to)[COLUMNS][4], int of_a, int of_b) {
#pragma unroll
                    for (int j = 0; j < COLUMNS; j++) {
                        multiply(to[j], x[i % 2][of_a], y[now][j / 2][of_b][j % 2 * 2], y[now][j / 2][of_b][j % 2 * 2 + 1]);
                    }
                };
                float high[COLUMNS][4] = {};
                add(low[i], 0, 1);
                add(high, 0, 0);
                add(low[i], 1, 0);
#pragma unroll
                for (int at = 0; at < COLUMNS * 4; at++) {
                    sum[i][at / 4][at % 4] += high[at / 4][at % 4];
                }
            }
            if (STEPS == 1) {
#pragma unroll
                for (int at = 0; at < COLUMNS * 4; at++) {
                    y[0][at / 8][at / 4 % 2][at % 4] = y[1][at / 8][at / 4 % 2][at % 4];
                }
            }
        }
        slice = next_slice;
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();

#pragma unroll
    for (int at = 0; at < ROWS * COLUMNS * 4; at++) {
        sum[at / 4 / COLUMNS][at / 4 % COLUMNS][at % 4] += low[at / 4 / COLUMNS][at / 4 % COLUMNS][at % 4] / 2048.0f;
    }
    // Exponents of the tile's rows, and of its columns behind them, where no sums are staged.
    float *const staged = reinterpret_cast<float *>(shared);
    int *const exponents = reinterpret_cast<int *>(staged + WARPS_M * 16 * TILE_N);
    for (unsigned at = threadIdx.x; at < TILE_M + TILE_N; at += THREADS) {
        exponents[at] = at < TILE_M ? exponent_of(a, least(block.row0 + at, params.m - 1), params.lda)
                                    : exponent_of(b, least(block.column0 + at - TILE_M, params.n - 1), params.ldb);
    }
    const unsigned columns_stored = params.k_part > 0 ? params.ldo : params.n;
    store_pieces(sum, block, params, staged, [&](unsigned row, unsigned column, float4 v) {
        const int of_row = exponents[row - block.row0], *const of_columns = exponents + TILE_M + column - block.column0;
        v.x = unscaled(v.x, -of_row - of_columns[0]), v.y = unscaled(v.y, -of_row - of_columns[1]);
        v.z = unscaled(v.z, -of_row - of_columns[2]), v.w = unscaled(v.w, -of_row - of_columns[3]);
        store(params, c, bias, out, blockIdx.z, block.item, row, column, columns_stored - column, v);
    });
}
