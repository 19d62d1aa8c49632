// Which part of a product a block computes, for kernels whose grid has in x the tiles of the result, and in z the items of a batch, as often as k
// has parts.

// Tiles of so many rows run side by side, so that what they read of B is still in the L2 cache.
#define BAND 8u

static __device__ unsigned least(unsigned x, unsigned y) { return x < y ? x : y; }

struct Block {
    // Where its tile begins.
    unsigned row0, column0;
    // Of the batch.
    unsigned item;
    // Its share of k.
    unsigned k0, k;

    __device__ explicit Block(const Params &params) {
        const unsigned tiles_m = (params.m - 1) / TILE_M + 1, tiles_n = (params.n - 1) / TILE_N + 1;
        const unsigned band = blockIdx.x / (BAND * tiles_n), in_band = blockIdx.x % (BAND * tiles_n);
        const unsigned band_m = least(tiles_m - band * BAND, BAND);
        row0 = (band * BAND + in_band % band_m) * TILE_M, column0 = in_band / band_m * TILE_N;
        item = blockIdx.z % params.batch, k0 = blockIdx.z / params.batch * params.k_part;
        k = params.k_part > 0 ? least(params.k - k0, params.k_part) : params.k;
    }

    __device__ unsigned steps() const { return k / TILE_K + (k % TILE_K != 0); }
};
