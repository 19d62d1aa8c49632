//! Properties of all plans for CUDA.

use lapidary::kernels::{Kernel, KernelId};
use lapidary::plan::{Dispatch, Slot};
use proptest::prelude::*;

use super::limits::params;
use super::*;

/// Whether there is a module of that variant, of as many threads as the plan launches.
fn has_ptx(kernel: &Kernel) -> bool {
    let ptx = kernel.ptx().unwrap();
    let threads = format!(".maxntid {}, 1, 1", kernel.constant("THREADS"));
    ptx.starts_with(".version 8.2") && ptx.contains(".entry matmul(") && ptx.contains(&threads)
}

/// A plan for a few rows or columns: its blocks cover the lines of the matrix, which it reads where it lies, and the parts of k make it up.
fn takes_vectors(problem: &Problem, plan: &Plan) -> Result<(), TestCaseError> {
    let product = &plan.dispatches[0];
    let (p, constant) = (params(product), |name| product.kernel.constant(name));
    let [threads, lanes, tall] = [constant("THREADS"), p.before_y, p.before_x];
    let (lines, vectors) = if tall == 1 { (p.m, p.n) } else { (p.n, p.m) };
    prop_assert!([(problem.m, problem.n), (1, problem.m)].contains(&(p.m, p.n)) && p.k == problem.k, "{}", plan);
    prop_assert!(vectors <= constant("VECTORS") && lanes.is_power_of_two() && lanes >= 4 && threads.is_multiple_of(lanes), "{}", plan);
    prop_assert_eq!(&product.grid[..2], [lines.div_ceil(4 * (threads / lanes)), 1]);
    // The matrix is bound first, and lies as the variant reads it.
    let of_b = product.bindings[0].index == 1;
    let (stored, other) = if of_b { (problem.b, problem.a) } else { (problem.a, problem.b) };
    prop_assert_eq!([product.bindings[0].slot, product.bindings[1].slot], [Slot::A, Slot::B]);
    let steps = if constant("ALONG") == 1 { stored.columns } else { stored.rows };
    prop_assert!(steps == p.k || lines == 1, "{}", plan);
    prop_assert!(lines == 1 || u64::from(p.lda) == stored.stride, "{}", plan);
    prop_assert!([[1, other.stride], [other.stride, 1]].contains(&[p.height.into(), p.width.into()]), "{}", plan);
    if let [product, sum] = &plan.dispatches[..] {
        let parts = product.grid[2];
        prop_assert!(
            parts >= 2 && p.k_part.is_multiple_of(4 * lanes) && (parts - 1) * p.k_part < p.k && parts * p.k_part >= p.k,
            "{}",
            plan
        );
        let s = params(sum);
        prop_assert_eq!((sum.kernel.id, s.k, s.lda, s.ldo), (KernelId::MatmulSum, parts, p.ldo, p.n));
        prop_assert!(p.ldo % 4 == 0 && plan.scratch_bytes >= u64::from(parts * p.m * p.ldo) * 4, "{}", plan);
    } else {
        prop_assert!(plan.dispatches.len() == 1 && product.grid[2] == 1 && p.k_part == 0 && plan.scratch_bytes == 0, "{}", plan);
    }
    prop_assert!(plan.dispatches.iter().all(|dispatch| has_ptx(&dispatch.kernel)), "{}", plan);
    Ok(())
}

proptest! {
    /// Whatever the shape: the blocks cover the result, the parts of k make it up exactly, and modules of those variants are there, of as
    /// many threads as the plan launches.
    #[test]
    fn every_plan_for_cuda_has_its_kernel(
        (m, k, n) in prop_oneof![
            (1u32..5000, 0u32..100, 1u32..5000),
            (1u32..200, 100u32..200_000, 1u32..200),
            (1u32..40, 0u32..40, 1u32..5000),
            (4000u32..100_000, 1u32..40, 1u32..40),
        ],
        transpose_a: bool, transpose_b: bool, reads_c: bool, multiprocessors in 1u32..200, is_f16: bool, has_units: bool,
    ) {
        let problem = Problem { dtype: if is_f16 { DType::F16 } else { DType::F32 }, ..problem(m, k, n, transpose_a, transpose_b, reads_c, 0) };
        let plan = cuda(&problem, if has_units { &UNITS } else { &LARGE }, multiprocessors).unwrap();
        let slots = |dispatch: &Dispatch| dispatch.bindings.iter().map(|binding| (binding.index, binding.slot)).collect::<Vec<_>>();
        let c = |index: u32| reads_c.then_some((index, Slot::C));
        if plan.dispatches[0].kernel.id == KernelId::MatmulVector {
            return takes_vectors(&problem, &plan);
        }
        // What is so small or thin that threads take blocks of 4 x 4 is neither copied nor split.
        if let [product] = &plan.dispatches[..]
            && product.kernel.id == KernelId::MatmulDirect
        {
            prop_assert!((2..=32).contains(&m.min(n)) && (1..=32).contains(&k) && plan.scratch_bytes == 0, "{}", plan);
            prop_assert_eq!(slots(product), [(0, Slot::A), (1, Slot::B)].into_iter().chain(c(2)).chain([(4, Slot::Out)]).collect::<Vec<_>>());
            prop_assert!(product.grid[0] * product.kernel.constant("THREADS") >= m.div_ceil(4) * n.div_ceil(4), "{}", plan);
            prop_assert!(has_ptx(&product.kernel), "{}", product.kernel);
            return Ok(());
        }
        // Many rows of few terms and columns lie as they are, and a block of some at once fits in what it keeps them in.
        if let [product] = &plan.dispatches[..]
            && product.kernel.id == KernelId::MatmulRows
        {
            let (p, rows) = (params(product), params(product).k_part);
            prop_assert!(m >= 4096 && (1..=32).contains(&k) && (1..=32).contains(&n) && !transpose_a && !reads_c, "{}", plan);
            prop_assert!((p.lda, p.ldo) == (k, n) && plan.scratch_bytes == 0, "{}", plan);
            prop_assert!(rows.is_multiple_of(32) && rows * k.max(n) <= 3072 && product.grid == [m.div_ceil(rows), 1, 1], "{}", plan);
            prop_assert_eq!(slots(product), [(0, Slot::A), (1, Slot::B), (4, Slot::Out)]);
            prop_assert!(has_ptx(&product.kernel), "{}", product.kernel);
            return Ok(());
        }
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
        let slot = |must: bool, slot| if must { Slot::Scratch } else { slot };
        let operands = if k > 0 { vec![(0, slot(must_copy[0], Slot::A)), (1, slot(must_copy[1], Slot::B))] } else { Vec::new() };
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
            prop_assert!(has_ptx(kernel), "{}", kernel);
        }
    }

    /// The same in two terms of f16: each operand is split once into rows of its own, which blocks cover, and the product walks along both terms.
    #[test]
    fn every_plan_for_cuda_in_two_terms_has_its_kernels(
        (m, k, n) in prop_oneof![(400u32..5000, 400u32..3000, 400u32..5000), (1u32..400, 2000u32..200_000, 1u32..400)],
        transpose_a: bool, transpose_b: bool, reads_c: bool, multiprocessors in 1u32..200, loops in prop_oneof![Just([1, 1]), [1u32..3, 1u32..4]],
        shared: u8,
    ) {
        let plain = batch(problem(m, k, n, transpose_a, transpose_b, reads_c, 1), loops, shared);
        let problem = Problem { precision: Precision::F16x3, ..plain };
        let plan = cuda(&problem, &UNITS, multiprocessors).unwrap();
        let library = cublaslt(&problem, &UNITS, multiprocessors).unwrap();
        let [a, b, product, sum @ ..] = &plan.dispatches[..] else {
            prop_assert!(plan == cuda(&plain, &UNITS, multiprocessors).unwrap() && library == cublaslt(&plain, &UNITS, multiprocessors).unwrap());
            return Ok(());
        };
        if a.kernel.id != KernelId::MatmulSplit {
            prop_assert_eq!(&plan, &cuda(&plain, &UNITS, multiprocessors).unwrap());
            return Ok(());
        }
        prop_assert_eq!(library, None);
        let p = params(product);
        let mut end_bytes = 0;
        for (split, [along, is_b]) in [(a, [!transpose_a, false]), (b, [transpose_b, true])] {
            let (s, to) = (params(split), split.bindings[1]);
            let (lines, of_k) = if along { (s.m, s.n) } else { (s.n, s.m) };
            prop_assert_eq!(&split.kernel.variant, if along { "along" } else { "across" });
            prop_assert_eq!((of_k, s.ldo, s.ldo), (k, (2 * k.next_multiple_of(8) + 8).next_multiple_of(64), if is_b { p.ldb } else { p.lda }));
            let in_block = if along { split.kernel.constant("THREADS") / s.before_y } else { s.before_y };
            prop_assert!(s.before_y.is_power_of_two() && split.grid == [lines.div_ceil(in_block), 1, s.batch], "{}", plan);
            prop_assert!(to.slot == Slot::Scratch && to.offset_bytes == end_bytes && end_bytes % 256 == 0, "{}", plan);
            prop_assert!(to.size_bytes >= 2 * u64::from(s.batch) * u64::from(lines) * u64::from(s.ldo), "{}", plan);
            // Where the product's last item starts is the last that was split.
            let last = [p.starts(p.batch - 1)[usize::from(is_b)], u64::from(s.batch - 1) * u64::from(lines) * u64::from(s.ldo)];
            prop_assert_eq!(last[0], last[1], "{}", plan);
            prop_assert_eq!(product.bindings[usize::from(is_b)], lapidary::plan::Binding { index: u32::from(is_b), ..to });
            end_bytes += to.size_bytes;
        }
        let constant = |name| product.kernel.constant(name);
        let blocks = p.m.div_ceil(constant("TILE_M")) * p.n.div_ceil(constant("TILE_N"));
        prop_assert_eq!((product.kernel.id, p.k, &product.grid[..2]), (KernelId::MatmulCooperative, 2 * k.next_multiple_of(8), &[blocks, 1][..]));
        if let [sum] = sum {
            let parts = product.grid[2] / p.batch;
            prop_assert!(p.k_part.is_multiple_of(2 * constant("TILE_K")) && (parts - 1) * p.k_part < p.k && parts * p.k_part >= p.k, "{}", plan);
            prop_assert!(sum.kernel.id == KernelId::MatmulSum && params(sum).k == parts, "{}", plan);
            prop_assert!(plan.scratch_bytes >= end_bytes + u64::from(product.grid[2] * p.m * p.ldo) * 4);
        } else {
            prop_assert!(sum.is_empty() && p.k_part == 0 && product.grid[2] == p.batch && plan.scratch_bytes == end_bytes, "{}", plan);
        }
        prop_assert!(plan.dispatches.iter().all(|dispatch| has_ptx(&dispatch.kernel)), "{}", plan);
    }

    /// The same of 8-bit integers.
    #[test]
    fn every_plan_for_cuda_of_integers_has_its_kernel(
        sizes in [1u32..5000, 0u32..5000, 1u32..5000], aligned: bool, transpose_a: bool, transpose_b: bool, multiprocessors in 1u32..200,
        has_units: bool,
    ) {
        let [m, k, n] = if aligned { sizes.map(|size| size.next_multiple_of(16)) } else { sizes };
        let problem = integers(problem(m, k, n, transpose_a, transpose_b, false, 0), [7, -3]);
        let plan = cuda(&problem, if has_units { &UNITS } else { &LARGE }, multiprocessors).unwrap();
        let mut products = 0;
        for dispatch in &plan.dispatches {
            let constant = |name| dispatch.kernel.constant(name);
            let ptx = dispatch.kernel.ptx().unwrap();
            let threads = format!(".maxntid {}, 1, 1", constant("THREADS"));
            prop_assert!(ptx.contains(".entry matmul(") && ptx.contains(&threads), "{}", dispatch.kernel);
            if dispatch.kernel.id == KernelId::MatmulInt8Vector {
                products += 1;
                let (p, of_b) = (params(dispatch), dispatch.bindings[0].index == 1);
                let (vectors, lines) = if p.before_x == 1 { (p.n, p.m) } else { (p.m, p.n) };
                prop_assert!([(m, n), (1, m)].contains(&(p.m, p.n)) && p.k == k, "{}", plan);
                prop_assert!(vectors <= constant("VECTORS") && constant("THREADS").is_multiple_of(p.before_y), "{}", plan);
                prop_assert_eq!(&dispatch.grid[..2], [lines.div_ceil(4 * (constant("THREADS") / p.before_y)), 1]);
                // Whole steps but for the last one, and none of them empty.
                let parts = dispatch.grid[2];
                prop_assert_eq!((parts > 1, parts > 1), (p.k_part > 0, plan.dispatches.len() == 2), "{}", plan);
                let are_whole = p.k_part % (4 * p.before_y) == 0 && (parts - 1) * p.k_part < k && parts * p.k_part >= k;
                prop_assert!(parts == 1 || are_whole && plan.scratch_bytes >= u64::from(parts * m * n) * 4, "{}", plan);
                // A is of u8, and its zero point that of i8 then.
                let told = if of_b { (2, [-3i16, 7 - 128]) } else { (1, [7 - 128, -3]) };
                prop_assert_eq!((p.result & 3, [p.zero_points as i16, (p.zero_points >> 16) as i16]), told, "{}", plan);
                continue;
            }
            if constant("TILE_M") == 0 {
                continue;
            }
            products += 1;
            let parts = dispatch.grid[2];
            prop_assert_eq!(dispatch.grid, [m.div_ceil(constant("TILE_M")) * n.div_ceil(constant("TILE_N")), 1, parts]);
            prop_assert_eq!(parts > 1, plan.dispatches.last().unwrap().kernel.to_string() == "matmul/int8 sum", "{}", plan);
            // They read rows that start at multiples of 16.
            let [a_row, b_row] = [if transpose_a { m } else { k }, if transpose_b { k } else { n }];
            let is_aligned = a_row % 16 == 0 && b_row % 16 == 0;
            let by_units = ptx.contains("mma.sync");
            prop_assert!(has_units || !by_units, "{}", plan);
            prop_assert!(by_units || !has_units || !is_aligned, "{}", plan);
            prop_assert!(plan.dispatches.len() == 1 || by_units || parts > 1, "{}", plan);
        }
        prop_assert_eq!(products, 1, "{}", plan);
    }
}

#[test]
fn what_cublaslt_does_not_take_is_left_to_the_kernel() {
    let takes = |problem: &Problem| cublaslt(problem, &Caps::UNLIMITED, 132).unwrap().is_some();
    assert!(takes(&problem(3, 5, 7, false, false, false, 0)));
    assert!(!takes(&problem(3, 0, 7, false, false, true, 0)), "a sum of no terms");
    assert!(!takes(&problem(1 << 31, 1, 1, false, false, false, 0)), "past 31 bits");
    assert!(
        takes(&batch(problem(3, 5, 7, false, false, false, 0), [2, 3], 0b10_000)),
        "B is shared in the inner of two loops, which is then rows"
    );
    assert!(!takes(&batch(problem(3, 5, 7, true, false, false, 0), [2, 3], 0b10_001)), "two loops");
    assert!(!takes(&Problem { bias: true, ..problem(3, 5, 7, false, false, false, 0) }), "too small for a launch that adds a bias");
    assert!(takes(&Problem { bias: true, ..problem(3000, 5000, 7000, false, false, false, 0) }), "a bias");
    assert!(!takes(&Problem { bias: true, ..problem(30_000, 5000, 7000, false, false, false, 0) }), "too large for the sums' own room");
    assert!(!takes(&problem(4096, 1000, 5, false, true, false, 0)), "a few columns");
    assert!(!takes(&problem(1, 1024, 1024, false, false, false, 0)) && takes(&problem(1, 4096, 4096, false, false, false, 0)), "a row");
    assert!(takes(&Problem { dtype: DType::F16, ..problem(8, 4096, 4096, false, true, false, 0) }), "matrix units");
    assert!(!takes(&problem(0, 5, 7, false, false, false, 0)), "no result");
    let long = cuda(&problem(1, 3_000_000_000, 1, false, false, false, 0), &Caps::UNLIMITED, 132).unwrap();
    assert_eq!(long.dispatches[0].kernel.id, KernelId::MatmulTiled, "steps past 32 bits");
    let empty = cuda(&problem(0, 5, 7, false, false, false, 0), &Caps::UNLIMITED, 132).unwrap();
    assert_eq!((empty.dispatches.len(), empty.kernel().as_str()), (0, "none"));
    let largest = cuda(&problem(u32::MAX, 1, 1, false, false, false, 0), &Caps::UNLIMITED, 132).unwrap();
    assert_eq!(largest.dispatches[0].grid, [u32::MAX.div_ceil(3072), 1, 1]);
    let points = cuda(&problem(100_000, 3, 3, false, true, false, 0), &Caps::UNLIMITED, 132).unwrap();
    assert_eq!(points.kernel(), "matmul/rows f32-nt");
    assert!(!takes(&problem(100_000, 3, 3, false, true, false, 0)), "few terms and columns");
}
