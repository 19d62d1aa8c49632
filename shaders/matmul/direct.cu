// C = alpha * op(A) * op(B) + beta * C with sums in f32, straight from memory: a thread computes 4 x 4 elements and shares nothing, and the blocks
// of all items of a batch stand behind one another; the CUDA twin of direct.wgsl. It is for products so small, or of so few terms, that tiles
// would be idle for the most part.
//
//   OPERANDS_F16  A and B are of f16, else of f32.
//   TRANSPOSE_A   A is stored k x m, else m x k.
//   TRANSPOSE_B   B is stored n x k, else k x n.
//
// Four terms, rows or columns that lie side by side are read at once where all such start at multiples of 4 elements. What is outside repeats
// the last row or column, and counts as zero by selection where it is a term.
//
//# variant f32-nn OPERANDS_F16=0 TRANSPOSE_A=0 TRANSPOSE_B=0
//# variant f32-nt OPERANDS_F16=0 TRANSPOSE_A=0 TRANSPOSE_B=1
//# variant f32-tn OPERANDS_F16=0 TRANSPOSE_A=1 TRANSPOSE_B=0
//# variant f32-tt OPERANDS_F16=0 TRANSPOSE_A=1 TRANSPOSE_B=1
//# variant f16-nn OPERANDS_F16=1 TRANSPOSE_A=0 TRANSPOSE_B=0
//# variant f16-nt OPERANDS_F16=1 TRANSPOSE_A=0 TRANSPOSE_B=1
//# variant f16-tn OPERANDS_F16=1 TRANSPOSE_A=1 TRANSPOSE_B=0
//# variant f16-tt OPERANDS_F16=1 TRANSPOSE_A=1 TRANSPOSE_B=1

#include "store.cuh"
#include "fours.cuh"

#ifndef THREADS
#define THREADS 64
#endif
#define TERMS 4

// Four rows of A, or four columns of B, from one on: with ALONG their terms lie side by side, else they do.
template <bool ALONG>
struct Lines {
    const Element *from;
    size_t stride;
    unsigned first, count;
    bool aligned;

    // Four terms of each, from one on.
    __device__ void read(float (&to)[TERMS][4], unsigned k, unsigned last) const {
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            float v[4];
            if (ALONG) {
                const Element *const line = from + least(first + i, count - 1) * stride;
                if (aligned && k + 4 <= last) {
                    read_four(v, line + k);
                } else {
#pragma unroll
                    for (unsigned t = 0; t < 4; t++) v[t] = k + t < last ? widened(line[k + t]) : 0.0f;
                }
#pragma unroll
                for (unsigned t = 0; t < 4; t++) to[t][i] = v[t];
            } else {
                const Element *const term = from + least(k + i, last - 1) * stride;
                if (aligned && first + 4 <= count) {
                    read_four(v, term + first);
                } else {
#pragma unroll
                    for (unsigned l = 0; l < 4; l++) v[l] = widened(term[least(first + l, count - 1)]);
                }
#pragma unroll
                for (unsigned l = 0; l < 4; l++) to[i][l] = k + i < last ? v[l] : 0.0f;
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const Element *__restrict__ a, const Element *__restrict__ b, const void *__restrict__ c, const float *__restrict__ bias,
    OTHERS void *__restrict__ out, const Params params
) {
    const unsigned across = (params.n - 1) / 4 + 1, blocks = across * ((params.m - 1) / 4 + 1);
    const size_t index = size_t(blockIdx.x) * THREADS + threadIdx.x;
    const unsigned item = unsigned(index / blocks);
    if (item >= params.batch) {
        return;
    }
    const unsigned row = unsigned(index % blocks) / across * 4, column = unsigned(index % blocks) % across * 4;
    const Lines<!TRANSPOSE_A> rows = {
        a + params.a_start + start(params, item, params.a_outer, params.a_inner), params.lda, row, params.m,
        are_fours(params.a_start, params.lda, params.a_outer, params.a_inner)
    };
    const Lines<TRANSPOSE_B> columns = {
        b + params.b_start + start(params, item, params.b_outer, params.b_inner), params.ldb, column, params.n,
        are_fours(params.b_start, params.ldb, params.b_outer, params.b_inner)
    };
    float sums[4][4] = {};
#pragma unroll 1
    for (unsigned k = 0; k < params.k; k += TERMS) {
        float x[TERMS][4], y[TERMS][4];
        rows.read(x, k, params.k);
        columns.read(y, k, params.k);
#pragma unroll
        for (unsigned t = 0; t < TERMS; t++) {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) {
#pragma unroll
                for (unsigned j = 0; j < 4; j++) sums[i][j] = fmaf(x[t][i], y[t][j], sums[i][j]);
            }
        }
    }
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        if (row + i < params.m) {
            const float4 sum = make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
            store(params, c, bias, out, item, item, row + i, column, params.n - column, sum SOURCE(a, b, c));
        }
    }
}
