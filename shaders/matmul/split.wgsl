// An operand of f32 in two terms of f16: x = (h + l / 2048) * 2^-s, h the f16 next to x * 2^s and l what it lacks, with a power of two
// for each row of A or column of B, a line of k here, by which its largest element is from 2^14 to 2^15. Nothing overflows then, and what is
// 2^29 times smaller than that still has all bits of both terms.
//
//   binding  name    stored as
//   0        a       m x n, of which ldo and the rest are as in store.wgsl
//   2        out     for each item: h, then l, each m rows of ldo elements of f16, then s of each line, as an f16 at the start of eight
//
//   ALONG       lines are stored rows; otherwise they are columns, of which an invocation sees four at once.
//   LANES       invocations, each with four loads under way, that share a line, or four, of which a workgroup has GROUPS.
//   A_VEC4      rows of a start at multiples of 4 elements.

//# if A_VEC4
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
//# else
@group(0) @binding(0) var<storage, read> a: array<f32>;
//# end

var<workgroup> largest: array<vec4<f32>, THREADS>;

// Four elements of a row from a column on; zeros outside.
fn four(row: u32, column: u32) -> vec4<f32> {
  let i = a_start() + row * params.lda + column;
  let inside = column + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(params.n);
//# if A_VEC4
  return select(vec4<f32>(), a[i / 4u], inside);
//# else
  let j = i + min(vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n - 1u - column));
  return select(vec4<f32>(), vec4<f32>(a[j.x], a[j.y], a[j.z], a[j.w]), inside);
//# end
}

// The exponent by which a line is scaled. Infinity and NaN scale nothing, and spread.
fn exponent(most: f32) -> i32 {
  let e = i32((bitcast<u32>(most) >> 23u) & 255u);
  return select(min(141 - e, 126), 0, e == 255);
}

// The f16s next to four numbers, by their bits where f16 has eleven and by their multiples of its smallest number below: a compiler may take
// packing and unpacking for nothing, and their difference from the numbers for zero.
fn near(x: vec4<f32>) -> vec4<f32> {
  let normal = bitcast<vec4<f32>>((bitcast<vec4<u32>>(x) + vec4<u32>(0x1000u)) & vec4<u32>(0xffffe000u));
  return select(normal, round(x * 16777216.0) / 16777216.0, abs(x) < vec4<f32>(0.00006103515625));
}

// Puts four elements and their second terms where the item's are.
fn put(at: u32, x: vec4<f32>) {
  let h = near(x);
  let l = (x - h) * 2048.0;
  out[at / 4u] = vec2<u32>(pack2x16float(h.xy), pack2x16float(h.zw));
  out[(at + params.m * params.ldo) / 4u] = vec2<u32>(pack2x16float(l.xy), pack2x16float(l.zw));
}

fn put_exponent(at: u32, e: i32) { out[at / 4u] = vec2<u32>(pack2x16float(vec2<f32>(f32(e), 0.0)), 0u); }

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32, @builtin(num_workgroups) groups: vec3<u32>,
) {
  begin(group.z);
//# if ALONG
  let lines = params.m;
  const width = 1u;
  let mine = thread / LANES;
  let lane = thread % LANES;
//# else
  let lines = params.n;
  const width = 4u;
  let mine = thread % GROUPS;
  let lane = thread / GROUPS;
//# end
  let item = group.z * (2u * params.m * params.ldo + lines * 8u);
  for (var first = group.x * (GROUPS * width); first < lines; first += groups.x * (GROUPS * width)) {
    let line = first + mine * width;
    let is_mine = line < lines;
    var most = vec4<f32>();
    if (is_mine) {
//# if ALONG
      for (var k = lane * 4u; k < params.n; k += LANES * 16u) {
//# for u in 4
        let x_$u = four(line, min(k + $uu * LANES * 4u, params.n - 1u) / 4u * 4u);
//# end
        most = max(max(max(most, abs(x_0)), max(abs(x_1), abs(x_2))), abs(x_3));
      }
//# else
      for (var k = lane; k < params.m; k += LANES * 4u) {
//# for u in 4
        let x_$u = four(min(k + $uu * LANES, params.m - 1u), line);
//# end
        most = max(max(max(most, abs(x_0)), max(abs(x_1), abs(x_2))), abs(x_3));
      }
//# end
    }
    let at = mine * LANES + lane;
    largest[at] = most;
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
      workgroupBarrier();
      if (lane < half) { largest[at] = max(largest[at], largest[at + half]); }
    }
    workgroupBarrier();
    most = largest[mine * LANES];
    // The next turn writes there.
    workgroupBarrier();
//# if ALONG
    let e = exponent(max(max(most.x, most.y), max(most.z, most.w)));
    let scale = vec4<f32>(power(e));
    if (is_mine) {
      for (var k = lane * 4u; k < params.n; k += LANES * 16u) {
//# for u in 4
        let k_$u = k + $uu * LANES * 4u;
        let x_$u = four(line, min(k_$u, params.n - 1u) / 4u * 4u);
//# end
//# for u in 4
        if (k_$u < params.n) { put(item + line * params.ldo + k_$u, x_$u * scale); }
//# end
      }
      if (lane == 0u) { put_exponent(item + 2u * params.m * params.ldo + line * 8u, e); }
    }
//# else
    let e = vec4<i32>(exponent(most.x), exponent(most.y), exponent(most.z), exponent(most.w));
    let scale = vec4<f32>(power(e.x), power(e.y), power(e.z), power(e.w));
    if (is_mine) {
      for (var k = lane; k < params.m; k += LANES * 4u) {
//# for u in 4
        let k_$u = k + $uu * LANES;
        let x_$u = four(min(k_$u, params.m - 1u), line);
//# end
//# for u in 4
        if (k_$u < params.m) { put(item + k_$u * params.ldo + line, x_$u * scale); }
//# end
      }
//# for r in 4
      if (lane == 0u && line + $ru < lines) { put_exponent(item + 2u * params.m * params.ldo + (line + $ru) * 8u, e[$r]); }
//# end
    }
//# end
  }
}

// 2^e, for e from -126 to 127.
fn power(e: i32) -> f32 { return bitcast<f32>(u32(e + 127) << 23u); }
