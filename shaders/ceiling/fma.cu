// As fma.wgsl, with as many chains of scalars.

#define CHAINS 32
#define UNROLL 4

struct Params {
    unsigned count, steps;
    float x, y;
};

extern "C" __global__ void __launch_bounds__(256) ceiling(const float4 *, float4 *__restrict__ out, const Params params) {
    const unsigned invocation = blockIdx.x * blockDim.x + threadIdx.x;
    float sum[CHAINS];
#pragma unroll
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = float(invocation) + i;
    }
#pragma unroll 1
    for (unsigned step = 0; step < params.steps; step++) {
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
#pragma unroll
            for (int i = 0; i < CHAINS; i++) {
                sum[i] = fmaf(sum[i], params.x, params.y);
            }
        }
    }
    float4 all = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < CHAINS; i += 4) {
        all.x += sum[i], all.y += sum[i + 1], all.z += sum[i + 2], all.w += sum[i + 3];
    }
    out[invocation] = all;
}
