//! Fourier transforms on every backend that is there, against rustfft in f64.
#![cfg(not(target_arch = "wasm32"))]

mod bounds;
mod devices;

use devices::everywhere;
use lapidary::{BackendId, DType, Expr, Gpu, Options, random};
use rustfft::FftPlanner;
use rustfft::num_complex::Complex64;

fn expr(gpu: &Gpu, values: &[f32], shape: &[i64]) -> Expr {
    Expr::from(gpu.tensor_blocking(values, 1, values.len() as u64).unwrap()).reshape(shape)
}

fn values(gpu: &Gpu, expr: &Expr) -> Vec<f32> {
    gpu.evaluate_blocking(expr).unwrap().to_vec_blocking().unwrap()
}

/// The transform of a line; the inverse is scaled.
fn exact(line: &[Complex64], inverse: bool) -> Vec<Complex64> {
    let mut line = line.to_vec();
    let mut planner = FftPlanner::new();
    let n = line.len();
    if inverse { planner.plan_fft_inverse(n) } else { planner.plan_fft_forward(n) }.process(&mut line);
    line.into_iter().map(|x| if inverse { x / n as f64 } else { x }).collect()
}

fn complex(values: &[f32]) -> Vec<Complex64> {
    values.chunks_exact(2).map(|pair| Complex64::new(pair[0].into(), pair[1].into())).collect()
}

/// The error's length over the exact result's, against what grows as log n.
fn check(got: &[Complex64], exact: &[Complex64], n: usize, what: &str) {
    assert_eq!(got.len(), exact.len(), "{what}");
    let length = |values: &mut dyn Iterator<Item = Complex64>| values.map(|x| x.norm_sqr()).sum::<f64>().sqrt();
    let error = length(&mut got.iter().zip(exact).map(|(a, b)| a - b));
    let bound = bounds::fft(n) * length(&mut exact.iter().copied());
    assert!(error <= bound, "{what}: the error is {error:e}, more than {bound:e}");
}

const LENGTHS: [usize; 19] = [1, 2, 3, 4, 5, 7, 8, 11, 12, 32, 37, 105, 243, 512, 1000, 1024, 1155, 2048, 4096];

#[test]
fn transforms_of_any_length() {
    everywhere(|gpu, backend| {
        for n in LENGTHS {
            let what = format!("{n} on {backend}");
            let x = random::matrix(3 * n * 2, n as u64);
            let input = expr(gpu, &x, &[3, n as i64, 2]);
            for inverse in [false, true] {
                let got = values(gpu, &if inverse { input.ifft(-1, None) } else { input.fft(-1, None) });
                for (got, line) in complex(&got).chunks(n).zip(complex(&x).chunks(n)) {
                    check(got, &exact(line, inverse), n, &what);
                }
            }
            let real = expr(gpu, &x, &[3, 2 * n as i64]);
            let half = real.rfft(1, None);
            assert_eq!(half.shape().unwrap(), [3, n as u64 + 1, 2]);
            for (got, line) in complex(&values(gpu, &half)).chunks(n + 1).zip(x.chunks(2 * n)) {
                let line: Vec<_> = line.iter().map(|&x| Complex64::from(f64::from(x))).collect();
                check(got, &exact(&line, false)[..=n], 2 * n, &what);
            }
            let back = values(gpu, &half.irfft(1, None));
            let real = |values: &[f32]| values.iter().map(|&x| Complex64::from(f64::from(x))).collect::<Vec<_>>();
            check(&real(&back), &real(&x), 4 * n * n, &what);
        }
    });
}

#[test]
fn transforms_of_lengths_at_random() {
    everywhere(|gpu, backend| {
        for seed in 0..3 {
            let n = 2 + ((random::element(seed, 0) + 1.0) * 1500.0) as usize;
            let x = random::matrix(2 * n * 2, seed);
            let input = expr(gpu, &x, &[2, n as i64, 2]);
            for inverse in [false, true] {
                let got = values(gpu, &if inverse { input.ifft(-1, None) } else { input.fft(-1, None) });
                for (got, line) in complex(&got).chunks(n).zip(complex(&x).chunks(n)) {
                    check(got, &exact(line, inverse), n, &format!("{n} on {backend}"));
                }
            }
        }
    });
}

#[test]
fn transforms_along_any_axis_and_of_any_part() {
    everywhere(|gpu, backend| {
        for [outer, n, inner] in [[2, 12, 5], [3, 11, 4], [1, 2048, 3], [70, 6, 1]] {
            let what = format!("{outer}x{n}x{inner} on {backend}");
            let x = random::matrix(outer * n * inner * 2, 5);
            let input = expr(gpu, &x, &[outer as i64, n as i64, inner as i64, 2]);
            let pairs = complex(&x);
            for length in [n, n + 3, n / 2] {
                let transformed = input.fft(1, Some(length as u64));
                assert_eq!(transformed.shape().unwrap(), [outer as u64, length as u64, inner as u64, 2]);
                let got = complex(&values(gpu, &transformed));
                for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
                    let line: Vec<_> =
                        (0..length).map(|at| if at < n { pairs[(o * n + at) * inner + i] } else { Complex64::default() }).collect();
                    let got: Vec<_> = (0..length).map(|at| got[(o * length + at) * inner + i]).collect();
                    check(&got, &exact(&line, false), length, &what);
                }
            }
        }
        let x = random::matrix(12 * 10 * 2, 6);
        let input = expr(gpu, &x, &[12, 10, 2]);
        let back = values(gpu, &input.fft2().ifft2());
        check(&complex(&back), &complex(&x), 120 * 120, &format!("there and back on {backend}"));
        let image = expr(gpu, &x[..63], &[9, 7]);
        assert_eq!(image.rfft2().shape().unwrap(), [9, 4, 2]);
        let half = image.rfft2().reshape(&[-1, 2]);
        let whole = image.fft_of_real(-1, None).fft(-2, None).slice(1, 0, 4, 1).reshape(&[-1, 2]);
        check(&complex(&values(gpu, &half)), &complex(&values(gpu, &whole)), 63, &format!("half of a plane on {backend}"));
        let back = values(gpu, &image.rfft2().irfft2(Some(7)));
        let wide: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        bounds::FEW.check(&back, &wide[..63], &format!("a plane and back on {backend}"));
        // Odd lengths have to be said, and what is not there of half a spectrum is zero.
        let odd = values(gpu, &expr(gpu, &x[..15], &[15]).rfft(0, None).irfft(0, Some(15)));
        bounds::ABOUT_ONE.check(&odd, &wide[..15], &format!("an odd length on {backend}"));
        let short = values(gpu, &expr(gpu, &[4.0, 0.0, 1.0, 2.0], &[2, 2]).irfft(0, Some(4)));
        bounds::ABOUT_ONE.check(&short, &[1.5, 0.0, 0.5, 2.0], &format!("half a spectrum on {backend}"));
        // What is its own mirror image is real, and what else stands there is not seen, however large.
        for length in [4u64, 5, 6, 37, 74] {
            let count = length / 2 + 1;
            let mut half: Vec<f32> = (0..2 * count).map(|i| (i * 7 % 5) as f32 - 2.0).collect();
            let mut inverse = |im: f32| {
                for place in std::iter::once(1).chain((length % 2 == 0).then_some(length as usize + 1)) {
                    half[place] = im;
                }
                values(gpu, &expr(gpu, &half, &[count as i64, 2]).irfft(0, Some(length)))
            };
            let right = inverse(0.0);
            for im in [f32::NAN, f32::INFINITY, 1e20] {
                assert_eq!(inverse(im), right, "{length} with {im} on {backend}");
            }
        }
        let all = values(gpu, &expr(gpu, &[1.0, 2.0, 3.0], &[3]).fft_of_real(0, None));
        let root = 0.75f64.sqrt();
        bounds::ABOUT_ONE.check(&all, &[6.0, 0.0, -1.5, root, -1.5, -root], &format!("three on {backend}"));
    });
}

/// So many numbers that the CPU has its threads share the columns, which it gathers some at a time.
#[test]
fn transforms_of_many_columns() {
    everywhere(|gpu, backend| {
        let [outer, n, inner] = [2, 230, 181];
        let x = random::matrix(outer * n * inner * 2, 9);
        let [reals, pairs] =
            [1, 2].map(|parts| expr(gpu, &x[..outer * n * inner * parts], &[outer as i64, n as i64, inner as i64, parts as i64]));
        let reals = reals.reshape(&[outer as i64, n as i64, inner as i64]);
        let column = |values: &[Complex64], along: usize, o: usize, i: usize| -> Vec<_> {
            (0..along).map(|at| values[(o * along + at) * inner + i]).collect()
        };
        for length in [n, 256, 201] {
            let what = format!("{outer}x{n}x{inner} as {length} on {backend}");
            let half = reals.rfft(1, Some(length as u64));
            let found = [&pairs.fft(1, Some(length as u64)), &half].map(|expr| complex(&values(gpu, expr)));
            let back: Vec<_> =
                values(gpu, &half.irfft(1, Some(length as u64))).into_iter().map(|x| Complex64::from(f64::from(x))).collect();
            let given = [complex(&x), x[..outer * n * inner].iter().map(|&x| Complex64::from(f64::from(x))).collect()];
            for (o, i) in (0..outer).flat_map(|o| (0..inner).step_by(15).map(move |i| (o, i))) {
                for ((found, given), along) in found.iter().zip(&given).zip([length, length / 2 + 1]) {
                    let mut line = column(given, n, o, i);
                    line.resize(length, Complex64::default());
                    check(&column(found, along, o, i), &exact(&line, false)[..along], length, &what);
                    if along < length {
                        check(&column(&back, length, o, i), &line, length * length, &format!("{what} and back"));
                    }
                }
            }
        }
    });
}

#[test]
fn long_transforms() {
    everywhere(|gpu, backend| {
        for n in [3 * 5 * 7 * 128, 2503, 1 << 21] {
            // A GPU in software takes long, and so does plain code: one of them will do for the longest.
            if n > 1 << 20 && [BackendId::WebGpu, BackendId::Scalar].contains(&backend) {
                continue;
            }
            let x = random::matrix(n * 2, 7);
            let got = complex(&values(gpu, &expr(gpu, &x, &[n as i64, 2]).fft(0, None)));
            check(&got, &exact(&complex(&x), false), n, &format!("{n} on {backend}"));
        }
    });
}

/// Of no numbers, whether they were uploaded or computed, as many zeros as are asked for.
/// Nothing on the way is much larger than the result.
#[test]
fn transforms_of_large_numbers() {
    everywhere(|gpu, backend| {
        for (n, size) in [(1009, 1e35f32), (1024, 1e35), (10_007, 1e34), (5040, 1e34)] {
            let x: Vec<f32> = random::matrix(2 * n, 3).into_iter().map(|x| x * size).collect();
            let input = expr(gpu, &x, &[n as i64, 2]);
            for inverse in [false, true] {
                let got = values(gpu, &if inverse { input.ifft(-1, None) } else { input.fft(-1, None) });
                check(&complex(&got), &exact(&complex(&x), inverse), n, &format!("{n} of {size} on {backend}"));
            }
        }
    });
}

#[test]
fn transforms_of_nothing() {
    everywhere(|gpu, backend| {
        let empty = |shape: &[i64]| expr(gpu, &[], shape);
        let cases = [
            empty(&[0]).mul(2.0).rfft(-1, Some(6)),
            empty(&[3, 0, 2]).mul(2.0).ifft(-1, Some(4)),
            empty(&[3, 0, 2]).irfft2(Some(6)),
            empty(&[2, 0]).rfft(1, Some(5)) + 0.0,
        ];
        for case in cases {
            let count: u64 = case.shape().unwrap().iter().product();
            assert_eq!(values(gpu, &case), vec![0.0; count as usize], "{backend}: {:?}", case.shape());
        }
    });
}

#[test]
fn what_is_wrong_is_told_with_the_numbers() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    let x = expr(&gpu, &[0.0; 24], &[3, 4, 2]);
    let text = |expr: Expr| gpu.evaluate_blocking(&expr).unwrap_err().to_string();
    assert_eq!(text(x.fft(2, None)), "an axis is 2, but it must be from -2 to 1");
    assert_eq!(
        text(x.reshape(&[6, 4]).fft(0, None)),
        "the shape of complex numbers is [6, 4], but it must be one whose last dimension is 2"
    );
    assert_eq!(text(x.fft(0, Some(0))), "the length of a transform is 0, but it must be a whole number from 1 to 2147483646");
    assert_eq!(text(x.cast(DType::F16).fft(0, None)), "the input of a transform must be of f32, but it is of f16");
    let empty = x.slice(0, 0, 0, 1).fft(1, None);
    let tensor = gpu.evaluate_blocking(&empty).unwrap();
    assert_eq!((tensor.shape(), tensor.to_vec_blocking().unwrap().len()), (&[0, 4, 2][..], 0));
}
