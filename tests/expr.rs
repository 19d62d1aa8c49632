//! Expressions on every backend that is there, against the same in f64.

mod bounds;
mod devices;
#[path = "expr/numbers.rs"]
mod numbers;
#[path = "expr/products.rs"]
mod products;

use devices::everywhere;
use lapidary::{BackendId, DType, Expr, Gpu, Matmul, Options, Padding, random};

fn values(gpu: &Gpu, expr: &Expr) -> Vec<f32> {
    gpu.evaluate_blocking(expr).unwrap().to_vec_blocking().unwrap()
}

#[test]
fn chains() {
    everywhere(|gpu, backend| {
        let a: Vec<f32> = (0..6 * 7).map(|i| i as f32 / 7.0 - 3.0).collect();
        let b: Vec<f32> = (0..7).map(|i| i as f32).collect();
        let (ta, tb) = (gpu.tensor_blocking(&a, 6, 7).unwrap(), gpu.tensor_blocking(&b, 1, 7).unwrap());
        let e = (Expr::from(&ta) * 0.5 + &tb).relu();
        let expected: Vec<f32> = (0..42).map(|i| (a[i] * 0.5 + b[i % 7]).max(0.0)).collect();
        assert_eq!(values(gpu, &e), expected, "{backend}");
        let t = e.transpose(None) - 1.0;
        let expected: Vec<f32> = (0..42).map(|i| expected[i % 6 * 7 + i / 6] - 1.0).collect();
        assert_eq!(values(gpu, &t), expected, "{backend}");
        let s = Expr::from(&ta).slice(1, -1, -8, -2).slice(0, 1, 9, 3);
        assert_eq!(s.shape().unwrap(), [2, 4]);
        let expected: Vec<f32> = [1, 4].iter().flat_map(|r| [6, 4, 2, 0].map(|c| a[r * 7 + c])).collect();
        assert_eq!(values(gpu, &s), expected, "{backend}");
        let p = Expr::from(&ta).pad(&[[1, 2], [3, 0]], Padding::Constant(9.0));
        let expected: Vec<f32> = (0..9 * 10)
            .map(|i| {
                let (r, c) = (i / 10, i % 10);
                if (1..7).contains(&r) && c >= 3 { a[(r - 1) * 7 + c - 3] } else { 9.0 }
            })
            .collect();
        assert_eq!(values(gpu, &p), expected, "{backend}");
        let c = Expr::concat(&[Expr::from(&ta), Expr::from(&ta).exp(), Expr::from(&tb)], 0);
        let wide = |values: &[f32]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        let expected = [wide(&a), wide(&a).into_iter().map(f64::exp).collect(), wide(&b)].concat();
        bounds::CLOSE.check(&values(gpu, &c), &expected, backend.name());
        let less = Expr::from(&ta).less(&tb);
        assert_eq!(less.dtype().unwrap(), DType::Bool);
        let got = gpu.evaluate_blocking(&less).unwrap();
        let got = got.to_host_blocking().unwrap().into_typed::<bool>().unwrap();
        assert_eq!(got, (0..42).map(|i| a[i] < b[i % 7]).collect::<Vec<_>>(), "{backend}");
        let r = (Expr::from(&ta).reshape(&[7, -1]) + 1.0).reshape(&[42]);
        assert_eq!(values(gpu, &r), a.iter().map(|a| a + 1.0).collect::<Vec<_>>(), "{backend}");
        let i = Expr::index(&[3, 5]).mul(3.0).cast(DType::F32);
        assert_eq!(values(gpu, &i), (0..15).map(|i| (i * 3) as f32).collect::<Vec<_>>(), "{backend}");
    });
}

#[test]
fn what_is_wrong_is_told_with_the_numbers() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let a = gpu.tensor_blocking(&[1.0f32; 6], 2, 3).unwrap();
    let i = gpu.tensor_blocking(&[1i32; 6], 2, 3).unwrap();
    let text = |expr: Expr| gpu.evaluate_blocking(&expr).unwrap_err().to_string();
    let a = Expr::from(&a);
    assert_eq!(
        text(a.add(a.transpose(None))),
        "a shape is [3, 2], but it must be the same as of [2, 3] in each dimension, counted from the last, or 1"
    );
    assert_eq!(text(a.add(&i)), "the second operand must be of f32, as the first is, but it is of i32");
    assert_eq!(text(Expr::from(&i).sqrt()), "an operand of sqrt, which takes f32, f16, must be of one of those, but it is of i32");
    assert_eq!(text(Expr::from(&i) * 0.5), "a number is 0.5, but beside a tensor of i32 it must be one of i32; cast the tensor");
    let of_i32 = "a number is 0.5, but beside a tensor of i32 it must be one of i32; cast the tensor";
    assert_eq!(text(Expr::from(&i).pad(&[[1, 0], [0, 0]], Padding::Constant(0.5))), of_i32);
    for (dtype, number) in [(DType::I32, f64::NAN), (DType::U32, -1.0), (DType::Bool, 7.0)] {
        let around = a.cast(dtype).pad(&[[0, 1], [1, 0]], Padding::Constant(number));
        assert_eq!(gpu.evaluate_blocking(&around).unwrap_err().code(), "invalid_option", "{number} round {dtype}");
    }
    assert_eq!(text(a.slice(2, 0, 1, 1)), "an axis is 2, but it must be from -2 to 1");
    assert_eq!(text(a.slice(0, 0, 1, 0)), "the step is 0, but it must be any whole number but 0");
    assert_eq!(text(a.transpose(Some(&[0, 0]))), "an axis is 0, but it must be each axis once");
    assert_eq!(text(a.reshape(&[4, -1])), "the shape is [4, -1], but it must be one of 6 elements, as [2, 3] has; one size may be -1");
    assert_eq!(text(Expr::concat(&[], 0)), "the number of parts is 0, but it must be at least one");
    assert_eq!(text(a.select(1.0, 0.0)), "the condition must be of bool, but it is of f32");
    let other = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    assert_eq!(other.evaluate_blocking(&(&a + 1.0)).unwrap_err().code(), "invalid_type", "a tensor of another device");
}

/// Numbers between are of f32, as they are of all functions of f16.
#[test]
fn a_gelu_of_f16_is_that_of_f32_rounded() {
    everywhere(|gpu, backend| {
        let x = Expr::index(&[2000]).cast(DType::F32).mul(0.004).sub(4.1).cast(DType::F16);
        let x = Expr::from(gpu.evaluate_blocking(&x).unwrap());
        let rounded = x.cast(DType::F32).gelu().cast(DType::F16).cast(DType::F32);
        assert_eq!(values(gpu, &x.gelu().cast(DType::F32)), values(gpu, &rounded), "{backend}");
    });
}

#[test]
fn random_numbers_are_the_same_everywhere_and_spread_as_they_should() {
    let cpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let expected = values(&cpu, &Expr::random_uniform(&[100, 100], 7));
    everywhere(|gpu, backend| {
        assert_eq!(values(gpu, &Expr::random_uniform(&[100, 100], 7)), expected, "{backend}");
        let normal = values(gpu, &Expr::random_normal(&[200, 100], 1 << 40));
        let mean = normal.iter().sum::<f32>() / 2e4;
        let variance = normal.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / 2e4;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.04, "{backend}: {mean} {variance}");
    });
    let mean = expected.iter().sum::<f32>() / 1e4;
    assert!((mean - 0.5).abs() < 0.01 && expected.iter().all(|x| (0.0..1.0).contains(x)), "{mean}");
    assert_ne!(values(&cpu, &Expr::random_uniform(&[100, 100], 8)), expected);
    // Nor have others the same numbers in another order.
    let sorted = |seed: u64| {
        let mut bits = values(&cpu, &Expr::random_uniform(&[1 << 18], seed));
        bits.sort_by(f32::total_cmp);
        bits
    };
    let first = sorted(0);
    for seed in [1, 184, 10_946, 17_711, 28_657, 1 << 32] {
        let alike = sorted(seed).iter().zip(&first).filter(|(a, b)| a == b).count();
        assert!(alike < 1 << 14, "{alike} of the numbers of {seed} are those of 0 when sorted");
    }
    assert_eq!(expected.windows(2).filter(|pair| pair[0] == pair[1]).count(), 0);
}

/// What is used twice at each of many levels is computed once, and looked at once.
#[test]
fn values_that_are_used_twice_again_and_again() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let x = Expr::from(gpu.tensor_blocking(&[1.0f32; 6], 2, 3).unwrap());
    let mut sum = x.clone();
    let mut choice = x;
    for _ in 0..60 {
        sum = sum.add(&sum).mul(0.5);
        choice = choice.greater(0.0).select(choice.mul(1.0), choice.add(1.0));
    }
    assert_eq!(values(&gpu, &sum), [1.0; 6]);
    assert_eq!(values(&gpu, &sum.reshape(&[3, -1]).add(1.0)), [2.0; 6]);
    assert_eq!(values(&gpu, &choice.reshape(&[6]).square()), [1.0; 6]);
}

#[test]
fn what_is_transposed_goes_where_it_belongs() {
    let host = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    let of = |gpu: &Gpu, shape: &[u64], dtype: DType| {
        let whole = Expr::index(shape).mul(2_654_435_769u32).shift_right(24u32);
        Expr::from(gpu.evaluate_blocking(&whole.cast(dtype)).unwrap())
    };
    let made = |gpu: &Gpu, sizes: [u64; 3], dtype: DType| {
        let [x, y, z] = sizes;
        let (a, b) = (of(gpu, &[x, y, z], dtype), of(gpu, &[y, z], dtype));
        let mut all: Vec<_> =
            [[0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1], [1, 0, 2]].iter().map(|order| a.transpose(Some(order)).cast(DType::F32)).collect();
        if dtype != DType::Bool {
            // Two that are turned beside one that is not; a row for all, its own, and one from behind.
            all.push(a.transpose(Some(&[0, 2, 1])).add(b.transpose(None)).add(of(gpu, &[x, z, y], dtype)));
            all.push(a.transpose(Some(&[0, 2, 1])).add(b.slice(1, 0, 1, 1).reshape(&[y as i64])));
            all.push(a.flip(Some(&[2])).transpose(Some(&[2, 1, 0])).add(a.slice(0, 0, 1, 1).transpose(Some(&[2, 1, 0]))));
            all.push(a.slice(1, 1, y as i64, 1).transpose(Some(&[0, 2, 1])).cast(DType::F16));
            all.push(a.transpose(Some(&[0, 2, 1])).less(of(gpu, &[z, y], dtype)).cast(DType::F32));
            // Halves beside words, and halves alone.
            all.push(a.transpose(Some(&[0, 2, 1])).cast(DType::F32).add(of(gpu, &[y, z], DType::F32).transpose(None)));
            all.push(a.transpose(Some(&[2, 0, 1])));
        }
        all
    };
    everywhere(|gpu, backend| {
        for (sizes, dtype) in [
            ([2, 100, 67], DType::F32),
            ([5, 33, 132], DType::F32),
            ([3, 16, 20], DType::F16),
            ([2, 100, 67], DType::F16),
            ([2, 67, 100], DType::F16),
            ([3, 64, 128], DType::F16),
            ([17, 20, 64], DType::I32),
            ([2, 67, 100], DType::Bool),
            // Narrow ones, with more and less than whole tiles of the other dimension.
            ([2, 1300, 2], DType::F32),
            ([2, 3, 1400], DType::F16),
            ([1, 10, 515], DType::F32),
            ([3, 700, 15], DType::I32),
            ([2, 8, 300], DType::Bool),
        ] {
            for (number, (expr, expected)) in made(gpu, sizes, dtype).iter().zip(made(&host, sizes, dtype)).enumerate() {
                let expected = values(&host, &expected.cast(DType::F32));
                // As it is stored, and widened on the way.
                let stored = Expr::from(gpu.evaluate_blocking(expr).unwrap());
                assert_eq!(values(gpu, &stored.cast(DType::F32)), expected, "{number} of {sizes:?} of {dtype} on {backend}");
                assert_eq!(values(gpu, &expr.cast(DType::F32)), expected, "{number} of {sizes:?} of {dtype} widened on {backend}");
            }
        }
    });
}

#[test]
fn parts_that_begin_at_fours_are_put_together_and_padded() {
    everywhere(|gpu, backend| {
        let a: Vec<f32> = (0..6 * 12).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..6 * 8).map(|i| -(i as f32)).collect();
        let (ta, tb) = (gpu.tensor_blocking(&a, 6, 12).unwrap(), gpu.tensor_blocking(&b, 6, 8).unwrap());
        let both = Expr::concat(&[Expr::from(&ta), Expr::from(&tb)], 1);
        let at = |r: usize, c: usize| if c < 12 { a[r * 12 + c] } else { b[r * 8 + c - 12] };
        let expected: Vec<f32> = (0..6 * 20).map(|i| at(i / 20, i % 20)).collect();
        assert_eq!(values(gpu, &both), expected, "{backend}");
        let flipped = both.flip(Some(&[1])).pad(&[[1, 0], [4, 8]], Padding::Constant(7.0));
        let inside = |r: usize, c: usize| if r > 0 && (4..24).contains(&c) { at(r - 1, 23 - c) } else { 7.0 };
        let expected: Vec<f32> = (0..7 * 32).map(|i| inside(i / 32, i % 32)).collect();
        assert_eq!(values(gpu, &flipped), expected, "{backend}");
    });
}

/// Where the last four of a row have to do without what is behind it.
#[test]
fn differences_of_neighbours() {
    everywhere(|gpu, backend| {
        for count in [4u64, 64, 1 << 19] {
            let x: Vec<f32> = (0..count).map(|i| (i * i % 1009) as f32).collect();
            let t = Expr::from(&gpu.tensor_blocking(&x, 1, count).unwrap().reshape(&[count]).unwrap());
            for step in [1, 3] {
                let e = t.slice(0, step, i64::MAX, 1) - t.slice(0, 0, -step, 1);
                let expected: Vec<f32> = x.windows(step as usize + 1).map(|pair| pair[step as usize] - pair[0]).collect();
                assert_eq!(values(gpu, &e), expected, "{backend}: {count} by {step}");
            }
        }
    });
}

/// As long a chain as one likes is found out, computed and let go without filling the stack.
#[test]
fn deep_expressions() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let x = Expr::from(gpu.tensor_blocking(&[1.0f32, 2.0, 3.0, 4.0], 2, 2).unwrap());
    let chain = |times: usize, next: &dyn Fn(&Expr) -> Expr| values(&gpu, &(0..times).fold(x.clone(), |whole, _| next(&whole)));
    assert_eq!(chain(20_000, &|x| x.add(1.0)), [20001.0, 20002.0, 20003.0, 20004.0]);
    assert_eq!(chain(20_001, &|x| x.transpose(None)), [1.0, 3.0, 2.0, 4.0]);
    assert_eq!(chain(5_000, &|x| x.reshape(&[4]).flip(None).reshape(&[2, 2])), [1.0, 2.0, 3.0, 4.0]);
    let bytes = Expr::from(gpu.tensor_blocking(&[1i8, 2, 3, 4], 2, 2).unwrap());
    let deep = |next: &dyn Fn(&Expr) -> Expr| (0..20_001).fold(bytes.clone(), |whole, _| next(&whole));
    let sums = |operand: &Expr| gpu.evaluate_blocking(&operand.matmul(&bytes).cast(DType::F32)).unwrap().to_vec_blocking().unwrap();
    assert_eq!(sums(&deep(&|x| x.reshape(&[4]).reshape(&[2, 2]))), [7.0, 10.0, 15.0, 22.0]);
    assert_eq!(sums(&deep(&|x| x.transpose(None))), [10.0, 14.0, 14.0, 20.0]);
    let copied = deep(&|x| x.flip(None).reshape(&[4]).reshape(&[2, 2]));
    assert_eq!(gpu.evaluate_blocking(&copied.matmul(&bytes)).unwrap_err().code(), "invalid_type");
    assert_eq!(chain(1_000, &|x| x.matmul(x.sub(x)).add(x)), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(chain(1_000, &|x| x.sub(x.mean(None, true))).iter().sum::<f32>(), 0.0);
    assert_eq!(chain(1_000, &|x| x.softmax(-1)), [0.5; 4]);
    assert_eq!(chain(1_000, &|x| x.pad(&[[1, 0], [0, 0]], Padding::Constant(9.0)).slice(0, 1, 3, 1)), [1.0, 2.0, 3.0, 4.0]);
    // A sum of which each term is made of the one before it.
    let (terms, _) = (0..20_000).fold((x.clone(), x.clone()), |(sum, term), _| {
        let term = term.add(2.0).mul(0.5);
        (sum.add(&term), term)
    });
    assert!(values(&gpu, &terms)[0] > 39_990.0);
    // As many ways to one number as there are subsets of its shifts.
    let shifted = (0..18).fold(Expr::number(1.0).broadcast_to(&[1 << 19]), |whole, level| {
        let (size, shift) = ((1 << 19) - (1 << level) + 1, 1 << level);
        whole.slice(0, 0, size - shift, 1).add(whole.slice(0, shift, size, 1))
    });
    assert_eq!(values(&gpu, &shifted)[0], 262_144.0);
    let parts: Vec<_> = (0..1000).map(|i| x.add(f64::from(i))).collect();
    let whole = values(&gpu, &Expr::concat(&parts, 0));
    assert!(whole.iter().enumerate().all(|(at, &value)| value == (at / 4 + at % 4 + 1) as f32), "{whole:?}");
}

/// A step past the end leads nowhere, however long it is.
#[test]
fn a_long_step() {
    everywhere(|gpu, backend| {
        let x = Expr::from(gpu.tensor_blocking(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3).unwrap());
        for step in [i64::MAX, i64::MAX - 1, 1 << 40] {
            assert_eq!(values(gpu, &x.slice(0, 1, 2, step).slice(1, 1, 3, step)), [5.0], "{backend}");
            assert_eq!(values(gpu, &x.slice(0, 0, 2, step).add(1.0)), [2.0, 3.0, 4.0], "{backend}");
            assert_eq!(values(gpu, &x.slice(1, -1, -9, -step).transpose(None)), [3.0, 6.0], "{backend}");
        }
        assert_eq!(values(gpu, &x.slice(0, -1, i64::MIN, i64::MIN)), [4.0, 5.0, 6.0], "{backend}");
    });
}

/// Two tensors of shapes at random that go together, one of them turned, the other with dimensions of 1 and fewer of them.
#[test]
fn shapes_at_random_are_repeated_to_one_another() {
    everywhere(|gpu, backend| {
        for seed in 0..24 {
            let pick = |at: u64, below: u64| ((random::element(seed, at) + 1.0) / 2.0 * below as f32) as u64;
            let rank = 1 + pick(0, 4) as usize;
            let whole: Vec<u64> =
                (0..rank as u64).map(|at| [1 + pick(1 + at, 6), 1 + pick(10 + at, 40)][usize::from(pick(20 + at, 6) == 0)]).collect();
            let part: Vec<u64> =
                (pick(30, rank as u64 + 1) as usize..rank).map(|at| if pick(40 + at as u64, 3) == 0 { 1 } else { whole[at] }).collect();
            let numbers = |shape: &[u64]| (0..shape.iter().product::<u64>()).map(|i| (i * 7 % 101) as f32 - 50.0).collect::<Vec<_>>();
            let of = |shape: &[u64]| {
                let values = numbers(shape);
                Expr::from(gpu.tensor_blocking(&values, 1, values.len() as u64).unwrap().reshape(shape).unwrap())
            };
            let reversed: Vec<_> = whole.iter().rev().copied().collect();
            let (a, b) = (numbers(&reversed), numbers(&part));
            let got = gpu.evaluate_blocking(&of(&reversed).transpose(None).mul(2.0).sub(of(&part))).unwrap();
            assert_eq!(got.shape(), whole, "{seed} on {backend}");
            for (at, got) in got.to_vec_blocking().unwrap().iter().enumerate() {
                let (mut rest, mut places) = (at as u64, vec![0; rank]);
                for axis in (0..rank).rev() {
                    (places[axis], rest) = (rest % whole[axis], rest / whole[axis]);
                }
                let in_a = (0..rank).rev().fold(0, |place, axis| place * whole[axis] + places[axis]);
                let in_b = part
                    .iter()
                    .zip(&places[rank - part.len()..])
                    .fold(0, |place, (&size, &at)| place * size + if size == 1 { 0 } else { at });
                assert_eq!(*got, a[in_a as usize] * 2.0 - b[in_b as usize], "{at} of {whole:?} and {part:?}, seed {seed}, on {backend}");
            }
        }
    });
}

/// Sizes beside one of 0 are multiplied as others are, where what lies along some dimensions is counted.
#[test]
fn sizes_beside_none_are_limited_too() {
    let large = 1i64 << 31;
    let of_shape = |shape: &[u64]| Expr::index(shape).cast(DType::F32);
    for wrong in [
        of_shape(&[0, 1 << 31, 1 << 31, 1 << 31]) + 1.0,
        of_shape(&[0, 1 << 31, 4]).sum(Some(&[1, 2]), false),
        of_shape(&[1 << 31, 1 << 31, 0]).softmax(-1),
        of_shape(&[0]).reshape(&[large, large, 0]),
    ] {
        assert_eq!(wrong.shape().unwrap_err().code(), "limit_exceeded");
    }
    assert_eq!(of_shape(&[0]).reshape(&[0, i64::MAX]).shape().unwrap_err().code(), "invalid_dimension");
    let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    let tensor = |shape: &[u64]| Expr::from(gpu.tensor_blocking(&[0f32; 0], 0, 1).unwrap().reshape(shape).unwrap());
    assert_eq!(tensor(&[0, 1 << 31, 1 << 31]).shape().unwrap_err().code(), "limit_exceeded");
    assert_eq!(tensor(&[0, u64::MAX]).slice(1, 0, 1, 1).shape().unwrap_err().code(), "invalid_dimension");
    assert_eq!(of_shape(&[0, 1 << 16, 1 << 15]).sum(Some(&[1]), false).shape().unwrap(), [0, 1 << 15]);
}

/// What has numbers of its own has none then, wherever the size of 0 is.
#[test]
fn numbers_of_none() {
    everywhere(|gpu, backend| {
        for shape in [&[0][..], &[0, 3], &[2, 0], &[4, 0, 3], &[2, 3, 0, 1]] {
            let index = || Expr::index(shape);
            for made in
                [index().cast(DType::F32), index().cast(DType::F32) + 1.0, Expr::random_uniform(shape, 1), Expr::random_normal(shape, 1)]
            {
                let made = gpu.evaluate_blocking(&made).unwrap();
                assert_eq!(made.shape(), shape, "{backend}");
            }
        }
    });
}

/// Many parts are put together by halves: what is moved grows little faster than they do.
#[test]
fn many_parts_are_put_together() {
    everywhere(|gpu, backend| {
        let part = |i: usize| Expr::from(gpu.tensor_blocking(&vec![i as f32; 3 * (i % 4 + 1)], 3, i as u64 % 4 + 1).unwrap());
        let parts: Vec<_> = (0..37).map(part).collect();
        let row: Vec<f32> = (0..37).flat_map(|i| vec![i as f32; i % 4 + 1]).collect();
        assert_eq!(values(gpu, &Expr::concat(&parts, 1)), row.repeat(3), "{backend}");
    });
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let parts: Vec<_> = (0..200).map(|_| Expr::from(gpu.tensor_blocking(&[1.0f32; 1000], 1, 1000).unwrap())).collect();
    let whole = gpu.evaluate_blocking(&Expr::concat(&parts, 0)).unwrap();
    assert_eq!(whole.to_vec_blocking().unwrap(), [1.0; 200_000]);
    let peak_bytes = gpu.memory().unwrap().peak_bytes;
    assert!((1_600_000..16_000_000).contains(&peak_bytes), "{peak_bytes} bytes");
}

/// What nobody reads any more gives its memory to what is computed later. Vulkan's operations have theirs until the device is done with them.
#[test]
fn what_is_over_is_given_back() {
    everywhere(|gpu, backend| {
        let x = gpu.tensor_blocking(&vec![2.0f32; 1 << 18], 512, 512).unwrap();
        let rounds = (0..40).fold(Expr::from(&x), |value, _| &value - value.mean(Some(&[0]), true) + 1.0);
        assert_eq!(values(gpu, &rounds)[..2], [1.0, 1.0], "{backend}");
        let peak_bytes = gpu.memory().unwrap().peak_bytes;
        assert!(backend == BackendId::Vulkan || peak_bytes < 10 << 20, "{backend}: {peak_bytes} bytes");
    });
}

/// One expression has several handles after one another, and again: each keeps how it computes it, or finds it out anew.
#[test]
fn an_expression_on_several_handles() {
    let e = (Expr::index(&[3, 40]).cast(DType::F32) * 0.5).relu().sum(Some(&[1]), false) - 1.0;
    let handles: Vec<_> =
        [BackendId::Simd, BackendId::Scalar, BackendId::Simd].map(|id| Gpu::open_blocking(Options::only(id)).unwrap()).into();
    for turn in [0, 0, 1, 1, 2, 1, 0, 2] {
        let tensor = handles[turn].evaluate_blocking(&e).unwrap();
        assert_eq!(
            (tensor.backend(), tensor.to_vec_blocking().unwrap()),
            (handles[turn].info().unwrap().backend, vec![389.0, 1189.0, 1989.0])
        );
    }
}

/// Programs of one thread have the same memory for what is between their steps, in whatever order they come.
#[test]
fn programs_after_one_another() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let x = Expr::from(gpu.tensor_blocking(&[-1.0f32; 5000], 5, 1000).unwrap());
    let steps = [
        (x.exp() * 2.0 + 1.0, (-1.0f32).exp() * 2.0 + 1.0),
        (x.less(0.0).select(3.0, &x) + &x, 2.0),
        (x.greater(0.0).select(3.0, 4.0) - &x, 5.0),
        ((x.abs() + 1.0) * (x.abs() + 2.0) / 4.0, 1.5),
    ];
    for turn in 0..24 {
        let (expr, expected) = &steps[turn * 7 / 3 % steps.len()];
        // Longer and shorter ones in turns.
        let part = if turn % 2 == 0 { expr.clone() } else { expr.slice(1, 0, 100, 1) };
        assert!(values(&gpu, &part).iter().all(|value| (value - expected).abs() < 1e-6), "turn {turn}");
    }
}
