// The variance of what an invocation has of a row at once, FOURS times four values of which some may not be there: they are folded as one, since
// to join variances takes longer than to fold values.

//# if MOMENTS
fn moments(
//# for u in FOURS
  v_$u: vec4<f32>,
  is_$u: vec4<bool>,
//# end
) -> State {
  var counts = vec4<f32>();
//# for u in FOURS
  counts += select(vec4<f32>(), vec4<f32>(1.0), is_$u);
//# end
  let count = (counts.x + counts.y) + (counts.z + counts.w);
  let share = 1.0 / max(count, 1.0);
//# if COARSE
  var sums = vec4<f32>();
//# for u in FOURS
  sums += select(vec4<f32>(), v_$u, is_$u);
//# end
  let mean = ((sums.x + sums.y) + (sums.z + sums.w)) * share;
  var squares = vec4<f32>();
//# for u in FOURS
  let d_$u = select(vec4<f32>(), v_$u - mean, is_$u);
  squares += d_$u * d_$u;
//# end
  return State(count, ((squares.x + squares.y) + (squares.z + squares.w)) * share, mean, 0.0);
//# else
  // Each by its share, since their sum may be beyond all numbers.
  var means = vec4<f32>();
//# for u in FOURS
  means += select(vec4<f32>(), (v_$u - pivot) * share, is_$u);
//# end
  let mean = (means.x + means.y) + (means.z + means.w);
  var size = vec4<f32>();
//# for u in FOURS
  let d_$u = select(vec4<f32>(), (v_$u - pivot) - mean, is_$u);
  size = max(size, abs(d_$u));
//# end
  let is_far = max(max(size.x, size.y), max(size.z, size.w)) > FAR;
  let scale = scale_of(is_far);
  var squares = vec4<f32>();
//# for u in FOURS
  squares += (d_$u * scale) * (d_$u * scale);
//# end
  return State(select(count, -count, is_far), ((squares.x + squares.y) + (squares.z + squares.w)) * share, mean, pivot);
//# end
}
//# end
