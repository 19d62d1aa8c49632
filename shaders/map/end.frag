// What is computed of a result before it is written, as end.wgsl has it.

f32 end_scalar_f32(uint i) { return uintBitsToFloat(params[uint($scalars) + i]); }
i32 end_scalar_i32(uint i) { return int(params[uint($scalars) + i]); }
u32 end_scalar_u32(uint i) { return params[uint($scalars) + i]; }
bool end_scalar_bool(uint i) { return params[uint($scalars) + i] != 0u; }

uint[$rank] end_coordinates(uint index) {
  uint c[$rank];
  uint rest = index;
//# for d in RANK
  c[$rank - 1 - $d] = rest % params[$at + 1 + $rank - $d];
  rest /= params[$at + 1 + $rank - $d];
//# end
  return c;
}
