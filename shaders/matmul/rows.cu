// C = alpha * A * op(B) with sums in f32, of few terms and columns, where A's rows lie behind one another and so do the result's: a block takes some
// through shared memory, so that neighbours read and write neighbours however short a row is. A and the result start at multiples of 4 elements.
//
//   OPERANDS_F16, TRANSPOSE_B  as in direct.cu
//
// `k_part` is the rows of a block, a multiple of 4.
//
//# variant f32-nn OPERANDS_F16=0 TRANSPOSE_B=0
//# variant f32-nt OPERANDS_F16=0 TRANSPOSE_B=1
//# variant f16-nn OPERANDS_F16=1 TRANSPOSE_B=0
//# variant f16-nt OPERANDS_F16=1 TRANSPOSE_B=1

#include "store.cuh"
#include "fours.cuh"

#ifndef THREADS
#define THREADS 128
#endif
// Elements that a block has room for of A's rows, of the result's, and of B; src/plan/matmul/cuda/rows.rs has the same.
#define ROOM 3072
#define ROOM_B 1024
#define EACH (ROOM / 4 / THREADS)

// Where rows of a length are in shared memory: one behind the other, but those of whole fours an odd number of fours apart. Read by as many
// elements as their length is a multiple of, up to four, neighbours are in banks of their own.
struct Rows {
    unsigned length, pitch;

    __device__ Rows(unsigned length) : length(length), pitch(length % 4 ? length : (length / 4 | 1) * 4) {}
    // The place of four that lie behind one another, of those of all rows.
    __device__ unsigned four(unsigned f) const { return pitch == length ? f * 4 : f * 4 / length * pitch + f * 4 % length; }
};

// Adds BY terms at a time to sums of four columns for two rows.
template <unsigned BY>
static __device__ void add(float4 (&sums)[2], const float *const (&x)[2], const float *y, unsigned terms, unsigned width) {
#pragma unroll (4 / BY)
    for (unsigned t = 0; t < terms; t += BY) {
        float of_a[2][BY];
#pragma unroll
        for (unsigned r = 0; r < 2; r++) {
            if (BY == 4) {
                const float4 v = *reinterpret_cast<const float4 *>(x[r] + t);
                of_a[r][0] = v.x, of_a[r][1 % BY] = v.y, of_a[r][2 % BY] = v.z, of_a[r][3 % BY] = v.w;
            } else if (BY == 2) {
                const float2 v = *reinterpret_cast<const float2 *>(x[r] + t);
                of_a[r][0] = v.x, of_a[r][1 % BY] = v.y;
            } else {
                of_a[r][0] = x[r][t];
            }
        }
#pragma unroll
        for (unsigned e = 0; e < BY; e++) {
            const float4 of_b = *reinterpret_cast<const float4 *>(y + (t + e) * width);
#pragma unroll
            for (unsigned r = 0; r < 2; r++) {
                sums[r].x = fmaf(of_a[r][e], of_b.x, sums[r].x), sums[r].y = fmaf(of_a[r][e], of_b.y, sums[r].y);
                sums[r].z = fmaf(of_a[r][e], of_b.z, sums[r].z), sums[r].w = fmaf(of_a[r][e], of_b.w, sums[r].w);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul(
    const Element *__restrict__ a, const Element *__restrict__ b, const void *__restrict__ c, const float *__restrict__ bias,
    OTHERS void *__restrict__ out, const Params params
) {
    __shared__ float4 all_rows[ROOM / 4], all_results[ROOM / 4], all_columns[ROOM_B / 4];
    float *const rows = reinterpret_cast<float *>(all_rows), *const results = reinterpret_cast<float *>(all_results);
    float *const columns = reinterpret_cast<float *>(all_columns);
    const unsigned n = params.n, terms = params.k, width = (n + 3) / 4 * 4;
    const unsigned first = blockIdx.x * params.k_part, count = least(params.k_part, params.m - first);
    const Rows of_a(terms), of_out(n);
    const Element *const from = a + params.a_start + size_t(first) * terms;
    // All that a thread reads is under way at once.
    float four[EACH][4];
#pragma unroll
    for (unsigned u = 0; u < EACH; u++) {
        const unsigned e = (u * THREADS + threadIdx.x) * 4;
        if (e + 4 <= count * terms) {
            read_four(four[u], from + e);
        } else {
#pragma unroll
            for (unsigned i = 0; i < 4; i++) four[u][i] = e + i < count * terms ? widened(from[e + i]) : 0.0f;
        }
    }
    for (unsigned e = threadIdx.x; e < terms * width; e += THREADS) {
        const unsigned t = e / width, column = e % width;
        const size_t place = TRANSPOSE_B ? size_t(column) * params.ldb + t : size_t(t) * params.ldb + column;
        columns[e] = column < n ? widened(b[params.b_start + place]) : 0.0f;
    }
#pragma unroll
    for (unsigned u = 0; u < EACH; u++) {
        const unsigned f = u * THREADS + threadIdx.x;
        const float4 v = make_float4(four[u][0], four[u][1], four[u][2], four[u][3]);
        if (f * 4 < count * terms) *reinterpret_cast<float4 *>(rows + of_a.four(f)) = v;
    }
    __syncthreads();
    const unsigned half = (count + 1) / 2;
    for (unsigned i = threadIdx.x; i < half * (width / 4); i += THREADS) {
        const unsigned column = i / half * 4, row[2] = {i % half, i % half + half};
        const float *const x[2] = {rows + row[0] * of_a.pitch, rows + least(row[1], count - 1) * of_a.pitch};
        float4 sums[2] = {};
        if (terms % 4 == 0) {
            add<4>(sums, x, columns + column, terms, width);
        } else if (terms % 2 == 0) {
            add<2>(sums, x, columns + column, terms, width);
        } else {
            add<1>(sums, x, columns + column, terms, width);
        }
#pragma unroll 1
        for (unsigned r = 0; r < 2; r++) {
            if (row[r] >= count) break;
            const float4 v = made(params, nullptr, bias, 0, row[r], column, n - column, r == 0 ? sums[0] : sums[1]);
            float *const to = results + row[r] * of_out.pitch + column;
            if (n % 4 == 0) {
                *reinterpret_cast<float4 *>(to) = v;
            } else if (n % 2 == 0) {
                *reinterpret_cast<float2 *>(to) = make_float2(v.x, v.y);
                if (column + 2 < n) *reinterpret_cast<float2 *>(to + 2) = make_float2(v.z, v.w);
            } else {
                put_some(to, false, n - column, v);
            }
        }
    }
    __syncthreads();
#if END
    const Source source SOURCE_OF(a, b, c);
#endif
    const size_t to = params.out_start + size_t(first) * n;
    for (unsigned f = threadIdx.x; f * 4 < count * n; f += THREADS) {
        float4 v = *reinterpret_cast<const float4 *>(results + of_out.four(f));
#if END
        const unsigned at = unsigned(to) + f * 4;
        v = make_float4(source.ended(at, v.x), source.ended(at + 1, v.y), source.ended(at + 2, v.z), source.ended(at + 3, v.w));
#endif
        const unsigned left = count * n - f * 4;
        if (params.result == F16) {
            put_some(static_cast<Half *>(out) + to + f * 4, true, left, v);
        } else {
            put_some(static_cast<float *>(out) + to + f * 4, true, left, v);
        }
    }
}
