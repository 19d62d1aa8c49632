// What is made of a row's values once they are folded.

// What each value of a row is told: of a softmax the pivot and a factor, or what is taken off; of a norm a value near the mean, a
// factor, and the mean as its distance from that value, or two factors where there is no mean.
struct Measure {
    f32 base, by, rest;
};

static __device__ __forceinline__ Measure measure(const Fold &fold, const Fold::State &s) {
#if LAYER
    const f32 scale = Fold::scale_of(s.count < 0.0f);
    return {s.pivot, scale / sqrtf(fold.variance(s) + __uint_as_float(fold.word(EPSILON)) * scale * scale), s.mean};
#elif RMS
    // As normalize.wgsl.
    const f32 by = word_of(s.large) != 0 ? 0.25f : 1.0f;
    const f32 root = fold.finish({s.large * 0.0625f, s.middle * by * by, s.small});
    return {by, 1.0f / (root < 1.0e18f ? fmaxf(root, sqrtf(root * root + __uint_as_float(fold.word(EPSILON)) * by * by)) : root)};
#else
    // No number is in proportion to an infinity, to NaN, or to zeros alone.
    const bool is_some = is_finite(s.sum) && s.sum > 0.0f;
    return {Fold::pivot(s.most), is_some ? (LOGARITHMS ? logf(s.sum) : 1.0f / s.sum) : nan_of(s.sum)};
#endif
}

static __device__ __forceinline__ f32 made(const Fold &fold, f32 v, const Measure &m) {
#if LAYER
    return ((v - m.base) - m.rest) * m.by;
#elif RMS
    return v * m.base * m.by;
#elif LOGARITHMS
    return (v - m.base) - m.by;
#else
    return Fold::power_of(v, m.base) * m.by;
#endif
}
