// As map.wgsl, each thread QUADS times four elements, which a block's threads take in turns.

//# if RESULT_F16
static __device__ __forceinline__ void put(void *out, u32 i, const Four<Result> &v) {
    static_cast<uint2 *>(out)[i] = make_uint2(rounded(v.x[0]) | rounded(v.x[1]) << 16, rounded(v.x[2]) | rounded(v.x[3]) << 16);
}
//# else
static __device__ __forceinline__ void put(void *out, u32 i, const Four<Result> &v) {
    static_cast<uint4 *>(out)[i] = make_uint4(word_of(v.x[0]), word_of(v.x[1]), word_of(v.x[2]), word_of(v.x[3]));
}
//# end

struct Coordinates {
    u32 c[RANK];

    __device__ __forceinline__ Coordinates(const Words &words, u32 index) {
//# for d in INNER
        c[RANK - 1 - $d] = index % words.word[1 + RANK - $d];
        index /= words.word[1 + RANK - $d];
//# end
        c[0] = index;
    }

    // To the next element, if there is one: without a division.
    __device__ __forceinline__ void step(const Words &words, bool is_there) {
        c[RANK - 1] += is_there;
//# for d in INNER
        if (c[RANK - 1 - $d] == words.word[1 + RANK - $d]) {
            c[RANK - 1 - $d] = 0;
            c[RANK - 2 - $d]++;
        }
//# end
    }
};

extern "C" __global__ void __launch_bounds__(THREADS) map(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const u32 count = words.word[0];
    const u32 first = (blockIdx.x * (QUADS * THREADS) + threadIdx.x) * 4;
    // All are read before one is written, so that all are under way at once.
    Four<Result> v[QUADS];
#pragma unroll
    for (u32 quad = 0; quad < QUADS; quad++) {
        const u32 at = first + quad * (THREADS * 4);
        // What is behind the last is not written, and reads what is there.
        const u32 i = at < count ? at : 0;
        const u32 index = words.word[1] + i;
//# if QUAD
        v[quad] = source.four(Coordinates(words, i).c, index);
//# else
        Coordinates at_lane(words, i);
#pragma unroll
        for (u32 lane = 0; lane < 4; lane++) {
            v[quad].x[lane] = source.value(at_lane.c, index + lane);
            at_lane.step(words, i + lane + 1 < count);
        }
//# end
    }
#pragma unroll
    for (u32 quad = 0; quad < QUADS; quad++) {
        const u32 at = first + quad * (THREADS * 4);
        if (at < count) put(out, at / 4, v[quad]);
    }
}
