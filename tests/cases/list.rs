//! The list itself.

use lapidary::{Activation, DType, Precision};

use super::{Case, PLAIN, Values};

/// The list.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |m, k, n, change: &dyn Fn(&mut Case)| {
        let mut case = Case { m, k, n, ..PLAIN };
        change(&mut case);
        cases.push(case);
    };
    let shapes = [
        // Nothing, and as little as there is.
        (0, 0, 0),
        (0, 5, 3),
        (3, 5, 0),
        (3, 0, 5),
        (1, 1, 1),
        (1, 7, 1),
        (5, 1, 9),
        // Primes, and the edges of every tile.
        (2, 3, 5),
        (13, 17, 19),
        (31, 37, 41),
        (61, 67, 71),
        (127, 131, 137),
        (31, 15, 33),
        (32, 16, 32),
        (33, 17, 31),
        (63, 16, 65),
        (64, 64, 64),
        (65, 33, 63),
        (127, 48, 129),
        (128, 16, 128),
        (129, 31, 127),
        (128, 32, 256),
        (130, 20, 258),
        // Tall, wide, long.
        (700, 3, 2),
        (2, 3, 700),
        (1, 300, 301),
        (301, 300, 1),
        (3, 4099, 5),
        (1, 20000, 1),
        // Past the blocks of the CPU's kernels in k, m and n.
        (20, 2050, 40),
        (130, 9, 1030),
        (6, 9001, 10),
    ];
    for (m, k, n) in shapes {
        add(m, k, n, &|_| {});
        add(m, k, n, &|case| case.values = Values::Uniform);
    }
    for (m, k, n) in [(33, 17, 31), (64, 32, 64), (70, 129, 66), (18, 2050, 9)] {
        for (transpose_a, transpose_b) in [(true, false), (false, true), (true, true)] {
            for values in [Values::Whole, Values::Uniform] {
                add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, values, ..*case });
            }
            // Windows of larger matrices, whose surroundings must stay out of it: rows that start at multiples of 4 and that do not.
            for (padding, before) in [([4, 8, 12], [8, 4, 20]), ([1, 2, 3], [3, 5, 2])] {
                add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, padding, before, beta: 2.0, ..*case });
            }
        }
        add(m, k, n, &|case| *case = Case { before: [70, 0, 1], beta: 1.0, ..*case });
        add(m, k, n, &|case| *case = Case { padding: [3, 5, 7], beta: -1.0, alpha: 0.5, values: Values::Uniform, ..*case });
        add(m, k, n, &|case| *case = Case { alpha: 0.0, beta: 3.0, ..*case });
        add(m, k, n, &|case| *case = Case { alpha: -2.0, ..*case });
        add(m, k, n, &|case| *case = Case { alpha: 0.0, ..*case });
        add(m, k, n, &|case| case.values = Values::IllScaled);
    }
    add(5000, 1, 3, &|case| case.transpose_a = true);
    // A row or a column, of which there is one kernel for each layout, and a k that is split.
    for (m, k, n) in [(1, 77, 130), (130, 77, 1), (1, 8300, 37), (37, 8300, 1), (9, 4100, 11)] {
        for bits in 0..4 {
            let (transpose_a, transpose_b) = (bits & 1 == 1, bits & 2 == 2);
            add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, ..*case });
            for (padding, before) in [([0; 3], [0, 1, 2]), ([4, 8, 12], [4, 68, 4]), ([1, 2, 3], [0; 3])] {
                add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, padding, before, beta: 2.0, alpha: 0.5, ..*case });
            }
        }
    }
    add(301, 520, 1, &|case| *case = Case { bias: true, activation: Some(Activation::Relu), beta: 2.0, ..*case });
    // A few rows or columns of a matrix that is large enough to be read once for all of them.
    let of_few: &[_] = &[(3, 1030, 261), (131, 8300, 8), (2, 1030, 259), (7, 600, 448)];
    for (i, &(m, k, n)) in if cfg!(target_arch = "wasm32") { &of_few[..2] } else { of_few }.iter().enumerate() {
        for bits in 0..4 {
            let (transpose_a, transpose_b) = (bits & 1 == 1, bits & 2 == 2);
            add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, values: Values::IllScaled, ..*case });
            let padding = [[4, 8, 12], [1, 2, 3]][(i + bits) % 2];
            let batch: [&[usize]; 2] = if (i + bits) % 4 < 2 { [&[2, 1], &[3]] } else { PLAIN.batch };
            add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, padding, batch, beta: 2.0, alpha: 0.5, ..*case });
        }
        add(m, k, n, &|case| *case = Case { bias: true, activation: Some(Activation::Relu), ..*case });
    }
    // Wide enough for WebGL2 to draw strips of eight rows, which a strip ends with or does not, with A in one uniform block or in several, where a browser
    // is; and large without being wide.
    let of_strips: &[_] = if cfg!(target_arch = "wasm32") { &[(64, 2051, 128), (67, 2004, 131)] } else { &[(64, 31, 128), (67, 36, 131)] };
    for &(m, k, n) in of_strips {
        for bits in 0..4 {
            let (transpose_a, transpose_b) = (bits & 1 == 1, bits & 2 == 2);
            for (padding, before) in [([0; 3], [5, 2, 1]), ([4, 8, 12], [4, 68, 4]), ([1, 2, 3], [0; 3])] {
                add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, padding, before, beta: 2.0, alpha: 0.5, ..*case });
            }
        }
        add(m, k, n, &|case| case.values = Values::IllScaled);
        add(m, k, n, &|case| *case = Case { bias: true, activation: Some(Activation::Relu), padding: [1, 2, 3], beta: 2.0, ..*case });
    }
    add(73, 4101, 142, &|_| {});
    add(67, 36, 131, &|case| *case = Case { padding: [1, 2, 3], beta: 2.0, ..*case });
    add(65, 2048, 129, &|case| *case = Case { transpose_a: true, transpose_b: true, values: Values::Uniform, ..*case });
    add(61, 5, 4501, &|case| *case = Case { transpose_a: true, padding: [1, 2, 3], beta: 2.0, ..*case });
    add(61, 6, 4501, &|case| case.bias = true);
    // Batches of small products, of which four rows are read at once or one element after the other.
    for (m, k, n) in [(8, 6, 5), (10, 10, 4), (4, 3, 3), (5, 7, 6)] {
        add(m, k, n, &|case| case.batch = [&[1100], &[1100]]);
        let more = |case: Case| Case { bias: true, activation: Some(Activation::Relu), alpha: 0.5, ..case };
        add(m, k, n, &|case| *case = Case { transpose_b: true, before: [4, 3, 0], batch: [&[1100], &[1100]], ..more(*case) });
    }
    // Rows of few terms and columns, which a workgroup takes by ones, by twos and by fours.
    for (m, k, n) in [(4099, 3, 5), (4100, 10, 6), (4097, 16, 15), (4111, 12, 28), (4096, 1, 32), (4101, 31, 1)] {
        add(m, k, n, &|case| case.before = [4, 1, 0]);
        add(m, k, n, &|case| *case = Case { transpose_b: true, bias: true, activation: Some(Activation::Relu), alpha: 0.5, ..*case });
    }
    add(5, 0, 7, &|case| case.beta = 1.5);
    add(64, 0, 128, &|case| case.beta = 1.5);
    // Large enough for the largest tiles. Software GPUs take many seconds to compile each of them: once, and only natively.
    #[cfg(not(target_arch = "wasm32"))]
    {
        add(1534, 9, 1530, &|_| ());
        // More rows of few terms and columns than fill a GPU.
        add(70_001, 10, 10, &|case| *case = Case { bias: true, activation: Some(Activation::Relu), alpha: 0.5, ..*case });
        // And so many that a workgroup goes on from some of them to others.
        add(140_001, 17, 5, &|case| case.values = Values::Uniform);
        add(40_003, 32, 31, &|case| *case = Case { transpose_b: true, before: [1, 2, 3], ..*case });
        add(1022, 10, 2046, &|case| *case = Case { transpose_a: true, transpose_b: true, padding: [2, 2, 2], beta: 2.0, ..*case });
        add(2042, 11, 2044, &|_| ());
        // A matrix so large that more than four rows or columns are read with it where its lines lie across k, and that its lines are taken by eights
        // where they lie along it.
        add(6, 2050, 2052, &|case| case.values = Values::IllScaled);
        add(2052, 2049, 5, &|case| *case = Case { transpose_a: true, beta: 2.0, ..*case });
        add(4098, 4097, 8, &|case| *case = Case { beta: 2.0, bias: true, ..*case });
        add(7, 4096, 4100, &|case| *case = Case { transpose_b: true, values: Values::IllScaled, ..*case });
    }
    add(33, 2100, 70, &|case| *case = Case { padding: [4, 8, 12], beta: 2.0, alpha: -1.0, ..*case });
    add(70, 2100, 33, &|case| *case = Case { transpose_a: true, transpose_b: true, padding: [1, 2, 3], beta: 2.0, ..*case });
    add(34, 2100, 67, &|case| *case = Case { transpose_a: true, values: Values::Uniform, ..*case });
    batches(&mut add);
    endings(&mut add);
    cases
}

/// Products in two terms, large enough for matrix units to take them.
#[cfg(not(target_arch = "wasm32"))]
#[allow(dead_code, reason = "not every test that has the list has these")]
pub fn split() -> Vec<Case> {
    let mut cases = Vec::new();
    let plain = Case { precision: Precision::F16x3, ..PLAIN };
    for (i, (m, k, n)) in [(704, 512, 704), (1239, 517, 1271), (1250, 600, 1270), (2048, 516, 1024)].into_iter().enumerate() {
        for bits in 0..4 {
            let case = Case { m, k, n, transpose_a: bits & 1 == 1, transpose_b: bits & 2 == 2, ..plain };
            let strided = [[4, 8, 12], [1, 2, 3]].map(|padding| Case { padding, beta: 2.0, alpha: -0.5, ..case });
            let valued = [Values::Whole, Values::Uniform, Values::IllScaled].map(|values| Case { values, ..case });
            let ended = Case { bias: true, activation: Some(Activation::Relu), result: DType::F16, ..case };
            // Their exact values are what takes the time: of each size and layout two.
            let all = [strided[0], valued[0], strided[1], valued[2], ended, valued[1]];
            cases.extend_from_slice(&all[(i + bits) % 3 * 2..][..2]);
        }
    }
    for (batch, transpose_a) in SPLIT_BATCHES.into_iter().flat_map(|batch| [(batch, false), (batch, true)]) {
        cases.push(Case { m: 250, k: 553, n: 320, batch, transpose_a, ..plain });
    }
    cases
}

/// With an item for each of A and B, one B for all, and items of one that several of the other share.
#[cfg(not(target_arch = "wasm32"))]
const SPLIT_BATCHES: [[&[usize]; 2]; 4] = [[&[6], &[6]], [&[6], &[]], [&[2, 3], &[2, 1]], [&[2, 1], &[3]]];

/// Products in two terms for a GPU of few multiprocessors, which matrix units take of this size there.
#[cfg(not(target_arch = "wasm32"))]
#[allow(dead_code, reason = "not every test that has the list has these")]
pub fn split_small() -> Vec<Case> {
    let plain = Case { precision: Precision::F16x3, m: 250, k: 261, n: 300, ..PLAIN };
    let layouts = (0..4).map(|bits| Case { transpose_a: bits & 1 == 1, transpose_b: bits & 2 == 2, ..plain });
    let mut cases: Vec<_> = layouts.clone().map(|case| Case { values: Values::IllScaled, ..case }).collect();
    cases.extend(layouts.map(|case| Case { padding: [1, 2, 3], before: [5, 6, 7], beta: 2.0, alpha: -0.5, bias: true, ..case }));
    cases.push(Case { m: 130, k: 5000, n: 140, transpose_a: true, values: Values::Uniform, ..plain });
    cases.extend(SPLIT_BATCHES.map(|batch| Case { m: 130, k: 257, n: 140, batch, ..plain }));
    cases
}

/// A little more than whole tiles, and large enough that tiles leave it to blocks: `tests/plan.rs` has the plans of these sizes.
#[cfg(not(target_arch = "wasm32"))]
#[allow(dead_code, reason = "not every test that has the list has these")]
pub fn edges() -> Vec<Case> {
    let wide = Case { m: 97, k: 400, n: 16_385, transpose_b: true, values: Values::IllScaled, ..PLAIN };
    let turned = Case { m: 1412, k: 400, n: 1409, transpose_a: true, transpose_b: true, padding: [1, 2, 3], beta: 2.0, ..PLAIN };
    let parts = Case { m: 769, k: 1030, n: 899, bias: true, activation: Some(Activation::Relu), ..PLAIN };
    let rounded = Case { m: 1040, k: 673, n: 507, result: DType::F16, ..PLAIN };
    let many = Case { m: 1040, k: 1036, n: 1040, padding: [1, 2, 3], ..PLAIN };
    vec![wide, turned, parts, rounded, many]
}

/// What comes after the sum: in each kernel that can be the last, and each function.
fn endings(add: &mut impl FnMut(usize, usize, usize, &dyn Fn(&mut Case))) {
    let sizes = [(33, 17, 31), (4, 8, 12), (1, 37, 30), (30, 37, 1), (6, 2100, 10), (1, 1300, 1), (3, 0, 2), (70, 40, 130)];
    for (i, (m, k, n)) in sizes.into_iter().enumerate() {
        add(m, k, n, &|case| case.bias = true);
        add(m, k, n, &|case| *case = Case { bias: true, activation: Some(Activation::Relu), beta: 2.0, padding: [1, 2, 3], ..*case });
        add(m, k, n, &|case| *case = Case { bias: true, batch: [&[3], &[3]], activation: Some(Activation::Relu), ..*case });
        let activation = Some(Activation::ALL[i % 5]);
        add(m, k, n, &|case| *case = Case { activation, values: Values::Uniform, batch: [&[2], &[]], bias: i % 2 == 0, ..*case });
    }
    // Sums near zero, near one, and far out, where an exponential overflows.
    for activation in Activation::ALL.iter().copied().map(Some) {
        for alpha in [0.01, 1.0, 40.0] {
            add(40, 5, 36, &|case| *case = Case { activation, alpha, values: Values::Uniform, ..*case });
        }
    }
}

/// Many products in one, of whole tiles and of parts of one, of a row and of a column, and of a k that is split.
fn batches(add: &mut impl FnMut(usize, usize, usize, &dyn Fn(&mut Case))) {
    let shapes: [[&'static [usize]; 2]; 7] =
        [[&[5], &[5]], [&[5], &[]], [&[], &[5]], [&[2, 3], &[2, 1]], [&[2, 1], &[3]], [&[2, 3], &[1, 1]], [&[0], &[1]]];
    // Each shape with each batch, and each layout with both, but not all of it at once: a browser that emulates a GPU is slow.
    let sizes = [(33, 17, 31), (4, 8, 12), (1, 37, 30), (30, 37, 1), (6, 2100, 10), (1, 1300, 1), (3, 0, 2)];
    let layouts: [&dyn Fn(&mut Case); 4] = [
        &|_| {},
        &|case| *case = Case { transpose_a: true, beta: 2.0, padding: [1, 2, 3], ..*case },
        &|case| *case = Case { transpose_b: true, beta: 2.0, padding: [4, 8, 12], alpha: 0.5, ..*case },
        &|case| *case = Case { transpose_a: true, transpose_b: true, values: Values::Uniform, ..*case },
    ];
    for (i, (m, k, n)) in sizes.into_iter().enumerate() {
        for (j, batch) in shapes.into_iter().enumerate() {
            add(m, k, n, &|case| {
                case.batch = batch;
                layouts[(i + j) % 4](case);
            });
        }
        let gaps = [[Some(4); 3], [Some(3), Some(0), Some(1)], [None, Some(7), None], [Some(8), None, Some(0)], [None; 3]];
        for (j, gaps) in gaps.into_iter().enumerate() {
            let (padding, before, transpose_b) = if (i + j) % 2 == 0 { ([0; 3], [j, i, 4], false) } else { ([4, 0, 1], [0; 3], true) };
            add(m, k, n, &|case| *case = Case { batch: [&[3], &[3]], gaps, beta: -1.0, padding, before, transpose_b, ..*case });
        }
    }
    add(64, 64, 64, &|case| *case = Case { batch: [&[9], &[9]], values: Values::Uniform, ..*case });
    add(200, 20, 150, &|case| *case = Case { batch: [&[40], &[40]], values: Values::Uniform, ..*case });
    // So small and so many that they share workgroups.
    for (i, (m, k, n)) in [(2, 3, 2), (4, 8, 12), (5, 7, 9), (8, 12, 4), (1, 4, 3), (9, 6, 1)].into_iter().enumerate() {
        add(m, k, n, &|case| {
            case.batch = [&[1000], &[1000]];
            layouts[i % 4](case);
        });
    }
    for (m, k, n) in [(1100, 4, 3), (601, 7, 4), (3, 5, 2500), (16, 9, 11)] {
        for layout in layouts {
            add(m, k, n, &|case| layout(case));
        }
    }
    let gaps = [Some(4), Some(0), Some(1)];
    add(6, 5, 7, &|case| *case = Case { batch: [&[1100], &[1100]], gaps, activation: Some(Activation::Relu), bias: true, ..*case });
}
