// Sums of f32 in the pieces that matrix units compute of f16, a warp's ROWS x COLUMNS of 16 rows and 8 columns.

#define ROWS (TILE_M / WARPS_M / 16)
#define COLUMNS (TILE_N / WARPS_N / 8)

static_assert(TILE_K % 16 == 0 && ROWS >= 1 && COLUMNS % 2 == 0, "whole matrices");
static_assert(STAGES * SLICE_BYTES >= WARPS_M * 16 * TILE_N * 4, "what is stored at a time fits where the slices were");

static __device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Has four sums of a row at a time stored, by their row and column in the result, of those that lie in it. They go through shared memory, 16
// rows of each warp at a time, as in tiled.cu.
template <typename F>
static __device__ void store_pieces(const float (&sum)[ROWS][COLUMNS][4], const Block &block, const Params &params, float *staged, F store_four) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned rows = params.m - block.row0, columns = params.n - block.column0;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        __syncthreads();
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const unsigned row = warp / WARPS_N * 16 + lane / 4, column = warp % WARPS_N * (COLUMNS * 8) + j * 8 + lane % 4 * 2;
            const float *v = sum[i][j];
            *reinterpret_cast<float2 *>(staged + row * TILE_N + column) = make_float2(v[0], v[1]);
            *reinterpret_cast<float2 *>(staged + (row + 8) * TILE_N + column) = make_float2(v[2], v[3]);
        }
        __syncthreads();
#pragma unroll 1
        for (unsigned at = threadIdx.x * 4; at < WARPS_M * 16 * TILE_N; at += THREADS * 4) {
            const unsigned row = at / TILE_N / 16 * (ROWS * 16) + i * 16 + at / TILE_N % 16, column = at % TILE_N;
            if (row < rows && column < columns) {
                store_four(block.row0 + row, block.column0 + column, *reinterpret_cast<const float4 *>(staged + at));
            }
        }
    }
}
