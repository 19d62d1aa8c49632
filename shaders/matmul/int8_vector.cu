// Y = (M - zero of M) * (X - zero of X) of 8-bit integers, in 32 bits and exact modulo 2^32, where one side of the product is a few rows or columns,
// VECTORS at most, which are the vectors of X and Y here; the CUDA twin of int8_vector.wgsl. M is read once.
//
// M has a row for each element of a vector of Y, and params.k columns. A block is groups of params.lanes threads. A group has four
// neighbouring elements of each vector, its lanes share the columns, and their sums are added up in shared memory, four vectors at a time.
//
//   a                M: by rows (ALONG), neighbours being neighbouring columns, or by columns; lines params.lda apart
//   b                X: k elements of each vector: neighbours being of one vector (ALONG_K_B), the vectors params.ldb apart, or of one column of M,
//                    what is for the next params.ldb further
//   params.tall      the vectors are columns of the result; otherwise they are rows of it
//   params.k_part    as in int8.cu
//
// What is multiplied is of i8, as in int8.cu.
//
//# arch compute_61
//# variant along-1 ALONG=1 VECTORS=1 THREADS=128
//# variant along-2 ALONG=1 VECTORS=2 THREADS=128
//# variant along-4 ALONG=1 VECTORS=4 THREADS=128
//# variant along-8 ALONG=1 VECTORS=8 THREADS=128
//# variant across-1 ALONG=0 VECTORS=1 THREADS=256
//# variant across-2 ALONG=0 VECTORS=2 THREADS=256
//# variant across-4 ALONG=0 VECTORS=4 THREADS=256
//# variant across-8 ALONG=0 VECTORS=8 THREADS=256

#include "params.cuh"
#include "int8.cuh"
#include "int8_words.cuh"

// Vectors whose sums are added up at once, and how often that is done.
#define TURN (VECTORS < 4 ? VECTORS : 4)
#define TURNS (VECTORS / TURN)
#define AT_ONCE 2

// Four steps of k of each vector from one on. The last vector is repeated.
static __device__ void read_vectors(
    unsigned (&to)[VECTORS], const unsigned *words, size_t first, size_t stride, bool along_k, unsigned vectors, unsigned k, unsigned end,
    unsigned flip
) {
    if (along_k && k + 4 <= end) {
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++) to[v] = four_at(words, first + min(v, vectors - 1) * stride + k, 4) ^ flip;
        return;
    }
#pragma unroll
    for (unsigned v = 0; v < VECTORS; v += 4) {
        const uint4 four = four_by_four(words, first, stride, along_k, v, vectors, k, end, flip);
        const unsigned all[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
        for (unsigned i = 0; i < TURN; i++) to[v + i] = all[i];
    }
}

// The sums of a thread.
struct Sums {
    unsigned of[VECTORS][4], m[4], x[VECTORS];

    __device__ void add(uint4 block, const unsigned (&vectors)[VECTORS], const Zeros &zeros) {
        const unsigned lines[4] = {block.x, block.y, block.z, block.w};
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++) {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) of[v][i] = product(vectors[v], lines[i], of[v][i]);
        }
        if (zeros.b != 0) {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) m[i] = product(lines[i], ONES, m[i]);
        }
        if (zeros.a != 0) {
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++) x[v] = product(vectors[v], ONES, x[v]);
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const unsigned *__restrict__ a, const unsigned *__restrict__ b, const void *, const float *, unsigned *__restrict__ out, const Params params
) {
    const Zeros zeros(params);
    const unsigned lanes = params.lanes, groups = THREADS / lanes;
    // Lanes beside one another read what lies there: words of a line, or lines.
    const unsigned lane = ALONG ? threadIdx.x % lanes : threadIdx.x / groups, group = ALONG ? threadIdx.x / lanes : threadIdx.x % groups;
    const unsigned line = (blockIdx.x * groups + group) * 4, lines = params.tall ? params.m : params.n;
    const unsigned vectors = params.tall ? params.n : params.m, step = lanes * 4;
    const unsigned item = blockIdx.z % params.batch, first = blockIdx.z / params.batch * params.k_part;
    const unsigned last = params.k_part > 0 ? min(params.k, first + params.k_part) : params.k;
    const size_t stride = params.lda, a_first = params.a_start + start(params, item, params.a_outer, params.a_inner);
    const size_t b_first = params.b_start + start(params, item, params.b_outer, params.b_inner);
    const bool x_along = (params.result & ALONG_K_B) != 0;

    Sums sums = {};
    unsigned k = first + lane * 4;
    const bool are_words = ((params.a_start | params.lda | params.a_outer | params.a_inner) & 3) == 0;
    if (are_words && line + 4 <= lines) {
        const unsigned *const from = a + (a_first + (ALONG ? line * stride : line)) / 4;
        const auto block = [&](unsigned at) {
            const unsigned *const words = from + (ALONG ? at / 4 : at * (stride / 4));
            const uint4 lines = make_uint4(words[0], words[stride / 4], words[stride / 2], words[stride / 4 * 3]);
            const uint4 four = ALONG ? lines : turned(lines);
            return make_uint4(four.x ^ zeros.flip_a, four.y ^ zeros.flip_a, four.z ^ zeros.flip_a, four.w ^ zeros.flip_a);
        };
        // So many blocks are under way at once.
#pragma unroll 1
        for (; k + (AT_ONCE - 1) * step + 4 <= last; k += AT_ONCE * step) {
            uint4 blocks[AT_ONCE];
            unsigned x[AT_ONCE][VECTORS];
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++) blocks[i] = block(k + i * step);
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++) {
                read_vectors(x[i], b, b_first, params.ldb, x_along, vectors, k + i * step, last, zeros.flip_b);
            }
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++) sums.add(blocks[i], x[i], zeros);
        }
#pragma unroll 1
        for (; k + 4 <= last; k += step) {
            unsigned x[VECTORS];
            read_vectors(x, b, b_first, params.ldb, x_along, vectors, k, last, zeros.flip_b);
            sums.add(block(k), x, zeros);
        }
    }
    // What is past the last line is nobody's.
    if (line < lines) {
#pragma unroll 1
        for (; k < last; k += step) {
            unsigned x[VECTORS];
            read_vectors(x, b, b_first, params.ldb, x_along, vectors, k, last, zeros.flip_b);
            sums.add(four_by_four(a, a_first, stride, ALONG, line, lines, k, last, zeros.flip_a), x, zeros);
        }
    }

    __shared__ uint4 shared[TURN][THREADS];
    const unsigned at = group * lanes + lane, rest = zeros.rest(last - first, last - first);
    out += params.out_start + size_t(blockIdx.z) * params.m * params.ldo;
#pragma unroll 1
    for (unsigned turn = 0; turn < TURNS; turn++) {
        __syncthreads();
        // Only with a constant index are sums registers.
#pragma unroll
        for (unsigned own = 0; own < TURNS; own++) {
            if (own == turn) {
#pragma unroll
                for (unsigned i = 0; i < TURN; i++) {
                    const unsigned v = own * TURN + i, less = zeros.a * sums.x[v];
                    const unsigned *const sum = sums.of[v], *const m = sums.m;
                    shared[i][at] = make_uint4(
                        sum[0] - less - zeros.b * m[0], sum[1] - less - zeros.b * m[1], sum[2] - less - zeros.b * m[2],
                        sum[3] - less - zeros.b * m[3]
                    );
                }
            }
        }
#pragma unroll 1
        for (unsigned half = lanes / 2; half > 0; half /= 2) {
            __syncthreads();
            if (lane < half) {
#pragma unroll
                for (unsigned v = 0; v < TURN; v++) {
                    uint4 &to = shared[v][at];
                    const uint4 more = shared[v][at + half];
                    to.x += more.x, to.y += more.y, to.z += more.z, to.w += more.w;
                }
            }
        }
        __syncthreads();
        // Each of the first lanes stores an element of each of the four lines for a vector.
        for (unsigned i = lane; i < 4 * TURN; i += lanes) {
            const unsigned vector = turn * TURN + i / 4, element = line + i % 4;
            if (vector < vectors && element < lines) {
                const unsigned sum = reinterpret_cast<const unsigned *>(&shared[i / 4][group * lanes])[i % 4];
                out[params.tall ? size_t(element) * params.ldo + vector : size_t(vector) * params.ldo + element] = sum + rest;
            }
        }
    }
}
