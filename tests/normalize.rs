//! Softmax and norms on every backend that is there, against the same in f64.

mod bounds;
mod devices;

use bounds::{CLOSE, HALF, LAYER_NORM, LAYER_NORM_ENDED, LAYER_NORM_FAR, LOG_SOFTMAX, RMS_NORM, SOFTMAX};
use devices::everywhere;
use half::f16;
use lapidary::{BackendId, DType, Element, Expr, Gpu, Options, Padding};

fn host<T: Element>(gpu: &Gpu, expr: &Expr) -> Vec<T> {
    gpu.evaluate_blocking(expr).unwrap().to_host_blocking().unwrap().into_typed::<T>().unwrap()
}

fn tensor<T: Element>(gpu: &Gpu, values: &[T], shape: &[u64]) -> Expr {
    Expr::from(gpu.tensor_blocking(values, 1, values.len() as u64).unwrap().reshape(shape).unwrap())
}

/// Does something to each row along an axis.
fn along(values: &[f64], shape: &[u64], axis: usize, each: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let inner = shape[axis + 1..].iter().product::<u64>() as usize;
    let (size, mut out) = (shape[axis] as usize, values.to_vec());
    for start in (0..values.len()).filter(|at| (at / inner).is_multiple_of(size)) {
        let places: Vec<_> = (0..size).map(|i| start + i * inner).collect();
        let row: Vec<_> = places.iter().map(|&place| values[place]).collect();
        for (&place, made) in places.iter().zip(each(&row)) {
            out[place] = made;
        }
    }
    out
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
    row.iter().map(|x| (x - largest).exp() / sum).collect()
}

fn log_softmax(row: &[f64]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|x| (x - largest).exp()).sum();
    row.iter().map(|x| x - largest - sum.ln()).collect()
}

fn layer_norm(row: &[f64]) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    row.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt()).collect()
}

fn rms_norm(row: &[f64]) -> Vec<f64> {
    let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| x / (mean + 1e-5).sqrt()).collect()
}

#[test]
fn every_shape_along_every_axis() {
    // The last ones are longer than what one kernel takes, as rows and as columns.
    let shapes: &[(&[u64], &[usize])] = &[
        (&[1], &[0]),
        (&[5, 7], &[0, 1]),
        (&[9, 64], &[0, 1]),
        (&[2, 3, 20], &[0, 1, 2]),
        (&[3, 1000], &[1]),
        (&[3, 5000], &[0, 1]),
        (&[2, 1025], &[1]),
        (&[700, 33], &[0, 1]),
        (&[300, 10], &[1]),
        (&[5, 20, 127], &[2]),
        (&[130, 65], &[1]),
        (&[9, 4095], &[1]),
        (&[33, 258], &[1]),
        (&[700, 3], &[1]),
        (&[2, 16_384], &[1]),
        (&[2, 20_001], &[1]),
        (&[1, 70_001], &[1]),
        (&[3000, 5], &[0]),
    ];
    everywhere(|gpu, backend| {
        for (shape, axes) in shapes {
            let count = shape.iter().product::<u64>() as usize;
            let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1009) as f32 / 100.0 - 3.0).collect();
            let (exact, input) = (values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), tensor(gpu, &values, shape));
            for &axis in *axes {
                let (what, at) = (|name: &str| format!("{backend} {name} {shape:?} {axis}"), axis as i64);
                SOFTMAX.check(&host(gpu, &input.softmax(at)), &along(&exact, shape, axis, softmax), &what("softmax"));
                let logarithms = along(&exact, shape, axis, log_softmax);
                LOG_SOFTMAX.check(&host(gpu, &input.log_softmax(at)), &logarithms, &what("log_softmax"));
                let normal = along(&exact, shape, axis, layer_norm);
                LAYER_NORM.check(&host(gpu, &input.layer_norm(&[at], None, None, 1e-5)), &normal, &what("layer_norm"));
                RMS_NORM.check(&host(gpu, &input.rms_norm(&[at], None, 1e-5)), &along(&exact, shape, axis, rms_norm), &what("rms_norm"));
            }
        }
    });
}

/// Long rows of what is computed of all inputs that a kernel has, with a scale, a bias, and something after it.
#[test]
fn long_rows_of_many_inputs() {
    everywhere(|gpu, backend| {
        for (shape, axis) in [([2u64, 20_001], 1), ([2, 20_000], 1), ([1, 70_001], 1), ([1, 70_000], 1), ([3000, 3], 0)] {
            let count = (shape[0] * shape[1]) as usize;
            let made = |by: usize| (0..count).map(|i| (i * by % 1009) as f32 / 500.0 - 1.0).collect::<Vec<_>>();
            let inputs = [7919, 6101, 5003, 4001, 3001, 2003].map(made);
            let values = inputs.iter().map(|input| tensor(gpu, input, &shape)).reduce(|sum, input| sum + input).unwrap();
            let exact: Vec<f64> = (0..count).map(|i| inputs.iter().map(|input| f64::from(input[i])).sum()).collect();
            let [scale, bias, after] = [1999, 997, 499].map(made);
            let [s, b, a] = [&scale, &bias, &after].map(|input| tensor(gpu, input, &shape));
            let got = host::<f32>(gpu, &(values.layer_norm(&[axis as i64], Some(&s), Some(&b), 1e-5).relu() + a));
            let after_norm = |(i, x): (usize, &f64)| (x * f64::from(scale[i]) + f64::from(bias[i])).max(0.0) + f64::from(after[i]);
            let expected: Vec<_> = along(&exact, &shape, axis, layer_norm).iter().enumerate().map(after_norm).collect();
            LAYER_NORM.check(&got, &expected, &format!("{backend} {shape:?}"));
            let got = host::<f32>(gpu, &values.softmax(axis as i64).mul(2.0));
            let expected: Vec<_> = along(&exact, &shape, axis, softmax).iter().map(|x| x * 2.0).collect();
            SOFTMAX.check(&got, &expected, &format!("{backend} softmax of {shape:?}"));
        }
    });
}

/// The mean's own last digits are not those of what is near to it, however long the rows.
#[test]
fn layer_norms_of_rows_far_from_zero() {
    everywhere(|gpu, backend| {
        for (shape, axis) in [([2, 300], 1), ([1, 16_385], 1), ([1, 65_537], 1), ([1, 200_000], 1), ([4096, 2], 0)] {
            let count = (shape[0] * shape[1]) as u32;
            let values: Vec<f32> = (0..count).map(|i| 1e6 + (i.wrapping_mul(0x9e37_79b9) >> 20) as f32 / 512.0).collect();
            let exact: Vec<_> = values.iter().map(|&x| f64::from(x)).collect();
            let got = host(gpu, &tensor(gpu, &values, &shape).layer_norm(&[axis as i64], None, None, 1e-5));
            LAYER_NORM_FAR.check(&got, &along(&exact, &shape, axis, layer_norm), &format!("{backend} {shape:?}"));
        }
        // The sum of squared distances is beyond all numbers.
        let large: Vec<f32> = (0..5000).map(|i| if i % 2 == 0 { 1e18 } else { -1e18 }).collect();
        let got: Vec<f32> = host(gpu, &tensor(gpu, &large, &[1, 5000]).layer_norm(&[1], None, None, 1e-5));
        CLOSE.check(&got, &large.iter().map(|x| f64::from(x.signum())).collect::<Vec<_>>(), &format!("{backend} large"));
    });
}

/// Neither a first value that is far from all others takes digits from them, nor one in their midst.
#[test]
fn layer_norms_of_rows_with_a_value_that_stands_out() {
    everywhere(|gpu, backend| {
        for (shape, axis) in [([2, 48], 1), ([2, 300], 1), ([3, 4096], 1), ([1, 40_000], 1), ([1, 100_000], 1), ([4096, 3], 0)] {
            for place in [0, 2] {
                let count = (shape[0] * shape[1]) as usize;
                let mut values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1009) as f32 / 500.0 - 1.0).collect();
                let along_rows = axis == 1;
                for row in 0..if along_rows { shape[0] } else { shape[1] } {
                    values[(if along_rows { row * shape[1] + place } else { place * shape[1] + row }) as usize] = 1e4;
                }
                let exact: Vec<_> = values.iter().map(|&x| f64::from(x)).collect();
                let got = host(gpu, &tensor(gpu, &values, &shape).layer_norm(&[axis as i64], None, None, 1e-5));
                LAYER_NORM_FAR.check(&got, &along(&exact, &shape, axis, layer_norm), &format!("{backend} {shape:?} from {place}"));
            }
        }
    });
}

#[test]
fn scales_and_biases() {
    everywhere(|gpu, backend| {
        let (rows, columns) = (6, 24);
        let values: Vec<f32> = (0..rows * columns).map(|i| ((i * 37) % 101) as f32 / 10.0).collect();
        let exact: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
        let scale: Vec<f32> = (0..columns).map(|i| 0.5 + i as f32).collect();
        let bias: Vec<f32> = (0..columns).map(|i| 1.0 - i as f32).collect();
        let a = tensor(gpu, &values, &[6, 24]);
        let (s, b) = (tensor(gpu, &scale, &[24]), tensor(gpu, &bias, &[24]));
        let normal = along(&exact, &[6, 24], 1, layer_norm);
        let of = |f: &dyn Fn(usize, f64) -> f64| normal.iter().enumerate().map(|(i, &x)| f(i % columns, x)).collect::<Vec<_>>();
        let (scale, bias) = (|c: usize| f64::from(scale[c]), |c: usize| f64::from(bias[c]));
        let both = of(&|c, x| x * scale(c) + bias(c));
        LAYER_NORM_ENDED.check(&host(gpu, &a.layer_norm(&[-1], Some(&s), Some(&b), 1e-5)), &both, &format!("{backend} both"));
        LAYER_NORM_ENDED.check(
            &host(gpu, &a.layer_norm(&[1], Some(&s), None, 1e-5)),
            &of(&|c, x| x * scale(c)),
            &format!("{backend} scale"),
        );
        LAYER_NORM_ENDED.check(&host(gpu, &a.layer_norm(&[1], None, Some(&b), 1e-5)), &of(&|c, x| x + bias(c)), &format!("{backend} bias"));
        let e = a.layer_norm(&[1], Some(&Expr::number(2.0)), None, 1e-5).relu() + 1.0;
        LAYER_NORM_ENDED.check(&host(gpu, &e), &of(&|_, x| (2.0 * x).max(0.0) + 1.0), &format!("{backend} number"));
        // The same of short rows that are no whole fours.
        for (rows, n) in [(13, 11), (7, 19), (6, 22)] {
            let short = tensor(gpu, &values[..n * rows], &[rows as u64, n as u64]);
            let [s_short, b_short] = [&s, &b].map(|x| x.slice(0, 0, n as i64, 1));
            let expected: Vec<f64> = along(&exact[..n * rows], &[rows as u64, n as u64], 1, layer_norm)
                .iter()
                .enumerate()
                .map(|(i, x)| (x * scale(i % n) + bias(i % n)).max(0.0) + exact[i])
                .collect();
            let e = short.layer_norm(&[1], Some(&s_short), Some(&b_short), 1e-5).relu() + &short;
            LAYER_NORM_ENDED.check(&host(gpu, &e), &expected, &format!("{backend} rows of {n}"));
        }
        // Along two axes, of a view, with a scale of all of it.
        let t = a.reshape(&[6, 4, 6]).transpose(Some(&[2, 0, 1]));
        let order = |i: usize| i / 24 + i % 4 * 6 + i / 4 % 6 * 24;
        let view: Vec<f64> = (0..144).map(|i| exact[order(i)]).collect();
        let expected: Vec<f64> = along(&view, &[6, 24], 1, layer_norm).iter().enumerate().map(|(i, x)| x * scale(i % 24)).collect();
        LAYER_NORM_ENDED.check(
            &host(gpu, &t.layer_norm(&[1, 2], Some(&s.reshape(&[6, 4])), None, 1e-5)),
            &expected,
            &format!("{backend} view"),
        );
        // What comes before is fused, and what is padded is read within its bounds.
        let padded = (&a * 2.0).pad(&[[0, 0], [0, 4]], Padding::Constant(0.0));
        let wide: Vec<f64> = (0..6 * 28).map(|i| if i % 28 < 24 { 2.0 * exact[i / 28 * 24 + i % 28] } else { 0.0 }).collect();
        SOFTMAX.check(&host(gpu, &padded.softmax(1)), &along(&wide, &[6, 28], 1, softmax), &format!("{backend} padded"));
        SOFTMAX.check(
            &host(gpu, &padded.transpose(None).softmax(1).transpose(None)),
            &along(&wide, &[6, 28], 0, softmax),
            &format!("{backend} padded columns"),
        );
        let rms: Vec<f64> = along(&exact, &[6, 24], 1, rms_norm).iter().enumerate().map(|(i, x)| x * scale(i % 24)).collect();
        RMS_NORM.scaled(24.0).check(&host(gpu, &a.rms_norm(&[1], Some(&s), 1e-5)), &rms, &format!("{backend} rms"));
        // Of two images of three channels.
        let x = a.reshape(&[2, 3, 4, 6]);
        let channel = |values: [f32; 3]| tensor(gpu, &values, &[3]);
        let e =
            x.batch_norm(&channel([1.0, 2.0, 3.0]), &channel([0.5, 0.0, -1.0]), &channel([1.0, 2.0, 4.0]), &channel([0.25, 1.0, 9.0]), 0.0);
        let expected: Vec<f64> = (0..144)
            .map(|i| {
                let c = i / 24 % 3;
                (exact[i] - [1.0, 2.0, 4.0][c]) / [0.5, 1.0, 3.0][c] * [1.0, 2.0, 3.0][c] + [0.5, 0.0, -1.0][c]
            })
            .collect();
        CLOSE.check(&host(gpu, &e), &expected, &format!("{backend} batch"));
    });
}

#[test]
fn halves() {
    everywhere(|gpu, backend| {
        // In whole words, in halves of words, in columns, and of what is read here and there.
        for (columns, axis) in [(8, 1), (7, 1), (8, 0)] {
            let values: Vec<f16> = (0..6 * columns).map(|i| f16::from_f32(((i * 5) % 11) as f32 - 4.0)).collect();
            let exact: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
            let expected: Vec<f64> = along(&exact, &[6, columns as u64], axis, softmax);
            let a = tensor(gpu, &values, &[6, columns as u64]);
            let e = a.softmax(axis as i64);
            assert_eq!(e.dtype().unwrap(), DType::F16);
            let got: Vec<f32> = host::<f16>(gpu, &e).iter().map(|x| x.to_f32()).collect();
            HALF.check(&got, &expected, &format!("{backend} {columns} {axis}"));
            let e = a.pad(&[[0, 0], [0, 4]], Padding::Constant(-100.0)).softmax(1).slice(1, 0, columns as i64, 1);
            let got: Vec<f32> = host::<f16>(gpu, &e).iter().map(|x| x.to_f32()).collect();
            HALF.check(&got, &along(&exact, &[6, columns as u64], 1, softmax), &format!("{backend} padded {columns}"));
        }
    });
}

/// Wherever they begin and end among fours and words, with what is NaN or infinite in one row and its neighbours as they are.
#[test]
fn halves_of_rows_of_any_length() {
    everywhere(|gpu, backend| {
        for (rows, n) in [
            (9, 1),
            (9, 2),
            (9, 3),
            (30, 7),
            (6, 8),
            (7, 16),
            (5, 17),
            (50, 33),
            (9, 70),
            (13, 101),
            (6, 259),
            (3, 1030),
            (3, 4099),
            (2, 20_001),
        ] {
            let what = |of: &str| format!("{backend} {of} of {rows} x {n}");
            let values: Vec<f16> = (0..rows * n).map(|i| f16::from_f32((i * 7919 % 1009) as f32 / 128.0 - 3.0)).collect();
            let exact: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
            let shape = [rows as u64, n as u64];
            let a = tensor(gpu, &values, &shape);
            let read = |e: &Expr| host::<f16>(gpu, e).iter().map(|x| x.to_f32()).collect::<Vec<_>>();
            HALF.check(&read(&a.softmax(1)), &along(&exact, &shape, 1, softmax), &what("softmax"));
            let [scale, bias] = [0, n].map(|first| tensor(gpu, &values[first..first + n], &[n as u64]));
            let normal = along(&exact, &shape, 1, layer_norm);
            let ended: Vec<_> = normal.iter().enumerate().map(|(i, x)| x * exact[i % n] + exact[n + i % n]).collect();
            HALF.check(&read(&a.layer_norm(&[1], None, None, 1e-5)), &normal, &what("layer norm"));
            HALF.scaled(16.0).check(&read(&a.layer_norm(&[1], Some(&scale), Some(&bias), 1e-5)), &ended, &what("scaled layer norm"));
            HALF.check(&read(&a.rms_norm(&[1], None, 1e-5)), &along(&exact, &shape, 1, rms_norm), &what("RMS norm"));
            // What is the whole of a row that has it is nothing of others.
            let mut wrong = values.clone();
            (wrong[0], wrong[2 * n - 1]) = (f16::NAN, f16::INFINITY);
            let a = tensor(gpu, &wrong, &shape);
            for (of, e) in [("softmax", a.softmax(1)), ("layer norm", a.layer_norm(&[1], None, None, 1e-5))] {
                let got = read(&e);
                assert!(got[..2 * n].iter().all(|x| x.is_nan()), "{}: {:?}", what(of), &got[..2 * n]);
                assert!(got[2 * n..].iter().all(|x| x.is_finite()), "{}: {:?}", what(of), &got[2 * n..]);
            }
        }
    });
}

/// Rows of f16 whose values do not lie behind one another, and so neither do those of the result.
#[test]
fn halves_of_rows_that_are_apart() {
    for (shape, axes) in [(&[2u64, 2, 4][..], &[0i64, 2][..]), (&[3, 5, 8], &[0, 2]), (&[2, 3, 2, 4], &[1, 3]), (&[2, 3, 4], &[1, 2])] {
        let count: u64 = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|i| (i * 7 % 23) as f32 - 9.0).collect();
        everywhere(|gpu, backend| {
            let [x, h] =
                [DType::F32, DType::F16].map(|dtype| Expr::from(gpu.evaluate_blocking(&tensor(gpu, &numbers, shape).cast(dtype)).unwrap()));
            let forms: [fn(&Expr, &[i64]) -> Expr; 2] =
                [|x, axes| x.layer_norm(axes, None, None, 1e-5), |x, axes| x.rms_norm(axes, None, 1e-5)];
            for form in forms {
                let expected: Vec<f64> = host::<f32>(gpu, &form(&x, axes)).into_iter().map(f64::from).collect();
                let got = host::<f32>(gpu, &form(&h, axes).cast(DType::F32));
                HALF.check(&got, &expected, &format!("{shape:?} along {axes:?} on {backend}"));
            }
        });
    }
}

/// Squares of these are no numbers, or nothing; neither is the rows' length to be seen.
#[test]
fn large_and_small_numbers_in_rows_of_any_length() {
    everywhere(|gpu, backend| {
        let cases = [
            (1e30f32, 1000u64),
            (1e30, 20_000),
            (1e-15, 1000),
            (1e-15, 20_000),
            (1e-25, 1000),
            (1e-30, 1000),
            (1e-30, 20_000),
            (3e38, 1000),
            (3e38, 20_000),
            (1e30, 100_000),
            (3e38, 100_000),
        ];
        for (number, count) in cases {
            let row = Expr::from(f64::from(number)).broadcast_to(&[2, count]);
            for (expr, axes) in [(&row, 1), (&row.transpose(None), 0)] {
                let got = host::<f32>(gpu, &expr.rms_norm(&[axes], None, 0.0));
                RMS_NORM.check(&got, &vec![1.0; got.len()], &format!("{count} times {number} along {axes} on {backend}"));
            }
        }
        let mut cases = vec![(1e20f32, 1000u64), (1e38, 1000), (1e20, 20_000), (1e30, 20_000), (1e-15, 20_000)];
        cases.extend([(1e-22, 1000), (1e-25, 2), (1e-25, 1000), (1e-25, 20_000), (1e20, 100_000), (1e30, 100_000)]);
        for (number, count) in cases {
            // On GPUs sums and squares are in single precision: squares of large numbers are told from others, those of small ones are not.
            if backend.is_gpu() && !(1e-20..=1e30).contains(&number) {
                continue;
            }
            let signs = Expr::index(&[2, count]).rem(2u32).cast(DType::F32).mul(2.0).sub(1.0);
            let row = signs.mul(f64::from(number));
            for (expr, axes) in [(&row, 1), (&row.transpose(None), 0)] {
                let got = host::<f32>(
                    gpu,
                    &expr.layer_norm(&[axes], None, None, 0.0).mul(if axes == 1 { signs.clone() } else { signs.transpose(None) }),
                );
                LAYER_NORM.check(&got, &vec![1.0; got.len()], &format!("{count} of {number} and less along {axes} on {backend}"));
            }
        }
        // What they are multiplied by is no number of f32 then.
        if !backend.is_gpu() {
            let row = tensor(gpu, &[1e-40f32, -1e-40, 1e-40, -1e-40], &[4]);
            for got in [row.rms_norm(&[0], None, 0.0), row.layer_norm(&[0], None, None, 0.0)] {
                CLOSE.check(&host(gpu, &got), &[1.0, -1.0, 1.0, -1.0], &format!("least on {backend}"));
            }
        }
        // Beside the largest numbers others are what they are, and of those between epsilon is seen.
        let row: Vec<f32> = (0..1000).map(|i| [f32::MAX, -1e38, 1e10, 0.0][i % 4]).collect();
        let root = (row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / 1000.0).sqrt();
        let expected: Vec<f64> = row.iter().map(|&x| f64::from(x) / root).collect();
        CLOSE.check(&host(gpu, &tensor(gpu, &row, &[1000]).rms_norm(&[0], None, 1e-5)), &expected, &format!("largest on {backend}"));
        let got = host::<f32>(gpu, &Expr::from(1e16).broadcast_to(&[100]).rms_norm(&[0], None, 1e32));
        CLOSE.check(&got, &[0.5f64.sqrt(); 100], &format!("epsilon on {backend}"));
        let rows = tensor(gpu, &[0.0f32, 3.0, f32::INFINITY, f32::NAN], &[4, 1]).broadcast_to(&[4, 20_000]);
        let got = host::<f32>(gpu, &rows.rms_norm(&[1], None, 16.0));
        assert_eq!(got[0], 0.0, "{backend}");
        CLOSE.check(&got[20_000..20_001], &[0.6], backend.name());
        assert!(got[40_000..].iter().all(|number| number.is_nan()), "{backend}");
    });
}

#[test]
fn numbers_that_are_none() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    everywhere(|gpu, backend| {
        let rows: [[f32; 4]; 6] = [
            [1.0, nan, 0.0, 2.0],
            [-inf; 4],
            [inf, 1.0, 2.0, -inf],
            [-inf, 0.0, 0.0, -inf],
            [1e30, 1e30, -1e30, 0.0],
            [-3e38, 3e38, 0.0, 3e38],
        ];
        let a = tensor(gpu, &rows.concat(), &[6, 4]);
        let expected = [[nan; 4], [nan; 4], [nan; 4], [0.0, 0.5, 0.5, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.0, 0.5]].concat();
        for (e, name) in
            [(a.softmax(1), "rows"), (a.transpose(None).softmax(0).transpose(None), "columns"), (a.log_softmax(1).exp(), "logarithms")]
        {
            let got: Vec<f32> = host(gpu, &e);
            let alike = |(&a, &b): (&f32, &f32)| CLOSE.holds(a.into(), b.into()) || (a.is_nan() && b.is_nan());
            assert!(got.iter().zip(&expected).all(alike), "{backend} {name}: {got:?}");
        }
        // Far from zero, and large.
        let far: Vec<f32> = (0..64).map(|i| 1e6 + (i % 2) as f32).collect();
        let got: Vec<f32> = host(gpu, &tensor(gpu, &far, &[64]).layer_norm(&[0], None, None, 0.0));
        LAYER_NORM.check(&got, &[-1.0, 1.0].repeat(32), &format!("{backend} far from zero"));
        let got: Vec<f32> = host(gpu, &tensor(gpu, &[1e30f32, -1e30, 1e30, 1e30], &[4]).rms_norm(&[0], None, 1e-5));
        RMS_NORM.check(&got, &[1.0, -1.0, 1.0, 1.0], &format!("{backend} large"));
        assert_eq!(host::<f32>(gpu, &tensor::<f32>(gpu, &[], &[3, 0]).softmax(1)), [0.0; 0], "{backend}");
        assert_eq!(host::<f32>(gpu, &tensor::<f32>(gpu, &[], &[0, 3]).layer_norm(&[1], None, None, 0.0)), [0.0; 0], "{backend}");
    });
}

#[test]
fn what_is_wrong_is_told_with_the_numbers() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let text = |expr: Expr| gpu.evaluate_blocking(&expr).unwrap_err().to_string();
    let a = tensor(&gpu, &[1.0f32; 6], &[2, 3]);
    let two = tensor(&gpu, &[1.0f32; 2], &[2]);
    assert_eq!(text(a.softmax(2)), "an axis is 2, but it must be from -2 to 1");
    assert_eq!(text(a.cast(DType::I32).softmax(1)), "the operand of softmax must be of f32 or f16, but it is of i32");
    assert_eq!(text(a.layer_norm(&[1, 1], None, None, 0.0)), "an axis is 1, but it must be each axis once");
    assert_eq!(
        text(a.layer_norm(&[1], Some(&two), None, 0.0)),
        "the shape of the scale or the bias is [2], but it must be one that can be repeated to [2, 3]"
    );
    assert_eq!(
        text(a.layer_norm(&[1], Some(&two.cast(DType::F16)), None, 0.0)),
        "the scale or the bias must be of the type of the values, but it is of f16 beside f32"
    );
    assert_eq!(text(a.rms_norm(&[1], None, -1.0)), "epsilon is -1, but it must be a number from 0 on");
    assert_eq!(
        text(a.batch_norm(&two, &two, &two, &two, 0.0)),
        "the shape of a scale, bias, mean or variance is [2], but it must be [3], a number for each channel of [2, 3]"
    );
    assert_eq!(
        text(two.batch_norm(&two, &two, &two, &two, 0.0)),
        "the number of dimensions is 1, but it must be at least 2: items and their channels"
    );
}

#[test]
fn columns_are_the_same_on_any_number_of_threads() {
    let (rows, columns) = (700, 300);
    let mut values: Vec<f32> = (0..rows * columns).map(|i| ((i * 7919) % 1009) as f32 / 100.0 - 3.0).collect();
    values[5 * columns + 7] = f32::NAN;
    (0..rows).for_each(|row| values[row * columns + 8] = f32::NEG_INFINITY);
    let exact: Vec<f64> = values.iter().map(|&x| f64::from(x)).collect();
    let on = |threads: u32| {
        let gpu = Gpu::open_blocking(Options { threads: Some(threads), ..Options::only(BackendId::Simd) }).unwrap();
        let a = tensor(&gpu, &values, &[rows as u64, columns as u64]);
        [a.softmax(0), a.log_softmax(0), (&a * 2.0).softmax(0)].map(|e| host::<f32>(&gpu, &e))
    };
    let (alone, together) = (on(1), on(8));
    for (one, all) in alone.iter().zip(&together) {
        assert!(one.iter().zip(all).all(|(one, all)| one.to_bits() == all.to_bits()));
    }
    let twice: Vec<f64> = exact.iter().map(|x| 2.0 * x).collect();
    let shape = [rows as u64, columns as u64];
    let expected = [along(&exact, &shape, 0, softmax), along(&exact, &shape, 0, log_softmax), along(&twice, &shape, 0, softmax)];
    for (got, expected) in alone.iter().zip(&expected) {
        for (place, (got, expected)) in got.iter().zip(expected).enumerate() {
            let is_none = matches!(place % columns, 7 | 8);
            let is_right = if is_none { got.is_nan() } else { SOFTMAX.holds(f64::from(*got), *expected) };
            assert!(is_right, "{place}: {got} is not {expected}");
        }
    }
}

/// In f16 an epsilon of less than its least number would be none.
#[test]
fn a_small_epsilon_is_no_number_of_f16() {
    everywhere(|gpu, backend| {
        let of = |value: f32| tensor(gpu, &[value], &[1]).cast(DType::F16);
        let x = of(3.0).reshape(&[1, 1]);
        let normal = x.batch_norm(&of(1.0), &of(0.5), &of(3.0), &of(0.0), 1e-8);
        assert_eq!(host::<f32>(gpu, &normal.cast(DType::F32)), [0.5], "{backend}");
    });
}
