// As pool.wgsl without LINES, of which block.cu is the twin. What there are constants is told at run time, in the word behind those that both have
// (src/plan/pool.rs).

#include "../map/prelude.cuh"
#include "told.cuh"

// src/plan/pool.rs has the same.
enum Flag { MAX = 1, PLACE = 2, PADDED = 4, IS_F16 = 8 };

// What the kernel is told.
struct Flagged : Told {
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

static __device__ __forceinline__ float element(const Flagged &told, const void *values, size_t at) {
    if (told.flags & IS_F16) return widened(__ldg(static_cast<const unsigned short *>(values) + at));
    return __ldg(static_cast<const float *>(values) + at);
}

// The word of an element of the result.
static __device__ u32 value(const Flagged &told, const void *values, const Place &at) {
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
    const void *values, const void *, const void *, const void *, const void *, const void *, const void *, void *out, const Flagged told
) {
    const u32 first = ((blockIdx.y * gridDim.x + blockIdx.x) * 64 + threadIdx.x) * 4;
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
