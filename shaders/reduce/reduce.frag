// Folds the values of a reduction by a fragment shader: each fragment is the state of a part of a row, for merge.frag. The words are those
// of reduce.wgsl.
//
//   QUAD           four neighbours of a row are read at once
//   KEPT, REDUCED  dimensions of rows, and of the values in each

out uvec4 texel;

uint[RANK] coordinates(uint row) {
  uint c[RANK];
  uint rest = row;
//# for d in KEPT
  c[KEPT - 1 - $d] = rest % params[SIZES + KEPT - 1 - $d];
  rest /= params[SIZES + KEPT - 1 - $d];
//# end
  return c;
}

uint[RANK] along(uint c[RANK], uint i) {
  uint rest = i;
//# for d in REDUCED
  c[RANK - 1 - $d] = rest % params[SIZES + RANK - 1 - $d];
  rest /= params[SIZES + RANK - 1 - $d];
//# end
  return c;
}

void main() {
  uint number = uint(gl_FragCoord.y) * params[64] + uint(gl_FragCoord.x);
  uint row = number / params[5];
  if (row >= params[0]) discard;
  uint c[RANK] = coordinates(row);
  uint index = row * params[2];
  uint i = number % params[5] * params[4];
  // A row may be so long that what is behind it has no number.
  uint end = i + min(params[4], params[2] - i);
  State state = empty();
  while (i < end) {
//# if MOMENTS
    pivot = value(along(c, i), index + i);
//# end
    // Sums of sums lose less than one long sum.
    State some = empty();
    for (uint stop = i + min(64u, end - i); i < stop;) {
//# if QUAD
      Results v = four(along(c, i), index + i);
      some = join(some, join(join(lift(v.x, i), lift(v.y, i + 1u)), join(lift(v.z, i + 2u), lift(v.w, i + 3u))));
      i += 4u;
//# else
      some = join(some, lift(value(along(c, i), index + i), i));
      i += 1u;
//# end
    }
    state = join(state, some);
  }
  texel = stored(state);
}
