/**
 * Elements of an input for those of an elementwise result from `first` on, as src/plan/map.rs tells where they are: words, 0 where there is
 * none.
 */
export function gather(elements, words, rank, at, is_bounded, first, out) {
  // Where all of them lie one behind the other there are no rows.
  let is_dense = !is_bounded;
  for (let d = rank - 1, behind = 1; d >= 0; behind *= words[2 + d--]) {
    const stride = words[at + 1 + d];
    is_dense &&= words[2 + d] === 1 || stride === behind;
  }
  if (is_dense) return out.set(elements.subarray(words[at] + first, words[at] + first + out.length));
  gather_rows(elements, words, rank, at, is_bounded, first, out);
}

/** The same row by row. */
function gather_rows(elements, words, rank, at, is_bounded, first, out) {
  const last = rank - 1;
  const size = (d) => words[2 + d];
  const stride = (d) => words[at + 1 + d] | 0;
  const begin = (d) => (is_bounded ? words[at + 1 + rank + d] : 0);
  const end = (d) => (is_bounded ? words[at + 1 + rank * 2 + d] : size(d));
  const place = [];
  for (let d = last, rest = first; d >= 0; d--) {
    place[d] = rest % size(d);
    rest = Math.floor(rest / size(d));
  }
  for (let to = 0; to < out.length; ) {
    let from = words[at];
    let is_inside = true;
    for (let d = 0; d < rank; d++) {
      from = (from + Math.imul(place[d], stride(d))) >>> 0;
      is_inside &&= place[d] >= begin(d) && place[d] < end(d);
    }
    // Up to the row's end, or to where the bounds begin or end.
    const edge = [begin(last), end(last), size(last)].find((edge) => edge > place[last]);
    const stop = Math.min(to + edge - place[last], out.length);
    place[last] += stop - to;
    const step = stride(last);
    if (!is_inside) out.fill(0, to, stop);
    else if (step === 0) out.fill(elements[from], to, stop);
    else if (step === 1 && stop - to > 16) out.set(elements.subarray(from, from + stop - to), to);
    else for (let i = to; i < stop; i++, from += step) out[i] = elements[from];
    to = stop;
    for (let d = last; d > 0 && place[d] === size(d); d--) {
      place[d] = 0;
      place[d - 1]++;
    }
  }
}
