// y ← a·x + y
struct Params { unsigned n; float a; };

extern "C" __global__ void saxpy(const float* x, float* y, Params params) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < params.n) {
        y[i] = params.a * x[i] + y[i];
    }
}
