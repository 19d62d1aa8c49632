// Rows of no more elements than a block has threads, in the order in which they lie: a thread has one place in a row, and that row and others
// so far apart. Threads that are left over have rows behind all others.
struct Turns {
    u32 i, first, apart;

    __device__ __forceinline__ explicit Turns(u32 count) : i(threadIdx.x % count), first(threadIdx.x / count), apart(THREADS / count) {
        if (first >= apart) first = 1 << 20;
    }
};
