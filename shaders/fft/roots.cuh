// What Fourier transforms on CUDA have in common: complex numbers, roots of one, and butterflies.

typedef unsigned u32;

struct Words {
    u32 word[64];
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

static __device__ __forceinline__ void dft(float2 (&)[1]) {}

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

// a times the square root of -i.
static __device__ __forceinline__ float2 half_turned(float2 a) { return 0.707106781187f * (a + turned(a)); }

static __device__ __forceinline__ void dft(float2 (&v)[16]) {
    const float2 a = make_float2(0.923879532511f, -0.382683432365f), b = make_float2(0.382683432365f, -0.923879532511f);
    float2 w[4][4];
#pragma unroll
    for (u32 r = 0; r < 4; r++) {
#pragma unroll
        for (u32 q = 0; q < 4; q++) w[r][q] = v[r + 4 * q];
        dft(w[r]);
    }
    w[1][1] = times(w[1][1], a);
    w[1][2] = half_turned(w[1][2]);
    w[1][3] = times(w[1][3], b);
    w[2][1] = half_turned(w[2][1]);
    w[2][2] = turned(w[2][2]);
    w[2][3] = turned(half_turned(w[2][3]));
    w[3][1] = times(w[3][1], b);
    w[3][2] = turned(half_turned(w[3][2]));
    w[3][3] = -1.0f * times(w[3][3], a);
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        float2 r[4] = {w[0][k], w[1][k], w[2][k], w[3][k]};
        dft(r);
#pragma unroll
        for (u32 q = 0; q < 4; q++) v[k + 4 * q] = r[q];
    }
}

// Multiplies a butterfly's elements by powers of w, which are products of halves so that few roundings come together.
template <u32 R>
static __device__ __forceinline__ void turn(float2 (&v)[R], float2 w) {
    float2 powers[R];
#pragma unroll
    for (u32 q = 1; q < R; q++) {
        powers[q] = q > 1 ? times(powers[q / 2], powers[q - q / 2]) : w;
        v[q] = times(v[q], powers[q]);
    }
}
