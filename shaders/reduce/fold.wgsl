// What is kept of the values that were folded so far: `empty` of none, `lift` of one, which is the i-th, `quad` of four that lie a
// step apart, `block` of four times four, and `join` of two such, the first of which came before the second. `finish` is what the result holds.
// `left_out` stands for values that are not there, in whose place the last of a row was read; of variances moments.wgsl leaves them out.
//
//   OF_F32, OF_I32   what values are, else u32
//   SUM, PROD, EXTREME, ARG, MOMENTS, NORM, EXPONENTIAL   which of the folds below
//   DIVIDES          the sum, or of a norm that of squares, by the divisor
//   ROOT             the square root of the variance
//   SMALLEST         of extremes: the smallest
//   COARSE           values are those of f16: sums of f32 tell apart the nearest, and their squares and products of four are numbers of f32
//   EXTREME_OF_F32   the most extreme of f32
//   GENERAL, GENERAL_BLOCK   there is nothing better for four, or for four times four, than their states

//# if OF_F32
alias Value = f32;
//# else
//# if OF_I32
alias Value = i32;
//# else
alias Value = u32;
//# end
//# end

fn divisor() -> f32 { return bitcast<f32>(word(DIVISOR)); }

//# if KEYS
// Numbers in the order of their keys: the larger the key the more extreme, both zeros alike, and NaN before all. No comparison of
// numbers is asked for, with which compilers may do as if there were no NaN.
fn key(v: Value) -> u32 {
//# if OF_F32
  let bits = select(bitcast<u32>(v), 0u, bitcast<u32>(v) == 0x80000000u);
  let sorted = select(bits | 0x80000000u, ~bits, (bits >> 31u) != 0u);
//# else
//# if OF_I32
  let sorted = bitcast<u32>(v) ^ 0x80000000u;
//# else
  let sorted = v;
//# end
//# end
//# if SMALLEST
  let ranked = ~sorted;
//# else
  let ranked = sorted;
//# end
//# if OF_F32
  return select(ranked, 0xffffffffu, is_nan(v));
//# else
  return ranked;
//# end
}
fn value_of(key: u32) -> Value {
//# if SMALLEST
  let sorted = ~key;
//# else
  let sorted = key;
//# end
//# if OF_F32
  let bits = select(~sorted, sorted & 0x7fffffffu, (sorted >> 31u) != 0u);
  return bitcast<f32>(select(bits, key & 0x7fffffffu, key == 0xffffffffu));
//# else
//# if OF_I32
  return bitcast<i32>(sorted ^ 0x80000000u);
//# else
  return sorted;
//# end
//# end
}
//# end

//# if EXTREME_OF_F32
// The most extreme of four where none is NaN, and the largest of their bits without signs, which tell of NaN whatever a compiler makes of a maximum.
fn extreme(v: vec4<f32>) -> f32 {
//# if SMALLEST
  return min(min(v.x, v.y), min(v.z, v.w));
//# else
  return max(max(v.x, v.y), max(v.z, v.w));
//# end
}
fn has_nan(v: vec4<f32>) -> bool {
  let bits = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
  return max(max(bits.x, bits.y), max(bits.z, bits.w)) > 0x7f800000u;
}
//# end

//# if SUM
alias State = Value;
alias Output = Value;
fn empty() -> State { return Value(0); }
fn lift(v: Value, i: u32) -> State { return v; }
fn join(a: State, b: State) -> State { return a + b; }
//# if DIVIDES
fn finish(s: State) -> Output { return s / divisor(); }
//# else
fn finish(s: State) -> Output { return s; }
//# end
fn left_out(v: vec4<Value>) -> vec4<Value> { return vec4<Value>(); }
//# end

//# if PROD
alias Output = Value;
fn left_out(v: vec4<Value>) -> vec4<Value> { return vec4<Value>(Value(1)); }
//# if OF_F32
// A number from 1 up to 2 by a power of two: a product of some may be beyond all numbers where that of all is not. Of zero, infinities and NaN
// the power says nothing.
struct State { part: f32, power: i32 }
// Beyond it nothing comes back.
const MOST_POWER = 1 << 29u;
fn parted(v: f32, power: i32) -> State {
  let bits = bitcast<u32>(v);
  let exponent = (bits >> 23u) & 255u;
  let is_plain = exponent - 1u < 254u;
  let part = bitcast<f32>((bits & 0x807fffffu) | 0x3f800000u);
  return State(select(v, part, is_plain), select(power, power + i32(exponent) - 127, is_plain));
}
fn empty() -> State { return State(1.0, 0); }
fn lift(v: f32, i: u32) -> State {
  let bits = bitcast<u32>(v);
  // What is below all normal numbers is a whole number of the least.
  let whole = f32(bits & 0x7fffffu);
  let is_small = (bits & 0x7f800000u) == 0u;
  return parted(select(v, select(whole, -whole, (bits >> 31u) != 0u), is_small), select(0, -149, is_small));
}
fn join(a: State, b: State) -> State { return parted(a.part * b.part, clamp(a.power + b.power, -MOST_POWER, MOST_POWER)); }
fn quad(v: vec4<f32>, i: u32, step: u32) -> State {
//# if COARSE
  return parted((v.x * v.y) * (v.z * v.w), 0);
//# else
  let sizes = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
  let least = min(min(sizes.x, sizes.y), min(sizes.z, sizes.w));
  let most = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  // From 2^-31 up to 2^31: no product of four is beyond all numbers.
  if (least >= 0x30000000u && most < 0x4f000000u) { return parted((v.x * v.y) * (v.z * v.w), 0); }
  return join(join(lift(v.x, i), lift(v.y, i)), join(lift(v.z, i), lift(v.w, i)));
//# end
}
fn power_of_two(power: i32) -> f32 { return bitcast<f32>(u32(power + 127) << 23u); }
// In two steps, since the power alone may be beyond all numbers.
fn finish(s: State) -> Output {
  let power = clamp(s.power, -160, 254);
  return s.part * power_of_two(power >> 1u) * power_of_two(power - (power >> 1u));
}
//# else
alias State = Value;
fn empty() -> State { return Value(1); }
fn lift(v: Value, i: u32) -> State { return v; }
fn join(a: State, b: State) -> State { return a * b; }
fn finish(s: State) -> Output { return s; }
//# end
//# end

//# if EXTREME
alias State = u32;
alias Output = Value;
fn empty() -> State { return 0u; }
fn lift(v: Value, i: u32) -> State { return key(v); }
fn join(a: State, b: State) -> State { return max(a, b); }
fn finish(s: State) -> Output { return value_of(s); }
//# if EXTREME_OF_F32
fn quad(v: vec4<f32>, i: u32, step: u32) -> State { return select(key(extreme(v)), 0xffffffffu, has_nan(v)); }
//# end
fn left_out(v: vec4<Value>) -> vec4<Value> { return v; }
//# end

//# if ARG
struct State { key: u32, place: u32 }
alias Output = u32;
fn empty() -> State { return State(0u, 0xffffffffu); }
fn lift(v: Value, i: u32) -> State { return State(key(v), i); }
fn join(a: State, b: State) -> State {
  let is_b = (b.key > a.key) | ((b.key == a.key) & (b.place < a.place));
  return State(select(a.key, b.key, is_b), select(a.place, b.place, is_b));
}
// The same where all of the first come before all of the second.
fn behind(a: State, b: State) -> State {
  let is_b = b.key > a.key;
  return State(select(a.key, b.key, is_b), select(a.place, b.place, is_b));
}
fn finish(s: State) -> Output { return s.place; }
//# if EXTREME_OF_F32
fn quad(v: vec4<f32>, i: u32, step: u32) -> State {
  let most = extreme(v);
  let keys = vec4<bool>(is_nan(v.x), is_nan(v.y), is_nan(v.z), is_nan(v.w));
  let is_first = select(v == vec4<f32>(most), keys, has_nan(v));
  let behind = select(select(select(3u, 2u, is_first.z), 1u, is_first.y), 0u, is_first.x);
  return State(select(key(most), 0xffffffffu, has_nan(v)), i + behind * step);
}
//# end
// It is told once more, in a later place.
fn left_out(v: vec4<Value>) -> vec4<Value> { return v; }
//# else
fn behind(a: State, b: State) -> State { return join(a, b); }
//# end

//# if MOMENTS
// Chan, Golub and LeVeque (1983): how many, the mean of squared distances from their mean, since the sum may be beyond all numbers, and the mean
// itself as its distance from one of the values, which is exact where all are far from zero and near one another. Of two such values the nearer is
// kept, so that none that stands out takes digits from the others. Where a distance is beyond 2^60 the spread is 2^-128 of what it is, which else
// may be beyond all numbers too, and the count is below zero.
struct State { count: f32, spread: f32, mean: f32, pivot: f32 }
alias Output = f32;
const FAR = 1.1529215e18;
var<private> pivot: f32;
fn empty() -> State { return State(); }
// One that is no number, or infinite, has no spread: said by bits, since it may be all there is.
fn lift(v: f32, i: u32) -> State { return State(1.0, select(nan_of(v), 0.0, is_finite(v)), v - pivot, pivot); }
// What distances are multiplied by: of the spread's root, and where it is one of any of them that is far.
fn scale_of(is_far: bool) -> f32 { return select(1.0, 5.421011e-20, is_far); }
fn spread_by(s: State, scale: f32) -> f32 {
  let more = select(scale, 1.0, s.count < 0.0);
  return s.spread * more * more;
}
fn join(a: State, b: State) -> State {
  if (a.count == 0.0) { return b; }
  let count = abs(a.count) + abs(b.count);
  let share_a = abs(a.count) / count;
  let share_b = abs(b.count) / count;
  let distance = (b.mean - a.mean) + (b.pivot - a.pivot);
  let is_far = min(a.count, b.count) < 0.0 || abs(distance) > FAR;
  let scale = scale_of(is_far);
  let d = distance * scale;
  let spread = spread_by(a, scale) * share_a + spread_by(b, scale) * share_b + (d * share_a) * (d * share_b);
  let mean_a = a.mean + distance * share_b;
  let mean_b = b.mean - distance * share_a;
  let is_b = abs(mean_b) < abs(mean_a);
  return State(select(count, -count, is_far), spread, select(mean_a, mean_b, is_b), select(a.pivot, b.pivot, is_b));
}
fn quad(v: vec4<f32>, i: u32, step: u32) -> State {
  let near = v - pivot;
  let mean = 0.25 * ((near.x + near.y) + (near.z + near.w));
  let apart = near - mean;
  let size = abs(apart);
  let is_far = max(max(size.x, size.y), max(size.z, size.w)) > FAR;
  let d = apart * (0.5 * scale_of(is_far));
  let s = d * d;
  return State(select(4.0, -4.0, is_far), (s.x + s.y) + (s.z + s.w), mean, pivot);
}
// As one, which is less than to join four.
fn block(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, i: vec4<u32>, step: u32) -> State {
//# if COARSE
  let sums = ((a + b) + (c + d)) * 0.0625;
  let mean = (sums.x + sums.y) + (sums.z + sums.w);
  let squares = (((a - mean) * (a - mean) + (b - mean) * (b - mean)) + ((c - mean) * (c - mean) + (d - mean) * (d - mean))) * 0.0625;
  return State(16.0, (squares.x + squares.y) + (squares.z + squares.w), mean, 0.0);
//# else
  // Each by its share, since their sum may be beyond all numbers.
  let means = ((a - pivot) * 0.0625 + (b - pivot) * 0.0625) + ((c - pivot) * 0.0625 + (d - pivot) * 0.0625);
  let mean = (means.x + means.y) + (means.z + means.w);
  let w = (a - pivot) - mean;
  let x = (b - pivot) - mean;
  let y = (c - pivot) - mean;
  let z = (d - pivot) - mean;
  let size = max(max(abs(w), abs(x)), max(abs(y), abs(z)));
  let is_far = max(max(size.x, size.y), max(size.z, size.w)) > FAR;
  let scale = 0.25 * scale_of(is_far);
  let squares = ((w * scale) * (w * scale) + (x * scale) * (x * scale)) + ((y * scale) * (y * scale) + (z * scale) * (z * scale));
  return State(select(16.0, -16.0, is_far), (squares.x + squares.y) + (squares.z + squares.w), mean, pivot);
//# end
}
fn variance(s: State) -> f32 { return s.spread * (abs(s.count) / divisor()); }
//# if ROOT
fn finish(s: State) -> Output { return sqrt(variance(s)) / scale_of(s.count < 0.0); }
//# else
fn finish(s: State) -> Output {
  let scale = scale_of(s.count < 0.0);
  return variance(s) / scale / scale;
}
//# end
//# end

//# if NORM
// Blue (1978): squares of large numbers by 2^-82, of small ones by 2^75, and of those between, so that each may be a sum of 2^32.
struct State { large: f32, middle: f32, small: f32 }
alias Output = f32;
fn empty() -> State { return State(0.0, 0.0, 0.0); }
fn lift(v: f32, i: u32) -> State {
  // By bits, so that NaN is a large number whatever a compiler makes of comparisons.
  let size = bitcast<u32>(v) & 0x7fffffffu;
  let is_large = size > 0x57000000u;
  let is_small = size < 0x20000000u;
  let s = v * select(select(1.0, 3.7778932e22, is_small), 2.0679515e-25, is_large);
  let square = s * s;
  return State(select(0.0, square, is_large), select(square, 0.0, is_large | is_small), select(0.0, square, is_small));
}
fn join(a: State, b: State) -> State { return State(a.large + b.large, a.middle + b.middle, a.small + b.small); }
fn left_out(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(); }
fn quad(v: vec4<f32>, i: u32, step: u32) -> State {
  let sum = (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
//# if COARSE
  let is_finite = (bitcast<u32>(sum) & 0x7f800000u) != 0x7f800000u;
  return State(select(sum, 0.0, is_finite), select(0.0, sum, is_finite), 0.0);
//# else
  let sizes = bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu);
  let most = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  // From 2^-50 up to 2^47 the squares of smaller ones beside it are nothing, and none is too large.
  if (most - 0x26800000u < 0x30800000u || most == 0u) { return State(0.0, sum, 0.0); }
  return join(join(lift(v.x, i), lift(v.y, i)), join(lift(v.z, i), lift(v.w, i)));
//# end
}
fn finish(s: State) -> Output {
//# if DIVIDES
  let share = 1.0 / divisor();
//# else
  let share = 1.0;
//# end
  if (bitcast<u32>(s.large) != 0u) { return 4.8357033e24 * sqrt((s.large + s.middle * 2.0679515e-25 * 2.0679515e-25) * share); }
  let middle = sqrt(s.middle);
  let small = 2.646978e-23 * sqrt(s.small);
  let larger = max(middle, small);
  let ratio = min(middle, small) / select(1.0, larger, larger > 0.0);
  return larger * sqrt((1.0 + ratio * ratio) * share);
}
//# end

//# if EXPONENTIAL
// The largest value, the sum of all powers by it (Milakov and Gimelshein, 2018), and the largest of the values' bits without their signs,
// which tell of NaN whatever a compiler makes of a maximum.
struct State { top: f32, sum: f32, bits: u32 }
alias Output = f32;
const LARGEST = 3.4028234e38;
const INFINITY = 0x7f800000u;
// The nearest finite number, from which distances are finite or -infinity.
fn pivot(top: f32) -> f32 { return clamp(top, -LARGEST, LARGEST); }
// Far below, a power is zero whatever the driver makes of infinities. That of the largest is 1.
fn power_of(v: f32, pivot: f32) -> f32 { return exp(max(v - pivot, -200.0)); }
fn powers_of(v: vec4<f32>, pivot: f32) -> vec4<f32> { return exp(max(v - pivot, vec4<f32>(-200.0))); }
fn empty() -> State { return State(-LARGEST, 0.0, 0u); }
fn lift(v: f32, i: u32) -> State { return State(v, power_of(v, pivot(v)), bitcast<u32>(v) & 0x7fffffffu); }
fn join(a: State, b: State) -> State {
  let top = max(a.top, b.top);
  let p = pivot(top);
  return State(top, a.sum * power_of(pivot(a.top), p) + b.sum * power_of(pivot(b.top), p), max(a.bits, b.bits));
}
fn largest(v: vec4<f32>) -> f32 { return max(max(v.x, v.y), max(v.z, v.w)); }
fn largest_bits(v: vec4<u32>) -> u32 { return max(max(v.x, v.y), max(v.z, v.w)); }
fn magnitude(v: vec4<f32>) -> vec4<u32> { return bitcast<vec4<u32>>(v) & vec4<u32>(0x7fffffffu); }
fn quad(v: vec4<f32>, i: u32, step: u32) -> State {
  let top = largest(v);
  let s = powers_of(v, pivot(top));
  return State(top, (s.x + s.y) + (s.z + s.w), largest_bits(magnitude(v)));
}
// All by one pivot, which is half the powers.
fn block(a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>, i: vec4<u32>, step: u32) -> State {
  let top = largest(max(max(a, b), max(c, d)));
  let p = pivot(top);
  let s = (powers_of(a, p) + powers_of(b, p)) + (powers_of(c, p) + powers_of(d, p));
  let bits = max(max(magnitude(a), magnitude(b)), max(magnitude(c), magnitude(d)));
  return State(top, (s.x + s.y) + (s.z + s.w), largest_bits(bits));
}
// -infinity, which no constant may say.
fn left_out(v: vec4<f32>) -> vec4<f32> { return vec4<f32>(bitcast<f32>(0xff800000u | (word(0u) & 0u))); }
// Of values among which is NaN or infinity, or of nothing but -infinity, there is no sum in proportion.
fn is_beyond(s: State) -> bool { return s.bits > INFINITY || bitcast<u32>(s.top) == INFINITY || s.sum < 0.5; }
fn finish(s: State) -> Output {
  // Infinities and NaN are what they are; no constant may say so.
  if (s.bits > INFINITY) { return bitcast<f32>(s.bits); }
  if (bitcast<u32>(s.top) == INFINITY) { return s.top; }
  if (s.sum < 0.5) { return bitcast<f32>(0xff800000u | (s.bits >> 31u)); }
  return s.top + log(s.sum);
}
//# end

//# if GENERAL_BLOCK
fn block(a: vec4<Value>, b: vec4<Value>, c: vec4<Value>, d: vec4<Value>, i: vec4<u32>, step: u32) -> State {
  return behind(behind(quad(a, i.x, step), quad(b, i.y, step)), behind(quad(c, i.z, step), quad(d, i.w, step)));
}
//# end

//# if GENERAL
fn quad(v: vec4<Value>, i: u32, step: u32) -> State {
  return behind(behind(lift(v.x, i), lift(v.y, i + step)), behind(lift(v.z, i + 2u * step), lift(v.w, i + 3u * step)));
}
//# end
