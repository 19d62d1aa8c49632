// As normalize.wgsl; compiled at run time, behind what is generated, fold.cuh, row.cuh and measure.cuh.

static __device__ __forceinline__ u32 place(const Words &words, const Coordinates &at) {
    u32 place = words.word[OUT_AT];
#pragma unroll
    for (u32 d = 0; d < RANK; d++) place += at.c[d] * words.word[OUT_AT + 1 + d];
    return place;
}

extern "C" __global__ void __launch_bounds__(THREADS) normalize(
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
    // What is not there is read as the last that is, and not written.
    const u32 read = min(row, words.word[0] - 1);
    const Coordinates c = coordinates(words, read);
    const u32 count = words.word[2], index = words.word[1] + read * count;
    Four<f32> v[HELD];
    u32 from[HELD];
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#if QUAD
        from[u] = (u * LANES + lane) * 4;
        const u32 at = min(from[u], count - 4);
        v[u] = fold.four(along(words, c, at).c, index + at);
#else
        from[u] = u * LANES * 4 + lane;
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            const u32 at = min(from[u] + l * LANES, count - 1);
            v[u].x[l] = fold.value(along(words, c, at).c, index + at);
        }
#endif
    }
#if LAYER
    fold.pivot = fold.value(along(words, c, 0).c, index);
#endif
    Fold::State state = fold.empty();
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#if EXACT
        if (u % 4 == 0 && u + 4 <= HELD) {
            state = fold.more(state, {v[u], v[u + 1], v[u + 2], v[u + 3]}, {from[u], from[u + 1], from[u + 2], from[u + 3]}, 1);
        } else if (u >= HELD / 4 * 4) {
            state = fold.join(state, fold.quad(v[u], from[u], 1));
        }
#elif QUAD
        if (from[u] < count) state = fold.join(state, fold.quad(v[u], from[u], 1));
#else
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            if (from[u] + l * LANES < count) state = fold.join(state, fold.lift(v[u].x[l], from[u]));
        }
#endif
    }
    states[local] = state;
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        __syncthreads();
        if (lane < step) states[local] = fold.join(states[local], states[local + step * apart]);
    }
    __syncthreads();
    const Measure m = measure(fold, states[COLUMNS ? slot : slot * LANES]);
    if (row >= words.word[0]) return;
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#if QUAD
        if (from[u] >= count) continue;
        const Coordinates at = along(words, c, from[u]);
        f32 x[4];
#pragma unroll
        for (u32 l = 0; l < 4; l++) x[l] = made(fold, v[u].x[l], m);
#if SCALE
        const Four<f32> scale = fold.scale_four(at.c);
#pragma unroll
        for (u32 l = 0; l < 4; l++) x[l] *= scale.x[l];
#endif
#if BIAS
        const Four<f32> bias = fold.bias_four(at.c);
#pragma unroll
        for (u32 l = 0; l < 4; l++) x[l] += bias.x[l];
#endif
        const u32 to = place(words, at) / 4;
#if OUT_F16
        static_cast<uint2 *>(out)[to] = make_uint2(rounded(x[0]) | rounded(x[1]) << 16, rounded(x[2]) | rounded(x[3]) << 16);
#else
        static_cast<float4 *>(out)[to] = make_float4(x[0], x[1], x[2], x[3]);
#endif
#else
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            if (from[u] + l * LANES >= count) continue;
            const Coordinates at = along(words, c, from[u] + l * LANES);
            f32 x = made(fold, v[u].x[l], m);
#if SCALE
            x *= fold.scale_one(at.c);
#endif
#if BIAS
            x += fold.bias_one(at.c);
#endif
            static_cast<f32 *>(out)[place(words, at)] = x;
        }
#endif
    }
}
