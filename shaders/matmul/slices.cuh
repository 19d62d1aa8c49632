// How the kernels for matrix units walk along k: slices of A and B come from global into shared memory without passing through registers, STAGES
// of them under way or in use, as they are stored.
//
// A slice's line has pieces of 16 bytes, PIECE elements, whose order is changed from line to line, so that eight lines are read at once without
// conflicts. Rows and items of A and B start at multiples of a piece: plan/matmul/cuda.rs copies what does not. A line outside the result repeats
// the last one, and what comes of it is not stored. What is outside at the end of k is zero.
//
//   Element       the type of the operands' elements, of one or two bytes.
//   TRANSPOSE_A   A is stored k x m, else m x k.
//   TRANSPOSE_B   B is stored n x k, else k x n.

#include "block.cuh"

#define THREADS (WARPS_M * WARPS_N * 32)
#define PIECE unsigned(16 / sizeof(Element))
// Lines of a slice, and pieces in a line.
#define A_LINES (TRANSPOSE_A ? TILE_K : TILE_M)
#define A_PIECES ((TRANSPOSE_A ? TILE_M : TILE_K) / PIECE)
#define B_LINES (TRANSPOSE_B ? TILE_N : TILE_K)
#define B_PIECES ((TRANSPOSE_B ? TILE_K : TILE_N) / PIECE)
#define SLICE_A_BYTES (TILE_M * TILE_K * sizeof(Element))
#define SLICE_BYTES ((TILE_M + TILE_N) * TILE_K * sizeof(Element))

static_assert(STAGES * SLICE_BYTES <= 48 << 10, "shared memory that needs no asking for");

// Where a piece of a line lies: eight lines' pieces of one number are in eight different groups of banks.
template <int PIECES>
static __device__ unsigned place(unsigned line, unsigned piece) {
    const unsigned turned = PIECES >= 8 ? piece ^ (line & 7) : piece ^ (line * PIECES / 8 & (PIECES - 1));
    return (line * PIECES + turned) * 16;
}

// Starts to copy a piece, of which the first so many bytes; the rest becomes zero.
static __device__ void copy_soon(unsigned to, const Element *from, unsigned bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Four matrices of eight lines by 16 bytes, as matrix units take them; a lane gives the address of line lane % 8 of matrix lane / 8.
static __device__ void load(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// The same, turned, two bytes at a time.
static __device__ void load_turned(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

// Which line of a slice has step k. Turned bytes come two steps at a time, of which a lane needs four side by side: the second two of each four
// lie in the next matrix.
static __device__ unsigned line_of(unsigned k) {
    return sizeof(Element) == 1 ? (k & ~15u) | (k & 2) << 2 | (k & 12) >> 1 | (k & 1) : k;
}

// A thread's share of an operand's slices: pieces THREADS apart.
template <int LINES, int PIECES, bool ALONG_K>
struct Slices {
    static const int LOADS = LINES * PIECES / THREADS;
    static_assert(LINES * PIECES % THREADS == 0, "every thread copies as much");

    // Of the first slice; the next ones are `step` elements on.
    const Element *from[LOADS];

    __device__ void start(const Element *matrix, size_t stride, unsigned k0, unsigned side0, unsigned side) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const unsigned at = threadIdx.x + i * THREADS, line = at / PIECES, piece = at % PIECES;
            if (ALONG_K) {
                const unsigned row = side0 + line < side ? side0 + line : side - 1;
                from[i] = matrix + row * stride + k0 + piece * PIECE;
            } else {
                const unsigned last = (side - 1) / PIECE * PIECE, column = side0 + piece * PIECE < last ? side0 + piece * PIECE : last;
                from[i] = matrix + (k0 + line) * stride + column;
            }
        }
    }

    // Starts to copy the next slice, of which so many steps of k are left.
    __device__ void fetch(unsigned to, size_t step, unsigned left) {
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            const unsigned at = threadIdx.x + i * THREADS, line = at / PIECES, piece = at % PIECES;
            const unsigned done = ALONG_K ? piece * PIECE : line;
            unsigned bytes = left > done ? 16 : 0;
            if (ALONG_K && left > done && left - done < PIECE) {
                bytes = (left - done) * sizeof(Element);
            }
            copy_soon(to + place<PIECES>(ALONG_K ? line : line_of(line), piece), from[i], bytes);
            // Past the end nothing is read, but an address has to be one.
            if (left >= TILE_K) {
                from[i] += step;
            }
        }
    }
};

    // Calls `add` with where the slices of A and of B are, for one step after the other. What is shared is free for other use after it once all
    // threads are here.
    template <typename F>
    static __device__ void walk(const Block &block, const Element *a, const Element *b, const Params &params, unsigned slices, F add) {
        const size_t lda = params.lda, ldb = params.ldb;
        const size_t a_step = TRANSPOSE_A ? TILE_K * lda : TILE_K, b_step = TRANSPOSE_B ? TILE_K : TILE_K * ldb;
        a += params.a_start + start(params, block.item, params.a_outer, params.a_inner);
        b += params.b_start + start(params, block.item, params.b_outer, params.b_inner);
        Slices<A_LINES, A_PIECES, !TRANSPOSE_A> a_slices;
        Slices<B_LINES, B_PIECES, TRANSPOSE_B> b_slices;
        a_slices.start(a, lda, block.k0, block.row0, params.m);
        b_slices.start(b, ldb, block.k0, block.column0, params.n);
        const unsigned steps = block.steps();
        unsigned left = block.k;
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
#pragma unroll 1
        for (unsigned step = 0; step < steps; step++) {
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
            // All have what this step needs, and are done with what the next copies overwrite.
            __syncthreads();
            fetch(step + STAGES - 1);
            const unsigned a_slice = slices + step % STAGES * SLICE_BYTES;
            add(a_slice, a_slice + SLICE_A_BYTES);
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
    }
