// C = alpha * op(A) * op(B) + beta * C in f32, or (op(A) - a0) * (op(B) - b0) of 8-bit integers in i32, by a fragment shader.
//
// A fragment computes a block of ROWS x 4 elements of C, and each row of the block goes to a target of its own. The blocks, counted
// row by row, lie in the targets line by line; so target r, read from its first texel on, is rows r, r + ROWS, r + 2 ROWS, … of C,
// each padded to ldo elements. Four steps of k cost a fetch for each of four texels of B and ROWS or four of A, for ROWS * 16
// multiplications.
//
// A, B and C are textures that hold the matrix as it is stored: four consecutive elements a texel, in lines of 2^*_log2 texels.
//
//   BLOCKS       if not 0, A is no texture: a drawing computes a strip of ROWS rows, and A's part in them lies in so many uniform blocks
//                of VECS vectors, as strips.frag tells. All fragments read the same of it at once, so only B is fetched.
//   LOOPS        BLOCKS, but at least 1: loops over k, one behind the other.
//   PASSES       2 if k is no multiple of 4: what is left is a loop of its own, so that the other selects nothing. TAIL_0 is 0, TAIL_1 is 1.
//   TRANSPOSE_A  A is stored k x m, not m x k.
//   TRANSPOSE_B  B is stored n x k, not k x n.
//   READS_C      beta is not 0: C is read.
//   READS_BIAS   a fourth texture holds what is added to each row; BIAS_STEP is 0 if it is a single number.
//   ACTIVATION   as in store.wgsl.
//   END          what follows is computed of the result: map/end.frag.
//   RESULT_F16   elements are rounded to f16 in the end, and stored as f32.
//   INT8         A and B are textures of bytes, of i8 where *_SIGNED is 1, and C one of words. Zero points are taken from them, so that 256
//                products are summed up in f32 exactly: none is beyond 255 * 255, and 256 of those are less than 2^24. Such sums are added up
//                in i32, modulo 2^32. Nothing but zero points is computed of it.
//   *_VEC4       rows start at multiples of 4 elements. If not, four elements of a row lie in two texels and are joined. Where
//                a row runs along k, the second of them is the next step's first, and is fetched once.
//   ROWS         1 or 2 only if m is no more, or in a batch.
//   BATCHED      params.batch products, as in store.wgsl; m is a multiple of ROWS, so that a block belongs to one of them. Their results
//                lie one below the other, as one matrix does.
//
// What lies outside in k counts as zero by selection, never by multiplication, so that a NaN there cannot spread. Elements outside
// in m and n are computed from whatever lies there, and nobody reads them. A fetch outside a texture is defined in WebGL.
//
// The template's lines begin with //#; kernels/template.rs expands them, behind map/half.frag.

//# if BLOCKS
//# for i in BLOCKS
layout(std140) uniform Block$i { vec4 strip_$i[VECS]; };
//# end
//# else
//# if INT8
uniform usampler2D a;
//# else
uniform sampler2D a;
//# end
//# end
//# if INT8
uniform usampler2D b;
//# else
uniform sampler2D b;
//# end
//# if READS_C
uniform sampler2D c;
//# end
//# if READS_BIAS
uniform sampler2D bias;
//# end

// Params of plan/matmul.rs; from 64 on what the backend adds to them, as map/prelude.frag tells, which has the declaration with END.
//# if END
//# else
uniform uint params[73];
//# end
#define m params[0]
#define k params[1]
#define n params[2]
#define lda params[3]
#define ldb params[4]
#define ldc params[5]
#define ldo params[6]
#define starts uvec3(params[7], params[8], params[9])
#define alpha uintBitsToFloat(params[11])
#define beta uintBitsToFloat(params[12])
#define batch params[14]
#define inner params[15]
#define outer_steps uvec3(params[16], params[17], params[18])
#define inner_steps uvec3(params[19], params[20], params[21])
#define a_zero float(int(params[31] << 16u) >> 16)
#define b_zero float(int(params[31]) >> 16)
#define out_width params[64]
#define a_log2 params[65]
#define a_mask params[66]
#define b_log2 params[67]
#define b_mask params[68]
#define c_log2 params[69]
#define c_mask params[70]
#define bias_log2 params[71]
#define bias_mask params[72]

//# for r in ROWS
//# if INT8
layout(location = $r) out uvec4 row_$r;
//# else
layout(location = $r) out vec4 row_$r;
//# end
//# end

//# if INT8
// What bytes stand for.
vec4 numbers(uvec4 bytes, bool is_signed) { return is_signed ? vec4(ivec4(bytes << 24u) >> 24) : vec4(bytes); }
vec4 a_texel(uint i) { return numbers(texelFetch(a, ivec2(i & a_mask, i >> a_log2), 0), A_SIGNED == 1) - a_zero; }
vec4 b_texel(uint i) { return numbers(texelFetch(b, ivec2(i & b_mask, i >> b_log2), 0), B_SIGNED == 1) - b_zero; }
//# else
//# if BLOCKS
//# else
vec4 a_texel(uint i) { return texelFetch(a, ivec2(i & a_mask, i >> a_log2), 0); }
//# end
vec4 b_texel(uint i) { return texelFetch(b, ivec2(i & b_mask, i >> b_log2), 0); }
//# end

// Four elements of two neighbouring texels, from the one at `start` on.
vec4 join(vec4 x, vec4 y, uint start) {
  return start < 2u ? (start == 0u ? x : vec4(x.yzw, y.x)) : (start == 2u ? vec4(x.zw, y.xy) : vec4(x.w, y.xyz));
}

//# if ACTIVATION
vec4 activate(vec4 x) {
#if ACTIVATION == 1
  // A NaN is no less than zero, and stays.
  return mix(x, vec4(0.0), lessThan(x, vec4(0.0)));
#elif ACTIVATION == 2
  return x / (1.0 + exp(-x * (1.59576912 + 0.0713548163 * x * x)));
#elif ACTIVATION == 3
  // Of NaN some drivers know a power.
  return mix(1.0 / (1.0 + exp(-x)), x, greaterThan(floatBitsToUint(x) << 1u, uvec4(0xff000000u)));
#elif ACTIVATION == 5
  return x / (1.0 + exp(-x));
#else
  // tanh: near zero by its series, where the other way would lose digits.
  vec4 e = exp(-2.0 * abs(x));
  vec4 s = x * x;
  vec4 near = x * (1.0 + s * (-0.333333333 + s * (0.133333333 - s * 0.0539682540)));
  return mix(sign(x) * (1.0 - e) / (1.0 + e), near, lessThan(abs(x), vec4(0.125)));
#endif
}
//# end

void main() {
  uint block = uint(gl_FragCoord.y) * out_width + uint(gl_FragCoord.x);
  uint row = block / (ldo / 4u) * uint(ROWS);
  uint column = block % (ldo / 4u) * 4u;
//# if END
  uint place = row * n + column;
//# end
//# if BATCHED
  uint item = row / m;
  if (item >= batch) discard;
  row %= m;
  uvec3 start = starts + item / inner * outer_steps + item % inner * inner_steps;
//# else
  if (row >= m) discard;
  uvec3 start = starts;
//# end

  // The texels of the first step of k, and in them the element at which it begins: of each stored row along k, or of each of four rows
  // across it.
//# if BLOCKS
//# else
//# if TRANSPOSE_A
//# for p in 4
  uint a_at_$p = start.x + $pu * lda + row;
  uint a_start_$p = a_at_$p & 3u;
  a_at_$p >>= 2u;
//# end
//# else
//# for r in ROWS
  uint a_at_$r = start.x + min(row + $ru, m - 1u) * lda;
  uint a_start_$r = a_at_$r & 3u;
  a_at_$r >>= 2u;
//# if A_VEC4
//# else
  vec4 a_next_$r = a_texel(a_at_$r);
//# end
//# end
//# end
//# end
//# if TRANSPOSE_B
//# for j in 4
  uint b_at_$j = start.y + min(column + $ju, n - 1u) * ldb;
  uint b_start_$j = b_at_$j & 3u;
  b_at_$j >>= 2u;
//# if B_VEC4
//# else
  vec4 b_next_$j = b_texel(b_at_$j);
//# end
//# end
//# else
//# for p in 4
  uint b_at_$p = start.y + $pu * ldb + column;
  uint b_start_$p = b_at_$p & 3u;
  b_at_$p >>= 2u;
//# end
//# end

//# for r in ROWS
  vec4 sum_$r = vec4(0.0);
//# if INT8
  ivec4 total_$r = ivec4(0);
//# end
//# end
  uint k0 = 0u;
//# for i in LOOPS
//# if BLOCKS
  uint k_end_$i = min(k, uint(VECS) * 4u / uint(ROWS) * ($iu + 1u));
  int at_$i = 0;
//# else
  uint k_end_$i = k;
//# end
//# for t in PASSES
//# if TAIL_$t
  if (k0 < k_end_$i) {
//# else
  for (; k0 + 3u < k_end_$i; k0 += 4u) {
//# end
//# if BLOCKS
//# for r in ROWS
    vec4 a_$r = strip_$i[at_$i + $r];
//# end
    at_$i += ROWS;
//# else
//# if TRANSPOSE_A
//# for p in 4
    vec4 a_$p = a_texel(a_at_$p);
//# if A_VEC4
//# else
    a_$p = join(a_$p, a_texel(a_at_$p + 1u), a_start_$p);
//# end
    a_at_$p += lda;
//# end
//# else
//# for r in ROWS
//# if A_VEC4
    vec4 a_$r = a_texel(a_at_$r);
    a_at_$r += 1u;
//# else
    a_at_$r += 1u;
    vec4 a_first_$r = a_next_$r;
    a_next_$r = a_texel(a_at_$r);
    vec4 a_$r = join(a_first_$r, a_next_$r, a_start_$r);
//# end
//# end
//# end
//# end
//# if TRANSPOSE_B
//# for j in 4
//# if B_VEC4
    vec4 b_column_$j = b_texel(b_at_$j);
    b_at_$j += 1u;
//# else
    b_at_$j += 1u;
    vec4 b_first_$j = b_next_$j;
    b_next_$j = b_texel(b_at_$j);
    vec4 b_column_$j = join(b_first_$j, b_next_$j, b_start_$j);
//# end
//# end
//# for p in 4
    vec4 b_$p = vec4(b_column_0[$p], b_column_1[$p], b_column_2[$p], b_column_3[$p]);
//# end
//# else
//# for p in 4
    vec4 b_$p = b_texel(b_at_$p);
//# if B_VEC4
//# else
    b_$p = join(b_$p, b_texel(b_at_$p + 1u), b_start_$p);
//# end
    b_at_$p += ldb;
//# end
//# end
//# if TAIL_$t
//# for p in 4
    if (k0 + $pu >= k) {
      b_$p = vec4(0.0);
//# if TRANSPOSE_A
      a_$p = vec4(0.0);
//# else
//# for r in ROWS
      a_$r[$p] = 0.0;
//# end
//# end
    }
//# end
//# end
//# for p in 4
//# for r in ROWS
//# if TRANSPOSE_A
    sum_$r += a_$p[$r] * b_$p;
//# else
    sum_$r += a_$r[$p] * b_$p;
//# end
//# end
//# end
//# if INT8
    if ((k0 & 252u) == 252u) {
//# for r in ROWS
      total_$r += ivec4(sum_$r);
      sum_$r = vec4(0.0);
//# end
    }
//# end
  }
//# end
//# end

//# for r in ROWS
//# if INT8
  row_$r = uvec4(total_$r + ivec4(sum_$r));
//# else
  row_$r = alpha * sum_$r;
//# if READS_C
  uint c_at_$r = start.z + (row + $ru) * ldc + column;
  uint c_texel_$r = c_at_$r >> 2u;
  vec4 c_first_$r = texelFetch(c, ivec2(c_texel_$r & c_mask, c_texel_$r >> c_log2), 0);
  c_texel_$r += 1u;
  vec4 c_second_$r = texelFetch(c, ivec2(c_texel_$r & c_mask, c_texel_$r >> c_log2), 0);
  row_$r += beta * join(c_first_$r, c_second_$r, c_at_$r & 3u);
//# end
//# if READS_BIAS
//# if BIAS_STEP
  row_$r += texelFetch(bias, ivec2(column >> 2u & bias_mask, column >> 2u >> bias_log2), 0);
//# else
  row_$r += texelFetch(bias, ivec2(0), 0).x;
//# end
//# end
//# if ACTIVATION
  row_$r = activate(row_$r);
//# end
//# if END
  row_$r = ended_four(place + $ru * n, row_$r);
//# end
//# if RESULT_F16
  row_$r = vec4(nearest_f16(row_$r.x), nearest_f16(row_$r.y), nearest_f16(row_$r.z), nearest_f16(row_$r.w));
//# end
//# end
//# end
}
