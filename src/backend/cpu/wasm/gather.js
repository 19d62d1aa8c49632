/**
 * Elements of an input for those of an elementwise result from `first` on, as src/plan/map.rs tells where they are: words, 0 where there is
 * none. Without `elements` it is 1 where there is one.
 */
export function gather(elements, words, rank, at, is_bounded, first, out) {
  const last = rank - 1;
  const size = (d) => words[2 + d];
  const stride = (d) => words[at + 1 + d] | 0;
  const begin = (d) => (is_bounded ? words[at + 1 + rank + d] : 0);
  const end = (d) => (is_bounded ? words[at + 1 + rank * 2 + d] : size(d));
  // Where all of them lie one behind the other there are no rows.
  let is_dense = elements && !is_bounded;
  for (let d = last, row = 1; d >= 0; row *= size(d--)) is_dense &&= size(d) === 1 || stride(d) === row;
  if (is_dense) return out.set(elements.subarray(words[at] + first, words[at] + first + out.length));
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
    if (!is_inside || !elements) out.fill(is_inside, to, stop);
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
