// As merge.wgsl; compiled at run time, behind what is generated.

extern "C" __global__ void __launch_bounds__(THREADS) reduce(
    const void *in_0, const void *, const void *, const void *, const void *, const void *, const void *, void *__restrict__ out,
    const Words words
) {
    __shared__ Fold::State states[THREADS];
    const Fold fold = {{in_0, nullptr, nullptr, nullptr, nullptr, nullptr, words}};
    const Fold::State *parts = static_cast<const Fold::State *>(in_0);
    const u32 local = threadIdx.x, lane = local % LANES;
    const u32 row = (blockIdx.y * gridDim.x + blockIdx.x) * ROWS + local / LANES;
    const u32 count = words.word[3];
    Fold::State state = fold.empty();
    if (row < words.word[0]) {
        for (u32 i = lane; i < count; i += LANES) state = fold.join(state, parts[row * count + i]);
    }
    states[local] = state;
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        __syncthreads();
        if (lane < step) states[local] = fold.join(states[local], states[local + step]);
    }
    if (lane == 0 && row < words.word[0]) {
#if MEASURED
        static_cast<Measure *>(out)[row] = measure(fold, states[local]);
#else
        static_cast<Fold::Output *>(out)[row + words.word[6]] = fold.finish(states[local]);
#endif
    }
}
