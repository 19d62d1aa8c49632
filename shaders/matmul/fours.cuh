// Operands that are read as they lie, four elements at once, for kernels of products straight from memory.

#if OPERANDS_F16
typedef Half Element;
#else
typedef float Element;
#endif

static __device__ unsigned least(unsigned x, unsigned y) { return x < y ? x : y; }

static __device__ void read_four(float (&to)[4], const float *from) {
    const float4 v = *reinterpret_cast<const float4 *>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

static __device__ void read_four(float (&to)[4], const Half *from) {
    const ushort4 v = *reinterpret_cast<const ushort4 *>(from);
    to[0] = widened(Half{v.x}), to[1] = widened(Half{v.y}), to[2] = widened(Half{v.z}), to[3] = widened(Half{v.w});
}

// Whether all fours start at multiples of four elements that start so far into an operand, in lines and items so far apart.
static __device__ bool are_fours(unsigned start, unsigned stride, unsigned outer, unsigned inner) {
    return ((start | stride | outer | inner) & 3) == 0;
}
