// As fold.wgsl, in a type with what the kernel is told and reads.

struct Fold : Source {
//# if OF_F32
    typedef f32 Value;
//# else
//# if OF_I32
    typedef i32 Value;
//# else
    typedef u32 Value;
//# end
//# end

    __device__ __forceinline__ f32 divisor() const { return __uint_as_float(word(DIVISOR)); }

//# if KEYS
    __device__ __forceinline__ static u32 key(Value v) {
//# if OF_F32
        const u32 bits = word_of(v) == 0x80000000u ? 0 : word_of(v);
        const u32 sorted = bits >> 31 ? ~bits : bits | 0x80000000u;
//# else
//# if OF_I32
        const u32 sorted = word_of(v) ^ 0x80000000u;
//# else
        const u32 sorted = v;
//# end
//# end
//# if SMALLEST
        const u32 ranked = ~sorted;
//# else
        const u32 ranked = sorted;
//# end
//# if OF_F32
        return is_nan(v) ? 0xffffffffu : ranked;
//# else
        return ranked;
//# end
    }

    __device__ __forceinline__ static Value value_of(u32 key) {
//# if SMALLEST
        const u32 sorted = ~key;
//# else
        const u32 sorted = key;
//# end
//# if OF_F32
        if (key == 0xffffffffu) return __uint_as_float(0x7fffffffu);
        return __uint_as_float(sorted >> 31 ? sorted & 0x7fffffffu : ~sorted);
//# else
//# if OF_I32
        return of_word<i32>(sorted ^ 0x80000000u);
//# else
        return sorted;
//# end
//# end
    }
//# end

//# if SUM
    typedef Value State;
    typedef Value Output;
    __device__ __forceinline__ State empty() const { return Value(0); }
    __device__ __forceinline__ State lift(Value v, u32) const { return v; }
    __device__ __forceinline__ State join(State a, State b) const { return a + b; }
//# if DIVIDES
    __device__ __forceinline__ Output finish(State s) const { return s / divisor(); }
//# else
    __device__ __forceinline__ Output finish(State s) const { return s; }
//# end
//# end

//# if PROD
    typedef Value State;
    typedef Value Output;
    __device__ __forceinline__ State empty() const { return Value(1); }
    __device__ __forceinline__ State lift(Value v, u32) const { return v; }
    __device__ __forceinline__ State join(State a, State b) const { return a * b; }
    __device__ __forceinline__ Output finish(State s) const { return s; }
//# end

//# if EXTREME
    typedef u32 State;
    typedef Value Output;
    __device__ __forceinline__ State empty() const { return 0; }
    __device__ __forceinline__ State lift(Value v, u32) const { return key(v); }
    __device__ __forceinline__ State join(State a, State b) const { return max(a, b); }
    __device__ __forceinline__ Output finish(State s) const { return value_of(s); }
//# end

//# if ARG
    struct State {
        u32 key, place;
    };
    typedef u32 Output;
    __device__ __forceinline__ State empty() const { return {0, 0xffffffffu}; }
    __device__ __forceinline__ State lift(Value v, u32 i) const { return {key(v), i}; }
    __device__ __forceinline__ State join(State a, State b) const {
        return b.key > a.key || (b.key == a.key && b.place < a.place) ? b : a;
    }
    __device__ __forceinline__ Output finish(State s) const { return s.place; }
//# end

//# if MOMENTS
    struct State {
        f32 count, spread, mean, pivot;
    };
    typedef f32 Output;
    f32 pivot;
    __device__ __forceinline__ State empty() const { return {0.0f, 0.0f, 0.0f, 0.0f}; }
    __device__ __forceinline__ State lift(f32 v, u32) const { return {1.0f, 0.0f, v - pivot, pivot}; }
    __device__ __forceinline__ State join(State a, State b) const {
        if (a.count == 0.0f) return b;
        const f32 count = a.count + b.count;
        const f32 share = b.count / count;
        const f32 distance = (b.mean - a.mean) + (b.pivot - a.pivot);
        return {count, a.spread + b.spread + distance * (distance * (a.count * share)), a.mean + distance * share, a.pivot};
    }
    __device__ __forceinline__ State quad(const Four<f32> &v, u32, u32) const {
        const f32 x = v.x[0] - pivot, y = v.x[1] - pivot, z = v.x[2] - pivot, w = v.x[3] - pivot;
        const f32 mean = 0.25f * ((x + y) + (z + w));
        const f32 spread = ((x - mean) * (x - mean) + (y - mean) * (y - mean)) + ((z - mean) * (z - mean) + (w - mean) * (w - mean));
        return {4.0f, spread, mean, pivot};
    }
//# if ROOT
    __device__ __forceinline__ Output finish(State s) const { return sqrtf(s.spread / divisor()); }
//# else
    __device__ __forceinline__ Output finish(State s) const { return s.spread / divisor(); }
//# end
//# end

//# if NORM
    struct State {
        f32 large, middle, small;
    };
    typedef f32 Output;
    __device__ __forceinline__ State empty() const { return {0.0f, 0.0f, 0.0f}; }
    __device__ __forceinline__ State lift(f32 v, u32) const {
        const u32 size = word_of(v) & 0x7fffffffu;
        const bool is_large = size > 0x59800000u, is_small = size < 0x20000000u;
        const f32 s = v * (is_large ? 1.323489e-23f : is_small ? 3.7778932e22f : 1.0f);
        const f32 square = s * s;
        return {is_large ? square : 0.0f, is_large || is_small ? 0.0f : square, is_small ? square : 0.0f};
    }
    __device__ __forceinline__ State join(State a, State b) const { return {a.large + b.large, a.middle + b.middle, a.small + b.small}; }
    __device__ __forceinline__ Output finish(State s) const {
        if (word_of(s.large) != 0) return 7.5557864e22f * sqrtf(s.large + s.middle * 1.323489e-23f * 1.323489e-23f);
        const f32 middle = sqrtf(s.middle), small = 2.646978e-23f * sqrtf(s.small);
        const f32 larger = fmaxf(middle, small);
        const f32 ratio = fminf(middle, small) / (larger > 0.0f ? larger : 1.0f);
        return larger * sqrtf(1.0f + ratio * ratio);
    }
//# end

//# if EXPONENTIAL
    struct State {
        u32 key;
        f32 sum;
    };
    typedef f32 Output;
    __device__ __forceinline__ static f32 pivot(u32 key) { return value_of(min(max(key, 0x00800000u), 0xff7fffffu)); }
    __device__ __forceinline__ static f32 power_of(f32 v, f32 pivot) { return v - pivot > -104.0f ? expf(v - pivot) : 0.0f; }
    __device__ __forceinline__ State empty() const { return {0, 0.0f}; }
    __device__ __forceinline__ State lift(f32 v, u32) const { return {key(v), key(v) > 0x007fffffu ? 1.0f : 0.0f}; }
    __device__ __forceinline__ State join(State a, State b) const {
        const u32 k = max(a.key, b.key);
        const f32 p = pivot(k);
        return {k, a.sum * power_of(pivot(a.key), p) + b.sum * power_of(pivot(b.key), p)};
    }
    __device__ __forceinline__ State quad(const Four<f32> &v, u32, u32) const {
        const u32 k = max(max(key(v.x[0]), key(v.x[1])), max(key(v.x[2]), key(v.x[3])));
        const f32 p = pivot(k);
        return {k, (power_of(v.x[0], p) + power_of(v.x[1], p)) + (power_of(v.x[2], p) + power_of(v.x[3], p))};
    }
    __device__ __forceinline__ Output finish(State s) const {
        if (s.key <= 0x007fffffu || s.key >= 0xff800000u) return value_of(s.key);
        return pivot(s.key) + logf(s.sum);
    }
//# end

//# if GENERAL
    __device__ __forceinline__ State quad(const Four<Value> &v, u32 i, u32 step) const {
        return join(join(lift(v.x[0], i), lift(v.x[1], i + step)), join(lift(v.x[2], i + 2 * step), lift(v.x[3], i + 3 * step)));
    }
//# end
};
