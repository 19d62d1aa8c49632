// What the lanes of a row make of what each of them has, in the same order at every run, for its first lane or for all. All threads of a block ask
// for it, and for each type of `join`, of which every lambda is another, the block has memory of its own: two of one type would write what others
// still read.

// Blocks of a row.
#ifndef CLUSTER
#define CLUSTER 1
#endif

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

#if CLUSTER > 1
// The blocks of a row, which see one another's memory, wait for one another.
static __device__ __forceinline__ void meet() { asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory"); }

// What the blocks of a row make of what each of them has, in the same order in all. None may end before all have.
template <typename T, typename F>
static __device__ __forceinline__ T of_cluster(const T &mine, F join) {
    __shared__ T of_block;
    if (threadIdx.x == 0) of_block = mine;
    meet();
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(u32(__cvta_generic_to_shared(&of_block))), "r"(threadIdx.x % CLUSTER));
    T other;
#pragma unroll
    for (u32 w = 0; w < sizeof(T) / 4; w++) {
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(reinterpret_cast<u32 *>(&other)[w]) : "r"(there + w * 4));
    }
    return first_of(other, join, CLUSTER, true);
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
#if CLUSTER > 1
    mine = of_cluster(mine, join);
#endif
    return mine;
#endif
}
