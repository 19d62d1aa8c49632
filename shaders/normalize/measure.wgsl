// What is made of what a row's values fold to.
//
//   LAYER, RMS, LOGARITHMS   as in normalize.wgsl

// What each value of a row is told: of a softmax the pivot and what the powers are divided by, of a norm a value near the mean, a factor, and
// the mean as its distance from that value, or two factors where there is no mean.
struct Measure { base: f32, by: f32, rest: f32 }

fn measure(s: State) -> Measure {
//# if LAYER
  let scale = scale_of(s.count < 0.0);
  return Measure(s.pivot, scale / sqrt(variance(s) + bitcast<f32>(word(EPSILON)) * scale * scale), s.mean);
//# else
//# if RMS
  // Squares of large numbers are beyond all numbers, and epsilon is nothing beside them. A factor for the largest would be nothing: they
  // are taken by quarters.
  let by = select(1.0, 0.25, bitcast<u32>(s.large) != 0u);
  let root = finish(State(s.large * 0.0625, s.middle * by * by, s.small));
  return Measure(by, 1.0 / select(root, max(root, sqrt(root * root + bitcast<f32>(word(EPSILON)) * by * by)), root < 1.0e18), 0.0);
//# else
  // No number is in proportion to an infinity, to NaN, or to zeros alone.
  let none = is_beyond(s);
//# if LOGARITHMS
  return Measure(pivot(s.top), select(log(s.sum), nan_of(s.sum), none), 0.0);
//# else
  return Measure(pivot(s.top), select(1.0 / s.sum, nan_of(s.sum), none), 0.0);
//# end
//# end
//# end
}
