// Convolution of 3 x 3 windows by the minimal filtering of Winograd (Lavin and Gray, "Fast algorithms for convolutional neural networks",
// 2016), of tiles of 4 x 4 results:
//
//   result = A' [ (G filter G') * (B' image B) ] A          * element by element, summed over channels: 36 products of matrices
//
//   winograd_filters   scratch[e][f][c] = G filter G'       winograd_images   scratch[e][c][p] = B' image B, p counting tiles
//   winograd_product   sums over c                          winograd_result   A' sums A, the bias and the activation
//
// The words that these are told are in src/plan/conv/winograd.rs.

const FILTERS = 0u;
const CHANNELS = 1u;
const TILES = 2u;
const COLUMNS = 3u;
const TILES_OF_IMAGE = 4u;
const TILES_OF_ROW = 5u;
const HEIGHT = 6u;
const WIDTH = 7u;
const BEFORE_Y = 8u;
const BEFORE_X = 9u;
const OUT_HEIGHT = 10u;
const OUT_WIDTH = 11u;
const IMAGES_AT = 12u;
const SUMS_AT = 13u;
const IMAGES_START = 14u;
const OUT_START = 15u;

alias Three = array<f32, 3>;
alias Six = array<f32, 6>;
alias Four = array<f32, 4>;

fn of_filter(g: Three) -> Six {
  let even = (g[0] + g[2]) * (-1.0 / 6.0);
  let odd = g[1] * (1.0 / 6.0);
  let far = g[0] * (1.0 / 24.0) + g[2] * (1.0 / 6.0);
  let half = g[1] * (1.0 / 12.0);
  return Six(0.25 * g[0], even - odd, even + odd, far + half, far - half, g[2]);
}

fn of_image(d: Six) -> Six {
  let a = d[4] - 4.0 * d[2];
  let b = d[3] - 4.0 * d[1];
  let c = d[4] - d[2];
  let e = 2.0 * (d[3] - d[1]);
  return Six(4.0 * d[0] - 5.0 * d[2] + d[4], a + b, a - b, c + e, c - e, 4.0 * d[1] - 5.0 * d[3] + d[5]);
}

fn of_sums(m: Six) -> Four {
  let a = m[1] + m[2];
  let b = m[1] - m[2];
  let c = m[3] + m[4];
  let d = m[3] - m[4];
  return Four(m[0] + a + c, b + 2.0 * d, a + 4.0 * c, b + 8.0 * d + m[5]);
}
