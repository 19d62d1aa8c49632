// Reductions of rows that lie one behind the other, for machines without the compiler that reduce.cu needs; and the joining of parts, as
// merge.cu does it. A row has as many lanes as it is told, the rest as reduce.cu; what fold.cuh takes for constants is told too.
//
// scripts/ptx compiles each of these folds into plain.ptx:
//# variant sum_f32 SUM=1 OF_F32=1
//# variant sum_u32 SUM=1
//# variant prod_f32 PROD=1 OF_F32=1
//# variant prod_u32 PROD=1
//# variant extreme_f32 EXTREME=1 KEYS=1 OF_F32=1
//# variant extreme_i32 EXTREME=1 KEYS=1 OF_I32=1
//# variant extreme_u32 EXTREME=1 KEYS=1
//# variant arg_f32 ARG=1 KEYS=1 OF_F32=1
//# variant arg_i32 ARG=1 KEYS=1 OF_I32=1
//# variant arg_u32 ARG=1 KEYS=1
//# variant moments_f32 MOMENTS=1 OF_F32=1
//# variant norm_f32 NORM=1 OF_F32=1
//# variant exponential_f32 EXPONENTIAL=1 OF_F32=1

#include "../map/prelude.cuh"

#define THREADS 256
// Where in the words it is told (src/plan/reduce/plain.rs): lanes of a row, whether it writes states, whether it reads them, and which
// one of the folds it is.
#define LANES words.word[9]
#define WRITES_STATES words.word[10]
#define READS_STATES words.word[11]
#define DIVISOR 8
#define SMALLEST word(12)
#define DIVIDES word(12)
#define ROOT word(12)

struct Source {
    const Words &words;

    __device__ __forceinline__ u32 word(u32 i) const { return words.word[i]; }
};

#include "fold.cuh"

extern "C" __global__ void __launch_bounds__(THREADS) reduce(
    const void *in_0, const void *, const void *, const void *, const void *, const void *, const void *, void *__restrict__ out,
    const Words words
) {
    __shared__ Fold::State states[THREADS];
    Fold fold = {{words}};
    const Fold::Value *values = static_cast<const Fold::Value *>(in_0);
    const Fold::State *parts = static_cast<const Fold::State *>(in_0);
    const u32 local = threadIdx.x, lanes = LANES, lane = local % lanes;
    const u32 row = (blockIdx.y * gridDim.x + blockIdx.x) * (THREADS / lanes) + local / lanes;
    // A row that is not there is read as the last one, and not written.
    const size_t first = size_t(min(row, words.word[0] - 1)) * words.word[2];
    u32 i = blockIdx.z * words.word[4];
    const u32 end = min(i + words.word[4], words.word[2]);
#if MOMENTS
    if (!READS_STATES && i < end) fold.pivot = values[first + min(i + lane, end - 1)];
#endif
    Fold::State state = fold.empty();
    if (READS_STATES) {
        for (i += lane; i < end; i += lanes) state = fold.join(state, parts[first + i]);
    } else {
        for (; i + lanes * 16 <= end; i += lanes * 16) {
            Four<Fold::Value> v[4];
            u32 from[4];
#pragma unroll
            for (u32 u = 0; u < 4; u++) {
                from[u] = i + u * lanes * 4 + lane;
#pragma unroll
                for (u32 x = 0; x < 4; x++) v[u].x[x] = values[first + from[u] + x * lanes];
            }
            state = fold.more(state, v, from, lanes);
        }
        for (i += lane; i < end; i += lanes) state = fold.join(state, fold.lift(values[first + i], i));
    }
    states[local] = state;
    for (u32 step = lanes / 2; step > 0; step /= 2) {
        __syncthreads();
        if (lane < step) states[local] = fold.join(states[local], states[local + step]);
    }
    if (lane > 0 || row >= words.word[0]) return;
    if (WRITES_STATES) {
        static_cast<Fold::State *>(out)[row * gridDim.z + blockIdx.z] = states[local];
    } else {
        static_cast<Fold::Output *>(out)[row] = fold.finish(states[local]);
    }
}
