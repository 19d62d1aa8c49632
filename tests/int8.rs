//! Products of 8-bit integers on every backend that has them, each element as plain loops have it.
#![cfg(not(target_arch = "wasm32"))]

mod devices;

use std::fmt;

use devices::everywhere;
use lapidary::{Activation, BackendId, DType, Error, Expr, Gpu, HostSlice, Matmul, Options, Padding, Precision, random};

/// A product to try, both operands possibly windows of something larger.
#[derive(Debug, Clone, Copy)]
struct Case {
    size: [usize; 3],
    signed: [bool; 2],
    transposed: [bool; 2],
    zero_points: [i32; 2],
    /// How many products, and which operands all of them share.
    batch: usize,
    shared: [bool; 2],
    /// Elements from a row's end to the next row's start, and before the first.
    padding: [usize; 2],
    before: [usize; 2],
}

const PLAIN: Case = Case {
    size: [1; 3],
    signed: [true; 2],
    transposed: [false; 2],
    zero_points: [0; 2],
    batch: 1,
    shared: [false; 2],
    padding: [0; 2],
    before: [0; 2],
};

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// An operand as stored, and where its elements are.
struct Stored {
    bytes: Vec<u8>,
    signed: bool,
    stride: usize,
    step: usize,
    before: usize,
    transposed: bool,
    zero_point: i32,
}

impl Stored {
    fn at(&self, item: usize, row: usize, column: usize) -> i64 {
        let (row, column) = if self.transposed { (column, row) } else { (row, column) };
        let byte = self.bytes[self.before + item * self.step + row * self.stride + column];
        i64::from(if self.signed { i32::from(byte.cast_signed()) } else { i32::from(byte) } - self.zero_point)
    }

    fn values<'a>(&'a self, signed: &'a [i8]) -> HostSlice<'a> {
        if self.signed { signed.into() } else { (&self.bytes).into() }
    }
}

impl Case {
    /// The dimensions of an operand as stored.
    fn stored(&self, which: usize) -> Stored {
        let [m, k, n] = self.size;
        let (rows, columns) = [(m, k), (k, n)][which];
        let transposed = self.transposed[which];
        let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
        let stride = columns + self.padding[which];
        let step = if self.shared[which] { 0 } else { rows * stride };
        let items = if self.shared[which] { self.batch.min(1) } else { self.batch };
        let is_empty = rows * columns * items == 0;
        let length = self.before[which] + if is_empty { 0 } else { (items - 1) * step + (rows - 1) * stride + columns };
        // The extremes are frequent, whose sums are the largest.
        let byte = |i: usize| match i % 7 {
            0 => 0x80,
            3 => 0x7f,
            5 => 0xff,
            _ => (random::element(1 + which as u64, i as u64) * 128.0) as i8 as u8,
        };
        let bytes = (0..length).map(byte).collect();
        let (signed, before, zero_point) = (self.signed[which], self.before[which], self.zero_points[which]);
        Stored { bytes, signed, stride, step, before, transposed, zero_point }
    }

    fn op(&self, a: &Stored, b: &Stored) -> Matmul<'static> {
        let [m, k, n] = self.size.map(|size| size as u64);
        let mut op = Matmul::new(m, k, n).transpose_a(a.transposed).transpose_b(b.transposed);
        op = op.zero_points(self.zero_points[0], self.zero_points[1]);
        if self.batch != 1 {
            op = op.batch(self.batch as u64).stride_a(a.step as u64).stride_b(b.step as u64);
        }
        if self.padding != [0; 2] {
            op = op.lda(a.stride as u64).ldb(b.stride as u64);
        }
        if self.before != [0; 2] {
            op = op.offset_a(a.before as u64).offset_b(b.before as u64);
        }
        op
    }

    /// What is wrong with what a backend makes of it.
    fn fault(&self, gpu: &Gpu) -> Option<String> {
        let (a, b) = (self.stored(0), self.stored(1));
        let (a_signed, b_signed): (&[i8], &[i8]) = (bytemuck::cast_slice(&a.bytes), bytemuck::cast_slice(&b.bytes));
        let op = self.op(&a, &b);
        let computed = pollster::block_on(async {
            // On the way also as tensors, whose lengths are no multiples of a word.
            let tensor = async |values: HostSlice<'_>| {
                let length = values.len();
                gpu.tensor(values, 1, length).await
            };
            let kept = gpu.matmul_tensor(&tensor(a.values(a_signed)).await?, &tensor(b.values(b_signed)).await?, &op).await?;
            let host = gpu.matmul_values(a.values(a_signed), b.values(b_signed), &op).await?;
            Ok::<_, Box<Error>>((kept.to_host().await?.into_typed::<i32>()?, host.into_typed::<i32>()?))
        });
        let [m, k, n] = self.size;
        let expected: Vec<i32> = (0..self.batch * m * n)
            .map(|at| {
                let (item, i, j) = (at / n / m, at / n % m, at % n);
                (0..k).map(|p| a.at(item, i, p) * b.at(item, p, j)).sum::<i64>() as i32
            })
            .collect();
        match computed {
            Err(error) => Some(format!("{self}: {error}")),
            Ok((kept, host)) if kept == expected && host == expected => None,
            Ok((kept, _)) => {
                let at = kept.iter().zip(&expected).position(|(x, y)| x != y);
                Some(format!("{self}: wrong at {at:?}, {:?} for {:?}", at.map(|at| kept[at]), at.map(|at| expected[at])))
            }
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let sizes = [
        [0, 5, 3],
        [3, 0, 5],
        [3, 5, 0],
        [1, 1, 1],
        [1, 7, 1],
        [5, 2, 9],
        [13, 17, 19],
        [32, 32, 32],
        [31, 37, 41],
        [64, 64, 64],
        [66, 130, 67],
        [1, 300, 77],
        [77, 300, 1],
        [3, 4099, 6],
        [130, 40, 131],
        [64, 37, 96],
        [144, 208, 272],
        [48, 20_000, 32],
        [1, 700, 1001],
        [1, 20_000, 44],
        [51, 9001, 3],
        [4, 901, 301],
        [302, 900, 7],
        [8, 301, 530],
    ];
    for (at, size) in sizes.into_iter().enumerate() {
        for bits in 0..4 {
            let transposed = [bits & 1 == 1, bits & 2 == 2];
            // Each size meets each layout, each pair of types and zero points or none, but not all of them at once.
            for turn in 0..2 {
                let types = (at + bits + turn) % 4;
                let signed = [types & 1 == 0, types & 2 == 0];
                let zeros = signed.map(|signed| if signed { -128 } else { 255 });
                let zero_points = [[0; 2], zeros, [zeros[0], 0], [0, 3]][(at + 2 * turn + bits / 2) % 4];
                let (padding, before) =
                    [([0; 2], [0; 2]), ([4, 8], [8, 4]), ([1, 2], [3, 5]), ([16, 32], [32, 48])][(at + bits + turn) % 4];
                cases.push(Case { size, signed, transposed, zero_points, padding, before, ..PLAIN });
            }
        }
    }
    for (at, size) in [[33, 17, 31], [4, 8, 12], [1, 37, 30], [2, 3, 2]].into_iter().enumerate() {
        for (batch, shared) in [(3, [false; 2]), (3, [true, false]), (3, [false, true]), (70, [false; 2]), (0, [false; 2])] {
            let (signed, transposed) = ([at % 2 == 0, batch % 2 == 0], [at > 1, at % 2 == 1]);
            let padding = if at % 2 == 0 { [0; 2] } else { [3, 1] };
            cases.push(Case { size, signed, transposed, batch, shared, padding, zero_points: [1, 2], ..PLAIN });
        }
    }
    cases
}

#[test]
fn every_case() {
    everywhere(|gpu, backend| {
        let faults: Vec<_> = cases().iter().filter_map(|case| case.fault(gpu)).collect();
        assert!(faults.is_empty(), "{backend}, {} wrong:\n{}", faults.len(), faults.join("\n"));
    });
}

/// 2³¹ and more: 127² · 140,000 and (−128)² · 140,000, both past what an i32 holds.
#[test]
fn sums_wrap_around() {
    everywhere(|gpu, backend| {
        for (value, k) in [(127i8, 140_000usize), (-128, 140_000)] {
            let values = vec![value; k];
            let op = Matmul::new(1, k as u64, 1);
            let found = gpu.matmul_values_blocking(&values, &values, &op).unwrap().into_typed::<i32>().unwrap();
            assert_eq!(found, [(i64::from(value) * i64::from(value) * k as i64) as i32], "{backend}");
        }
    });
}

#[test]
fn in_expressions() {
    everywhere(|gpu, backend| {
        let (a, b) =
            (gpu.tensor_blocking(&[1i8, -2, 3, 4, -5, 6], 2, 3).unwrap(), gpu.tensor_blocking(&[1u8, 2, 3, 4, 5, 255], 3, 2).unwrap());
        let typed = |expr: &Expr| gpu.evaluate_blocking(expr).unwrap().to_host_blocking().unwrap();
        let (a, b) = (Expr::from(&a), Expr::from(&b));
        assert_eq!(typed(&a.matmul(&b)).into_typed::<i32>().unwrap(), [10, 759, 19, 1518]);
        assert_eq!(typed(&b.transpose(None).matmul(a.transpose(None))).into_typed::<i32>().unwrap(), [10, 19, 759, 1518]);
        assert_eq!(typed(&b.slice(0, 1, 3, 1).matmul(a.slice(1, 0, 3, 1))).into_typed::<i32>().unwrap(), [19, -26, 33, 1025, -1285, 1545]);
        assert_eq!(typed(&a.matmul(&b).cast(DType::F32).mul(0.5).relu()).into_vec(), [5.0, 379.5, 9.5, 759.0]);
        // What is read is given back as it was.
        assert_eq!(typed(&a.reshape(&[6])).into_typed::<i8>().unwrap(), [1, -2, 3, 4, -5, 6]);
        let refused = |expr: &Expr| gpu.evaluate_blocking(expr).expect_err("nothing but products takes bytes").to_string();
        let expected = "must be of f32, f16, i32, u32 or bool, since products alone take integers of 8 bits, but it is of i8";
        for expr in [a.add(1), a.cast(DType::F32), a.flip(None), a.sum(None, false).cast(DType::F32)] {
            let text = refused(&expr);
            assert!(text.contains(expected) || text.contains("of f32, f16, i32 or u32"), "{text}");
        }
        // Of padding alone, which reads nothing.
        let padded = a.pad(&[[9, 0], [0, 0]], Padding::Constant(1.0)).slice(0, 0, 9, 1);
        assert!(refused(&padded).contains("what is copied or computed must be of f32"), "{backend}");
        assert!(refused(&Expr::from(1.0).cast(DType::I8)).contains("the result of cast must be of f32"), "{backend}");
        assert!(
            refused(&a.matmul(Expr::from(&gpu.tensor_blocking(&[1.0f32; 6], 3, 2).unwrap()))).contains("both of i8 or u8"),
            "{backend}"
        );
    });
}

#[test]
fn what_they_do_not_have_is_refused() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).expect("the CPU is always there");
    let (a, b) = ([1i8; 6], [1u8; 6]);
    let plain = || Matmul::new(2, 3, 2);
    let text = |op: &Matmul<'_>| gpu.matmul_values_blocking(&a, &b, op).expect_err("it is refused").to_string();
    let ends = "a product of 8-bit integers ends in its sums of i32; leave the option out";
    let bias = [1.0f32; 2];
    for (option, op) in [
        ("alpha", plain().alpha(2.0)),
        ("beta", plain().plus(1.0, &[1i32; 4])),
        ("c", plain().plus(0.0, &[1i32; 4])),
        ("bias", plain().bias(&bias)),
        ("activation", plain().activation(Activation::Relu)),
    ] {
        assert_eq!(text(&op), format!("{option} is set, but {ends}"));
    }
    assert_eq!(text(&plain().result(DType::F32)), "the result must be of i32, as that of 8-bit integers is, but it is of f32");
    assert!(text(&plain().precision(Precision::F16x3)).contains("it is for operands of f32, and these are of i8"));
    assert_eq!(
        text(&plain().zero_points(128, 0)),
        "the zero point of a (zero_points) is 128, but a is of i8, whose numbers are -128 to 127"
    );
    assert_eq!(text(&plain().zero_points(0, -1)), "the zero point of b (zero_points) is -1, but b is of u8, whose numbers are 0 to 255");
    assert_eq!(text(&Matmul::new(2, 3, 3)), "b has 6 elements, but 3 · 3 = 9 are needed");
    let of =
        |a: HostSlice<'_>, b: HostSlice<'_>, op: &Matmul<'_>| gpu.matmul_values_blocking(a, b, op).expect_err("it is refused").to_string();
    assert_eq!(of((&a).into(), (&[1.0f32; 6]).into(), &plain()), "b must be of i8 or u8, as the other operand is, but it is of f32");
    assert_eq!(
        of((&[1.0f32; 6]).into(), (&b).into(), &plain()),
        "b must be of f32, as the result or the other operand is, but it is of u8"
    );
    assert_eq!(
        of((&[1i32; 6]).into(), (&[1i32; 6]).into(), &plain()),
        "a must be of f32 or f16, or of i8 or u8 with a result of i32, but it is of i32"
    );
    let floats = [1.0f32; 6];
    let told = of((&floats).into(), (&floats).into(), &plain().zero_points(1, 0));
    assert_eq!(told, "zero_points is set, but it is for operands of i8 or u8; leave the option out");
    let huge = of((&a).into(), (&b).into(), &Matmul::new(1 << 20, 1 << 20, 1 << 20));
    assert!(huge.contains("the number of elements of A is 1099511627776, but at most"), "{huge}");
}

/// As f32 they are given where f32 is asked for, and are then the nearest.
#[test]
fn as_f32_they_are_rounded() {
    let gpu = Gpu::open_blocking(Options::only(BackendId::Scalar)).expect("the CPU is always there");
    let values = vec![127i8; 2001];
    assert_eq!(gpu.matmul_blocking(&values, &values, &Matmul::new(1, 2001, 1)).unwrap(), [(127 * 127 * 2001) as f32]);
}
