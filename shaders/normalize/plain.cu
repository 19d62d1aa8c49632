// Softmax and norms of rows that lie one behind the other, for machines without the compiler that normalize.cu needs: a block reads a row
// twice, the second time from a cache, and may write it where it was. Words as src/plan/normalize/plain.rs has them.
//
// scripts/ptx compiles each of these into plain.ptx:
//# variant softmax EXPONENTIAL=1 OF_F32=1 LOGARITHMS=0
//# variant log_softmax EXPONENTIAL=1 OF_F32=1 LOGARITHMS=1
//# variant layer_norm MOMENTS=1 OF_F32=1 LAYER=1 ROOT=0
//# variant rms_norm NORM=1 OF_F32=1 GENERAL=1 RMS=1 DIVIDES=1

#include "../map/prelude.cuh"

#define THREADS 256
#define DIVISOR 3
#define EPSILON 4

struct Source {
    const Words &words;

    __device__ __forceinline__ u32 word(u32 i) const { return words.word[i]; }
};

#include "../reduce/fold.cuh"
#include "measure.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) normalize(
    const f32 *in, const void *, const void *, const void *, const void *, const void *, const void *, f32 *out,
    const Words words
) {
    __shared__ Fold::State states[THREADS];
    Fold fold = {{words}};
    const u32 local = threadIdx.x, count = words.word[2];
    for (u32 row = blockIdx.x; row < words.word[0]; row += gridDim.x) {
        const f32 *values = in + size_t(row) * count;
#if MOMENTS
        fold.pivot = values[min(local, count - 1)];
#endif
        Fold::State state = fold.empty();
        for (u32 i = local; i < count; i += THREADS) state = fold.join(state, fold.lift(values[i], i));
        states[local] = state;
        for (u32 step = THREADS / 2; step > 0; step /= 2) {
            __syncthreads();
            if (local < step) states[local] = fold.join(states[local], states[local + step]);
        }
        __syncthreads();
        const Measure m = measure(fold, states[0]);
        for (u32 i = local; i < count; i += THREADS) out[size_t(row) * count + i] = made(fold, values[i], m);
        __syncthreads();
    }
}
