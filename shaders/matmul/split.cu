// An operand of f32 in two terms of f16: x = (h + l / 2048) * 2^-s; the CUDA twin of split.wgsl, which has the reasons. What it makes has lines
// along k however the operand is stored.
//
//   from    the items of a batch, each params.m lines along k and params.n of k with ALONG, else the other way round, rows lda apart
//   out     as many lines one behind the other, ldo elements of f16 apart: h and l of k in turns, PIECE of each, zeros to the next PIECE, and at the
//           end of the line in a PIECE of its own s, as an integer
//
// Blocks run along x, and items along z. params.lanes threads share a line; or so many lines, of columns that are apart, a block. A thread keeps
// the first KEPT pieces that it sees of a line, and reads those behind twice.
//
//# variant along ALONG=1 THREADS=256 KEPT=2u
//# variant across ALONG=0 THREADS=512 KEPT=4u

#include "store.cuh"

#define PIECE 8u

// The exponent by which a line is scaled, from the bits of its largest element without sign. Infinity and NaN scale nothing, and spread.
static __device__ int exponent(unsigned most) {
    const int e = int(most >> 23);
    return e == 255 ? 0 : min(141 - e, 126);
}

// Puts eight elements in two terms.
static __device__ void put(unsigned short *to, const float (&x)[PIECE], float scale) {
    unsigned h[PIECE / 2], l[PIECE / 2];
#pragma unroll
    for (unsigned i = 0; i < PIECE; i += 2) {
        const float first = x[i] * scale, second = x[i + 1] * scale;
        const Half high[2] = {half_of(first), half_of(second)};
        const Half low[2] = {half_of((first - widened(high[0])) * 2048.0f), half_of((second - widened(high[1])) * 2048.0f)};
        h[i / 2] = high[0].bits | unsigned(high[1].bits) << 16;
        l[i / 2] = low[0].bits | unsigned(low[1].bits) << 16;
    }
    reinterpret_cast<uint4 *>(to)[0] = make_uint4(h[0], h[1], h[2], h[3]);
    reinterpret_cast<uint4 *>(to)[1] = make_uint4(l[0], l[1], l[2], l[3]);
}

extern "C" __global__ void __launch_bounds__(THREADS) matmul(const float *__restrict__ from, unsigned short *__restrict__ out, const Params params) {
    __shared__ unsigned largest[THREADS];
    const unsigned k = ALONG ? params.n : params.m, lines = ALONG ? params.m : params.n;
    const unsigned pieces = (k + PIECE - 1) / PIECE;
    // Of a line: who of how many sees which pieces.
    const unsigned lanes = ALONG ? params.lanes : THREADS / params.lanes;
    const unsigned lane = ALONG ? threadIdx.x % lanes : threadIdx.x / params.lanes;
    const unsigned line = ALONG ? blockIdx.x * (THREADS / lanes) + threadIdx.x / lanes : blockIdx.x * params.lanes + threadIdx.x % params.lanes;
    // Between two lanes of a line.
    const unsigned apart = ALONG ? 1 : params.lanes;
    const bool is_mine = line < lines;
    from += params.a_start + start(params, blockIdx.z, params.a_outer, params.a_inner) + (ALONG ? size_t(line) * params.lda : line);
    out += (size_t(blockIdx.z) * lines + line) * params.ldo;
    const bool in_fours = ALONG && params.lda % 4 == 0 && (params.a_start | params.a_outer | params.a_inner) % 4 == 0;
    const auto read = [&](float (&x)[PIECE], unsigned piece) {
        const unsigned first = piece * PIECE;
        if (in_fours && first + PIECE <= k) {
            const float4 low = *reinterpret_cast<const float4 *>(from + first), high = *reinterpret_cast<const float4 *>(from + first + 4);
            x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
            x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
        } else {
#pragma unroll
            for (unsigned i = 0; i < PIECE; i++) {
                x[i] = first + i < k ? from[ALONG ? first + i : (first + i) * size_t(params.lda)] : 0.0f;
            }
        }
    };

    // Bits without sign are in the order of what they stand for, and those of NaN above all.
    unsigned most = 0;
    const auto look = [&](const float (&x)[PIECE]) {
#pragma unroll
        for (unsigned i = 0; i < PIECE; i++) {
            most = max(most, __float_as_uint(x[i]) & 0x7fffffffu);
        }
    };
    float kept[KEPT][PIECE];
    if (is_mine) {
#pragma unroll
        for (unsigned at = 0; at < KEPT; at++) {
            if (lane + at * lanes < pieces) {
                read(kept[at], lane + at * lanes);
                look(kept[at]);
            }
        }
#pragma unroll 2
        for (unsigned piece = lane + KEPT * lanes; piece < pieces; piece += lanes) {
            float x[PIECE];
            read(x, piece);
            look(x);
        }
    }
    largest[threadIdx.x] = most;
    for (unsigned half = lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) {
            largest[threadIdx.x] = max(largest[threadIdx.x], largest[threadIdx.x + half * apart]);
        }
    }
    __syncthreads();
    if (!is_mine) {
        return;
    }
    const int e = exponent(largest[threadIdx.x - lane * apart]);
    const float scale = __int_as_float((e + 127) << 23);
#pragma unroll
    for (unsigned at = 0; at < KEPT; at++) {
        if (lane + at * lanes < pieces) {
            put(out + (lane + at * lanes) * (2 * PIECE), kept[at], scale);
        }
    }
#pragma unroll 2
    for (unsigned piece = lane + KEPT * lanes; piece < pieces; piece += lanes) {
        float x[PIECE];
        read(x, piece);
        put(out + piece * (2 * PIECE), x, scale);
    }
    if (lane == 0) {
        *reinterpret_cast<int *>(out + params.ldo - PIECE) = e;
    }
}
