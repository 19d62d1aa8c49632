// Puts a result of packed.frag into the form in which operands are stored: four consecutive elements a texel.
//
//   INTEGER  they are words, not numbers of f32.
//
// The template's lines begin with //#; kernels/template.rs expands them.

precision highp float;
precision highp int;
precision highp sampler2D;
precision highp usampler2D;

//# if INTEGER
#define Sampler usampler2D
#define Four uvec4
#define One uint
//# else
#define Sampler sampler2D
#define Four vec4
#define One float
//# end

//# for r in ROWS
uniform Sampler row_$r;
//# end
uniform uint params[4];
#define n params[0]
#define pitch params[1]
#define from_width params[2]
#define out_width params[3]

out Four texel;

One element(uint i) {
  uint row = i / n;
  uint column = i % n;
  uint block = row / uint(ROWS) * pitch + column / 4u;
  ivec2 at = ivec2(block % from_width, block / from_width);
  Four four;
//# for r in ROWS
  if (row % uint(ROWS) == $ru) four = texelFetch(row_$r, at, 0);
//# end
  return four[column % 4u];
}

void main() {
  uint i = (uint(gl_FragCoord.y) * out_width + uint(gl_FragCoord.x)) * 4u;
  texel = Four(element(i), element(i + 1u), element(i + 2u), element(i + 3u));
}
