// The function of a number in src/ops/matmul/activation.rs.
static __device__ float activate(unsigned activation, float x) {
    switch (activation) {
        // A NaN is no less than zero, and stays.
        case 1: return x < 0.0f ? 0.0f : x;
        case 2: return x / (1.0f + expf(-x * (1.59576912f + 0.0713548163f * x * x)));
        case 3: return 1.0f / (1.0f + expf(-x));
        case 4: return tanhf(x);
        case 5: return x / (1.0f + expf(-x));
        default: return x;
    }
}
