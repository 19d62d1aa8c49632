// As input.wgsl.

__device__ __forceinline__ Kind$i one_$i(u32 at) const {
//# if F16
    return widened(__ldg(static_cast<const unsigned short *>(bound_$binding) + at));
//# else
    return of_word<Kind$i>(__ldg(static_cast<const u32 *>(bound_$binding) + at));
//# end
}

__device__ __forceinline__ Four<Kind$i> four_$i(u32 at) const {
//# if VEC4
//# if F16
    const uint2 words = __ldg(static_cast<const uint2 *>(bound_$binding) + at / 4);
    return {widened(words.x), widened(words.x >> 16), widened(words.y), widened(words.y >> 16)};
//# else
    const uint4 words = __ldg(static_cast<const uint4 *>(bound_$binding) + at / 4);
    return {of_word<Kind$i>(words.x), of_word<Kind$i>(words.y), of_word<Kind$i>(words.z), of_word<Kind$i>(words.w)};
//# end
//# else
//# if SPLAT
    const Kind$i x = one_$i(at);
    return {x, x, x, x};
//# else
    const u32 step = word($last);
    return {one_$i(at), one_$i(at + step), one_$i(at + 2 * step), one_$i(at + 3 * step)};
//# end
//# end
}
//# if EDGES
__device__ __forceinline__ Four<Kind$i> some_$i(u32 at, u32 behind) const {
//# if VEC4
    return four_$i(at);
//# else
    const u32 step = word($last);
    const Kind$i second = one_$i(at + min($apartu, behind) * step);
    return {one_$i(at), second, one_$i(at + min(2 * $apartu, behind) * step), one_$i(at + min(3 * $apartu, behind) * step)};
//# end
}
//# end
//# if TURNED
//# if HALVES
//# if VEC4
__device__ __forceinline__ uint2 words_of_$i(u32 at, u32) const { return __ldg(static_cast<const uint2 *>(bound_$binding) + at / 4); }
//# else
__device__ __forceinline__ u32 half_$i(u32 at) const { return __ldg(static_cast<const unsigned short *>(bound_$binding) + at); }
__device__ __forceinline__ uint2 words_of_$i(u32 at, u32 behind) const {
    const u32 step = word($last);
    const u32 first = half_$i(at) | half_$i(at + min($apartu, behind) * step) << 16;
    return make_uint2(first, half_$i(at + min(2 * $apartu, behind) * step) | half_$i(at + min(3 * $apartu, behind) * step) << 16);
}
//# end
__device__ __forceinline__ Four<f32> words_as_$i(uint2 v) const { return {widened(v.x), widened(v.x >> 16), widened(v.y), widened(v.y >> 16)}; }
//# else
__device__ __forceinline__ uint4 words_of_$i(u32 at, u32 behind) const {
    const Four<Kind$i> v = some_$i(at, behind);
    return make_uint4(word_of(v.x[0]), word_of(v.x[1]), word_of(v.x[2]), word_of(v.x[3]));
}
__device__ __forceinline__ Four<Kind$i> words_as_$i(uint4 v) const {
    return {of_word<Kind$i>(v.x), of_word<Kind$i>(v.y), of_word<Kind$i>(v.z), of_word<Kind$i>(v.w)};
}
//# end
//# end

__device__ __forceinline__ u32 at_$i(const u32 (&c)[$rank]) const {
    u32 at = word($at);
//# for d in RANK
    at += c[$d] * word($at + 1 + $d);
//# end
    return at;
}
//# if BOUNDED
__device__ __forceinline__ bool is_inside_$i_at(const u32 (&c)[$rank]) const {
    bool inside = true;
//# for d in RANK
    inside = inside && c[$d] >= word($bounds + $d) && c[$d] < word($bounds + $rank + $d);
//# end
    return inside;
}
//# end
