// What is told of operands of 8-bit integers.

// Bits of params.result, src/plan/matmul/cuda/int8.rs has the same. The operand is of u8.
#define UNSIGNED_A 1u
#define UNSIGNED_B 2u
// It is stored with k along its rows: A m x k, B n x k; else k x m and k x n.
#define ALONG_K_A 4u
#define ALONG_K_B 8u

// Four bytes of 1.
#define ONES 0x01010101u

// Zero points of what is multiplied, and what makes i8 of four elements of an operand.
struct Zeros {
    unsigned a, b, flip_a, flip_b;

    __device__ explicit Zeros(const Params &params)
        : a(int(params.zero_points << 16) >> 16), b(int(params.zero_points) >> 16),
          flip_a(params.result & UNSIGNED_A ? 0x80808080u : 0), flip_b(params.result & UNSIGNED_B ? 0x80808080u : 0) {}

    // With x and y for what is multiplied, over k steps and then over what is zero as stored, `whole` in all: what is to be added to
    // sum of x y - b * sum of x - a * sum of y.
    __device__ unsigned rest(unsigned k, unsigned whole) const {
        // What is less in an operand of u8.
        const unsigned less_a = flip_a ? 128 : 0, less_b = flip_b ? 128 : 0;
        // Zero as stored is -less, and so each step behind k has added (a - less_a)(b - less_b) - a b to it.
        return k * a * b + (whole - k) * (a * b - (a + less_a) * (b + less_b));
    }
};

// Two sums side by side in a row of so many.
static __device__ void put_two(unsigned *row, unsigned column, unsigned columns, unsigned x, unsigned y) {
    unsigned *const to = row + column;
    if (column + 1 < columns && reinterpret_cast<size_t>(to) % 8 == 0) {
        *reinterpret_cast<uint2 *>(to) = make_uint2(x, y);
        return;
    }
    if (column < columns) to[0] = x;
    if (column + 1 < columns) to[1] = y;
}
