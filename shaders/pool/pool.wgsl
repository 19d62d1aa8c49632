// Pools: each invocation four elements of the result, one behind the other, each from its own window.
//
//   binding  name    stored as
//   0        values  planes, each depth x height x width
//   3        params  as src/plan/pool.rs has them
//   7        out     whole vec4s, for which there is room
//
//   MAX      the largest element inside of the input, or its PLACE; otherwise the mean, with PADDED what is padded counting as zeros

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
@group(0) @binding(7) var<storage, read_write> out: array<vec4<f32>>;
fn put(i: u32, v: vec4<f32>) { out[i] = v; }
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
