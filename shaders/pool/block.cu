// Four neighbours each of several rows of the result, as pool.wgsl with LINES and with its constants; compiled at run time behind told.cuh.

static __device__ __forceinline__ float element(const void *values, size_t at) {
#if OPERANDS_F16
    return widened(__ldg(static_cast<const unsigned short *>(values) + at));
#else
    return __ldg(static_cast<const float *>(values) + at);
#endif
}

static __device__ __forceinline__ float joined(float a, float b) {
#if MAX
    // The larger one, or the first that is not a number.
    return !is_nan(a) && (is_nan(b) || b > a) ? b : a;
#else
    return a + b;
#endif
}

// How many elements count that a window has along a dimension.
static __device__ __forceinline__ float counted(const Window &w, u32 step) {
    const int start = w.start(step);
    return PADDED ? w.first_tap(start, w.input + w.after) : w.first_tap(start, w.input) - w.first_tap(start, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS) pool(
    const void *values, const void *, const void *, const void *, const void *, const void *, const void *, void *__restrict__ out, const Told told
) {
    const Window &y = told.y, &x = told.x;
    const u32 i = (blockIdx.y * gridDim.x + blockIdx.x) * THREADS + threadIdx.x;
    const u32 across = (x.steps + 3) / 4, down = (y.steps + LINES - 1) / LINES, plane = i / (across * down);
    if (plane >= told.elements / (x.steps * y.steps)) return;
    const u32 column = i % across * 4, line = i / across % down * LINES;
    // What is before the input wraps round, and so counts as far behind it.
    const u32 left = column * STRIDE_X - x.before, top = line * y.stride - y.before;
    const float none = MAX ? __uint_as_float(told.infinity) : 0.0f;
    float value[LINES][4];
#pragma unroll
    for (u32 l = 0; l < LINES; l++) {
#pragma unroll
        for (u32 q = 0; q < 4; q++) value[l][q] = none;
    }
    // All of a small window is under way at once.
#pragma unroll (SEEN_Y <= 8 ? SEEN_Y : 1)
    for (u32 s = 0; s < SEEN_Y; s++) {
        if (top + s >= y.input) continue;
        const size_t row = (size_t(plane) * y.input + (top + s)) * x.input;
        float seen[SEEN_X];
#pragma unroll
        for (u32 v = 0; v < SEEN_X; v++) seen[v] = left + v < x.input ? element(values, row + (left + v)) : none;
        float of_row[4];
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            of_row[q] = seen[q * STRIDE_X];
#pragma unroll
            for (u32 j = 1; j <= MORE_X; j++) of_row[q] = joined(of_row[q], seen[q * STRIDE_X + j * DILATION_X]);
        }
#pragma unroll
        for (u32 l = 0; l < LINES; l++) {
            const u32 tap = (s - l * y.stride) / DILATION_Y;
            if (tap >= y.taps || s != l * y.stride + tap * DILATION_Y) continue;
#pragma unroll
            for (u32 q = 0; q < 4; q++) value[l][q] = joined(value[l][q], of_row[q]);
        }
    }
    float of_columns[4];
#pragma unroll
    for (u32 q = 0; q < 4; q++) of_columns[q] = MAX ? 1.0f : counted(x, column + q);
#pragma unroll
    for (u32 l = 0; l < LINES; l++) {
        if (line + l >= y.steps) return;
        float(&v)[4] = value[l];
        if (!MAX) {
            const float of_line = counted(y, line + l);
#pragma unroll
            for (u32 q = 0; q < 4; q++) v[q] /= of_line * of_columns[q];
        }
        const size_t at = (size_t(plane) * y.steps + line + l) * x.steps + column;
#if OPERANDS_F16
        static_cast<uint2 *>(out)[at / 4] = make_uint2(rounded(v[0]) | rounded(v[1]) << 16, rounded(v[2]) | rounded(v[3]) << 16);
#elif OUT_VEC4
        static_cast<float4 *>(out)[at / 4] = make_float4(v[0], v[1], v[2], v[3]);
#else
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            if (column + q < x.steps) static_cast<float *>(out)[at + q] = v[q];
        }
#endif
    }
}
