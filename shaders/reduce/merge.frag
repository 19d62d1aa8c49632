// The end of a reduction by fragment shaders: joins the states of each row's parts; a fragment is the results of four rows.
//
//   INTEGER   results are whole numbers
//   END       more is computed of each, as map/end.frag has it

uniform usampler2D input_0;
//# if INTEGER
#define Texel uvec4
//# else
#define Texel vec4
//# end
out Texel texel;

Output result(uint row) {
  uint i = row * params[5];
  uint end = i + params[5];
  State state = empty();
  while (i < end) {
    State some = empty();
    for (uint stop = min(i + 64u, end); i < stop; i += 1u) {
      some = join(some, loaded(texelFetch(input_0, ivec2(i & params[66], i >> params[65]), 0)));
    }
    state = join(state, some);
  }
//# if END
  return ended(row, finish(state));
//# else
  return finish(state);
//# end
}

void main() {
  uint first = (uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x)) * 4u;
  uint rows = params[0];
  if (first >= rows) discard;
  uint last = rows - 1u;
  texel = Texel(result(first), result(min(first + 1u, last)), result(min(first + 2u, last)), result(min(first + 3u, last)));
}
