// As reduce.wgsl; compiled at run time, behind what is generated, fold.cuh and row.cuh.

extern "C" __global__ void __launch_bounds__(THREADS) reduce(
    const void *in_0, const void *in_1, const void *in_2, const void *, const void *in_4, const void *in_5, const void *in_6,
    void *__restrict__ out, const Words words
) {
    __shared__ Fold::State states[THREADS];
    Fold fold = {{in_0, in_1, in_2, in_4, in_5, in_6, words}};
    const u32 local = threadIdx.x;
#if COLUMNS
    const u32 slot = local % ROWS, lane = local / ROWS, apart = ROWS;
#else
    const u32 slot = local / LANES, lane = local % LANES, apart = 1;
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
    fold.pivot = fold.value(along(words, c, i).c, index + i);
#endif
    Fold::State state = fold.empty();
    for (; i + LANES * 16 <= end; i += LANES * 16) {
        Four<Fold::Value> v[4];
        u32 from[4];
#pragma unroll
        for (u32 u = 0; u < 4; u++) {
#if QUAD
            const u32 at = i + (u * LANES + lane) * 4;
            v[u] = fold.four(along(words, c, at).c, index + at);
#else
            const u32 at = i + u * LANES * 4 + lane;
#pragma unroll
            for (u32 x = 0; x < 4; x++) v[u].x[x] = fold.value(along(words, c, at + x * LANES).c, index + at + x * LANES);
#endif
            from[u] = place + at;
        }
        state = fold.more(state, v, from, QUAD ? 1 : LANES);
    }
#if QUAD
    for (i += lane * 4; i < end; i += LANES * 4) {
        state = fold.join(state, fold.quad(fold.four(along(words, c, i).c, index + i), place + i, 1));
    }
#else
    for (i += lane; i < end; i += LANES) {
        state = fold.join(state, fold.lift(fold.value(along(words, c, i).c, index + i), place + i));
    }
#endif
    states[local] = state;
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        __syncthreads();
        if (lane < step) states[local] = fold.join(states[local], states[local + step * apart]);
    }
    if (lane == 0 && row < words.word[0]) {
#if PARTIAL
        static_cast<Fold::State *>(out)[row * words.word[5] + words.word[6] + blockIdx.z] = states[local];
#else
        static_cast<Fold::Output *>(out)[row + words.word[6]] = fold.finish(states[local]);
#endif
    }
}
