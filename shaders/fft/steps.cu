// As fft.wgsl, pass for pass, with its constants; compiled at run time behind roots.cuh.

// exp(-pi i * a * a / n) of the transform's own length n. It is made once, and read behind its spectrum.
static __device__ __forceinline__ float2 made_chirp(const Words &words, u32 a) {
    const u32 twice = 2 * words.word[8];
    return root(u32((unsigned long long)a * a % twice), twice);
}
static __device__ __forceinline__ u32 chirp_place(const Words &words, u32 a) { return words.word[12] + words.word[4] + a; }

// Element i of transform t: of what is outer x LENGTH x columns.
static __device__ __forceinline__ float2 fetched(const Words &words, const void *source, float2 *scratch, u32 t, u32 i) {
    const u32 o = t / COLUMNS_OF_LINE, c = t % COLUMNS_OF_LINE;
    // Its place along the whole dimension.
    const u32 at = i * (COLUMNS_OF_LINE / INNER) + c / INNER;
    float2 v = make_float2(0.0f, 0.0f);
//# if SOURCE_SCRATCH
    v = scratch[words.word[10] + (o * LENGTH + i) * COLUMNS_OF_LINE + c];
//# end
//# if SOURCE_CHIRP
    const u32 far = min(at, words.word[4] - at);
    if (far < words.word[8]) {
        const float2 chirp = made_chirp(words, far);
        if (far == at) scratch[chirp_place(words, at)] = chirp;
        v = __uint_as_float(words.word[7]) * conjugate(chirp);
    }
//# end
//# if SOURCE_REAL
    if (!CUT_IN || at < words.word[5]) v.x = static_cast<const float *>(source)[(size_t(o) * words.word[5] + at) * INNER + c % INNER];
//# end
//# if SOURCE_COMPLEX
//# if SOURCE_HALF
    const bool is_mirrored = at > words.word[8] / 2;
    const u32 mirrored = is_mirrored ? words.word[8] - at : at;
    if (at < words.word[8] && mirrored < words.word[5]) {
        v = static_cast<const float2 *>(source)[(size_t(o) * words.word[5] + mirrored) * INNER + c % INNER];
        if (is_mirrored) v = conjugate(v);
        // What is its own mirror image is real, whatever stands there.
        if (mirrored == 0 || 2 * mirrored == words.word[8]) v.y = 0.0f;
    }
//# else
    if (!CUT_IN || at < words.word[5]) v = static_cast<const float2 *>(source)[(size_t(o) * words.word[5] + at) * INNER + c % INNER];
//# end
//# end
//# if CONJUGATE_IN
    v = conjugate(v);
//# end
//# if CHIRP_IN
    v = at < words.word[8] ? times(v, scratch[chirp_place(words, at)]) : make_float2(0.0f, 0.0f);
//# end
//# if FILTERED
    v = conjugate(times(v, scratch[words.word[12] + at]));
//# end
    return v;
}

static __device__ __forceinline__ void put(const Words &words, float2 *scratch, void *out, u32 t, u32 i, float2 v) {
    const u32 o = t / COLUMNS_OF_LINE, j = t % COLUMNS_OF_LINE / INNER;
    const u32 at = j / BEFORE * BEFORE * LENGTH + j % BEFORE + i * BEFORE;
//# if TARGET_SCRATCH
    scratch[words.word[11] + (o * words.word[4] + at) * INNER + t % INNER] = v;
//# else
//# if CHIRP_OUT
    if (at >= words.word[8]) return;
    v = times(conjugate(v), scratch[chirp_place(words, at)]);
//# end
//# if CONJUGATE_OUT
    v = conjugate(v);
//# end
    if (CUT_OUT && at >= words.word[6]) return;
    if (SCALED) v = __uint_as_float(words.word[7]) * v;
    const size_t to = (size_t(o) * words.word[6] + at) * INNER + t % INNER;
//# if TARGET_REAL
    static_cast<float *>(out)[to] = v.x;
//# else
    static_cast<float2 *>(out)[to] = v;
//# end
//# end
}

// Where element i of a block's transform b is kept: sixteens are shuffled, so that those sixteen apart are in different banks.
static __device__ __forceinline__ u32 place(u32 b, u32 i) {
    const u32 at = COLUMNS ? i * BATCH + b : b * LENGTH + i;
    return at ^ (at >> 4 & 15);
}

//# for p in PASSES
// Pass $p.
static __device__ __forceinline__ void pass_$p(const Words &words, const void *source, float2 *scratch, void *out, float2 *memory, u32 first) {
    constexpr u32 radix = RADIX_$p, span = SPAN_$p, whole = radix * span, apart = LENGTH / radix, count = BATCH * apart;
    float2 v[GROUPS_$p][radix];
#pragma unroll
    for (u32 n = 0; n < GROUPS_$p; n++) {
        const u32 e = threadIdx.x + n * THREADS;
        if (count % THREADS != 0 && e >= count) continue;
        const u32 b = COLUMNS ? e % BATCH : e / apart, j = COLUMNS ? e / BATCH : e % apart;
//# if READS_$p
#pragma unroll
        for (u32 q = 0; q < radix; q++) {
            v[n][q] = memory[place(b, j + q * apart)];
//# if FILTERS_$p
            v[n][q] = conjugate(times(v[n][q], scratch[words.word[12] + j + q * apart]));
//# end
        }
        if (span > 1) turn(v[n], root(j % span, whole));
        dft(v[n]);
//# else
        const u32 t = RAGGED ? min(first + b, words.word[0] - 1) : first + b;
#pragma unroll
        for (u32 q = 0; q < radix; q++) v[n][q] = fetched(words, source, scratch, t, j + q * apart);
        // What the steps before it leave to do, of which a part is the same for all elements.
        const u32 column = t % COLUMNS_OF_LINE / INNER % BEFORE;
        if (BEFORE > 1) turn(v[n], root(column * apart, BEFORE * LENGTH));
        dft(v[n]);
        if (BEFORE > 1) {
            const float2 w = root(column * j, BEFORE * LENGTH);
#pragma unroll
            for (u32 q = 0; q < radix; q++) v[n][q] = times(v[n][q], w);
        }
//# end
    }
//# if KEPT_$p
//# if READS_$p
    __syncthreads();
//# end
//# end
#pragma unroll
    for (u32 n = 0; n < GROUPS_$p; n++) {
        const u32 e = threadIdx.x + n * THREADS;
        if (count % THREADS != 0 && e >= count) continue;
        const u32 b = COLUMNS ? e % BATCH : e / apart, j = COLUMNS ? e / BATCH : e % apart, to = j / span * whole + j % span;
//# if KEPT_$p
#pragma unroll
        for (u32 q = 0; q < radix; q++) memory[place(b, to + q * span)] = v[n][q];
//# else
        if (RAGGED && first + b >= words.word[0]) continue;
#pragma unroll
        for (u32 q = 0; q < radix; q++) put(words, scratch, out, first + b, to + q * span, v[n][q]);
//# end
    }
//# if KEPT_$p
    __syncthreads();
//# end
}
//# end

// What is read, what is between steps, with the chirp and its spectrum, and what is written.
extern "C" __global__ void __launch_bounds__(THREADS) fft(const void *source, float2 *scratch, void *out, const Words words) {
    __shared__ float2 memory[(BATCH * LENGTH + 15) / 16 * 16];
    const u32 first = (blockIdx.y * gridDim.x + blockIdx.x) * BATCH;
//# if STAGED_IN
    float2 x[STAGES];
#pragma unroll
    for (u32 s = 0; s < STAGES; s++) {
        const u32 i = min(threadIdx.x + s * THREADS, u32(BATCH * LENGTH - 1));
        x[s] = fetched(words, source, scratch, min(first + i / LENGTH, words.word[0] - 1), i % LENGTH);
    }
#pragma unroll
    for (u32 s = 0; s < STAGES; s++) {
        const u32 i = min(threadIdx.x + s * THREADS, u32(BATCH * LENGTH - 1));
        memory[place(i / LENGTH, i % LENGTH)] = x[s];
    }
    __syncthreads();
//# end
//# for p in PASSES
    pass_$p(words, source, scratch, out, memory, first);
//# end
//# if STAGED_OUT
#pragma unroll
    for (u32 s = 0; s < STAGES; s++) {
        const u32 i = threadIdx.x + s * THREADS;
        if (i < BATCH * LENGTH && first + i / LENGTH < words.word[0]) put(words, scratch, out, first + i / LENGTH, i % LENGTH, memory[place(i / LENGTH, i % LENGTH)]);
    }
//# end
}
