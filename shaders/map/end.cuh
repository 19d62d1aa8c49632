// As end.wgsl.

struct EndCoordinates {
    u32 c[$rank];
};

__device__ __forceinline__ f32 end_scalar_f32(u32 i) const { return __uint_as_float(word($scalars + i)); }
__device__ __forceinline__ i32 end_scalar_i32(u32 i) const { return i32(int(word($scalars + i))); }
__device__ __forceinline__ u32 end_scalar_u32(u32 i) const { return word($scalars + i); }
__device__ __forceinline__ bool end_scalar_bool(u32 i) const { return word($scalars + i) != 0; }

__device__ __forceinline__ u32 end_index(u32 o) const { return min(word($at) + o, word($at + 1) - 1); }

__device__ __forceinline__ EndCoordinates end_coordinates(u32 index) const {
    EndCoordinates at = {};
//# for d in INNER
    at.c[$rank - 1 - $d] = index % word($at + 1 + $rank - $d);
    index /= word($at + 1 + $rank - $d);
//# end
    at.c[0] = index;
    return at;
}
