// As pool.wgsl. What there are constants is told at run time, in the word behind those that both have (src/plan/pool.rs).

typedef unsigned u32;

struct Words {
    u32 word[64];
};

// src/plan/pool.rs has the same.
enum Flag { MAX = 1, PLACE = 2, PADDED = 4, IS_F16 = 8, SLIDES = 16 };

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

// What the kernel is told.
struct Told {
    u32 elements, first, infinity;
    Window z, y, x;
    u32 flags;
};

// The coordinates of an element of the result, and its plane.
struct Place {
    u32 x, y, z, plane;

    __device__ __forceinline__ Place(const Told &told, u32 index) {
        const u32 line = index / told.x.steps, layer = line / told.y.steps;
        plane = layer / told.z.steps;
        x = index - line * told.x.steps, y = line - layer * told.y.steps, z = layer - plane * told.z.steps;
    }
    __device__ __forceinline__ void advance(const Told &told) {
        if (++x < told.x.steps) return;
        x = 0;
        if (++y < told.y.steps) return;
        y = 0;
        if (++z < told.z.steps) return;
        z = 0;
        plane++;
    }
};

static __device__ __forceinline__ float element(const Told &told, const void *values, size_t at) {
    if (told.flags & IS_F16) return widened(__ldg(static_cast<const unsigned short *>(values) + at));
    return __ldg(static_cast<const float *>(values) + at);
}

// How many elements count that a window has along a dimension.
static __device__ __forceinline__ float counted(const Told &told, const Window &w, u32 step) {
    const int start = w.start(step);
    return told.flags & PADDED ? w.first_tap(start, w.input + w.after) : w.first_tap(start, w.input) - w.first_tap(start, 0);
}

// The larger one, or the first that is not a number; or both together.
static __device__ __forceinline__ float joined(bool is_max, float a, float b) {
    if (!is_max) return a + b;
    return !is_nan(a) && (is_nan(b) || b > a) ? b : a;
}

// Four neighbours of a row of the result, whose windows are TAPS wide and STRIDE apart: what they share is read once.
template <u32 TAPS, u32 STRIDE>
static __device__ __forceinline__ void slide(const Told &told, const void *values, void *out, u32 i) {
    const Window &y = told.y, &x = told.x;
    const u32 across = (x.steps + 3) / 4, line = i / across, plane = line / y.steps, step_x = i % across * 4, step_y = line % y.steps;
    // What is before the input wraps round, and so counts as far behind it.
    const u32 left = step_x * STRIDE - x.before, top = step_y * y.stride - y.before;
    const bool is_max = told.flags & MAX;
    const float none = is_max ? __uint_as_float(told.infinity) : 0.0f;
    float v[4] = {none, none, none, none};
    for (u32 ty = 0; ty < y.taps; ty++) {
        const u32 row = top + ty * y.dilation;
        if (row >= y.input) continue;
        const size_t first = (size_t(plane) * y.input + row) * x.input;
        float seen[3 * STRIDE + TAPS];
#pragma unroll
        for (u32 s = 0; s < 3 * STRIDE + TAPS; s++) seen[s] = left + s < x.input ? element(told, values, first + (left + s)) : none;
#pragma unroll
        for (u32 q = 0; q < 4; q++) {
            float of_row = seen[q * STRIDE];
#pragma unroll
            for (u32 tx = 1; tx < TAPS; tx++) of_row = joined(is_max, of_row, seen[q * STRIDE + tx]);
            v[q] = joined(is_max, v[q], of_row);
        }
    }
    if (!is_max) {
        const float of_column = counted(told, y, step_y);
#pragma unroll
        for (u32 q = 0; q < 4; q++) v[q] /= of_column * counted(told, x, step_x + q);
    }
    const size_t to = (size_t(plane) * y.steps + step_y) * x.steps + step_x;
    // Those of f16 are whole fours.
    if (x.steps % 4 == 0) {
        if (told.flags & IS_F16) {
            static_cast<uint2 *>(out)[to / 4] = make_uint2(rounded(v[0]) | rounded(v[1]) << 16, rounded(v[2]) | rounded(v[3]) << 16);
        } else {
            static_cast<float4 *>(out)[to / 4] = make_float4(v[0], v[1], v[2], v[3]);
        }
        return;
    }
#pragma unroll
    for (u32 q = 0; q < 4; q++) {
        if (step_x + q < x.steps) static_cast<float *>(out)[to + q] = v[q];
    }
}

// The word of an element of the result.
static __device__ u32 value(const Told &told, const void *values, const Place &at) {
    const Window &z = told.z, &y = told.y, &x = told.x;
    const u32 plane = at.plane;
    const int start_z = z.start(at.z), start_y = y.start(at.y), start_x = x.start(at.x);
    const u32 first_z = z.first_tap(start_z, 0), first_y = y.first_tap(start_y, 0), first_x = x.first_tap(start_x, 0);
    const u32 end_z = z.first_tap(start_z, z.input), end_y = y.first_tap(start_y, y.input), end_x = x.first_tap(start_x, x.input);
    const bool is_max = told.flags & MAX;
    float found = is_max ? __uint_as_float(told.infinity) : 0.0f;
    // The first of the plane, if there is none.
    u32 place = plane * z.input * y.input * x.input;
    bool is_first = true;
    for (u32 h = first_z; h < end_z; h++) {
        const u32 layer = plane * z.input + u32(start_z + int(h * z.dilation));
        for (u32 i = first_y; i < end_y; i++) {
            const u32 row = (layer * y.input + u32(start_y + int(i * y.dilation))) * x.input;
            float of_line = 0.0f;
            for (u32 j = first_x; j < end_x; j++) {
                const u32 from = row + u32(start_x + int(j * x.dilation));
                const float v = element(told, values, from);
                if (!is_max) {
                    of_line += v;
                } else if (is_first || (!is_nan(found) && (is_nan(v) || v > found))) {
                    found = v;
                    place = from;
                    is_first = false;
                }
            }
            if (!is_max) found += of_line;
        }
    }
    if (told.flags & PLACE) return place + told.first;
    if (is_max) return __float_as_uint(found);
    const bool padded = told.flags & PADDED;
    const u32 count_z = padded ? z.first_tap(start_z, z.input + z.after) : end_z - first_z;
    const u32 count_y = padded ? y.first_tap(start_y, y.input + y.after) : end_y - first_y;
    const u32 count_x = padded ? x.first_tap(start_x, x.input + x.after) : end_x - first_x;
    return __float_as_uint(found / (float(count_z) * float(count_y) * float(count_x)));
}

extern "C" __global__ void __launch_bounds__(64) pool(
    const void *values, const void *, const void *, const void *, const void *, const void *, const void *, void *out, const Told told
) {
    const u32 i = (blockIdx.y * gridDim.x + blockIdx.x) * 64 + threadIdx.x;
    if (told.flags & SLIDES) {
        if (i >= told.elements / told.x.steps * ((told.x.steps + 3) / 4)) return;
        // Which these are is known to src/plan/pool.rs as well.
        switch (told.x.taps * 2 + told.x.stride) {
            case 2 * 2 + 1: return slide<2, 1>(told, values, out, i);
            case 2 * 2 + 2: return slide<2, 2>(told, values, out, i);
            case 3 * 2 + 1: return slide<3, 1>(told, values, out, i);
            case 3 * 2 + 2: return slide<3, 2>(told, values, out, i);
            case 5 * 2 + 1: return slide<5, 1>(told, values, out, i);
            case 5 * 2 + 2: return slide<5, 2>(told, values, out, i);
        }
    }
    const u32 first = i * 4;
    if (first >= told.elements) return;
    u32 v[4];
    Place at(told, first);
#pragma unroll 1
    for (u32 lane = 0; lane < 4; lane++) {
        // Of what is not there the last is computed again.
        if (lane > 0 && first + lane < told.elements) at.advance(told);
        const u32 x = value(told, values, at);
        v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = x;
    }
    if ((told.flags & (IS_F16 | PLACE)) == IS_F16) {
        const u32 low = rounded(__uint_as_float(v[0])) | rounded(__uint_as_float(v[1])) << 16;
        static_cast<uint2 *>(out)[first / 4] = make_uint2(low, rounded(__uint_as_float(v[2])) | rounded(__uint_as_float(v[3])) << 16);
    } else {
        static_cast<uint4 *>(out)[first / 4] = make_uint4(v[0], v[1], v[2], v[3]);
    }
}
