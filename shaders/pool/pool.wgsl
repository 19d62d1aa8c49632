// Pools: each invocation four elements of the result, one behind the other, each from its own window; or four neighbours each of several rows.
//
//   binding  name    stored as
//   0        values  planes, each depth x height x width
//   3        params  as src/plan/pool.rs has them
//   7        out     whole vec4s, for which there is room; elements with LINES and without OUT_VEC4
//
//   MAX      the largest element inside of the input, or its PLACE; otherwise the mean, with PADDED what is padded counting as zeros
//   LINES    of the result an invocation has four neighbours each, in so many rows below one another, if not 0: what their windows see,
//            SEEN_Y x SEEN_X elements, is read once, and the four of a row are made of it only once. Windows have no depth then.

@group(0) @binding(3) var<uniform> params: array<vec4<u32>, 16>;
fn word(i: u32) -> u32 { return params[i / 4u][i % 4u]; }

//# if OPERANDS_F16
@group(0) @binding(0) var<storage, read> values: array<u32>;
fn value_at(i: u32) -> f32 { return unpack2x16float(values[i / 2u])[i % 2u]; }
//# else
@group(0) @binding(0) var<storage, read> values: array<f32>;
fn value_at(i: u32) -> f32 { return values[i]; }
//# end

//# if PLACE
@group(0) @binding(7) var<storage, read_write> out: array<vec4<u32>>;
fn put(i: u32, v: vec4<u32>) { out[i] = v; }
//# else
//# if OPERANDS_F16
@group(0) @binding(7) var<storage, read_write> out: array<vec2<u32>>;
fn put(i: u32, v: vec4<f32>) { out[i] = pack_four(v); }
//# else
//# if OUT_VEC4
@group(0) @binding(7) var<storage, read_write> out: array<vec4<f32>>;
fn put(i: u32, v: vec4<f32>) { out[i] = v; }
//# else
@group(0) @binding(7) var<storage, read_write> out: array<f32>;
//# end
//# end
//# end

// A window along one dimension; the words of it begin there.
struct Window { input: u32, taps: u32, stride: u32, dilation: u32, before: u32, after: u32, steps: u32 }
fn window(w: u32) -> Window {
  return Window(word(w), word(w + 1u), word(w + 2u), word(w + 3u), word(w + 4u), word(w + 5u), word(w + 6u));
}

// The first tap at or behind a place.
fn first_tap(w: Window, start: i32, place: u32) -> u32 {
  let far = u32(max(i32(place) - start, 0));
  // To divide takes longer than all else here, and most dilations are 1.
  if (w.dilation == 1u) { return min(far, w.taps); }
  return min((far + w.dilation - 1u) / w.dilation, w.taps);
}

// The coordinates of an element of the result, and its plane.
fn coordinates(index: u32, x: Window, y: Window, z: Window) -> vec4<u32> {
  let line = index / x.steps;
  let layer = line / y.steps;
  let plane = layer / z.steps;
  return vec4<u32>(index - line * x.steps, line - layer * y.steps, layer - plane * z.steps, plane);
}

// Those of the next.
fn next(c: vec4<u32>, x: Window, y: Window, z: Window) -> vec4<u32> {
  if (c.x + 1u < x.steps) { return vec4<u32>(c.x + 1u, c.yzw); }
  if (c.y + 1u < y.steps) { return vec4<u32>(0u, c.y + 1u, c.zw); }
  if (c.z + 1u < z.steps) { return vec4<u32>(0u, 0u, c.z + 1u, c.w); }
  return vec4<u32>(0u, 0u, 0u, c.w + 1u);
}

//# if MAX
fn is_nan(a: f32) -> bool { return (bitcast<u32>(a) & 0x7fffffffu) > 0x7f800000u; }
//# end

//# if LINES
//# if MAX
// The larger one, or the first that is not a number.
fn joined(a: f32, b: f32) -> f32 { return select(a, b, !is_nan(a) && (is_nan(b) || b > a)); }
//# else
fn joined(a: f32, b: f32) -> f32 { return a + b; }

// How many elements count that a window has along a dimension.
fn counted(w: Window, step: u32) -> f32 {
  let start = i32(step * w.stride) - i32(w.before);
//# if PADDED
  return f32(first_tap(w, start, w.input + w.after));
//# else
  return f32(first_tap(w, start, w.input) - first_tap(w, start, 0u));
//# end
}
//# end

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let y = window(10u);
  let x = window(17u);
  let i = (group.y * groups.x + group.x) * THREADS + local;
  let across = (x.steps + 3u) / 4u;
  let down = (y.steps + LINES - 1u) / LINES;
  let plane = i / (across * down);
  if (plane * x.steps * y.steps >= word(0u)) { return; }
  let column = i % across * 4u;
  let line = i / across % down * LINES;
  // What is before the input wraps round, and so counts as far behind it.
  let left = column * STRIDE_X - x.before;
  let top = line * y.stride - y.before;
//# for v in SEEN_X
  let inside_$v = left + $vu < x.input;
  let x_$v = select(0u, left + $vu, inside_$v);
//# end
//# if MAX
  // There is no way to write an infinity but as its bits.
  let none = bitcast<f32>(word(2u));
//# else
  let none = 0.0;
//# end
//# for l in LINES
  var value_$l = vec4<f32>(none);
//# end
  for (var s = 0u; s < SEEN_Y; s++) {
    if (top + s >= y.input) { continue; }
    let row = (plane * y.input + top + s) * x.input;
    var seen: array<f32, SEEN_X>;
//# for v in SEEN_X
    seen[$v] = select(none, value_at(row + x_$v), inside_$v);
//# end
    var of_row = vec4<f32>(seen[0], seen[STRIDE_X], seen[2 * STRIDE_X], seen[3 * STRIDE_X]);
//# for j in MORE_X
//# for q in 4
    of_row[$q] = joined(of_row[$q], seen[$q * STRIDE_X + ($j + 1) * DILATION_X]);
//# end
//# end
//# for l in LINES
    let tap_$l = (s - $lu * y.stride) / DILATION_Y;
    if (tap_$l < y.taps && s == $lu * y.stride + tap_$l * DILATION_Y) {
//# for q in 4
      value_$l[$q] = joined(value_$l[$q], of_row[$q]);
//# end
    }
//# end
  }
//# if MAX
//# else
  let of_columns = vec4(counted(x, column), counted(x, column + 1u), counted(x, column + 2u), counted(x, column + 3u));
//# end
//# for l in LINES
  if (line + $lu < y.steps) {
//# if MAX
    let v = value_$l;
//# else
    let v = value_$l / (counted(y, line + $lu) * of_columns);
//# end
    let at = (plane * y.steps + line + $lu) * x.steps + column;
//# if OUT_VEC4
    put(at / 4u, v);
//# else
//# for q in 4
    if (column + $qu < x.steps) { out[at + $qu] = v[$q]; }
//# end
//# end
  }
//# end
}
//# else
//# if PLACE
fn value(c: vec4<u32>, x: Window, y: Window, z: Window) -> u32 {
//# else
fn value(c: vec4<u32>, x: Window, y: Window, z: Window) -> f32 {
//# end
  let plane = c.w;
  let start_z = i32(c.z * z.stride) - i32(z.before);
  let start_y = i32(c.y * y.stride) - i32(y.before);
  let start_x = i32(c.x * x.stride) - i32(x.before);
  let end_z = first_tap(z, start_z, z.input);
  let end_y = first_tap(y, start_y, y.input);
  let end_x = first_tap(x, start_x, x.input);
  let first_z = first_tap(z, start_z, 0u);
  let first_y = first_tap(y, start_y, 0u);
  let first_x = first_tap(x, start_x, 0u);
//# if MAX
  // There is no way to write an infinity but as its bits.
  var best = bitcast<f32>(word(2u));
  // The first of the plane, if there is none.
  var place = plane * z.input * y.input * x.input;
  var found = false;
//# else
  var sum = 0.0;
//# end
  for (var h = first_z; h < end_z; h++) {
    let layer = plane * z.input + u32(start_z + i32(h * z.dilation));
    for (var i = first_y; i < end_y; i++) {
      let row = (layer * y.input + u32(start_y + i32(i * y.dilation))) * x.input;
//# if MAX
//# else
      var line = 0.0;
//# end
      for (var j = first_x; j < end_x; j++) {
        let at = row + u32(start_x + i32(j * x.dilation));
        let v = value_at(at);
//# if MAX
        if (!found || (!is_nan(best) && (is_nan(v) || v > best))) {
          best = v;
          place = at;
          found = true;
        }
//# else
        line += v;
//# end
      }
//# if MAX
//# else
      sum += line;
//# end
    }
  }
//# if PLACE
  return place + word(1u);
//# else
//# if MAX
  return best;
//# else
//# if PADDED
  let count = f32(first_tap(z, start_z, z.input + z.after)) * f32(first_tap(y, start_y, y.input + y.after)) * f32(first_tap(x, start_x, x.input + x.after));
//# else
  let count = f32(end_z - first_z) * f32(end_y - first_y) * f32(end_x - first_x);
//# end
  return sum / count;
//# end
//# end
}

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let first = ((group.y * groups.x + group.x) * THREADS + local) * 4u;
  if (first >= word(0u)) { return; }
  // Of what is not there the last is computed again.
  let more = word(0u) - 1u - first;
  let z = window(3u);
  let y = window(10u);
  let x = window(17u);
  let c = coordinates(first, x, y, z);
  var d = c;
  if (more > 0u) { d = next(c, x, y, z); }
  var e = d;
  if (more > 1u) { e = next(d, x, y, z); }
  var f = e;
  if (more > 2u) { f = next(e, x, y, z); }
  put(first / 4u, vec4(value(c, x, y, z), value(d, x, y, z), value(e, x, y, z), value(f, x, y, z)));
}
//# end
