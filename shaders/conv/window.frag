// What slides over images, for WebGL2, as window.wgsl for others: the words of a window along one dimension begin at `w`.

#define input_of(w) params[w]
#define taps_of(w) params[(w) + 1u]
#define stride_of(w) params[(w) + 2u]
#define dilation_of(w) params[(w) + 3u]
#define before_of(w) params[(w) + 4u]
#define after_of(w) params[(w) + 5u]
#define steps_of(w) params[(w) + 6u]

uniform sampler2D input_0;
f32 image_at(uint i) { return texelFetch(input_0, ivec2(i >> 2u & params[66], i >> 2u >> params[65]), 0)[i & 3u]; }

// Where a window begins.
int start_of(uint w, uint i) { return int(i * stride_of(w)) - int(before_of(w)); }
// Its first tap at or behind a place.
uint first_tap(uint w, int start, uint place) {
  return min((uint(max(int(place) - start, 0)) + dilation_of(w) - 1u) / dilation_of(w), taps_of(w));
}
