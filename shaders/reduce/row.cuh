// As row.wgsl.

struct Coordinates {
    u32 c[RANK];
};

static __device__ __forceinline__ Coordinates coordinates(const Words &words, u32 row) {
    Coordinates at = {};
#pragma unroll
    for (u32 d = KEPT; d > 1; d--) {
        at.c[d - 1] = row % words.word[SIZES + d - 1];
        row /= words.word[SIZES + d - 1];
    }
#if KEPT
    at.c[0] = row;
#endif
    return at;
}

static __device__ __forceinline__ Coordinates along(const Words &words, Coordinates at, u32 i) {
#pragma unroll
    for (u32 d = RANK; d > KEPT + 1; d--) {
        at.c[d - 1] = i % words.word[SIZES + d - 1];
        i /= words.word[SIZES + d - 1];
    }
    at.c[KEPT] = i;
    return at;
}

#if FLAT
// The coordinates of a value that is told by its number among those of all rows.
static __device__ __forceinline__ Coordinates flat(u32 i) {
    Coordinates at = {};
    at.c[RANK - 1] = i;
    return at;
}
#endif
