// As fft.wgsl, in one buffer of shared memory: a block's threads all read before one writes. It comes with the crate, for where there is no
// compiler, and is told a plan's constants behind the words that both have (src/plan/fft.rs).

#include "roots.cuh"

// A step's length, how many transforms a block does at once, the flags, the passes and their radices, four bits each.
#define LENGTH words.word[13]
#define BATCH words.word[14]
#define FLAGS words.word[15]
#define PASSES words.word[16]
#define RADICES words.word[17]
// Columns of a line, elements behind the dimension, elements of the steps before.
#define LINE words.word[1]
#define INNER words.word[2]
#define BEFORE words.word[3]
// Elements of a thread, at most.
#define EACH 8u

#define MOST (256 * EACH)

// src/plan/fft.rs has the same.
enum Flag {
    COLUMNS = 1, ACROSS = 2, SOURCE_REAL = 4, SOURCE_COMPLEX = 8, SOURCE_HALF = 16, SOURCE_SCRATCH = 32, SOURCE_CHIRP = 64, TARGET_REAL = 128,
    TARGET_COMPLEX = 256, CHIRP_IN = 512, CHIRP_OUT = 1024, FILTERED = 2048, CONJUGATE_IN = 4096, CONJUGATE_OUT = 8192
};

// exp(-pi i * a * a / n) of the transform's own length n.
static __device__ float2 chirp(const Words &words, u32 a) {
    const u32 twice = 2 * words.word[8];
    return root(u32((unsigned long long)a * a % twice), twice);
}

// Element i of transform t: of what is outer x LENGTH x columns.
static __device__ __forceinline__ float2 fetched(const Words &words, const void *from, const float2 *filter, u32 t, u32 i) {
    const u32 columns = LINE, inner = INNER, o = t / columns, c = t % columns;
    // Its place along the whole dimension.
    const u32 at = i * (columns / inner) + c / inner;
    float2 v = make_float2(0.0f, 0.0f);
    if (FLAGS & SOURCE_SCRATCH) {
        v = static_cast<const float2 *>(from)[words.word[10] + (o * LENGTH + i) * columns + c];
    } else if (FLAGS & SOURCE_CHIRP) {
        const u32 far = min(at, words.word[4] - at);
        if (far < words.word[8]) v = __uint_as_float(words.word[7]) * conjugate(chirp(words, far));
    } else if (FLAGS & SOURCE_HALF) {
        const bool is_mirrored = at > words.word[8] / 2;
        const u32 mirrored = is_mirrored ? words.word[8] - at : at;
        if (at < words.word[8] && mirrored < words.word[5]) {
            v = static_cast<const float2 *>(from)[(size_t(o) * words.word[5] + mirrored) * inner + c % inner];
            if (is_mirrored) v = conjugate(v);
            // What is its own mirror image is real, whatever stands there.
            if (mirrored == 0 || 2 * mirrored == words.word[8]) v.y = 0.0f;
        }
    } else if (at < words.word[5]) {
        const size_t element = (size_t(o) * words.word[5] + at) * inner + c % inner;
        if (FLAGS & SOURCE_REAL) {
            v.x = static_cast<const float *>(from)[element];
        } else {
            v = static_cast<const float2 *>(from)[element];
        }
    }
    if (FLAGS & CONJUGATE_IN) v = conjugate(v);
    if (FLAGS & CHIRP_IN) v = at < words.word[8] ? times(v, chirp(words, at)) : make_float2(0.0f, 0.0f);
    if (FLAGS & FILTERED) v = conjugate(times(v, filter[words.word[12] + at]));
    // What the steps before it leave to do.
    const u32 l = BEFORE;
    return l > 1 ? times(v, root(c / inner % l * i, l * LENGTH)) : v;
}

static __device__ __forceinline__ void put(const Words &words, void *to, u32 t, u32 i, float2 v) {
    const u32 columns = LINE, inner = INNER, l = BEFORE, o = t / columns, j = t % columns / inner;
    const u32 at = j / l * l * LENGTH + j % l + i * l;
    if (!(FLAGS & (TARGET_REAL | TARGET_COMPLEX))) {
        static_cast<float2 *>(to)[words.word[11] + (o * words.word[4] + at) * inner + t % inner] = v;
        return;
    }
    if (FLAGS & CHIRP_OUT) {
        if (at >= words.word[8]) return;
        v = times(conjugate(v), chirp(words, at));
    }
    if (FLAGS & CONJUGATE_OUT) v = conjugate(v);
    if (at >= words.word[6]) return;
    v = __uint_as_float(words.word[7]) * v;
    const size_t element = (size_t(o) * words.word[6] + at) * inner + t % inner;
    if (FLAGS & TARGET_REAL) {
        static_cast<float *>(to)[element] = v.x;
    } else {
        static_cast<float2 *>(to)[element] = v;
    }
}

// Where element i of a block's transform b is, with room left between so that threads reach as many banks as there are.
static __device__ __forceinline__ u32 place(const Words &words, u32 b, u32 i) {
    const u32 at = FLAGS & COLUMNS ? i * BATCH + b : b * LENGTH + i;
    return at + at / 8;
}

// A pass of butterflies of R elements behind those that are transforms of `span` already.
template <u32 R>
static __device__ __forceinline__ void pass(const Words &words, float2 *memory, u32 span) {
    const u32 apart = LENGTH / R, count = BATCH * apart;
    const bool in_columns = FLAGS & COLUMNS;
    float2 v[(EACH + R - 1) / R][R];
#pragma unroll
    for (u32 n = 0; n < (EACH + R - 1) / R; n++) {
        const u32 e = threadIdx.x + n * blockDim.x;
        if (e >= count) continue;
        const u32 b = in_columns ? e % BATCH : e / apart, j = in_columns ? e / BATCH : e % apart;
#pragma unroll
        for (u32 q = 0; q < R; q++) v[n][q] = memory[place(words, b, j + q * apart)];
        if (span > 1) turn(v[n], root(j % span, span * R));
        dft(v[n]);
    }
    __syncthreads();
#pragma unroll
    for (u32 n = 0; n < (EACH + R - 1) / R; n++) {
        const u32 e = threadIdx.x + n * blockDim.x;
        if (e >= count) continue;
        const u32 b = in_columns ? e % BATCH : e / apart, j = in_columns ? e / BATCH : e % apart;
        const u32 first = j / span * span * R + j % span;
#pragma unroll
        for (u32 q = 0; q < R; q++) memory[place(words, b, first + q * span)] = v[n][q];
    }
    __syncthreads();
}

// All passes, the radix of each in its turn.
static __device__ __forceinline__ void passes(const Words &words, float2 *memory) {
    for (u32 p = 0, span = 1; p < PASSES; p++) {
        const u32 radix = RADICES >> 4 * p & 15;
        switch (radix) {
            case 2: pass<2>(words, memory, span); break;
            case 3: pass<3>(words, memory, span); break;
            case 4: pass<4>(words, memory, span); break;
            case 5: pass<5>(words, memory, span); break;
            case 7: pass<7>(words, memory, span); break;
            default: pass<8>(words, memory, span);
        }
        span *= radix;
    }
}

// What is read and what is written, either of which may be scratch; the chirp's spectrum is there too.
extern "C" __global__ void __launch_bounds__(256) fft(const void *from, const float2 *filter, void *to, const Words words) {
    __shared__ float2 memory[MOST + MOST / 8];
    const u32 first = (blockIdx.y * gridDim.x + blockIdx.x) * BATCH, end = words.word[0];
    const bool in_columns = FLAGS & COLUMNS, across = FLAGS & ACROSS;
#pragma unroll 1
    for (u32 e = threadIdx.x; e < BATCH * LENGTH; e += blockDim.x) {
        const u32 b = in_columns ? e % BATCH : e / LENGTH, i = in_columns ? e / BATCH : e % LENGTH;
        if (first + b < end) memory[place(words, b, i)] = fetched(words, from, filter, first + b, i);
    }
    __syncthreads();
    passes(words, memory);
#pragma unroll 1
    for (u32 e = threadIdx.x; e < BATCH * LENGTH; e += blockDim.x) {
        const u32 b = across ? e % BATCH : e / LENGTH, i = across ? e / BATCH : e % LENGTH;
        if (first + b < end) put(words, to, first + b, i, memory[place(words, b, i)]);
    }
}
