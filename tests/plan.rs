//! Plans, on a machine without a GPU: golden text for typical ones, and properties of all, in `limits` and for CUDA in `of_cuda`.
#![cfg(not(target_arch = "wasm32"))]

use std::path::Path;

use lapidary::ops::Op;
use lapidary::ops::elementwise::{Function, Kind, Program, Step};
use lapidary::ops::fused::Fused;
use lapidary::ops::map::{self, View};
use lapidary::ops::matmul::{Activation, Batch, Integers, Level, Precision, Problem, Stored};
use lapidary::ops::normalize::{self, Form};
use lapidary::ops::reduce::Fold;
use lapidary::plan::Plan;
use lapidary::plan::matmul::{FragmentCaps, compute, cublaslt, cuda, fragment, stand_in};
use lapidary::{Caps, DType, Dialect, MatrixUnit, plan};
use problems::{DEFAULTS, LARGE, convolution, pooling, reduce, rows, transform, values, window};

#[path = "plan/limits.rs"]
mod limits;
#[cfg(feature = "cuda")]
#[path = "plan/cuda.rs"]
mod of_cuda;
mod problems;

/// And one with matrix units.
const UNITS: Caps = Caps {
    matrix_unit: Some(MatrixUnit {
        m: 16,
        n: 16,
        k: 16,
        operands: DType::F16,
        sums: DType::F32,
        subgroup_size: 32,
        dialect: Dialect::Cooperative,
    }),
    ..LARGE
};

/// One that computes in f16.
const HALF: Caps = Caps { f16: true, ..LARGE };

/// One that keeps forms of operands.
const KEEPS: Caps = Caps { keeps: [true; 2], ..LARGE };

/// And matrix units in Chromium.
const BROWSER: Caps = Caps {
    matrix_unit: Some(MatrixUnit {
        m: 16,
        n: 16,
        k: 16,
        operands: DType::F16,
        sums: DType::F32,
        subgroup_size: 32,
        dialect: Dialect::Subgroup,
    }),
    ..LARGE
};

/// What a large GPU has of WebGL2.
const FRAGMENT: FragmentCaps = FragmentCaps { targets: 8, block_bytes: 1 << 16, alignment_bytes: 256 };

/// The same of unsigned 8-bit integers and signed ones.
fn integers(problem: Problem, zero_points: [i32; 2]) -> Problem {
    let integers = Integers { dtypes: [DType::U8, DType::I8], zero_points };
    Problem { dtype: DType::U8, integers: Some(integers), result: DType::I32, ..problem }
}

fn problem(m: u32, k: u32, n: u32, transpose_a: bool, transpose_b: bool, reads_c: bool, padding: u64) -> Problem {
    let stored = |swap: bool, rows: u32, columns: u32| {
        let (rows, columns) = if swap { (columns, rows) } else { (rows, columns) };
        Stored { rows, columns, stride: u64::from(columns) + padding }
    };
    let c = reads_c.then(|| stored(false, m, n));
    Problem {
        m,
        k,
        n,
        batch: Batch::ONE,
        dtype: DType::F32,
        integers: None,
        result: DType::F32,
        precision: Precision::F32,
        transpose_a,
        transpose_b,
        alpha: 1.0,
        beta: if reads_c { 2.0 } else { 0.0 },
        a: stored(transpose_a, m, k),
        b: stored(transpose_b, k, n),
        c,
        bias: false,
        activation: None,
    }
}

/// So many of them, in two loops. A bit of `shared` for each loop and operand tells that all items of that loop have the same.
fn batch(problem: Problem, [outer, inner]: [u32; 2], shared: u8) -> Problem {
    let rows = |stored: &Stored| u64::from(stored.rows) * stored.stride;
    let packed = [rows(&problem.a), rows(&problem.b), problem.c.as_ref().map_or(0, rows)];
    let level = |count: u32, step: u64, first_bit: usize| {
        let of = |x: usize| if count == 1 || shared >> (first_bit + x) & 1 == 1 { 0 } else { packed[x] * step };
        Level { count, a: of(0), b: of(1), c: of(2) }
    };
    Problem { batch: Batch { outer: level(outer, inner.into(), 0), inner: level(inner, 1, 3), ..Batch::ONE }, ..problem }
}

/// The larger of a product's sums and a row's elements, as a kernel of the product computes it.
fn ended(core: Problem) -> Fused {
    let steps = vec![Step::Input(0), Step::Input(1), Step::Apply(Function::Max, [0, 1])];
    let program = Program { inputs: vec![Kind::F32; 2], steps };
    let values = problems::values(&[core.m, core.n], &[core.n.into(), 1]);
    let row = View { strides: vec![0, 1], ..values.inputs[0].clone() };
    let end = map::Problem { inputs: vec![values.inputs[0].clone(), row], program: program.into(), ..values };
    Fused { core: Op::Matmul(core), core_inputs: 2, end }
}

/// A reduction whose results are rounded to f16.
fn rounded(core: lapidary::ops::reduce::Problem) -> Fused {
    let values = problems::values(&core.values.shape[..core.kept], &[1]);
    Fused { core: Op::Reduce(core), core_inputs: 1, end: map::Problem { dtype: DType::F16, ..values } }
}

/// Compares a plan with its file. `LAPIDARY_BLESS=1 cargo test --test plan` writes the files anew.
fn written_down(name: &str, plan: &Plan) {
    let text = plan.to_string();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plan").join(format!("{name}.txt"));
    if std::env::var_os("LAPIDARY_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the folder is there");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{}", path.display());
}

#[test]
fn plans_are_as_written_down() {
    let plain = |m, k, n| problem(m, k, n, false, false, false, 0);
    let f16 = |result, problem| Problem { dtype: DType::F16, result, ..problem };
    let split = |problem| Problem { precision: Precision::F16x3, ..problem };
    let cases = [
        ("square", compute(&plain(512, 512, 512), &LARGE)),
        ("stand-in", compute(&problem(100, 33, 76, true, true, true, 1), &LARGE).map(|plan| stand_in(&plan, &LARGE).expect("one stage"))),
        ("large", compute(&plain(4096, 4096, 4096), &LARGE)),
        ("odd", compute(&problem(100, 33, 75, true, true, true, 1), &LARGE)),
        ("default-limits", compute(&plain(4096, 4096, 4096), &DEFAULTS)),
        ("past-the-binding-limit", compute(&plain(7000, 7000, 7000), &DEFAULTS)),
        ("past-the-workgroup-limit", compute(&plain(5_000_000, 3, 2), &DEFAULTS)),
        ("long-k", compute(&problem(128, 8192, 130, false, true, true, 0), &LARGE)),
        ("cuda", cuda(&plain(4096, 4096, 4096), &LARGE, 132)),
        ("cuda-small", cuda(&plain(1024, 1024, 1024), &LARGE, 132)),
        ("cuda-odd", cuda(&problem(100, 33, 75, true, false, true, 1), &LARGE, 132)),
        ("cuda-rows-from-memory", cuda(&plain(16, 4096, 4096), &LARGE, 132)),
        ("cuda-column", cuda(&Problem { bias: true, ..problem(300, 40_000, 1, false, false, true, 1) }, &LARGE, 132)),
        ("cuda-few-rows", cuda(&plain(8, 4096, 11_008), &LARGE, 132)),
        ("cuda-few-terms", cuda(&Problem { bias: true, ..plain(100_000, 10, 7) }, &LARGE, 132)),
        ("cuda-few-columns", cuda(&f16(DType::F16, batch(problem(2048, 513, 3, true, true, false, 0), [1, 3], 0)), &UNITS, 132)),
        ("cuda-long-k", cuda(&problem(128, 8192, 130, false, true, true, 0), &LARGE, 132)),
        ("cublaslt", cublaslt(&problem(100, 33, 75, false, true, true, 1), &LARGE, 132).map(|plan| plan.expect("it takes that"))),
        ("cuda-f16", cuda(&f16(DType::F32, plain(4096, 4096, 4096)), &UNITS, 132)),
        ("cuda-f16-copied", cuda(&f16(DType::F16, problem(100, 3300, 75, true, false, true, 1)), &UNITS, 132)),
        ("cuda-f16-widened", cuda(&f16(DType::F16, plain(300, 200, 100)), &LARGE, 132)),
        ("cublaslt-f16", cublaslt(&f16(DType::F32, plain(512, 512, 512)), &LARGE, 132).map(|plan| plan.expect("it takes that"))),
        (
            "cublaslt-ended",
            cublaslt(&Problem { bias: true, ..f16(DType::F16, problem(2000, 8000, 1009, true, true, true, 8)) }, &UNITS, 132)
                .map(|plan| plan.expect("it takes that")),
        ),
        (
            "cublaslt-scaled",
            cublaslt(&Problem { alpha: 0.5, ..batch(problem(512, 1000, 1009, false, false, true, 0), [1, 9], 0b10_000) }, &LARGE, 132)
                .map(|plan| plan.expect("it takes that")),
        ),
        (
            "cublaslt-window",
            cublaslt(
                &Problem {
                    alpha: 0.5,
                    batch: Batch { first: [64, 128, 192], ..Batch::ONE },
                    ..problem(2048, 2048, 2048, false, false, true, 0)
                },
                &LARGE,
                132,
            )
            .map(|plan| plan.expect("it takes that")),
        ),
        ("row", compute(&problem(1, 4096, 4096, false, false, false, 0), &LARGE)),
        ("column", compute(&problem(4096, 300, 1, false, false, true, 0), &LARGE)),
        ("few-rows", compute(&problem(3, 4096, 1000, true, true, false, 0), &LARGE)),
        ("few-columns", compute(&problem(1000, 1030, 8, false, false, true, 0), &LARGE)),
        ("rows-from-memory", compute(&problem(16, 4096, 4096, false, false, false, 0), &LARGE)),
        ("columns-from-memory", compute(&problem(4096, 4096, 16, false, false, false, 0), &LARGE)),
        ("few-rows-across", compute(&problem(5, 4096, 1030, false, false, false, 0), &LARGE)),
        ("few-columns-by-eights", compute(&problem(4100, 4096, 7, false, false, false, 0), &LARGE)),
        ("f16", compute(&f16(DType::F32, problem(100, 33, 75, true, true, true, 1)), &LARGE)),
        ("f16-rounded", compute(&f16(DType::F16, problem(100, 33, 75, false, true, true, 1)), &LARGE)),
        ("f16-computed", compute(&Problem { precision: Precision::F16, ..f16(DType::F32, plain(2048, 2048, 2048)) }, &HALF)),
        ("cooperative", compute(&f16(DType::F32, plain(4096, 4096, 4096)), &UNITS)),
        ("cooperative-copied", compute(&f16(DType::F16, plain(2047, 4097, 4095)), &UNITS)),
        ("cooperative-rounded", compute(&f16(DType::F16, plain(301, 5000, 99)), &UNITS)),
        ("subgroup", compute(&f16(DType::F32, plain(1000, 1000, 1000)), &BROWSER)),
        ("subgroup-copied", compute(&f16(DType::F16, plain(2049, 2047, 2047)), &BROWSER)),
        ("split", compute(&split(plain(4096, 4096, 4096)), &BROWSER)),
        ("split-odd", compute(&split(problem(1401, 777, 1399, true, true, true, 1)), &UNITS)),
        ("split-batch", compute(&split(batch(plain(640, 600, 512), [2, 3], 0b10_001)), &BROWSER)),
        ("split-small", compute(&split(plain(128, 4096, 128)), &BROWSER)),
        ("split-cuda", cuda(&split(plain(4096, 4096, 4096)), &UNITS, 132)),
        ("split-cuda-batch", cuda(&split(batch(problem(640, 1001, 512, true, false, true, 1), [2, 3], 0b10_001)), &UNITS, 132)),
        ("split-cuda-parts", cuda(&split(Problem { bias: true, ..problem(500, 9001, 520, true, true, false, 1) }), &UNITS, 132)),
        ("split-cuda-short", cuda(&split(plain(512, 500, 512)), &UNITS, 132)),
        ("kept", compute(&plain(513, 513, 513), &KEEPS)),
        ("kept-parts", compute(&problem(128, 8190, 131, false, true, true, 0), &KEEPS)),
        ("kept-split", compute(&split(plain(1401, 777, 1399)), &Caps { keeps: [false, true], ..BROWSER })),
        ("edges", compute(&plain(2049, 2049, 2049), &LARGE)),
        ("edges-many", compute(&plain(1040, 1036, 1040), &LARGE)),
        ("edges-turned", compute(&problem(1412, 400, 1409, true, true, true, 1), &LARGE)),
        ("edges-wide", compute(&problem(97, 400, 16_385, false, true, false, 0), &LARGE)),
        ("edges-parts", compute(&Problem { bias: true, ..plain(769, 1030, 899) }, &LARGE)),
        ("batch", compute(&batch(plain(256, 256, 256), [1, 64], 0), &LARGE)),
        ("batch-shared-b", compute(&batch(plain(64, 256, 256), [1, 64], 0b10_000), &LARGE)),
        ("batch-long-k", compute(&batch(plain(32, 4096, 20), [2, 3], 0b10_001), &LARGE)),
        ("batch-small", compute(&batch(problem(4, 8, 12, false, true, true, 0), [300, 900], 0), &BROWSER)),
        ("batch-small-flat", compute(&batch(plain(8, 6, 5), [1, 9000], 0), &BROWSER)),
        ("points", compute(&plain(10_000_000, 3, 3), &BROWSER)),
        ("batch-small-f16", compute(&f16(DType::F16, batch(plain(3, 5, 7), [1, 9000], 0)), &UNITS)),
        ("thin", compute(&problem(3_000_000, 4, 3, false, true, true, 0), &BROWSER)),
        ("batch-past-the-binding-limit", compute(&batch(plain(2048, 2048, 2048), [2, 5], 0), &DEFAULTS)),
        ("bias", compute(&Problem { bias: true, activation: Some(Activation::Gelu), ..plain(64, 4096, 1) }, &LARGE)),
        ("bias-cuda", cuda(&Problem { bias: true, activation: Some(Activation::Relu), ..plain(100, 33, 75) }, &LARGE, 132)),
        ("batch-cuda", cuda(&batch(plain(256, 256, 256), [1, 64], 0), &LARGE, 132)),
        ("batch-small-cuda", cuda(&batch(problem(4, 8, 12, false, true, true, 0), [300, 900], 0), &LARGE, 132)),
        ("batch-small-f16-cuda", cuda(&f16(DType::F16, batch(plain(3, 5, 7), [1, 90_000], 0)), &UNITS, 132)),
        ("batch-cuda-f16-copied", cuda(&f16(DType::F32, batch(plain(25, 33, 50), [2, 3], 0b10_001)), &UNITS, 132)),
        ("batch-fragment", fragment(&batch(plain(6, 9, 5), [2, 3], 0b10_001), &DEFAULTS, &FRAGMENT)),
        ("fragment", fragment(&problem(100, 33, 75, false, true, true, 1), &DEFAULTS, &FRAGMENT)),
        ("fragment-few-targets", fragment(&plain(512, 512, 512), &DEFAULTS, &FragmentCaps { targets: 4, ..FRAGMENT })),
        ("fragment-no-blocks", fragment(&plain(512, 512, 512), &DEFAULTS, &FragmentCaps { block_bytes: 0, ..FRAGMENT })),
        ("fragment-strips", fragment(&problem(100, 3000, 131, true, false, true, 1), &DEFAULTS, &FRAGMENT)),
    ];
    for (name, plan) in cases {
        written_down(name, &plan.expect("within limits"));
    }
}

#[test]
fn what_is_added_to_or_rounded_later_ends_in_no_kernel() {
    let plain = |m, k, n| problem(m, k, n, false, false, false, 0);
    let ends = |problem, caps| plan::fused::compute(&ended(problem), caps).is_ok();
    assert!(ends(plain(512, 512, 512), &LARGE) && ends(plain(1, 64, 7), &LARGE) && ends(plain(4096, 4096, 4096), &DEFAULTS));
    assert!(!ends(plain(7000, 7000, 7000), &DEFAULTS), "terms past a binding are added to the result");
    assert!(!ends(Problem { result: DType::F16, ..plain(100, 33, 75) }, &LARGE), "rows that share words are rounded when they are whole");
    assert!(!ends(Problem { dtype: DType::F16, ..plain(4096, 4096, 4096) }, &UNITS), "matrix units store what they sum up");
    assert!(plan::fused::cuda(&ended(plain(64, 64, 64)), &LARGE, 132).is_ok());
    assert!(plan::fused::cuda(&ended(plain(4, 4096, 1000)), &LARGE, 132).is_ok(), "it is slower with a few rows");
    for problem in [plain(64, 4096, 64), plain(4096, 64, 4096)] {
        assert!(plan::fused::cuda(&ended(problem), &LARGE, 132).is_err(), "a library is faster");
    }
}

/// Of 2³² elements and more there is no copy: what reads operands where they lie takes them, and the library rows of any length.
#[test]
fn a_product_is_not_refused_for_a_copy_that_it_can_do_without() {
    let caps = Caps { max_buffer_bytes: 1 << 40, ..UNITS };
    let large = problem(65_537, 65_535, 1024, false, false, false, 0);
    let plan = cuda(&integers(large, [0, 0]), &caps, 132).expect("within limits");
    assert!(
        plan.dispatches.iter().all(|dispatch| dispatch.kernel.id.name().contains("int8") && !dispatch.kernel.variant.contains("copy")),
        "{plan}"
    );
    let large = Problem { dtype: DType::F16, ..large };
    assert!(cuda(&large, &caps, 132).is_err());
    assert!(cublaslt(&large, &caps, 132).expect("within limits").is_some());
    let smaller = Problem { dtype: DType::F16, ..problem(6553, 65_535, 1024, false, false, false, 0) };
    assert!(cublaslt(&smaller, &caps, 132).expect("within limits").is_none());
}

#[test]
fn what_is_long_or_in_parts_has_no_stand_in() {
    let has = |problem: &Problem, caps: &Caps| stand_in(&compute(problem, caps).expect("within limits"), caps).is_some();
    let plain = |m, k, n| problem(m, k, n, false, false, false, 0);
    assert!(has(&plain(512, 512, 512), &LARGE) && has(&plain(5, 6, 7), &LARGE));
    assert!(!has(&plain(4096, 4096, 4096), &LARGE), "it would take long");
    assert!(!has(&plain(128, 8192, 130), &LARGE), "parts are added in another order");
    assert!(!has(&plain(1, 4096, 4096), &LARGE), "another kernel");
    assert!(!has(&plain(512, 512, 512), &Caps { max_workgroups_per_dimension: 15, ..LARGE }), "more workgroups than there may be");
}

/// Workgroups with nothing to do take as long as others: one more than there may be along a dimension does not make them twice as many.
#[test]
fn hardly_more_workgroups_than_there_is_work_for() {
    const MOST: u32 = 1000;
    let [few, any] = [MOST, u32::MAX].map(|most| Caps { max_workgroups_per_dimension: most, ..LARGE });
    for size in [1000, 4096, 4100, 5000, 8191] {
        let grids = |caps: &Caps| {
            let square = || values(&[size, 4096], &[4096, 1]);
            let turned = values(&[4096, size], &[1, 4096]);
            let odd = normalize::Problem { values: values(&[size, 999], &[999, 1]), ..rows(Form::Softmax, 999) };
            [
                plan::map::compute(&square(), caps),
                plan::map::compute(&turned, caps),
                plan::reduce::compute(&reduce(Fold::Sum, 1, square()), caps),
                plan::normalize::compute(&odd, caps),
                plan::fft::compute(&transform(size, 64, 1), caps),
            ]
            .map(|plan| plan.expect("within limits").dispatches[0].grid)
        };
        for ([x, y, z], all) in grids(&few).into_iter().zip(grids(&any)) {
            assert!(x <= MOST && y <= MOST, "{size}: {x} x {y}");
            assert!(x * y * z - all.iter().product::<u32>() < y * z, "{size}: {x} x {y} x {z} for {all:?}");
        }
    }
}

/// Four at once are read only where they lie in the input's memory, which is given out in fours.
#[test]
fn nothing_is_read_behind_an_input() {
    for (count, offset, is_quad) in [(1023, 0, true), (1023, 4, true), (1023, 1, false), (1021, 3, false), (1020, 1, true)] {
        let mut problem = values(&[count], &[1]);
        problem.inputs[0].offset = offset;
        for plan in [plan::map::compute(&problem, &LARGE), plan::map::cuda(&problem, &LARGE)] {
            let plan = plan.unwrap();
            assert_eq!(plan.dispatches[0].kernel.constant("QUAD"), u32::from(is_quad), "{count} from {offset} on: {plan}");
        }
    }
}

#[test]
fn plans_of_operations_are_as_written_down() {
    let all = || values(&[1 << 26], &[1]);
    let conv_cuda = |sizes, window, dtype| plan::conv::cuda(&convolution(sizes, window, dtype), &LARGE, 132, |_| Ok(None));
    let plain = |m, k, n| problem(m, k, n, false, false, false, 0);
    let drawn = |problem| plan::fused::fragment(&ended(problem), fragment(&problem, &DEFAULTS, &FRAGMENT).expect("within limits"));
    let cases = [
        ("ended-edges", plan::fused::compute(&ended(plain(2049, 2048, 2052)), &LARGE)),
        ("ended-long-k", plan::fused::compute(&ended(plain(128, 8192, 130)), &LARGE)),
        ("ended-row", plan::fused::compute(&ended(plain(1, 300, 4096)), &LARGE)),
        ("ended-cuda", plan::fused::cuda(&ended(plain(1024, 64, 1024)), &LARGE, 132)),
        ("ended-cuda-few-rows", plan::fused::cuda(&ended(plain(4, 4096, 1000)), &LARGE, 132)),
        ("ended-cuda-parts", plan::fused::cuda(&ended(plain(100, 256, 75)), &LARGE, 132)),
        ("ended-drawn", drawn(plain(100, 33, 75))),
        ("ended-drawn-strips", drawn(plain(512, 512, 512))),
        ("int8", compute(&integers(problem(500, 300, 200, false, false, false, 0), [0, 0]), &LARGE)),
        ("int8-cuda", cuda(&integers(problem(500, 300, 200, false, false, false, 0), [0, 0]), &UNITS, 132)),
        ("int8-cuda-row", cuda(&integers(problem(1, 4096, 4096, false, true, false, 0), [3, 0]), &UNITS, 132)),
        ("int8-cuda-packed", cuda(&integers(problem(50, 301, 21, true, true, false, 3), [7, -3]), &LARGE, 132)),
        ("int8-fragment", fragment(&integers(problem(500, 300, 200, false, false, false, 0), [0, 0]), &DEFAULTS, &FRAGMENT)),
        ("int8-fragment-column", fragment(&integers(problem(50, 301, 1, true, true, false, 3), [7, -3]), &DEFAULTS, &FRAGMENT)),
        ("int8-row", compute(&integers(problem(1, 4096, 4096, false, false, false, 0), [3, 0]), &LARGE)),
        ("int8-few-columns", compute(&integers(problem(5000, 1001, 5, false, false, false, 0), [7, -3]), &LARGE)),
        ("int8-odd", compute(&integers(problem(50, 301, 21, true, true, false, 3), [7, -3]), &DEFAULTS)),
        ("reduce-cuda-rounded", plan::fused::cuda(&rounded(reduce(Fold::Sum, 1, values(&[4096, 1000], &[1000, 1]))), &LARGE, 132)),
        ("reduce-cuda-short-rows", plan::reduce::cuda(&reduce(Fold::Var, 1, values(&[1 << 20, 31], &[31, 1])), &LARGE)),
        ("reduce-cuda-plain", plan::reduce::plain(&reduce(Fold::Var, 0, all()), &LARGE)),
        ("reduce-cuda-plain-columns", plan::reduce::plain(&reduce(Fold::Mean, 1, values(&[300, 70_000], &[1, 300])), &LARGE)),
        ("softmax-cuda-clusters", plan::normalize::cuda(&rows(Form::Softmax, 100_002), &Caps { max_cluster_workgroups: 8, ..LARGE })),
        ("softmax-cuda-plain", plan::normalize::plain(&rows(Form::Softmax, 4096), &LARGE)),
        ("layer-norm-drawn", plan::normalize::fragment(&rows(Form::LayerNorm, 1001), &DEFAULTS)),
        ("reduce-drawn", plan::reduce::fragment(&reduce(Fold::Sum, 0, all()), &DEFAULTS)),
        ("conv-cuda", conv_cuda([8, 1, 64, 64], window(56, 3, 1, 1), DType::F32)),
        ("conv-cuda-depthwise-f16", conv_cuda([8, 96, 1, 1], window(56, 3, 2, 1), DType::F16)),
        ("conv-cuda-parts", conv_cuda([1, 1, 512, 512], window(7, 3, 1, 1), DType::F32)),
        ("pool-cuda", plan::pool::cuda(&pooling(), &LARGE)),
        ("pool-cuda-plain", plan::pool::plain(&pooling(), &LARGE)),
        ("fft-cuda", plan::fft::cuda(&transform(1, 1 << 20, 1), &LARGE)),
        ("fft-cuda-plain-prime", plan::fft::plain(&transform(2, 101, 1), &LARGE)),
        ("fft-drawn", plan::fft::fragment(&transform(4, 60, 32), &DEFAULTS)),
        ("fft-prime-drawn", plan::fft::fragment(&transform(2, 101, 1), &DEFAULTS)),
    ];
    for (name, plan) in problems::plans().into_iter().chain(cases) {
        written_down(name, &plan.expect("within limits"));
    }
}
