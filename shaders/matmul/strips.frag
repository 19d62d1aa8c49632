// Puts A into the form in which packed.frag reads it from uniform blocks: strips of ROWS rows, one behind the other. A strip is a vector of
// four steps of k for each of its rows, then of the next four steps, and so on, padded to ldo elements.
//
//   TRANSPOSE_A  A is stored k x m, not m x k.
//
// What lies outside in m and k is zero.
//
// The template's lines begin with //#; kernels/template.rs expands them.

precision highp float;
precision highp int;
precision highp sampler2D;

uniform sampler2D a;

// As in packed.frag.
uniform uint params[67];
#define m params[0]
#define k params[1]
#define lda params[3]
#define ldo params[6]
#define a_start params[7]
#define out_width params[64]
#define a_log2 params[65]
#define a_mask params[66]

out vec4 texel;

float element(uint row, uint at) {
//# if TRANSPOSE_A
  uint i = a_start + at * lda + row;
//# else
  uint i = a_start + row * lda + at;
//# end
  return row < m && at < k ? texelFetch(a, ivec2(i >> 2u & a_mask, i >> 2u >> a_log2), 0)[i & 3u] : 0.0;
}

void main() {
  uint i = uint(gl_FragCoord.y) * out_width + uint(gl_FragCoord.x);
  uint strip = i / (ldo / 4u);
  uint in_strip = i % (ldo / 4u);
  uint row = strip * uint(ROWS) + in_strip % uint(ROWS);
  uint k0 = in_strip / uint(ROWS) * 4u;
  texel = vec4(element(row, k0), element(row, k0 + 1u), element(row, k0 + 2u), element(row, k0 + 3u));
}
