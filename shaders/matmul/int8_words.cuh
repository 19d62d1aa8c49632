// Operands of products of 8-bit integers by words of four elements of k, which one instruction multiplies and adds up.

// Four elements from one on, of which so many are wanted; the others are whatever is there. No word is read that has none of them.
static __device__ unsigned four_at(const unsigned *words, size_t at, unsigned wanted) {
    const unsigned low = words[at / 4];
    const unsigned high = at % 4 == 0 ? low : words[(at + wanted - 1) / 4];
    return __funnelshift_r(low, high, at % 4 * 8);
}

// The columns of four by four elements, whose rows these words are.
static __device__ uint4 turned(uint4 rows) {
    const unsigned xy_low = __byte_perm(rows.x, rows.y, 0x5140), zw_low = __byte_perm(rows.z, rows.w, 0x5140);
    const unsigned xy_high = __byte_perm(rows.x, rows.y, 0x7362), zw_high = __byte_perm(rows.z, rows.w, 0x7362);
    return make_uint4(
        __byte_perm(xy_low, zw_low, 0x5410), __byte_perm(xy_low, zw_low, 0x7632), __byte_perm(xy_high, zw_high, 0x5410),
        __byte_perm(xy_high, zw_high, 0x7632)
    );
}

// Four by four elements: steps of k from one on, before `end`, of lines from one on, of which there are `side`. Where k runs along stored rows they are
// a word of each of four rows, and where it runs across them a word of each of four, turned. The last line is repeated, and what is behind the end
// of k is zero.
static __device__ uint4 four_by_four(
    const unsigned *words, size_t first, size_t stride, bool along_k, unsigned line, unsigned side, unsigned k, unsigned end, unsigned flip
) {
    if (k >= end) {
        return make_uint4(0, 0, 0, 0);
    }
    const unsigned left = min(4u, end - k);
    uint4 block;
    if (along_k) {
        const size_t from = first + k;
        block.x = four_at(words, from + min(line, side - 1) * stride, left);
        block.y = four_at(words, from + min(line + 1, side - 1) * stride, left);
        block.z = four_at(words, from + min(line + 2, side - 1) * stride, left);
        block.w = four_at(words, from + min(line + 3, side - 1) * stride, left);
    } else {
        const unsigned column = min(line, (side - 1) / 4 * 4), wanted = min(4u, side - column);
        const size_t from = first + column;
        block = turned(make_uint4(
            four_at(words, from + k * stride, wanted), four_at(words, from + min(k + 1, end - 1) * stride, wanted),
            four_at(words, from + min(k + 2, end - 1) * stride, wanted), four_at(words, from + min(k + 3, end - 1) * stride, wanted)
        ));
    }
    const unsigned inside = left == 4 ? ~0u : (1u << left * 8) - 1;
    return make_uint4((block.x ^ flip) & inside, (block.y ^ flip) & inside, (block.z ^ flip) & inside, (block.w ^ flip) & inside);
}

static __device__ unsigned product(unsigned x, unsigned y, unsigned sum) {
    unsigned to;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(to) : "r"(x), "r"(y), "r"(sum));
    return to;
}
