// Where the values of a row are.
//
//   KEPT  dimensions of rows       ROWS_INNER, VALUES_INNER  how many of them, and of those of the values in each, lie within another

// The coordinates of a row.
fn coordinates(row: u32) -> array<u32, RANK> {
  var c: array<u32, RANK>;
  var rest = row;
//# for d in ROWS_INNER
  c[ROWS_INNER - $du] = rest % word(SIZES + ROWS_INNER - $du);
  rest /= word(SIZES + ROWS_INNER - $du);
//# end
  c[0] = rest;
  return c;
}

// The coordinates of a row's i-th value.
fn along(c: array<u32, RANK>, i: u32) -> array<u32, RANK> {
  var at = c;
  var rest = i;
//# for d in VALUES_INNER
  at[RANK - 1u - $du] = rest % word(SIZES + RANK - 1u - $du);
  rest /= word(SIZES + RANK - 1u - $du);
//# end
  at[KEPT] = rest;
  return at;
}

//# if FLAT
// The coordinates of a value that is told by its number among those of all rows, which lie behind one another.
fn flat(i: u32) -> array<u32, RANK> {
  var at: array<u32, RANK>;
  at[RANK - 1u] = i;
  return at;
}
//# end
