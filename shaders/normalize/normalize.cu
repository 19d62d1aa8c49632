// As normalize.wgsl; compiled at run time, behind what is generated, fold.cuh, row.cuh, lanes.cuh, turns.cuh and measure.cuh.

// Lanes of a row in all blocks of a cluster.
#define ALL_LANES (LANES * CLUSTER)
// From one value of four to the next, and whether any lane has the l-th of the u-th four.
#define STEP (QUAD ? 1 : ALL_LANES)
#define IS_HELD(u, l) (QUAD || (u) * 4 + (l) < VALUES)
// Values that every lane has, and whether one has that one of them.
#define FULL (EXACT ? HELD * 4 : QUAD ? HELD * 4 - 4 : VALUES - 1)
#if CROSSED
#define IS_THERE(u, l) (((u) > 0 || from[u] + (l) >= start) && ((u) < WHOLE || from[u] + (l) < stop))
#else
#define IS_THERE(u, l) (IS_HELD(u, l) && ((u) * 4 + (l) < FULL || from[u] + (l) * STEP < count))
#endif

static __device__ __forceinline__ u32 place(const Words &words, const Coordinates &at) {
    u32 place = words.word[OUT_AT];
#pragma unroll
    for (u32 d = 0; d < RANK; d++) place += at.c[d] * words.word[OUT_AT + 1 + d];
    return place;
}

#if EXPONENTIAL
// The values of a row are all there, and so its largest is known before there is any power. Of f16 nobody sees what a quick one lacks, nor of a
// sum whose largest term is 1.
static __device__ __forceinline__ f32 power(f32 v) { return OUT_F16 || LOGARITHMS ? quick_exp(v) : expf(v); }
#endif

static __device__ __forceinline__ f32 proportion(const Fold &fold, f32 v, const Measure &m) {
#if EXPONENTIAL && !LOGARITHMS
    return (MEASURED ? Fold::power_of(v, m.base) : v) * m.by;
#else
    return made(fold, v, m);
#endif
}

// A row is for one block, or for a cluster of blocks, of which 512 threads at least fit a multiprocessor.
#if CLUSTER > 1
#define OF_CLUSTER __cluster_dims__(CLUSTER, 1, 1)
#define LEAST_BLOCKS (512 / THREADS)
#else
#define OF_CLUSTER
#define LEAST_BLOCKS 1
#endif

extern "C" __global__ void OF_CLUSTER __launch_bounds__(THREADS, LEAST_BLOCKS) normalize(
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
    const u32 number = (blockIdx.y * gridDim.x + blockIdx.x) / CLUSTER;
    // From the end on: what was read last is still in the cache.
    const u32 first = (MEASURED ? gridDim.x * gridDim.y - 1 - number : number) * ROWS, row = first + slot;
    // What is not there is read as the last that is, and not written.
    const u32 read = min(row, words.word[0] - 1);
    const Coordinates c = coordinates(words, read);
#if STAGED
    __shared__ f32 staged[STAGED];
#endif
#if CROSSED
    __shared__ Four<f32> shared_fours[ROWS];
    const u32 count = words.word[2], start = read * count, stop = start + count;
#elif FLAT
    constexpr u32 count = COUNT, pitch = COUNT;
    f32 flats[VALUES];
#pragma unroll
    for (u32 s = 0; s < VALUES; s++) {
        const u32 at = min(first * COUNT + s * THREADS + local, words.word[0] * COUNT - 1);
        flats[s] = fold.value(flat(at).c, words.word[1] + at);
    }
#pragma unroll
    for (u32 s = 0; s < VALUES; s++) {
        if (s * THREADS + local < ROWS * COUNT) staged[s * THREADS + local] = flats[s];
    }
    __syncthreads();
#else
    const u32 count = words.word[2], index = words.word[1] + read * words.word[MEASURED ? DIVISOR : 2], pitch = count | 1;
#endif
    const u32 begin = MEASURED ? (gridDim.z - 1 - blockIdx.z) * LANES * HELD * 4 : 0;
    const u32 among = CLUSTER > 1 ? blockIdx.x % CLUSTER * LANES + lane : lane;
#if LAYER && CROSSED
    const f32 some = fold.value(flat(start).c, words.word[1] + start);
#elif LAYER && !MEASURED && !FLAT
    const f32 some = fold.value(along(words, c, 0).c, index);
#elif LAYER && !MEASURED
    const f32 some = staged[slot * COUNT];
#endif
    Four<f32> v[HELD];
    u32 from[HELD];
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#if CROSSED
        from[u] = (start & ~3u) + (u * LANES + lane) * 4;
        const u32 at = min(from[u], (stop - 1) & ~3u);
        v[u] = fold.four(flat(at).c, words.word[1] + at);
#elif QUAD
        from[u] = begin + (u * ALL_LANES + among) * 4;
        const u32 at = EXACT ? from[u] : min(from[u], count - 4);
        v[u] = fold.four(along(words, c, at).c, index + at);
#else
        from[u] = begin + u * ALL_LANES * 4 + among;
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            const u32 at = EXACT ? from[u] + l * STEP : min(from[u] + l * STEP, count - 1);
#if FLAT
            v[u].x[l] = IS_HELD(u, l) ? staged[slot * COUNT + at] : 0.0f;
#else
            v[u].x[l] = IS_HELD(u, l) ? fold.value(along(words, c, at).c, index + at) : 0.0f;
#endif
        }
#endif
    }
#if MEASURED
    const void *const bound[] = {in_0, in_1, in_2, nullptr, in_4, in_5, in_6};
    const Measure m = static_cast<const Measure *>(bound[MEASURES])[read];
#else
#if EXPONENTIAL
    f32 most = __uint_as_float(0xff800000u);
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            // What is not there is less than all that is, and its power is zero.
            if (CROSSED ? !IS_THERE(u, l) : !EXACT && from[u] + l * STEP >= count) v[u].x[l] = __uint_as_float(0xff800000u);
            most = fmaxf(most, v[u].x[l]);
        }
    }
    most = of_row(most, [](f32 a, f32 b) { return fmaxf(a, b); }, slot, lane, true);
    f32 sum = 0.0f;
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
        f32 x[4];
#pragma unroll
        for (u32 l = 0; l < 4; l++) x[l] = IS_HELD(u, l) ? power(v[u].x[l] - Fold::pivot(most)) : 0.0f;
        sum += (x[0] + x[1]) + (x[2] + x[3]);
#if !LOGARITHMS
        v[u] = {x[0], x[1], x[2], x[3]};
#endif
    }
    const Fold::State state = {most, of_row(sum, [](f32 a, f32 b) { return a + b; }, slot, lane, true)};
#elif LAYER
    const Fold::State state = moments_of_row(v, [&](u32 u, u32 l) { return IS_THERE(u, l); }, count, some, slot, lane, true);
#else
    Fold::State state = fold.empty();
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) v[u].x[l] = IS_THERE(u, l) ? v[u].x[l] : Fold::left_out(v[u].x[l]);
    }
#pragma unroll
    for (u32 u = 0; u + 4 <= HELD; u += 4) state = fold.join(state, fold.of_all<16>(v + u, from + u, STEP));
#if HELD % 4
    state = fold.join(state, fold.of_all<HELD % 4 * 4>(v + HELD / 4 * 4, from + HELD / 4 * 4, STEP));
#endif
    state = of_row(state, [&](const Fold::State &a, const Fold::State &b) { return fold.join(a, b); }, slot, lane, true);
#endif
    const Measure m = measure(fold, state);
#endif
#if QUAD
    const auto write = [&](u32 to, Four<f32> x) {
#if END
        x = fold.ended_four(to, x);
#endif
#if OUT_F16
        static_cast<uint2 *>(out)[to / 4] = make_uint2(rounded(x.x[0]) | rounded(x.x[1]) << 16, rounded(x.x[2]) | rounded(x.x[3]) << 16);
#else
        static_cast<float4 *>(out)[to / 4] = make_float4(x.x[0], x.x[1], x.x[2], x.x[3]);
#endif
    };
#else
    const auto put = [&](const Coordinates &at, f32 x) {
#if SCALE
        x *= fold.scale_one(at.c);
#endif
#if BIAS
        x += fold.bias_one(at.c);
#endif
        const u32 to = place(words, at);
#if END
        x = fold.ended(to, x);
#endif
#if OUT_F16
        static_cast<unsigned short *>(out)[to] = rounded(x);
#else
        static_cast<f32 *>(out)[to] = x;
#endif
    };
#endif
#if CROSSED
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            v[u].x[l] = proportion(fold, v[u].x[l], m);
#if SCALE
            const Coordinates at = along(words, c, min(from[u] + l - start, count - 1));
            v[u].x[l] *= fold.scale_one(at.c);
#endif
#if BIAS
            v[u].x[l] += fold.bias_one(at.c);
#endif
        }
        if (u >= WHOLE && from[u] < stop && from[u] + 4 > stop) shared_fours[slot] = v[u];
    }
    __syncthreads();
    if (row >= words.word[0]) return;
    // Rows of a block begin with a four, and end with one but for the very last.
    if (from[0] < start) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) v[0].x[l] = from[0] + l < start ? shared_fours[slot - 1].x[l] : v[0].x[l];
    }
    const u32 end = row + 1 == words.word[0] ? stop : stop & ~3u;
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
        if (u < WHOLE || from[u] < end) write(words.word[OUT_AT] + from[u], v[u]);
    }
#elif STAGED
#if FLAT
    // What a lane reads in place of what is not there is another's.
    __syncthreads();
#endif
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            const u32 i = from[u] + l * STEP;
            if (IS_HELD(u, l) && (EXACT || i < count)) staged[slot * pitch + i] = proportion(fold, v[u].x[l], m);
        }
    }
    __syncthreads();
#if FLAT
    const u32 there = min(ROWS, words.word[0] - min(first, words.word[0])) * COUNT;
#pragma unroll
    for (u32 s = 0; s < VALUES; s++) {
        const u32 at = s * THREADS + local;
        if (at < there) put(SCALE ? along(words, coordinates(words, first + at / COUNT), at % COUNT) : flat(first * COUNT + at), staged[at]);
    }
#else
    const Turns turns(count);
    for (u32 r = turns.first; r < ROWS && first + r < words.word[0]; r += turns.apart) {
        put(along(words, coordinates(words, first + r), turns.i), staged[r * pitch + turns.i]);
    }
#endif
#else
#if CLUSTER > 1
    // What others read of this block is read by now, or will be before it ends.
    meet();
#endif
    if (row >= words.word[0]) return;
#pragma unroll
    for (u32 u = 0; u < HELD; u++) {
#if QUAD
        if (!EXACT && from[u] >= count) continue;
        const Coordinates at = along(words, c, from[u]);
        f32 x[4];
#pragma unroll
        for (u32 l = 0; l < 4; l++) x[l] = proportion(fold, v[u].x[l], m);
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
        write(place(words, at), {x[0], x[1], x[2], x[3]});
#else
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            const u32 i = from[u] + l * STEP;
            if (IS_HELD(u, l) && (EXACT || i < count)) put(along(words, c, i), proportion(fold, v[u].x[l], m));
        }
#endif
    }
#endif
}
