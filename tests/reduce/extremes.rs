//! Numbers at the edges: none at all, infinite, large, and one that stands out among others.

use super::*;

/// However they are put together, some of them are beyond all numbers where that of those in front never is.
#[test]
fn products_whose_parts_are_beyond_all_numbers() {
    everywhere(|gpu, backend| {
        let power = |exponent: i32| 2f32.powi(exponent);
        for period in [2, 3, 8, 32, 100] {
            // As many large ones as small ones, each as far behind the one that it goes with.
            let values = |count: usize| {
                (0..count).map(move |i| {
                    if i % period == 0 {
                        power(100)
                    } else if i % period == 1 {
                        power(-100)
                    } else {
                        1.0
                    }
                })
            };
            for count in [period, 16 * period, 4800 * period] {
                let values: Vec<f32> = values(count).collect();
                assert_eq!(
                    host::<f32>(gpu, &tensor(gpu, &values, &[count as u64]).prod(None, false)),
                    [1.0],
                    "{backend}: {count} by {period}"
                );
            }
            let values: Vec<f32> = values(16 * period).flat_map(|value| [value; 40]).collect();
            let columns = tensor(gpu, &values, &[16 * period as u64, 40]).prod(Some(&[0]), false);
            assert_eq!(host::<f32>(gpu, &columns), [1.0; 40], "{backend}: columns by {period}");
        }
        // Parts that no double holds, of a product that an f32 does, or nearly.
        for (first, second) in [(0.85f32, 1.2f32), (1.2, 0.85), (1.2, 0.8), (0.8, 1.3)] {
            let values: Vec<f32> = (0..8192).map(|i| if i < 4096 { first } else { second }).collect();
            let found = host::<f32>(gpu, &tensor(gpu, &values, &[8192]).prod(None, false))[0];
            let expected = (f64::from(first) * f64::from(second)).powi(4096);
            let is_near = (f64::from(found) - expected).abs() <= bounds::product(8192, expected);
            assert!(found == expected as f32 || is_near, "{backend}: {first} and {second}: {found}, not {expected}");
        }
        // A number below all normal ones, which a GPU may take for zero.
        let small = host::<f32>(gpu, &tensor(gpu, &[f32::from_bits(1 << 9), power(100), power(40), 3.0], &[4]).prod(None, false));
        assert!(small == [3.0] || small == [0.0] && gpu.info().unwrap().backend.is_gpu(), "{backend}: {small:?}");
        let rows = [
            [1e30, 1e30, -1.0, 1.0, f32::NEG_INFINITY],
            [1e-30, -1e-30, 1.0, 1.0, -0.0],
            [f32::INFINITY, 0.0, 1.0, 1.0, f32::NAN],
            [f32::INFINITY, -1e-30, 1e-30, 1e-30, f32::NEG_INFINITY],
            [0.0, 1e30, 1e30, -1.0, -0.0],
            [f32::NAN, 1e30, 1e30, 1e30, f32::NAN],
            [f32::MAX, f32::MIN_POSITIVE, 1.0, -1.0, -f32::MAX * f32::MIN_POSITIVE],
        ];
        let values: Vec<f32> = rows.iter().flat_map(|row| row[..4].to_vec()).collect();
        let found = host::<f32>(gpu, &tensor(gpu, &values, &[rows.len() as u64, 4]).prod(Some(&[1]), false));
        for (found, [factors @ .., expected]) in found.iter().zip(rows) {
            let is_right = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
            assert!(is_right, "{backend}: {found}, not {expected}, of {factors:?}");
        }
    });
}

#[test]
fn numbers_that_are_none() {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    everywhere(|gpu, backend| {
        let rows: [[f32; 5]; 7] = [
            [1.0, nan, inf, -2.0, nan],
            [-inf; 5],
            [inf, 1.0, 2.0, 3.0, -inf],
            [-0.0, 0.0, -0.0, 0.0, -0.0],
            [3.0, 7.0, 7.0, 3.0, 7.0],
            [-nan, 1.0, 1.0, 1.0, 1.0],
            [1e-42, -1.0, -1e38, 3e38, 5.0],
        ];
        // As they are, and as columns.
        let a = tensor(gpu, &rows.concat(), &[7, 5]);
        for (e, axis) in [(a.clone(), 1), (a.transpose(None), 0), (Expr::concat(&[a.transpose(None)], 0), 0)] {
            let same = |got: Vec<f32>, expected: [f32; 7], name: &str| {
                let alike = |(a, b): (&f32, &f32)| a == b || (a.is_nan() && b.is_nan());
                assert!(got.iter().zip(&expected).all(alike), "{backend} {name} {axis}: {got:?} {expected:?}");
            };
            let axes = Some(&[axis][..]);
            same(host(gpu, &e.amax(axes, false)), [nan, -inf, inf, 0.0, 7.0, nan, 3e38], "amax");
            same(host(gpu, &e.amin(axes, false)), [nan, -inf, -inf, 0.0, 3.0, nan, -1e38], "amin");
            assert_eq!(host::<u32>(gpu, &e.argmax(axes, false)), [1, 0, 0, 0, 1, 0, 3], "{backend} {axis}");
            assert_eq!(host::<u32>(gpu, &e.argmin(axes, false)), [1, 0, 4, 0, 0, 0, 2], "{backend} {axis}");
            same(host(gpu, &e.sum(axes, false)), [nan, -inf, nan, 0.0, 27.0, nan, 2e38f32.next_up()], "sum");
            same(
                host(gpu, &e.log_sum_exp(axes, false).slice(0, 0, 3, 1).pad(&[[0, 4]], Padding::Constant(0.0))),
                [nan, -inf, inf, 0.0, 0.0, 0.0, 0.0],
                "lse",
            );
            let norms: Vec<f32> = host(gpu, &e.norm_l2(axes, false));
            same(norms[..4].iter().copied().chain([0.0, norms[5], 0.0]).collect(), [nan, inf, inf, 0.0, 0.0, nan, 0.0], "norm");
            assert!(bounds::CLOSE.holds(norms[4].into(), 165f64.sqrt()), "{backend}: {}", norms[4]);
            assert!(bounds::CLOSE.holds(norms[6].into(), 1e77f64.sqrt()), "{backend}: {}", norms[6]);
        }
        let one = |values: &[f32]| tensor(gpu, values, &[values.len() as u64]);
        let near = |e: Expr, expected: f32| {
            let got = host::<f32>(gpu, &e)[0];
            assert!(bounds::NORM.holds(got.into(), expected.into()), "{backend}: {got} {expected}");
        };
        near(one(&[3e30, 4e30]).norm_l2(None, false), 5e30);
        // So many that the sum of their squares is beyond all numbers, though each is not.
        near(Expr::number(4e15).broadcast_to(&[1 << 25]).norm_l2(None, false), 2.317_047_4e19);
        near(one(&[3e-30, 4e-30, 0.0]).norm_l2(None, false), 5e-30);
        near(one(&[3e-20, 4e-20, 1e-25]).norm_l2(None, false), 5e-20);
        near(one(&[1e3, 1e3]).log_sum_exp(None, false), 1_000.693_1);
        near(one(&[-1e4, -1e4]).log_sum_exp(None, false), -9999.307);
        near(one(&[1e30, -1e30, 2.0]).log_sum_exp(None, false), 1e30);
        // A mean far from zero.
        let far: Vec<f32> = (0..5000).map(|i| 1e6 + (i % 3) as f32).collect();
        near(one(&far).var(None, false, 0.0), 0.666_6);
        near(one(&[1.0, 2.0, 3.0, 4.0]).var(None, false, 1.0), 5.0 / 3.0);
        assert!(host::<f32>(gpu, &one(&[1.0]).var(None, false, 1.0))[0].is_nan(), "{backend}");
        near(one(&[1e30, 1e30]).var(None, false, 0.0), 0.0);
        // A single value that is no number, or infinite, has no spread.
        let single = tensor(gpu, &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0], &[4, 1]);
        for spread in
            [single.var(Some(&[1]), false, 0.0), single.std(Some(&[1]), false, 0.0), single.var(Some(&[]), false, 0.0).reshape(&[4])]
        {
            let got = host::<f32>(gpu, &spread);
            assert!(got[..3].iter().all(|x| x.is_nan()) && got[3] == 0.0, "{backend}: {got:?}");
        }
        // Sums and means of nothing but -0 are +0, if no driver takes 0 + x for x.
        let zeros = tensor(gpu, &[-0.0; 6], &[2, 3]);
        for sum in [zeros.sum(Some(&[0]), false), zeros.mean(Some(&[0]), false), zeros.sum(Some(&[1]), false)] {
            assert!(backend.is_gpu() || host::<f32>(gpu, &sum).iter().all(|x| x.to_bits() == 0), "{backend}");
        }
    });
}

#[test]
fn what_stands_out_in_long_rows() {
    everywhere(|gpu, backend| {
        for count in [4096, 5003] {
            let places = [17, count / 2 + 5, count - 34];
            let noise = |i: usize| ((i * 7919) % 1009) as f32 - 504.0;
            for (number, &place) in places.iter().enumerate() {
                // Twice the largest, twice the smallest behind it, and in another row what is no number between them.
                let behind = place + 33;
                let row = |what: [f32; 2]| {
                    (0..count).map(move |i| {
                        if i == place {
                            what[0]
                        } else if i == behind {
                            what[1]
                        } else {
                            noise(i)
                        }
                    })
                };
                let rows = [[2000.0, 2000.0], [-2000.0, -2000.0], [2000.0, f32::NAN], [f32::NAN, -2000.0]];
                let values: Vec<f32> = rows.into_iter().flat_map(row).collect();
                let a = tensor(gpu, &values, &[4, count as u64]);
                let known = Expr::from(gpu.evaluate_blocking(&a.cast(DType::F16)).unwrap());
                let columns = Expr::from(gpu.evaluate_blocking(&a.transpose(None)).unwrap());
                for (e, axis) in [(&a, 1), (&known, 1), (&columns, 0)] {
                    let axes = Some(&[axis][..]);
                    let told = format!("{backend} {count} {number} {axis}");
                    let places = host::<u32>(gpu, &e.argmax(axes, false));
                    assert_eq!([places[0], places[2], places[3]], [place, behind, place].map(|place| place as u32), "{told}");
                    let places = host::<u32>(gpu, &e.argmin(axes, false));
                    assert_eq!([places[1], places[2], places[3]], [place, behind, place].map(|place| place as u32), "{told}");
                    let [most, least]: [Vec<f32>; 2] = [e.amax(axes, false), e.amin(axes, false)].map(|e| host(gpu, &e.cast(DType::F32)));
                    assert_eq!((most[0], least[1]), (2000.0, -2000.0), "{told}");
                    assert!([most[2], most[3], least[2], least[3]].iter().all(|x| x.is_nan()), "{told}: {most:?} {least:?}");
                }
                // Squares beyond all numbers, and below.
                for scale in [1e30f32, 1e-30, 1.0] {
                    let row = (0..count).map(|i| {
                        if i == place {
                            3.0 * scale
                        } else if i == behind {
                            4.0 * scale
                        } else {
                            0.0
                        }
                    });
                    let got = host::<f32>(gpu, &tensor(gpu, &row.collect::<Vec<_>>(), &[count as u64]).norm_l2(None, false))[0];
                    assert!(bounds::NORM.holds(got.into(), 5.0 * f64::from(scale)), "{backend} {count} {number}: {got}");
                }
            }
        }
    });
}

/// Sums of such values, or of the squares of their distances, are beyond all numbers of f32.
#[test]
fn variances_of_large_numbers() {
    everywhere(|gpu, backend| {
        // Squares of these are nothing in f32, which GPUs compute them in.
        for (number, count) in [(1e-22f32, 2), (1e-25, 2), (1e-25, 1000), (1e-25, 5000)] {
            let values: Vec<f32> = (0..count).map(|i| if i % 2 == 0 { number } else { -number }).collect();
            for shape in [[1, count], [count, 1]].into_iter().filter(|_| !backend.is_gpu()) {
                let got = host::<f32>(gpu, &tensor(gpu, &values, &shape).std(Some(&[i64::from(shape[0] == 1)]), false, 0.0))[0];
                assert!(bounds::CLOSE.holds(f64::from(got) / f64::from(number), 1.0), "{backend} std of {shape:?} of {number}: {got}");
            }
        }
        for (count, even, odd, expected) in [
            (5000, 1e18f32, -1e18f32, 1e36f32),
            (40_000, 1e17, -1e17, 1e34),
            (4, 1e19, -1e19, 1e38),
            (2, 2e38, 2e38, 0.0),
            (400, 1e36, 1e36, 0.0),
            (5000, 1e35, 1e35, 0.0),
            (70_000, 1e33, 1e33, 0.0),
        ] {
            let values: Vec<f32> = (0..count).map(|i| if i % 2 == 0 { even } else { odd }).collect();
            for (shape, axis) in [([1, count], 1), ([count, 1], 0)] {
                let got = host::<f32>(gpu, &tensor(gpu, &values, &shape).var(Some(&[axis]), false, 0.0))[0];
                assert!(
                    bounds::VARIANCE.holds(got.into(), expected.into()),
                    "{backend} var of {count} {even} and {odd} along {axis}: {got}"
                );
            }
            // As two columns.
            let two: Vec<f32> = values.iter().flat_map(|&value| [value, value]).collect();
            let got: Vec<f32> = host(gpu, &tensor(gpu, &two, &[count, 2]).var(Some(&[0]), false, 0.0));
            assert!(
                got.iter().all(|&got| bounds::VARIANCE.holds(got.into(), expected.into())),
                "{backend} columns of {count} {even} and {odd}: {got:?}"
            );
        }
    });
}
