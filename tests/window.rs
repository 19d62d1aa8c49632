//! Convolutions and pools on every backend that is there, against the definitions in f64.
#![cfg(not(target_arch = "wasm32"))]

mod bounds;
mod devices;

use devices::everywhere;
use half::f16;
use lapidary::ops::window::Window;
use lapidary::{Activation, BackendId, Conv, DType, Expr, Gpu, Options, Pool, random};

/// An array of a shape.
#[derive(Clone)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    /// Numbers that f16 has.
    fn random(shape: &[usize], seed: u64) -> Self {
        let values = random::matrix(shape.iter().product(), seed);
        Self { shape: shape.to_vec(), values: values.iter().map(|&value| f16::from_f32(value).to_f64()).collect() }
    }

    fn expr(&self, gpu: &Gpu, dtype: DType) -> Expr {
        let shape: Vec<_> = self.shape.iter().map(|&size| size as i64).collect();
        let tensor = match dtype {
            DType::F16 => {
                let values: Vec<_> = self.values.iter().map(|&value| f16::from_f64(value)).collect();
                gpu.tensor_blocking(&values, 1, values.len() as u64)
            }
            _ => {
                let values: Vec<_> = self.values.iter().map(|&value| value as f32).collect();
                gpu.tensor_blocking(&values, 1, values.len() as u64)
            }
        };
        Expr::from(tensor.unwrap()).reshape(&shape)
    }

    /// An element of an image, or None in the padding.
    fn at(&self, image: usize, channel: usize, [y, x]: [i64; 2]) -> Option<(usize, f64)> {
        let [_, channels, height, width] = self.shape[..] else { panic!("four dimensions") };
        let inside = (0..height as i64).contains(&y) && (0..width as i64).contains(&x);
        let at = || ((image * channels + channel) * height + y as usize) * width + x as usize;
        inside.then(|| (at(), self.values[at()]))
    }
}

/// Where a tap is.
fn place(window: &Window, step: u32, tap: u32) -> i64 {
    i64::from(step * window.stride) + i64::from(tap * window.dilation) - i64::from(window.before)
}

/// A window of a case, by the formula of the documentation.
fn window(input: usize, taps: usize, [stride, dilation]: [u64; 2], [before, after]: [u64; 2]) -> Window {
    let extent = (taps as u64 - 1) * dilation + 1;
    let steps = (before + input as u64 + after - extent) / stride + 1;
    let [input, taps, stride, dilation, before, after, steps] =
        [input as u64, taps as u64, stride, dilation, before, after, steps].map(|number| number as u32);
    Window { input, taps, stride, dilation, before, after, steps }
}

struct Case {
    input: [usize; 4],
    /// All filters, and the taps along both dimensions.
    filters: [usize; 3],
    strides: [u64; 2],
    pads: [[u64; 2]; 2],
    dilations: [u64; 2],
    groups: usize,
}

const CASES: [Case; 13] = [
    Case { input: [1, 1, 5, 5], filters: [1, 3, 3], strides: [1; 2], pads: [[1; 2]; 2], dilations: [1; 2], groups: 1 },
    Case { input: [2, 3, 13, 11], filters: [20, 3, 3], strides: [1; 2], pads: [[0; 2]; 2], dilations: [1; 2], groups: 1 },
    Case { input: [2, 3, 17, 15], filters: [33, 7, 7], strides: [2; 2], pads: [[3; 2]; 2], dilations: [1; 2], groups: 1 },
    Case { input: [1, 20, 9, 7], filters: [17, 3, 2], strides: [1, 2], pads: [[2, 0], [1, 2]], dilations: [2, 1], groups: 1 },
    // Each channel alone, once and twice.
    Case { input: [2, 6, 8, 12], filters: [6, 3, 3], strides: [1; 2], pads: [[1; 2]; 2], dilations: [1; 2], groups: 6 },
    Case { input: [1, 5, 7, 7], filters: [10, 3, 3], strides: [2; 2], pads: [[1; 2]; 2], dilations: [1; 2], groups: 5 },
    // Groups with many filters each.
    Case { input: [3, 8, 6, 5], filters: [36, 3, 3], strides: [1; 2], pads: [[1; 2]; 2], dilations: [1; 2], groups: 2 },
    // Windows of one element: a product, with steps and without.
    Case { input: [2, 40, 4, 6], filters: [24, 1, 1], strides: [1; 2], pads: [[0; 2]; 2], dilations: [1; 2], groups: 1 },
    Case { input: [2, 40, 5, 7], filters: [24, 1, 1], strides: [2; 2], pads: [[0; 2]; 2], dilations: [1; 2], groups: 1 },
    Case { input: [2, 8, 3, 3], filters: [32, 1, 1], strides: [1; 2], pads: [[0; 2]; 2], dilations: [1; 2], groups: 2 },
    Case { input: [1, 16, 8, 8], filters: [20, 1, 1], strides: [1; 2], pads: [[0; 2]; 2], dilations: [1; 2], groups: 1 },
    // All of the image at once, and mostly padding.
    Case { input: [3, 100, 3, 3], filters: [18, 3, 3], strides: [1; 2], pads: [[0; 2]; 2], dilations: [1; 2], groups: 1 },
    Case { input: [1, 2, 2, 1], filters: [3, 5, 4], strides: [3, 1], pads: [[4, 3], [3, 5]], dilations: [1; 2], groups: 1 },
];

impl Case {
    fn windows(&self) -> [Window; 2] {
        [0, 1].map(|at| window(self.input[2 + at], self.filters[1 + at], [self.strides[at], self.dilations[at]], self.pads[at]))
    }

    /// The result and, element by element, the sum of what was added up without signs.
    fn expected(&self, images: &Array, filters: &Array, bias: &Array) -> (Vec<f64>, Vec<f64>) {
        let windows @ [y, x] = self.windows();
        let of_group = self.input[1] / self.groups;
        let (mut sums, mut magnitudes) = (Vec::new(), Vec::new());
        for (image, filter) in (0..self.input[0]).flat_map(|image| (0..self.filters[0]).map(move |filter| (image, filter))) {
            let first = filter / (self.filters[0] / self.groups) * of_group;
            for (step_y, step_x) in (0..y.steps).flat_map(|step_y| (0..x.steps).map(move |step_x| (step_y, step_x))) {
                let (mut sum, mut magnitude) = (bias.values[filter], bias.values[filter].abs());
                for c in 0..of_group {
                    for (i, j) in (0..y.taps).flat_map(|i| (0..x.taps).map(move |j| (i, j))) {
                        let at = [place(&windows[0], step_y, i), place(&windows[1], step_x, j)];
                        let weight =
                            filters.values[((filter * of_group + c) * y.taps as usize + i as usize) * x.taps as usize + j as usize];
                        let term = weight * images.at(image, first + c, at).map_or(0.0, |(_, value)| value);
                        sum += term;
                        magnitude += term.abs();
                    }
                }
                sums.push(sum);
                magnitudes.push(magnitude);
            }
        }
        (sums, magnitudes)
    }
}

#[test]
fn convolutions() {
    everywhere(|gpu, backend| {
        for (number, case) in CASES.iter().enumerate() {
            let images = Array::random(&case.input, 1);
            let [all, height, width] = case.filters;
            let filters = Array::random(&[all, case.input[1] / case.groups, height, width], 2);
            let bias = Array::random(&[all], 3);
            let (sums, magnitudes) = case.expected(&images, &filters, &bias);
            let terms = case.input[1] / case.groups * height * width;
            // Without the rest some are products of NVIDIA's library.
            for (dtype, is_plain) in [DType::F32, DType::F16].into_iter().flat_map(|dtype| [(dtype, false), (dtype, true)]) {
                let conv = Conv::default().strides(&case.strides).pads(&case.pads).dilations(&case.dilations).groups(case.groups as u64);
                let whole = conv.clone().bias(bias.expr(gpu, dtype)).activation(Activation::Relu);
                let expr = images.expr(gpu, dtype).conv(filters.expr(gpu, dtype), if is_plain { &conv } else { &whole });
                let [y, x] = case.windows();
                assert_eq!(expr.shape().unwrap(), [case.input[0] as u64, all as u64, y.steps.into(), x.steps.into()]);
                let got = gpu.evaluate_blocking(&expr.cast(DType::F32)).unwrap().to_vec_blocking().unwrap();
                for (at, ((got, sum), magnitude)) in got.iter().zip(&sums).zip(&magnitudes).enumerate() {
                    let added = bias.values[at / (y.steps * x.steps) as usize % all];
                    let expected = if is_plain { sum - added } else { sum.max(0.0) };
                    let bound = bounds::convolution(terms, *magnitude, dtype, expected);
                    assert!(
                        (f64::from(*got) - expected).abs() <= bound,
                        "case {number} of {dtype}, plain {is_plain}, on {backend}, element {at}: {got}, not {expected}"
                    );
                }
                assert_eq!(got.len(), sums.len());
            }
        }
    });
}

#[test]
fn convolutions_of_one_dimension_and_what_is_fused_around_them() {
    everywhere(|gpu, backend| {
        let (signal, filters) = (Array::random(&[2, 3, 1, 19], 4), Array::random(&[4, 3, 1, 5], 5));
        let flat = |array: &Array| Array { shape: vec![array.shape[0], array.shape[1], array.shape[3]], ..array.clone() };
        let line = Conv::default().strides(&[2]).pads(&[[2, 2]]).dilations(&[2]);
        let plane = Conv::default().strides(&[1, 2]).pads(&[[0, 0], [2, 2]]).dilations(&[1, 2]);
        let a = flat(&signal).expr(gpu, DType::F32).conv(flat(&filters).expr(gpu, DType::F32), &line);
        let b = signal.expr(gpu, DType::F32).conv(filters.expr(gpu, DType::F32), &plane);
        assert_eq!(a.shape().unwrap(), [2, 4, 8]);
        let values = |expr: &Expr| gpu.evaluate_blocking(expr).unwrap().to_vec_blocking().unwrap();
        assert_eq!(values(&a), values(&b), "{backend}");
        let doubled = (signal.expr(gpu, DType::F32) * 2.0).conv(filters.expr(gpu, DType::F32), &plane).negative();
        let expected: Vec<_> = values(&b).iter().map(|value| value * -2.0).collect();
        assert_eq!(values(&doubled), expected, "{backend}");
        let same = Conv::default().strides(&[1, 3]).same_upper();
        assert_eq!(signal.expr(gpu, DType::F32).conv(filters.expr(gpu, DType::F32), &same).shape().unwrap(), [2, 4, 1, 7]);
    });
}

#[test]
fn pools() {
    everywhere(|gpu, backend| {
        // Sizes, taps, strides, dilations.
        let cases = [
            ([2, 3, 8, 8], [2, 2], [2, 2], [1, 1]),
            ([1, 5, 9, 7], [3, 3], [2, 2], [1, 1]),
            ([2, 2, 7, 10], [3, 2], [1, 3], [2, 1]),
            ([1, 1, 1, 11], [1, 4], [1, 1], [1, 1]),
            ([1, 3, 5, 5], [5, 5], [1, 1], [1, 1]),
        ];
        let pads = [[[0; 2]; 2], [[1; 2]; 2], [[2, 1], [0, 1]], [[0, 0], [3, 3]], [[0; 2]; 2]];
        for (number, ((shape, taps, strides, dilations), pads)) in cases.into_iter().zip(pads).enumerate() {
            let images = Array::random(&shape, 6);
            let windows = [0, 1].map(|at| window(shape[2 + at], taps[at], [strides[at], dilations[at]], pads[at]));
            let [y, x] = windows;
            let (mut largest, mut places, mut means, mut padded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for (image, channel) in (0..shape[0]).flat_map(|image| (0..shape[1]).map(move |channel| (image, channel))) {
                for (step_y, step_x) in (0..y.steps).flat_map(|step_y| (0..x.steps).map(move |step_x| (step_y, step_x))) {
                    let taps = (0..y.taps).flat_map(|i| (0..x.taps).map(move |j| (i, j)));
                    let seen: Vec<_> = taps
                        .filter_map(|(i, j)| images.at(image, channel, [place(&windows[0], step_y, i), place(&windows[1], step_x, j)]))
                        .collect();
                    let sum: f64 = seen.iter().map(|(_, value)| value).sum();
                    let best = seen.iter().fold((0, f64::NEG_INFINITY), |best, seen| if seen.1 > best.1 { *seen } else { best });
                    largest.push(best.1);
                    places.push(best.0 as u32);
                    means.push(sum / seen.len() as f64);
                    padded.push(sum / f64::from(y.taps * x.taps));
                }
            }
            let pool = Pool::new(&taps.map(|size| size as u64)).strides(&strides).pads(&pads).dilations(&dilations);
            for dtype in [DType::F32, DType::F16] {
                let input = images.expr(gpu, dtype);
                let near = if dtype == DType::F16 { bounds::HALF } else { bounds::FEW };
                for (name, expr, expected) in [
                    ("max", input.max_pool(&pool), &largest),
                    ("mean", input.average_pool(&pool), &means),
                    ("padded", input.average_pool(&pool.clone().count_include_pad(true)), &padded),
                ] {
                    let got = gpu.evaluate_blocking(&expr.cast(DType::F32)).unwrap().to_vec_blocking().unwrap();
                    let bound = if name == "max" { bounds::EXACT } else { near };
                    bound.check(&got, expected, &format!("{name} {number} of {dtype} on {backend}"));
                }
                let got = gpu.evaluate_blocking(&input.max_pool_indices(&pool)).unwrap();
                let got = got.to_host_blocking().unwrap().into_typed::<u32>().unwrap();
                assert_eq!(got, places, "{number} of {dtype} on {backend}");
            }
        }
        let images = Array::random(&[2, 3, 4, 5], 7);
        let values = |expr: &Expr| gpu.evaluate_blocking(expr).unwrap().to_vec_blocking().unwrap();
        let input = images.expr(gpu, DType::F32);
        assert_eq!(input.global_max_pool().shape().unwrap(), [2, 3, 1, 1]);
        let means = values(&input.global_average_pool());
        for (channel, (got, values)) in values(&input.global_max_pool()).iter().zip(images.values.chunks(20)).enumerate() {
            assert_eq!(f64::from(*got), values.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b)));
            assert!(bounds::ABOUT_ONE.holds(means[channel].into(), values.iter().sum::<f64>() / 20.0), "{backend}");
        }
    });
}

/// Where there are many windows, GPUs read what several rows of them share once, which is no reason for another result.
#[test]
fn many_windows_give_what_few_give() {
    for ([channels, height, width], dtype) in [([1760, 30, 19], DType::F32), ([940, 41, 52], DType::F16)] {
        let images = Array::random(&[1, channels, height, width], 8);
        let filters = Array::random(&[channels, 1, 3, 3], 9);
        everywhere(|gpu, backend| {
            let operands = [&images, &filters].map(|array| gpu.evaluate_blocking(&array.expr(gpu, dtype)).unwrap());
            let of = |first: usize, end: usize, what: &str| {
                let part = |at: usize, axis| Expr::from(operands[at].clone()).slice(axis, first as i64, end as i64, 1);
                let pool = Pool::new(&[3, 3]).strides(&[2, 1]).pads(&[[1, 0], [1, 1]]);
                let expr = match what {
                    "conv" => part(0, 1).conv(part(1, 0), &Conv::default().pads(&[[1; 2]; 2]).groups((end - first) as u64)),
                    "max" => part(0, 1).max_pool(&pool),
                    _ => part(0, 1).average_pool(&pool),
                };
                gpu.evaluate_blocking(&expr.cast(DType::F32)).unwrap().to_vec_blocking().unwrap()
            };
            for what in ["conv", "max", "average"] {
                let all = of(0, channels, what);
                let (first, last) = (of(0, 5, what), of(channels - 3, channels, what));
                assert_eq!(all[..first.len()], first, "{what} of {dtype} on {backend}");
                assert_eq!(all[all.len() - last.len()..], last, "{what} of {dtype} on {backend}");
            }
        });
    }
}

#[test]
fn many_filters_of_three_by_three_are_within_the_bound_of_their_method() {
    // Three ways to lie: with edges, with fours, and with padding on one side alone.
    for (size, pads) in [([61, 60], [[1; 2]; 2]), ([64, 64], [[1; 2]; 2]), ([63, 65], [[0, 2], [2, 0]])] {
        let case = Case { input: [2, 64, size[0], size[1]], filters: [64, 3, 3], strides: [1; 2], pads, dilations: [1; 2], groups: 1 };
        let (images, filters) = (Array::random(&case.input, 1), Array::random(&[64, 64, 3, 3], 2));
        let bias = Array::random(&[64], 3);
        let [y, x] = case.windows();
        everywhere(|gpu, backend| {
            let how = Conv::default().pads(&pads).bias(bias.expr(gpu, DType::F32)).activation(Activation::Relu);
            let conv = images.expr(gpu, DType::F32).conv(filters.expr(gpu, DType::F32), &how);
            let got = gpu.evaluate_blocking(&conv).unwrap().to_vec_blocking().unwrap();
            assert_eq!(got.len(), 2 * 64 * (y.steps * x.steps) as usize);
            // Some of them, of every place within a tile.
            for at in (0..got.len()).step_by(97) {
                let (plane, place) = (at / (y.steps * x.steps) as usize, at as u32 % (y.steps * x.steps));
                let (image, filter) = (plane / 64, plane % 64);
                let mut sum = bias.values[filter];
                for c in 0..64 {
                    for (i, j) in (0..3).flat_map(|i| (0..3).map(move |j| (i, j))) {
                        let at = [self::place(&y, place / x.steps, i), self::place(&x, place % x.steps, j)];
                        let weight = filters.values[((filter * 64 + c) * 3 + i as usize) * 3 + j as usize];
                        let value = images.at(image, c, at).map_or(0.0, |(_, value)| value);
                        sum += weight * value;
                    }
                }
                // The numbers are between -1 and 1.
                let bound = bounds::winograd(9 * 64);
                let error = (f64::from(got[at]) - sum.max(0.0)).abs();
                assert!(error <= bound, "{at} of {size:?} on {backend}: {} instead of {}", got[at], sum.max(0.0));
            }
        });
    }
}

/// A window that holds what is not a number, or infinite, has no number as its result, and the others are as they were: but for Winograd's
/// method, by which all of the tile's 4 × 4 results may be none.
#[test]
fn what_is_not_a_number_stays_in_its_windows() {
    let [plain, padded] = [[[0; 2]; 2], [[1; 2]; 2]];
    let cases = [
        ([1, 2, 9, 11], [3, 3, 3], [1; 2], padded, [1; 2], 1),
        ([1, 8, 9, 12], [8, 3, 3], [2, 1], plain, [1, 2], 1),
        ([1, 6, 8, 8], [6, 3, 3], [1; 2], padded, [1; 2], 6),
        ([1, 16, 8, 8], [20, 1, 1], [1; 2], plain, [1; 2], 1),
        ([1, 32, 88, 88], [32, 3, 3], [1; 2], padded, [1; 2], 1),
    ];
    for (input, filters, strides, pads, dilations, groups) in cases {
        let case = Case { input, filters, strides, pads, dilations, groups };
        let [y, x] = case.windows();
        let (row, column) = (5, 6);
        let reaches = |window: &Window, step: u32, to: i64| (0..window.taps).any(|tap| place(window, step, tap) == to);
        for special in [f64::NAN, f64::INFINITY] {
            let (mut images, weights) =
                (Array::random(&input, 1), Array::random(&[filters[0], input[1] / groups, filters[1], filters[2]], 2));
            images.values[row * input[3] + column] = special;
            // That method is for f32 alone.
            for &dtype in &[DType::F32, DType::F16][..if input[1] == 32 { 1 } else { 2 }] {
                everywhere(|gpu, backend| {
                    let how = Conv::default().strides(&strides).pads(&pads).dilations(&dilations).groups(groups as u64);
                    let conv = images.expr(gpu, dtype).conv(weights.expr(gpu, dtype), &how).cast(DType::F32);
                    let got = gpu.evaluate_blocking(&conv).unwrap().to_vec_blocking().unwrap();
                    let is_tiled = input[1] == 32 && [BackendId::Vulkan, BackendId::WebGpu].contains(&backend);
                    for (at, value) in got.iter().enumerate() {
                        let (plane, at) = (at as u32 / (y.steps * x.steps), at as u32 % (y.steps * x.steps));
                        let (i, j) = (at / x.steps, at % x.steps);
                        // Filters of other groups than the first do not see the first channel.
                        let is_seen = plane < (filters[0] / groups) as u32;
                        let is_in = is_seen && reaches(&y, i, row as i64) && reaches(&x, j, column as i64);
                        let tile = |window: &Window, step: u32, to: i64| (0..4).any(|other| reaches(window, step / 4 * 4 + other, to));
                        let may_be = is_in || is_tiled && tile(&y, i, row as i64) && tile(&x, j, column as i64);
                        let text = || format!("{value} at {plane}, {i}, {j} of {input:?} of {dtype} with {special} on {backend}");
                        assert!(!is_in || !value.is_finite() && (is_tiled || special.is_nan() == value.is_nan()), "{}", text());
                        assert!(may_be || value.is_finite(), "{}", text());
                    }
                });
            }
        }
    }
}

#[test]
fn what_is_not_a_number_is_the_largest() {
    everywhere(|gpu, backend| {
        let values = [1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.0, f32::NEG_INFINITY, f32::NEG_INFINITY];
        let input = Expr::from(gpu.tensor_blocking(&values, 1, 7).unwrap()).reshape(&[1, 1, 7]);
        let got = gpu.evaluate_blocking(&input.max_pool(&Pool::new(&[2]))).unwrap().to_vec_blocking().unwrap();
        assert!(got[0].is_nan() && got[1].is_nan(), "{backend}: {got:?}");
        assert_eq!(got[2..], [f32::INFINITY, -1.0, -1.0, f32::NEG_INFINITY], "{backend}");
        let got = gpu.evaluate_blocking(&input.max_pool_indices(&Pool::new(&[2]))).unwrap();
        let got = got.to_host_blocking().unwrap().into_typed::<u32>().unwrap();
        assert_eq!(got, [1, 1, 2, 4, 4, 5], "{backend}");
    });
}

#[test]
fn a_window_that_sees_nothing_has_the_first_place_of_its_plane() {
    everywhere(|gpu, backend| {
        let input = Expr::from(gpu.tensor_blocking(&[1.0f32, 5.0, 2.0, 8.0, 6.0, 7.0], 1, 6).unwrap()).reshape(&[1, 2, 3]);
        // The fourth window's two elements are before the input and behind it.
        let pool = Pool::new(&[2]).dilations(&[4]).pads(&[[4, 4]]);
        let got = gpu.evaluate_blocking(&input.max_pool(&pool)).unwrap().to_vec_blocking().unwrap();
        let none = f32::NEG_INFINITY;
        assert_eq!(got, [1.0, 5.0, 2.0, none, 1.0, 5.0, 2.0, 8.0, 6.0, 7.0, none, 8.0, 6.0, 7.0], "{backend}");
        let got = gpu.evaluate_blocking(&input.max_pool_indices(&pool)).unwrap();
        let got = got.to_host_blocking().unwrap().into_typed::<u32>().unwrap();
        assert_eq!(got, [0, 1, 2, 0, 0, 1, 2, 3, 4, 5, 3, 3, 4, 5], "{backend}");
    });
}

#[test]
fn empty_batches_are_empty() {
    everywhere(|gpu, backend| {
        let input = Expr::from(gpu.tensor_blocking(&[0.0f32; 0], 0, 1).unwrap()).reshape(&[0, 2, 5, 5]);
        let filters = Array::random(&[3, 2, 2, 2], 1).expr(gpu, DType::F32);
        for (expr, shape) in [(input.conv(&filters, &Conv::default()), [0, 3, 4, 4]), (input.max_pool(&Pool::new(&[3, 3])), [0, 2, 3, 3])] {
            let tensor = gpu.evaluate_blocking(&expr).unwrap();
            assert_eq!((tensor.shape(), tensor.to_vec_blocking().unwrap().len()), (&shape[..], 0), "{backend}");
        }
    });
}

#[test]
fn what_is_wrong_is_told_with_the_numbers() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    let of = |shape: &[usize]| Array::random(shape, 1).expr(&gpu, DType::F32);
    let (input, filters) = (of(&[2, 4, 5, 6]), of(&[6, 4, 3, 3]));
    let text = |expr: Expr| gpu.evaluate_blocking(&expr).unwrap_err().to_string();
    let conv = |how: &Conv| text(input.conv(&filters, how));
    assert_eq!(
        text(input.conv(of(&[6, 4, 6, 3]), &Conv::default())),
        "the extent of a kernel is 6, but it must be at most 5, the input's size with its padding"
    );
    assert_eq!(
        conv(&Conv::default().dilations(&[3, 1])),
        "the extent of a kernel is 7, but it must be at most 5, the input's size with its padding"
    );
    assert_eq!(conv(&Conv::default().strides(&[0, 1])), "a stride is 0, but it must be a whole number from 1 to 1073741824");
    assert_eq!(conv(&Conv::default().groups(3)), "the number of groups is 3, but it must be a divisor of the number of channels, 4");
    assert_eq!(
        conv(&Conv::default().strides(&[1])),
        "the number of strides is 1, but it must be 2, one for each dimension that the window slides along"
    );
    assert_eq!(
        conv(&Conv::default().groups(2)),
        "the shape of the filters is [6, 4, 3, 3], but it must be one of 4 dimensions, the second of 2, since the input is [2, 4, 5, 6] in 2 groups"
    );
    assert_eq!(
        text(of(&[2, 4, 5, 6]).conv(of(&[5, 2, 3, 3]), &Conv::default().groups(2))),
        "the number of filters is 5, but it must be a multiple of the number of groups, 2"
    );
    assert_eq!(conv(&Conv::default().bias(of(&[4]))), "the shape of the bias is [4], but it must be [6], a number for each filter");
    assert_eq!(
        text(input.cast(DType::I32).conv(&filters, &Conv::default())),
        "the input of a convolution must be of f32 or f16, but it is of i32"
    );
    assert_eq!(text(input.conv(filters.cast(DType::F16), &Conv::default())), "the filters must be of the input's type, but it is of f16");
    assert_eq!(
        text(of(&[4, 5]).conv(&filters, &Conv::default())),
        "the input of a convolution is [4, 5], but it must be of 3 to 4 dimensions"
    );
    assert_eq!(text(of(&[4, 5]).global_max_pool()), "the input of a pool is [4, 5], but it must be of 3 to 5 dimensions");
    assert_eq!(
        text(input.max_pool(&Pool::new(&[]))),
        "the number of the kernel's sizes is 0, but it must be 2, one for each dimension that the window slides along"
    );
    assert_eq!(
        text(input.max_pool(&Pool::new(&[2, 2]).pads(&[[0, 2], [0, 0]]))),
        "a pad of a pool is 2, but it must be less than the window's extent, which is 2"
    );
    assert_eq!(
        conv(&Conv::default().pads(&[[1 << 31, 0], [0, 0]])),
        "a pad is 2147483648, but it must be a whole number from 0 to 1073741824"
    );
}

#[test]
fn a_bias_is_of_f32_or_of_the_type_of_the_input() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let [input, filters] = [[1, 1, 4], [1, 1, 2]].map(|shape| Expr::index(&shape));
    let with =
        |dtype: DType, bias: DType| input.cast(dtype).conv(filters.cast(dtype), &Conv::default().bias((Expr::index(&[1]) + 5).cast(bias)));
    for (dtype, bias) in [(DType::F32, DType::I32), (DType::F32, DType::F16), (DType::F16, DType::Bool)] {
        assert_eq!(gpu.evaluate_blocking(&with(dtype, bias)).unwrap_err().code(), "invalid_type", "{bias} beside {dtype}");
    }
    for (dtype, bias) in [(DType::F32, DType::F32), (DType::F16, DType::F32), (DType::F16, DType::F16)] {
        let result = gpu.evaluate_blocking(&with(dtype, bias).cast(DType::F32)).unwrap();
        assert_eq!(result.to_vec_blocking().unwrap(), [6.0, 7.0, 8.0], "{bias} beside {dtype}");
    }
}

/// A mean adds up its lines, so that a large number takes the digits of its own line alone.
#[test]
fn a_mean_of_many_keeps_its_digits() {
    everywhere(|gpu, backend| {
        let (lines, columns) = (128, 128);
        let mut values = vec![1.0f32; lines * columns];
        values[0] = (1 << 24) as f32;
        let sum: f64 = values.iter().map(|&value| f64::from(value)).sum();
        let exact = sum / values.len() as f64;
        let image = Expr::from(gpu.tensor_blocking(&values, lines as u64, columns as u64).unwrap()).reshape(&[1, 1, 128, 128]);
        let mean = gpu.evaluate_blocking(&image.average_pool(&Pool::new(&[128, 128]))).unwrap().to_vec_blocking().unwrap();
        let error = (f64::from(mean[0]) - exact).abs();
        assert!(error <= bounds::pooled([lines, columns], sum), "{backend} {} is off by {error}", mean[0]);
    });
}

/// The places of a window may be more than 32 bits count.
#[test]
fn a_mean_of_places_past_counting() {
    everywhere(|gpu, backend| {
        let one = Expr::from(gpu.tensor_blocking(&[1.0f32], 1, 1).unwrap()).reshape(&[1, 1, 1, 1]);
        let pool = Pool::new(&[1 << 16, 1 << 16]).pads(&[[(1 << 16) - 1, 0], [(1 << 16) - 1, 0]]).count_include_pad(true);
        let mean = gpu.evaluate_blocking(&one.average_pool(&pool)).unwrap().to_vec_blocking().unwrap();
        assert_eq!(mean, [2.0f32.powi(-32)], "{backend}");
    });
}
