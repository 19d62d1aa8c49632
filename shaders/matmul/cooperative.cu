// C = alpha * op(A) * op(B) + beta * C by a GPU's matrix units: A and B in f16, sums in f32; the CUDA twin of cooperative.wgsl. For GPUs
// from compute capability 8.0 on.
//
// A block computes a TILE_M x TILE_N tile of C, walking k in steps of TILE_K. Its slices of A and B lie in shared memory as they are
// stored, in pieces of 16 bytes whose order is changed from line to line, so that eight lines are read at once without conflicts. STAGES
// slices are under way or in use: the copies go from global to shared memory without passing through registers. A warp owns ROWS x COLUMNS
// pieces of 16 x 8 sums.
//
// Rows and items of A and B start at multiples of 8 elements: plan/matmul/cuda.rs copies what does not. A line outside the result repeats the last
// one, and what comes of it is not stored. What is outside at the end of k is zero.
//
//   TRANSPOSE_A   A is stored k x m, else m x k.
//   TRANSPOSE_B   B is stored n x k, else k x n.
//
// With params.k_part as in tiled.cu.
//
// scripts/ptx compiles each of these shapes in all four layouts:
//# arch compute_80
//# shape 128x128x32 WARPS_M=2 WARPS_N=2 STAGES=3
//# shape 64x64x32 WARPS_M=2 WARPS_N=2 STAGES=4

#include "store.cuh"

#define THREADS (WARPS_M * WARPS_N * 32)
// Of a warp's sums: pieces of 16 rows and of 8 columns.
#define ROWS (TILE_M / WARPS_M / 16)
#define COLUMNS (TILE_N / WARPS_N / 8)
// Lines of a slice, and pieces of 8 elements in a line.
#define A_LINES (TRANSPOSE_A ? TILE_K : TILE_M)
#define A_PIECES ((TRANSPOSE_A ? TILE_M : TILE_K) / 8)
#define B_LINES (TRANSPOSE_B ? TILE_N : TILE_K)
#define B_PIECES ((TRANSPOSE_B ? TILE_K : TILE_N) / 8)
#define SLICE_A_BYTES (TILE_M * TILE_K * 2)
#define SLICE_BYTES ((TILE_M + TILE_N) * TILE_K * 2)
// Tiles of so many rows run side by side, so that what they read of B is still in the L2 cache.
#define BAND 8u

static_assert(TILE_K % 16 == 0 && ROWS >= 1 && COLUMNS % 2 == 0, "whole matrices");
static_assert(STAGES * SLICE_BYTES >= WARPS_M * 16 * TILE_N * 4, "what is stored at a time fits where the slices were");
static_assert(STAGES * SLICE_BYTES <= 48 << 10, "shared memory that needs no asking for");

// Where a piece of a line lies: eight lines' pieces of one number are in eight different groups of banks.
template <int PIECES>
static __device__ unsigned place(unsigned line, unsigned piece) {
    const unsigned turned = PIECES >= 8 ? piece ^ (line & 7) : piece ^ (line * PIECES / 8 & (PIECES - 1));
    return (line * PIECES + turned) * 16;
}

// Starts to copy a piece, of which the first so many bytes; the rest becomes zero.
static __device__ void copy_soon(unsigned to, const unsigned short *from, unsigned bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Four matrices of 8 x 8, as matrix units take them.
static __device__ void load(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ void load_turned(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

static __device__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A thread's share of an operand's slices: pieces THREADS apart.
template <int LINES, int PIECES, bool ALONG_K>
struct Slices {
    static const int LOADS = LINES * PIECES / THREADS;
    static_assert(LINES * PIECES % THREADS == 0, "every thread copies as much");

    // Of the first slice; the next ones are `step` elements on.
    const unsigned short *from[LOADS];

    __device__ void start(const unsigned short *matrix, size_t stride, unsigned k0, unsigned side0, unsigned side) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const unsigned at = threadIdx.x + i * THREADS, line = at / PIECES, piece = at % PIECES;
            if (ALONG_K) {
                const unsigned row = side0 + line < side ? side0 + line : side - 1;
                from[i] = matrix + row * stride + k0 + piece * 8;
            } else {
                const unsigned last = (side - 1) / 8 * 8, column = side0 + piece * 8 < last ? side0 + piece * 8 : last;
                from[i] = matrix + (k0 + line) * stride + column;
            }
        }
    }

    // Starts to copy the next slice, of which so many steps of k are left.
    __device__ void fetch(unsigned to, size_t step, unsigned left) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const unsigned at = threadIdx.x + i * THREADS, line = at / PIECES, piece = at % PIECES;
            const unsigned done = ALONG_K ? piece * 8 : line;
            unsigned bytes = left > done ? 16 : 0;
            if (ALONG_K && left > done && left - done < 8) {
                bytes = (left - done) * 2;
            }
            copy_soon(to + place<PIECES>(line, piece), from[i], bytes);
            // Past the end nothing is read, but an address has to be one.
            if (left >= TILE_K) {
                from[i] += step;
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const unsigned short *__restrict__ a, const unsigned short *__restrict__ b, const void *__restrict__ c, const float *__restrict__ bias,
    void *__restrict__ out, const Params params
) {
    __shared__ __align__(128) unsigned char shared[STAGES * SLICE_BYTES];
    const unsigned slices = static_cast<unsigned>(__cvta_generic_to_shared(shared));

    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const unsigned own_m = warp / WARPS_N * (ROWS * 16), own_n = warp % WARPS_N * (COLUMNS * 8);

    const unsigned tiles_m = (params.m - 1) / TILE_M + 1, tiles_n = (params.n - 1) / TILE_N + 1;
    const unsigned band = blockIdx.x / (BAND * tiles_n), in_band = blockIdx.x % (BAND * tiles_n);
    const unsigned band_m = tiles_m - band * BAND < BAND ? tiles_m - band * BAND : BAND;
    const unsigned row0 = (band * BAND + in_band % band_m) * TILE_M, column0 = in_band / band_m * TILE_N;

    const size_t lda = params.lda, ldb = params.ldb;
    const size_t a_step = TRANSPOSE_A ? TILE_K * lda : TILE_K, b_step = TRANSPOSE_B ? TILE_K : TILE_K * ldb;
    const unsigned item = blockIdx.z % params.batch, k0 = blockIdx.z / params.batch * params.k_part;
    a += start(params, item, params.a_outer, params.a_inner);
    b += start(params, item, params.b_outer, params.b_inner);
    unsigned left = params.k - k0;
    if (params.k_part > 0 && left > params.k_part) {
        left = params.k_part;
    }
    const unsigned steps = (left + TILE_K - 1) / TILE_K;

    Slices<A_LINES, A_PIECES, !TRANSPOSE_A> a_slices;
    Slices<B_LINES, B_PIECES, TRANSPOSE_B> b_slices;
    a_slices.start(a + params.a_start, lda, k0, row0, params.m);
    b_slices.start(b + params.b_start, ldb, k0, column0, params.n);
    // The group of copies that belongs to a step is made in any case, so that they can be counted.
    const auto fetch = [&](unsigned step) {
        if (step < steps) {
            const unsigned to = slices + step % STAGES * SLICE_BYTES;
            a_slices.fetch(to, a_step, left);
            b_slices.fetch(to + SLICE_A_BYTES, b_step, left);
            left -= left < TILE_K ? left : TILE_K;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; stage++) {
        fetch(stage);
    }

    float sum[ROWS][COLUMNS][4] = {};
    // Which of four matrices this lane gives the address of, and which line of it.
    const unsigned matrix = lane / 8, line = lane % 8;
#pragma unroll 1
    for (unsigned step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        // All have what this step needs, and are done with what the next copies overwrite.
        __syncthreads();
        fetch(step + STAGES - 1);
        const unsigned a_slice = slices + step % STAGES * SLICE_BYTES, b_slice = a_slice + SLICE_A_BYTES;
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
    }
    asm volatile("cp.async.wait_all;" ::: "memory");

    // Sums go out through shared memory, 16 rows of each warp at a time, as in tiled.cu.
    float *const staged = reinterpret_cast<float *>(shared);
    const unsigned rows = params.m - row0, columns = params.n - column0;
    const unsigned columns_stored = params.k_part > 0 ? params.ldo - column0 : columns;
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        __syncthreads();
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
            const unsigned row = warp / WARPS_N * 16 + lane / 4, column = own_n + j * 8 + lane % 4 * 2;
            const float *v = sum[i][j];
            *reinterpret_cast<float2 *>(staged + row * TILE_N + column) = make_float2(v[0], v[1]);
            *reinterpret_cast<float2 *>(staged + (row + 8) * TILE_N + column) = make_float2(v[2], v[3]);
        }
        __syncthreads();
#pragma unroll 1
        for (unsigned at = threadIdx.x * 4; at < WARPS_M * 16 * TILE_N; at += THREADS * 4) {
            const unsigned row = at / TILE_N / 16 * (ROWS * 16) + i * 16 + at / TILE_N % 16, column = at % TILE_N;
            if (row < rows && column < columns) {
                const float4 v = *reinterpret_cast<const float4 *>(staged + at);
                store(params, c, bias, out, blockIdx.z, item, row0 + row, column0 + column, columns_stored - column, v);
            }
        }
    }
}
