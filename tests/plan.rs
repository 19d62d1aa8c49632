//! Plans, on a machine without a GPU: golden text for typical ones, and properties of all.
#![cfg(not(target_arch = "wasm32"))]

use std::fmt::Write;
use std::path::Path;

use lapidary::kernels::KernelId;
use lapidary::ops::Op;
use lapidary::ops::elementwise::{Function, Kind, Program, Step};
use lapidary::ops::fused::Fused;
use lapidary::ops::map::{self, View};
use lapidary::ops::matmul::{Activation, Batch, Integers, Level, Precision, Problem, Stored};
use lapidary::ops::normalize::Form;
use lapidary::ops::reduce::Fold;
use lapidary::plan::matmul::{FragmentCaps, Params, compute, cublaslt, cuda, fragment, stand_in};
use lapidary::plan::{Dispatch, Plan, Slot};
use lapidary::{Caps, DType, Dialect, MatrixUnit, plan};
use problems::{DEFAULTS, LARGE, convolution, pooling, reduce, rows, transform, values, window};
use proptest::prelude::*;

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
        ("cuda-long-k", cuda(&problem(128, 8192, 130, false, true, true, 0), &LARGE, 132)),
        ("cublaslt", cublaslt(&problem(100, 33, 75, false, true, true, 1), &LARGE).map(|plan| plan.expect("it takes that"))),
        ("cuda-f16", cuda(&f16(DType::F32, plain(4096, 4096, 4096)), &UNITS, 132)),
        ("cuda-f16-copied", cuda(&f16(DType::F16, problem(100, 3300, 75, true, false, true, 1)), &UNITS, 132)),
        ("cuda-f16-widened", cuda(&f16(DType::F16, plain(300, 200, 100)), &LARGE, 132)),
        ("cublaslt-f16", cublaslt(&f16(DType::F32, plain(512, 512, 512)), &LARGE).map(|plan| plan.expect("it takes that"))),
        ("row", compute(&problem(1, 4096, 4096, false, false, false, 0), &LARGE)),
        ("column", compute(&problem(4096, 300, 1, false, false, true, 0), &LARGE)),
        ("f16", compute(&f16(DType::F32, problem(100, 33, 75, true, true, true, 1)), &LARGE)),
        ("f16-rounded", compute(&f16(DType::F16, problem(100, 33, 75, false, true, true, 1)), &LARGE)),
        ("f16-computed", compute(&Problem { precision: Precision::F16, ..f16(DType::F32, plain(2048, 2048, 2048)) }, &HALF)),
        ("cooperative", compute(&f16(DType::F32, plain(4096, 4096, 4096)), &UNITS)),
        ("cooperative-copied", compute(&f16(DType::F16, plain(2047, 4097, 4095)), &UNITS)),
        ("cooperative-rounded", compute(&f16(DType::F16, plain(301, 5000, 99)), &UNITS)),
        ("subgroup", compute(&f16(DType::F32, plain(1000, 1000, 1000)), &BROWSER)),
        ("subgroup-copied", compute(&f16(DType::F16, plain(2049, 2047, 2047)), &BROWSER)),
        ("split", compute(&split(plain(4096, 4096, 4096)), &BROWSER)),
        ("split-odd", compute(&split(problem(1001, 777, 999, true, true, true, 1)), &UNITS)),
        ("split-batch", compute(&split(batch(plain(256, 300, 256), [2, 3], 0b10_001)), &BROWSER)),
        ("split-small", compute(&split(plain(128, 4096, 128)), &BROWSER)),
        ("kept", compute(&plain(513, 513, 513), &KEEPS)),
        ("kept-parts", compute(&problem(128, 8190, 131, false, true, true, 0), &KEEPS)),
        ("kept-split", compute(&split(plain(1001, 777, 999)), &Caps { keeps: [false, true], ..BROWSER })),
        ("edges", compute(&plain(2049, 2049, 2049), &LARGE)),
        ("edges-turned", compute(&problem(1412, 400, 1409, true, true, true, 1), &LARGE)),
        ("edges-wide", compute(&problem(97, 400, 16_385, false, true, false, 0), &LARGE)),
        ("edges-parts", compute(&Problem { bias: true, ..plain(769, 1030, 899) }, &LARGE)),
        ("batch", compute(&batch(plain(256, 256, 256), [1, 64], 0), &LARGE)),
        ("batch-shared-b", compute(&batch(plain(64, 256, 256), [1, 64], 0b10_000), &LARGE)),
        ("batch-long-k", compute(&batch(plain(32, 4096, 20), [2, 3], 0b10_001), &LARGE)),
        ("batch-past-the-binding-limit", compute(&batch(plain(2048, 2048, 2048), [2, 5], 0), &DEFAULTS)),
        ("bias", compute(&Problem { bias: true, activation: Some(Activation::Gelu), ..plain(64, 4096, 1) }, &LARGE)),
        ("bias-cuda", cuda(&Problem { bias: true, activation: Some(Activation::Relu), ..plain(100, 33, 75) }, &LARGE, 132)),
        ("batch-cuda", cuda(&batch(plain(256, 256, 256), [1, 64], 0), &LARGE, 132)),
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
    for problem in [plain(64, 4096, 64), plain(4096, 64, 4096)] {
        assert!(plan::fused::cuda(&ended(problem), &LARGE, 132).is_err(), "a library is faster");
    }
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
        ("ended-cuda-parts", plan::fused::cuda(&ended(plain(100, 256, 75)), &LARGE, 132)),
        ("ended-drawn", drawn(plain(100, 33, 75))),
        ("ended-drawn-strips", drawn(plain(512, 512, 512))),
        ("int8", compute(&integers(problem(500, 300, 200, false, false, false, 0), [0, 0]), &LARGE)),
        ("int8-fragment", fragment(&integers(problem(500, 300, 200, false, false, false, 0), [0, 0]), &DEFAULTS, &FRAGMENT)),
        ("int8-fragment-column", fragment(&integers(problem(50, 301, 1, true, true, false, 3), [7, -3]), &DEFAULTS, &FRAGMENT)),
        ("int8-odd", compute(&integers(problem(50, 301, 21, true, true, false, 3), [7, -3]), &DEFAULTS)),
        ("reduce-cuda-plain", plan::reduce::plain(&reduce(Fold::Var, 0, all()), &LARGE)),
        ("reduce-cuda-plain-columns", plan::reduce::plain(&reduce(Fold::Mean, 1, values(&[300, 70_000], &[1, 300])), &LARGE)),
        ("softmax-cuda-plain", plan::normalize::plain(&rows(Form::Softmax, 4096), &LARGE)),
        ("layer-norm-drawn", plan::normalize::fragment(&rows(Form::LayerNorm, 1001), &DEFAULTS)),
        ("reduce-drawn", plan::reduce::fragment(&reduce(Fold::Sum, 0, all()), &DEFAULTS)),
        ("conv-cuda", conv_cuda([8, 1, 64, 64], window(56, 3, 1, 1), DType::F32)),
        ("conv-cuda-depthwise-f16", conv_cuda([8, 96, 1, 1], window(56, 3, 2, 1), DType::F16)),
        ("conv-cuda-parts", conv_cuda([1, 1, 512, 512], window(7, 3, 1, 1), DType::F32)),
        ("pool-cuda", plan::pool::cuda(&pooling(), &LARGE)),
        ("fft-cuda", plan::fft::cuda(&transform(1, 1 << 20, 1), &LARGE)),
        ("fft-cuda-plain-prime", plan::fft::plain(&transform(2, 101, 1), &LARGE)),
        ("fft-drawn", plan::fft::fragment(&transform(4, 60, 32), &DEFAULTS)),
        ("fft-prime-drawn", plan::fft::fragment(&transform(2, 101, 1), &DEFAULTS)),
    ];
    for (name, plan) in problems::plans().into_iter().chain(cases) {
        written_down(name, &plan.expect("within limits"));
    }
}

/// Which elements of the result a dispatch writes, and which terms it adds there, must tile the product exactly once.
fn covers(problem: &Problem, plan: &Plan) -> Result<(), String> {
    let mut work = 0u64;
    let mut written = Vec::new();
    for dispatch in plan.dispatches.iter().filter(|dispatch| dispatch.kernel.id != KernelId::MatmulCopy) {
        let p = params(dispatch);
        if dispatch.kernel.id == KernelId::MatmulSum {
            // All terms of k are in its parts, which the launch before it wrote.
            let start = first_element(dispatch, Slot::Out, p.out_start);
            written.push((
                start / u64::from(problem.n),
                start % u64::from(problem.n),
                p.batch * p.m,
                p.n,
                dispatch.kernel.constant("ACCUMULATES"),
            ));
            continue;
        }
        work += u64::from(p.batch) * u64::from(p.m) * u64::from(p.k.max(1)) * u64::from(p.n);
        if dispatch.kernel.constant("PARTS") == 1 {
            let parts = u64::from(dispatch.grid[2] / p.batch);
            if !(parts >= 2 && (parts - 1) * u64::from(p.k_part) < p.k.into() && parts * u64::from(p.k_part) >= p.k.into()) {
                return Err(format!("{parts} parts of {} are not {}", p.k_part, p.k));
            }
            continue;
        }
        let start = first_element(dispatch, Slot::Out, p.out_start);
        written.push((
            start / u64::from(problem.n),
            start % u64::from(problem.n),
            p.batch * p.m,
            p.n,
            dispatch.kernel.constant("ACCUMULATES"),
        ));
    }
    let mut reason = String::new();
    if work != problem.batch.count() * u64::from(problem.m) * u64::from(problem.k.max(1)) * u64::from(problem.n) {
        let _ = write!(reason, "work {work}");
    }
    for &(row, column, m, n, accumulates) in &written {
        let same = written.iter().filter(|other| (other.0, other.1) == (row, column)).collect::<Vec<_>>();
        if same.iter().filter(|other| other.4 == 0).count() != 1 || same.iter().any(|other| (other.2, other.3) != (m, n)) {
            let _ = write!(reason, "part at {row},{column} accumulates {accumulates}");
        }
    }
    let first: Vec<_> = written.iter().filter(|part| part.4 == 0).collect();
    for (i, &&(row, column, m, n, _)) in first.iter().enumerate() {
        let meets = |&&(other_row, other_column, other_m, other_n, _): &&(u64, u64, u32, u32, u32)| {
            let along = |x: u64, length: u32, y: u64, other: u32| x < y + u64::from(other) && y < x + u64::from(length);
            along(row, m, other_row, other_m) && along(column, n, other_column, other_n)
        };
        if first[..i].iter().any(meets) {
            let _ = write!(reason, "part at {row},{column} covers another");
        }
    }
    let elements: u64 = first.iter().map(|part| u64::from(part.2) * u64::from(part.3)).sum();
    if elements != problem.batch.count() * u64::from(problem.m) * u64::from(problem.n) {
        let _ = write!(reason, "{elements} elements");
    }
    if reason.is_empty() { Ok(()) } else { Err(reason) }
}

fn params(dispatch: &Dispatch) -> Params {
    *dispatch.params.matmul().expect("a product's")
}

fn first_element(dispatch: &Dispatch, slot: Slot, start: u32) -> u64 {
    let binding = dispatch.bindings.iter().find(|binding| binding.slot == slot).expect("bound");
    binding.offset_bytes / 4 + u64::from(start)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    /// Whatever the shape and the limits: bindings are aligned, within the limit and within their matrix; grids are within the limit and
    /// cover their part; the parts make up the product.
    #[test]
    fn every_plan_keeps_the_limits(
        (m, k, n) in prop_oneof![
            (1u32..700, 0u32..700, 1u32..700),
            (1u32..70, 700u32..20_000, 1u32..70),
            (Just(1), 0u32..20_000, 1u32..900),
            (1u32..900, 0u32..20_000, Just(1)),
            (700u32..4200, 500u32..4200, 700u32..4200),
            (1u32..40, 60u32..66, 60u32..66).prop_map(|(more, x, y)| (x * 32 + more, y * 32, y * 32 + more % 3)),
        ],
        transpose_a: bool, transpose_b: bool, reads_c: bool, padding in 0u64..9,
        max_binding_bytes in 1u64 << 16..1 << 22, max_workgroups_per_dimension in 8u32..200,
        loops in prop_oneof![Just([1, 1]), [1u32..4, 1u32..9], [1u32..2, 1u32..40]], shared: u8,
    ) {
        // Those that are cut for the sake of tiles are large.
        let caps = if m.min(n) < 700 { Caps { max_binding_bytes, max_workgroups_per_dimension, ..LARGE } } else { LARGE };
        let problem = batch(problem(m, k, n, transpose_a, transpose_b, reads_c, padding), loops, shared);
        let plan = compute(&problem, &caps).unwrap();
        for dispatch in &plan.dispatches {
            for binding in &dispatch.bindings {
                prop_assert_eq!(binding.offset_bytes % caps.binding_alignment_bytes, 0);
                prop_assert!(binding.size_bytes > 0 && binding.size_bytes <= caps.max_binding_bytes, "{binding:?}");
                prop_assert_eq!(binding.size_bytes % 16, 0);
                if binding.slot == Slot::Scratch {
                    prop_assert!(binding.offset_bytes + binding.size_bytes <= plan.scratch_bytes);
                    continue;
                }
                let span = match binding.slot {
                    Slot::A => problem.a_span(),
                    Slot::B => problem.b_span(),
                    Slot::C => problem.c_span(),
                    _ => problem.elements(),
                };
                if k > 0 || matches!(binding.slot, Slot::C | Slot::Out) {
                    prop_assert!(binding.offset_bytes + binding.size_bytes <= (span * 4).next_multiple_of(16), "{binding:?} of {span}");
                }
            }
            let [x, y, z] = dispatch.grid;
            let p = params(dispatch);
            prop_assert!(x.max(y).max(z) <= caps.max_workgroups_per_dimension);
            if dispatch.kernel.id == KernelId::MatmulCopy {
                let [rows, columns] = if dispatch.kernel.constant("TURNED") == 1 { [p.n, p.m] } else { [p.m, p.n] };
                let of_all = u64::from(p.batch) * u64::from(rows) * u64::from(p.ldo);
                prop_assert!(p.ldo.is_multiple_of(8) && p.ldo >= columns && dispatch.bindings[1].size_bytes >= of_all * 4, "{}", plan);
                continue;
            }
            if dispatch.kernel.id == KernelId::MatmulSum {
                prop_assert!(x * dispatch.kernel.constant("THREADS") * 4 >= p.batch * p.m * p.lda);
                continue;
            }
            prop_assert!(z == p.batch || dispatch.kernel.constant("PARTS") == 1 && z % p.batch == 0);
            prop_assert_eq!(dispatch.kernel.constant("BATCHED"), u32::from(p.batch > 1));
            if dispatch.kernel.id == KernelId::MatmulVector {
                prop_assert!(p.m == 1 && x * dispatch.kernel.constant("GROUPS") * 4 >= p.n);
                continue;
            }
            let [tile_m, tile_n, edges, edge_m, edge_n] =
                ["TILE_M", "TILE_N", "EDGES", "EDGE_M", "EDGE_N"].map(|name| dispatch.kernel.constant(name));
            // What whole tiles leave is of blocks.
            let (rows, columns) = (edge_m * (p.m % tile_m), edge_n * (p.n % tile_n));
            let blocks = (p.m - rows).div_ceil(4) * columns.div_ceil(4) + rows.div_ceil(4) * p.n.div_ceil(4);
            prop_assert!(x * tile_n + columns >= p.n && edges == u32::from(rows + columns > 0));
            let below = y.checked_sub((p.m - rows).div_ceil(tile_m));
            prop_assert!(below.is_some_and(|below| edges == 0 && below == 0 || below * x * dispatch.kernel.constant("EDGE_BLOCKS") >= blocks));
            // Loads of four need starts and strides that are multiples of four.
            let of_a = [p.a_start, p.lda, p.a_outer, p.a_inner];
            for (vec4, numbers) in [("A_VEC4", of_a), ("B_VEC4", [p.b_start, p.ldb, p.b_outer, p.b_inner])] {
                prop_assert!(dispatch.kernel.constant(vec4) == 0 || numbers.iter().all(|number| number % 4 == 0));
            }
        }
        prop_assert_eq!(covers(&problem, &plan), Ok(()));
    }
}

/// What a device's first product compiles serves the next ones, whichever tiles those have.
#[test]
fn stand_ins_are_one_kernel() {
    let kernel = |sides: [u32; 3]| {
        let [m, k, n] = sides;
        stand_in(&compute(&problem(m, k, n, false, false, false, 0), &LARGE).unwrap(), &LARGE).unwrap().dispatches.remove(0).kernel
    };
    let first = kernel([36, 20, 44]);
    for sides in [[64; 3], [256; 3], [512; 3], [1024; 3], [100, 300, 500], [1000; 3]] {
        assert_eq!(kernel(sides), first, "{sides:?}");
    }
}

/// A large image has more positions than tiles can be counted along a grid.
#[test]
fn convolutions_of_large_images_keep_the_limits() {
    for (filters, window) in
        [(16, window(2048, 3, 1, 1)), (16, window(2900, 1, 1, 0)), (32, window(3000, 3, 1, 1)), (3, window(4096, 3, 1, 1))]
    {
        let problem = convolution([1, 1, 3, filters], window, DType::F32);
        let plan = plan::conv::compute(&problem, &LARGE).unwrap();
        for dispatch in &plan.dispatches {
            assert!(dispatch.grid.iter().all(|&groups| groups <= LARGE.max_workgroups_per_dimension), "{plan}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    /// Whatever is padded, how it is cut, and whatever is made of it: launches see of each input what there is of it, and no more than they may.
    #[test]
    fn padded_inputs_are_bound_where_they_are(
        (height, width) in (1u32..600, 1u32..90), pads in [[0u32..900, 0u32..900], [0u32..40, 0u32..40]], is_f16: bool, steps in 1u32..4,
        max_binding_bytes in 1u64 << 13..1 << 18, max_workgroups_per_dimension in 2u32..200, folds in proptest::option::of(0usize..2),
    ) {
        let caps = Caps { max_binding_bytes, max_workgroups_per_dimension, ..LARGE };
        let [[top, below], [left, right]] = pads;
        // Every so many columns of a matrix that is wider.
        let row = i64::from(width * steps);
        let view = View {
            dtype: if is_f16 { DType::F16 } else { DType::F32 },
            offset: -(i64::from(top) * row + i64::from(left * steps)),
            strides: vec![row, steps.into()],
            bounds: vec![[top, top + height], [left, left + width]],
        };
        let bytes = height as u64 * row as u64 * view.dtype.bytes();
        let shape = vec![top + height + below, left + width + right];
        let values = map::Problem { shape, inputs: vec![view], ..values(&[1, 1], &[1, 1]) };
        let plan = match folds {
            Some(kept) => plan::reduce::compute(&reduce(Fold::Sum, kept, values), &caps),
            None => plan::map::compute(&values, &caps),
        };
        let plan = match plan {
            Err(error) => {
                prop_assert_eq!(error.code(), "limit_exceeded");
                return Ok(());
            }
            Ok(plan) => plan,
        };
        for binding in plan.dispatches.iter().flat_map(|dispatch| &dispatch.bindings).filter(|binding| binding.slot == Slot::Input(0)) {
            prop_assert_eq!(binding.offset_bytes % caps.binding_alignment_bytes, 0);
            prop_assert!(binding.size_bytes <= caps.max_binding_bytes, "{binding:?}");
            prop_assert!(binding.offset_bytes + binding.size_bytes <= bytes.next_multiple_of(16), "{binding:?} of {bytes} bytes");
        }
    }

    /// Whatever the shape and the type: no launch in a browser reads from a buffer that it writes to, which WebGPU refuses.
    #[test]
    fn no_launch_in_a_browser_reads_where_it_writes(
        (m, k, n) in prop_oneof![(1u32..3000, 1u32..3000, 1u32..3000), (1u32..200, 100u32..20_000, 1u32..200)],
        transpose_a: bool, transpose_b: bool, is_f16: bool, rounds: bool, loops in prop_oneof![Just([1, 1]), [1u32..3, 1u32..4]], shared: u8, keeps: [bool; 2],
    ) {
        let problem = batch(problem(m, k, n, transpose_a, transpose_b, false, 0), loops, shared);
        let (dtype, precision) = if is_f16 { (DType::F16, Precision::F32) } else { (DType::F32, Precision::F16x3) };
        let result = if rounds { DType::F16 } else { DType::F32 };
        let plan = compute(&Problem { dtype, precision, result, ..problem }, &Caps { keeps, ..BROWSER }).unwrap();
        for dispatch in &plan.dispatches {
            let written = dispatch.bindings.iter().filter(|binding| binding.index == 2).map(|binding| binding.slot).next();
            prop_assert!(dispatch.bindings.iter().all(|binding| binding.index == 2 || Some(binding.slot) != written), "{}", plan);
        }
    }

    /// Whatever the shape and the type: a form that is kept is made by one launch, of its operand alone, before others read it, and what reads it
    /// takes the same sums in the same order as without it.
    #[test]
    fn what_is_kept_of_operands_is_made_once(
        (m, k, n) in prop_oneof![(1u32..3000, 1u32..3000, 1u32..3000), (1u32..200, 100u32..20_000, 1u32..200)],
        transpose_a: bool, transpose_b: bool, (dtype, precision) in prop_oneof![
            Just((DType::F32, Precision::F32)), Just((DType::F32, Precision::F16x3)), Just((DType::F16, Precision::F32)), Just((DType::F16, Precision::F16)),
        ],
        reads_c: bool, keeps: [bool; 2], loops in prop_oneof![Just([1, 1]), [1u32..3, 1u32..4]], shared: u8, small: bool,
    ) {
        let problem = batch(problem(m, k, n, transpose_a, transpose_b, reads_c, 0), loops, shared);
        let problem = Problem { dtype, precision, ..problem };
        let max_binding_bytes = if small { 1 << 22 } else { LARGE.max_binding_bytes };
        let caps = Caps { max_binding_bytes, f16: true, ..BROWSER };
        let (plan, without) = (compute(&problem, &Caps { keeps, ..caps.clone() }).unwrap(), compute(&problem, &caps).unwrap());
        prop_assert_eq!(plan.kernel(), without.kernel(), "{}", plan);
        if plan.dispatches.iter().any(|dispatch| dispatch.kernel.id == KernelId::MatmulSplit) {
            // What f32 is split into is the same wherever it is.
            let but_places = |plan: &Plan| -> Vec<_> {
                let sizes = |dispatch: &Dispatch| dispatch.bindings.iter().map(|binding| (binding.index, binding.size_bytes)).collect::<Vec<_>>();
                plan.dispatches.iter().map(|dispatch| (dispatch.kernel.clone(), dispatch.params, dispatch.grid, sizes(dispatch))).collect()
            };
            prop_assert_eq!(but_places(&plan), but_places(&without));
        }
        for (at, slot) in [Slot::Kept(0), Slot::Kept(1)].into_iter().enumerate() {
            let places: Vec<_> = plan
                .dispatches
                .iter()
                .enumerate()
                .flat_map(|(place, dispatch)| dispatch.bindings.iter().filter(|binding| binding.slot == slot).map(move |binding| (place, binding)))
                .collect();
            prop_assert!(keeps[at] || places.is_empty(), "{}", plan);
            let Some((first, made)) = places.first() else { continue };
            let maker = &plan.dispatches[*first];
            prop_assert_eq!((made.index, maker.bindings.len(), maker.bindings[0].slot), (2, 2, Slot::Input(at as u8)), "{}", plan);
            for (place, read) in &places[1..] {
                prop_assert!(place > first && read.index != 2 && read.offset_bytes + read.size_bytes <= made.size_bytes, "{}", plan);
            }
        }
    }

    /// Whatever the shape: the blocks cover the result, the parts of k make it up exactly, and modules of those variants are there, of as
    /// many threads as the plan launches.
    #[cfg(feature = "cuda")]
    #[test]
    fn every_plan_for_cuda_has_its_kernel(
        (m, k, n) in prop_oneof![(1u32..5000, 0u32..100, 1u32..5000), (1u32..200, 100u32..200_000, 1u32..200)],
        transpose_a: bool, transpose_b: bool, reads_c: bool, multiprocessors in 1u32..200, is_f16: bool, has_units: bool,
    ) {
        let problem = Problem { dtype: if is_f16 { DType::F16 } else { DType::F32 }, ..problem(m, k, n, transpose_a, transpose_b, reads_c, 0) };
        let plan = cuda(&problem, if has_units { &UNITS } else { &LARGE }, multiprocessors).unwrap();
        // Operands that the kernel cannot read are copied first, one after the other.
        let copied = plan.dispatches.iter().take_while(|dispatch| dispatch.kernel.id == KernelId::MatmulCopy).count();
        let (copies, launches) = plan.dispatches.split_at(copied);
        let by_units = is_f16 && has_units;
        let must_copy = |stored: Stored| k > 0 && if by_units { !stored.stride.is_multiple_of(8) } else { is_f16 };
        let must_copy = [must_copy(problem.a), must_copy(problem.b)];
        prop_assert_eq!(copied, must_copy.iter().filter(|&&must| must).count());
        let mut end_bytes = 0;
        for copy in copies {
            let (p, to) = (params(copy), copy.bindings[1]);
            prop_assert!(to.offset_bytes == end_bytes && p.ldo.is_multiple_of(8) && p.ldo >= p.n && u32::from(by_units) == p.result);
            let element_bytes = if by_units { 2 } else { 4 };
            prop_assert!(to.size_bytes >= u64::from(p.m) * u64::from(p.ldo) * element_bytes);
            end_bytes += to.size_bytes;
        }
        let product = &launches[0];
        prop_assert_eq!(product.kernel.id, if by_units { KernelId::MatmulCooperative } else { KernelId::MatmulTiled });
        let (tile_m, tile_n) = (product.kernel.constant("TILE_M"), product.kernel.constant("TILE_N"));
        prop_assert_eq!(&product.grid[..2], [m.div_ceil(tile_m) * n.div_ceil(tile_n), 1]);
        let slots = |dispatch: &Dispatch| dispatch.bindings.iter().map(|binding| (binding.index, binding.slot)).collect::<Vec<_>>();
        let slot = |must: bool, slot| if must { Slot::Scratch } else { slot };
        let operands = if k > 0 { vec![(0, slot(must_copy[0], Slot::A)), (1, slot(must_copy[1], Slot::B))] } else { Vec::new() };
        let c = |index: u32| reads_c.then_some((index, Slot::C));
        match launches {
            [_] => {
                prop_assert_eq!((product.grid[2], params(product).k_part, plan.scratch_bytes), (1, 0, end_bytes));
                prop_assert_eq!(slots(product), operands.into_iter().chain(c(2)).chain([(4, Slot::Out)]).collect::<Vec<_>>());
            }
            [_, sum] => {
                let (parts, p, s) = (product.grid[2], params(product), params(sum));
                // Whole steps but for the last one, and none of them empty.
                prop_assert!(parts >= 2 && p.k_part % product.kernel.constant("TILE_K") == 0, "{}", plan);
                prop_assert!((parts - 1) * p.k_part < k && parts * p.k_part >= k && p.k == k, "{}", plan);
                prop_assert_eq!(slots(product), operands.into_iter().chain([(4, Slot::Scratch)]).collect::<Vec<_>>());
                prop_assert_eq!(slots(sum), [(0, Slot::Scratch)].into_iter().chain(c(2)).chain([(4, Slot::Out)]).collect::<Vec<_>>());
                prop_assert_eq!((s.m, s.k, s.n, s.lda, s.ldo), (m, parts, n, p.ldo, n));
                prop_assert!(p.ldo % 4 == 0 && p.ldo >= n && plan.scratch_bytes >= end_bytes + u64::from(parts * m * p.ldo) * 4);
                prop_assert_eq!((p.alpha, p.beta, s.alpha, s.beta), (problem.alpha, problem.beta, 1.0, problem.beta));
                prop_assert!(sum.grid[0] * sum.kernel.constant("THREADS") * 4 >= m * p.ldo);
            }
            _ => panic!("{plan}"),
        }
        for Dispatch { kernel, .. } in &plan.dispatches {
            let ptx = kernel.ptx().unwrap();
            let threads = format!(".maxntid {}, 1, 1", kernel.constant("THREADS"));
            prop_assert!(ptx.starts_with(".version 8.2") && ptx.contains(".entry matmul(") && ptx.contains(&threads), "{}", kernel);
        }
    }
}

#[test]
fn what_cublaslt_does_not_take_is_left_to_the_kernel() {
    let takes = |problem: &Problem| cublaslt(problem, &Caps::UNLIMITED).unwrap().is_some();
    assert!(takes(&problem(3, 5, 7, false, false, false, 0)));
    assert!(!takes(&problem(3, 0, 7, false, false, true, 0)), "a sum of no terms");
    assert!(!takes(&problem(1 << 31, 1, 1, false, false, false, 0)), "past 31 bits");
    assert!(
        takes(&batch(problem(3, 5, 7, false, false, false, 0), [2, 3], 0b10_000)),
        "B is shared in the inner of two loops, which is then rows"
    );
    assert!(!takes(&batch(problem(3, 5, 7, true, false, false, 0), [2, 3], 0b10_001)), "two loops");
    assert!(!takes(&Problem { bias: true, ..problem(3, 5, 7, false, false, false, 0) }), "a bias");
    assert!(!takes(&problem(0, 5, 7, false, false, false, 0)), "no result");
    let empty = cuda(&problem(0, 5, 7, false, false, false, 0), &Caps::UNLIMITED, 132).unwrap();
    assert_eq!((empty.dispatches.len(), empty.kernel().as_str()), (0, "none"));
    let largest = cuda(&problem(u32::MAX, 1, 1, false, false, false, 0), &Caps::UNLIMITED, 132).unwrap();
    assert_eq!(largest.dispatches[0].grid, [1 << 27, 1, 1]);
}

#[test]
fn a_matrix_past_the_largest_buffer_is_refused_with_both_numbers() {
    let error = compute(&problem(9000, 9000, 1, false, false, false, 0), &DEFAULTS).unwrap_err();
    assert_eq!(error.code(), "limit_exceeded");
    assert!(error.to_string().contains("324000000") && error.to_string().contains("268435456"), "{error}");
    for (m, k, n, max_texture_size) in [(60_000, 3000, 1, 4096), (16_384, 0, 20_000, 16_384)] {
        let error = fragment(&problem(m, k, n, false, false, false, 0), &Caps { max_texture_size, ..DEFAULTS }, &FRAGMENT).unwrap_err();
        assert_eq!(error.code(), "limit_exceeded");
    }
}

/// What lies in fours of f16 is cut between them for devices that write words alone.
#[test]
fn boxes_of_f16_are_whole_fours() {
    let caps = Caps { max_binding_bytes: 8192, stores_f16: false, ..DEFAULTS };
    for [high, wide] in [[400, 24], [400, 20], [300, 28], [100, 152], [1000, 12]] {
        let plan = plan::map::compute(&problems::halves(&[high, wide], &[1, high.into()]), &caps).unwrap_or_else(|error| panic!("{high} x {wide}: {error}"));
        assert!(plan.dispatches.len() > 1, "{high} x {wide} is not cut");
        assert!(plan.dispatches.iter().all(|dispatch| dispatch.kernel.constant("HALF") == 0), "{high} x {wide}\n{plan}");
    }
}
