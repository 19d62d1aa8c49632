// As turned.wgsl; compiled at run time, behind what is generated and turns.cuh.

#define SIDE 64u
#define FOURS 16u
#define T_NEAR (ALIGNED ? 4u : 1u)
#define T_APART (ALIGNED ? 1u : FOURS)
#define L_NEAR (WHOLE ? 4u : 1u)
#define L_APART (WHOLE ? 1u : FOURS)

struct Coordinates {
    u32 c[RANK];
};

#if NARROW
typedef u32 Cell;
#elif HALVES
typedef uint2 Cell;
static __device__ __forceinline__ u32 lower(u32 a, u32 b) { return __byte_perm(a, b, 0x5410); }
static __device__ __forceinline__ u32 upper(u32 a, u32 b) { return __byte_perm(a, b, 0x7632); }
#else
typedef uint4 Cell;
#endif

#if !NARROW
static __device__ __forceinline__ u32 bank(u32 t) { return (t ^ (t >> 2)) & 15; }

// Four f of row t.
static __device__ __forceinline__ u32 cell(u32 t, u32 f) { return t * FOURS + (f ^ bank(t)); }

// Four columns of four rows as rows.
static __device__ __forceinline__ void put(Cell *tile, u32 t, u32 f, const Cell (&seen)[4]) {
#if HALVES
    tile[cell(t, f)] = make_uint2(lower(seen[0].x, seen[1].x), lower(seen[2].x, seen[3].x));
    tile[cell(t + T_APART, f)] = make_uint2(upper(seen[0].x, seen[1].x), upper(seen[2].x, seen[3].x));
    tile[cell(t + 2 * T_APART, f)] = make_uint2(lower(seen[0].y, seen[1].y), lower(seen[2].y, seen[3].y));
    tile[cell(t + 3 * T_APART, f)] = make_uint2(upper(seen[0].y, seen[1].y), upper(seen[2].y, seen[3].y));
#else
    tile[cell(t, f)] = make_uint4(seen[0].x, seen[1].x, seen[2].x, seen[3].x);
    tile[cell(t + T_APART, f)] = make_uint4(seen[0].y, seen[1].y, seen[2].y, seen[3].y);
    tile[cell(t + 2 * T_APART, f)] = make_uint4(seen[0].z, seen[1].z, seen[2].z, seen[3].z);
    tile[cell(t + 3 * T_APART, f)] = make_uint4(seen[0].w, seen[1].w, seen[2].w, seen[3].w);
#endif
}

#if HALVES
typedef unsigned short Held;
#else
typedef u32 Held;
#endif

// An element of row t.
static __device__ __forceinline__ u32 one(const Cell *tile, u32 t, u32 l) {
    return reinterpret_cast<const Held *>(tile + cell(t, l / 4))[l % 4];
}

// The n-th four of row t, or its elements n, n + L_APART and so on.
static __device__ __forceinline__ Cell taken(const Cell *tile, u32 t, u32 n) {
#if WHOLE
    return tile[cell(t, n)];
#elif HALVES
    const u32 first = one(tile, t, n) | one(tile, t, n + L_APART) << 16;
    return make_uint2(first, one(tile, t, n + 2 * L_APART) | one(tile, t, n + 3 * L_APART) << 16);
#else
    return make_uint4(one(tile, t, n), one(tile, t, n + L_APART), one(tile, t, n + 2 * L_APART), one(tile, t, n + 3 * L_APART));
#endif
}

#endif

static __device__ __forceinline__ u32 place(const Words &words, const Coordinates &at) {
    u32 place = words.word[OUT_AT];
#pragma unroll
    for (u32 d = 0; d < RANK; d++) place += at.c[d] * words.word[OUT_AT + 1 + d];
    return place;
}

extern "C" __global__ void __launch_bounds__(THREADS) map(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    __shared__ Cell tile[NARROW ? SIDE * SIDE : SIDE * FOURS];
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const u32 turned = words.word[RANK], last = words.word[1 + RANK];
#if NARROW
    const u32 t_side = words.word[OUT_AT + RANK + 1], l_side = words.word[OUT_AT + RANK + 2];
#else
    const u32 t_side = SIDE, l_side = SIDE;
#endif
    const u32 across = (last + l_side - 1) / l_side, down = (turned + t_side - 1) / t_side;
    u32 rest = blockIdx.y * gridDim.x + blockIdx.x;
    const u32 l0 = rest % across * l_side;
    rest /= across;
    const u32 t0 = rest % down * t_side;
    rest /= down;
    Coordinates c = {};
#pragma unroll
    for (u32 d = OUTER; d > 0; d--) {
        c.c[d - 1] = rest % words.word[1 + d];
        rest /= words.word[1 + d];
    }
    // The same for all threads, and so no barrier is left out by some.
    if (rest > 0) return;
#if NARROW
    // What there is of the long side, and where elements are along it and along the short one. Those that lie behind one another there are
    // for neighbours; a thread that is left over has what is not there.
    const u32 size = TALL ? last : turned, first = TALL ? t0 : l0, length = min(TALL ? t_side : l_side, (TALL ? turned : last) - first);
    const Turns turns(size);
    const uint2 by_size = make_uint2(turns.first, turns.i), by_length = make_uint2(threadIdx.x, 0);
    const auto next = [&](uint2 at, bool is_by_length) {
        if (!is_by_length) return make_uint2(at.x + turns.apart, at.y);
        return at.y + 1 == size ? make_uint2(at.x + THREADS, 0) : make_uint2(at.x, at.y + 1);
    };
    const auto within = [&](uint2 at) {
        c.c[RANK - 1 - TALL] = first + min(at.x, length - 1);
        c.c[RANK - 2 + TALL] = at.y;
        return c;
    };
    // Neighbours along the long side are an odd number of words apart.
    const auto cell = [&](uint2 at) { return at.x * (size | 1) + at.y; };
    for (uint2 from = TALL ? by_length : by_size; from.x < length;) {
        uint2 at[EACH];
        u32 seen[EACH];
#pragma unroll
        for (u32 e = 0; e < EACH; e++, from = next(from, TALL)) {
            at[e] = from;
//# for i in INPUTS
//# if TURNED_$i
            seen[e] = word_of(source.one_$i(source.at_$i(within(from).c)));
//# end
//# end
        }
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            if (at[e].x < length) tile[cell(at[e])] = seen[e];
        }
    }
    __syncthreads();
    for (uint2 to = TALL ? by_size : by_length; to.x < length;) {
        uint2 at[EACH];
//# for i in INPUTS
        Source::Kind$i in_of_$i[EACH];
//# end
#pragma unroll
        for (u32 e = 0; e < EACH; e++, to = next(to, !TALL)) {
            at[e] = to;
//# for i in INPUTS
//# if TURNED_$i
            in_of_$i[e] = of_word<Source::Kind$i>(tile[cell(make_uint2(min(to.x, length - 1), to.y))]);
//# else
            in_of_$i[e] = source.one_$i(source.at_$i(within(to).c));
//# end
//# end
        }
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            if (at[e].x >= length) continue;
            const u32 o = place(words, within(at[e]));
            const Result v = source.all(words.word[1] + o
//# for i in INPUTS
                , {in_of_$i[e], in_of_$i[e], in_of_$i[e], in_of_$i[e]}
//# end
            ).x[0];
#if RESULT_F16
            static_cast<unsigned short *>(out)[o] = rounded(v);
#else
            static_cast<u32 *>(out)[o] = word_of(v);
#endif
        }
    }
#else
    const u32 n = threadIdx.x % FOURS, near_t = n * T_NEAR, near_l = n * L_NEAR, far = threadIdx.x / FOURS * 4;
    // What is not there is read as the last that is, and not written.
    const u32 read_t = min(t0 + near_t, (turned - 1) / T_NEAR * T_NEAR), own_l = min(l0 + near_l, (last - 1) / L_NEAR * L_NEAR);
    Coordinates read[4], own[4];
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
        read[u] = own[u] = c;
        read[u].c[RANK - 2] = read_t;
        read[u].c[RANK - 1] = min(l0 + far + u, last - 1);
        own[u].c[RANK - 2] = min(t0 + far + u, turned - 1);
        own[u].c[RANK - 1] = own_l;
    }
//# for i in INPUTS
    Four<Source::Kind$i> in_of_$i[4];
//# if TURNED_$i
    Cell seen_of_$i[4];
//# end
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
//# if TURNED_$i
        seen_of_$i[u] = source.words_of_$i(source.at_$i(read[u].c), turned - 1 - read_t);
//# else
        in_of_$i[u] = source.some_$i(source.at_$i(own[u].c), last - 1 - own_l);
//# end
    }
//# end
//# for i in INPUTS
//# if TURNED_$i
    __syncthreads();
    put(tile, near_t, far / 4, seen_of_$i);
    __syncthreads();
#pragma unroll
    for (u32 u = 0; u < 4; u++) in_of_$i[u] = source.words_as_$i(taken(tile, far + u, n));
//# end
//# end
#pragma unroll
    for (u32 u = 0; u < 4; u++) {
        if (t0 + far + u >= turned || l0 + near_l >= last) continue;
        const u32 o = place(words, own[u]);
        const Four<Result> v = source.all(words.word[1] + o
//# for i in INPUTS
            , in_of_$i[u]
//# end
        );
#if RESULT_F16 && WHOLE
        static_cast<uint2 *>(out)[o / 4] = make_uint2(rounded(v.x[0]) | rounded(v.x[1]) << 16, rounded(v.x[2]) | rounded(v.x[3]) << 16);
#elif WHOLE
        static_cast<uint4 *>(out)[o / 4] = make_uint4(word_of(v.x[0]), word_of(v.x[1]), word_of(v.x[2]), word_of(v.x[3]));
#else
#pragma unroll
        for (u32 r = 0; r < 4; r++) {
            if (own_l + r * L_APART >= last) continue;
#if RESULT_F16
            static_cast<unsigned short *>(out)[o + r * L_APART] = rounded(v.x[r]);
#else
            static_cast<u32 *>(out)[o + r * L_APART] = word_of(v.x[r]);
#endif
        }
#endif
    }
#endif
}
