//! Reductions on every backend that is there, against the same in f64.

mod bounds;
mod devices;
#[path = "reduce/extremes.rs"]
mod extremes;
#[path = "reduce/rows.rs"]
mod rows;

use bounds::U;
use devices::everywhere;
use half::f16;
use lapidary::{BackendId, DType, Element, Expr, Gpu, Options, Padding, random};

fn host<T: Element>(gpu: &Gpu, expr: &Expr) -> Vec<T> {
    gpu.evaluate_blocking(expr).unwrap().to_host_blocking().unwrap().into_typed::<T>().unwrap()
}

fn tensor<T: Element>(gpu: &Gpu, values: &[T], shape: &[u64]) -> Expr {
    Expr::from(gpu.tensor_blocking(values, 1, values.len() as u64).unwrap().reshape(shape).unwrap())
}

/// The values of each element of the result, row by row.
fn groups(values: &[f64], shape: &[u64], axes: &[usize]) -> Vec<Vec<f64>> {
    let kept: Vec<_> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let count: u64 = kept.iter().map(|&axis| shape[axis]).product();
    let mut groups = vec![Vec::new(); count as usize];
    for (at, &value) in values.iter().enumerate() {
        let (mut rest, mut coordinates) = (at as u64, vec![0; shape.len()]);
        for axis in (0..shape.len()).rev() {
            coordinates[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        groups[kept.iter().fold(0, |place, &axis| place * shape[axis] + coordinates[axis]) as usize].push(value);
    }
    groups
}

/// What is asked for, the exact value, and how far off a backend may be.
type Case = (&'static str, fn(&Expr, &[i64]) -> Expr, fn(&[f64]) -> f64, fn(&[f64]) -> f64);

fn sum(x: &[f64]) -> f64 {
    x.iter().sum()
}

fn mean(x: &[f64]) -> f64 {
    sum(x) / x.len() as f64
}

fn spread(x: &[f64]) -> f64 {
    let mean = mean(x);
    x.iter().map(|x| (x - mean).powi(2)).sum()
}

const CASES: &[Case] = &[
    ("sum", |e, axes| e.sum(Some(axes), false), sum, bounds::sum),
    ("mean", |e, axes| e.mean(Some(axes), false), mean, bounds::mean),
    ("amax", |e, axes| e.amax(Some(axes), false), |x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max), |_| 0.0),
    ("amin", |e, axes| e.amin(Some(axes), false), |x| x.iter().copied().fold(f64::INFINITY, f64::min), |_| 0.0),
    ("var", |e, axes| e.var(Some(axes), false, 0.0), |x| spread(x) / x.len() as f64, |x| bounds::variance(x.len(), mean(x), spread(x))),
    (
        "std",
        |e, axes| e.std(Some(axes), false, 0.0),
        |x| (spread(x) / x.len() as f64).sqrt(),
        |x| bounds::deviation(x.len(), mean(x), spread(x)),
    ),
    ("norm_l1", |e, axes| e.norm_l1(Some(axes), false), |x| x.iter().map(|x| x.abs()).sum(), bounds::sum),
    ("norm_l2", |e, axes| e.norm_l2(Some(axes), false), |x| x.iter().map(|x| x * x).sum::<f64>().sqrt(), bounds::norm),
    ("log_sum_exp", |e, axes| e.log_sum_exp(Some(axes), false), |x| x.iter().map(|x| x.exp()).sum::<f64>().ln(), |_| bounds::LOG_SUM_EXP),
    (
        "prod",
        |e, axes| (e * 0.01 + 1.0).prod(Some(axes), false),
        |x| x.iter().map(|x| 0.01 * x + 1.0).product(),
        |x| bounds::product(4 * x.len(), x.iter().map(|x| 0.01 * x + 1.0).product()),
    ),
];

#[test]
fn every_shape_along_every_axis() {
    let shapes: &[(&[u64], &[&[usize]])] = &[
        (&[1], &[&[0], &[]]),
        (&[7], &[&[0]]),
        (&[3, 5], &[&[0], &[1], &[0, 1], &[]]),
        (&[2, 3, 4], &[&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]]),
        (&[5, 1, 6, 7], &[&[0, 2], &[1, 3], &[2], &[1]]),
        (&[300, 17], &[&[0], &[1]]),
        (&[64, 68], &[&[0], &[1]]),
        (&[2, 9001], &[&[0], &[1]]),
        (&[4000, 3], &[&[0], &[1]]),
        (&[70_000], &[&[0]]),
        (&[20_000, 4], &[&[0]]),
    ];
    everywhere(|gpu, backend| {
        for (number, (shape, all_axes)) in shapes.iter().enumerate() {
            let count = shape.iter().product::<u64>() as usize;
            let values: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1009) as f32 / 100.0 - 3.0).collect();
            let (exact, input) = (values.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), tensor(gpu, &values, shape));
            for axes in *all_axes {
                let groups = groups(&exact, shape, axes);
                let given: Vec<i64> = axes.iter().map(|&axis| axis as i64 - if axis % 2 == 0 { 0 } else { shape.len() as i64 }).collect();
                for (name, expr, oracle, bound) in CASES {
                    // Products of many are beyond all numbers; and each kernel takes its time to compile.
                    if (*name == "prod" && groups[0].len() > 300) || (number > 3 && !matches!(*name, "sum" | "var" | "log_sum_exp")) {
                        continue;
                    }
                    let got: Vec<f32> = host(gpu, &expr(&input, &given));
                    assert_eq!(got.len(), groups.len(), "{backend} {name} {shape:?} {axes:?}");
                    for (place, (got, group)) in got.iter().zip(&groups).enumerate() {
                        let (expected, bound) = (oracle(group), bound(group));
                        let off = (f64::from(*got) - expected).abs();
                        assert!(
                            off <= bound + U * expected.abs(),
                            "{backend} {name} {shape:?} {axes:?} at {place}: {got} is {off} off {expected}, more than {bound}"
                        );
                    }
                }
                let first = |x: &[f64], is_better: fn(f64, f64) -> bool| {
                    (1..x.len()).fold(0, |best, at| if is_better(x[at], x[best]) { at } else { best }) as u32
                };
                let expected: Vec<u32> = groups.iter().map(|x| first(x, |a, b| a > b)).collect();
                assert_eq!(host::<u32>(gpu, &input.argmax(Some(&given), false)), expected, "{backend} argmax {shape:?} {axes:?}");
                let expected: Vec<u32> = groups.iter().map(|x| first(x, |a, b| a < b)).collect();
                assert_eq!(host::<u32>(gpu, &input.argmin(Some(&given), false)), expected, "{backend} argmin {shape:?} {axes:?}");
            }
        }
    });
}

#[test]
fn shapes_at_random_along_axes_at_random() {
    everywhere(|gpu, backend| {
        for seed in 0..16 {
            let pick = |at: u64, below: u64| ((random::element(seed, at) + 1.0) / 2.0 * below as f32) as u64;
            let rank = 1 + pick(0, 4);
            let shape: Vec<_> = (0..rank).map(|at| 1 + pick(1 + at, [9, 70][usize::from(pick(10 + at, 4) == 0)])).collect();
            let axes: Vec<_> = (0..rank as usize).filter(|&axis| pick(20 + axis as u64, 2) == 0).collect();
            let given: Vec<_> = axes.iter().map(|&axis| axis as i64 - if pick(30, 2) == 0 { 0 } else { rank as i64 }).collect();
            let values = random::matrix(shape.iter().product::<u64>() as usize, seed);
            let exact: Vec<_> = values.iter().map(|&x| f64::from(x)).collect();
            let (name, expr, oracle, bound) = &CASES[(seed % 6) as usize];
            let got: Vec<f32> = host(gpu, &expr(&tensor(gpu, &values, &shape), &given));
            let groups = groups(&exact, &shape, &axes);
            assert_eq!(got.len(), groups.len(), "{backend} {name} {shape:?} {axes:?}");
            for (place, (got, group)) in got.iter().zip(&groups).enumerate() {
                let (expected, bound) = (oracle(group), bound(group));
                let off = (f64::from(*got) - expected).abs();
                let within = off <= bound + U * expected.abs();
                assert!(within, "{backend} {name} {shape:?} {axes:?} at {place}: {got} is {off} off {expected}, more than {bound}");
            }
        }
    });
}

/// Bit by bit, whatever else the device or the threads of the CPU were at.
/// Neighbours in memory may be neighbours along any dimension of what is read, of those that stay and of those that are reduced.
#[test]
fn views_whose_neighbours_are_anywhere() {
    let shape = [18, 5, 17, 33];
    let values: Vec<f32> = (0..18 * 5 * 17 * 33).map(|i| ((i * 7919) % 1009) as f32 / 100.0 - 3.0).collect();
    everywhere(|gpu, backend| {
        let input = tensor(gpu, &values, &shape);
        for order in [[3, 1, 0, 2], [1, 3, 2, 0], [3, 2, 1, 0], [2, 3, 0, 1]] {
            let viewed = input.transpose(Some(&order));
            let viewed_shape = order.map(|axis| shape[axis as usize]);
            // The same in order, which is computed elsewhere.
            let exact: Vec<f64> = host::<f32>(gpu, &viewed).into_iter().map(f64::from).collect();
            for axes in [&[1][..], &[2], &[1, 3], &[0, 2], &[2, 3], &[0, 1, 3]] {
                let groups = groups(&exact, &viewed_shape, &axes.iter().map(|&axis| axis as usize).collect::<Vec<_>>());
                let place = |x: &[f64]| (1..x.len()).fold(0, |best, at| if x[at] > x[best] { at } else { best }) as u32;
                let expected: Vec<u32> = groups.iter().map(|x| place(x)).collect();
                assert_eq!(host::<u32>(gpu, &viewed.argmax(Some(axes), false)), expected, "{backend} argmax {order:?} {axes:?}");
                // Alone, and with something before and behind it.
                for (expr, of) in [
                    (viewed.sum(Some(axes), false), sum as fn(&[f64]) -> f64),
                    ((&viewed * 2.0).sum(Some(axes), false).sub(1.0), |x| 2.0 * sum(x) - 1.0),
                ] {
                    let got: Vec<f32> = host(gpu, &expr);
                    assert_eq!(got.len(), groups.len(), "{backend} {order:?} {axes:?}");
                    for (place, (got, group)) in got.iter().zip(&groups).enumerate() {
                        let (expected, bound) = (of(group), 2.0 * bounds::sum(group) + U);
                        let off = (f64::from(*got) - expected).abs();
                        assert!(off <= bound + U * expected.abs(), "{backend} sum {order:?} {axes:?} at {place}: {got}, not {expected}");
                    }
                }
            }
        }
    });
}

#[test]
fn the_same_from_run_to_run() {
    everywhere(|gpu, backend| {
        for (shape, axes) in [(&[300_001][..], &[0][..]), (&[700, 600], &[0]), (&[700, 600], &[1]), (&[37, 50, 41], &[0, 2])] {
            let values = random::matrix(shape.iter().product::<u64>() as usize, 5);
            let input = tensor(gpu, &values, shape);
            let all = [
                input.sum(Some(axes), false),
                input.mean(Some(axes), false),
                input.var(Some(axes), false, 1.0),
                input.norm_l2(Some(axes), false),
                input.log_sum_exp(Some(axes), false),
                input.prod(Some(axes), false),
            ];
            let bits = |expr: &Expr| host::<f32>(gpu, expr).into_iter().map(f32::to_bits).collect::<Vec<_>>();
            let first: Vec<_> = all.iter().map(bits).collect();
            for _ in 0..3 {
                for (number, (expr, first)) in all.iter().zip(&first).enumerate() {
                    assert!(bits(expr) == *first, "{backend}: reduction {number} of {shape:?} along {axes:?} differs from run to run");
                }
            }
        }
    });
}

#[test]
fn what_comes_before_and_after_is_part_of_it() {
    everywhere(|gpu, backend| {
        let values: Vec<f32> = (0..6 * 8).map(|i| (i % 11) as f32 - 4.0).collect();
        let (a, b) = (tensor(gpu, &values, &[6, 8]), tensor(gpu, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[8]));
        let at = |r: usize, c: usize| values[r * 8 + c];
        // Of a view, of a function, kept, and more after it.
        let e = (a.transpose(None) * 2.0 + b.reshape(&[8, 1])).sum(Some(&[0]), true).sqrt();
        assert_eq!(e.shape().unwrap(), [1, 6]);
        let expected: Vec<f64> = (0..6).map(|r| (0..8).map(|c| f64::from(at(r, c)) * 2.0 + (c + 1) as f64).sum::<f64>().sqrt()).collect();
        let got = host::<f32>(gpu, &e);
        bounds::FEW.check(&got, &expected, backend.name());
        // What was padded and cut.
        let e = a.pad(&[[1, 1], [0, 3]], Padding::Constant(1.0)).slice(1, 2, 11, 2).sum(Some(&[1]), false);
        let row = |r: usize| (2..11).step_by(2).map(|c| if (1..7).contains(&r) && c < 8 { at(r - 1, c) } else { 1.0 }).sum::<f32>();
        assert_eq!(host::<f32>(gpu, &e), (0..8).map(row).collect::<Vec<_>>(), "{backend}");
        // A reduction of what a reduction goes into.
        let e = (&a - a.mean(Some(&[1]), true)).square().mean(Some(&[1]), false) - a.var(Some(&[1]), false, 0.0);
        // Squares are up to 64.
        bounds::FEW.scaled(64.0).check(&host(gpu, &e), &[0.0; 6], backend.name());
        // Numbers of elements, whatever the order in which they are folded.
        let index = Expr::index(&[40, 30]);
        assert_eq!(
            host::<u32>(gpu, &index.sum(Some(&[0]), false)),
            (0..30).map(|c| (0..40).map(|r| r * 30 + c).sum()).collect::<Vec<u32>>()
        );
        assert_eq!(host::<u32>(gpu, &(index + 5.0).amax(Some(&[1]), false)), (0..40).map(|r| r * 30 + 34).collect::<Vec<u32>>());
        // Long sums lose nothing: one by one in f32 they would end at 2²⁴.
        assert_eq!(
            host::<f32>(gpu, &Expr::number(1.0).broadcast_to(&[1 << 25]).sum(None, false)),
            [f32::from_bits(0x4c00_0000)],
            "{backend}"
        );
    });
}

#[test]
fn types() {
    everywhere(|gpu, backend| {
        let signed: Vec<i32> = vec![i32::MAX, 1, -7, i32::MIN, 3, 4];
        let i = tensor(gpu, &signed, &[2, 3]);
        assert_eq!(host::<i32>(gpu, &i.sum(Some(&[1]), false)), [i32::MAX - 6, i32::MIN + 7], "{backend}");
        assert_eq!(host::<i32>(gpu, &i.sum(Some(&[0]), false)), [-1, 4, -3], "{backend}");
        assert_eq!(host::<i32>(gpu, &i.prod(Some(&[1]), false)), [i32::MAX.wrapping_mul(-7), i32::MIN.wrapping_mul(12)], "{backend}");
        assert_eq!(host::<i32>(gpu, &i.amax(None, false)), [i32::MAX], "{backend}");
        assert_eq!(host::<i32>(gpu, &i.amin(Some(&[0]), false)), [i32::MIN, 1, -7], "{backend}");
        assert_eq!(host::<u32>(gpu, &i.argmin(None, false)), [3], "{backend}");
        let mean = host::<f32>(gpu, &tensor(gpu, &[1i32, 2, 4], &[3]).mean(None, false))[0];
        assert!(bounds::DIVISION.holds(mean.into(), 7.0 / 3.0), "{backend}: {mean}");
        let u = tensor(gpu, &[u32::MAX, 2, 0, 5], &[2, 2]);
        assert_eq!(host::<u32>(gpu, &u.sum(Some(&[1]), false)), [1, 5], "{backend}");
        assert_eq!(host::<u32>(gpu, &u.amax(Some(&[0]), false)), [u32::MAX, 5], "{backend}");
        assert_eq!(host::<u32>(gpu, &u.amin(None, false)), [0], "{backend}");
        assert_eq!(host::<u32>(gpu, &u.argmax(Some(&[1]), false)), [0, 1], "{backend}");
        let t = tensor(gpu, &[true, false, true, false, false, false], &[2, 3]);
        assert_eq!(host::<bool>(gpu, &t.any(Some(&[1]), false)), [true, false], "{backend}");
        assert_eq!(host::<bool>(gpu, &t.all(Some(&[0]), false)), [false, false, false], "{backend}");
        assert_eq!(host::<u32>(gpu, &t.count(None, false)), [2], "{backend}");
        let mean = host::<f32>(gpu, &t.mean(None, false))[0];
        assert!(bounds::DIVISION.holds(mean.into(), 1.0 / 3.0), "{backend}: {mean}");
        assert_eq!(host::<bool>(gpu, &tensor(gpu, &[1.0f32, f32::NAN], &[2]).all(None, false)), [true], "{backend}");
        // Of f16 the sum is wide and the result is rounded.
        let halves: Vec<f16> = (0..4100).map(|i| f16::from_f32(if i % 2 == 0 { 16.0 } else { 0.5 })).collect();
        let h = tensor(gpu, &halves, &[2, 2050]);
        assert_eq!(h.sum(None, false).dtype().unwrap(), DType::F16);
        assert_eq!(host::<f16>(gpu, &h.sum(Some(&[1]), false)), [f16::from_f32(16912.5); 2], "{backend}");
        assert_eq!(host::<f16>(gpu, &h.mean(Some(&[0]), false))[..2], [f16::from_f32(16.0), f16::from_f32(0.5)], "{backend}");
        assert_eq!(host::<f16>(gpu, &h.amax(None, false)), [f16::from_f32(16.0)], "{backend}");
        assert_eq!(host::<u32>(gpu, &h.argmin(Some(&[1]), true)), [1, 1], "{backend}");
    });
}

#[test]
fn of_nothing() {
    everywhere(|gpu, backend| {
        let a = tensor::<f32>(gpu, &[], &[3, 0]);
        assert_eq!(host::<f32>(gpu, &a.sum(Some(&[1]), false)), [0.0; 3], "{backend}");
        assert_eq!(host::<f32>(gpu, &a.prod(Some(&[1]), true)), [1.0; 3], "{backend}");
        assert!(host::<f32>(gpu, &a.mean(None, false))[0].is_nan(), "{backend}");
        assert!(host::<f32>(gpu, &a.var(Some(&[1]), false, 0.0)).iter().all(|x| x.is_nan()), "{backend}");
        assert_eq!(host::<f32>(gpu, &a.norm_l2(None, false)), [0.0], "{backend}");
        assert_eq!(host::<f32>(gpu, &a.log_sum_exp(None, false)), [f32::NEG_INFINITY], "{backend}");
        assert_eq!(host::<bool>(gpu, &a.all(None, false)), [true], "{backend}");
        assert_eq!(host::<bool>(gpu, &a.any(None, false)), [false], "{backend}");
        assert_eq!(host::<f32>(gpu, &a.sum(Some(&[0]), false)), [0.0; 0], "{backend}");
        assert_eq!(host::<f32>(gpu, &a.amax(Some(&[0]), false)), [0.0; 0], "{backend}");
    });
}

#[test]
fn what_is_wrong_is_told_with_the_numbers() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let text = |expr: Expr| gpu.evaluate_blocking(&expr).unwrap_err().to_string();
    let a = tensor(&gpu, &[1.0f32; 6], &[2, 3]);
    assert_eq!(text(a.sum(Some(&[2]), false)), "an axis is 2, but it must be from -2 to 1");
    assert_eq!(text(a.sum(Some(&[1, -1]), false)), "an axis is 1, but it must be each axis once");
    assert_eq!(text(Expr::number(1.0).sum(Some(&[0]), false)), "an axis is 0, but it must be none, since a single number has no axes");
    let empty = tensor::<f32>(&gpu, &[], &[3, 0]);
    assert_eq!(
        text(empty.amax(Some(&[1]), false)),
        "the shape is [3, 0], but it must be one with at least one element to reduce: max has no value of none"
    );
    assert_eq!(
        text(empty.argmin(None, false)),
        "the shape is [3, 0], but it must be one with at least one element to reduce: argmin has no value of none"
    );
    assert_eq!(text(a.var(None, false, -1.0)), "the correction is -1, but it must be a number from 0 on");
    assert_eq!(text(a.var(None, false, f64::NAN)), "the correction is NaN, but it must be a number from 0 on");
    let t = a.less(2.0);
    assert_eq!(
        text(t.sum(None, false)),
        "the operand of sum must be of f32, f16, i32 or u32; of truths there are any, all and count, but it is of bool"
    );
}
