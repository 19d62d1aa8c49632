// The variance of a row whose lanes have all of its values at once: nothing is joined, which takes longer than to read a row.

#if MOMENTS
#if COARSE
// Values of f16 are no nearer to one another than sums of f32 tell apart, and no further apart than squares.
template <u32 LENGTH, typename F>
static __device__ __forceinline__ Fold::State moments_of_row(const Four<f32> (&v)[LENGTH], F is_there, u32 count, f32, u32 slot, u32 lane, bool for_all) {
    f32 sums[4] = {}, squares[4] = {};
#pragma unroll
    for (u32 u = 0; u < LENGTH; u++) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) sums[l] += is_there(u, l) ? v[u].x[l] : 0.0f;
    }
    // Divided, that of equal values is one of them.
    const f32 sum = of_row((sums[0] + sums[1]) + (sums[2] + sums[3]), [](f32 a, f32 b) { return a + b; }, slot, lane, true);
    const f32 mean = sum / f32(count);
#pragma unroll
    for (u32 u = 0; u < LENGTH; u++) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            const f32 distance = is_there(u, l) ? v[u].x[l] - mean : 0.0f;
            squares[l] = fmaf(distance, distance, squares[l]);
        }
    }
    const f32 square = of_row((squares[0] + squares[1]) + (squares[2] + squares[3]), [](f32 a, f32 b) { return a + b; }, slot, lane, for_all);
    return {f32(count), square / f32(count), 0.0f, mean};
}
#else
// The means of squares of distances, less than zero where those are so far that they are scaled, and of distances.
struct Spread {
    f32 square, distance;
};

static __device__ __forceinline__ Spread joined(Spread a, Spread b) {
    const auto scaled = [](f32 x) { return fminf(x, -x * Fold::scale_of(true) * Fold::scale_of(true)); };
    const bool is_far = a.square < 0.0f || b.square < 0.0f;
    return {is_far ? scaled(a.square) + scaled(b.square) : a.square + b.square, a.distance + b.distance};
}

// A lane's share in them: of distances from the sum of both numbers, the squares scaled by the square of a third.
template <u32 LENGTH, typename F>
static __device__ __forceinline__ Spread share(const Four<f32> (&v)[LENGTH], F is_there, u32 count, f32 base, f32 rest, f32 by) {
    f32 squares[4] = {}, distances[4] = {};
#pragma unroll
    for (u32 u = 0; u < LENGTH; u++) {
#pragma unroll
        for (u32 l = 0; l < 4; l++) {
            const f32 distance = is_there(u, l) ? (v[u].x[l] - base) - rest : 0.0f;
            squares[l] = fmaf(distance * by, distance * by, squares[l]);
            distances[l] += distance;
        }
    }
    const f32 one = 1.0f / f32(count);
    return {((squares[0] + squares[1]) + (squares[2] + squares[3])) * one, ((distances[0] + distances[1]) + (distances[2] + distances[3])) * one};
}

// The mean is told as its distance from some value of the row, and then as that from the number next to it. Where the value is far from all others,
// their distances from it have lost what they are from one another: the mean of those from the mean puts it right.
template <u32 LENGTH, typename F>
static __device__ __forceinline__ Fold::State moments_of_row(const Four<f32> (&v)[LENGTH], F is_there, u32 count, f32 some, u32 slot, u32 lane, bool for_all) {
    const f32 of_lane = share(v, is_there, count, some, 0.0f, 1.0f).distance;
    const f32 mean = of_row(of_lane, [](f32 a, f32 b) { return a + b; }, slot, lane, true);
    const f32 base = some + mean, rest = (some - base) + mean;
    Spread spread = share(v, is_there, count, base, rest, 1.0f);
    if (!(spread.square < Fold::FAR * Fold::FAR)) spread.square = -share(v, is_there, count, base, rest, Fold::scale_of(true)).square;
    spread = of_row(spread, joined, slot, lane, for_all);
    return {copysignf(f32(count), spread.square), fabsf(spread.square), rest + spread.distance, base};
}
#endif
#endif
