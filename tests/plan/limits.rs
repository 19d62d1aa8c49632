//! Properties of all plans: each computes its product exactly once, within what a device can do.

use std::fmt::Write;

use lapidary::kernels::KernelId;
use lapidary::plan::matmul::Params;
use lapidary::plan::{Dispatch, Slot};
use proptest::prelude::*;

use super::*;

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

pub(super) fn params(dispatch: &Dispatch) -> Params {
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
        ((m, k, n), loops) in prop_oneof![
            4 => (
                prop_oneof![
                    (1u32..700, 0u32..700, 1u32..700),
                    (1u32..70, 700u32..20_000, 1u32..70),
                    (Just(1), 0u32..20_000, 1u32..900),
                    (1u32..900, 0u32..20_000, Just(1)),
                    (700u32..4200, 500u32..4200, 700u32..4200),
                    (1u32..40, 60u32..66, 60u32..66).prop_map(|(more, x, y)| (x * 32 + more, y * 32, y * 32 + more % 3)),
                ],
                prop_oneof![Just([1, 1]), [1u32..4, 1u32..9], [1u32..2, 1u32..40]],
            ),
            1 => ((1u32..33, 1u32..40, 1u32..33), [1u32..3, 300u32..2000]),
            1 => ((4000u32..40_000, 1u32..36, 1u32..36), prop_oneof![Just([1, 1]), [1u32..2, 1u32..4]]),
        ],
        transpose_a: bool, transpose_b: bool, reads_c: bool, padding in 0u64..9,
        max_binding_bytes in 1u64 << 16..1 << 22, max_workgroups_per_dimension in 8u32..200,
        shared: u8,
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
            if dispatch.kernel.constant("MANY") == 1 {
                // Rows that lie flat have an invocation for all of their columns.
                let across = if dispatch.kernel.constant("FLAT") > 0 { 1 } else { p.n.div_ceil(4) };
                prop_assert!(u64::from(x) * 64 >= u64::from(p.m.div_ceil(4) * across) * u64::from(p.batch) && y == 1 && z == 1);
                continue;
            }
            if dispatch.kernel.id == KernelId::MatmulRows {
                // A workgroup goes on to further rows, a few times.
                prop_assert!(x * dispatch.kernel.constant("ROWS") * 8 >= p.m && y == 1 && z == 1);
                prop_assert!((p.k, p.n) == (p.lda, p.ldo) && p.a_start.is_multiple_of(4) && p.out_start.is_multiple_of(4));
                prop_assert!(p.m == problem.m || (p.m * p.n).is_multiple_of(4));
                continue;
            }
            prop_assert!(z == p.batch || dispatch.kernel.constant("PARTS") == 1 && z % p.batch == 0);
            prop_assert_eq!(dispatch.kernel.constant("BATCHED"), u32::from(p.batch > 1));
            if dispatch.kernel.id == KernelId::MatmulVector {
                let [vectors, elements] = if dispatch.kernel.constant("TALL") == 1 { [p.n, p.m] } else { [p.m, p.n] };
                let [turn, turns, groups, fours] = ["TURN", "TURNS", "GROUPS", "FOURS"].map(|name| dispatch.kernel.constant(name));
                prop_assert!(turn * turns >= vectors && x * groups * fours * 4 >= elements);
                // One vector alone has no other ldb further.
                let of_b = [p.b_start, p.b_outer, p.b_inner, if vectors > 1 { p.ldb } else { 0 }];
                for (vec4, numbers) in [("A_VEC4", [p.a_start, p.lda, p.a_outer, p.a_inner]), ("B_VEC4", of_b)] {
                    prop_assert!(dispatch.kernel.constant(vec4) == 0 || numbers.iter().all(|number| number % 4 == 0));
                }
                continue;
            }
            let [tile_m, tile_n, edges, edge_m, edge_n] =
                ["TILE_M", "TILE_N", "EDGES", "EDGE_M", "EDGE_N"].map(|name| dispatch.kernel.constant(name));
            // What whole tiles leave is of blocks.
            let (rows, columns) = (edge_m * (p.m % tile_m), edge_n * (p.n % tile_n));
            let blocks = (p.m - rows).div_ceil(4) * columns.div_ceil(4) + rows.div_ceil(4) * p.n.div_ceil(4);
            prop_assert!(x * tile_n + columns >= p.n && edges == u32::from(rows + columns > 0));
            let below = y.checked_sub((p.m - rows).div_ceil(tile_m));
            // Workgroups go on from block to block; but in the last row, each has one.
            let has_each = |below: u32| below <= 1 || (below - 1) * x * dispatch.kernel.constant("EDGE_BLOCKS") < blocks;
            prop_assert!(below.is_some_and(|below| (below > 0) == (blocks > 0) && has_each(below)));
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

/// Results of convolutions that are to be rounded have room, too.
#[test]
fn convolutions_that_are_to_be_rounded_keep_the_limits() {
    for (sizes, window) in
        [([65_535, 1, 1, 500], window(1, 1, 1, 0)), ([30_000, 1, 4, 120], window(3, 1, 1, 0)), ([3, 1, 4, 60], window(801, 3, 1, 1))]
    {
        let plan = plan::conv::compute(&convolution(sizes, window, DType::F16), &DEFAULTS).unwrap();
        let bindings = plan.dispatches.iter().flat_map(|dispatch| &dispatch.bindings);
        for binding in bindings {
            assert!(binding.size_bytes <= DEFAULTS.max_binding_bytes, "{sizes:?}: {binding:?}");
        }
    }
}

/// What a large filter sees of a large image may be more than a matrix has elements: it lies nowhere.
#[test]
fn convolutions_are_not_limited_by_a_matrix_that_is_not_there() {
    let problem = convolution([1, 1, 1, 1], window(8192, 9, 1, 4), DType::F32);
    let [here, there] = [plan::conv::compute(&problem, &Caps::UNLIMITED), plan::conv::cuda(&problem, &Caps::UNLIMITED, 132, |_| Ok(None))];
    for plan in [here, there] {
        assert!(!plan.unwrap().dispatches.is_empty());
    }
    // Of f16 an image takes half.
    let halved = convolution([1, 1, 32, 16], window(2048, 1, 1, 0), DType::F16);
    let caps = Caps { max_binding_bytes: (1 << 28) + 4096, ..DEFAULTS };
    assert!(plan::conv::compute(&halved, &caps).is_ok());
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

    /// Results of f16 may stand in scratch until they are rounded, in rows of whole fours: it has room for them, and tiles that overlap begin
    /// at fours.
    #[test]
    fn what_is_to_be_rounded_keeps_the_limits(
        // The larger a product, the larger the least limit: there are as many launches as the cube of what a limit cuts a side into.
        ((m, k, n), max_binding_bytes) in prop_oneof![
            ((1u32..300, 0u32..300, 1u32..300), 1u64 << 16..1 << 21),
            ((1u32..700, 0u32..700, 1u32..700), 1u64 << 18..1 << 23),
            ((400u32..2000, 200u32..1000, 400u32..2000), 1u64 << 20..1 << 23),
            ((700u32..200_000, 1u32..9, 1u32..20), 1u64 << 16..1 << 23),
        ],
        transpose_a: bool, transpose_b: bool, computes_f16: bool, loops in prop_oneof![Just([1, 1]), [1u32..4, 1u32..9]], shared: u8,
    ) {
        let caps = Caps { max_binding_bytes, ..if computes_f16 { HALF } else { LARGE } };
        let problem = batch(problem(m, k, n, transpose_a, transpose_b, false, 0), loops, shared);
        let half = Problem { dtype: DType::F16, precision: Precision::F16, ..problem };
        let problem = Problem { result: DType::F16, ..if computes_f16 { half } else { problem } };
        let plan = compute(&problem, &caps).unwrap();
        for dispatch in &plan.dispatches {
            for binding in &dispatch.bindings {
                prop_assert!(binding.size_bytes <= caps.max_binding_bytes, "{binding:?} of {max_binding_bytes}");
            }
            let [inside, out_vec4, tile_n, edge_n] = ["INSIDE", "OUT_VEC4", "TILE_N", "EDGE_N"].map(|name| dispatch.kernel.constant(name));
            if inside == 1 && out_vec4 == 1 && edge_n == 0 {
                let n = params(dispatch).n;
                prop_assert!(n.is_multiple_of(4) || n.is_multiple_of(tile_n), "{}", plan);
            }
        }
    }

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
}

#[test]
fn a_matrix_past_the_largest_buffer_is_refused_with_both_numbers() {
    let error = compute(&problem(9000, 9000, 1, false, false, false, 0), &DEFAULTS).unwrap_err();
    assert_eq!(error.code(), "limit_exceeded");
    assert!(error.to_string().contains("324000000") && error.to_string().contains("268435456"), "{error}");
    for (m, k, n, max_texture_size) in [(60_000, 3000, 1, 4096), (30_000, 0, 40_000, 16_384)] {
        let error = fragment(&problem(m, k, n, false, false, false, 0), &Caps { max_texture_size, ..DEFAULTS }, &FRAGMENT).unwrap_err();
        assert_eq!(error.code(), "limit_exceeded");
    }
}

/// What lies in fours of f16 is cut between them for devices that write words alone.
#[test]
fn boxes_of_f16_are_whole_fours() {
    let caps = Caps { max_binding_bytes: 8192, stores_f16: false, ..DEFAULTS };
    for [high, wide] in [[400, 24], [400, 20], [300, 28], [100, 152], [1000, 12]] {
        let plan = plan::map::compute(&problems::halves(&[high, wide], &[1, high.into()]), &caps)
            .unwrap_or_else(|error| panic!("{high} x {wide}: {error}"));
        assert!(plan.dispatches.len() > 1, "{high} x {wide} is not cut");
        assert!(plan.dispatches.iter().all(|dispatch| dispatch.kernel.constant("HALF") == 0), "{high} x {wide}\n{plan}");
    }
}
