// C = alpha * op(A) * op(B) + beta * C by a GPU's matrix units: A and B in f16, sums in f32; the CUDA twin of cooperative.wgsl. For GPUs
// from compute capability 8.0 on.
//
// A block computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K as slices.cuh has it. A warp owns ROWS x COLUMNS pieces of 16 x 8
// sums. With params.k_part as in tiled.cu.
//
// scripts/ptx compiles each of these shapes in all four layouts:
//# arch compute_80
//# shape 128x128x32 WARPS_M=2 WARPS_N=2 STAGES=3
//# shape 64x64x32 WARPS_M=2 WARPS_N=2 STAGES=4

#include "store.cuh"

using Element = unsigned short;

#include "slices.cuh"
#include "pieces.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const Element *__restrict__ a, const Element *__restrict__ b, const void *__restrict__ c, const float *__restrict__ bias,
    void *__restrict__ out, const Params params
) {
    __shared__ __align__(128) unsigned char shared[STAGES * SLICE_BYTES];

    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned own_m = warp / WARPS_N * (ROWS * 16), own_n = warp % WARPS_N * (COLUMNS * 8);
    const Block block(params);

    float sum[ROWS][COLUMNS][4] = {};
    // Which of four matrices this lane gives the address of, and which line of it.
    const unsigned matrix = lane / 8, line = lane % 8;
    const auto add = [&](unsigned a_slice, unsigned b_slice) {
#pragma unroll
        for (int p = 0; p < TILE_K; p += 16) {
            unsigned x[ROWS][4], y[COLUMNS / 2][4];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                const unsigned row = own_m + i * 16 + matrix % 2 * 8, k = p + matrix / 2 * 8;
                if (TRANSPOSE_A) {
                    load_turned(x[i], a_slice + place<A_PIECES>(k + line, row / 8));
                } else {
                    load(x[i], a_slice + place<A_PIECES>(row + line, k / 8));
                }
            }
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j++) {
                const unsigned column = own_n + j * 16 + matrix / 2 * 8, k = p + matrix % 2 * 8;
                if (TRANSPOSE_B) {
                    load(y[j], b_slice + place<B_PIECES>(column + line, k / 8));
                } else {
                    load_turned(y[j], b_slice + place<B_PIECES>(k + line, column / 8));
                }
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
#pragma unroll
                for (int j = 0; j < COLUMNS; j++) {
                    multiply(sum[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
                }
            }
        }
    };
    walk(block, a, b, params, static_cast<unsigned>(__cvta_generic_to_shared(shared)), add);

    const unsigned columns_stored = params.k_part > 0 ? params.ldo : params.n;
    store_pieces(sum, block, params, reinterpret_cast<float *>(shared), [&](unsigned row, unsigned column, float4 v) {
        store(params, c, bias, out, blockIdx.z, block.item, row, column, columns_stored - column, v);
    });
}
