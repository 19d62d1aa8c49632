// As fold.wgsl, in a type with what the kernel is told and reads. Here the hardware does with infinities and NaN what IEEE 754 says.
//
// `of_all` is what so many values are by themselves, of which fours lie one behind the other and those of a four a step apart, and `more` folds four
// such fours into what there is. What is no type is a word told at run time in plain.cu.

#define KNOWS_NAN (KEYS && OF_F32 && __CUDA_ARCH__ >= 800)

struct Fold : Source {
#if OF_F32
    typedef f32 Value;
#elif OF_I32
    typedef i32 Value;
#else
    typedef u32 Value;
#endif

    __device__ __forceinline__ f32 divisor() const { return __uint_as_float(word(DIVISOR)); }

#if KEYS
    __device__ __forceinline__ u32 key(Value v) const {
#if OF_F32
        const u32 bits = word_of(v) == 0x80000000u ? 0 : word_of(v);
        const u32 sorted = bits >> 31 ? ~bits : bits | 0x80000000u;
#elif OF_I32
        const u32 sorted = word_of(v) ^ 0x80000000u;
#else
        const u32 sorted = v;
#endif
        const u32 ranked = SMALLEST ? ~sorted : sorted;
#if OF_F32
        return is_nan(v) ? 0xffffffffu : ranked;
#else
        return ranked;
#endif
    }

    __device__ __forceinline__ Value value_of(u32 key) const {
        const u32 sorted = SMALLEST ? ~key : key;
#if OF_F32
        if (key == 0xffffffffu) return __uint_as_float(0x7fffffffu);
        return __uint_as_float(sorted >> 31 ? sorted & 0x7fffffffu : ~sorted);
#elif OF_I32
        return of_word<i32>(sorted ^ 0x80000000u);
#else
        return sorted;
#endif
    }
#endif

#if SUM
    typedef Value State;
    typedef Value Output;
    __device__ __forceinline__ State empty() const { return Value(0); }
    __device__ __forceinline__ State lift(Value v, u32) const { return v; }
    __device__ __forceinline__ State join(State a, State b) const { return a + b; }
#if OF_F32
    __device__ __forceinline__ Output finish(State s) const { return DIVIDES ? s / divisor() : s; }
#else
    __device__ __forceinline__ Output finish(State s) const { return s; }
#endif
#endif

#if PROD && OF_F32
    struct State {
        f32 part;
        int power;
    };
    typedef f32 Output;
    __device__ __forceinline__ static State parted(f32 v, int power) {
        const u32 bits = word_of(v), exponent = bits >> 23 & 255;
        if (exponent - 1 >= 254) return {v, power};
        return {__uint_as_float((bits & 0x807fffffu) | 0x3f800000u), power + int(exponent) - 127};
    }
    __device__ __forceinline__ State empty() const { return {1.0f, 0}; }
    __device__ __forceinline__ State lift(f32 v, u32) const {
        if ((word_of(v) & 0x7f800000u) != 0) return parted(v, 0);
        return parted(copysignf(f32(word_of(v) & 0x7fffffu), v), -149);
    }
    __device__ __forceinline__ State join(State a, State b) const {
        return parted(a.part * b.part, min(max(a.power + b.power, -(1 << 29)), 1 << 29));
    }
    // Four factors that are neither large nor small have a product that is no special number.
    template <u32 LENGTH>
    __device__ __forceinline__ State of_all(const Four<f32> *v, const u32 *from, u32 step) const {
        u32 least = 0x7fffffffu, most = 0;
#pragma unroll
        for (u32 e = 0; e < LENGTH; e++) {
            const u32 size = word_of(v[e / 4].x[e % 4]) & 0x7fffffffu;
            least = min(least, size);
            most = max(most, size);
        }
        if (least < 0x30000000u || most >= 0x4f000000u) return of_parts<LENGTH>(v, from, step);
        State all = empty();
#pragma unroll
        for (u32 u = 0; u < LENGTH; u += 4) {
            f32 factors[4];
#pragma unroll
            for (u32 e = 0; e < 4; e++) factors[e] = u + e < LENGTH ? v[u / 4].x[e] : 1.0f;
            const State four = parted((factors[0] * factors[1]) * (factors[2] * factors[3]), 0);
            all = {all.part * four.part, all.power + four.power};
        }
        return parted(all.part, all.power);
    }
    __device__ __forceinline__ static f32 power_of_two(int power) { return __uint_as_float(u32(power + 127) << 23); }
    __device__ __forceinline__ Output finish(State s) const {
        const int power = min(max(s.power, -160), 254);
        return s.part * power_of_two(power >> 1) * power_of_two(power - (power >> 1));
    }
#elif PROD
    typedef Value State;
    typedef Value Output;
    __device__ __forceinline__ State empty() const { return Value(1); }
    __device__ __forceinline__ State lift(Value v, u32) const { return v; }
    __device__ __forceinline__ State join(State a, State b) const { return a * b; }
    __device__ __forceinline__ Output finish(State s) const { return s; }
#endif

#if KNOWS_NAN
    // The larger as the hardware has it, which gives NaN where there is one.
    __device__ __forceinline__ static f32 larger(f32 a, f32 b) {
        f32 c;
        asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
        return c;
    }
    // In the order in which the larger is the more extreme.
    __device__ __forceinline__ f32 ranked(f32 v) const { return SMALLEST ? -v : v; }
#endif

#if EXTREME && KNOWS_NAN
    typedef f32 State;
    typedef f32 Output;
    __device__ __forceinline__ State empty() const { return __uint_as_float(0xff800000u); }
    __device__ __forceinline__ State lift(f32 v, u32) const { return ranked(v); }
    __device__ __forceinline__ State join(State a, State b) const { return larger(a, b); }
    // Of both zeros the positive one, as by keys.
    __device__ __forceinline__ Output finish(State s) const { return ranked(s) + 0.0f; }
#elif EXTREME
    typedef u32 State;
    typedef Value Output;
    __device__ __forceinline__ State empty() const { return 0; }
    __device__ __forceinline__ State lift(Value v, u32) const { return key(v); }
    __device__ __forceinline__ State join(State a, State b) const { return max(a, b); }
    __device__ __forceinline__ Output finish(State s) const { return value_of(s); }
#endif

#if ARG
    struct State {
        u32 key, place;
    };
    typedef u32 Output;
    __device__ __forceinline__ State empty() const { return {0, 0xffffffffu}; }
    __device__ __forceinline__ State lift(Value v, u32 i) const { return {key(v), i}; }
    __device__ __forceinline__ State join(State a, State b) const {
        return b.key > a.key || (b.key == a.key && b.place < a.place) ? b : a;
    }
#if KNOWS_NAN
    // The most extreme of all is known before it is looked for, the last places first.
    template <u32 LENGTH>
    __device__ __forceinline__ State of_all(const Four<f32> *v, const u32 *from, u32 step) const {
        f32 most = ranked(v[0].x[0]);
#pragma unroll
        for (u32 e = 1; e < LENGTH; e++) most = larger(most, ranked(v[e / 4].x[e % 4]));
        u32 place = 0;
        if (most == most) {
#pragma unroll
            for (u32 e = LENGTH; e > 0; e--) place = ranked(v[(e - 1) / 4].x[(e - 1) % 4]) == most ? from[(e - 1) / 4] + (e - 1) % 4 * step : place;
        } else {
#pragma unroll
            for (u32 e = LENGTH; e > 0; e--) place = is_nan(v[(e - 1) / 4].x[(e - 1) % 4]) ? from[(e - 1) / 4] + (e - 1) % 4 * step : place;
        }
        return {key(ranked(most)), place};
    }
#endif
    __device__ __forceinline__ Output finish(State s) const { return s.place; }
#endif

#if MOMENTS
    struct State {
        f32 count, spread, mean, pivot;
    };
    typedef f32 Output;
    f32 pivot;
    __device__ __forceinline__ State empty() const { return {0.0f, 0.0f, 0.0f, 0.0f}; }
    __device__ __forceinline__ State lift(f32 v, u32) const { return {1.0f, is_finite(v) ? 0.0f : nan_of(v), v - pivot, pivot}; }
    // As fold.wgsl: what distances are multiplied by where one is far.
    static constexpr f32 FAR = 1.1529215e18f;
    __device__ __forceinline__ static f32 scale_of(bool is_far) { return is_far ? 5.421011e-20f : 1.0f; }
    __device__ __forceinline__ static f32 spread_by(const State &s, f32 scale) {
        const f32 more = s.count < 0.0f ? 1.0f : scale;
        return s.spread * more * more;
    }
    __device__ __forceinline__ State join(State a, State b) const {
        if (a.count == 0.0f) return b;
        const f32 count = fabsf(a.count) + fabsf(b.count);
        const f32 by = 1.0f / count, share_a = fabsf(a.count) * by, share_b = fabsf(b.count) * by;
        const f32 distance = (b.mean - a.mean) + (b.pivot - a.pivot);
        const bool is_far = fminf(a.count, b.count) < 0.0f || fabsf(distance) > FAR;
        const f32 scale = scale_of(is_far), d = distance * scale;
        const f32 spread = spread_by(a, scale) * share_a + spread_by(b, scale) * share_b + (d * share_a) * (d * share_b);
        // Of two values the nearer is kept.
        const f32 mean_a = a.mean + distance * share_b, mean_b = b.mean - distance * share_a;
        const bool is_b = fabsf(mean_b) < fabsf(mean_a);
        return {is_far ? -count : count, spread, is_b ? mean_b : mean_a, is_b ? b.pivot : a.pivot};
    }
    // Of those that are before a place.
    template <u32 LENGTH, bool IS_ALL = false>
    __device__ __forceinline__ State of_some(const Four<f32> *v, const u32 *from, u32 step, u32 end) const {
        const auto is_there = [&](u32 e) { return IS_ALL || from[e / 4] + e % 4 * step < end; };
        u32 count = 0;
        f32 d[LENGTH], sums[4] = {};
#pragma unroll
        for (u32 e = 0; e < LENGTH; e++) {
            count += is_there(e);
            sums[e % 4] += d[e] = is_there(e) ? v[e / 4].x[e % 4] - pivot : 0.0f;
        }
        if (count == 0) return empty();
        const f32 one = 1.0f / f32(count), mean = ((sums[0] + sums[1]) + (sums[2] + sums[3])) * one;
        const auto mean_square = [&](f32 by) {
            f32 squares[4] = {};
#pragma unroll
            for (u32 e = 0; e < LENGTH; e++) squares[e % 4] = fmaf(d[e] * by, d[e] * by, squares[e % 4]);
            return ((squares[0] + squares[1]) + (squares[2] + squares[3])) * one;
        };
#pragma unroll
        for (u32 e = 0; e < LENGTH; e++) d[e] = is_there(e) ? d[e] - mean : 0.0f;
        const f32 spread = mean_square(1.0f);
        if (spread < FAR * FAR) return {f32(count), spread, mean, pivot};
        return {-f32(count), mean_square(scale_of(true)), mean, pivot};
    }
    template <u32 LENGTH>
    __device__ __forceinline__ State of_all(const Four<f32> *v, const u32 *from, u32 step) const { return of_some<LENGTH, true>(v, from, step, 0); }
    __device__ __forceinline__ f32 variance(const State &s) const { return s.spread * (fabsf(s.count) / divisor()); }
    __device__ __forceinline__ Output finish(State s) const {
        const f32 scale = scale_of(s.count < 0.0f);
        return ROOT ? sqrtf(variance(s)) / scale : variance(s) / scale / scale;
    }
#endif

#if NORM
    struct State {
        f32 large, middle, small;
    };
    typedef f32 Output;
    __device__ __forceinline__ State empty() const { return {0.0f, 0.0f, 0.0f}; }
    __device__ __forceinline__ State lift(f32 v, u32) const {
        const u32 size = word_of(v) & 0x7fffffffu;
        const bool is_large = size > 0x57000000u, is_small = size < 0x20000000u;
        const f32 s = v * (is_large ? 2.0679515e-25f : is_small ? 3.7778932e22f : 1.0f);
        const f32 square = s * s;
        return {is_large ? square : 0.0f, is_large || is_small ? 0.0f : square, is_small ? square : 0.0f};
    }
    __device__ __forceinline__ State join(State a, State b) const { return {a.large + b.large, a.middle + b.middle, a.small + b.small}; }
    // Where the squares' sum is no small number and no large one, what is too small to have a square is nothing beside it.
    template <u32 LENGTH>
    __device__ __forceinline__ State of_all(const Four<f32> *v, const u32 *from, u32 step) const {
        f32 sums[4] = {};
#pragma unroll
        for (u32 e = 0; e < LENGTH; e++) sums[e % 4] = fmaf(v[e / 4].x[e % 4], v[e / 4].x[e % 4], sums[e % 4]);
        const f32 sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        if (sum >= 8.0779357e-28f && sum <= 1.2379401e27f) return {0.0f, sum, 0.0f};
        return of_parts<LENGTH>(v, from, step);
    }
    __device__ __forceinline__ Output finish(State s) const {
        const f32 share = DIVIDES ? 1.0f / divisor() : 1.0f;
        if (word_of(s.large) != 0) return 4.8357033e24f * sqrtf((s.large + s.middle * 2.0679515e-25f * 2.0679515e-25f) * share);
        if (word_of(s.small) == 0) return sqrtf(s.middle * share);
        const f32 middle = sqrtf(s.middle), small = 2.646978e-23f * sqrtf(s.small);
        const f32 larger = fmaxf(middle, small);
        const f32 ratio = fminf(middle, small) / (larger > 0.0f ? larger : 1.0f);
        return larger * sqrtf((1.0f + ratio * ratio) * share);
    }
#endif

#if EXPONENTIAL
    // The largest value, which is not asked for NaN, and the sum of all powers by it, where NaN and infinities show.
    struct State {
        f32 most, sum;
    };
    typedef f32 Output;
    // The nearest finite number, from which distances are finite, -infinity, or infinity for infinity.
    __device__ __forceinline__ static f32 pivot(f32 most) { return fminf(fmaxf(most, -3.40282347e38f), 3.40282347e38f); }
    __device__ __forceinline__ static f32 power_of(f32 v, f32 pivot) { return expf(v - pivot); }
    // Coarser, which is less than rounding in a sum whose largest term is 1.
    __device__ __forceinline__ static f32 term_of(f32 v, f32 pivot) { return __expf(v - pivot); }
    __device__ __forceinline__ State empty() const { return {__uint_as_float(0xff800000u), 0.0f}; }
    __device__ __forceinline__ State lift(f32 v, u32) const { return {v, term_of(v, pivot(v))}; }
    __device__ __forceinline__ State join(State a, State b) const {
        const f32 most = fmaxf(a.most, b.most);
        const f32 p = pivot(most);
        return {most, a.sum * power_of(pivot(a.most), p) + b.sum * power_of(pivot(b.most), p)};
    }
    template <u32 LENGTH>
    __device__ __forceinline__ State of_all(const Four<f32> *v, const u32 *, u32) const {
        f32 most = v[0].x[0], sums[4] = {};
#pragma unroll
        for (u32 e = 1; e < LENGTH; e++) most = fmaxf(most, v[e / 4].x[e % 4]);
        const f32 p = pivot(most);
#pragma unroll
        for (u32 e = 0; e < LENGTH; e++) sums[e % 4] += term_of(v[e / 4].x[e % 4], p);
        return {most, (sums[0] + sums[1]) + (sums[2] + sums[3])};
    }
    __device__ __forceinline__ Output finish(State s) const { return pivot(s.most) + logf(s.sum); }
#endif

    // The same of any fold, from pairs on.
    template <u32 LENGTH, u32 FIRST = 0>
    __device__ __forceinline__ State of_parts(const Four<Value> *v, const u32 *from, u32 step) const {
        if constexpr (LENGTH == 1) {
            return lift(v[FIRST / 4].x[FIRST % 4], from[FIRST / 4] + FIRST % 4 * step);
        } else {
            return join(of_parts<LENGTH / 2, FIRST>(v, from, step), of_parts<LENGTH - LENGTH / 2, FIRST + LENGTH / 2>(v, from, step));
        }
    }

#if !(MOMENTS || NORM || EXPONENTIAL || (PROD && OF_F32) || (ARG && KNOWS_NAN))
    template <u32 LENGTH>
    __device__ __forceinline__ State of_all(const Four<Value> *v, const u32 *from, u32 step) const { return of_parts<LENGTH>(v, from, step); }
#endif
    __device__ __forceinline__ State more(State s, const Four<Value> (&v)[4], const u32 (&from)[4], u32 step) const {
        return join(s, of_all<16>(v, from, step));
    }

#if !MOMENTS
    // What stands for a value that is not there, in whose place a later one than all others of a row is told to be: of the two it is told again.
    __device__ __forceinline__ static Value left_out(Value v) {
#if SUM || NORM
        return Value(0);
#elif PROD
        return Value(1);
#elif EXPONENTIAL
        return __uint_as_float(0xff800000u);
#else
        return v;
#endif
    }
#endif
};
