// The sum of 1000 numbers, by blocks whose own sums meet in one atomic.
extern __shared__ unsigned sums[];

extern "C" __global__ void add_up(const unsigned* values, unsigned* total) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[threadIdx.x] = i < 1000 ? values[i] : 0;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            sums[threadIdx.x] += sums[threadIdx.x + half];
        }
    }
    if (threadIdx.x == 0) {
        atomicAdd(total, sums[0]);
    }
}
