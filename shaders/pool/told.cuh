// What pool.cu and block.cu have in common: values, windows and what a kernel is told.

typedef unsigned u32;

static __device__ __forceinline__ float widened(u32 bits) {
    float a;
    asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"((unsigned short)bits));
    return a;
}

static __device__ __forceinline__ u32 rounded(float a) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(a));
    return bits;
}

static __device__ __forceinline__ bool is_nan(float a) { return (__float_as_uint(a) & 0x7fffffffu) > 0x7f800000u; }

// A window along one dimension, as ops/window.rs has it.
struct Window {
    u32 input, taps, stride, dilation, before, after, steps;

    __device__ __forceinline__ int start(u32 i) const { return int(i * stride) - int(before); }
    // The first tap at or behind a place.
    __device__ __forceinline__ u32 first_tap(int start, u32 place) const {
        const u32 far = max(int(place) - start, 0);
        // As pool.wgsl.
        return min(dilation == 1 ? far : (far + dilation - 1) / dilation, taps);
    }
};

// As src/plan/pool.rs says it.
struct Told {
    u32 elements, first, infinity;
    Window z, y, x;
};
