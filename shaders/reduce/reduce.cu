// As reduce.wgsl; compiled at run time, behind what is generated, fold.cuh, row.cuh and lanes.cuh.

// From one value of four to the next, and whether any lane has the l-th of the u-th four.
#define STEP (QUAD ? 1 : LANES)
#define IS_HELD(u, l) (QUAD || (u) * 4 + (l) < VALUES)
// Values that every lane has of a row that is all there at once: all but the last of its fours, or all but its last.
#if LOOPS
#define FULL 0
#elif QUAD
#define FULL (FOURS * 4 - 4)
#elif FLAT && COUNT % LANES == 0
#define FULL VALUES
#else
#define FULL (VALUES - 1)
#endif
#define IS_THERE(u, l) (IS_HELD(u, l) && ((u) * 4 + (l) < FULL || from[u] - place + (l) * STEP < end))

extern "C" __global__ void __launch_bounds__(THREADS) reduce(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    Fold fold = {{in_0, in_1, in_2, in_4, in_5, in_6, words}};
    const u32 local = threadIdx.x;
#if COLUMNS
    const u32 slot = local % ROWS, lane = local / ROWS;
#else
    const u32 slot = local / LANES, lane = local % LANES;
#endif
    const u32 row = (blockIdx.y * gridDim.x + blockIdx.x) * ROWS + slot;
    // A row that is not there is read as the last one, and not written.
    const u32 read = min(row, words.word[0] - 1);
    const Coordinates c = coordinates(words, read);
    const u32 index = words.word[1] + read * words.word[2];
    const u32 place = ARG ? words.word[7] : 0;
#if FLAT
    u32 i = 0;
    constexpr u32 end = COUNT;
    __shared__ Fold::Value staged[ROWS * COUNT];
    Fold::Value flats[VALUES];
#pragma unroll
    for (u32 s = 0; s < VALUES; s++) {
        const u32 at = min((row - slot) * COUNT + s * THREADS + local, words.word[0] * COUNT - 1);
        flats[s] = fold.value(flat(at).c, words.word[1] + at);
    }
#pragma unroll
    for (u32 s = 0; s < VALUES; s++) {
        if (s * THREADS + local < ROWS * COUNT) staged[s * THREADS + local] = flats[s];
    }
    __syncthreads();
    const auto value = [&](u32 at) { return staged[slot * COUNT + at]; };
#else
    u32 i = blockIdx.z * words.word[4];
    const u32 end = min(i + words.word[4], words.word[3]);
    const auto value = [&](u32 at) { return fold.value(along(words, c, at).c, index + at); };
#endif
#if MOMENTS && LOOPS
    // The middle one of three, so that it is none that stands out.
    f32 some[3];
#pragma unroll
    for (u32 s = 0; s < 3; s++) some[s] = value(min(i + lane + s * LANES, end - 1));
    fold.pivot = fmaxf(fminf(some[0], some[1]), fminf(fmaxf(some[0], some[1]), some[2]));
#endif
    Fold::State state = fold.empty();
#if LOOPS
    for (; i < end; i += LANES * FOURS * 4)
#endif
    {
        Four<Fold::Value> v[FOURS];
        u32 from[FOURS];
#pragma unroll
        for (u32 u = 0; u < FOURS; u++) {
            // What is not there is read as the last that is.
#if QUAD
            const u32 at = i + (u * LANES + lane) * 4, read = u * 4 < FULL ? at : min(at, end - 4);
            v[u] = fold.four(along(words, c, read).c, index + read);
#else
            const u32 at = i + u * LANES * 4 + lane;
#pragma unroll
            for (u32 l = 0; l < 4; l++) {
                const u32 read = at + l * STEP;
                v[u].x[l] = IS_HELD(u, l) ? value(u * 4 + l < FULL ? read : min(read, end - 1)) : Fold::Value(0);
            }
#endif
            from[u] = place + at;
        }
#if MOMENTS && LOOPS
        // To join variances takes as long as to fold some values: those of all fours are one.
        if (end - i >= LANES * FOURS * 4) {
            state = fold.join(state, fold.of_all<FOURS * 4>(v, from, STEP));
        } else {
            state = fold.join(state, fold.of_some<FOURS * 4>(v, from, STEP, end));
        }
#elif MOMENTS
        state = moments_of_row(v, [&](u32 u, u32 l) { return IS_THERE(u, l); }, end, value(0), slot, lane, false);
#else
        if (FULL < VALUES && end - i < LANES * VALUES) {
#pragma unroll
            for (u32 u = 0; u < FOURS; u++) {
#pragma unroll
                for (u32 l = 0; l < 4; l++) v[u].x[l] = IS_THERE(u, l) ? v[u].x[l] : Fold::left_out(v[u].x[l]);
            }
        }
        state = fold.join(state, fold.of_all<VALUES < 16 ? VALUES : 16>(v, from, STEP));
#if VALUES > 16
        state = fold.join(state, fold.of_all<VALUES - 16>(v + 4, from + 4, STEP));
#endif
#endif
    }
#if !MOMENTS || LOOPS
    state = of_row(state, [&](const Fold::State &a, const Fold::State &b) { return fold.join(a, b); }, slot, lane, false);
#endif
    if (lane == 0 && row < words.word[0]) {
#if PARTIAL
        static_cast<Fold::State *>(out)[row * words.word[5] + words.word[6] + blockIdx.z] = state;
#else
        const u32 to = row + words.word[6];
        const Fold::Output result = fold.finish(state);
#if END && RESULT_F16
        static_cast<unsigned short *>(out)[to] = rounded(fold.ended(to, result));
#elif END
        static_cast<f32 *>(out)[to] = fold.ended(to, result);
#else
        static_cast<Fold::Output *>(out)[to] = result;
#endif
#endif
    }
}
