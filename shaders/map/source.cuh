// What a generated kernel is told and what it is bound to. The readings of its inputs (input.cuh), its program, and `value` and `four`, which
// read and compute, are added as further members: what in WGSL is of a whole module, C++ has in a type.

struct Source {
    const void *bound_0, *bound_1, *bound_2, *bound_4, *bound_5, *bound_6;
    const Words &words;

    __device__ __forceinline__ u32 word(u32 i) const { return words.word[i]; }
    __device__ __forceinline__ f32 scalar_f32(u32 i) const { return __uint_as_float(word(SCALARS + i)); }
    __device__ __forceinline__ i32 scalar_i32(u32 i) const { return i32(int(word(SCALARS + i))); }
    __device__ __forceinline__ u32 scalar_u32(u32 i) const { return word(SCALARS + i); }
    __device__ __forceinline__ bool scalar_bool(u32 i) const { return word(SCALARS + i) != 0; }
