// As fft.wgsl, in one buffer of shared memory: a block's threads all read before one writes. Compiled at run time with the constants of a
// plan; as it comes with the crate it is told them behind the words that both have (src/plan/fft.rs).

typedef unsigned u32;

struct Words {
    u32 word[64];
};

#ifdef LENGTH
#define IS_GENERATED
// Elements that a thread has under way at once.
#define UNDER_WAY 4
#else
#define UNDER_WAY 1
// A step's length, how many transforms a block does at once, the flags, the passes and their radices, four bits each.
#define LENGTH words.word[13]
#define BATCH words.word[14]
#define FLAGS words.word[15]
#define PASSES words.word[16]
#define RADICES words.word[17]
// Columns of a line, elements behind the dimension, elements of the steps before.
#define LINE words.word[1]
#define INNER words.word[2]
#define BEFORE words.word[3]
// Elements of a thread, at most.
#define EACH 8u
#endif

#define MOST (256 * EACH)

// src/plan/fft.rs has the same.
enum Flag {
    COLUMNS = 1, ACROSS = 2, SOURCE_REAL = 4, SOURCE_COMPLEX = 8, SOURCE_HALF = 16, SOURCE_SCRATCH = 32, SOURCE_CHIRP = 64, TARGET_REAL = 128,
    TARGET_COMPLEX = 256, CHIRP_IN = 512, CHIRP_OUT = 1024, FILTERED = 2048, CONJUGATE_IN = 4096, CONJUGATE_OUT = 8192
};

static __device__ __forceinline__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
static __device__ __forceinline__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
static __device__ __forceinline__ float2 operator*(float a, float2 b) { return make_float2(a * b.x, a * b.y); }
static __device__ __forceinline__ float2 times(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
static __device__ __forceinline__ float2 conjugate(float2 a) { return make_float2(a.x, -a.y); }
// a times -i.
static __device__ __forceinline__ float2 turned(float2 a) { return make_float2(a.y, -a.x); }

// exp(-2 pi i * m / n) for m < n <= 2^28: the angle is brought into an eighth of the circle in integers.
static __device__ float2 root(u32 m, u32 n) {
    const u32 eighth = 8 * m / n, rest = 8 * m - eighth * n;
    const float x = float(eighth & 1 ? n - rest : rest) / float(n) * 0.785398163397f;
    const float z = x * x;
    const float sine = x + x * z * (-0.16666654611f + z * (0.0083321608736f - z * 0.00019515295891f));
    const float cosine = 1.0f - 0.5f * z + z * z * (0.041666645683f + z * (-0.0013887316255f + z * 0.000024433157118f));
    const bool is_swapped = (eighth + 1) & 2;
    const float c = is_swapped ? sine : cosine, s = is_swapped ? cosine : sine;
    return make_float2((eighth + 2) & 4 ? -c : c, eighth >= 4 ? s : -s);
}

// exp(-pi i * a * a / n) of the transform's own length n.
static __device__ float2 chirp(const Words &words, u32 a) {
    const u32 twice = 2 * words.word[8];
    return root(u32((unsigned long long)a * a % twice), twice);
}

// Element i of transform t: of what is outer x LENGTH x columns.
static __device__ __forceinline__ float2 fetched(const Words &words, const void *from, const float2 *filter, u32 t, u32 i) {
    const u32 columns = LINE, inner = INNER, o = t / columns, c = t % columns;
    // Its place along the whole dimension.
    const u32 at = i * (columns / inner) + c / inner;
    float2 v = make_float2(0.0f, 0.0f);
    if (FLAGS & SOURCE_SCRATCH) {
        v = static_cast<const float2 *>(from)[words.word[10] + (o * LENGTH + i) * columns + c];
    } else if (FLAGS & SOURCE_CHIRP) {
        const u32 far = min(at, words.word[4] - at);
        if (far < words.word[8]) v = __uint_as_float(words.word[7]) * conjugate(chirp(words, far));
    } else if (FLAGS & SOURCE_HALF) {
        const bool is_mirrored = at > words.word[8] / 2;
        const u32 mirrored = is_mirrored ? words.word[8] - at : at;
        if (at < words.word[8] && mirrored < words.word[5]) {
            v = static_cast<const float2 *>(from)[(size_t(o) * words.word[5] + mirrored) * inner + c % inner];
            if (is_mirrored) v = conjugate(v);
            // What is its own mirror image is real, whatever stands there.
            if (mirrored == 0 || 2 * mirrored == words.word[8]) v.y = 0.0f;
        }
    } else if (at < words.word[5]) {
        const size_t element = (size_t(o) * words.word[5] + at) * inner + c % inner;
        if (FLAGS & SOURCE_REAL) {
            v.x = static_cast<const float *>(from)[element];
        } else {
            v = static_cast<const float2 *>(from)[element];
        }
    }
    if (FLAGS & CONJUGATE_IN) v = conjugate(v);
    if (FLAGS & CHIRP_IN) v = at < words.word[8] ? times(v, chirp(words, at)) : make_float2(0.0f, 0.0f);
    if (FLAGS & FILTERED) v = conjugate(times(v, filter[words.word[12] + at]));
    // What the steps before it leave to do.
    const u32 l = BEFORE;
    return l > 1 ? times(v, root(c / inner % l * i, l * LENGTH)) : v;
}

static __device__ __forceinline__ void put(const Words &words, void *to, u32 t, u32 i, float2 v) {
    const u32 columns = LINE, inner = INNER, l = BEFORE, o = t / columns, j = t % columns / inner;
    const u32 at = j / l * l * LENGTH + j % l + i * l;
    if (!(FLAGS & (TARGET_REAL | TARGET_COMPLEX))) {
        static_cast<float2 *>(to)[words.word[11] + (o * words.word[4] + at) * inner + t % inner] = v;
        return;
    }
    if (FLAGS & CHIRP_OUT) {
        if (at >= words.word[8]) return;
        v = times(conjugate(v), chirp(words, at));
    }
    if (FLAGS & CONJUGATE_OUT) v = conjugate(v);
    if (at >= words.word[6]) return;
    v = __uint_as_float(words.word[7]) * v;
    const size_t element = (size_t(o) * words.word[6] + at) * inner + t % inner;
    if (FLAGS & TARGET_REAL) {
        static_cast<float *>(to)[element] = v.x;
    } else {
        static_cast<float2 *>(to)[element] = v;
    }
}

static __device__ __forceinline__ void dft(float2 (&v)[2]) {
    const float2 a = v[0];
    v[0] = a + v[1];
    v[1] = a - v[1];
}

static __device__ __forceinline__ void dft(float2 (&v)[3]) {
    const float2 s = v[1] + v[2], d = 0.866025403784f * turned(v[1] - v[2]), m = v[0] - 0.5f * s;
    v[0] = v[0] + s;
    v[1] = m + d;
    v[2] = m - d;
}

static __device__ __forceinline__ void dft(float2 (&v)[4]) {
    const float2 a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = turned(v[1] - v[3]);
    v[0] = a + c;
    v[1] = b + d;
    v[2] = a - c;
    v[3] = b - d;
}

static __device__ __forceinline__ void dft(float2 (&v)[5]) {
    const float2 s1 = v[1] + v[4], s2 = v[2] + v[3], d1 = turned(v[1] - v[4]), d2 = turned(v[2] - v[3]);
    const float2 m1 = v[0] + 0.309016994375f * s1 - 0.809016994375f * s2, m2 = v[0] - 0.809016994375f * s1 + 0.309016994375f * s2;
    const float2 n1 = 0.951056516295f * d1 + 0.587785252292f * d2, n2 = 0.587785252292f * d1 - 0.951056516295f * d2;
    v[0] = v[0] + (s1 + s2);
    v[1] = m1 + n1;
    v[2] = m2 + n2;
    v[3] = m2 - n2;
    v[4] = m1 - n1;
}

static __device__ __forceinline__ void dft(float2 (&v)[7]) {
    const float2 s1 = v[1] + v[6], s2 = v[2] + v[5], s3 = v[3] + v[4];
    const float2 d1 = turned(v[1] - v[6]), d2 = turned(v[2] - v[5]), d3 = turned(v[3] - v[4]);
    const float2 m1 = v[0] + 0.623489801859f * s1 - 0.222520933956f * s2 - 0.900968867902f * s3;
    const float2 m2 = v[0] - 0.222520933956f * s1 - 0.900968867902f * s2 + 0.623489801859f * s3;
    const float2 m3 = v[0] - 0.900968867902f * s1 + 0.623489801859f * s2 - 0.222520933956f * s3;
    const float2 n1 = 0.781831482468f * d1 + 0.974927912182f * d2 + 0.433883739118f * d3;
    const float2 n2 = 0.974927912182f * d1 - 0.433883739118f * d2 - 0.781831482468f * d3;
    const float2 n3 = 0.433883739118f * d1 - 0.781831482468f * d2 + 0.974927912182f * d3;
    v[0] = v[0] + (s1 + s2 + s3);
    v[1] = m1 + n1;
    v[2] = m2 + n2;
    v[3] = m3 + n3;
    v[4] = m3 - n3;
    v[5] = m2 - n2;
    v[6] = m1 - n1;
}

static __device__ __forceinline__ void dft(float2 (&v)[8]) {
    const float r = 0.707106781187f;
    float2 even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
    dft(even);
    dft(odd);
    odd[1] = r * (odd[1] + turned(odd[1]));
    odd[2] = turned(odd[2]);
    odd[3] = r * (turned(odd[3]) - odd[3]);
#pragma unroll
    for (u32 q = 0; q < 4; q++) {
        v[q] = even[q] + odd[q];
        v[q + 4] = even[q] - odd[q];
    }
}

// Where element i of a block's transform b is, with room left between so that threads reach as many banks as there are.
static __device__ __forceinline__ u32 place(const Words &words, u32 b, u32 i) {
    const u32 at = FLAGS & COLUMNS ? i * BATCH + b : b * LENGTH + i;
    return at + at / 8;
}

// A pass of butterflies of R elements behind those that are transforms of `span` already.
template <u32 R>
static __device__ __forceinline__ void pass(const Words &words, float2 *memory, u32 span) {
    const u32 apart = LENGTH / R, count = BATCH * apart;
    const bool in_columns = FLAGS & COLUMNS;
    float2 v[(EACH + R - 1) / R][R];
#pragma unroll
    for (u32 n = 0; n < (EACH + R - 1) / R; n++) {
        const u32 e = threadIdx.x + n * blockDim.x;
        if (e >= count) continue;
        const u32 b = in_columns ? e % BATCH : e / apart, j = in_columns ? e / BATCH : e % apart;
#pragma unroll
        for (u32 q = 0; q < R; q++) v[n][q] = memory[place(words, b, j + q * apart)];
        if (span > 1) {
            const float2 w = root(j % span, span * R);
            float2 powers[R];
            powers[1] = w;
#pragma unroll
            for (u32 q = 1; q < R; q++) {
                // Of halves, so that few roundings come together.
                if (q > 1) powers[q] = times(powers[q / 2], powers[q - q / 2]);
                v[n][q] = times(v[n][q], powers[q]);
            }
        }
        dft(v[n]);
    }
    __syncthreads();
#pragma unroll
    for (u32 n = 0; n < (EACH + R - 1) / R; n++) {
        const u32 e = threadIdx.x + n * blockDim.x;
        if (e >= count) continue;
        const u32 b = in_columns ? e % BATCH : e / apart, j = in_columns ? e / BATCH : e % apart;
        const u32 first = j / span * span * R + j % span;
#pragma unroll
        for (u32 q = 0; q < R; q++) memory[place(words, b, first + q * span)] = v[n][q];
    }
    __syncthreads();
}

// All passes, the radix of each in its turn.
#ifdef IS_GENERATED
template <u32 P = 0, u32 SPAN = 1>
static __device__ __forceinline__ void passes(const Words &words, float2 *memory) {
    if constexpr (P < PASSES) {
        constexpr u32 radix = RADICES >> 4 * P & 15;
        pass<radix>(words, memory, SPAN);
        passes<P + 1, SPAN * radix>(words, memory);
    }
}
#else
static __device__ __forceinline__ void passes(const Words &words, float2 *memory) {
    for (u32 p = 0, span = 1; p < PASSES; p++) {
        const u32 radix = RADICES >> 4 * p & 15;
        switch (radix) {
            case 2: pass<2>(words, memory, span); break;
            case 3: pass<3>(words, memory, span); break;
            case 4: pass<4>(words, memory, span); break;
            case 5: pass<5>(words, memory, span); break;
            case 7: pass<7>(words, memory, span); break;
            default: pass<8>(words, memory, span);
        }
        span *= radix;
    }
}
#endif

// What is read and what is written, either of which may be scratch; the chirp's spectrum is there too.
extern "C" __global__ void __launch_bounds__(256) fft(const void *from, const float2 *filter, void *to, const Words words) {
    __shared__ float2 memory[MOST + MOST / 8];
    const u32 first = (blockIdx.y * gridDim.x + blockIdx.x) * BATCH, end = words.word[0];
    const bool in_columns = FLAGS & COLUMNS, across = FLAGS & ACROSS;
#pragma unroll UNDER_WAY
    for (u32 e = threadIdx.x; e < BATCH * LENGTH; e += blockDim.x) {
        const u32 b = in_columns ? e % BATCH : e / LENGTH, i = in_columns ? e / BATCH : e % LENGTH;
        if (first + b < end) memory[place(words, b, i)] = fetched(words, from, filter, first + b, i);
    }
    __syncthreads();
    passes(words, memory);
#pragma unroll UNDER_WAY
    for (u32 e = threadIdx.x; e < BATCH * LENGTH; e += blockDim.x) {
        const u32 b = across ? e % BATCH : e / LENGTH, i = across ? e / BATCH : e % LENGTH;
        if (first + b < end) put(words, to, first + b, i, memory[place(words, b, i)]);
    }
}
