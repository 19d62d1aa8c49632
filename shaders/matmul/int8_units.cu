// As int8.cu by a GPU's matrix units, from compute capability 8.0 on.
//
// A block computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K as slices.cuh has it. A warp owns ROWS x COLUMNS pieces of 16 x 8 sums.
// With params.k_part as in tiled.cu: what the parts are added up by is int8_sum.cu.
//
// What is multiplied is of i8: an operand of u8 becomes one, whose elements and zero point are less by 128. At the end of k what is outside is zero
// as stored, and so -128 in an operand of u8.
//
//# kernel matmul/int8
//# arch compute_80
//# shape 128x128x64 WARPS_M=2 WARPS_N=2 STAGES=3
//# shape 64x64x64 WARPS_M=2 WARPS_N=2 STAGES=4

#include "params.cuh"
#include "int8.cuh"

using Element = unsigned char;

#include "slices.cuh"

// Of a warp's sums: pieces of 16 rows and of 8 columns.
#define ROWS (TILE_M / WARPS_M / 16)
#define COLUMNS (TILE_N / WARPS_N / 8)

static_assert(TILE_K % 32 == 0 && ROWS >= 1 && COLUMNS % 2 == 0, "whole matrices");

static __device__ void multiply(unsigned (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four matrices of turned lines as a lane of matrix units has its operands: of 16 lines across k those of even number, then those of odd one, four
// steps of k in a word, and the same of the 16 steps of k behind these.
static __device__ void load_apart(unsigned (&even)[2], unsigned (&odd)[2], unsigned from) {
    unsigned v[4];
    load_turned(v, from);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        even[half] = __byte_perm(v[2 * half], v[2 * half + 1], 0x6420);
        odd[half] = __byte_perm(v[2 * half], v[2 * half + 1], 0x7531);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const Element *__restrict__ a, const Element *__restrict__ b, const void *, const float *, unsigned *__restrict__ out, const Params params
) {
    __shared__ __align__(128) unsigned char shared[STAGES * SLICE_BYTES];

    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned own_m = warp / WARPS_N * (ROWS * 16), own_n = warp % WARPS_N * (COLUMNS * 8);
    const Block block(params);
    const Zeros zeros(params);

    unsigned sum[ROWS][COLUMNS][4] = {}, a_sum[ROWS][4] = {}, b_sum[COLUMNS][4] = {};
    // Which of four matrices this lane gives the address of, and which line of it.
    const unsigned matrix = lane / 8, line = lane % 8;
    const auto add = [&](unsigned a_slice, unsigned b_slice) {
#pragma unroll
        for (int p = 0; p < TILE_K; p += 32) {
            unsigned x[ROWS][4], y[COLUMNS][2];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                if (TRANSPOSE_A) {
                    unsigned even[2], odd[2];
                    load_apart(even, odd, a_slice + place<A_PIECES>(p + matrix * 8 + line, (own_m + i * 16) / 16));
                    x[i][0] = even[0], x[i][1] = odd[0], x[i][2] = even[1], x[i][3] = odd[1];
                } else {
                    load(x[i], a_slice + place<A_PIECES>(own_m + i * 16 + matrix % 2 * 8 + line, p / 16 + matrix / 2));
                }
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    x[i][v] ^= zeros.flip_a;
                }
            }
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 2) {
                if (TRANSPOSE_B) {
                    unsigned v[4];
                    load(v, b_slice + place<B_PIECES>(own_n + j * 8 + matrix / 2 * 8 + line, p / 16 + matrix % 2));
                    y[j][0] = v[0], y[j][1] = v[1], y[j + 1][0] = v[2], y[j + 1][1] = v[3];
                } else {
                    load_apart(y[j], y[j + 1], b_slice + place<B_PIECES>(p + matrix * 8 + line, (own_n + j * 8) / 16));
                }
#pragma unroll
                for (int v = 0; v < 4; v++) {
                    y[j + v / 2][v % 2] ^= zeros.flip_b;
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    multiply(sum[i][j], x[i], y[j][0], y[j][1]);
                }
            }
            if (zeros.b != 0) {
#pragma unroll
                for (int i = 0; i < ROWS; i++) {
                    multiply(a_sum[i], x[i], ONES, ONES);
                }
            }
            if (zeros.a != 0) {
                const unsigned ones[4] = {ONES, ONES, ONES, ONES};
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    multiply(b_sum[j], ones, y[j][0], y[j][1]);
                }
            }
        }
    };
    walk(block, a, b, params, static_cast<unsigned>(__cvta_generic_to_shared(shared)), add);

    const unsigned rest = zeros.rest(block.k, block.steps() * TILE_K);
    out += params.out_start + size_t(blockIdx.z) * params.m * params.ldo;
    // Of a piece a lane has sums in two rows; what it has in two pieces side by side is put at once where it lies so.
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
#pragma unroll
        for (int v = 0; v < 4; v += 2) {
            const unsigned row = block.row0 + own_m + i * 16 + (TRANSPOSE_A ? lane / 4 * 2 + v / 2 : lane / 4 + v * 4);
            if (row >= params.m) {
                continue;
            }
            const unsigned of_row = rest - zeros.b * a_sum[i][v];
            unsigned *const to = out + size_t(row) * params.ldo;
#pragma unroll
            for (int j = 0; j < COLUMNS; j += 2) {
                unsigned four[4];
#pragma unroll
                for (int w = 0; w < 4; w++) {
                    four[w] = sum[i][j + w / 2][v + w % 2] + of_row - zeros.a * b_sum[j + w / 2][w % 2];
                }
                const unsigned column = block.column0 + own_n + j * 8;
                if (TRANSPOSE_B) {
                    put_two(to, column + lane % 4 * 2, params.n, four[0], four[1]);
                    put_two(to, column + 8 + lane % 4 * 2, params.n, four[2], four[3]);
                } else {
                    // Even columns are in the first piece, odd ones in the second.
                    put_two(to, column + lane % 4 * 4, params.n, four[0], four[2]);
                    put_two(to, column + lane % 4 * 4 + 2, params.n, four[1], four[3]);
                }
            }
        }
    }
}
