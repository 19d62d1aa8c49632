// What the lanes of a row make of what each of them has, in the same order at every run, for its first lane or for all. All threads of a block ask
// for it, and for each type of `join`, of which every lambda is another, the block has memory of its own: two of one type would write what others
// still read.

#if !COLUMNS
// Lanes of a row that are neighbours in a warp.
#define NEAR (LANES < 32 ? LANES : 32)

// The value of the lane so many behind this one, or of that lane of a row's.
template <typename T, typename F>
static __device__ __forceinline__ T moved(const T &mine, F shuffle) {
    static_assert(sizeof(T) % 4 == 0, "words");
    T other;
#pragma unroll
    for (u32 w = 0; w < sizeof(T) / 4; w++) reinterpret_cast<u32 *>(&other)[w] = shuffle(reinterpret_cast<const u32 *>(&mine)[w]);
    return other;
}

template <typename T, typename F>
static __device__ __forceinline__ T first_of(T mine, F join, u32 lanes, bool for_all) {
#pragma unroll
    for (u32 step = lanes / 2; step > 0; step /= 2) {
        mine = join(mine, moved(mine, [&](u32 word) { return __shfl_down_sync(0xffffffffu, word, step, lanes); }));
    }
    if (!for_all) return mine;
    return moved(mine, [&](u32 word) { return __shfl_sync(0xffffffffu, word, 0, lanes); });
}
#endif

template <typename T, typename F>
static __device__ __forceinline__ T of_row(T mine, F join, u32 slot, u32 lane, bool for_all) {
#if COLUMNS
    __shared__ T all[THREADS];
    all[lane * ROWS + slot] = mine;
    for (u32 step = LANES / 2; step > 0; step /= 2) {
        __syncthreads();
        if (lane < step) all[lane * ROWS + slot] = join(all[lane * ROWS + slot], all[(lane + step) * ROWS + slot]);
    }
    __syncthreads();
    return all[slot];
#else
    mine = first_of(mine, join, NEAR, for_all && LANES == NEAR);
#if LANES > 32
    __shared__ T all[THREADS / 32];
    if (lane % 32 == 0) all[slot * (LANES / 32) + lane / 32] = mine;
    __syncthreads();
    mine = first_of(all[slot * (LANES / 32) + lane % (LANES / 32)], join, LANES / 32, for_all);
#endif
    return mine;
#endif
}
