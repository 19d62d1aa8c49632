// y = alpha * M * x + beta * c with sums in f32: a product of which one side is a single row or column. M is read once.
//
// M has params.n rows, one for each element of y, and params.k columns; y is a matrix of one row to store.wgsl. A workgroup is GROUPS
// groups of LANES invocations. A group has four neighbouring elements of y, its lanes share the columns, and their sums are added up
// in workgroup memory.
//
//   binding  name    stored as
//   0        a       M: by rows (ALONG = 1), neighbours being neighbouring columns, or by columns (ALONG = 0); lines lda apart
//   1        b       x, k elements, ldb apart; neighbours if B_VEC4
//            read as load.wgsl tells, and those of store.wgsl
//
//   ALONG       lines of M are rows of it; otherwise they are columns.
//   PARTS       as in tiled.wgsl.
//
// What is outside counts as zero by selection, never by multiplication, so that a NaN there cannot spread.

var<workgroup> sums: array<vec4<f32>, GROUPS * LANES>;

// Four elements of a line from one on, zero from the end of the line on.
fn a_line(line: u32, start: u32, end: u32) -> vec4<f32> {
  let i = a_start() + line * params.lda + start;
//# if A_VEC4
  if (start >= end) { return vec4<f32>(); }
  return select(vec4<f32>(), a_four(i / 4u), vec4<u32>(start, start + 1u, start + 2u, start + 3u) < vec4<u32>(end));
//# else
  var v = vec4<f32>();
//# for r in 4
  if (start + $ru < end) { v[$r] = a_at(i + $ru); }
//# end
  return v;
//# end
}

//# if ALONG
fn x_line(start: u32, end: u32) -> vec4<f32> {
//# if B_VEC4
  return select(vec4<f32>(), b_four((b_start() + start) / 4u), vec4<u32>(start, start + 1u, start + 2u, start + 3u) < vec4<u32>(end));
//# else
  var v = vec4<f32>();
//# for r in 4
  if (start + $ru < end) { v[$r] = b_at(b_start() + (start + $ru) * params.ldb); }
//# end
  return v;
//# end
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
  let row = (group.x * GROUPS + mine) * 4u;
//# if PARTS
  let first = part * params.k_part;
  let last = min(params.k, first + params.k_part);
//# else
  let first = 0u;
  let last = params.k;
//# end
  var sum = vec4<f32>();
//# if ALONG
  // A group past the end repeats the last row; nobody stores what it finds.
  let end = params.n - 1u;
  for (var column = first + lane * 4u; column < last; column += LANES * 4u) {
    let along = x_line(column, last);
//# for r in 4
    sum[$r] += dot(a_line(min(row + $ru, end), column, last), along);
//# end
  }
//# else
  // Four lines at once, so that several loads are under way.
  for (var line = first + lane * 4u; line < last; line += LANES * 4u) {
//# for r in 4
    let line_$r = min(line + $ru, last - 1u);
    let i_$r = b_start() + line_$r * params.ldb;
    let a_$r = select(vec4<f32>(), a_line(line_$r, row, params.n), line + $ru < last);
//# if B_VEC4
    let x_$r = select(0.0, b_four(i_$r / 4u)[i_$r % 4u], line + $ru < last);
//# else
    let x_$r = select(0.0, b_at(i_$r), line + $ru < last);
//# end
//# end
//# for r in 4
    sum = fma(a_$r, vec4<f32>(x_$r), sum);
//# end
  }
//# end
  let at = mine * LANES + lane;
  sums[at] = sum;
  for (var half = LANES / 2u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) { sums[at] += sums[at + half]; }
  }
  if (lane == 0u) { store(group.z, 0u, row, sums[at]); }
}
