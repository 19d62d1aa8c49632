//! One list of products, computed on every backend that is there and judged in the same way: natively by `conformance.rs`, in the browser by
//! `web.rs`.

use std::fmt;

use lapidary::verify::Reference;
use lapidary::{Gpu, Matmul, random};

/// A product to try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    pub m: usize,
    pub k: usize,
    pub n: usize,
    pub transpose_a: bool,
    pub transpose_b: bool,
    pub alpha: f32,
    /// Scales C; with 0 there is none.
    pub beta: f32,
    /// Elements past the columns from one stored row to the next, for A, B and C.
    pub padding: [usize; 3],
    pub values: Values,
}

/// What the matrices hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values {
    /// Small whole numbers: there is one right result, to the bit.
    Whole,
    /// Uniform in [-1, 1).
    Uniform,
    /// Rows and columns scaled by powers of two from 2^-30 to 2^30, where tests by norms are blind.
    IllScaled,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { m, k, n, transpose_a, transpose_b, alpha, beta, padding, values } = self;
        write!(f, "{m}x{k}x{n} {values:?} transposed {transpose_a},{transpose_b} alpha {alpha} beta {beta} padding {padding:?}")
    }
}

const PLAIN: Case =
    Case { m: 1, k: 1, n: 1, transpose_a: false, transpose_b: false, alpha: 1.0, beta: 0.0, padding: [0; 3], values: Values::Whole };

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
            for padding in [[4, 8, 12], [1, 2, 3]] {
                add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, padding, beta: 2.0, ..*case });
            }
        }
        add(m, k, n, &|case| *case = Case { padding: [3, 5, 7], beta: -1.0, alpha: 0.5, values: Values::Uniform, ..*case });
        add(m, k, n, &|case| *case = Case { alpha: 0.0, beta: 3.0, ..*case });
        add(m, k, n, &|case| *case = Case { alpha: -2.0, ..*case });
        add(m, k, n, &|case| *case = Case { alpha: 0.0, ..*case });
        add(m, k, n, &|case| case.values = Values::IllScaled);
    }
    add(5000, 1, 3, &|case| case.transpose_a = true);
    // A row or a column, of which there is one kernel for each layout, and a k that is split.
    for (m, k, n) in [(1, 77, 130), (130, 77, 1), (1, 4100, 37), (37, 4100, 1), (9, 4100, 11)] {
        for bits in 0..4 {
            let (transpose_a, transpose_b) = (bits & 1 == 1, bits & 2 == 2);
            add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, ..*case });
            for padding in [[0; 3], [4, 8, 12], [1, 2, 3]] {
                add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, padding, beta: 2.0, alpha: 0.5, ..*case });
            }
        }
    }
    // Wide enough for WebGL2 to draw strips of eight rows, which a strip ends with or does not, of one uniform block and of several.
    for (m, k, n) in [(64, 31, 128), (67, 36, 131), (73, 4101, 142)] {
        for bits in 0..4 {
            let (transpose_a, transpose_b) = (bits & 1 == 1, bits & 2 == 2);
            for padding in [[0; 3], [4, 8, 12], [1, 2, 3]] {
                add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, padding, beta: 2.0, alpha: 0.5, ..*case });
            }
            add(m, k, n, &|case| *case = Case { transpose_a, transpose_b, values: Values::Uniform, ..*case });
        }
        add(m, k, n, &|case| case.values = Values::IllScaled);
    }
    add(5, 0, 7, &|case| case.beta = 1.5);
    add(64, 0, 128, &|case| case.beta = 1.5);
    // Long sums for a small result, whose parts are added up where k is split.
    add(33, 2100, 70, &|case| *case = Case { padding: [4, 8, 12], beta: 2.0, alpha: -1.0, ..*case });
    add(70, 2100, 33, &|case| *case = Case { transpose_a: true, transpose_b: true, padding: [1, 2, 3], beta: 2.0, ..*case });
    add(34, 2100, 67, &|case| *case = Case { transpose_a: true, values: Values::Uniform, ..*case });
    cases
}

/// What a test feeds a product, with NaN wherever it has no business.
pub struct Inputs {
    pub a: Vec<f32>,
    pub b: Vec<f32>,
    pub c: Vec<f32>,
}

impl Case {
    /// The matrices as stored.
    pub fn inputs(&self) -> Inputs {
        let stored = |rows: usize, columns: usize, padding: usize, seed: u64, by_rows: bool| {
            let stride = columns + padding;
            let mut values = vec![f32::NAN; if rows == 0 || columns == 0 { 0 } else { (rows - 1) * stride + columns }];
            for row in 0..rows {
                for column in 0..columns {
                    let x = random::element(seed, (row * columns + column) as u64);
                    values[row * stride + column] = match self.values {
                        Values::Whole => (x * 8.0).floor(),
                        Values::Uniform => x,
                        Values::IllScaled => {
                            let line = if by_rows { row } else { column };
                            x * 2.0f32.powi((line * 7 % 61) as i32 - 30)
                        }
                    };
                }
            }
            values
        };
        let ordered = |swap: bool, x: usize, y: usize| if swap { (y, x) } else { (x, y) };
        let (a_rows, a_columns) = ordered(self.transpose_a, self.m, self.k);
        let (b_rows, b_columns) = ordered(self.transpose_b, self.k, self.n);
        Inputs {
            a: stored(a_rows, a_columns, self.padding[0], 1, !self.transpose_a),
            b: stored(b_rows, b_columns, self.padding[1], 2, self.transpose_b),
            c: if self.beta == 0.0 { Vec::new() } else { stored(self.m, self.n, self.padding[2], 3, true) },
        }
    }

    /// The product of those inputs.
    pub fn op<'a>(&self, inputs: &'a Inputs) -> Matmul<'a> {
        let (a_columns, b_columns) = (if self.transpose_a { self.m } else { self.k }, if self.transpose_b { self.k } else { self.n });
        let mut op = Matmul::new(self.m as u64, self.k as u64, self.n as u64)
            .transpose_a(self.transpose_a)
            .transpose_b(self.transpose_b)
            .alpha(self.alpha);
        if self.padding != [0; 3] {
            op = op.lda((a_columns + self.padding[0]) as u64).ldb((b_columns + self.padding[1]) as u64);
        }
        if self.beta != 0.0 {
            op = op.plus(self.beta, &inputs.c).ldc((self.n + self.padding[2]) as u64);
        }
        op
    }

    /// Computes and judges it: the reason if it is wrong.
    pub async fn check(&self, gpu: &Gpu) -> Result<(), String> {
        let inputs = self.inputs();
        let op = self.op(&inputs);
        let said = |error: Box<lapidary::Error>| format!("{self}: {error}");
        let result = gpu.matmul(&inputs.a, &inputs.b, &op).await.map_err(said)?;
        let reference = Reference::new(&inputs.a, &inputs.b, &inputs.c, &op).map_err(said)?;
        let verdict = reference.check(&result).map_err(said)?;
        let exact = self.values != Values::Whole || verdict.max_abs_error == 0.0;
        if verdict.is_right() && exact && verdict.elements == (self.m * self.n) as u64 {
            Ok(())
        } else {
            Err(format!("{self}: {verdict:?}"))
        }
    }
}
