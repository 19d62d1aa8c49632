// C = (op(A) - zero of A) * (op(B) - zero of B) of 8-bit integers, in 32 bits and exact modulo 2^32; the CUDA twin of int8.wgsl.
//
// A block computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K. Each step's slices of A and B lie in shared memory as words of four
// elements of k, with k outermost. Shared memory has two buffers: the next step's slices are fetched into registers before the present one is
// multiplied, and go to the other buffer after it, so that one barrier a step is enough. What a thread fetches at once is a block of four lines of the
// tile by four elements of k: where k runs along stored rows it is a word of each of four rows, and where it runs across them a word of each of
// four, turned.
//
// One instruction multiplies two words, and a thread owns ROWS x COLUMNS sums in blocks of four, as in tiled.cu.
//
// With z and y for the zero points of A and B, C is the sum of a b - z * sum of b - y * sum of a + k z y. What is multiplied is of i8: an operand of
// u8 becomes one, whose elements and zero point are less by 128.
//
// A line outside the result repeats the last one, and what comes of it is not stored. At the end of k what is outside is zero.
//
// How operands are stored is told at run time: those branches are the same for all threads. With params.k_part as in tiled.cu: what the parts are
// added up by is int8_sum.cu.
//
//# arch compute_61
//# variant 64x64x64 TILE_M=64 TILE_N=64 TILE_K=64 WARPS_M=2 WARPS_N=2 ROWS=8 COLUMNS=4

#include "params.cuh"
#include "block.cuh"
#include "int8.cuh"
#include "int8_words.cuh"

#define THREADS (WARPS_M * WARPS_N * 32)
// Words of k in a slice, and where the next ones begin: eight lines of four of them lie in as many banks as there are.
#define WORDS (TILE_K / 4)
#define A_STRIDE (TILE_M + 8)
#define B_STRIDE (TILE_N + 8)

static_assert(TILE_M % 32 == 0 && TILE_N % 32 == 0 && TILE_K % 32 == 0, "whole pieces, and no two lines in a bank");
static_assert(TILE_M * WORDS / 4 % THREADS == 0 && TILE_N * WORDS / 4 % THREADS == 0, "every thread fetches as much");
#define THREADS_M (TILE_M / ROWS)
#define THREADS_N (TILE_N / COLUMNS)
static_assert(THREADS == THREADS_M * THREADS_N && THREADS_N % 8 == 0 && THREADS_M % 4 == 0, "the tile is shared out evenly");

// A thread's share of an operand's slices.
template <int TILE>
struct Slice {
    static const int LOADS = TILE * WORDS / 4 / THREADS;

    const bool along_k;
    uint4 block[LOADS];

    // Which word of k block i is of, and which four lines: neighbours fetch neighbouring words.
    __device__ unsigned word(int i) const {
        const unsigned at = threadIdx.x + i * THREADS;
        return along_k ? at % WORDS : at / (TILE / 4);
    }
    __device__ unsigned four(int i) const {
        const unsigned at = threadIdx.x + i * THREADS;
        return along_k ? at / WORDS : at % (TILE / 4);
    }

    // Of the `side` lines those from side0 on, and of `end` elements of k those from k0 on.
    __device__ void
    fetch(const unsigned *words, size_t first, size_t stride, unsigned side0, unsigned side, unsigned k0, unsigned end, unsigned flip) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            block[i] = four_by_four(words, first, stride, along_k, side0 + four(i) * 4, side, k0 + word(i) * 4, end, flip);
        }
    }

    __device__ void put(unsigned *slice, unsigned stride) const {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            *reinterpret_cast<uint4 *>(slice + word(i) * stride + four(i) * 4) = block[i];
        }
    }
};

// The sums of a thread, in blocks of four rows by four columns, THREADS_M * 4 rows and THREADS_N * 4 columns apart.
struct Sums {
    unsigned of[ROWS][COLUMNS], a[ROWS], b[COLUMNS];

    static __device__ unsigned row(int i) {
        const unsigned ty = threadIdx.x / 32 % (THREADS_M / 4) * 4 + threadIdx.x % 32 / 8;
        return (i / 4 * THREADS_M + ty) * 4 + i % 4;
    }
    static __device__ unsigned column(int j) {
        const unsigned tx = threadIdx.x / 32 / (THREADS_M / 4) * 8 + threadIdx.x % 8;
        return (j / 4 * THREADS_N + tx) * 4 + j % 4;
    }

    __device__ void add(const unsigned *a_slice, const unsigned *b_slice, bool sums_a, bool sums_b) {
#pragma unroll 2
        for (int p = 0; p < WORDS; p++) {
            __align__(16) unsigned x[ROWS], y[COLUMNS];
#pragma unroll
            for (int i = 0; i < ROWS; i += 4) {
                *reinterpret_cast<uint4 *>(x + i) = *reinterpret_cast<const uint4 *>(a_slice + p * A_STRIDE + row(i));
            }
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 4) {
                *reinterpret_cast<uint4 *>(y + j) = *reinterpret_cast<const uint4 *>(b_slice + p * B_STRIDE + column(j));
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    of[i][j] = product(x[i], y[j], of[i][j]);
                }
            }
            if (sums_a) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    a[i] = product(x[i], ONES, a[i]);
                }
            }
            if (sums_b) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    b[j] = product(y[j], ONES, b[j]);
                }
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const unsigned *__restrict__ a, const unsigned *__restrict__ b, const void *, const float *, unsigned *__restrict__ out, const Params params
) {
    __shared__ __align__(16) unsigned a_slices[2][WORDS * A_STRIDE], b_slices[2][WORDS * B_STRIDE];

    const Block block(params);
    const Zeros zeros(params);
    const size_t a_first = params.a_start + start(params, block.item, params.a_outer, params.a_inner);
    const size_t b_first = params.b_start + start(params, block.item, params.b_outer, params.b_inner);

    Slice<TILE_M> a_slice = {(params.result & ALONG_K_A) != 0};
    Slice<TILE_N> b_slice = {(params.result & ALONG_K_B) != 0};
    const unsigned end = block.k0 + block.k, steps = block.steps();
    const auto fetch = [&](unsigned k0) {
        a_slice.fetch(a, a_first, params.lda, block.row0, params.m, k0, end, zeros.flip_a);
        b_slice.fetch(b, b_first, params.ldb, block.column0, params.n, k0, end, zeros.flip_b);
    };
    const auto put = [&](unsigned buffer) {
        a_slice.put(a_slices[buffer], A_STRIDE);
        b_slice.put(b_slices[buffer], B_STRIDE);
    };

    Sums sums = {};
#pragma unroll 1
    for (unsigned step = 0; step <= steps; step++) {
        if (step < steps) {
            fetch(block.k0 + step * TILE_K);
        }
        if (step > 0) {
            sums.add(a_slices[(step - 1) % 2], b_slices[(step - 1) % 2], zeros.b != 0, zeros.a != 0);
        }
        if (step < steps) {
            put(step % 2);
            __syncthreads();
        }
    }

    out += params.out_start + size_t(blockIdx.z) * params.m * params.ldo;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const unsigned row = block.row0 + sums.row(i);
        if (row >= params.m) {
            continue;
        }
        const unsigned of_row = zeros.rest(block.k, block.k) - zeros.b * sums.a[i];
#pragma unroll
        for (int j = 0; j < COLUMNS; j += 2) {
            const unsigned column = block.column0 + sums.column(j);
            const unsigned x = sums.of[i][j] + of_row - zeros.a * sums.b[j], y = sums.of[i][j + 1] + of_row - zeros.a * sums.b[j + 1];
            put_two(out + size_t(row) * params.ldo, column, params.n, x, y);
        }
    }
}
