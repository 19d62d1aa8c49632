//! What follows an operation goes into its kernel: the same values as by itself, and nothing between them through memory.
#![cfg(not(target_arch = "wasm32"))]

mod bounds;
mod devices;

use devices::{is_required, open};
use lapidary::{BackendId, Conv, DType, Expr, Gpu, Options, Padding};

/// Does it on every backend that fuses, with a profile.
fn everywhere(test: impl Fn(&Gpu, BackendId)) {
    for backend in [BackendId::Simd, BackendId::Cuda, BackendId::Vulkan, BackendId::WebGpu] {
        if let Some(gpu) = open(Options { profile: true, ..Options::only(backend) }) {
            test(&gpu, backend);
        }
    }
}

/// A tensor of numbers between -1 and 1 in no order.
fn noise(gpu: &Gpu, shape: &[u64]) -> Expr {
    let noise = Expr::index(shape).add(7u32).mul(2_654_435_769u32).cast(DType::F32).mul(1.0 / 2_147_483_648.0).sub(1.0);
    Expr::from(gpu.evaluate_blocking(&noise).unwrap())
}

/// A name, an expression, and the elements that it reads and gives.
type Case = (&'static str, Expr, u64);

fn cases(gpu: &Gpu) -> Vec<Case> {
    let of = |shape: &[u64]| noise(gpu, shape);
    let padded = Conv::default().pads(&[[1; 2]; 2]);
    let mut cases = Vec::new();
    // By windows, with few filters, with windows of one element, in parts that are added up, and in groups.
    for (name, [images, channels, filters, size, taps], groups) in [
        ("conv", [2, 20, 33, 9, 3], 1),
        ("conv of fours", [2, 20, 32, 8, 3], 1),
        ("conv of few filters", [2, 3, 5, 9, 3], 1),
        ("conv of one element", [2, 40, 24, 6, 1], 1),
        ("conv in parts", [1, 600, 20, 6, 3], 1),
        ("conv in groups", [2, 40, 40, 7, 3], 2),
    ] {
        let (input, weights) = (of(&[images, channels, size, size]), of(&[filters, channels / groups, taps, taps]));
        let how = if taps == 3 { padded.clone() } else { Conv::default() }.groups(groups);
        let conv = input.conv(&weights, &how);
        let read = images * channels * size * size + filters * channels / groups * taps * taps;
        let result = images * filters * size * size;
        let residual = of(&[images, filters, size, size]);
        cases.push((name, conv.add(&residual).relu(), read + 2 * result));
        let channel = |seed: i64| of(&[filters + 9]).slice(0, seed, seed + filters as i64, 1);
        let [scale, bias, mean, variance] = [0, 1, 2, 3].map(channel).map(|vector| Expr::from(gpu.evaluate_blocking(&vector).unwrap()));
        cases.push((name, conv.batch_norm(&scale, &bias, &mean, &variance.abs(), 0.1).relu(), read + result + 4 * filters));
        cases.push((name, conv.mul(conv.sigmoid()), read + result));
    }
    for (rows, count) in [(5, 128), (7, 1001), (33, 60)] {
        let (a, b, row) = (of(&[rows, count]), of(&[rows, count]), of(&[count]));
        let all = rows * count;
        cases.push(("softmax", a.softmax(1).mul(&b).add(1.0), 3 * all));
        cases.push(("layer norm", a.layer_norm(&[1], Some(&row), Some(&row), 1e-5).add(&b).gelu_tanh(), 3 * all + 2 * count));
        cases.push(("softmax of columns", a.softmax(0).mul(&row), 2 * all + count));
        let vector = of(&[rows]);
        cases.push(("sum", a.mul(0.5).sum(Some(&[1]), false).mul(2.0).add(&vector).abs().sqrt(), all + 2 * rows));
        cases.push(("variance", a.var(Some(&[0]), false, 0.0).add(&row).exp(), all + 2 * count));
    }
    cases
}

/// Products with a residual, with a row and a column, and with themselves, and what looks at NaNs.
fn products(gpu: &Gpu) -> Vec<Case> {
    let of = |shape: &[u64]| noise(gpu, shape);
    let mut cases = Vec::new();
    // By tiles, by tiles of fours, in parts that are added up, vectors along and across, with strips beside whole tiles, and straight from memory.
    for (name, [m, k, n]) in [
        ("product", [33, 20, 17]),
        ("product of fours", [64, 36, 40]),
        ("product of many terms", [20, 3000, 24]),
        ("product of many terms, of an odd size", [21, 3000, 23]),
        ("product in parts", [40, 256, 24]),
        ("row", [1, 200, 84]),
        ("column", [85, 200, 1]),
        ("few rows", [5, 601, 1000]),
        ("product with strips", [1025, 250, 1027]),
        ("product of few terms", [60_001, 4, 7]),
        ("product of few terms, of fours", [40_000, 5, 8]),
    ] {
        let (read, result) = (m * k + k * n, m * n);
        // One of them stored the other way, and a NaN in a row of its own.
        let a = Expr::index(&[m, k]).equal(u32::try_from((m - 1) * k).unwrap()).select(f32::NAN, of(&[m, k]));
        let a = Expr::from(gpu.evaluate_blocking(&a).unwrap());
        let product = a.matmul(of(&[n, k]).transpose(None));
        // An infinite element is seen where a kernel multiplies what follows by the beta of a C that is not there.
        let row = Expr::index(&[n]).equal(u32::try_from(n - 1).unwrap()).select(f32::INFINITY, of(&[n]));
        let row = Expr::from(gpu.evaluate_blocking(&row).unwrap());
        let (residual, column) = (of(&[m, n]), of(&[m, 1]));
        cases.push((name, product.mul(0.5).add(&row).sigmoid().add(&residual), read + 2 * result + n));
        if result > 1 << 20 {
            continue;
        }
        cases.push((name, product.mul(product.sigmoid()).mul(&column).max(0.0), read + result + m));
        let where_less = product.less(&row).select(&residual, product.clamp(-0.5, 2.0));
        cases.push((name, where_less, read + 2 * result + n));
    }
    // One loop and two, and operands that all items share.
    for (name, a, b) in [
        ("batch", vec![3, 18, 20], vec![3, 20, 17]),
        ("batch of fours", vec![2, 3, 12, 20], vec![2, 3, 20, 16]),
        ("batch with a shared operand", vec![3, 18, 20], vec![20, 16]),
        ("batch with shared operands", vec![4, 1, 9, 20], vec![1, 3, 20, 7]),
        ("batch of many terms", vec![2, 10, 4000], vec![2, 4000, 9]),
        ("batch of vectors", vec![3, 50, 70], vec![3, 70, 1]),
        ("batch of tiny products", vec![9000, 3, 4], vec![9000, 4, 5]),
        ("batch of tiny products, of fours", vec![3, 3000, 4, 3], vec![3, 3000, 3, 8]),
    ] {
        let product = of(&a).matmul(of(&b));
        let shape = product.shape().unwrap().to_vec();
        let elements = |shape: &[u64]| shape.iter().product::<u64>();
        let image = of(&[shape[0], 1, 1].iter().chain(&vec![1; shape.len() - 3]).copied().collect::<Vec<_>>());
        let moved = elements(&a) + elements(&b) + elements(&shape);
        cases.push((name, product.add(of(&shape)).abs().add(1.0).log(), moved + elements(&shape)));
        cases.push((name, product.mul(&image).abs(), moved + shape[0]));
    }
    let (matrix, vector) = (of(&[90, 70]), of(&[70]));
    cases.push(("matrix by vector", matrix.matmul(&vector).add(of(&[90])).square(), 90 * 70 + 70 + 2 * 90));
    cases.push(("vector by matrix", vector.matmul(matrix.transpose(None)).sub(1.0).square(), 90 * 70 + 70 + 90));
    cases
}

#[test]
fn what_follows_costs_no_memory_traffic() {
    costs_no_memory_traffic(cases);
}

#[test]
fn what_follows_a_product_costs_no_memory_traffic() {
    costs_no_memory_traffic(products);
}

fn costs_no_memory_traffic(cases: impl Fn(&Gpu) -> Vec<Case>) {
    let host = Gpu::open_blocking(Options::only(BackendId::Scalar)).unwrap();
    everywhere(|gpu, backend| {
        for (number, ((name, expr, elements), (_, expected, _))) in cases(gpu).into_iter().zip(cases(&host)).enumerate() {
            gpu.clear_profile();
            let got = gpu.evaluate_blocking(&expr).unwrap();
            let operations = gpu.profile().operations;
            let (got, expected) = (got.to_vec_blocking().unwrap(), host.evaluate_blocking(&expected).unwrap().to_vec_blocking().unwrap());
            let fits = |(got, expected): (&f32, &f32)| match expected.is_nan() {
                true => got.is_nan(),
                false => bounds::CHAIN.holds(f64::from(*got), f64::from(*expected)),
            };
            let wrong = got.iter().zip(&expected).position(|pair| !fits(pair));
            let at = wrong.map(|at| (at, got[at], expected[at]));
            assert!(got.len() == expected.len() && at.is_none(), "{number} {name} on {backend}: {at:?} {}", operations[0].kernel);
            let kernels: Vec<_> = operations.iter().map(|operation| &operation.kernel).collect();
            // There NVIDIA's library is so much faster with large ones that a pass over memory costs less.
            let is_left = backend == BackendId::Cuda && ["of many terms", "with strips"].iter().any(|what| name.contains(what));
            if backend == BackendId::Cuda && operations.len() > 1 && (is_left || !is_required("nvrtc")) {
                println!("skipped {name} on {backend}, which fuses only where NVRTC is, and small products: {kernels:?}");
            } else if backend.is_gpu() {
                assert_eq!(operations.len(), 1, "{number} {name} on {backend}: {kernels:?}");
                assert_eq!(operations[0].compute.bytes, 4 * elements, "{number} {name} on {backend}: {kernels:?}");
            }
        }
    });
}

/// Reductions of f16 are computed in f32 and rounded once, on CUDA by the kernel that reduces.
#[test]
fn reductions_of_f16_end_in_f16() {
    everywhere(|gpu, backend| {
        let a = Expr::from(gpu.evaluate_blocking(&noise(gpu, &[5000, 70]).cast(DType::F16)).unwrap());
        let wide = Expr::from(gpu.evaluate_blocking(&a.cast(DType::F32)).unwrap());
        type Make = fn(&Expr) -> Expr;
        let cases: [(&str, Make); 4] = [
            ("sum", |a| a.sum(Some(&[1]), false)),
            ("greatest", |a| a.amax(Some(&[1]), false)),
            ("variance along columns", |a| a.var(Some(&[0]), false, 0.0)),
            ("mean of magnitudes", |a| a.abs().mean(Some(&[1]), false).mul(-2.0).add(8.0)),
        ];
        for (name, make) in cases {
            gpu.clear_profile();
            let got = gpu.evaluate_blocking(&make(&a)).unwrap();
            let kernels: Vec<_> = gpu.profile().operations.into_iter().map(|operation| operation.kernel).collect();
            assert_eq!(got.dtype(), DType::F16, "{name} on {backend}");
            let is_one = backend == BackendId::Cuda && is_required("nvrtc") && !name.contains("columns");
            assert!(!is_one || kernels.len() == 1, "{name} on {backend}: {kernels:?}");
            let got = gpu.evaluate_blocking(&Expr::from(got).cast(DType::F32)).unwrap().to_vec_blocking().unwrap();
            let expected = gpu.evaluate_blocking(&make(&wide)).unwrap().to_vec_blocking().unwrap();
            for (got, expected) in got.iter().zip(&expected) {
                assert!(bounds::HALF.holds(f64::from(*got), f64::from(*expected)), "{name} on {backend}: {got}, not {expected}");
            }
        }
    });
}

#[test]
fn what_others_need_too_is_written() {
    everywhere(|gpu, backend| {
        let (a, weights) = (noise(gpu, &[1, 20, 6, 6]), noise(gpu, &[20, 20, 3, 3]));
        let conv = a.conv(&weights, &Conv::default().pads(&[[1; 2]; 2]));
        // The result itself, and a reduction of it, beside what follows it.
        let total = conv.add(1.0).relu().sub(conv.sum(None, false));
        let values = |expr: &Expr| gpu.evaluate_blocking(expr).unwrap().to_vec_blocking().unwrap();
        let plain = values(&conv);
        let sum: f64 = plain.iter().map(|&value| f64::from(value)).sum();
        for (got, value) in values(&total).iter().zip(plain) {
            let expected = f64::from((value + 1.0).max(0.0)) - sum;
            // A sum of some hundreds.
            assert!(bounds::ABOUT_ONE.scaled(1000.0).holds(f64::from(*got), expected), "{backend}: {got} instead of {expected}");
        }
    });
}

#[test]
fn what_follows_an_operation_without_elements_has_none() {
    everywhere(|gpu, backend| {
        let of = |shape: &[u64]| Expr::from(gpu.tensor_blocking(&[0.0f32; 0], 0, 1).unwrap().reshape(shape).unwrap());
        let (none, planes) = (of(&[0, 4]), of(&[0, 1, 49, 2]));
        let cases = [
            ("sum", none.sum(Some(&[1]), false).relu()),
            ("sum of nothing", of(&[3, 0]).sum(Some(&[0]), false).relu()),
            ("variance", none.var(Some(&[1]), false, 0.0).add(1.0).sqrt()),
            ("greatest", planes.amax(Some(&[2]), false).relu()),
            ("norm", planes.norm_l1(Some(&[1, 3]), true).relu()),
            ("softmax", none.softmax(1).mul(2.0)),
            ("softmax of nothing", of(&[3, 0]).softmax(0).mul(2.0)),
            ("layer norm", planes.layer_norm(&[2, 3], None, None, 1e-5).relu()),
            ("product", none.matmul(noise(gpu, &[4, 5])).relu()),
        ];
        for (name, expr) in cases {
            let got = gpu.evaluate_blocking(&expr).unwrap();
            assert_eq!(got.shape(), expr.shape().unwrap(), "{name} on {backend}");
            assert!(got.to_vec_blocking().unwrap().is_empty(), "{name} on {backend}");
        }
    });
}

/// The same bits however often, whatever a device keeps of the operands by then.
#[test]
fn what_follows_products_of_the_same_is_the_same() {
    for backend in [BackendId::Simd, BackendId::Cuda, BackendId::Vulkan, BackendId::WebGpu] {
        let Some(gpu) = open(Options::only(backend)) else { continue };
        let [a, b, row] = [&[261, 263][..], &[263, 257], &[257]].map(|shape| noise(&gpu, shape));
        let ended = a.matmul(&b).max(&row).exp();
        let value = || gpu.evaluate_blocking(&ended).unwrap();
        let bits = || value().to_host_blocking().unwrap().into_vec().into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let expected = bits();
        for round in 0..8 {
            assert_eq!(bits(), expected, "round {round} on {backend}");
        }
        if backend == BackendId::WebGpu {
            gpu.trim().unwrap();
            let last = value();
            assert!(gpu.memory().unwrap().pooled_bytes >= 257 * 263 * 4, "nothing is free but the forms of {last:?}'s operands");
        }
    }
}

/// Parts of what is joined or padded go into the kernel behind a product or a reduction, whole or not.
#[test]
fn whole_parts_of_what_is_joined_or_padded_end_a_kernel() {
    everywhere(|gpu, backend| {
        let of = |factor: f32| {
            let values: Vec<f32> = (0..64).map(|i| (i % 7) as f32 * factor).collect();
            Expr::from(gpu.tensor_blocking(&values, 8, 8).unwrap())
        };
        let [a, b] = [of(1.0), of(2.0)];
        let both = Expr::concat(&[a.clone(), b.clone()], 1);
        let padded = a.pad(&[[1, 1], [1, 1]], Padding::Constant(0.0));
        for (what, part, alone) in [
            ("the first part", both.slice(1, 0, 8, 1), a.clone()),
            ("the second part", both.slice(1, 8, 16, 1), b.clone()),
            ("what is padded", padded.slice(0, 1, 9, 1).slice(1, 1, 9, 1), a.clone()),
        ] {
            for (core, made) in [("product", a.matmul(&b)), ("softmax", a.softmax(-1)), ("sum", a.sum(Some(&[0]), true))] {
                let [got, expected] =
                    [&part, &alone].map(|beside| gpu.evaluate_blocking(&(&made * beside)).unwrap().to_vec_blocking().unwrap());
                assert_eq!(got, expected, "{what} behind a {core} on {backend}");
            }
        }
    });
}

/// What does not fit one kernel fits few, and what is made between them is gone when it is no longer needed.
#[test]
fn long_chains_take_few_kernels_and_little_memory() {
    everywhere(|gpu, backend| {
        let side = 64u64;
        let x = Expr::from(gpu.tensor_blocking(&vec![1.0f32; (side * side) as usize], side, side).unwrap());
        let mut chain = x.clone();
        for _ in 0..128 {
            chain = (chain + 1.0).sqrt();
        }
        gpu.clear_profile();
        let got = gpu.evaluate_blocking(&chain).unwrap().to_vec_blocking().unwrap();
        let kernels = gpu.profile().operations.iter().filter(|operation| operation.kernel.contains("sqrt")).count();
        assert!(kernels <= 6, "{kernels} kernels on {backend}");
        bounds::FEW.check(&got, &vec![(1.0 + 5f64.sqrt()) / 2.0; got.len()], backend.name());
        let mut sum = x;
        for number in 0..400 {
            sum = sum + f64::from(number);
        }
        gpu.trim().unwrap();
        let got = gpu.evaluate_blocking(&sum).unwrap().to_vec_blocking().unwrap();
        // GPUs have what is under way until it is done.
        let free = gpu.memory().unwrap().pooled_bytes;
        assert!(backend != BackendId::Simd || free <= 4 * side * side * 4, "{free} bytes were used at once");
        assert!(got.iter().all(|x| *x == 79_801.0), "{backend}: {}", got[0]);
        // Neither does telling of it take long.
        assert!(format!("{sum:?}").len() < 200);
    });
}
