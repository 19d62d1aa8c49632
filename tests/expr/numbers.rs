//! What functions make of numbers that are large, small, none or of another type.

use super::*;

#[test]
fn what_is_no_number_differs_from_itself() {
    everywhere(|gpu, backend| {
        let a = gpu.tensor_blocking(&[f32::NAN, 1.0, f32::INFINITY, -0.0], 1, 4).unwrap();
        let b = gpu.tensor_blocking(&[f32::NAN, f32::NAN, f32::INFINITY, 0.0], 1, 4).unwrap();
        let truths = |expr: Expr| gpu.evaluate_blocking(&expr).unwrap().to_host_blocking().unwrap().into_typed::<bool>().unwrap();
        let a = Expr::from(&a);
        assert_eq!(truths(a.not_equal(&b)), [true, true, false, false], "{backend}");
        assert_eq!(truths(a.equal(&b)), [false, false, true, true], "{backend}");
        assert_eq!(truths(a.less(&b)), [false; 4], "{backend}");
        assert!(
            values(gpu, &Expr::from(&gpu.tensor_blocking(&[-1e9f32, 0.5], 1, 2).unwrap()).acosh()).iter().all(|x| x.is_nan()),
            "{backend}"
        );
    });
}

/// A number is cast as a tensor's element is, of every type to every other.
#[test]
fn a_number_is_cast_as_an_element_is() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    let numbers = [
        0.0,
        -0.0,
        1.7,
        -1.7,
        2.0,
        -1.0,
        0.1,
        65504.0,
        65519.996,
        65520.0,
        -65520.0,
        1e9,
        -1e9,
        1e30,
        2049.0,
        2051.0,
        6e-8,
        3e-8,
        1e-30,
        1e-5,
        6.1e-5,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
    ];
    for number in numbers {
        let element = Expr::from(gpu.tensor_blocking(&[number], 1, 1).unwrap());
        for &first in DType::COMPUTED {
            for &second in DType::COMPUTED {
                let cast = |expr: Expr| values(&gpu, &expr.cast(first).cast(second).cast(DType::F32).reshape(&[1]))[0];
                let [got, expected] = [cast(Expr::number(number.into())), cast(element.clone())];
                assert!(
                    got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                    "{number} as {first} as {second}: {got}, not {expected}"
                );
            }
        }
    }
    let whole = Expr::from(gpu.tensor_blocking(&[1i32, 2], 1, 2).unwrap());
    let sum = Expr::number(1.5).cast(DType::I32).add(&whole);
    assert_eq!(values(&gpu, &sum.cast(DType::F32)), [2.0, 3.0]);
    // Beside another number it keeps its type, whichever comes first.
    let three = Expr::number(3.7).cast(DType::I32);
    for sum in [three.add(2), Expr::number(2.0).add(&three)] {
        assert_eq!(values(&gpu, &sum.add(&whole).cast(DType::F32)), [6.0, 7.0]);
    }
    for sum in [three.add(2.5), Expr::number(2.5).add(&three)] {
        assert_eq!(gpu.evaluate_blocking(&sum).unwrap_err().code(), "invalid_option");
    }
    assert_eq!(gpu.evaluate_blocking(&three.add(Expr::number(1.0).cast(DType::U32))).unwrap_err().code(), "invalid_type");
    assert_eq!(values(&gpu, &Expr::number(16_777_217.0).cast(DType::I32).sub(16_777_216).cast(DType::F32).reshape(&[1])), [1.0], "exactly");
}

/// The CPU's functions against the same in double precision, where they are numbers that have all their digits.
#[test]
fn functions_lose_no_digits() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let near_one = (0..4000).map(|i| 1.0 + (i as f32 * 1e-3).exp2() * 1e-5);
    let numbers = (0..40_000)
        .map(|i| (i as f32 * 3e-3).exp2() * 1e-20)
        .filter(|x| *x < 1e3)
        .chain((0..4000).map(|i| i as f32 * 0.0225))
        .chain(near_one);
    let numbers: Vec<f32> = numbers.flat_map(|x| [x, -x]).collect();
    let x = Expr::from(gpu.tensor_blocking(&numbers, 1, numbers.len() as u64).unwrap());
    type Case = (&'static str, fn(&Expr) -> Expr, fn(f64) -> f64);
    let cases: [Case; 9] = [
        ("sinh", Expr::sinh, f64::sinh),
        ("cosh", Expr::cosh, f64::cosh),
        ("tanh", Expr::tanh, f64::tanh),
        ("asinh", Expr::asinh, f64::asinh),
        ("acosh", Expr::acosh, f64::acosh),
        ("sigmoid", Expr::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ("silu", Expr::silu, |x| x / (1.0 + (-x).exp())),
        ("gelu_tanh", Expr::gelu_tanh, |x| x / (1.0 + (-x * (1.595_769_1 + 0.071_354_816 * x * x)).exp())),
        ("softplus", Expr::softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
    ];
    for (name, function, exact) in cases {
        for (&x, got) in numbers.iter().zip(values(&gpu, &function(&x))) {
            let expected = exact(x.into());
            // What is made of a power that is nearly nothing has few digits.
            let (is_small, is_none) = (expected.abs() < 1e-36, expected.is_nan() || expected.abs() > f32::MAX.into());
            let is_right = if is_none { !got.is_finite() } else { bounds::function_on_cpu(name).holds(got.into(), expected) };
            assert!(is_right || is_small && got.abs() <= 2e-36, "{name}({x}) is {got}, not {expected}");
        }
    }
    // By the series of the error function in double precision.
    let erf = |x: f64| {
        let (mut sum, mut term) = (x, x);
        for n in 1..60 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    };
    for (&x, got) in numbers.iter().zip(values(&gpu, &x.erf())).filter(|(x, _)| x.abs() < 3.0) {
        assert!(bounds::function_on_cpu("erf").holds(got.into(), erf(x.into())), "erf({x}) is {got}, not {}", erf(x.into()));
    }
}

#[test]
fn angles_that_are_no_number_or_a_negative_zero() {
    everywhere(|gpu, backend| {
        let x = Expr::from(gpu.tensor_blocking(&[f32::NAN, -0.0f32, 0.0, f32::INFINITY], 1, 4).unwrap());
        for (name, made) in [("atan", x.atan()), ("sin", x.sin()), ("tan", x.tan())] {
            let got = values(gpu, &made);
            assert!(got[0].is_nan(), "{name} of NaN on {backend}: {got:?}");
            assert!(got[1] == 0.0 && got[2] == 0.0, "{name} of 0 on {backend}: {got:?}");
            if !matches!(backend, BackendId::Vulkan | BackendId::WebGpu | BackendId::WebGl2) {
                assert!(got[1].is_sign_negative() && got[2].is_sign_positive(), "{name} of -0 on {backend}: {got:?}");
            }
        }
    });
}

#[test]
fn powers_that_are_no_number() {
    everywhere(|gpu, backend| {
        const LEAST: f32 = f32::NEG_INFINITY;
        const MOST: f32 = f32::INFINITY;
        let bases = [-1.0f32, 1.0, -2.0, f32::NAN, f32::NAN, -1.0, LEAST, LEAST, LEAST, LEAST, 0.0, 0.0, 0.0, -0.0, 0.0, MOST];
        let exponents = [f32::NAN, f32::NAN, f32::NAN, 0.0, 1.0, MOST, 0.5, -0.5, 3.0, f32::NAN, -1.0, -0.5, LEAST, -1.0, 2.0, -2.0];
        let [a, b] = [bases, exponents].map(|values| Expr::from(gpu.tensor_blocking(&values, 1, 16).unwrap()));
        let got = values(gpu, &a.pow(&b));
        let expected = [f32::NAN, 1.0, f32::NAN, 1.0, f32::NAN, 1.0, MOST, 0.0, LEAST, f32::NAN, MOST, MOST, MOST, LEAST, 0.0, 0.0];
        assert!(
            got.iter().zip(expected).all(|(got, expected)| got == &expected || got.is_nan() && expected.is_nan()),
            "{backend}: {got:?}"
        );
    });
}

/// One factor after the other, neither of which is too much. Compilers of WGSL may take them together after all.
#[test]
fn factors_behind_a_product_stay_apart_where_they_are_large() {
    everywhere(|gpu, backend| {
        if matches!(backend, BackendId::Vulkan | BackendId::WebGpu) {
            return;
        }
        if matches!(backend, BackendId::Simd | BackendId::Scalar) {
            // Of few terms, of vectors that do not lie in order, and of more.
            for [m, k, n] in [[2, 1, 2], [3, 2, 4], [1, 5, 3], [4, 5, 1], [3, 5, 3]] {
                let of = |number: f32, rows: u64, columns: u64| {
                    let lies = gpu.tensor_blocking(&vec![number; (rows * columns) as usize], columns, rows).unwrap();
                    Expr::from(lies).transpose(None)
                };
                let got = values(gpu, &of(1e30, m, k).matmul(of(1e-30, k, n)).mul(1e30));
                let expected = k as f32 * 1e30;
                assert!(got.iter().all(|got| bounds::FEW.holds(f64::from(got / expected), 1.0)), "{m} x {k} x {n} on {backend}: {got:?}");
            }
        }
        let one = Expr::from(gpu.tensor_blocking(&[1.0f32], 1, 1).unwrap());
        for (number, factor, expected) in [(1e-35f32, 1e30, 1e25f32), (1e35, 1e-30, 1e-25), (3.0, 2.0, 12.0)] {
            let x = Expr::from(gpu.tensor_blocking(&[number], 1, 1).unwrap());
            let got = values(gpu, &x.matmul(&one).mul(factor).mul(factor))[0];
            assert!(bounds::FEW.holds(f64::from(got / expected), 1.0), "{number} on {backend} is {got}, not {expected}");
        }
    });
}

/// A division by infinity leaves all of it.
#[test]
fn remainders_of_divisions_by_infinity() {
    everywhere(|gpu, backend| {
        let of = |values: &[f32]| Expr::from(gpu.tensor_blocking(values, 1, values.len() as u64).unwrap());
        let (a, b) = (
            of(&[5.0, -5.0, 5.0, -5.0, 0.0, 7.0]),
            of(&[f32::INFINITY, f32::INFINITY, -f32::INFINITY, -f32::INFINITY, f32::INFINITY, 4.0]),
        );
        assert_eq!(values(gpu, &a.rem(&b)), [5.0, -5.0, 5.0, -5.0, 0.0, 3.0], "{backend}");
        assert_eq!(values(gpu, &a.modulo(&b)), [5.0, f32::INFINITY, -f32::INFINITY, -5.0, 0.0, 3.0], "{backend}");
    });
}

/// Near 1 a logarithm is nearly 0, and has all its digits nevertheless.
#[test]
fn logarithms_near_one() {
    everywhere(|gpu, backend| {
        let numbers: Vec<f32> = (-999..1000).map(|i| 1.0 + (i as f32 * 1e-3).powi(5) * 0.49).collect();
        let x = Expr::from(gpu.tensor_blocking(&numbers, 1, numbers.len() as u64).unwrap());
        for (&x, got) in numbers.iter().zip(values(gpu, &x.log())) {
            let expected = f64::from(x).ln();
            assert!(bounds::LOG_NEAR_ONE.holds(got.into(), expected), "log({x}) on {backend} is {got}, not {expected}");
        }
    });
}

/// A factor scales sums, and not their terms, of which infinite ones would add up to no number.
#[test]
fn an_infinite_factor() {
    everywhere(|gpu, backend| {
        let of = |values: &[f32], rows| Expr::from(gpu.tensor_blocking(values, rows, values.len() as u64 / rows).unwrap());
        let product = of(&[3.0, 1.0, -1.0, 2.0], 2).matmul(of(&[2.0, -1.0, -1.0, 4.0], 2)) * f64::INFINITY;
        let infinity = f32::INFINITY;
        assert_eq!(values(gpu, &product), [infinity, infinity, -infinity, infinity], "{backend}");
    });
}

/// Where nothing remains the 0 has a sign: of rem that of a, of modulo that of b.
#[test]
fn zeros_have_their_signs() {
    everywhere(|gpu, backend| {
        let [a, b] = [[4.0, -4.0, 4.0, -4.0, 0.0, -0.0], [2.0, 2.0, -2.0, -2.0, -3.0, 3.0]]
            .map(|numbers: [f32; 6]| Expr::from(gpu.tensor_blocking(&numbers, 1, 6).unwrap()));
        let signs = |value: Expr| values(gpu, &value).into_iter().map(|x| x == 0.0 && x.is_sign_negative()).collect::<Vec<_>>();
        assert_eq!(signs(a.rem(&b)), [false, true, false, true, false, true], "{backend}");
        assert_eq!(signs(a.modulo(&b)), [false, false, true, true, true, false], "{backend}");
        let zeros = Expr::from(gpu.tensor_blocking(&[0.0f32, -0.0], 1, 2).unwrap());
        assert_eq!(signs(zeros.sign()), [false, false], "{backend}");
        assert_eq!([signs(zeros.atan()), signs(zeros.tanh())], [[false, true]; 2], "{backend}");
    });
}

/// As NumPy has it: beside f16 a number is the nearest of f16.
#[test]
fn a_number_is_of_the_type_that_it_meets() {
    everywhere(|gpu, backend| {
        let a = [0.1, 0.25, -2.0].map(half::f16::from_f32);
        let a = Expr::from(gpu.tensor_blocking(&a, 1, 3).unwrap());
        let equal = gpu.evaluate_blocking(&a.equal(0.1)).unwrap();
        let equal = equal.to_host_blocking().unwrap().into_typed::<bool>().unwrap();
        assert_eq!(equal, [true, false, false], "{backend}");
        let tenth = half::f16::from_f32(0.1).to_f32();
        let sums = [2.0 * tenth, 0.25 + tenth, tenth - 2.0].map(|sum| half::f16::from_f32(sum).to_f32());
        assert_eq!(values(gpu, &a.add(0.1).cast(DType::F32)), sums, "{backend}");
        // Rounded once: as an f32 it would be half way between two numbers of f16.
        let zeros = Expr::from(gpu.tensor_blocking(&[half::f16::ZERO; 1], 1, 1).unwrap());
        let number = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(values(gpu, &zeros.add(number).cast(DType::F32)), [1.0 + 2f32.powi(-10)], "{backend}");
    });
}

/// Parts of what is counted are counted themselves: of so many numbers nobody has room for all.
#[test]
fn parts_of_what_is_counted() {
    everywhere(|gpu, backend| {
        let numbers = |expr: &Expr| gpu.evaluate_blocking(expr).unwrap().to_host_blocking().unwrap().into_typed::<u32>().unwrap();
        let many = Expr::index(&[1 << 15, 1 << 16]);
        let (row, size) = (1u32 << 16, 1i64 << 15);
        let rows = many.slice(0, 20_000, 20_002, 1);
        assert_eq!(numbers(&rows), (20_000 * row..20_002 * row).collect::<Vec<_>>(), "{backend}");
        let back = many.reshape(&[-1]).slice(0, 1_000_000_000, 999_999_000, -7);
        assert_eq!(numbers(&back), (0..143).map(|i| 1_000_000_000 - 7 * i).collect::<Vec<_>>(), "{backend}");
        let column = many.slice(0, size - 100, size, 1).slice(1, 77, 78, 1);
        assert_eq!(numbers(&column), (0..100).map(|i| ((1 << 15) - 100 + i) * row + 77).collect::<Vec<_>>(), "{backend}");
        assert_eq!(numbers(&many.slice(0, 3, 4, 1).slice(1, 5, 6, 1).broadcast_to(&[4, 5])), [3 * row + 5; 20], "{backend}");
        let random = |from: i64| Expr::random_uniform(&[1 << 20], 5).slice(0, from, from + 1000, 1);
        let all = gpu.evaluate_blocking(&Expr::random_uniform(&[1 << 20], 5)).unwrap().to_vec_blocking().unwrap();
        let part = gpu.evaluate_blocking(&random(700_001)).unwrap().to_vec_blocking().unwrap();
        assert_eq!(part, all[700_001..701_001], "{backend}");
    });
}

/// Functions of f16 are computed in f32 and rounded once; what is told of what they give is told of what an f16 holds of it, as it would be if it had
/// been stored.
#[test]
fn what_is_told_of_f16_is_told_of_what_it_holds() {
    everywhere(|gpu, backend| {
        let f16 = |values: &[f32]| {
            let values: Vec<_> = values.iter().map(|&value| half::f16::from_f32(value)).collect();
            Expr::from(gpu.tensor_blocking(&values, 1, values.len() as u64).unwrap())
        };
        let sum = f16(&[1.0, 60000.0, 2048.0, 1.0, -2.0, 3.0]) + f16(&[2f32.powi(-12), 60000.0, -0.25, 2f32.powi(-11), f32::NAN, 0.5]);
        let stored = Expr::from(gpu.evaluate_blocking(&sum).unwrap());
        let told = |sum: &Expr| {
            let reshaped = sum.reshape(&[2, 3]).transpose(None).reshape(&[6]);
            let chosen = sum.less(2.0).select(sum, -sum).max(f16(&[1.5]));
            let both = sum.cast(DType::F32).mul(0.3).cast(DType::F16).cast(DType::F32).sub(1.0);
            vec![
                sum.cast(DType::F32),
                sum.equal(1.0).cast(DType::F32),
                sum.less_equal(sum.cast(DType::F32).cast(DType::F16)).cast(DType::F32),
                sum.is_inf().cast(DType::F32),
                sum.is_nan().cast(DType::F32),
                sum.floor().cast(DType::F32),
                sum.rem(1.0).cast(DType::F32),
                sum.sub(1.0).abs().cast(DType::U32).cast(DType::F32),
                reshaped.greater(1.0).cast(DType::F32),
                chosen.cast(DType::F32),
                both.cast(DType::F32),
                sum.slice(1, 2, 4, 1).argmax(Some(&[1]), false).cast(DType::F32),
                sum.slice(1, 0, 2, 1).argmin(Some(&[1]), false).cast(DType::F32),
            ]
        };
        for (number, (fused, stored)) in told(&sum).iter().zip(&told(&stored)).enumerate() {
            let [fused, stored] = [fused, stored].map(|expr| values(gpu, expr));
            let same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
            assert!(fused.iter().zip(&stored).all(same), "{backend}, {number}: {fused:?}, not {stored:?}");
        }
        assert_eq!(values(gpu, &told(&sum)[0])[..4], [1.0, f32::INFINITY, 2048.0, 1.0], "{backend}");
        // Of what f16 has alike the first is the largest.
        let alike = f16(&[1.0, 1.0]) + f16(&[2f32.powi(-13), 2f32.powi(-12)]);
        assert_eq!(values(gpu, &alike.argmax(Some(&[1]), false).cast(DType::F32)), [0.0], "{backend}");
        let rounded = Expr::from(gpu.tensor_blocking(&[1e-8f32, 3e-8, 65519.0, -65520.0, 2049.0, 2051.0], 1, 6).unwrap()).round_to_f16();
        let expected = [0.0, 2f32.powi(-24), 65504.0, f32::NEG_INFINITY, 2048.0, 2052.0];
        assert_eq!(values(gpu, &rounded), expected, "{backend}");
        // By its bits the last of all numbers.
        let last = Expr::from(gpu.tensor_blocking(&[f32::from_bits(u32::MAX)], 1, 1).unwrap()).round_to_f16();
        assert!(values(gpu, &last)[0].is_nan(), "{backend}");
    });
}
