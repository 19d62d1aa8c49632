//! What only moves elements on the CPU gives the same as where something is computed of each on the way.

use half::f16;
use lapidary::{BackendId, DType, Expr, Gpu, HostVec, Options, Padding};

fn evaluated(gpu: &Gpu, expr: &Expr) -> HostVec {
    gpu.evaluate_blocking(expr).unwrap().to_host_blocking().unwrap()
}

/// The same values by a kernel that computes.
fn computed(expr: &Expr) -> Expr {
    match expr.dtype().unwrap() {
        DType::Bool => expr.not().not(),
        _ => expr.mul(1.0),
    }
}

/// Tensors of every type in a shape.
fn tensors(gpu: &Gpu, shape: &[u64]) -> Vec<Expr> {
    let index = Expr::index(shape).add(1);
    let of = |dtype: DType| match dtype {
        DType::Bool => index.modulo(3).equal(0),
        // All of them are numbers of f16.
        DType::F16 => index.modulo(2039).cast(dtype),
        _ => index.cast(dtype),
    };
    DType::COMPUTED.iter().map(|&dtype| Expr::from(gpu.evaluate_blocking(&of(dtype)).unwrap())).collect()
}

fn orders(rank: i64) -> Vec<Vec<i64>> {
    if rank == 0 {
        return vec![Vec::new()];
    }
    let with_last = |order: Vec<i64>| {
        (0..=order.len()).map(move |at| {
            let mut order = order.clone();
            order.insert(at, rank - 1);
            order
        })
    };
    orders(rank - 1).into_iter().flat_map(with_last).collect()
}

#[test]
fn views_of_every_kind() {
    for backend in [BackendId::Simd, BackendId::Scalar] {
        let gpu = Gpu::open_blocking(Options::only(backend)).unwrap();
        let shapes: [&[u64]; 8] = [&[1], &[7, 9], &[8, 16], &[33, 65], &[400, 350], &[3, 8, 40], &[16, 5, 24], &[2, 3, 4, 9]];
        for shape in shapes {
            // Threads are for many elements, which take long here.
            let types = if shape[0] == 400 { 1 } else { DType::COMPUTED.len() };
            for x in tensors(&gpu, shape).into_iter().take(types) {
                let rank = shape.len() as i64;
                let same = |view: Expr, what: String| {
                    assert_eq!(evaluated(&gpu, &view), evaluated(&gpu, &computed(&view)), "{what} of {:?} {shape:?}", x.dtype());
                };
                for order in orders(rank) {
                    let turned = x.transpose(Some(&order));
                    for axis in 0..rank {
                        same(turned.flip(Some(&[axis])), format!("{order:?} and back along {axis}"));
                        same(turned.slice(axis, 1, i64::MAX, 3), format!("every third along {axis} of {order:?}"));
                        same(turned.slice(axis, -1, i64::MIN, -2), format!("every second back along {axis} of {order:?}"));
                    }
                    same(turned, format!("{order:?}"));
                }
                for axis in 0..rank {
                    let parts = [x.clone(), x.flip(Some(&[axis])), x.slice(axis, 0, 1, 1)];
                    same(Expr::concat(&parts, axis), format!("parts along {axis}"));
                }
                let widths: Vec<_> = (0..rank as u64).map(|axis| [axis % 3, 2 - axis % 2]).collect();
                same(x.pad(&widths, Padding::Constant(1.0)), "padding".to_owned());
                same(x.pad(&widths, Padding::Constant(0.0)).slice(0, 1, i64::MAX, 1), "a part of padding".to_owned());
                let larger: Vec<_> = [4].into_iter().chain(shape.iter().copied()).collect();
                same(x.broadcast_to(&larger), "repeated".to_owned());
            }
        }
    }
}

#[test]
fn truths_and_halves_come_as_they_went() {
    for backend in [BackendId::Simd, BackendId::Scalar] {
        let gpu = Gpu::open_blocking(Options::only(backend)).unwrap();
        let truths: Vec<bool> = (0..1000).map(|i| i * i % 7 < 3).collect();
        let tensor = gpu.tensor_blocking(&truths, 10, 100).unwrap();
        assert_eq!(tensor.to_host_blocking().unwrap().into_typed::<bool>().unwrap(), truths, "{backend}");
        let turned = evaluated(&gpu, &Expr::from(&tensor).transpose(None)).into_typed::<bool>().unwrap();
        assert!(turned.iter().enumerate().all(|(at, &truth)| truth == truths[at % 10 * 100 + at / 10]), "{backend}");
        let count = evaluated(&gpu, &Expr::from(&tensor).count(None, false)).into_typed::<u32>().unwrap();
        assert_eq!(count, [truths.iter().filter(|truth| **truth).count() as u32], "{backend}");
        let halves: Vec<f16> = (0..1000).map(|i| f16::from_bits(i * 31)).collect();
        let tensor = gpu.tensor_blocking(&halves, 100, 10).unwrap();
        let turned = evaluated(&gpu, &Expr::from(&tensor).transpose(None)).into_typed::<f16>().unwrap();
        assert!(turned.iter().enumerate().all(|(at, half)| half.to_bits() == halves[at % 100 * 10 + at / 100].to_bits()), "{backend}");
    }
}

#[test]
fn a_vector_times_a_matrix() {
    let (one, all) = (Options { threads: Some(1), ..Options::only(BackendId::Simd) }, Options::only(BackendId::Simd));
    for options in [one, all] {
        let gpu = Gpu::open_blocking(options).unwrap();
        for [m, k] in [[1, 1], [3, 200], [130, 67], [700, 900], [5000, 33]] {
            let a: Vec<f32> = (0..m * k).map(|i| (i % 11) as f32 - 5.0).collect();
            let [x, y] = [k, m].map(|length| (0..length).map(|i| (i % 7) as f32 - 3.0).collect::<Vec<_>>());
            let matrix = Expr::from(gpu.tensor_blocking(&a, m as u64, k as u64).unwrap());
            let vector = |values: &[f32]| Expr::from(gpu.tensor_blocking(values, 1, values.len() as u64).unwrap()).reshape(&[-1]);
            let by_rows: Vec<f32> = a.chunks(k).map(|row| row.iter().zip(&x).map(|(a, x)| a * x).sum()).collect();
            let by_columns: Vec<f32> = (0..k).map(|j| y.iter().enumerate().map(|(i, y)| a[i * k + j] * y).sum()).collect();
            // Sums of whole numbers are exact in any order.
            let values = |expr: &Expr| evaluated(&gpu, expr).into_vec();
            assert_eq!(values(&matrix.matmul(vector(&x))), by_rows, "{m} x {k}");
            assert_eq!(values(&vector(&y).matmul(&matrix)), by_columns, "{m} x {k}");
            let turned = matrix.transpose(None);
            assert_eq!(values(&turned.matmul(vector(&y))), by_columns, "{m} x {k} transposed");
            assert_eq!(values(&vector(&x).matmul(&turned)), by_rows, "{m} x {k} transposed");
            let doubled: Vec<f32> = by_columns.iter().map(|sum| 2.0 * sum + 1.0).collect();
            let ones = vec![1.0; k];
            assert_eq!(values(&vector(&y).matmul(&matrix).mul(2.0).add(vector(&ones))), doubled, "{m} x {k}");
        }
    }
}

/// Rows that lie across an input's are turned some at a time: whatever the sides, and wherever blocks and shares begin.
#[test]
fn what_is_computed_of_what_lies_across() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Simd)).unwrap();
    let shapes: [&[u64]; 7] = [&[100, 100], &[9, 300], &[300, 11], &[8, 17_000], &[17_000, 8], &[700, 500], &[5, 40, 60]];
    for shape in shapes {
        let x = Expr::from(gpu.evaluate_blocking(&Expr::index(shape).cast(DType::F32)).unwrap());
        let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let turned = x.transpose(Some(if shape.len() == 2 { &[1, 0] } else { &[0, 2, 1] }));
        let found = evaluated(&gpu, &turned.add(Expr::index(turned.shape().unwrap()).cast(DType::F32))).into_vec();
        let plane = rows * columns;
        for (at, found) in (0u64..).zip(found) {
            let (first, within) = (at / plane * plane, at % plane);
            let from = first + within % rows * columns + within / rows;
            assert_eq!(found, (from + at) as f32, "element {at} of {shape:?} turned");
        }
    }
}
