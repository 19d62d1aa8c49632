// Y = alpha * M * X + beta * C with sums in f32: a product of which one side is a few rows or columns, VECTORS at most, which are the vectors of X
// and Y here; the CUDA twin of vector.wgsl. M is read once.
//
// M has a row for each element of a vector of Y, and params.k columns. A block is groups of params.lanes threads. A group has four
// neighbouring elements of each vector, its lanes share the columns, and their sums are added up in shared memory, four vectors at a time.
//
//   a                M: by rows (ALONG), neighbours being neighbouring columns, or by columns; lines params.lda apart
//   b                X: the elements of a vector params.x_element apart, and the vectors params.x_vector
//   params.tall      the vectors are columns of the result; otherwise they are rows of it
//   params.k_part    as in tiled.cu
//   OPERANDS_F16     both are of f16, else of f32.
//
// What is outside counts as zero by selection, never by multiplication, so that a NaN there cannot spread.
//
//# variant f32-along-1 OPERANDS_F16=0 ALONG=1 VECTORS=1 THREADS=128
//# variant f32-along-2 OPERANDS_F16=0 ALONG=1 VECTORS=2 THREADS=128
//# variant f32-along-4 OPERANDS_F16=0 ALONG=1 VECTORS=4 THREADS=128
//# variant f32-along-8 OPERANDS_F16=0 ALONG=1 VECTORS=8 THREADS=128
//# variant f32-across-1 OPERANDS_F16=0 ALONG=0 VECTORS=1 THREADS=256
//# variant f32-across-2 OPERANDS_F16=0 ALONG=0 VECTORS=2 THREADS=256
//# variant f32-across-4 OPERANDS_F16=0 ALONG=0 VECTORS=4 THREADS=256
//# variant f32-across-8 OPERANDS_F16=0 ALONG=0 VECTORS=8 THREADS=128
//# variant f16-along-1 OPERANDS_F16=1 ALONG=1 VECTORS=1 THREADS=128
//# variant f16-along-2 OPERANDS_F16=1 ALONG=1 VECTORS=2 THREADS=128
//# variant f16-along-4 OPERANDS_F16=1 ALONG=1 VECTORS=4 THREADS=128
//# variant f16-along-8 OPERANDS_F16=1 ALONG=1 VECTORS=8 THREADS=128
//# variant f16-across-1 OPERANDS_F16=1 ALONG=0 VECTORS=1 THREADS=256
//# variant f16-across-2 OPERANDS_F16=1 ALONG=0 VECTORS=2 THREADS=256
//# variant f16-across-4 OPERANDS_F16=1 ALONG=0 VECTORS=4 THREADS=256
//# variant f16-across-8 OPERANDS_F16=1 ALONG=0 VECTORS=8 THREADS=128

#include "store.cuh"
#include "fours.cuh"

// Vectors whose sums are added up at once, and how often that is done.
#define TURN (VECTORS < 4 ? VECTORS : 4)
#define TURNS (VECTORS / TURN)

// A group's lines of M, and X.
struct Operands {
    const Element *m, *x;
    size_t stride, x_element, x_vector;
    unsigned lines, vectors;
    bool x_along, x_across;

    // Four terms from one on: what four lines from `line` on have there, and what each vector has, where all of that is inside and the lines
    // start at multiples of four elements.
    __device__ void read_lines(float (&to)[4][4], unsigned line, unsigned k) const {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            float v[4];
            read_four(v, ALONG ? m + (line + i) * stride + k : m + (k + i) * stride + line);
#pragma unroll
            for (unsigned j = 0; j < 4; j++) (ALONG ? to[j][i] : to[i][j]) = v[j];
        }
    }

    // The same at the edges, where the last line is repeated, and terms from `last` on are zero.
    __device__ void read_lines_checked(float (&to)[4][4], unsigned line, unsigned k, unsigned last) const {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            const size_t l = least(line + i, lines - 1);
#pragma unroll
            for (unsigned t = 0; t < 4; t++) {
                const size_t term = least(k + t, last - 1);
                const float v = widened(m[ALONG ? l * stride + term : term * stride + l]);
                to[t][i] = k + t < last ? v : 0.0f;
            }
        }
    }

    // The last vector is repeated.
    __device__ void read_vectors(float (&to)[4][VECTORS], unsigned k, unsigned last) const {
        if (x_along && k + 4 <= last) {
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++) {
                float terms[4];
                read_four(terms, x + least(v, vectors - 1) * x_vector + k);
#pragma unroll
                for (unsigned t = 0; t < 4; t++) to[t][v] = terms[t];
            }
        } else if (VECTORS % 4 == 0 && x_across) {
#pragma unroll
            for (unsigned t = 0; t < 4; t++) {
#pragma unroll
                for (unsigned v = 0; v + 4 <= VECTORS; v += 4) {
                    float four[4];
                    read_four(four, x + least(k + t, last - 1) * x_element + v);
#pragma unroll
                    for (unsigned i = 0; i < 4; i++) to[t][v + i] = k + t < last ? four[i] : 0.0f;
                }
            }
        } else {
#pragma unroll
            for (unsigned v = 0; v < VECTORS; v++) {
                const Element *const vector = x + least(v, vectors - 1) * x_vector;
#pragma unroll
                for (unsigned t = 0; t < 4; t++) {
                    const float term = widened(vector[least(k + t, last - 1) * x_element]);
                    to[t][v] = k + t < last ? term : 0.0f;
                }
            }
        }
    }
};

static __device__ void multiply(float (&sums)[VECTORS][4], const float (&lines)[4][4], const float (&vectors)[4][VECTORS]) {
#pragma unroll
    for (unsigned t = 0; t < 4; t++) {
#pragma unroll
        for (unsigned v = 0; v < VECTORS; v++) {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) sums[v][i] = fmaf(lines[t][i], vectors[t][v], sums[v][i]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const Element *__restrict__ a, const Element *__restrict__ b, const void *__restrict__ c, const float *__restrict__ bias,
    OTHERS void *__restrict__ out, const Params params
) {
    const unsigned lanes = params.lanes, groups = THREADS / lanes;
    // Lanes beside one another read what lies there: terms of a line, or lines.
    const unsigned lane = ALONG ? threadIdx.x % lanes : threadIdx.x / groups, group = ALONG ? threadIdx.x / lanes : threadIdx.x % groups;
    const unsigned item = blockIdx.z % params.batch, first = blockIdx.z / params.batch * params.k_part;
    const unsigned last = params.k_part > 0 ? least(params.k, first + params.k_part) : params.k;
    const Operands operands = {
        a + params.a_start + start(params, item, params.a_outer, params.a_inner),
        b + params.b_start + start(params, item, params.b_outer, params.b_inner),
        params.lda, params.x_element, params.x_vector, params.tall ? params.m : params.n, params.tall ? params.n : params.m,
        params.x_element == 1 && are_fours(params.b_start, VECTORS > 1 ? params.x_vector : 0, params.b_outer, params.b_inner),
        params.x_vector == 1 && are_fours(params.b_start, params.x_element, params.b_outer, params.b_inner)
    };
    const unsigned line = (blockIdx.x * groups + group) * 4;

    float sums[VECTORS][4] = {};
    unsigned k = first + lane * 4;
    const unsigned step = lanes * 4;
    if (are_fours(params.a_start, params.lda, params.a_outer, params.a_inner) && line + 4 <= operands.lines) {
#pragma unroll 1
        for (; k + 4 <= last; k += step) {
            float x[4][4], y[4][VECTORS];
            operands.read_lines(x, line, k);
            operands.read_vectors(y, k, last);
            multiply(sums, x, y);
        }
    }
    // What is past the last line is nobody's.
    if (line < operands.lines) {
#pragma unroll 1
        for (; k < last; k += step) {
            float x[4][4], y[4][VECTORS];
            operands.read_lines_checked(x, line, k, last);
            operands.read_vectors(y, k, last);
            multiply(sums, x, y);
        }
    }

    __shared__ float4 shared[TURN][THREADS];
    const unsigned at = group * lanes + lane;
    // Parts are read as whole float4s.
    const unsigned columns = params.k_part > 0 ? params.ldo : params.n;
#pragma unroll 1
    for (unsigned turn = 0; turn < TURNS; turn++) {
        __syncthreads();
        // Only with a constant index are sums registers.
#pragma unroll
        for (unsigned own = 0; own < TURNS; own++) {
            if (own == turn) {
#pragma unroll
                for (unsigned v = 0; v < TURN; v++) {
                    const float *const sum = sums[own * TURN + v];
                    shared[v][at] = make_float4(sum[0], sum[1], sum[2], sum[3]);
                }
            }
        }
#pragma unroll 1
        for (unsigned half = lanes / 2; half > 0; half /= 2) {
            __syncthreads();
            if (lane < half) {
#pragma unroll
                for (unsigned v = 0; v < TURN; v++) {
                    float4 &to = shared[v][at];
                    const float4 more = shared[v][at + half];
                    to.x += more.x, to.y += more.y, to.z += more.z, to.w += more.w;
                }
            }
        }
        __syncthreads();
        // Each of the first lanes stores a vector's four lines, or of a line what all vectors have.
        const unsigned vector = turn * TURN;
        const unsigned row = params.tall ? line + lane : vector + lane, column = params.tall ? vector : line;
        if (lane < (params.tall ? 4 : TURN) && row < params.m && column < params.n) {
            float4 sum = shared[params.tall ? 0 : lane][group * lanes];
            if (params.tall) {
                float v[4] = {};
#pragma unroll
                for (unsigned i = 0; i < TURN; i++) v[i] = reinterpret_cast<const float *>(&shared[i][group * lanes])[lane];
                sum = make_float4(v[0], v[1], v[2], v[3]);
            }
            store(params, c, bias, out, blockIdx.z, item, row, column, columns - column, sum SOURCE(a, b, c));
        }
    }
}
