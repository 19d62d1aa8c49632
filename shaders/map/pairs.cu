// As pairs.wgsl; compiled at run time, behind what is generated.

#define SIDE 64u
#define HALF_SIDE (SIDE / 2)
#define PITCH (HALF_SIDE + 1)

struct Coordinates {
    u32 c[RANK];
};

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
    __shared__ u32 tile[NARROW ? SIDE * SIDE : SIDE * PITCH];
    const unsigned short *const halves = reinterpret_cast<const unsigned short *>(tile);
    const u32 *const all = static_cast<const u32 *>(in_0);
    const Source source = {in_0, in_1, in_2, in_4, in_5, in_6, words};
    const u32 turned = words.word[RANK], last = words.word[1 + RANK];
    const u32 t_side = words.word[OUT_AT + RANK], l_side = words.word[OUT_AT + RANK + 1];
    const u32 across = (last + l_side - 1) / l_side, down = (turned + t_side - 1) / t_side, local = threadIdx.x;
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
    c.c[RANK - 2] = t0;
    const auto pair_of = [&](u32 a, u32 b) { return u32(halves[a]) | u32(halves[b]) << 16; };
    const auto put = [&](u32 o, u32 v) {
#if !RAW
        const Four<Result> x = source.all(words.word[1] + o, source.words_as_0(make_uint2(v, v)));
        v = rounded(x.x[0]) | rounded(x.x[1]) << 16;
#endif
        static_cast<u32 *>(out)[o / 2] = v;
    };
#if TALL
    // Rows of the input, and then all of the result's words in order.
    const u32 length = min(t_side, turned - t0), begin = source.at_0(c.c), step = words.word[STEP_AT], pitch = t_side / 2 + 1;
    for (u32 w = local % WORDS; w * 2 < t_side; w += WORDS) {
        for (u32 y = local / WORDS; y < last; y += EACH * BESIDE) {
            u32 seen[EACH];
#pragma unroll
            for (u32 e = 0; e < EACH; e++) {
                const u32 at = begin + min(y + e * BESIDE, last - 1) * step;
                seen[e] = __ldg(all + min(at / 2 + w, (at + length - 1) / 2));
            }
#pragma unroll
            for (u32 e = 0; e < EACH; e++) {
                if (y + e * BESIDE < last) tile[(y + e * BESIDE) * pitch + w] = seen[e];
            }
        }
    }
    if (local < last) {
        const u32 at = begin + local * step;
        tile[local * pitch + pitch - 1] = __ldg(all + min(at / 2 + pitch - 1, (at + length - 1) / 2));
    }
    __syncthreads();
    const u32 o = place(words, c), t_step = THREADS * 2 / last, l_step = THREADS * 2 % last;
    u32 t = local * 2 / last, l = local * 2 % last;
    for (u32 e = local * 2; e < length * last; e += THREADS * 2) {
        const bool ends = l + 1 == last;
        const u32 n_l = ends ? 0 : l + 1, n_t = t + ends;
        put(o + e, pair_of(l * pitch * 2 + t + ((begin + l * step) & 1), n_l * pitch * 2 + n_t + ((begin + n_l * step) & 1)));
        t += t_step;
        l += l_step;
        if (l >= last) {
            l -= last;
            t++;
        }
    }
#else
    // The word of a row of the result that begins at o with element l of it, which may be the last.
    const auto put_of_row = [&](u32 o, u32 l, u32 v) {
#if ODD
        if (l + 1 == last && o + 1 < words.word[0]) {
            Coordinates n;
#pragma unroll
            for (u32 d = 0; d < RANK; d++) n.c[d] = (o + 1) / words.word[OUT_AT + d] % words.word[2 + d];
            v = __byte_perm(v, source.half_0(source.at_0(n.c)), 0x5410);
        }
#endif
        put(o, v);
    };
    const u32 first = ODD ? max(l0, 2) - 2 : l0;
#if NARROW
    // All of the input's words in order, and then rows of the result, a word of each for neighbours.
    const u32 length = min(l0 + l_side, last) - first;
    c.c[RANK - 1] = first;
    const u32 begin = source.at_0(c.c), count = (begin + length * turned + 1) / 2 - begin / 2;
    for (u32 w = local; w < count; w += THREADS * EACH) {
        u32 seen[EACH];
#pragma unroll
        for (u32 e = 0; e < EACH; e++) seen[e] = __ldg(all + begin / 2 + min(w + e * THREADS, count - 1));
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            if (w + e * THREADS < count) tile[w + e * THREADS] = seen[e];
        }
    }
    __syncthreads();
    c.c[RANK - 1] = l0;
    const u32 o_step = words.word[OUT_AT + RANK - 2];
    for (u32 j = local % WORDS * 2; j < l_side; j += WORDS * 2) {
        u32 o = place(words, c) + j + local / WORDS * o_step;
        for (u32 y = local / WORDS; y < turned; y += BESIDE, o += BESIDE * o_step) {
            const u32 phase = ODD ? o % 2 : 0;
            // Before the first element of all there is none.
            if (l0 + j < phase || l0 + j - phase >= last) continue;
            const u32 l = l0 + j - phase, h = begin % 2 + (l - first) * turned + y;
            put_of_row(o - phase, l, pair_of(h, h + turned));
        }
    }
#else
    const u32 near = local % HALF_SIDE, far = local / HALF_SIDE;
    constexpr u32 FAR = THREADS / HALF_SIDE;
    // A column's words for neighbours; what is not there is read as what is.
    u32 seen[8];
    const auto word = [&](u32 column, u32 w) {
        c.c[RANK - 1] = min(first + column, last - 1);
        const u32 e = source.at_0(c.c);
        return __ldg(all + min(e / 2 + w, (e + turned - 1 - t0) / 2));
    };
#pragma unroll
    for (u32 u = 0; u < 8; u++) seen[u] = word(u * FAR + far, near);
    const u32 behind = word(local % SIDE, HALF_SIDE);
#pragma unroll
    for (u32 u = 0; u < 8; u++) tile[(u * FAR + far) * PITCH + near] = seen[u];
    if (local < SIDE) tile[local * PITCH + HALF_SIDE] = behind;
    __syncthreads();
    c.c[RANK - 1] = first;
    const u32 begin = source.at_0(c.c), step = words.word[STEP_AT];
    c.c[RANK - 1] = l0;
#pragma unroll
    for (u32 u = 0; u < 8; u++) {
        const u32 t = u * FAR + far;
        c.c[RANK - 2] = t0 + t;
        const u32 o = place(words, c) + near * 2, phase = ODD ? o % 2 : 0;
        // Before the first element of all there is none.
        if (t0 + t >= turned || near * 2 >= l_side || l0 + near * 2 < phase || l0 + near * 2 - phase >= last) continue;
        const u32 l = l0 + near * 2 - phase, i = l - first;
        const u32 a = i * PITCH * 2 + t + ((begin + i * step) & 1), b = (i + 1) * PITCH * 2 + t + ((begin + (i + 1) * step) & 1);
        put_of_row(o - phase, l, pair_of(a, b));
    }
#endif
#endif
}
