// Where the values of a row are.
//
//   KEPT, REDUCED  dimensions of rows, and of the values in each       FLAT  REDUCED is 1

// The coordinates of a row.
fn coordinates(row: u32) -> array<u32, RANK> {
  var c: array<u32, RANK>;
  var rest = row;
//# for d in KEPT
  c[KEPT - 1u - $du] = rest % word(SIZES + KEPT - 1u - $du);
  rest /= word(SIZES + KEPT - 1u - $du);
//# end
  return c;
}

// The coordinates of a row's i-th value.
fn along(c: array<u32, RANK>, i: u32) -> array<u32, RANK> {
  var at = c;
//# if FLAT
  at[RANK - 1u] = i;
//# else
  var rest = i;
//# for d in REDUCED
  at[RANK - 1u - $du] = rest % word(SIZES + RANK - 1u - $du);
  rest /= word(SIZES + RANK - 1u - $du);
//# end
//# end
  return at;
}
