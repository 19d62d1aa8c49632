//! Products in expressions, of what is computed and in what is.

use super::*;

#[test]
fn a_product_takes_what_follows_into_its_kernel() {
    everywhere(|gpu, backend| {
        let a: Vec<f32> = (0..5 * 3).map(|i| i as f32 - 7.0).collect();
        let b: Vec<f32> = (0..3 * 4).map(|i| i as f32 / 2.0 - 2.0).collect();
        let bias = [0.5f32, -100.0, 2.0, 0.0];
        let product = |i: usize, j: usize| (0..3).map(|k| a[i * 3 + k] * b[k * 4 + j]).sum::<f32>();
        let (ta, tb) = (gpu.tensor_blocking(&a, 5, 3).unwrap(), gpu.tensor_blocking(&b, 3, 4).unwrap());
        let bias_tensor = gpu.tensor_blocking(&bias, 1, 4).unwrap().reshape(&[4]).unwrap();
        let plain = Expr::from(&ta).matmul(&tb);
        let expected: Vec<f32> = (0..20).map(|i| product(i / 4, i % 4)).collect();
        assert_eq!(values(gpu, &plain), expected, "{backend}");
        let all = (Expr::from(&ta).matmul(&tb) * 2.0 + &bias_tensor).relu();
        let expected: Vec<f32> = (0..20).map(|i| (2.0 * product(i / 4, i % 4) + bias[i % 4]).max(0.0)).collect();
        assert_eq!(values(gpu, &all), expected, "{backend}");
        let transposed = Expr::from(&tb).transpose(None).matmul(Expr::from(&ta).transpose(None)) + 1.0;
        let expected: Vec<f32> = (0..20).map(|i| product(i % 5, i / 5) + 1.0).collect();
        assert_eq!(values(gpu, &transposed), expected, "{backend}");
        let twice = Expr::from(&ta).matmul(&tb);
        let expected: Vec<f32> = (0..20).map(|i| product(i / 4, i % 4) * 3.0).collect();
        assert_eq!(values(gpu, &(&twice + &twice * 2.0)), expected, "{backend}");
    });
}

#[test]
fn a_product_of_parts_of_matrices() {
    everywhere(|gpu, backend| {
        let host: Vec<f32> = (0..48).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
        let x = Expr::from(&gpu.tensor_blocking(&host, 6, 8).unwrap());
        let turned = x.transpose(None);
        // Each with where its element in row i and column j is.
        type At = fn(usize, usize) -> usize;
        let parts: [(Expr, At); 7] = [
            (x.slice(0, 1, 5, 1).slice(1, 3, 7, 1), |i, j| (i + 1) * 8 + j + 3),
            (turned.slice(0, 2, 6, 1).slice(1, 1, 5, 1), |i, j| (j + 1) * 8 + i + 2),
            (x.slice(0, 0, 6, 2).slice(1, 4, 8, 1).pad(&[[0, 1], [0, 0]], lapidary::Padding::Edge), |i, j| i.min(2) * 16 + j + 4),
            (x.reshape(&[4, 12]).slice(1, 5, 9, 1), |i, j| i * 12 + j + 5),
            (x.slice(0, 0, 4, 1).slice(1, 0, 8, 2), |i, j| i * 8 + 2 * j),
            (x.slice(0, 0, 4, 1).slice(1, 0, 4, 1).flip(None), |i, j| (3 - i) * 8 + 3 - j),
            (x.add(0.0).slice(0, 0, 4, 1).slice(1, 0, 4, 1).transpose(None), |i, j| j * 8 + i),
        ];
        for (n, (a, a_at)) in parts.iter().enumerate() {
            for (m, (b, b_at)) in parts.iter().enumerate() {
                let element = |i: usize, j: usize| (0..4).map(|k| host[a_at(i, k)] * host[b_at(k, j)]).sum::<f32>();
                let expected: Vec<f32> = (0..16).map(|at| element(at / 4, at % 4)).collect();
                assert_eq!(values(gpu, &a.matmul(b)), expected, "{backend} {n} by {m}");
            }
        }
        let [row, column] = [x.slice(0, 3, 4, 1), x.slice(1, 5, 6, 1)];
        let sum = |n: usize, of: &dyn Fn(usize) -> f32| (0..n).map(of).sum::<f32>();
        assert_eq!(values(gpu, &row.matmul(x.transpose(None).slice(1, 2, 3, 1))), [sum(8, &|k| host[24 + k] * host[16 + k])], "{backend}");
        assert_eq!(values(gpu, &column.transpose(None).matmul(&column)), [sum(6, &|k| host[k * 8 + 5].powi(2))], "{backend}");
        // The first rows of each item, turned.
        let items = x.reshape(&[2, 3, 8]);
        let product = items.slice(1, 2, 3, 1).matmul(items.slice(1, 0, 2, 1).transpose(Some(&[0, 2, 1])));
        let expected =
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(item, j)| sum(8, &|k| host[item * 24 + 16 + k] * host[item * 24 + j * 8 + k]));
        assert_eq!(values(gpu, &product), expected, "{backend}");
        let none = x.slice(0, 0, 0, 1);
        assert_eq!(values(gpu, &none.transpose(None).matmul(&none)), [0.0; 64], "{backend}");
    });
}

/// Each operand is repeated along other dimensions of the batch than the other one, in turns.
#[test]
fn a_product_of_batches_that_are_repeated_in_turns() {
    everywhere(|gpu, backend| {
        let host: Vec<f32> = (0..96).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
        let x = Expr::from(&gpu.tensor_blocking(&host, 12, 8).unwrap()).reshape(&[-1]);
        let a = x.slice(0, 0, 24, 1).reshape(&[2, 1, 2, 1, 2, 3]);
        let b = x.slice(0, 24, 96, 1).reshape(&[1, 3, 2, 2, 3, 2]);
        let at = |i: usize, j: usize, l: usize, o: usize, m: usize, n: usize| {
            (0..3).map(|k| host[((i * 2 + l) * 2 + m) * 3 + k] * host[24 + (((j * 2 + l) * 2 + o) * 3 + k) * 2 + n]).sum::<f32>()
        };
        let expected: Vec<f32> = (0..96).map(|e| at(e / 48, e / 16 % 3, e / 8 % 2, e / 4 % 2, e / 2 % 2, e % 2)).collect();
        let product = a.matmul(&b);
        assert_eq!((product.shape().unwrap(), values(gpu, &product)), (&[2, 3, 2, 2, 2, 2][..], expected), "{backend}");
        let halves = |x: &Expr| Expr::from(gpu.evaluate_blocking(&x.abs().cast(DType::F16)).unwrap());
        let (a, b) = (halves(&a), halves(&b));
        let of_floats = values(gpu, &a.cast(DType::F32).matmul(b.cast(DType::F32)));
        assert_eq!(values(gpu, &a.matmul(&b).cast(DType::F32)), of_floats, "{backend}");
    });
}

/// Of what is without terms or without elements nothing is read, and what is queued round it is as it was.
#[test]
fn products_of_nothing() {
    everywhere(|gpu, backend| {
        let zeros = |shape: &[u64]| {
            let (rows, columns) = shape.split_at(1);
            Expr::from(gpu.tensor_blocking(&[0.0f32; 0], rows[0], columns.iter().product::<u64>()).unwrap().reshape(shape).unwrap())
        };
        let host = [1.0f32, -2.0, 3.0, 4.0, 5.0, -6.0];
        let x = Expr::from(gpu.tensor_blocking(&host, 2, 3).unwrap());
        let bias = x.slice(0, 0, 1, 1).reshape(&[3]);
        let before = gpu.evaluate_blocking(&x.mul(2.0)).unwrap();
        let none = || zeros(&[2, 0]).matmul(zeros(&[0, 3]));
        assert_eq!(values(gpu, &none()), [0.0; 6], "{backend}");
        assert_eq!(values(gpu, &(none() * 2.0 + &bias).relu()), [1.0, 0.0, 3.0, 1.0, 0.0, 3.0], "{backend}");
        assert_eq!(values(gpu, &(none() + &x)), host, "{backend}");
        assert_eq!(values(gpu, &zeros(&[4, 2, 0]).matmul(zeros(&[4, 0, 3]))), [0.0; 24], "{backend}");
        assert_eq!(values(gpu, &zeros(&[4, 2, 0]).matmul(zeros(&[0, 3])).add(1.0)), [1.0; 24], "{backend}");
        assert_eq!(values(gpu, &zeros(&[0]).matmul(zeros(&[0]))), [0.0], "{backend}");
        for (batch, terms) in [(3, 1), (3, 4), (300, 1)] {
            let (rows, columns) = (zeros(&[batch, 0, terms]), Expr::index(&[batch, terms, 3]).cast(DType::F32));
            let kept = gpu.evaluate_blocking(&rows.matmul(&columns)).unwrap();
            assert_eq!(kept.shape(), [batch, 0, 3], "{backend}");
            let ended = gpu.evaluate_blocking(&rows.matmul(&columns).exp().transpose(None)).unwrap();
            assert_eq!(ended.shape(), [3, 0, batch], "{backend}");
            let turned =
                gpu.evaluate_blocking(&columns.transpose(Some(&[0, 2, 1])).matmul(rows.transpose(Some(&[0, 2, 1]))).add(1.0)).unwrap();
            assert_eq!(turned.shape(), [batch, 3, 0], "{backend}");
        }
        for factor in [f64::NAN, f64::INFINITY] {
            let is_nan = |product: &Expr| values(gpu, product).iter().all(|value| value.is_nan());
            assert!(is_nan(&(none() * factor)), "{backend}");
            assert!(is_nan(&(none() * factor + &bias)), "{backend}");
            assert!(
                is_nan(&(zeros(&[2, 0]).cast(DType::F16).matmul(zeros(&[0, 3]).cast(DType::F16)) * factor).cast(DType::F32)),
                "{backend}"
            );
        }
        assert_eq!(values(gpu, &none().cast(DType::F16).cast(DType::F32)), [0.0; 6], "{backend}");
        assert_eq!(values(gpu, &zeros(&[2, 0]).cast(DType::F16).matmul(zeros(&[0, 3]).cast(DType::F16)).cast(DType::F32)), [0.0; 6]);
        // GPUs before compute capability 6.1 multiply none of them.
        if backend != BackendId::Cuda || gpu.info().unwrap().caps.packed_dot {
            let bytes = |rows, columns| Expr::from(gpu.tensor_blocking(&[0i8; 0], rows, columns).unwrap());
            assert_eq!(values(gpu, &bytes(2, 0).matmul(bytes(0, 3)).cast(DType::F32)), [0.0; 6], "{backend}");
        }
        for (a, b, shape) in [
            (zeros(&[0, 3]), x.transpose(None), &[0, 2][..]),
            (x.clone(), zeros(&[3, 0]), &[2, 0]),
            (zeros(&[0, 5, 2]), x.clone(), &[0, 5, 3]),
            (zeros(&[0, 0]), zeros(&[0, 0]), &[0, 0]),
        ] {
            let value = gpu.evaluate_blocking(&a.matmul(&b)).unwrap();
            assert_eq!((value.shape(), value.to_vec_blocking().unwrap()), (shape, Vec::new()), "{backend}");
            let value = gpu.evaluate_blocking(&a.matmul(b).relu().add(1.0).sum(None, false)).unwrap();
            assert_eq!(value.to_vec_blocking().unwrap(), [0.0], "{backend}");
        }
        assert_eq!(before.to_vec_blocking().unwrap(), host.map(|x| 2.0 * x), "{backend}");
        assert_eq!(values(gpu, &Expr::from(before).add(1.0)), host.map(|x| 2.0 * x + 1.0), "{backend}");
    });
}

/// A factor by which an operand would be beyond all numbers, or nothing, where the sum's product with it is neither.
#[test]
fn a_factor_is_of_the_sum() {
    everywhere(|gpu, backend| {
        for [m, k, n] in [[4, 64, 64], [2, 3, 5], [1, 4096, 40], [300, 40, 1], [128, 128, 128], [2, 1024, 2]] {
            for (factor, x, y) in [(1e30f32, 1e10f32, 1e-30f32), (1e-30, 1e-20, 1e30), (1e30, 1e-30, 1e10)] {
                let (a, b) = (vec![x; (m * k) as usize], vec![y; (k * n) as usize]);
                let expected = f64::from(factor) * f64::from(x) * f64::from(y) * k as f64;
                let got = gpu.matmul_blocking(&a, &b, &Matmul::new(m, k, n).alpha(factor)).unwrap();
                let bound = bounds::product(k as usize + 3, expected).min(bounds::CHAIN.relative * expected);
                let is_near = |&got: &f32| (f64::from(got) - expected).abs() <= bound;
                assert!(got.iter().all(is_near), "{backend}: {m}x{k}x{n} by {factor}: {} for {expected}", got[0]);
            }
            // Halves of a sum that cancel out, and would not if each were scaled; beside a matrix too.
            let (a, signs) = (vec![2f32.powi(30); (m * k) as usize], |i: u64| if i < k / 2 { 1.0 } else { -1.0 });
            let b: Vec<f32> = (0..k * n).map(|i| if k % 2 == 0 { signs(i / n) } else { 0.0 }).collect();
            let large = Matmul::new(m, k, n).alpha(2f32.powi(95));
            assert!(gpu.matmul_blocking(&a, &b, &large).unwrap().iter().all(|&x| x == 0.0), "{backend}: {m}x{k}x{n}");
            let c: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
            let halved: Vec<f32> = c.iter().map(|x| x * 0.5).collect();
            assert_eq!(gpu.matmul_blocking(&a, &b, &large.plus(0.5, &c)).unwrap(), halved, "{backend}: {m}x{k}x{n}");
            // What is none stays so where nothing is left of the rest.
            let none = Expr::from(f64::INFINITY).broadcast_to(&[m, k]).matmul(Expr::from(1.0).broadcast_to(&[k, n])) * 0.0;
            assert!(values(gpu, &none).iter().all(|value| value.is_nan()), "{backend}: {m}x{k}x{n}");
        }
    });
}

/// What kernels take is asked of the device's own plans, not of those that it would have without a hint.
#[test]
fn what_follows_is_taken_by_kernels_of_any_workgroup() {
    for backend in [BackendId::Cuda, BackendId::Vulkan, BackendId::WebGpu] {
        for hint in [64, 128] {
            let options = Options { workgroup_hint: Some(hint), vendor_libraries: false, ..Options::only(backend) };
            let Some(gpu) = devices::open(options) else { continue };
            for count in [2049, 4097, 8192] {
                let ones = gpu.tensor_blocking(&vec![1.0; 4 * count], 4, count as u64).unwrap();
                let doubled = Expr::from(&ones).sum(Some(&[1]), false) * 2.0;
                assert_eq!(values(&gpu, &doubled), [2.0 * count as f32; 4], "{backend} with {hint}");
            }
        }
    }
}
