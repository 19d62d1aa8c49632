// How a product's kernels read their operands, which are bound as a and b: at(i) is an element, four(i) the i-th four of them.
//
//   OPERANDS_F16  elements are of f16, two of them a word.
//   HALF          they stay f16, in which the kernel then computes.
//   *_VEC4        fours can be read; otherwise only elements.

//# if HALF
alias Number = f16;
//# else
alias Number = f32;
//# end

//# if A_VEC4
//# if HALF
@group(0) @binding(0) var<storage, read> a: array<vec4<f16>>;
fn a_four(i: u32) -> vec4<f16> { return a[i]; }
fn a_at(i: u32) -> f16 { return a[i / 4u][i % 4u]; }
//# else
//# if OPERANDS_F16
@group(0) @binding(0) var<storage, read> a: array<vec2<u32>>;
fn a_four(i: u32) -> vec4<f32> {
  let v = a[i];
  return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y));
}
fn a_at(i: u32) -> f32 { return unpack2x16float(a[i / 4u][i / 2u % 2u])[i % 2u]; }
//# else
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
fn a_four(i: u32) -> vec4<f32> { return a[i]; }
fn a_at(i: u32) -> f32 { return a[i / 4u][i % 4u]; }
//# end
//# end
//# else
//# if HALF
@group(0) @binding(0) var<storage, read> a: array<f16>;
fn a_at(i: u32) -> f16 { return a[i]; }
//# else
//# if OPERANDS_F16
@group(0) @binding(0) var<storage, read> a: array<u32>;
fn a_at(i: u32) -> f32 { return unpack2x16float(a[i / 2u])[i % 2u]; }
//# else
@group(0) @binding(0) var<storage, read> a: array<f32>;
fn a_at(i: u32) -> f32 { return a[i]; }
//# end
//# end
//# end
//# if B_VEC4
//# if HALF
@group(0) @binding(1) var<storage, read> b: array<vec4<f16>>;
fn b_four(i: u32) -> vec4<f16> { return b[i]; }
fn b_at(i: u32) -> f16 { return b[i / 4u][i % 4u]; }
//# else
//# if OPERANDS_F16
@group(0) @binding(1) var<storage, read> b: array<vec2<u32>>;
fn b_four(i: u32) -> vec4<f32> {
  let v = b[i];
  return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y));
}
fn b_at(i: u32) -> f32 { return unpack2x16float(b[i / 4u][i / 2u % 2u])[i % 2u]; }
//# else
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
fn b_four(i: u32) -> vec4<f32> { return b[i]; }
fn b_at(i: u32) -> f32 { return b[i / 4u][i % 4u]; }
//# end
//# end
//# else
//# if HALF
@group(0) @binding(1) var<storage, read> b: array<f16>;
fn b_at(i: u32) -> f16 { return b[i]; }
//# else
//# if OPERANDS_F16
@group(0) @binding(1) var<storage, read> b: array<u32>;
fn b_at(i: u32) -> f32 { return unpack2x16float(b[i / 2u])[i % 2u]; }
//# else
@group(0) @binding(1) var<storage, read> b: array<f32>;
fn b_at(i: u32) -> f32 { return b[i]; }
//# end
//# end
//# end
