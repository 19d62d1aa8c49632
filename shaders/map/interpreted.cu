// Any elementwise program, read step by step, for machines without the compiler that map.cu needs. Each thread takes four elements through
// the whole program, then others; what steps keep for later ones is in shared memory.

#include "prelude.cuh"

// Applies a function to words.
template <typename T, typename R>
static __device__ __forceinline__ u32 each(R (*f)(T), u32 a, u32) { return word_of(f(of_word<T>(a))); }

template <typename T, typename R>
static __device__ __forceinline__ u32 each(R (*f)(T, T), u32 a, u32 b) { return word_of(f(of_word<T>(a), of_word<T>(b))); }

template <typename F>
static __device__ __forceinline__ uint4 each(F *f, uint4 a, uint4 b) {
    return make_uint4(each(f, a.x, b.x), each(f, a.y, b.y), each(f, a.z, b.z), each(f, a.w, b.w));
}

// The same one after the other, for functions of which one copy is enough.
template <typename F>
static __device__ __forceinline__ uint4 in_turns(F *f, uint4 a, uint4 b) {
#pragma unroll 1
    for (u32 lane = 0; lane < 4; lane++) {
        const u32 x = each(f, a.x, b.x);
        a = make_uint4(a.y, a.z, a.w, x);
        b = make_uint4(b.y, b.z, b.w, b.x);
    }
    return a;
}

#include "functions.cuh"

// src/kernels/generated/interpretation.rs has the same.
struct Interpretation {
    u32 rank, is_quad, scalars, is_f16;
    struct {
        u32 at, how;
    } inputs[6];
    u32 slots, count;
    uint2 steps[96];
};

enum How { HALF = 1, VEC4 = 2, SPLAT = 4, BOUNDED = 8 };
enum Code { INPUT, SCALAR, INDEX, INSIDE, SELECT, CAST = 8 };
enum Kind { F32, I32, U32, BOOL };

#define NO_SLOT 255u
#define MOST_RANK 6

// Made by every step of the launch alike, and so read from shared memory by all threads at once.
static __shared__ struct {
    Words words;
    Interpretation program;
} told;

extern __shared__ uint4 slots[];

struct Coordinates {
    u32 c[MOST_RANK];

    __device__ __forceinline__ explicit Coordinates(u32 index) {
        const u32 rank = told.program.rank;
#pragma unroll
        for (u32 d = MOST_RANK; d-- > 1;) {
            c[d] = 0;
            if (d < rank) {
                const u32 size = told.words.word[2 + d];
                c[d] = index % size;
                index /= size;
            }
        }
        c[0] = index;
    }

    // The element of an input, whose offset and strides are in the words from one on.
    __device__ __forceinline__ u32 place(u32 at) const {
        u32 place = told.words.word[at];
#pragma unroll
        for (u32 d = 0; d < MOST_RANK; d++) {
            if (d < told.program.rank) place += c[d] * told.words.word[at + 1 + d];
        }
        return place;
    }

    __device__ __forceinline__ bool is_inside(u32 at) const {
        const u32 rank = told.program.rank;
        bool inside = true;
#pragma unroll
        for (u32 d = 0; d < MOST_RANK; d++) {
            if (d < rank) {
                inside = inside && c[d] >= told.words.word[at + 1 + rank + d] && c[d] < told.words.word[at + 1 + 2 * rank + d];
            }
        }
        return inside;
    }
};

static __device__ __forceinline__ u32 one(const void *from, u32 how, u32 at) {
    return how & HALF ? word_of(widened(__ldg(static_cast<const unsigned short *>(from) + at))) : __ldg(static_cast<const u32 *>(from) + at);
}

// Four neighbours of the result from one on, of an input that has all of them.
static __device__ __forceinline__ uint4 four(const void *from, u32 how, u32 at, u32 step) {
    if (!(how & VEC4)) {
        const u32 x = one(from, how, at);
        if (how & SPLAT) return make_uint4(x, x, x, x);
        return make_uint4(x, one(from, how, at + step), one(from, how, at + 2 * step), one(from, how, at + 3 * step));
    }
    if (!(how & HALF)) return __ldg(static_cast<const uint4 *>(from) + at / 4);
    const uint2 words = __ldg(static_cast<const uint2 *>(from) + at / 4);
    return make_uint4(
        word_of(widened(words.x)), word_of(widened(words.x >> 16)), word_of(widened(words.y)), word_of(widened(words.y >> 16))
    );
}

static __device__ __forceinline__ uint4 kept(u32 slot, uint4 last) {
    return slot == NO_SLOT ? last : slots[slot * blockDim.x + threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(128) map(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6, void *out,
    const Words words, const Interpretation program
) {
    // Indices that are no constants would have the compiler copy what it is told for each thread.
#pragma unroll
    for (u32 i = 0; i < 64; i++) {
        if (threadIdx.x == i % 32) told.words.word[i] = words.word[i];
    }
    if (threadIdx.x == 0) told.program = program;
    __syncthreads();
    const u32 count = told.words.word[0];
    for (u32 i = (blockIdx.x * blockDim.x + threadIdx.x) * 4; i < count; i += gridDim.x * blockDim.x * 4) {
        const Coordinates first(i);
        const u32 index = told.words.word[1] + i;
        uint4 last = make_uint4(0, 0, 0, 0);
        for (u32 step = 0; step < told.program.count; step++) {
            const uint2 what = told.program.steps[step];
            const u32 code = what.x & 0xffff, to = what.x >> 16, number = what.y >> 16;
            const uint4 a = kept(what.y & 255, last);
            switch (code) {
                case INPUT:
                case INSIDE: {
                    const u32 at = told.program.inputs[number].at, how = told.program.inputs[number].how;
                    const void *from = number == 0 ? in_0 : number == 1 ? in_1 : number == 2 ? in_2 : number == 3 ? in_4 : number == 4 ? in_5 : in_6;
                    if (code == INPUT && told.program.is_quad) {
                        last = four(from, how, first.place(at), told.words.word[at + told.program.rank]);
                        break;
                    }
                    u32 x[4];
#pragma unroll
                    for (u32 lane = 0; lane < 4; lane++) {
                        const Coordinates here(min(i + lane, count - 1));
                        const bool is_inside = !(how & BOUNDED) || here.is_inside(at);
                        x[lane] = code == INSIDE ? is_inside : is_inside ? one(from, how, here.place(at)) : 0;
                    }
                    last = make_uint4(x[0], x[1], x[2], x[3]);
                    break;
                }
                case SCALAR: {
                    const u32 x = told.words.word[told.program.scalars + number];
                    last = make_uint4(x, x, x, x);
                    break;
                }
                case INDEX:
                    last = make_uint4(index, index + 1, index + 2, index + 3);
                    break;
                case SELECT: {
                    const uint4 no = kept(what.y >> 8 & 255, last), yes = kept(number, last);
                    last = make_uint4(a.x ? yes.x : no.x, a.y ? yes.y : no.y, a.z ? yes.z : no.z, a.w ? yes.w : no.w);
                    break;
                }
#define CASTS(FROM, from, TO, to) case CAST + 4 * FROM + TO: last = each(to##_of_##from, a, a); break;
                CASTS(F32, f32, I32, i32)
                CASTS(F32, f32, U32, u32)
                CASTS(F32, f32, BOOL, bool)
                CASTS(I32, i32, F32, f32)
                CASTS(I32, i32, BOOL, bool)
                CASTS(U32, u32, F32, f32)
                CASTS(U32, u32, BOOL, bool)
                CASTS(BOOL, bool, F32, f32)
                // Of the others the word is the same.
                case CAST + 4 * F32 + F32:
                case CAST + 4 * I32 + I32:
                case CAST + 4 * I32 + U32:
                case CAST + 4 * U32 + I32:
                case CAST + 4 * U32 + U32:
                case CAST + 4 * BOOL + I32:
                case CAST + 4 * BOOL + U32:
                case CAST + 4 * BOOL + BOOL:
                    last = a;
                    break;
                default:
                    last = apply(code, a, kept(what.y >> 8 & 255, last));
            }
            if (to != NO_SLOT) slots[to * blockDim.x + threadIdx.x] = last;
        }
        if (told.program.is_f16) {
            const u32 low = rounded(__uint_as_float(last.x)) | rounded(__uint_as_float(last.y)) << 16;
            static_cast<uint2 *>(out)[i / 4] = make_uint2(low, rounded(__uint_as_float(last.z)) | rounded(__uint_as_float(last.w)) << 16);
        } else {
            static_cast<uint4 *>(out)[i / 4] = last;
        }
    }
}
