// As reduce.wgsl; compiled at run time, behind what is generated, fold.cuh, row.cuh and lanes.cuh.

// From one value of four to the next, and whether any lane has the l-th of the u-th four.
#define STEP (QUAD ? 1 : LANES)
#define IS_HELD(u, l) (QUAD || (u) * 4 + (l) < VALUES)
// Values that a lane has of all but the last of its fours, or of all but the last of its values.
#define AT_ONCE (QUAD ? FOURS * 4 - 4 : VALUES - 1)

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
    const u32 place = words.word[7];
    u32 i = blockIdx.z * words.word[4];
    const u32 end = min(i + words.word[4], words.word[3]);
#if MOMENTS
    // The middle one of three, so that it is none that stands out.
    f32 some[3];
#pragma unroll
    for (u32 s = 0; s < 3; s++) {
        const u32 at = min(i + lane + s * LANES, end - 1);
        some[s] = fold.value(along(words, c, at).c, index + at);
    }
    fold.pivot = fmaxf(fminf(some[0], some[1]), fminf(fmaxf(some[0], some[1]), some[2]));
#endif
    Fold::State state = fold.empty();
    // What is not there is read as the last that is, and left out.
    for (; i < end; i += LANES * BLOCKS * 16) {
        Four<Fold::Value> v[BLOCKS][4];
        u32 from[BLOCKS][4];
#pragma unroll
        for (u32 u = 0; u < FOURS; u++) {
#if QUAD
            const u32 at = i + (u * LANES + lane) * 4, read = min(at, end - 4);
            v[u / 4][u % 4] = fold.four(along(words, c, read).c, index + read);
#else
            const u32 at = i + u * LANES * 4 + lane;
#pragma unroll
            for (u32 x = 0; x < 4; x++) {
                const u32 read = min(at + x * LANES, end - 1);
                v[u / 4][u % 4].x[x] = IS_HELD(u, x) ? fold.value(along(words, c, read).c, index + read) : Fold::Value(0);
            }
#endif
            from[u / 4][u % 4] = place + at;
        }
#if MOMENTS && AT_ONCE > 0
        // What all lanes have of the last values of a row is folded at once, and then the rest.
        if (end - i < LANES * BLOCKS * 16 && end - i >= AT_ONCE * LANES) {
            constexpr u32 u = AT_ONCE / 4, x = AT_ONCE % 4;
            state = fold.join(state, fold.of_all<AT_ONCE>(v[0]));
            if (from[u / 4][u % 4] - place + x * STEP < end) {
                state = fold.join(state, QUAD ? fold.quad(v[u / 4][u % 4], 0, STEP) : fold.lift(v[u / 4][u % 4].x[x], 0));
            }
            continue;
        }
#endif
#if MOMENTS && BLOCKS == 2
        // To join variances takes as long as to fold a block: both are one where all of them is there.
        if (VALUES == 32 && from[1][3] - place + 3 * STEP < end) {
            state = fold.join(state, fold.of_all<32>(v[0]));
            continue;
        }
#endif
#pragma unroll
        for (u32 b = 0; b < BLOCKS; b++) {
            if (b * 16 + 15 < VALUES && from[b][3] - place + 3 * STEP < end) {
                state = fold.more(state, v[b], from[b], STEP);
                continue;
            }
#pragma unroll
            for (u32 u = 0; u < 4 && b * 4 + u < FOURS; u++) {
                const u32 at = from[b][u];
                if (IS_HELD(b * 4 + u, 3) && at - place + 3 * STEP < end) {
                    state = fold.join(state, fold.quad(v[b][u], at, STEP));
                } else if (!QUAD) {
#pragma unroll
                    for (u32 x = 0; x < 4; x++) {
                        if (IS_HELD(b * 4 + u, x) && at - place + x * LANES < end) {
                            state = fold.join(state, fold.lift(v[b][u].x[x], at + x * LANES));
                        }
                    }
                }
            }
        }
    }
    state = of_row(state, [&](const Fold::State &a, const Fold::State &b) { return fold.join(a, b); }, slot, lane, false);
    if (lane == 0 && row < words.word[0]) {
#if PARTIAL
        static_cast<Fold::State *>(out)[row * words.word[5] + words.word[6] + blockIdx.z] = state;
#else
        const u32 to = row + words.word[6];
        const Fold::Output result = fold.finish(state);
#if END
        static_cast<f32 *>(out)[to] = fold.ended(to, result);
#else
        static_cast<Fold::Output *>(out)[to] = result;
#endif
#endif
    }
}
