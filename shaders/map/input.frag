// An input of a generated kernel, as input.wgsl has it: a texture of four elements a texel, of f32 for floating-point numbers of both sizes,
// else of u32.
//
//   INTEGER  the texture is one of u32
//   QUAD, VEC4, SPLAT, BOUNDED  as in map.frag and input.wgsl

//# if INTEGER
uniform usampler2D input_$i;
//# else
uniform sampler2D input_$i;
//# end
#define texel_$i(t) texelFetch(input_$i, ivec2((t) & params[66 + 2 * $i], (t) >> params[65 + 2 * $i]), 0)
Kind$i one_$i(uint at) { return Kind$i(texel_$i(at >> 2u)[at & 3u]); }
//# if QUAD
//# if VEC4
Four$i four_$i(uint at) { return Four$i(texel_$i(at >> 2u)); }
//# else
//# if SPLAT
Four$i four_$i(uint at) { return Four$i(one_$i(at)); }
//# else
Four$i four_$i(uint at) {
  uint next = params[$last];
  return Four$i(one_$i(at), one_$i(at + next), one_$i(at + 2u * next), one_$i(at + 3u * next));
}
//# end
//# end
//# end
uint at_$i(uint c[$rank]) {
  uint at = params[$at];
//# for d in RANK
  at += c[$d] * params[$at + 1 + $d];
//# end
  return at;
}
//# if BOUNDED
bool is_inside_$i_at(uint c[$rank]) {
  bool inside = true;
//# for d in RANK
  inside = inside && c[$d] >= params[$bounds + $d] && c[$d] < params[$bounds + $rank + $d];
//# end
  return inside;
}
//# end
