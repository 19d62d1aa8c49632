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
    return {one_$i(at), one_$i(at + min(1u, behind) * step), one_$i(at + min(2u, behind) * step), one_$i(at + min(3u, behind) * step)};
//# end
}
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
