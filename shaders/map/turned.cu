// As turned.wgsl; compiled at run time, behind what is generated.

#define SIDE 64u

struct Coordinates {
    u32 c[RANK];
};

// The word of an element in row t of column l: what neighbours write, and what they read, are words of as many banks as there are.
static __device__ __forceinline__ u32 slot(u32 t, u32 l) { return t * SIDE + (l ^ (l >> 5) ^ ((t >> 1) & 30) ^ ((t & 1) << 1)); }

static __device__ __forceinline__ u32 place(const Words &words, const Coordinates &at) {
    u32 place = 0;
#pragma unroll
    for (u32 d = 0; d < RANK; d++) place += at.c[d] * words.word[OUT_AT + d];
    return place;
}

extern "C" __global__ void __launch_bounds__(THREADS) map(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    __shared__ u32 tile[SIDE * SIDE];
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const u32 turned = words.word[RANK], last = words.word[1 + RANK];
    const u32 across = (last + SIDE - 1) / SIDE, down = (turned + SIDE - 1) / SIDE;
    u32 rest = blockIdx.y * gridDim.x + blockIdx.x;
    const u32 l0 = rest % across * SIDE;
    rest /= across;
    const u32 t0 = rest % down * SIDE;
    rest /= down;
    Coordinates c = {};
#pragma unroll
    for (u32 d = OUTER; d > 0; d--) {
        c.c[d - 1] = rest % words.word[1 + d];
        rest /= words.word[1 + d];
    }
    // The same for all threads, and so no barrier is left out by some.
    if (rest > 0) return;
    const u32 near = threadIdx.x % 16 * 4, far = threadIdx.x / 16;
    // What is not there is read as the last that is, and not written.
    const u32 read_t = min(t0 + near, (turned - 1) / 4 * 4), own_l = min(l0 + near, (last - 1) / 4 * 4);
    Coordinates read[4], own[4];
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
        read[u] = own[u] = c;
        read[u].c[RANK - 2] = read_t;
        read[u].c[RANK - 1] = min(l0 + far + u * 16, last - 1);
        own[u].c[RANK - 2] = min(t0 + far + u * 16, turned - 1);
        own[u].c[RANK - 1] = own_l;
    }
//# for i in INPUTS
    Four<Source::Kind$i> in_of_$i[4];
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
//# if TURNED_$i
        in_of_$i[u] = source.some_$i(source.at_$i(read[u].c), turned - 1 - read_t);
//# else
        in_of_$i[u] = source.some_$i(source.at_$i(own[u].c), last - 1 - own_l);
//# end
    }
//# end
//# for i in INPUTS
//# if TURNED_$i
    __syncthreads();
#pragma unroll
    for (u32 e = 0; e < 16; e++) tile[slot(near + e % 4, far + e / 4 * 16)] = word_of(in_of_$i[e / 4].x[e % 4]);
    __syncthreads();
#pragma unroll
    for (u32 e = 0; e < 16; e++) in_of_$i[e / 4].x[e % 4] = of_word<Source::Kind$i>(tile[slot(far + e / 4 * 16, near + e % 4)]);
//# end
//# end
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
        if (t0 + far + u * 16 >= turned || l0 + near >= last) continue;
        const u32 o = place(words, own[u]);
        const Four<Result> v = source.all(words.word[1] + o
//# for i in INPUTS
            , in_of_$i[u]
//# end
        );
#if RESULT_F16
        static_cast<uint2 *>(out)[o / 4] = make_uint2(rounded(v.x[0]) | rounded(v.x[1]) << 16, rounded(v.x[2]) | rounded(v.x[3]) << 16);
#elif WHOLE
        static_cast<uint4 *>(out)[o / 4] = make_uint4(word_of(v.x[0]), word_of(v.x[1]), word_of(v.x[2]), word_of(v.x[3]));
#else
#pragma unroll
        for (u32 r = 0; r < 4; r++) {
            if (own_l + r < last) static_cast<u32 *>(out)[o + r] = word_of(v.x[r]);
        }
#endif
    }
}
