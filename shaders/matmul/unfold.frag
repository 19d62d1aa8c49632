// Puts a result of packed.frag into the form in which operands are stored: four consecutive elements a texel.
//
// The template's lines begin with //#; kernels/template.rs expands them.

precision highp float;
precision highp int;
precision highp sampler2D;

//# for r in ROWS
uniform sampler2D row_$r;
//# end
uniform uint params[4];
#define n params[0]
#define pitch params[1]
#define from_width params[2]
#define out_width params[3]

out vec4 texel;

float element(uint i) {
  uint row = i / n;
  uint column = i % n;
  uint block = row / uint(ROWS) * pitch + column / 4u;
  ivec2 at = ivec2(block % from_width, block / from_width);
  vec4 four;
//# for r in ROWS
  if (row % uint(ROWS) == $ru) four = texelFetch(row_$r, at, 0);
//# end
  return four[column % 4u];
}

void main() {
  uint i = (uint(gl_FragCoord.y) * out_width + uint(gl_FragCoord.x)) * 4u;
  texel = vec4(element(i), element(i + 1u), element(i + 2u), element(i + 3u));
}
