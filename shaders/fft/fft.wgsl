// Fourier transforms, or a step of longer ones (src/plan/fft.rs): a workgroup does BATCH of them at once, each of LENGTH elements, by the
// self-sorting method of Stockham: PASSES of butterflies of RADIX elements. An invocation has about sixteen elements in registers, GROUPS
// butterflies of them in each pass. The first pass reads what is transformed, the last one writes the result, and between two of them the
// elements change hands in workgroup memory, as they do before the first and behind the last where their neighbours in memory are of others.
//
// A transform of n elements in steps of n1, n2, ...: the step of LENGTH, behind steps of L elements together, transforms elements that are
// n / LENGTH apart. Transform j of them multiplies its element i by exp(-2 pi i * (j % L) * i / (L * LENGTH)) first, and its result k goes to
// j / L * L * LENGTH + j % L + k * L, so that behind the last step all are in order.
//
// The inverse is the conjugate of the transform of the conjugate. A length with large prime factors is a convolution with a chirp, of a length
// that has none (Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", 1970).
//
//   binding  name     stored as
//   0        source   the input, if SOURCE
//   2        out      the result, if TARGET
//   3        params   as src/plan/fft.rs has them
//   4        scratch  complex numbers between steps, of all transforms outer x n x inner
//
//   BEFORE   L      INNER, COLUMNS_OF_LINE  elements behind the dimension, and transforms of a line
//   SPAN     elements that are a transform together when a pass begins
//   READS    whether a pass reads workgroup memory, and KEPT whether it leaves there what it makes
//   FILTERS  what a pass reads is multiplied by the chirp's transform: it is the first of the way back.
//   STAGES   elements of an invocation that change hands before all passes (STAGED_IN) or behind them (STAGED_OUT)
//   COLUMNS  neighbours in memory are of different transforms; otherwise a transform's elements are neighbours.
//   RAGGED   the last workgroups have fewer transforms, or none.
//   CUT_IN   elements behind the end of the input are zeros.
//   CUT_OUT  and of the result there are fewer.
//   SOURCE   1 complex numbers, 2 real ones, 3 those of which the others are conjugates, 4 the chirp itself; 0 scratch
//   TARGET   the same; 0 scratch
//   CHIRPED  the input is multiplied by the chirp, and the result with its conjugate twin taken back.
//   FILTERED what is read is multiplied by the chirp's transform.
//   CONJUGATE_IN, CONJUGATE_OUT for inverses.

@group(0) @binding(3) var<uniform> params: array<vec4<u32>, 16>;
fn word(i: u32) -> u32 { return params[i / 4u][i % 4u]; }

//# if SOURCE_REAL
@group(0) @binding(0) var<storage, read> source: array<f32>;
//# end
//# if SOURCE_COMPLEX
@group(0) @binding(0) var<storage, read> source: array<vec2<f32>>;
//# end
//# if TARGET_REAL
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
//# end
//# if TARGET_COMPLEX
@group(0) @binding(2) var<storage, read_write> out: array<vec2<f32>>;
//# end
//# if SCRATCH
@group(0) @binding(4) var<storage, read_write> scratch: array<vec2<f32>>;
//# end

var<workgroup> memory: array<vec2<f32>, (BATCH * LENGTH + 15u) / 16u * 16u>;

fn times(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> { return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
fn conjugate(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(a.x, -a.y); }
// a times -i, and times its square root.
fn turned(a: vec2<f32>) -> vec2<f32> { return vec2<f32>(a.y, -a.x); }
fn half_turned(a: vec2<f32>) -> vec2<f32> { return (a + turned(a)) * 0.707106781187; }

// exp(-2 pi i * m / n) for m < n <= 2^28. What devices have for sine and cosine is too coarse: the angle is brought into an eighth of
// the circle in integers, where short polynomials are as good as f32 is (those of Cephes).
fn root(m: u32, n: u32) -> vec2<f32> {
  let eighth = 8u * m / n;
  let rest = 8u * m - eighth * n;
  let x = f32(select(rest, n - rest, (eighth & 1u) != 0u)) * (0.785398163397 / f32(n));
  let z = x * x;
  let sine = x + x * z * (-0.16666654611 + z * (0.0083321608736 - z * 0.00019515295891));
  let cosine = 1.0 - 0.5 * z + z * z * (0.041666645683 + z * (-0.0013887316255 + z * 0.000024433157118));
  let swapped = ((eighth + 1u) & 2u) != 0u;
  let c = select(cosine, sine, swapped);
  let s = select(sine, cosine, swapped);
  return vec2<f32>(select(c, -c, ((eighth + 2u) & 4u) != 0u), select(-s, s, eighth >= 4u));
}

//# if CHIRP
// a * a % m, for a < m < 2^31.
fn square(a: u32, m: u32) -> u32 {
  if (a < 65536u) { return a * a % m; }
  var sum = 0u;
  var twice = a;
  for (var rest = a; rest > 0u; rest >>= 1u) {
    if ((rest & 1u) != 0u) { sum = (sum + twice) % m; }
    twice = twice * 2u % m;
  }
  return sum;
}
// exp(-pi i * a * a / n) of the transform's own length n. It is made once, and read behind its spectrum.
fn made_chirp(a: u32) -> vec2<f32> {
  let n = word(8u);
  return root(square(a, 2u * n), 2u * n);
}
fn chirp_place(a: u32) -> u32 { return word(12u) + word(4u) + a; }
fn chirp(a: u32) -> vec2<f32> { return scratch[chirp_place(a)]; }
//# end

// Element i of transform t: of what is outer x LENGTH x columns.
fn fetched(t: u32, i: u32) -> vec2<f32> {
  let columns = COLUMNS_OF_LINE;
  let inner = INNER;
  let o = t / columns;
  let c = t % columns;
  // Its place along the whole dimension.
  let at = i * (columns / inner) + c / inner;
//# if SOURCE_SCRATCH
  var v = scratch[word(10u) + (o * LENGTH + i) * columns + c];
//# end
//# if SOURCE_CHIRP
  let far = min(at, word(4u) - at);
  var v = vec2<f32>();
  if (far < word(8u)) {
    let c = made_chirp(far);
    if (far == at) { scratch[chirp_place(at)] = c; }
    v = bitcast<f32>(word(7u)) * conjugate(c);
  }
//# end
//# if SOURCE_REAL
  var v = vec2<f32>();
  if (CUT_IN == 0u || at < word(5u)) { v.x = source[(o * word(5u) + at) * inner + c % inner]; }
//# end
//# if SOURCE_COMPLEX
  var v = vec2<f32>();
//# if SOURCE_HALF
  let is_mirrored = at > word(8u) / 2u;
  let mirrored = select(at, word(8u) - at, is_mirrored);
  if (at < word(8u) && mirrored < word(5u)) {
    v = source[(o * word(5u) + mirrored) * inner + c % inner];
    if (is_mirrored) { v = conjugate(v); }
    // What is its own mirror image is real, whatever stands there.
    if (mirrored == 0u || 2u * mirrored == word(8u)) { v.y = 0.0; }
  }
//# else
  if (CUT_IN == 0u || at < word(5u)) { v = source[(o * word(5u) + at) * inner + c % inner]; }
//# end
//# end
//# if CONJUGATE_IN
  v = conjugate(v);
//# end
//# if CHIRP_IN
  if (at < word(8u)) { v = times(v, chirp(at)); } else { v = vec2<f32>(); }
//# end
//# if FILTERED
  v = conjugate(times(v, scratch[word(12u) + at]));
//# end
  return v;
}

fn put(t: u32, i: u32, value: vec2<f32>) {
  let columns = COLUMNS_OF_LINE;
  let inner = INNER;
  let l = BEFORE;
  let o = t / columns;
  let j = t % columns / inner;
  let at = j / l * l * LENGTH + j % l + i * l;
  var v = value;
//# if TARGET_SCRATCH
  scratch[word(11u) + (o * word(4u) + at) * inner + t % inner] = v;
//# else
//# if CHIRP_OUT
  if (at >= word(8u)) { return; }
  v = times(conjugate(v), chirp(at));
//# end
//# if CONJUGATE_OUT
  v = conjugate(v);
//# end
  if (CUT_OUT > 0u && at >= word(6u)) { return; }
  if (SCALED > 0u) { v *= bitcast<f32>(word(7u)); }
  let to = (o * word(6u) + at) * inner + t % inner;
//# if TARGET_REAL
  out[to] = v.x;
//# else
  out[to] = v;
//# end
//# end
}

// A butterfly's elements.
alias Values = array<vec2<f32>, 16>;

fn four(v0: vec2<f32>, v1: vec2<f32>, v2: vec2<f32>, v3: vec2<f32>) -> array<vec2<f32>, 4> {
  let a = v0 + v2;
  let b = v0 - v2;
  let c = v1 + v3;
  let d = turned(v1 - v3);
  return array<vec2<f32>, 4>(a + c, b + d, a - c, b - d);
}

fn dft_2(v: ptr<function, Values>) {
  let a = (*v)[0];
  (*v)[0] = a + (*v)[1];
  (*v)[1] = a - (*v)[1];
}

fn dft_3(v: ptr<function, Values>) {
  let s = (*v)[1] + (*v)[2];
  let d = turned((*v)[1] - (*v)[2]) * 0.866025403784;
  let m = (*v)[0] - 0.5 * s;
  (*v)[0] += s;
  (*v)[1] = m + d;
  (*v)[2] = m - d;
}

fn dft_4(v: ptr<function, Values>) {
  let r = four((*v)[0], (*v)[1], (*v)[2], (*v)[3]);
//# for q in 4
  (*v)[$q] = r[$q];
//# end
}

fn dft_5(v: ptr<function, Values>) {
  let s1 = (*v)[1] + (*v)[4];
  let s2 = (*v)[2] + (*v)[3];
  let d1 = turned((*v)[1] - (*v)[4]);
  let d2 = turned((*v)[2] - (*v)[3]);
  let m1 = (*v)[0] + 0.309016994375 * s1 - 0.809016994375 * s2;
  let m2 = (*v)[0] - 0.809016994375 * s1 + 0.309016994375 * s2;
  let n1 = 0.951056516295 * d1 + 0.587785252292 * d2;
  let n2 = 0.587785252292 * d1 - 0.951056516295 * d2;
  (*v)[0] += s1 + s2;
  (*v)[1] = m1 + n1;
  (*v)[2] = m2 + n2;
  (*v)[3] = m2 - n2;
  (*v)[4] = m1 - n1;
}

fn dft_7(v: ptr<function, Values>) {
  let s1 = (*v)[1] + (*v)[6];
  let s2 = (*v)[2] + (*v)[5];
  let s3 = (*v)[3] + (*v)[4];
  let d1 = turned((*v)[1] - (*v)[6]);
  let d2 = turned((*v)[2] - (*v)[5]);
  let d3 = turned((*v)[3] - (*v)[4]);
  let m1 = (*v)[0] + 0.623489801859 * s1 - 0.222520933956 * s2 - 0.900968867902 * s3;
  let m2 = (*v)[0] - 0.222520933956 * s1 - 0.900968867902 * s2 + 0.623489801859 * s3;
  let m3 = (*v)[0] - 0.900968867902 * s1 + 0.623489801859 * s2 - 0.222520933956 * s3;
  let n1 = 0.781831482468 * d1 + 0.974927912182 * d2 + 0.433883739118 * d3;
  let n2 = 0.974927912182 * d1 - 0.433883739118 * d2 - 0.781831482468 * d3;
  let n3 = 0.433883739118 * d1 - 0.781831482468 * d2 + 0.974927912182 * d3;
  (*v)[0] += s1 + s2 + s3;
  (*v)[1] = m1 + n1;
  (*v)[2] = m2 + n2;
  (*v)[3] = m3 + n3;
  (*v)[4] = m3 - n3;
  (*v)[5] = m2 - n2;
  (*v)[6] = m1 - n1;
}

fn dft_8(v: ptr<function, Values>) {
  let even = four((*v)[0], (*v)[2], (*v)[4], (*v)[6]);
  var odd = four((*v)[1], (*v)[3], (*v)[5], (*v)[7]);
  odd[1] = half_turned(odd[1]);
  odd[2] = turned(odd[2]);
  odd[3] = turned(half_turned(odd[3]));
//# for q in 4
  (*v)[$q] = even[$q] + odd[$q];
  (*v)[$q + 4] = even[$q] - odd[$q];
//# end
}

fn dft_16(v: ptr<function, Values>) {
  const A = vec2<f32>(0.923879532511, -0.382683432365);
  const B = vec2<f32>(0.382683432365, -0.923879532511);
//# for r in 4
  var v_$r = four((*v)[$r], (*v)[$r + 4], (*v)[$r + 8], (*v)[$r + 12]);
//# end
  v_1[1] = times(v_1[1], A);
  v_1[2] = half_turned(v_1[2]);
  v_1[3] = times(v_1[3], B);
  v_2[1] = half_turned(v_2[1]);
  v_2[2] = turned(v_2[2]);
  v_2[3] = turned(half_turned(v_2[3]));
  v_3[1] = times(v_3[1], B);
  v_3[2] = turned(half_turned(v_3[2]));
  v_3[3] = -times(v_3[3], A);
//# for k in 4
  let r_$k = four(v_0[$k], v_1[$k], v_2[$k], v_3[$k]);
//# for q in 4
  (*v)[$k + 4 * $q] = r_$k[$q];
//# end
//# end
}

// Where element i of a workgroup's transform b is kept: sixteens are shuffled, so that those sixteen apart are in different banks.
fn place(b: u32, i: u32) -> u32 {
//# if COLUMNS
  let at = i * BATCH + b;
//# else
  let at = b * LENGTH + i;
//# end
  return at ^ ((at >> 4u) & 15u);
}

//# for p in PASSES
// Pass $p. Butterflies' elements are so far apart, and there are so many of them.
const APART_$p = LENGTH / RADIX_$p;
const COUNT_$p = BATCH * APART_$p;
const WHOLE_$p = RADIX_$p * SPAN_$p;

// Butterfly e: its transform, and which of its butterflies.
fn butterfly_$p(e: u32) -> vec2<u32> {
//# if COLUMNS
  return vec2<u32>(e % BATCH, e / BATCH);
//# else
  return vec2<u32>(e / APART_$p, e % APART_$p);
//# end
}

// Multiplies a butterfly's elements by powers of w, which are products of halves so that few roundings come together.
fn turn_$p(v: ptr<function, Values>, w: vec2<f32>) {
  var powers: Values;
//# for q in RADIX_$p
//# if $q
  if ($q == 1) { powers[$q] = w; } else { powers[$q] = times(powers[$q / 2], powers[$q - $q / 2]); }
  (*v)[$q] = times((*v)[$q], powers[$q]);
//# end
//# end
}

fn load_$p(v: ptr<function, Values>, first: u32, e: u32) {
  let at = butterfly_$p(e);
//# if READS_$p
//# for q in RADIX_$p
  (*v)[$q] = memory[place(at.x, at.y + $qu * APART_$p)];
//# if FILTERS_$p
  (*v)[$q] = conjugate(times((*v)[$q], scratch[word(12u) + at.y + $qu * APART_$p]));
//# end
//# end
  if (SPAN_$p > 1u) { turn_$p(v, root(at.y % SPAN_$p, WHOLE_$p)); }
//# else
  var t = first + at.x;
  if (RAGGED > 0u) { t = min(t, word(0u) - 1u); }
//# for q in RADIX_$p
  (*v)[$q] = fetched(t, at.y + $qu * APART_$p);
//# end
  // What the steps before it leave to do, of which a part is the same for all elements.
  let column = t % COLUMNS_OF_LINE / INNER % BEFORE;
  if (BEFORE > 1u) { turn_$p(v, root(column * APART_$p, BEFORE * LENGTH)); }
//# end
  if (RADIX_$p == 2u) { dft_2(v); }
  if (RADIX_$p == 3u) { dft_3(v); }
  if (RADIX_$p == 4u) { dft_4(v); }
  if (RADIX_$p == 5u) { dft_5(v); }
  if (RADIX_$p == 7u) { dft_7(v); }
  if (RADIX_$p == 8u) { dft_8(v); }
  if (RADIX_$p == 16u) { dft_16(v); }
//# if READS_$p
//# else
  if (BEFORE > 1u) {
    let w = root(column * at.y, BEFORE * LENGTH);
//# for q in RADIX_$p
    (*v)[$q] = times((*v)[$q], w);
//# end
  }
//# end
}

fn store_$p(v: ptr<function, Values>, first: u32, e: u32) {
  let at = butterfly_$p(e);
  let to = at.y / SPAN_$p * WHOLE_$p + at.y % SPAN_$p;
//# if KEPT_$p
//# for q in RADIX_$p
  memory[place(at.x, to + $qu * SPAN_$p)] = (*v)[$q];
//# end
//# else
  if (RAGGED > 0u && first + at.x >= word(0u)) { return; }
//# for q in RADIX_$p
  put(first + at.x, to + $qu * SPAN_$p, (*v)[$q]);
//# end
//# end
}
//# end

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) local: u32,
) {
  let first = (group.y * groups.x + group.x) * BATCH;
//# if STAGED_IN
//# for s in STAGES
  let i_$s = min(local + $su * THREADS, BATCH * LENGTH - 1u);
  let x_$s = fetched(min(first + i_$s / LENGTH, word(0u) - 1u), i_$s % LENGTH);
//# end
//# for s in STAGES
  memory[place(i_$s / LENGTH, i_$s % LENGTH)] = x_$s;
//# end
  workgroupBarrier();
//# end
//# for n in GROUPS
  var v_$n: Values;
  let e_$n = local + $nu * THREADS;
//# end
//# for p in PASSES
//# for n in GROUPS_$p
  if (COUNT_$p % THREADS == 0u || e_$n < COUNT_$p) { load_$p(&v_$n, first, e_$n); }
//# end
//# if KEPT_$p
//# if READS_$p
  workgroupBarrier();
//# end
//# end
//# for n in GROUPS_$p
  if (COUNT_$p % THREADS == 0u || e_$n < COUNT_$p) { store_$p(&v_$n, first, e_$n); }
//# end
//# if KEPT_$p
  workgroupBarrier();
//# end
//# end
//# if STAGED_OUT
//# for s in STAGES
  let o_$s = local + $su * THREADS;
  if (o_$s < BATCH * LENGTH && first + o_$s / LENGTH < word(0u)) {
    put(first + o_$s / LENGTH, o_$s % LENGTH, memory[place(o_$s / LENGTH, o_$s % LENGTH)]);
  }
//# end
//# end
}
