// Y = alpha * M * X + beta * C with sums in f32: a product of which one side is a few rows or columns, TURNS * TURN at most, which are the
// vectors of X and Y here. M is read once.
//
// M has a row for each element of a vector of Y, and params.k columns. A workgroup is GROUPS groups of LANES invocations. A group has FOURS fours
// of neighbouring elements of each vector, its lanes share the columns, and their sums are added up in workgroup memory, TURN vectors at a time.
//
//   binding  name    stored as
//   0        a       M: by rows (ALONG = 1), neighbours being neighbouring columns, or by columns (ALONG = 0); lines lda apart
//   1        b       X, k elements of each vector: neighbours being of one vector (X_ALONG = 1), the vectors ldb apart, or of one column
//                    of M (X_ALONG = 0), what is for the next ldb further
//            read as load.wgsl tells, and those of store.wgsl
//
//   ALONG       lines of M are rows of it; otherwise they are columns.
//   X_FOURS     fours of neighbouring vectors can be read: X_ALONG is 0, and TURN is 4.
//   TALL        the vectors are columns of the result; otherwise they are rows of it.
//   PARTS       as in tiled.wgsl.
//
// What is outside counts as zero by selection, never by multiplication, so that a NaN there cannot spread.

var<workgroup> sums: array<vec4<f32>, THREADS * TURN>;

//# if TALL
fn elements() -> u32 { return params.m; }
fn vectors() -> u32 { return params.n; }
//# else
fn elements() -> u32 { return params.n; }
fn vectors() -> u32 { return params.m; }
//# end

// Four elements of a line from one on, of which the first is inside, zero from the end of the line on. All are loaded, since loads that wait
// for a choice wait for one another.
fn a_line(line: u32, start: u32, end: u32) -> vec4<f32> {
  let i = a_start() + line * params.lda;
  let inside = vec4<u32>(start, start + 1u, start + 2u, start + 3u) < vec4<u32>(end);
//# if A_VEC4
  return select(vec4<f32>(), a_four((i + start) / 4u), inside);
//# else
  var v = vec4<f32>();
//# for r in 4
  v[$r] = a_at(i + min(start + $ru, end - 1u));
//# end
  return select(vec4<f32>(), v, inside);
//# end
}

// What four columns of M from one on are multiplied by for a vector, zero from the end on; past the last vector that is repeated, which nobody
// stores.
fn x_columns(vector: u32, start: u32, end: u32) -> vec4<f32> {
  let inside = vec4<u32>(start, start + 1u, start + 2u, start + 3u) < vec4<u32>(end);
  let x = min(vector, vectors() - 1u);
//# if X_ALONG
  let i = b_start() + x * params.ldb;
//# if B_VEC4
  return select(vec4<f32>(), b_four((i + start) / 4u), inside);
//# else
  var v = vec4<f32>();
//# for r in 4
  v[$r] = b_at(i + min(start + $ru, end - 1u));
//# end
  return select(vec4<f32>(), v, inside);
//# end
//# else
  let i = b_start() + x;
  var v = vec4<f32>();
//# for r in 4
  v[$r] = b_at(i + min(start + $ru, end - 1u) * params.ldb);
//# end
  return select(vec4<f32>(), v, inside);
//# end
}

//# if X_FOURS
// What a column of M is multiplied by for four vectors from one on.
fn x_vectors(vector: u32, column: u32, end: u32) -> vec4<f32> {
  return select(vec4<f32>(), b_four((b_start() + min(column, end - 1u) * params.ldb + vector) / 4u), column < end);
}
//# end

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
//# if ALONG
  let mine = thread / LANES;
  let lane = thread % LANES;
//# else
  let mine = thread % GROUPS;
  let lane = thread / GROUPS;
//# end
  let part = begin(group.z);
//# for f in FOURS
  let row_$f = ((group.x * FOURS + $fu) * GROUPS + mine) * 4u;
//# end
//# if PARTS
  let first = part * params.k_part;
  let last = min(params.k, first + params.k_part);
//# else
  let first = 0u;
  let last = params.k;
//# end
//# for f in FOURS
//# for t in TURNS
//# for s in TURN
  var sum_$f_$t_$s = vec4<f32>();
//# end
//# end
//# end
  // Past the end the last rows are repeated; nobody stores what is found there.
  let end = elements() - 1u;
//# if ALONG
//# else
//# for f in FOURS
  let start_$f = min(row_$f, end / 4u * 4u);
//# end
//# end
  // Four lines at once, so that several loads are under way.
  for (var column = first + lane * 4u; column < last; column += LANES * 4u) {
//# for f in FOURS
//# for r in 4
//# if ALONG
    let a_$f_$r = a_line(min(row_$f + $ru, end), column, last);
//# else
    let a_$f_$r = select(vec4<f32>(), a_line(min(column + $ru, last - 1u), start_$f, elements()), column + $ru < last);
//# end
//# end
//# end
//# if X_FOURS
//# for r in 4
//# for t in TURNS
    let x_$t_$r = x_vectors($tu * TURN, column + $ru, last);
//# end
//# end
//# for f in FOURS
//# for r in 4
//# if ALONG
    let column_$f_$r = vec4<f32>(a_$f_0[$r], a_$f_1[$r], a_$f_2[$r], a_$f_3[$r]);
//# else
    let column_$f_$r = a_$f_$r;
//# end
//# end
//# for t in TURNS
//# for s in TURN
//# for r in 4
    sum_$f_$t_$s = fma(column_$f_$r, vec4<f32>(x_$t_$r[$s]), sum_$f_$t_$s);
//# end
//# end
//# end
//# end
//# else
//# for t in TURNS
//# for s in TURN
    let x_$t_$s = x_columns($tu * TURN + $su, column, last);
//# for f in FOURS
//# if ALONG
    sum_$f_$t_$s += vec4<f32>(dot(a_$f_0, x_$t_$s), dot(a_$f_1, x_$t_$s), dot(a_$f_2, x_$t_$s), dot(a_$f_3, x_$t_$s));
//# else
//# for r in 4
    sum_$f_$t_$s = fma(a_$f_$r, vec4<f32>(x_$t_$s[$r]), sum_$f_$t_$s);
//# end
//# end
//# end
//# end
//# end
//# end
  }
  let at = mine * LANES + lane;
//# for f in FOURS
//# for t in TURNS
  workgroupBarrier();
//# for s in TURN
  sums[$su * THREADS + at] = sum_$f_$t_$s;
//# end
  for (var half = LANES / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) {
//# for s in TURN
      sums[$su * THREADS + at] += sums[$su * THREADS + at + half];
//# end
    }
  }
  if (lane == 0u) {
//# if TALL
    var turned: array<vec4<f32>, 4>;
//# for s in TURN
//# for r in 4
    turned[$r][$s] = sums[$su * THREADS + at][$r];
//# end
//# end
//# for r in 4
    store(group.z, row_$f + $ru, $tu * TURN, turned[$r]);
//# end
//# else
//# for s in TURN
    store(group.z, $tu * TURN + $su, row_$f, sums[$su * THREADS + at]);
//# end
//# end
  }
//# end
//# end
}
