// What is computed of a result before it is written: what element o of the result that a kernel sees is among all of it. Its words are the
// number of the first element, how many there are, the sizes, and those of its inputs (src/plan/fused.rs).

fn end_index(o: u32) -> u32 { return min(word($atu) + o, word($atu + 1u) - 1u); }

fn end_coordinates(index: u32) -> array<u32, $rank> {
  var c: array<u32, $rank>;
  var rest = index;
//# for d in INNER
  c[$ranku - 1u - $du] = rest % word($atu + 1u + $ranku - $du);
  rest /= word($atu + 1u + $ranku - $du);
//# end
  c[0] = rest;
  return c;
}
