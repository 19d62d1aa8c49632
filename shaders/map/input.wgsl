// An input of a generated kernel: where the element for some coordinates is, and how one or four of them are read.
//
//   F16      elements are of f16, two of them a word       BOOL     elements are words, 0 or 1
//   VEC4     fours start at multiples of 4 elements        SPLAT    the four are one
//   BOUNDED  not all coordinates have an element
//   EDGES    four are so far apart, and only the first and so many behind it are there
//   TURNED   fours change hands as words, HALVES two of them a word

//# if F16
//# if VEC4
@group(0) @binding($binding) var<storage, read> input_$i: array<vec2<u32>>;
fn one_$i(at: u32) -> f32 { return unpack2x16float(input_$i[at / 4u][at / 2u % 2u])[at % 2u]; }
fn four_$i(at: u32) -> vec4<f32> {
  let words = input_$i[at / 4u];
  return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
//# else
@group(0) @binding($binding) var<storage, read> input_$i: array<u32>;
fn one_$i(at: u32) -> f32 { return unpack2x16float(input_$i[at / 2u])[at % 2u]; }
//# end
//# else
//# if VEC4
@group(0) @binding($binding) var<storage, read> input_$i: array<vec4<Stored$i>>;
//# if BOOL
fn one_$i(at: u32) -> Kind$i { return input_$i[at / 4u][at % 4u] != 0u; }
fn four_$i(at: u32) -> vec4<Kind$i> { return input_$i[at / 4u] != vec4<u32>(); }
//# else
fn one_$i(at: u32) -> Kind$i { return input_$i[at / 4u][at % 4u]; }
fn four_$i(at: u32) -> vec4<Kind$i> { return input_$i[at / 4u]; }
//# end
//# else
@group(0) @binding($binding) var<storage, read> input_$i: array<Stored$i>;
//# if BOOL
fn one_$i(at: u32) -> Kind$i { return input_$i[at] != 0u; }
//# else
fn one_$i(at: u32) -> Kind$i { return input_$i[at]; }
//# end
//# end
//# end
//# if VEC4
//# else
//# if SPLAT
fn four_$i(at: u32) -> vec4<Kind$i> { return vec4<Kind$i>(one_$i(at)); }
//# else
fn four_$i(at: u32) -> vec4<Kind$i> {
  let step = word($lastu);
  return vec4<Kind$i>(one_$i(at), one_$i(at + step), one_$i(at + 2u * step), one_$i(at + 3u * step));
}
//# end
//# end
//# if EDGES
//# if VEC4
fn some_$i(at: u32, behind: u32) -> vec4<Kind$i> { return four_$i(at); }
//# else
fn some_$i(at: u32, behind: u32) -> vec4<Kind$i> {
  let step = word($lastu);
  let second = one_$i(at + min($apartu, behind) * step);
  return vec4<Kind$i>(one_$i(at), second, one_$i(at + min(2u * $apartu, behind) * step), one_$i(at + min(3u * $apartu, behind) * step));
}
//# end
//# end
//# if TURNED
//# if HALVES
//# if VEC4
fn words_of_$i(at: u32, behind: u32) -> vec2<u32> { return input_$i[at / 4u]; }
//# else
fn half_$i(at: u32) -> u32 { return (input_$i[at / 2u] >> (at % 2u * 16u)) & 0xffffu; }
fn words_of_$i(at: u32, behind: u32) -> vec2<u32> {
  let step = word($lastu);
  let first = half_$i(at) | (half_$i(at + min($apartu, behind) * step) << 16u);
  return vec2<u32>(first, half_$i(at + min(2u * $apartu, behind) * step) | (half_$i(at + min(3u * $apartu, behind) * step) << 16u));
}
//# end
fn words_as_$i(v: vec2<u32>) -> vec4<f32> { return vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)); }
//# else
//# if BOOL
fn words_of_$i(at: u32, behind: u32) -> vec4<u32> { return select(vec4<u32>(), vec4<u32>(1u), some_$i(at, behind)); }
fn words_as_$i(v: vec4<u32>) -> vec4<bool> { return v != vec4<u32>(); }
//# else
fn words_of_$i(at: u32, behind: u32) -> vec4<u32> { return bitcast<vec4<u32>>(some_$i(at, behind)); }
fn words_as_$i(v: vec4<u32>) -> vec4<Kind$i> { return bitcast<vec4<Kind$i>>(v); }
//# end
//# end
//# end

fn at_$i(c: array<u32, $rank>) -> u32 {
  var at = word($atu);
//# for d in RANK
  at += c[$d] * word($atu + 1u + $du);
//# end
  return at;
}
//# if BOUNDED
// Without a branch: of the many in a reduction SwiftShader's compiler comes to no end.
fn is_inside_$i_at(c: array<u32, $rank>) -> bool {
  var inside = true;
//# for d in RANK
  inside = inside & (c[$d] >= word($boundsu + $du)) & (c[$d] < word($boundsu + $ranku + $du));
//# end
  return inside;
}
//# end
