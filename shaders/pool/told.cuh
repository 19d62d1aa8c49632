// What pool.cu and block.cu have in common, behind map/prelude.cuh: windows, and what a kernel is told.

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
